/* SPDX-License-Identifier: MIT
 * test_wanted.c - rows that nobody wants are left out of the last layer, and the others are the same bits as if all had
 * been wanted; for every way in which an operator leaves rows out.
 *
 * Small models of random weights, whose sequences go together and want no row, one, some or all. A tap sees the same
 * inputs even if no row is wanted. Scratch memory that only unwanted rows would need is not touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <xxhash.h>
#include "../../model/eval/model_internal.h"
#include "../lib/between.h"
#include "../lib/models.h"

/* All share tensors, of which each reads some. */
#define DESCRIBED(steps) "schema: 1\narch: described\nclasses: {DescribedForCausalLM: {}}\ngraph:\n" \
	"  ignore: {blk: true}\n" \
	"  names: {eps: attention.layer_norm_rms_epsilon}\n  input: {embed: token_embd}\n  layers: block_count\n" \
	"  layer: {" steps "}\n" \
	"  output: {norm: {rms: output_norm, eps: eps}, head: token_embd}\n"
#define ROPE "rope: {style: half, base: 10000}"
#define HEADS_OF "out: attn_output, heads: 4, kv_heads: 2, " ROPE
#define SEPARATE "q: attn_q, k: attn_k, v: attn_v, " HEADS_OF
#define NORM "norm: {rms: attn_norm, eps: eps}"
#define FFN "{ffn: {gate: ffn_gate, up: ffn_up, down: ffn_down, act: silu}"
#define ATTENTION(fields) "attn: {" NORM ", branches: {self: {attention: {" fields "}}}}"
#define SERIAL(fields) ATTENTION(fields) ", ffn: {" NORM ", branches: {mlp: " FFN "}}}"

static const struct key keys[] = { { "block_count", 2 }, { NULL, 0 } };
static const struct tensor tensors[] = { { "token_embd.weight", { WIDE, VOCAB }, 0 },
	{ "output_norm.weight", { WIDE }, 1 }, { "blk.%d.attn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.attn_q.weight", { WIDE, WIDE }, 0 }, { "blk.%d.attn_k.weight", { WIDE, WIDE/2 }, 0 },
	{ "blk.%d.attn_v.weight", { WIDE, WIDE/2 }, 0 }, { "blk.%d.attn_qkv.weight", { WIDE, 2*WIDE }, 0 },
	{ "blk.%d.attn_qkv.bias", { 2*WIDE }, 1 }, { "blk.%d.attn_gate.weight", { WIDE, WIDE }, 0 },
	{ "blk.%d.head_gate.weight", { WIDE, HEADS }, 0 }, { "blk.%d.attn_output.weight", { WIDE, WIDE }, 0 },
	{ "blk.%d.ffn_gate.weight", { WIDE, 96 }, 0 },
	{ "blk.%d.ffn_up.weight", { WIDE, 96 }, 0 }, { "blk.%d.ffn_down.weight", { 96, WIDE }, 0 },
	{ "blk.%d.attn_q_a.weight", { WIDE, 32 }, 0 }, { "blk.%d.attn_q_a_norm.weight", { 32 }, 1 },
	{ "blk.%d.attn_q_b.weight", { 32, 4*48 }, 0 }, { "blk.%d.attn_kv_a.weight", { WIDE, 48 }, 0 },
	{ "blk.%d.attn_kv_a_norm.weight", { 32 }, 1 }, { "blk.%d.attn_k_b.weight", { 32, 32, HEADS }, 0 },
	{ "blk.%d.attn_v_b.weight", { 32, 16, HEADS }, 0 }, { "blk.%d.ffn_gate_inp.weight", { WIDE, 4 }, 0 },
	{ "blk.%d.ffn_gate_exps.weight", { WIDE, 32, 4 }, 0 }, { "blk.%d.ffn_up_exps.weight", { WIDE, 32, 4 }, 0 },
	{ "blk.%d.ffn_down_exps.weight", { 32, WIDE, 4 }, 0 }, { NULL } };
#define LATENT "kv_a: attn_kv_a, kv_a_norm: {rms: attn_kv_a_norm, eps: eps}, k_b: attn_k_b, v_b: attn_v_b, " \
	"out: attn_output, heads: 4, rank: 32, nope_dim: 32, rope_dim: 16, value_dim: 16, " ROPE
#define Q_A "q_a: attn_q_a, q_a_norm: {rms: attn_q_a_norm, eps: eps}, q_b: attn_q_b, q_rank: 32, "

static void wanted_are_those_of_all(const char *description, uint32_t type)
{
	enum { N = 8 };
	static const size_t len[N] = { 3, 64, 65, 7, 130, 63, 1, 200 }, first[N] = { 3, 63, 0, 7, 90, 11, 0, 199 };
	const struct kind k = { "described", keys, tensors, description };
	struct model *m = make_model(&k, type, 2);
	for (size_t n_batch = 1; n_batch < 600; n_batch = 7*n_batch + 13) {
		struct work *w = new_work(m, n_batch);
		struct part p[N];
		size_t n_rows = 0, at = 0;
		float *rows;
		for (size_t i = 0; i < N; i++) {
			p[i] = (struct part){ new_state(m, GGU_TYPE_F32), text + i, len[i], first[i] };
			n_rows += len[i] - first[i];
		}
		rows = malloc(n_rows*WIDE*sizeof *rows);
		assert_int_equal(model_eval(w, &(struct model_call){ .part = p, .n_parts = N, .rows = rows }, NULL),
			GGU_OK);
		for (size_t i = 0; i < N; i++) {
			float *own = alone(m, GGU_TYPE_F32, text + i, len[i] + 9, 512), more[9*WIDE];
			same(rows + at*WIDE, own + first[i]*WIDE, len[i] - first[i]);
			go_on(w, p[i].state, text + i + len[i], 9, more);       /* all keys are there */
			same(more, own + len[i]*WIDE, 9);
			at += len[i] - first[i];
			free(own);
			state_free(p[i].state);
		}
		free(rows);
		work_free(w);
	}
	drop_model(m);
}
static void of_separate_matrices(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED(SERIAL(SEPARATE)), GGU_TYPE_F32);
	wanted_are_those_of_all(DESCRIBED(SERIAL(SEPARATE)), GGU_TYPE_Q8_0);
}
static void of_one_matrix(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED(SERIAL("qkv: attn_qkv, " HEADS_OF)), GGU_TYPE_F16);
	wanted_are_those_of_all(DESCRIBED(SERIAL("qkv: attn_qkv, " HEADS_OF)), GGU_TYPE_Q4_0);
}
static void of_values_that_are_keys(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED(SERIAL("q: attn_q, k: attn_k, gate: attn_gate, " HEADS_OF)), GGU_TYPE_Q8_0);
}
static void of_the_keys_of_another_layer(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED(SERIAL(SEPARATE ", keys_of: 'i == 1 ? 0 : -1'")), GGU_TYPE_Q8_0);
}
static void of_queries_that_grow(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED(SERIAL(SEPARATE ", growth: {by: 0.5, every: 7, from: 1}, gate: head_gate, "
		"rope_first: true, q_norm: {rms: [], eps: eps}, out_norm: {rms: [], eps: eps}")), GGU_TYPE_Q8_0);
}
static void of_experts_whose_inputs_are_weighed(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED(ATTENTION(SEPARATE) ", ffn: {" NORM ", branches: {some: {experts: {"
		"router: ffn_gate_inp, kind: sigmoid, count: 4, used: 2, weigh_input: true, each: {"
		"gate: ffn_gate_exps, up: ffn_up_exps, down: ffn_down_exps, act: silu}}}}}"), GGU_TYPE_Q8_0);
}
static void of_branches_side_by_side(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED("both: {" NORM ", branches: {self: {attention: {" SEPARATE "}}, mlp: " FFN
		"}, other: " FFN ", " NORM "}}}"), GGU_TYPE_Q8_0);
	wanted_are_those_of_all(DESCRIBED("both: {" NORM ", branches: {self: {attention: {" SEPARATE "}, " NORM
		"}, mlp: " FFN "}}}"), GGU_TYPE_F32);
}
static void of_branches_of_which_two_mix(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED("both: {" NORM ", branches: {self: {attention: {" SEPARATE
		"}}, other: {attention: {qkv: attn_qkv, " HEADS_OF "}}}}"), GGU_TYPE_Q8_0);
	wanted_are_those_of_all(DESCRIBED("both: {" NORM ", branches: {mlp: " FFN "}, self: {attention: {" SEPARATE
		"}}}}"), GGU_TYPE_Q8_0);
}
static void of_latent_attention(void **state)
{
	(void)state;
	wanted_are_those_of_all(DESCRIBED("attn: {" NORM ", branches: {self: {latent_attention: {" Q_A LATENT
		", growth: {by: 0.5, every: 7}}}}}"), GGU_TYPE_F32);
	wanted_are_those_of_all(DESCRIBED("attn: {" NORM ", branches: {self: {latent_attention: {" Q_A LATENT
		"}}}}, ffn: {" NORM ", branches: {mlp: " FFN "}}}"), GGU_TYPE_Q8_0);
}

/* The bytes before the last one that is no longer `was` */
static size_t touched(const char *p, size_t n, char was)
{
	while (n && p[n - 1] == was) n--;
	return n;
}
static void scratch_of_rows_left_out_is_not_touched(void **state)
{
	enum { N = 200, UNTOUCHED = 0x5a };
	/* with a feed-forward in the last layer alone, whose scratch is the widest */
	static const struct { const char *steps; bool idle; } made[] = { { ATTENTION(SEPARATE), false },
		{ SERIAL(SEPARATE), false },
		{ ATTENTION(SEPARATE) ", ffn: {when: 'i == 1', " NORM ", branches: {mlp: " FFN "}}}", true } };
	(void)state;
	for (size_t i = 0; i < sizeof made/sizeof *made; i++) {
		char steps[2048];
		const struct kind k = { "described", keys, tensors, steps };
		float row[WIDE];
		struct part p = { NULL, text, N, N - 1 };
		struct model_cost cost;
		struct model *m;
		struct work *w;
		snprintf(steps, sizeof steps, DESCRIBED("%s"), made[i].steps);
		m = make_model(&k, GGU_TYPE_F32, 2);
		w = new_work(m, N);
		p.state = new_state(m, GGU_TYPE_F32);
		memset(w->base, UNTOUCHED, w->bytes);
		assert_int_equal(model_eval(w, &(struct model_call){ .part = &p, .n_parts = 1, .rows = row }, NULL),
			GGU_OK);
		assert_int_equal(model_cost(&cost, m, NULL, N, N, 2, NULL), GGU_OK);
		assert_int_equal(cost.idle_bytes > 0, made[i].idle);
		/* 128: what makes it a multiple of 64 bytes, twice */
		assert_between((double)touched(w->base, w->bytes, UNTOUCHED),
			(double)w->bytes - cost.idle_bytes - 128, (double)w->bytes - cost.idle_bytes);
		state_free(p.state);
		work_free(w);
		drop_model(m);
	}
}

/* What was seen: products, and a digest of their names and inputs */
struct seen { size_t n; XXH64_hash_t digest; };
static enum ggu_status see(void *ctx, const struct quant_input *in)
{
	struct seen *s = ctx;
	s->digest = XXH64(in->weight, strlen(in->weight), s->digest + in->mat);
	for (size_t t = 0; t < in->n; t++)
		s->digest = XXH64(in->x + t*in->stride, in->n_in*sizeof *in->x, s->digest);
	s->n++;
	return GGU_OK;
}
static struct seen seen_in(const char *steps, float *rows)
{
	const struct kind k = { "described", keys, tensors, steps };
	struct model *m = make_model(&k, GGU_TYPE_Q8_0, 2);
	struct work *w = new_work(m, 40);
	const struct part p = { new_state(m, GGU_TYPE_F32), text, 100, 30 };
	struct seen s = { 0, 0 };
	assert_int_equal(model_eval(w, &(struct model_call){ .part = &p, .n_parts = 1, .rows = rows, .tap = see,
		.tap_ctx = &s }, NULL), GGU_OK);
	state_free(p.state);
	work_free(w);
	drop_model(m);
	return s;
}
static void the_tap_sees_all(void **state)
{
	static const char *const steps[] = { DESCRIBED(SERIAL(SEPARATE)), DESCRIBED(ATTENTION(SEPARATE)),
		DESCRIBED("both: {" NORM ", branches: {self: {attention: {" SEPARATE "}}, mlp: " FFN "}}}"),
		DESCRIBED("ffn: {" NORM ", branches: {experts: {experts: {router: ffn_gate_inp, kind: softmax, "
			"count: 4, used: 2, each: {gate: ffn_gate_exps, up: ffn_up_exps, down: ffn_down_exps, "
			"act: silu}}}}}") };
	static const size_t products[] = { 2*7, 2*4, 2*7, 2*13 };
	float *rows = malloc(70*WIDE*sizeof *rows);
	(void)state;
	for (size_t i = 0; i < sizeof steps/sizeof *steps; i++) {
		const struct seen with = seen_in(steps[i], rows), without = seen_in(steps[i], NULL);
		assert_int_equal(with.n, 3*products[i]);        /* batches */
		assert_int_equal(without.n, with.n);
		assert_true(without.digest == with.digest);
	}
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_separate_matrices),
		cmocka_unit_test(of_one_matrix),
		cmocka_unit_test(of_values_that_are_keys),
		cmocka_unit_test(of_the_keys_of_another_layer),
		cmocka_unit_test(of_queries_that_grow),
		cmocka_unit_test(of_experts_whose_inputs_are_weighed),
		cmocka_unit_test(of_branches_side_by_side),
		cmocka_unit_test(of_branches_of_which_two_mix),
		cmocka_unit_test(of_latent_attention),
		cmocka_unit_test(scratch_of_rows_left_out_is_not_touched),
		cmocka_unit_test(the_tap_sees_all),
	};
	for (int i = 0; i < LONG + 64; i++) text[i] = (int32_t)((unsigned)i*2654435761u >> 16)%VOCAB;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
