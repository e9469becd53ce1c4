/* SPDX-License-Identifier: MIT
 * test_stacks.c - sequences of a model with an encoder: their bits do not depend on neighbours, cuts, threads or
 * instruction sets; what was encoded is forked, saved and kept; what makes no sense is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../model/eval/model_internal.h"
#include "../../model/eval/op_list.h"
#include "../../quant/quant.h"
#include "../lib/between.h"
#include "../lib/models.h"

static const struct key keys[] = { { "block_count", 2 }, { "decoder_block_count", 2 }, { "context_length", 512 },
	{ "embedding_length", WIDE }, { "attention.head_count", HEADS }, { "attention.relative_buckets_count", 32 },
	{ "decoder_start_token_id", 3 }, { NULL, 0 } };
#define BLOCK(stack) { stack ".blk.%d.attn_norm.weight", { WIDE }, 1 }, \
	{ stack ".blk.%d.attn_q.weight", { WIDE, WIDE }, 0 }, { stack ".blk.%d.attn_k.weight", { WIDE, WIDE }, 0 }, \
	{ stack ".blk.%d.attn_v.weight", { WIDE, WIDE }, 0 }, { stack ".blk.%d.attn_o.weight", { WIDE, WIDE }, 0 }, \
	{ stack ".blk.0.attn_rel_b.weight", { HEADS, 32 }, 0 }, { stack ".blk.%d.ffn_norm.weight", { WIDE }, 1 }, \
	{ stack ".blk.%d.ffn_up.weight", { WIDE, 96 }, 0 }, { stack ".blk.%d.ffn_down.weight", { 96, WIDE }, 0 }, \
	{ stack ".output_norm.weight", { WIDE }, 1 }
static const struct tensor tensors[] = { { "token_embd.weight", { WIDE, VOCAB }, 0 }, BLOCK("enc"), BLOCK("dec"),
	{ "dec.blk.%d.cross_attn_norm.weight", { WIDE }, 1 }, { "dec.blk.%d.cross_attn_q.weight", { WIDE, WIDE }, 0 },
	{ "dec.blk.%d.cross_attn_k.weight", { WIDE, WIDE }, 0 },
	{ "dec.blk.%d.cross_attn_v.weight", { WIDE, WIDE }, 0 },
	{ "dec.blk.%d.cross_attn_o.weight", { WIDE, WIDE }, 0 }, { NULL } };
static const struct kind t5 = { "t5", keys, tensors, NULL };

static int32_t source[1200];

static void encode(struct work *w, struct state *s, const int32_t *ids, size_t n)
{
	struct part p = { s, ids, n, 0 };
	assert_int_equal(model_encode(w, &p, 1, NULL, NULL, NULL), GGU_OK);
}
/* The rows of text[0..n) after source[0..n_source), in a new work and state. */
static float *translated(struct model *m, uint32_t cache, size_t n_source, size_t n, size_t n_batch)
{
	struct work *w = new_work(m, n_batch);
	struct state *s = new_state(m, cache);
	float *rows = malloc(n*WIDE*sizeof *rows);
	encode(w, s, source, n_source);
	go_on(w, s, text, n, rows);
	state_free(s);
	work_free(w);
	return rows;
}

static void neighbours_and_batches_do_not_matter(void **unused)
{
	enum { N = 6, EACH = 70 };
	static const size_t len[N] = { 1, 64, 600, 7, 1100, 65 };       /* blocks are of 64, splits of 512 positions */
	static const uint32_t type[2] = { GGU_TYPE_F32, GGU_TYPE_Q8_0 }, cache[2] = { GGU_TYPE_F32, GGU_TYPE_F16 };
	(void)unused;
	for (int k = 0; k < 2; k++) {
		struct model *m = make_model(&t5, type[k], 2);
		struct work *w = new_work(m, 64);
		struct part p[N];
		float *rows = malloc(N*EACH*WIDE*sizeof *rows);
		for (size_t i = 0; i < N; i++) p[i] = (struct part){ new_state(m, cache[k]), source, len[i], 0 };
		assert_int_equal(model_encode(w, p, N, NULL, NULL, NULL), GGU_OK);
		for (size_t i = 0; i < N; i++) {
			p[i].ids = text;
			p[i].n = EACH;
		}
		assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = N, .rows = rows }, NULL),
			GGU_OK);
		for (size_t i = 0; i < N; i++) {
			float *own = translated(m, cache[k], len[i], EACH, i % 2 ? 1 : 2000);
			same(rows + i*EACH*WIDE, own, EACH);
			if (i) assert_memory_not_equal(own, rows, EACH*WIDE*sizeof *own);
			free(own);
			state_free(p[i].state);
		}
		free(rows);
		work_free(w);
		drop_model(m);
	}
}

static void threads_and_instances_do_not_matter(void **unused)
{
	float *first = NULL;
	(void)unused;
	for (int threads = 1; threads <= 4; threads *= 2)
		for (const char *const *cpu = quant_available(); *cpu; cpu++) {
			struct model *m;
			float *rows;
			assert_int_equal(quant_select(*cpu, NULL), GGU_OK);
			m = make_model(&t5, GGU_TYPE_Q8_0, threads);
			rows = translated(m, GGU_TYPE_F16, 150, 40, threads == 2 ? 7 : 512);
			if (first) same(rows, first, 40);
			drop_model(m);
			if (first) free(rows);
			else first = rows;
		}
	free(first);
	assert_int_equal(quant_select(NULL, NULL), GGU_OK);
}

static void what_was_encoded_is_forked_and_saved(void **unused)
{
	struct model *m = make_model(&t5, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	struct state *a = new_state(m, GGU_TYPE_F16), *b, *c = new_state(m, GGU_TYPE_F16);
	float rows[40*WIDE], *want = translated(m, GGU_TYPE_F16, 130, 100, 512);
	size_t n;
	char *bytes;
	(void)unused;
	encode(w, a, source, 130);
	go_on(w, a, text, 60, NULL);
	assert_int_equal(state_fork(&b, a, NULL), GGU_OK);
	n = state_save_bytes(a);
	bytes = malloc(n + 1);
	state_save(a, bytes);
	state_free(a);
	go_on(w, b, text + 60, 40, rows);
	same(rows, want + 60*WIDE, 40);
	encode(w, c, source + 5, 80);   /* to be replaced */
	assert_int_equal(state_load(c, bytes, n + 1, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(state_load(c, bytes, n - 1, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(state_load(c, bytes, n/2, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(state_load(c, bytes, n, NULL), GGU_OK);
	go_on(w, c, text + 60, 40, rows);
	same(rows, want + 60*WIDE, 40);
	assert_int_equal(state_truncate(c, 0, NULL), GGU_OK);           /* the source stays */
	go_on(w, c, text, 40, rows);
	same(rows, want, 40);
	free(bytes);
	free(want);
	state_free(b);
	state_free(c);
	work_free(w);
	drop_model(m);
}

static enum ggu_status encode_again(struct work *w, struct state *s, size_t n)
{
	return model_encode(w, &(struct part){ s, source, n, 0 }, 1, NULL, NULL, NULL);
}
static void what_makes_no_sense_is_refused(void **unused)
{
	static const int32_t beyond = VOCAB;
	struct model *m = make_model(&t5, GGU_TYPE_F32, 1);
	struct work *w = new_work(m, 64);
	struct state *s = new_state(m, GGU_TYPE_F32), *q;
	struct part p[2] = { { s, text, 2, 0 }, { s, text, 2, 0 } };
	float stream[2*WIDE];
	(void)unused;
	assert_true(model_has_encoder(m));
	assert_int_equal(model_start(m), 3);
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 1 }, NULL), GGU_ERR_STATE);
	assert_int_equal(encode_again(w, s, 0), GGU_ERR_RANGE);
	assert_int_equal(model_encode(w, p, 2, NULL, NULL, NULL), GGU_ERR_RANGE);
	assert_int_equal(encode_again(w, s, 5), GGU_OK);
	assert_int_equal(model_encode(w, &(struct part){ s, &beyond, 1, 0 }, 1, NULL, NULL, NULL), GGU_ERR_RANGE);
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 1 }, NULL), GGU_ERR_STATE);
	assert_int_equal(encode_again(w, s, 5), GGU_OK);
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 1, .stream = stream, .to = 1 },
		NULL), GGU_ERR_UNSUPPORTED);
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 1 }, NULL), GGU_OK);
	assert_int_equal(encode_again(w, s, 5), GGU_ERR_STATE);
	state_reset(s);
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 1 }, NULL), GGU_ERR_STATE);
	/* heads of 16 */
	assert_int_equal(state_new(&q, m, &(struct state_options){ GGU_TYPE_Q8_0, GGU_TYPE_F32 }, NULL),
		GGU_ERR_UNSUPPORTED);
	state_free(s);
	work_free(w);
	drop_model(m);
}

/* Works take what the plan announced, and that of the encoder is freed. */
static void cost_is_what_is_taken(void **unused)
{
	struct model *m = make_model(&t5, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64), *encoder;
	struct state *s = new_state(m, GGU_TYPE_F32);
	struct part p = { s->source, source, 1000, 1000 };
	struct model_cost cost;
	size_t bytes = work_bytes(w);
	(void)unused;
	encode(w, s, source, 1000);
	assert_int_equal(work_bytes(w), bytes);
	go_on(w, s, text, 64, NULL);
	assert_int_equal(work_source(&encoder, w, 1000, NULL), GGU_OK);
	state_reset(s->source);
	assert_int_equal(model_eval(encoder, &(struct model_call){ .part = &p, .n_parts = 1 }, NULL), GGU_OK);
	bytes = work_bytes(encoder);
	work_free(encoder);
	assert_int_equal(model_cost(&cost, m, NULL, 64, 1000, 2, NULL), GGU_OK);
	assert_between(cost.work_bytes, (double)(work_bytes(w) + bytes), 1.05*(double)(work_bytes(w) + bytes));
	/* that is more than the decoder has later: weights, and keys and values of two layers */
	assert_between(cost.apart_bytes - cost.weight_bytes, 1024*2*2*WIDE*4, 1024*(2*2*WIDE*4 + 16));
	/* keys and values of two layers, and those of the encoder itself, of which one layer's exist; ids */
	assert_true(cost.state_bytes >= 1024*(2 + 3)*2*WIDE*4 && cost.state_bytes < 1024*((2 + 3)*2*WIDE*4 + 16));
	assert_true(cost.seen_bytes == 500*2*2*WIDE*4 + 1000*3*2*WIDE*4);
	assert_true(cost.macs == 2*(6.*WIDE*WIDE + 2*96*WIDE) && cost.source_macs == 2*(6.*WIDE*WIDE + 2*96*WIDE));
	/* ... and of one token is less */
	assert_int_equal(work_source(&encoder, w, 1, NULL), GGU_OK);
	assert_int_equal(model_cost(&cost, m, NULL, 1, 1, 2, NULL), GGU_OK);
	assert_true(cost.apart_bytes == (double)work_bytes(encoder));
	work_free(encoder);
	state_free(s);
	work_free(w);
	drop_model(m);
}

static void operators_are_called_as_their_files(void **state)
{
	(void)state;
#define OPERATOR(key) assert_string_equal(op_##key.name, #key); assert_ptr_equal(op_find(#key), &op_##key);
	OPERATORS
#undef OPERATOR
}

/* Pages of two sizes are used again for their own size, in any order. */
static void pages_of_a_size_are_used_again(void **state)
{
	enum { N = 100, LARGE = 4096, SMALL = 64 };
	struct pages p;
	struct page *v[2*N];
	size_t taken = 0;
	(void)state;
	pages_init(&p);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2*N; i++) {
			size_t n = (i + round) % 2 ? LARGE : SMALL;
			assert_non_null(v[i] = page_new(&p, n));
			for (size_t k = 0; k < n; k++) assert_int_equal(v[i]->bytes[k], 0);
			memset(v[i]->bytes, 1, n);
		}
		assert_true(!round || p.taken == taken);
		taken = p.taken;
		for (int i = 0; i < 2*N; i++) page_drop(v[i]);
	}
	pages_free(&p);
}

/* Otherwise the pages of the first positions would be read slowly by every later token. */
static void pages_lie_in_large_pages_of_memory_from_the_first_on(void **state)
{
	enum { LARGE = 2 << 20, SIZE = 3 << 19 };
	struct pages p;
	(void)state;
	pages_init(&p);
	for (int i = 0; i < 5; i++) assert_non_null(page_new(&p, SIZE));
	assert_int_equal((uintptr_t)p.slab % LARGE, 0);
	assert_int_equal(p.taken % LARGE, 0);
	assert_true(p.taken >= 5*SIZE);
	pages_free(&p);
	pages_init(&p);
	assert_non_null(page_new(&p, 4096));
	assert_true(p.taken < LARGE);           /* a small model takes no more than it needs */
	pages_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_and_batches_do_not_matter),
		cmocka_unit_test(threads_and_instances_do_not_matter),
		cmocka_unit_test(what_was_encoded_is_forked_and_saved),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(cost_is_what_is_taken),
		cmocka_unit_test(operators_are_called_as_their_files),
		cmocka_unit_test(pages_of_a_size_are_used_again),
		cmocka_unit_test(pages_lie_in_large_pages_of_memory_from_the_first_on),
	};
	if (quant_select(NULL, NULL)) return 1;         /* otherwise it would be portable C */
	for (int i = 0; i < LONG + 64; i++) text[i] = (i*i + 3*i) % VOCAB;
	for (int i = 0; i < 1200; i++) source[i] = (i*i + 5*i + i/7) % VOCAB;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
