/* SPDX-License-Identifier: MIT
 * tool_bench.c - how fast each type is encoded, decoded, packed for and multiplied on each instance, and what share
 * that is of what the machine can do, measured in the same process.
 *
 *   tool_bench [TYPE...]      GGUF_CPU: that instance alone
 *
 * panel    512 tokens times a matrix of 2048 columns and 5632 rows, unpacking included, beside the plain int16 dot
 *          product (or fma) instructions with operands in registers, run before and after: medians
 * row      one token times rows in memory, in turns with a loop that reads memory: one core, and all of them, by the
 *          clock: medians
 * cached   the same rows times a token again and again, so few that they stay in L2: what arithmetic allows
 *
 * One thread where nothing else is said, in processor time; the best of several runs where nothing is said of medians.
 * Compiled for the baseline CPU, and kernels are called through quant.h, as programs do: what a kernel leaves behind in
 * registers would show here. README.md beside this file has the arithmetic of ports and what was measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../../libgguf/pool.h"
#include "../../libgguf/types.h"
#include "../../quant/quant.h"
#include "../../tools/limits.h"
#include "../lib/kerntest.h"

enum { K = 2048, OUT = 5632, TOKENS = 512, ENC_ROWS = 32, STREAM = 128 << 20, CACHED = 128 << 10, DECODED = 16*1024 };

/* In huge pages if there are any, like the memory that the loop of the limit reads. */
static void *bytes(size_t n)
{
	enum { HUGE_PAGE = 2 << 20 };
	void *p = NULL;
	if (posix_memalign(&p, n < HUGE_PAGE ? 64 : HUGE_PAGE, n)) { perror("tool_bench"); exit(2); }
#ifdef MADV_HUGEPAGE
	if (n >= HUGE_PAGE) madvise(p, n, MADV_HUGEPAGE);
#endif
	memset(p, 0, n);
	return p;
}
static struct buffers { float *x, *imp, *y; uint8_t *w, *act; void *work; } b;

static double encode_ns(const struct ggu_type_info *t, int effort)
{
	double s;
	LIMITS_BEST(s, 0.05, quant_encode(t->id, NULL, b.x, b.imp, ENC_ROWS, K, effort, b.w));
	return s/(ENC_ROWS*K)*1e9;
}
/* A share of a limit, in per cent; blank if there is no limit. */
static void column(const char *format, double value, double limit)
{
	printf(format, value);
	if (limit > 0) printf(" %3.0f%%", 100*value/limit);
	else printf("     ");
}
/* A product as threads take it. */
struct tasks { const struct quant_mul *m; size_t outputs; };
static void task(void *ctx, size_t i, int worker)
{
	const struct tasks *t = ctx;
	size_t o = i*t->outputs, left = t->m->n_out - o;
	quant_mul(t->m, 0, t->m->n_tokens, o, left < t->outputs ? left : t->outputs,
		(char *)b.work + (size_t)worker*quant_mul_work_bytes(K));
}
static void multiply(struct ggu_pool *pool, const struct quant_mul *m)
{
	struct tasks t = { m, 0 };
	size_t tokens;
	quant_mul_cut(m, ggu_pool_size(pool), &tokens, &t.outputs);
	ggu_pool_run(pool, (m->n_out + t.outputs - 1)/t.outputs, task, &t);
}
static int ascending(const void *p, const void *q)
{
	double x = *(const double *)p, y = *(const double *)q;
	return (x > y) - (x < y);
}
/* Medians of several runs: the speed, and its share of a limit that is measured before and after each run. */
enum { MOST_RUNS = 31 };
struct shares { int n; double before, speed[MOST_RUNS], share[MOST_RUNS]; };
static void add_share(struct shares *s, double speed, double after)
{
	s->speed[s->n] = speed;
	s->share[s->n++] = speed/((s->before + after)/2);
	s->before = after;
}
static void medians(struct shares *s)
{
	const size_t n = (size_t)s->n;
	qsort(s->speed, n, sizeof *s->speed, ascending);
	qsort(s->share, n, sizeof *s->share, ascending);
	column("  %6.1f", s->speed[n/2], s->speed[n/2]/s->share[n/2]);
}
static void panel(const char *isa, const struct ggu_type_info *t, const struct quant_mul *m)
{
	const bool f32 = t->kind != GGU_KIND_BLOCK;
	struct shares s = { .before = limits_products(isa, f32) };
	for (double end = limits_cpu_now() + 0.4; s.n < MOST_RUNS && (s.n < 3 || limits_cpu_now() < end);) {
		const double start = limits_cpu_now();
		quant_mul(m, 0, TOKENS, 0, OUT, b.work);
		const double gmacs = (double)TOKENS*OUT*K/(limits_cpu_now() - start)*1e-9;
		add_share(&s, gmacs, limits_products(isa, f32));
	}
	medians(&s);
}
static void rows_in_memory(struct ggu_pool *pool, struct limits_reader *reader, const struct quant_mul *m)
{
	struct shares s = { .before = limits_reader_gb(reader) };
	for (double end = limits_now() + 0.4; s.n < MOST_RUNS && (s.n < 3 || limits_now() < end);) {
		const double start = limits_now();
		multiply(pool, m);
		const double gb = (double)(m->n_out*m->w_stride)/(limits_now() - start)*1e-9;
		add_share(&s, gb, limits_reader_gb(reader));
	}
	medians(&s);
}
/* Some threads, and what they read */
struct readers { struct ggu_pool *pool; struct limits_reader *reader; };
static void bench(const char *isa, const struct ggu_type_info *t, const struct limits *one,
	const struct readers *alone, const struct readers *together)
{
	size_t row = K/t->block_weights*t->block_bytes, rows = STREAM/row;
	enum quant_act form = quant_act_of(t->id);
	struct quant_mul m = { t->id, 1, rows, K, b.w, row, b.act, b.y, rows };
	double s;
	printf("%-8s", t->name);
	for (int effort = QUANT_EFFORT_MIN; effort <= QUANT_EFFORT_MAX; effort += 4)
		printf(" %6.2f", quant_can_encode(t->id) ? encode_ns(t, effort) : 0);
	for (size_t i = 0; i < rows; i += ENC_ROWS) quant_encode(t->id, NULL, b.x, b.imp, i ? 0 : ENC_ROWS, K, 1, b.w);
	for (size_t i = ENC_ROWS*row; i < rows*row; i++) b.w[i] = b.w[i - ENC_ROWS*row];
	LIMITS_BEST(s, 0.05, quant_decode(t->id, b.w, b.y, DECODED));
	column("  %6.1f", 4.0*DECODED/s*1e-9, one->copy_gb);
	quant_act_pack(form, b.x, K, 1, K, 0, 1, b.act);
	rows_in_memory(alone->pool, alone->reader, &m);
	rows_in_memory(together->pool, together->reader, &m);
	m.n_out = CACHED/row;
	LIMITS_BEST(s, 0.02, quant_mul(&m, 0, 1, 0, m.n_out, b.work));
	column("  %6.1f", (double)(m.n_out*row)/s*1e-9, one->read_gb);
	m.n_tokens = TOKENS;
	m.n_out = m.y_stride = OUT;
	LIMITS_BEST(s, 0.02, quant_act_pack(form, b.x, K, TOKENS, K, 0, TOKENS, b.act));
	printf("  %6.2f", s/(TOKENS*K)*1e9);
	panel(isa, t, &m);
	putchar('\n');
}
static void bench_isa(const char *isa, int n_types, char **types)
{
	struct limits one, all;
	struct ggu_pool *pool = limits_of_one_and_all(isa, &one, &all), *single = ggu_pool_new(1);
	const struct readers alone = { single, limits_reader_new(isa, single) },
		together = { pool, limits_reader_new(isa, pool) };
	if (!alone.reader || !together.reader) { fputs("tool_bench: out of memory\n", stderr); exit(2); }
	quant_select(isa, NULL);
	printf("\n%s: memory reads %.1f GB/s, by %d threads %.1f, copies in cache %.1f GB/s, products of int16 %.0f "
		"GMAC/s, of int8 %.0f, of float %.0f, of tiles %.0f\n",
		isa, one.read_gb, ggu_pool_size(pool), all.read_gb, one.copy_gb, one.int16_gmacs, one.int8_gmacs,
			one.f32_gmacs, one.amx_gmacs);
	printf("%-8s %20s  %11s  %11s  %11s  %11s  %6s  %11s\n", "", "encode, ns a weight", "decode", "row",
		"all threads", "cached", "pack", "panel");
	printf("%-8s %6s %6s %6s  %6s%5s  %6s%5s  %6s%5s  %6s%5s  %6s  %6s%5s\n", "type", "-1", "-5", "-9", "GB/s",
		"copy", "GB/s", "read", "GB/s", "read", "GB/s", "read", "ns", "GMAC/s", "peak");
	for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++) {
		const struct ggu_type_info *t = ggu_type_info(id);
		bool wanted = n_types == 0;
		for (int i = 0; t && i < n_types; i++) wanted |= !strcmp(types[i], t->name);
		if (t && wanted && quant_can_multiply(id)) bench(isa, t, &one, &alone, &together);
	}
	limits_reader_free(alone.reader);
	limits_reader_free(together.reader);
	ggu_pool_free(single);
	ggu_pool_free(pool);
}

int main(int argc, char **argv)
{
	const char *only = getenv("GGUF_CPU");
	struct ggu_error err;
	if (quant_select(only, &err)) { fprintf(stderr, "tool_bench: %s\n", err.what); return 2; }
	only = only ? quant_selected() : NULL;
	b.x = bytes(TOKENS*K*sizeof *b.x);
	b.imp = bytes(K*sizeof *b.imp);
	b.w = bytes(STREAM);
	b.act = bytes((TOKENS + 48)*K*sizeof(float));
	b.y = bytes((size_t)TOKENS*OUT*sizeof *b.y);
	b.work = bytes((size_t)ggu_cpu_count()*quant_mul_work_bytes(K));
	kt_reseed(1);
	for (size_t i = 0; i < TOKENS*K; i++) b.x[i] = 0.05f*kt_bell();
	for (size_t i = 0; i < K; i++) b.imp[i] = fabsf(kt_bell()) + 0.01f;
	for (const char *const *isa = quant_available(); *isa; isa++)
		if (!only || !strcmp(only, *isa)) bench_isa(*isa, argc - 1, argv + 1);
	free(b.x); free(b.imp); free(b.w); free(b.act); free(b.y); free(b.work);
	return 0;
}
