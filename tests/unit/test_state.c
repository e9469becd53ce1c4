/* SPDX-License-Identifier: MIT
 * test_state.c - what a sequence keeps: forks, truncation, snapshots, saving and loading leave no trace in later
 * results; what is refused leaves the state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../model/eval/session.h"
#include "../../quant/attn.h"
#include "../../quant/quant.h"
#include "../lib/kinds.h"

static void forks_go_their_own_ways(void **state)
{
	(void)state;
	for (const struct kind *const *k = kinds; *k; k++) {
		struct model *m = make_model(*k, GGU_TYPE_F32, 2);
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

static void goes_back_to_snapshots(const struct kind *k)
{
	struct model *m = make_model(k, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	struct state *s = new_state(m, GGU_TYPE_F32);
	float rows[40*WIDE], *want = alone(m, GGU_TYPE_F32, text, 60, 512);
	struct ggu_error err;
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
static void recurrent_states_want_snapshots(void **state)
{
	(void)state;
	for (const struct kind *const *k = kinds; *k; k++) if ((*k)->recurrent) goes_back_to_snapshots(*k);
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

/* As many positions as make pages of 2^32 bytes, which 32 bits count as none. Nothing but the tokens is there. */
static void sizes_beyond_the_address_space_are_refused(void **state)
{
	enum { POS_AT = 8*8, IDS = sizeof(int32_t) };
	struct model *m = make_model(&transformer, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	struct state *s = new_state(m, GGU_TYPE_F32), *other = new_state(m, GGU_TYPE_F32);
	size_t n = state_save_bytes(s), page;
	struct ggu_error err;
	uint64_t pos = ATTN_BLOCK;
	char *bytes;
	(void)state;
	go_on(w, other, text, ATTN_BLOCK, NULL);
	page = state_save_bytes(other) - n - ATTN_BLOCK*IDS;
	while (pos/ATTN_BLOCK*page & UINT32_MAX) pos *= 2;
	assert_in_range(pos, ATTN_BLOCK, 1 << 24);
	bytes = calloc(1, n + (size_t)pos*IDS);
	assert_non_null(bytes);
	state_save(s, bytes);
	memcpy(bytes + POS_AT, &pos, sizeof pos);
	assert_int_equal(state_load(s, bytes, n + (size_t)pos*IDS, &err), GGU_ERR_TRUNCATED);
	free(bytes);
	state_free(s);
	state_free(other);
	work_free(w);
	drop_model(m);
}

static void saved_states_go_on(void **state)
{
	(void)state;
	for (const struct kind *const *k = kinds; *k; k++) {
		struct model *m = make_model(*k, GGU_TYPE_F32, 2);
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
		if (!(*k)->recurrent) assert_int_equal(state_load(c, bytes, n, &err), GGU_ERR_FORMAT);
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
	const struct kind alike[] = { transformer, { "llama", window, transformer_tensors },
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
	for (size_t k = 0; k < sizeof alike/sizeof *alike; k++) {
		struct model *m = make_model(alike + k, GGU_TYPE_F32, 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forks_go_their_own_ways), cmocka_unit_test(truncation_forgets),
		cmocka_unit_test(recurrent_states_want_snapshots),
		cmocka_unit_test(stretches_of_layers_forget_snapshots),
		cmocka_unit_test(saved_states_go_on),
		cmocka_unit_test(sizes_beyond_the_address_space_are_refused),
		cmocka_unit_test(saved_states_are_for_one_model),
		cmocka_unit_test(long_ropes_go_by_the_sequence), cmocka_unit_test(what_is_refused_leaves_the_state),
		cmocka_unit_test(a_session_whose_state_is_beyond_its_end_refuses_more),
		cmocka_unit_test(a_session_gives_no_logits_if_none_of_its_tokens_is_asked_for),
	};
	if (quant_select(NULL, NULL)) return 1;         /* otherwise it would be portable C */
	for (int i = 0; i < LONG + 64; i++) text[i] = (i*i + 3*i) % VOCAB;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
