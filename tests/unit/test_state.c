/* SPDX-License-Identifier: MIT
 * test_state.c - sequences: their bits do not depend on neighbours, cuts, threads or instruction sets; forks,
 * truncation, snapshots, saving and loading leave no trace in later results.
 *
 * Small models of random weights: a transformer with shared heads and a window, a recurrent one, one with ropes for
 * long contexts, a mixture of experts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../libgguf/pool.h"
#include "../../model/eval/relative.h"
#include "../../model/eval/session.h"
#include "../../quant/quant.h"
#include "../lib/models.h"

/* ---- models ---- */

static const struct key transformer_keys[] = { { "block_count", 2 }, { "context_length", 512 },
	{ "embedding_length", WIDE },
	{ "attention.head_count", 4 }, { "attention.head_count_kv", 2 }, { "attention.sliding_window", 70 },
	{ NULL, 0 } };
#define ATTENTION { "blk.%d.attn_norm.weight", { WIDE }, 1 }, { "blk.%d.attn_q.weight", { WIDE, WIDE }, 0 }, \
	{ "blk.%d.attn_k.weight", { WIDE, WIDE/2 }, 0 }, { "blk.%d.attn_v.weight", { WIDE, WIDE/2 }, 0 }, \
	{ "blk.%d.attn_output.weight", { WIDE, WIDE }, 0 }
#define EMBEDDING { "token_embd.weight", { WIDE, VOCAB }, 0 }, { "output_norm.weight", { WIDE }, 1 }
static const struct tensor transformer_tensors[] = { EMBEDDING, ATTENTION, { "blk.%d.ffn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.ffn_gate.weight", { WIDE, 96 }, 0 }, { "blk.%d.ffn_up.weight", { WIDE, 96 }, 0 },
	{ "blk.%d.ffn_down.weight", { 96, WIDE }, 0 }, { NULL } };

static const struct key expert_keys[] = { { "block_count", 2 }, { "context_length", 512 }, { "embedding_length", WIDE },
	{ "attention.head_count", 4 }, { "attention.head_count_kv", 2 }, { "expert_count", 8 },
	{ "expert_used_count", 2 }, { NULL, 0 } };
static const struct tensor expert_tensors[] = { EMBEDDING, ATTENTION, { "blk.%d.ffn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.ffn_gate_inp.weight", { WIDE, 8 }, 0 },
	{ "blk.%d.ffn_gate_exps.weight", { WIDE, 32, 8 }, 0 }, { "blk.%d.ffn_up_exps.weight", { WIDE, 32, 8 }, 0 },
	{ "blk.%d.ffn_down_exps.weight", { 32, WIDE, 8 }, 0 }, { NULL } };

static const struct key mamba_keys[] = { { "block_count", 2 }, { "context_length", 512 }, { "embedding_length", WIDE },
	{ "ssm.conv_kernel", 4 },
	{ "ssm.inner_size", 96 }, { "ssm.state_size", 16 }, { "ssm.time_step_rank", 8 }, { NULL, 0 } };
static const struct tensor mamba_tensors[] = { EMBEDDING, { "blk.%d.attn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.ssm_in.weight", { WIDE, 192 }, 0 },
	{ "blk.%d.ssm_conv1d.weight", { 4, 96 }, 0 }, { "blk.%d.ssm_conv1d.bias", { 96 }, 0 },
	{ "blk.%d.ssm_x.weight", { 96, 40 }, 0 },
	{ "blk.%d.ssm_dt.weight", { 8, 96 }, 0 }, { "blk.%d.ssm_dt.bias", { 96 }, 0 },
	{ "blk.%d.ssm_a", { 16, 96 }, -1 }, { "blk.%d.ssm_d", { 96 }, 1 },
	{ "blk.%d.ssm_out.weight", { 96, WIDE }, 0 }, { NULL } };

static const struct key long_keys[] = { { "block_count", 2 }, { "context_length", 512 }, { "embedding_length", WIDE },
	{ "attention.head_count", 4 }, { "rope.scaling.original_context_length", 40 }, { NULL, 0 } };
static const struct tensor long_tensors[] = { EMBEDDING, { "rope_factors_short.weight", { 8 }, 1 },
	{ "rope_factors_long.weight", { 8 }, 5 },
	{ "blk.%d.attn_norm.weight", { WIDE }, 1 }, { "blk.%d.attn_qkv.weight", { WIDE, 3*WIDE }, 0 },
	{ "blk.%d.attn_output.weight", { WIDE, WIDE }, 0 },
	{ "blk.%d.ffn_norm.weight", { WIDE }, 1 }, { "blk.%d.ffn_up.weight", { WIDE, 192 }, 0 },
	{ "blk.%d.ffn_down.weight", { 96, WIDE }, 0 }, { NULL } };

static const struct kind transformer = { "llama", transformer_keys, transformer_tensors }, experts = { "llama",
	expert_keys, expert_tensors },
	recurrent = { "mamba", mamba_keys, mamba_tensors }, long_rope = { "phi3", long_keys, long_tensors };

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

/* ---- tests ---- */

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
	side_by_side(&transformer, GGU_TYPE_F32, GGU_TYPE_F32);
	side_by_side(&transformer, GGU_TYPE_Q8_0, GGU_TYPE_F16);
	side_by_side(&transformer, GGU_TYPE_F16, GGU_TYPE_I16);
	side_by_side(&experts, GGU_TYPE_Q4_0, GGU_TYPE_F32);
	side_by_side(&recurrent, GGU_TYPE_F32, GGU_TYPE_F32);
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
	static const struct kind *const kinds[] = { &transformer, &experts, &recurrent, &long_rope };
	(void)state;
	for (size_t k = 0; k < 4; k++) {
		struct model *m = make_model(kinds[k], GGU_TYPE_F32, 2);
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
	static const struct kind *const kinds[] = { &transformer, &experts, &recurrent };
	(void)state;
	for (size_t k = 0; k < 3; k++) {
		float *first = NULL;
		for (int threads = 1; threads <= 4; threads *= 2)
			for (const char *const *cpu = quant_available(); *cpu; cpu++) {
				struct model *m;
				float *rows;
				assert_int_equal(quant_select(*cpu, NULL), GGU_OK);
				m = make_model(kinds[k], GGU_TYPE_Q8_0, threads);
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
	static const struct kind *const kinds[] = { &transformer, &recurrent, &experts };
	struct ggu_pool *pool = ggu_pool_new(4);
	struct each *e = malloc(sizeof *e);
	(void)unused;
	for (size_t k = 0; k < 3; k++) {
		struct model *m = make_model(kinds[k], GGU_TYPE_Q8_0, 2);
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

static void forks_go_their_own_ways(void **state)
{
	static const struct kind *const kinds[] = { &transformer, &recurrent };
	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct model *m = make_model(kinds[k], GGU_TYPE_F32, 2);
		struct work *w = new_work(m, 64);
		struct state *a = new_state(m, GGU_TYPE_F32), *b, *c;
		float rows[40*WIDE], *want;
		int32_t other[140];
		go_on(w, a, text, 100, NULL);   /* in the middle of a block, to which both then write */
		assert_int_equal(state_fork(&b, a, NULL), GGU_OK);
		assert_int_equal(state_fork(&c, b, NULL), GGU_OK);
		go_on(w, b, text + 3, 40, rows);
		memcpy(other, text, 100*sizeof *text);
		memcpy(other + 100, text + 3, 40*sizeof *text);
		want = alone(m, GGU_TYPE_F32, other, 140, 512);
		same(rows, want + 100*WIDE, 40);
		free(want);
		want = alone(m, GGU_TYPE_F32, text, 140, 512);
		go_on(w, a, text + 100, 40, rows);
		same(rows, want + 100*WIDE, 40);
		state_free(a);
		go_on(w, c, text + 100, 40, rows);
		same(rows, want + 100*WIDE, 40);
		assert_memory_equal(state_ids(c), text, 140*sizeof *text);
		free(want);
		state_free(b);
		state_free(c);
		work_free(w);
		drop_model(m);
	}
}

static void truncation_forgets(void **state)
{
	struct model *m = make_model(&transformer, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	struct state *s = new_state(m, GGU_TYPE_F16), *fork;
	float rows[50*WIDE], *want = alone(m, GGU_TYPE_F16, text, 120, 512);
	(void)state;
	go_on(w, s, text, 70, NULL);
	go_on(w, s, text + 9, 80, NULL);
	assert_int_equal(state_fork(&fork, s, NULL), GGU_OK);
	assert_int_equal(state_truncate(s, 151, NULL), GGU_ERR_RANGE);
	assert_int_equal(state_truncate(s, 70, NULL), GGU_OK);
	go_on(w, s, text + 70, 50, rows);
	same(rows, want + 70*WIDE, 50);
	assert_int_equal(state_truncate(fork, 64, NULL), GGU_OK);
	go_on(w, fork, text + 64, 6, NULL);
	go_on(w, fork, text + 70, 50, rows);
	same(rows, want + 70*WIDE, 50);
	free(want);
	state_free(s);
	state_free(fork);
	work_free(w);
	drop_model(m);
}

static void recurrent_states_want_snapshots(void **state)
{
	struct model *m = make_model(&recurrent, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	struct state *s = new_state(m, GGU_TYPE_F32);
	float rows[40*WIDE], *want = alone(m, GGU_TYPE_F32, text, 60, 512);
	struct ggu_error err;
	(void)state;
	go_on(w, s, text, 20, NULL);
	assert_int_equal(state_snapshot(s, NULL), GGU_OK);
	go_on(w, s, text + 7, 11, NULL);
	assert_int_equal(state_truncate(s, 19, &err), GGU_ERR_STATE);
	assert_int_equal(state_pos(s), 31);
	assert_int_equal(state_truncate(s, 20, NULL), GGU_OK);
	go_on(w, s, text + 20, 40, rows);
	same(rows, want + 20*WIDE, 40);
	assert_int_equal(state_truncate(s, 20, NULL), GGU_OK);          /* it still exists */
	go_on(w, s, text + 20, 40, rows);
	same(rows, want + 20*WIDE, 40);
	assert_int_equal(state_truncate(s, 0, NULL), GGU_OK);
	assert_int_equal(state_truncate(s, 0, NULL), GGU_OK);
	go_on(w, s, text, 40, rows);
	same(rows, want, 40);
	free(want);
	state_free(s);
	work_free(w);
	drop_model(m);
}

static void stretches_of_layers_forget_snapshots(void **state)
{
	struct model *m = make_model(&recurrent, GGU_TYPE_F32, 1);
	struct work *w = new_work(m, 64);
	struct part p = { new_state(m, GGU_TYPE_F32), text + 7, 30, 30 };
	const int32_t none = VOCAB;
	struct part refused = { p.state, &none, 1, 1 };
	float stream[30*WIDE];
	struct model_call c = { .part = &refused, .n_parts = 1, .stream = stream };
	(void)state;
	go_on(w, p.state, text, 20, NULL);
	assert_int_equal(state_snapshot(p.state, NULL), GGU_OK);
	assert_int_equal(model_eval(w, &c, NULL), GGU_ERR_RANGE);
	assert_int_equal(state_pos(p.state), 20);       /* nothing has happened */
	c.part = &p;
	assert_int_equal(model_eval(w, &c, NULL), GGU_OK);
	assert_int_equal(state_pos(p.state), 30);
	assert_int_equal(state_truncate(p.state, 20, NULL), GGU_ERR_STATE);
	state_free(p.state);
	work_free(w);
	drop_model(m);
}

static void saved_states_go_on(void **state)
{
	static const struct kind *const kinds[] = { &transformer, &recurrent, &long_rope };
	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct model *m = make_model(kinds[k], GGU_TYPE_F32, 2);
		struct work *w = new_work(m, 64);
		struct state *a = new_state(m, GGU_TYPE_F16), *b = new_state(m, GGU_TYPE_F16);
		struct state *c = new_state(m, GGU_TYPE_F32);
		float rows[30*WIDE], *want = alone(m, GGU_TYPE_F16, text, 110, 512);
		struct ggu_error err;
		char *bytes;
		size_t n;
		go_on(w, a, text, 80, NULL);
		n = state_save_bytes(a);
		bytes = malloc(n + 1);
		state_save(a, bytes);
		go_on(w, b, text + 5, 10, NULL);
		assert_int_equal(state_load(b, bytes, n - 1, &err), GGU_ERR_TRUNCATED);
		assert_int_equal(state_load(b, bytes, n + 1, &err), GGU_ERR_TRUNCATED);
		assert_int_equal(state_load(b, bytes, 10, &err), GGU_ERR_TRUNCATED);
		if (kinds[k] != &recurrent) assert_int_equal(state_load(c, bytes, n, &err), GGU_ERR_FORMAT);
		assert_int_equal(state_pos(b), 10);
		for (size_t i = 0; i < 8*8; i += 8) {   /* another head */
			bytes[i] ^= 1;
			assert_int_not_equal(state_load(b, bytes, n, &err), GGU_OK);
			bytes[i] ^= 1;
		}
		assert_int_equal(state_load(b, bytes, n, NULL), GGU_OK);
		go_on(w, b, text + 80, 30, rows);
		same(rows, want + 80*WIDE, 30);
		free(bytes);
		free(want);
		state_free(a);
		state_free(b);
		state_free(c);
		work_free(w);
		drop_model(m);
	}
}

/* Models of the same shapes that keep something else of the same tokens. */
static void saved_states_are_for_one_model(void **unused)
{
	struct key window[9], base[9];
	struct tensor other[16];
	const struct kind kinds[] = { transformer, { "llama", window, transformer_tensors },
		{ "llama", base, transformer_tensors }, { "llama", transformer_keys, other } };
	char *bytes = NULL;
	size_t n = 0;
	(void)unused;
	memcpy(window, transformer_keys, sizeof transformer_keys);
	memcpy(base, transformer_keys, sizeof transformer_keys);
	memcpy(other, transformer_tensors, sizeof transformer_tensors);
	window[5].v = 90;
	base[6] = (struct key){ "rope.freq_base", 500 };
	base[7] = (struct key){ NULL, 0 };
	other[0].around = 0.5F;                 /* other weights */
	for (size_t k = 0; k < sizeof kinds/sizeof *kinds; k++) {
		struct model *m = make_model(kinds + k, GGU_TYPE_F32, 1);
		struct work *w = new_work(m, 64);
		struct state *s = new_state(m, GGU_TYPE_F32);
		struct ggu_error err;
		if (!k) {
			go_on(w, s, text, 50, NULL);
			n = state_save_bytes(s);
			bytes = malloc(n);
			state_save(s, bytes);
			state_reset(s);
			assert_int_equal(state_load(s, bytes, n, &err), GGU_OK);
		} else {
			assert_int_equal(state_load(s, bytes, n, &err), GGU_ERR_FORMAT);
			assert_non_null(strstr(err.what, "not a state of this model"));
			assert_int_equal(state_pos(s), 0);
		}
		state_free(s);
		work_free(w);
		drop_model(m);
	}
	free(bytes);
}

/* A sequence that passes the first context is turned by other factors, however it got there. */
static void long_ropes_go_by_the_sequence(void **state)
{
	struct model *m = make_model(&long_rope, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	struct state *s = new_state(m, GGU_TYPE_F32);
	float row[WIDE], *shorter = alone(m, GGU_TYPE_F32, text, 40, 512);
	float *longer = alone(m, GGU_TYPE_F32, text, 60, 7);
	(void)state;
	assert_memory_not_equal(shorter, longer, WIDE*40*sizeof *longer);
	for (size_t i = 0; i < 60; i++) go_on(w, s, text + i, 1, row);
	same(row, longer + 59*WIDE, 1);
	assert_int_equal(state_truncate(s, 39, NULL), GGU_OK);
	go_on(w, s, text + 39, 1, row);
	same(row, shorter + 39*WIDE, 1);
	free(shorter);
	free(longer);
	state_free(s);
	work_free(w);
	drop_model(m);
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

static void what_is_refused_leaves_the_state(void **state)
{
	struct model *m = make_model(&transformer, GGU_TYPE_F32, 1);
	struct work *w = new_work(m, 64);
	struct state *s = new_state(m, GGU_TYPE_F32), *other = new_state(m, GGU_TYPE_F16), *q;
	int32_t ids[2] = { 1, VOCAB };
	struct part p[2] = { { s, ids, 2, 0 }, { other, text, 2, 0 } };
	struct ggu_error err;
	(void)state;
	go_on(w, s, text, 5, NULL);
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 1 }, &err), GGU_ERR_RANGE);
	ids[1] = -1;
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 1 }, &err), GGU_ERR_RANGE);
	ids[1] = 2;
	/* two types of cache */
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 2 }, &err), GGU_ERR_RANGE);
	p[1] = p[0];
	/* one sequence twice */
	assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = 2 }, &err), GGU_ERR_RANGE);
	assert_int_equal(state_pos(s), 5);
	/* heads of 16 */
	assert_int_equal(state_new(&q, m, &(struct state_options){ GGU_TYPE_Q8_0, GGU_TYPE_F32 }, &err),
		GGU_ERR_UNSUPPORTED);
	state_free(s);
	state_free(other);
	work_free(w);
	drop_model(m);
}

/* a state may have got there by model_eval or state_load */
static void a_session_whose_state_is_beyond_its_end_refuses_more(void **unused)
{
	struct model *m = make_model(&transformer, GGU_TYPE_F32, 1);
	struct work *w = new_work(m, 64);
	struct session *s;
	struct ggu_error err;
	(void)unused;
	assert_int_equal(session_new(&s, m, 4, 4, NULL, NULL), GGU_OK);
	go_on(w, session_state(s), text, 6, NULL);
	assert_int_equal(session_eval(s, &(struct session_eval){ .ids = text, .n = 1 }, &err), GGU_ERR_RANGE);
	assert_int_equal(session_pos(s), 6);
	session_free(s);
	work_free(w);
	drop_model(m);
}

static void a_session_gives_no_logits_if_none_of_its_tokens_is_asked_for(void **unused)
{
	struct model *m = make_model(&transformer, GGU_TYPE_F32, 1);
	float logits[VOCAB] = { 7 };
	struct session *s;
	(void)unused;
	assert_int_equal(session_new(&s, m, 4, 4, NULL, NULL), GGU_OK);
	for (size_t first = 2; first < 4; first++)
		assert_int_equal(session_eval(s, &(struct session_eval){ .ids = text, .n = 2, .logits = logits,
			.first = first }, NULL), GGU_OK);
	assert_int_equal(session_pos(s), 4);
	assert_true(*logits == 7);
	session_free(s);
	drop_model(m);
}

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
		cmocka_unit_test(forks_go_their_own_ways), cmocka_unit_test(truncation_forgets),
			cmocka_unit_test(recurrent_states_want_snapshots),
			cmocka_unit_test(stretches_of_layers_forget_snapshots),
		cmocka_unit_test(saved_states_go_on), cmocka_unit_test(saved_states_are_for_one_model),
		cmocka_unit_test(long_ropes_go_by_the_sequence),
		cmocka_unit_test(scores_are_those_of_the_logits), cmocka_unit_test(what_is_refused_leaves_the_state),
		cmocka_unit_test(a_session_whose_state_is_beyond_its_end_refuses_more),
		cmocka_unit_test(a_session_gives_no_logits_if_none_of_its_tokens_is_asked_for),
	};
	if (quant_select(NULL, NULL)) return 1;         /* otherwise it would be portable C */
	for (int i = 0; i < LONG + 64; i++) text[i] = (i*i + 3*i) % VOCAB;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
