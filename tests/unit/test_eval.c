/* SPDX-License-Identifier: MIT
 * test_eval.c - evaluation of sequences: their bits do not depend on neighbours, cuts, steps, threads or instruction
 * sets; other weights and biases by distance; scores. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../libgguf/pool.h"
#include "../../model/eval/relative.h"
#include "../../quant/quant.h"
#include "../lib/kinds.h"

static void side_by_side(const struct kind *k, uint32_t type, uint32_t cache)
{
	enum { N = 8 };
	static const size_t len[N] = { 1, 64, 65, 7, 130, 63, 2, 200 };
	struct model *m = make_model(k, type, 2);
	struct work *w = new_work(m, 64);
	struct part p[N];
	size_t total = 0;
	float *rows;
	for (size_t i = 0; i < N; i++) {
		p[i] = (struct part){ new_state(m, cache), text + i, len[i], 0 };
		total += len[i];
	}
	rows = malloc(total*WIDE*sizeof *rows);
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = N, .rows = rows }, NULL), GGU_OK);
	total = 0;
	for (size_t i = 0; i < N; i++) {
		float *own = alone(m, cache, text + i, len[i], i % 2 ? 1 : 512);
		same(rows + total*WIDE, own, len[i]);
		total += len[i];
		free(own);
		state_free(p[i].state);
	}
	free(rows);
	work_free(w);
	drop_model(m);
}
static void neighbours_do_not_matter(void **state)
{
	(void)state;
	for (const struct kind *const *k = kinds; *k; k++) side_by_side(*k, GGU_TYPE_F32, GGU_TYPE_F32);
	side_by_side(&transformer, GGU_TYPE_Q8_0, GGU_TYPE_F16);
	side_by_side(&transformer, GGU_TYPE_F16, GGU_TYPE_I16);
	side_by_side(&experts, GGU_TYPE_Q4_0, GGU_TYPE_F32);
	side_by_side(&long_rope, GGU_TYPE_F16, GGU_TYPE_BF16);
}

/* The rows of two sequences, step by step, on states that have been used before. */
static float *by_steps(struct model *m, size_t n_batch, size_t n_a, size_t n_b)
{
	const size_t steps = model_n_steps(m), n = n_a + n_b;
	struct work *w = new_work(m, n_batch);
	struct part p[2] = { { new_state(m, GGU_TYPE_F32), text, n_a, n_a },
		{ new_state(m, GGU_TYPE_F32), text + 9, n_b, n_b } };
	float *stream = malloc(n*WIDE*sizeof *stream), *rows = malloc(n*WIDE*sizeof *rows);
	struct model_call c = { .part = p, .n_parts = 2, .stream = stream };
	go_on(w, p[0].state, text + 20, 30, NULL);
	assert_int_equal(model_eval(w, &c, NULL), GGU_OK);
	for (c.from = 0; c.from < steps; c.from++) {
		c.to = c.from + 1;
		assert_int_equal(model_eval(w, &c, NULL), GGU_OK);
	}
	p[0].first = p[1].first = 0;
	c.rows = rows;
	c.to = steps;
	assert_int_equal(model_eval(w, &c, NULL), GGU_OK);
	state_free(p[0].state);
	state_free(p[1].state);
	work_free(w);
	free(stream);
	return rows;
}
static void steps_one_by_one_are_the_whole(void **state)
{
	(void)state;
	for (const struct kind *const *k = kinds; *k; k++) {
		struct model *m = make_model(*k, GGU_TYPE_F32, 2);
		float *a = alone(m, GGU_TYPE_F32, text, 70, 512), *b = alone(m, GGU_TYPE_F32, text + 9, 31, 512);
		for (size_t n_batch = 40; n_batch < 200; n_batch += 100) {
			float *got = by_steps(m, n_batch, 70, 31);
			same(got, a, 70);
			same(got + 70*WIDE, b, 31);
			free(got);
		}
		free(a);
		free(b);
		drop_model(m);
	}
}
static void weights_can_be_others(void **state)
{
	static const char *const names[] = { "token_embd.weight", "blk.1.attn_q.weight", "blk.0.ffn_down_exps.weight" };
	struct model *m = make_model(&experts, GGU_TYPE_BF16, 2);
	float *want = alone(m, GGU_TYPE_F32, text, 40, 512);
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const struct ggu_tensor *t = ggu_file_find(model_file(m), names[i]);
		const size_t n = (size_t)(t->ne[0]*ggu_tensor_rows(t));
		float *x = malloc(n*sizeof *x), *rows;
		const void *data;
		assert_int_equal(ggu_map((struct ggu_file *)(uintptr_t)model_file(m), t, &data, NULL), GGU_OK);
		quant_decode(t->type, data, x, n);
		model_set_weights(m, names[i], x);
		rows = alone(m, GGU_TYPE_F32, text, 40, 512);
		same(rows, want, 40);
		free(rows);
		for (size_t k = 0; k < n; k++) x[k] = -x[k];
		rows = alone(m, GGU_TYPE_F32, text, 40, 512);
		assert_memory_not_equal(rows, want, 40*WIDE*sizeof *rows);
		free(rows);
		model_set_weights(m, names[i], NULL);
		rows = alone(m, GGU_TYPE_F32, text, 40, 512);
		same(rows, want, 40);
		free(rows);
		free(x);
	}
	free(want);
	drop_model(m);
}

static void threads_and_instances_do_not_matter(void **state)
{
	(void)state;
	for (const struct kind *const *k = kinds; *k; k++) {
		float *first = NULL;
		for (int threads = 1; threads <= 4; threads *= 2)
			for (const char *const *cpu = quant_available(); *cpu; cpu++) {
				struct model *m;
				float *rows;
				assert_int_equal(quant_select(*cpu, NULL), GGU_OK);
				m = make_model(*k, GGU_TYPE_Q8_0, threads);
				rows = alone(m, GGU_TYPE_I16, text, 90, threads == 2 ? 7 : 512);
				if (first) same(rows, first, 90);
				drop_model(m);
				if (first) free(rows);
				else first = rows;
			}
		free(first);
	}
	assert_int_equal(quant_select(NULL, NULL), GGU_OK);
}

/* Each worker of a pool has a work and a state of its own; pages go back and forth between all of them. */
struct each { struct work *w[4]; struct state *s[4]; float rows[24][LONG*WIDE]; };
static void evaluate_alone(void *ctx, size_t task, int worker)
{
	struct each *e = ctx;
	go_on(e->w[worker], e->s[worker], text + task, LONG - 5*task, e->rows[task]);
	state_reset(e->s[worker]);
}
static void works_of_one_thread_run_at_the_same_time(void **unused)
{
	struct ggu_pool *pool = ggu_pool_new(4);
	struct each *e = malloc(sizeof *e);
	(void)unused;
	for (const struct kind *const *k = kinds; *k; k++) {
		struct model *m = make_model(*k, GGU_TYPE_Q8_0, 2);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(work_new_for(&e->w[i], m, NULL, i % 2 ? 0 : 64, NULL), GGU_OK);
			e->s[i] = new_state(m, GGU_TYPE_F32);
		}
		ggu_pool_run(pool, 24, evaluate_alone, e);
		for (size_t i = 0; i < 24; i++) {
			float *own = alone(m, GGU_TYPE_F32, text + i, LONG - 5*i, 0);
			same(e->rows[i], own, LONG - 5*i);
			free(own);
		}
		for (int i = 0; i < 4; i++) {
			state_free(e->s[i]);
			work_free(e->w[i]);
		}
		drop_model(m);
	}
	free(e);
	ggu_pool_free(pool);
}

static void models_are_even_unless_weights_are_chosen_or_used_twice(void **state)
{
	static const struct kind twice = { "twice", transformer_keys, transformer_tensors, "schema: 1\narch: twice\n"
		"like: llama\nclasses: {TwiceForCausalLM: {}}\ngraph: {layer: {again: {norm: {rms: ffn_norm, eps: eps}"
		", branches: {self: {ffn: {gate: ffn_gate, up: ffn_up, down: ffn_down, act: silu}}}}}}\n" };
	static const struct { const struct kind *kind; bool even; } cases[] = { { &transformer, true },
		{ &recurrent, true }, { &long_rope, true }, { &experts, false }, { &twice, false } };
	(void)state;
	for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
		struct model *m = make_model(cases[i].kind, GGU_TYPE_F32, 1);
		assert_int_equal(model_is_even(m), cases[i].even);
		drop_model(m);
	}
}

static void scores_are_those_of_the_logits(void **state)
{
	struct model *m = make_model(&transformer, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	float *rows = alone(m, GGU_TYPE_F32, text, LONG, 512), logits[VOCAB];
	struct model_score score[LONG];
	(void)state;
	assert_int_equal(model_scores(w, rows, LONG, text + 1, score, NULL), GGU_OK);
	for (size_t i = 0; i < LONG; i++) {
		struct model_score one;
		assert_int_equal(model_logits(w, rows + i*WIDE, 1, logits, NULL, NULL, NULL), GGU_OK);
		assert_true(logits[text[i + 1]] == (float)score[i].logit);
		for (int v = 0; v < VOCAB; v++) assert_true(logits[v] <= logits[score[i].top]);
		one = model_score_row(logits, VOCAB, text[i + 1]);
		assert_memory_equal(&one.log_sum, &score[i].log_sum, sizeof one.log_sum);
		assert_int_equal(one.top, score[i].top);
	}
	assert_int_equal(model_scores(w, rows, 1, &(int32_t){ -1 }, score, NULL), GGU_OK);
	assert_true(score->logit == 0);
	free(rows);
	work_free(w);
	drop_model(m);
}

/* A bias by distance in buckets that equals ALiBi where each distance has a bucket of its own: 31 positions back. */
enum { BUCKETS = 64, NEAR = 32 };
#define BIASED(bias) "schema: 1\narch: biased\nclasses: {BiasedForCausalLM: {}}\ngraph:\n" \
	"  ignore: {blk: true}\n" \
	"  names: {eps: attention.layer_norm_rms_epsilon}\n  input: {embed: token_embd}\n  layers: block_count\n" \
	"  layer: {attn: {norm: {rms: attn_norm, eps: eps}, branches: {self: {attention: " \
	"{q: attn_q, k: attn_k, v: attn_v, out: attn_output, heads: 4, kv_heads: 2, " bias "}}}}}\n" \
	"  output: {norm: {rms: output_norm, eps: eps}, head: token_embd}\n"
static const struct tensor biased_tensors[] = { EMBEDDING, ATTENTION, { "blk.%d.attn_rel_b.weight", { HEADS, BUCKETS },
	0 }, { NULL } };
static const struct kind by_slope = { "biased", transformer_keys, biased_tensors, BIASED("alibi: 8") },
	by_bucket = { "biased", transformer_keys, biased_tensors,
		BIASED("relative: {bias: attn_rel_b, buckets: 64, distance: 100}") };

static void near_buckets_are_alibi(void **unused)
{
	struct model *a = make_model(&by_slope, GGU_TYPE_F32, 1), *b = make_model(&by_bucket, GGU_TYPE_F32, 1);
	float *x = alone(a, GGU_TYPE_F32, text, NEAR, 0), *y = alone(b, GGU_TYPE_F32, text, NEAR, 0);
	float *far = alone(b, GGU_TYPE_F32, text, LONG, 7), *same = alone(b, GGU_TYPE_F32, text, LONG, 64);
	(void)unused;
	for (size_t i = 0; i < NEAR*WIDE; i++) assert_true(fabsf(x[i] - y[i]) < 1e-5f);
	assert_memory_equal(far, same, LONG*WIDE*sizeof *far);
	assert_memory_equal(far, y, NEAR*WIDE*sizeof *y);
	free(x); free(y); free(far); free(same);
	drop_model(a);
	drop_model(b);
}
/* T5's: 32 buckets, 128 positions. Edges: 8*16^(k/8) for k from 0. */
static void buckets_grow_with_the_distance(void **unused)
{
	static const int edge[] = { 8, 12, 16, 23, 32, 46, 64, 91 };
	(void)unused;
	for (int d = 0; d < 1000; d++) {
		size_t want = (size_t)d;
		for (size_t k = 0; k < 8; k++) if (d >= edge[k]) want = 8 + k;
		assert_int_equal(relative_bucket(-d, 32, 128, true), want);
		if (d) assert_int_equal(relative_bucket(d, 32, 128, true), want + 16);
		if (d) assert_int_equal(relative_bucket(d, 32, 128, false), 0);
		if (d < 16 || d >= 128) assert_int_equal(relative_bucket(-d, 32, 128, false), d < 16 ? d : 31);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_buckets_are_alibi), cmocka_unit_test(buckets_grow_with_the_distance),
		cmocka_unit_test(steps_one_by_one_are_the_whole), cmocka_unit_test(weights_can_be_others),
		cmocka_unit_test(neighbours_do_not_matter), cmocka_unit_test(threads_and_instances_do_not_matter),
		cmocka_unit_test(works_of_one_thread_run_at_the_same_time),
		cmocka_unit_test(models_are_even_unless_weights_are_chosen_or_used_twice),
		cmocka_unit_test(scores_are_those_of_the_logits),
	};
	if (quant_select(NULL, NULL)) return 1;         /* otherwise it would be portable C */
	for (int i = 0; i < LONG + 64; i++) text[i] = (i*i + 3*i) % VOCAB;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
