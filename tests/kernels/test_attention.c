/* SPDX-License-Identifier: MIT
 * test_attention.c - attention on every instruction set, against the contract of quant/attn.h worked out number by
 * number, and against double arithmetic.
 *
 * A case is drawn: heads, widths, types, mask, bias, sequences of a batch, positions. Blocks are full of NaN before
 * anything is stored, and lie between guard pages, as all buffers do; the cut is made for one to nine threads, and
 * tasks run in any order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/attn.h"
#include "../../quant/quant.h"
#include "../lib/kerntest.h"
#include "../lib/slow_attention.h"

static const uint32_t types[] = { GGU_TYPE_F32, GGU_TYPE_F16, GGU_TYPE_BF16, GGU_TYPE_I16, GGU_TYPE_Q8_0,
	GGU_TYPE_Q5_1, GGU_TYPE_Q4_0 };
enum { N_TYPES = sizeof types/sizeof *types, SEQUENCES = 3, ORDINARY = KT_FLOATS, KINDS };
static void fill(float *x, size_t n, int kind)
{
	if (kind == ORDINARY) for (size_t i = 0; i < n; i++) x[i] = kt_bell();
	else kt_fill_floats(x, n, kind);
}

/* ---- a sequence: what was to be stored, what it became, and the blocks ---- */

struct sequence {
	size_t n_pos, n_blocks;
	float *k, *v;                   /* [n_pos][n_kv][dim], as decoded */
	struct slow_weight *k_codes, *v_codes;  /* likewise, of blocks */
	void **block;
};
static bool is_block(uint32_t type) { return ggu_type_info(type)->kind == GGU_KIND_BLOCK; }
/* Rounds rows as their type does; returns the integers of blocks and of I16. */
static struct slow_weight *rounded(uint32_t type, float *x, size_t rows, size_t n)
{
	static uint8_t packed[8192];
	bool integers = type == GGU_TYPE_I16;
	struct slow_weight *codes = is_block(type) || integers ? malloc((rows*n + 1)*sizeof *codes) : NULL;
	for (size_t i = 0; i < rows && integers; i++) slow_integers(x + i*n, n, codes + i*n);
	for (size_t i = 0; i < rows*n && integers; i++) x[i] = (float)codes[i].d*(float)codes[i].code;
	for (size_t i = 0; i < rows && !integers; i++, x += n) {
		quant_encode(type, NULL, x, NULL, 1, n, QUANT_EFFORT_MIN, packed);
		quant_decode(type, packed, x, n);
		for (size_t j = 0; codes && j < n; j++) slow_weight(type, packed, j, codes + i*n + j);
	}
	return codes;
}
static struct sequence sequence_new(const struct attn_shape *s, size_t n_pos, int kind)
{
	struct sequence q = { .n_pos = n_pos, .n_blocks = (n_pos + ATTN_BLOCK - 1)/ATTN_BLOCK };
	size_t kw = s->n_kv*s->k_dim, vw = s->n_kv*s->v_dim;
	q.k = malloc((n_pos*kw + 1)*4);
	q.v = malloc((n_pos*vw + 1)*4);
	q.block = malloc((q.n_blocks + 1)*sizeof *q.block);
	fill(q.k, n_pos*kw, kind);
	fill(q.v, n_pos*vw, kind);
	for (size_t i = 0; i < q.n_blocks; i++) memset(q.block[i] = kt_buffer(attn_block_bytes(s)), 0xff,
		attn_block_bytes(s));
	for (size_t p = 0, n; p < n_pos; p += n) {
		n = 1 + kt_below(kt_below(2) ? 3 : 150);
		if (n > n_pos - p) n = n_pos - p;
		attn_store(s, q.block, p, n, q.k + p*kw, kw, s->v_in_k ? NULL : q.v + p*vw, vw);
	}
	q.k_codes = rounded(s->k_type, q.k, n_pos*s->n_kv, s->k_dim);
	if (!s->v_in_k) q.v_codes = rounded(s->v_type, q.v, n_pos*s->n_kv, s->v_dim);
	for (size_t i = 0; i < n_pos*s->n_kv && s->v_in_k; i++)
		memcpy(q.v + i*s->v_dim, q.k + i*s->k_dim, s->v_dim*4);
	return q;
}
static void sequence_free(const struct attn_shape *s, struct sequence *q)
{
	for (size_t i = 0; i < q->n_blocks; i++) kt_free(q->block[i], attn_block_bytes(s));
	free(q->block);
	free(q->k);
	free(q->v);
	free(q->k_codes);
	free(q->v_codes);
}
static struct slow_past past_of(const struct attn_shape *s, const struct sequence *q, size_t kv)
{
	size_t k = kv*s->k_dim, v = kv*s->v_dim;
	return (struct slow_past){ q->k + k, q->v + v, q->k_codes ? q->k_codes + k : NULL,
		q->v_codes ? q->v_codes + v : NULL, s->n_kv*s->k_dim, s->n_kv*s->v_dim };
}
static void check_load(const struct attn_shape *s, const struct sequence *q)
{
	float *k = kt_buffer(s->k_dim*4), *v = kt_buffer(s->v_dim*4);
	for (size_t p = 0; p < q->n_pos; p += 1 + kt_below(9)) {
		size_t h = kt_below(s->n_kv), i = p*s->n_kv + h;
		bool no_k = kt_below(4) == 0, no_v = kt_below(4) == 0;
		attn_load(s, q->block, p, h, no_k ? NULL : k, no_v ? NULL : v);
		if (!no_k && !kt_same(k, q->k + i*s->k_dim, s->k_dim, NULL)) kt_fail("key %zu is not what was stored",
			p);
		if (!no_v && !kt_same(v, q->v + i*s->v_dim, s->v_dim, NULL))
			kt_fail("value %zu is not what was stored", p);
	}
	kt_free(k, s->k_dim*4);
	kt_free(v, s->v_dim*4);
}

/* ---- a batch ---- */

static void run(struct attn *a, int threads)
{
	size_t work_bytes = attn_work_bytes(&a->shape);
	struct attn_plan p = attn_plan(a, threads);
	size_t step = p.n_tasks > 1 ? 1 + 2*kt_below(p.n_tasks/2) : 1;
	void *work = kt_buffer(work_bytes);
	memset(work, 0xff, work_bytes);
	if (a->partial) memset(a->partial, 0xff, a->partial_bytes);
	for (size_t first = 0; first < step; first++)
		for (size_t i = first; i < p.n_tasks; i += step) attn_run(a, i, work);
	for (size_t i = p.n_merges; i-- > 0; ) attn_merge(a, i);
	kt_free(work, work_bytes);
}
static void check_rows(const struct attn *a, const struct attn_rows *r, const struct sequence *q, bool exact)
{
	const struct attn_shape *s = &a->shape;
	float *want = malloc(s->v_dim*4);
	double *near = malloc(s->v_dim*8), *slack = malloc(s->v_dim*8);
	for (size_t t = 0; t < r->n && !kt_failed(); t += 1 + kt_below(r->n > 20 ? 9 : 1))
		for (size_t h = 0; h < s->n_head && !kt_failed(); h += 1 + kt_below(s->n_head > 8 ? 4 : 2)) {
			struct slow_past past = past_of(s, q, h/(s->n_head/s->n_kv));
			size_t to, from = slow_range(a, r->n_pos, r->pos + t, &to), at;
			const float *got = r->out + t*r->out_stride + h*s->v_dim,
				*x = r->q + t*r->q_stride + h*s->k_dim;
			slow_attention(a, x, h, r->pos + t, from, to, &past, want);
			if (!kt_same(got, want, s->v_dim, &at))
				kt_fail("token at %zu of %zu, head %zu, sees %zu to %zu: element %zu is %a, not %a",
					r->pos + t, r->n_pos, h, from, to, at, got[at], want[at]);
			if (!exact) continue;
			exact_attention(a, x, h, r->pos + t, from, to, &past, near, slack);
			for (size_t j = 0; j < s->v_dim; j++)
				if (!(fabs((double)got[j] - near[j]) <= 2e-5 + slack[j]))
					kt_fail("element %zu is %g, not %g", j, (double)got[j], near[j]);
		}
	free(want);
	free(near);
	free(slack);
}

static size_t out_floats(const struct attn_rows *r) { return r->n*r->out_stride; }
/* What was computed in one piece has the same bits if it is cut for many threads. */
static void check_cut(struct attn *a)
{
	int threads = 1 + (int)kt_below(40);
	float *whole[SEQUENCES];
	size_t at, told = attn_partial_bytes(a, threads);
	for (size_t i = 0; i < a->n_rows; i++) {
		const struct attn_rows *r = a->rows + i;
		whole[i] = malloc(4*out_floats(r));
		memcpy(whole[i], r->out, 4*out_floats(r));
		for (size_t t = 0; t < r->n; t++)
			memset(r->out + t*r->out_stride, 0xff, 4*a->shape.n_head*a->shape.v_dim);
	}
	if (a->n_rows == 1 && told > attn_partial_most(&a->shape, a->rows->n, a->rows->n_pos, threads))
		kt_fail("%zu bytes for splits are more than there can be", told);
	a->partial_bytes = told;
	/* sometimes there is enough for some of the sequences only, or for none. Buffers end where a page does, so that
	 * those of whole lines are aligned */
	if (kt_below(4) == 0) a->partial_bytes = kt_below(a->partial_bytes/64 + 1)*64;
	a->partial = kt_buffer(a->partial_bytes);
	run(a, threads);
	if (a->partial_bytes == told && !told != !attn_plan(a, threads).n_merges)
		kt_fail("with %zu bytes for splits, %zu merges", told, attn_plan(a, threads).n_merges);
	for (size_t i = 0; i < a->n_rows; i++) {
		const struct attn_rows *r = a->rows + i;
		if (!kt_same(r->out, whole[i], out_floats(r), &at))
			kt_fail("cut for threads: element %zu of %zu tokens' is %a, not %a", at, r->n, r->out[at],
				whole[i][at]);
		free(whole[i]);
	}
	kt_free(a->partial, a->partial_bytes);
}

static void check(struct attn *a, size_t n_rows, size_t longest, int kind)
{
	const struct attn_shape *s = &a->shape;
	struct attn_rows rows[SEQUENCES];
	struct sequence seq[SEQUENCES];
	float *bias, *sink = kt_buffer(s->n_head*4);
	size_t n_bias = a->bias_kind == ATTN_RELATIVE ? s->n_head*(2*a->reach + 1) : s->n_head;
	bias = kt_buffer(n_bias*4);
	for (size_t i = 0; i < n_bias; i++) bias[i] = a->bias_kind == ATTN_RELATIVE ? 3*kt_uniform()
		: 0.3f + 0.25f*kt_uniform();
	for (size_t i = 0; i < s->n_head; i++) sink[i] = 4*kt_uniform();
	a->bias = bias;
	if (a->sink) a->sink = sink;
	for (size_t i = 0; i < n_rows; i++) {
		struct attn_rows *r = rows + i;
		size_t n_pos = 1 + kt_below(longest), most = 600/s->n_head + 2,
			n = 1 + kt_below(kt_below(3) ? 5 : most);
		if (n > n_pos) n = n_pos;
		seq[i] = sequence_new(s, n_pos, kind);
		*r = (struct attn_rows){ seq[i].block, n, n_pos - n, n_pos };
		if (kt_below(3) == 0) r->pos = kt_below(n_pos - n + 1);
		r->q_stride = s->n_head*s->k_dim + kt_below(3);
		r->out_stride = s->n_head*s->v_dim + kt_below(3);
		r->q = kt_buffer(n*r->q_stride*4);
		r->out = kt_buffer(n*r->out_stride*4);
		fill((float *)r->q, n*r->q_stride, kind);
		check_load(s, seq + i);
	}
	a->rows = rows;
	a->n_rows = n_rows;
	a->partial = NULL;
	a->partial_bytes = 0;
	run(a, 1);
	for (size_t i = 0; i < n_rows && !kt_failed(); i++) check_rows(a, rows + i, seq + i, kind == ORDINARY);
	check_cut(a);
	for (size_t i = 0; i < n_rows; i++) {
		kt_free((void *)rows[i].q, rows[i].n*rows[i].q_stride*4);
		kt_free(rows[i].out, rows[i].n*rows[i].out_stride*4);
		sequence_free(s, seq + i);
	}
	kt_free(bias, n_bias*4);
	kt_free(sink, s->n_head*4);
}

static struct attn drawn(void)
{
	static const size_t groups[] = { 1, 1, 2, 3, 4, 5, 6, 7, 8, 16, 101 };
	struct attn a = { .scale = 0.25f + 0.1f*kt_uniform(), .mask = kt_below(5),
		.window = kt_below(4) ? 1 + kt_below(300) : 0, .bias_kind = kt_below(3), .reach = kt_below(40) };
	struct attn_shape *s = &a.shape;
	s->k_type = types[kt_below(N_TYPES)];
	s->v_type = types[kt_below(N_TYPES)];
	s->n_head = groups[kt_below(sizeof groups/sizeof *groups)];
	s->n_kv = s->n_head > 100 ? 1 : 1 + kt_below(kt_below(3) ? 3 : 12);
	s->n_head *= s->n_kv;
	s->k_dim = attn_can_store(s->k_type, 1) ? 1 + kt_below(kt_below(3) ? 130 : 300) : 32 + 32*kt_below(4);
	s->v_dim = attn_can_store(s->v_type, 1) ? 1 + kt_below(kt_below(3) ? 130 : 300) : 32 + 32*kt_below(4);
	if (kt_below(5) == 0) {
		s->v_in_k = true;
		s->v_type = GGU_TYPE_I8;
		s->v_dim = 1 + kt_below(s->k_dim);
	}
	if (kt_below(4) == 0) a.softcap = 5;
	if (kt_below(4) == 0) a.sink = (const float[]){ 0 };
	if (a.mask == ATTN_AROUND && kt_below(2)) a.window = 2 + kt_below(40);
	return a;
}
/* The value of position p is one in dimension p alone, so that each weight shows by itself, down to where weights
 * vanish. */
static void check_weights(void)
{
	enum { N = ATTN_BLOCK };
	struct attn a = { .shape = { 1, 1, 1, N, GGU_TYPE_F32, GGU_TYPE_F32, false }, .scale = 1, .n_rows = 1 };
	static const uint32_t strange = 0x7fc00001;     /* not a number, but its lowest bits are one */
	static float v[N*N];
	float k[N] = { 0 }, q = 1, want[N], *out = kt_buffer(sizeof want);
	void *block = kt_buffer(attn_block_bytes(&a.shape));
	struct attn_rows r = { &block, 1, N - 1, N, &q, out, 1, N };
	struct slow_past past = { k, v, NULL, NULL, 1, N };
	size_t at;
	a.rows = &r;
	for (size_t p = 0; p < N; p++) v[p*N + p] = 1;
	for (int i = 0; i < 500 && !kt_failed(); i++) {
		for (size_t p = 1; p < N; p++) {
			k[p] = kt_below(3) ? -45 + 45*kt_uniform() : -87 + 1e-4f*kt_uniform();
			if (kt_below(9) == 0) k[p] = -100*(float)kt_below(3);
		}
		if (i%64 == 63) memcpy(k + 1 + kt_below(N - 1), &strange, sizeof strange);
		attn_store(&a.shape, &block, 0, N, k, 1, v, N);
		slow_attention(&a, &q, 0, N - 1, 0, N, &past, want);
		run(&a, 1);
		if (!kt_same(out, want, N, &at)) kt_fail("e(%a) is %a, not %a", k[at], out[at], want[at]);
	}
	kt_free(block, attn_block_bytes(&a.shape));
	kt_free(out, sizeof want);
}
/* The widest block of I16, all of one number, or of one number with changing signs: the largest possible sums. */
static void check_greatest(void)
{
	enum { DIM = 128, N = ATTN_BLOCK };
	struct attn a = { .shape = { 1, 1, DIM, DIM, GGU_TYPE_I16, GGU_TYPE_I16, false }, .scale = 1, .n_rows = 1 };
	float x[DIM], y[DIM], want[DIM], *out = kt_buffer(sizeof want);
	static struct slow_weight codes[N*DIM];
	void *block = kt_buffer(attn_block_bytes(&a.shape));
	struct attn_rows r = { &block, 1, N - 1, N, x, out, DIM, DIM };
	struct slow_past past = { x, x, codes, codes, DIM, DIM };
	size_t at;
	a.rows = &r;
	for (int sign = -1; sign <= 1; sign += 2) {
		for (size_t i = 0; i < DIM; i++) x[i] = 3;
		for (size_t i = 0; i < DIM; i++) y[i] = (float)sign*3;
		for (size_t p = 0; p < N; p++) {
			attn_store(&a.shape, &block, p, 1, y, DIM, y, DIM);
			slow_integers(y, DIM, codes + p*DIM);
		}
		slow_attention(&a, x, 0, N - 1, 0, N, &past, want);
		run(&a, 1);
		if (!kt_same(out, want, DIM, &at)) kt_fail("element %zu is %a, not %a", at, out[at], want[at]);
		if (!(fabsf(out[0] - y[0]) < 1e-6f)) kt_fail("%g of values of %g", (double)out[0], (double)y[0]);
	}
	kt_free(block, attn_block_bytes(&a.shape));
	kt_free(out, sizeof want);
}
static void check_isa(const char *isa)
{
	bool sanitized = getenv("SANITIZED");
	quant_select(isa, NULL);
	for (int kind = 0; kind < KINDS; kind++) {
		kt_name("%s: every shape, mask, bias and cut has the bits of the contract, %s", isa, kind == ORDINARY
			? "ordinary" : kt_floats_name[kind]);
		for (int i = 0; i < (sanitized ? 3 : kind == ORDINARY ? 16 : 6) && !kt_failed(); i++) {
			struct attn a = drawn();
			check(&a, 1 + kt_below(SEQUENCES), i % 4 ? 150 : 1500, kind);
		}
		kt_result();
	}
	for (int i = 0; i < 2; i++) {
		struct attn a = { .shape = { 16, 1, 576, 512, i ? GGU_TYPE_I16 : GGU_TYPE_F16, GGU_TYPE_I8, true },
			.scale = 0.1f, .mask = ATTN_CAUSAL };
		kt_name("%s: latent attention: keys of 576, whose first 512 are the values, %s", isa,
			ggu_type_info(a.shape.k_type)->name);
		check(&a, 2, 700, ORDINARY);
		kt_result();
	}
	kt_name("%s: the greatest integers of I16 have sums that fit", isa);
	check_greatest();
	kt_result();
	kt_name("%s: weights vanish below e^-87, and only there", isa);
	check_weights();
	kt_result();
}

int main(int argc, char **argv)
{
	kt_begin(argc, argv);
	for (const char *const *isa = quant_available(); *isa; isa++) check_isa(*isa);
	return kt_end();
}
