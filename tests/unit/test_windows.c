/* SPDX-License-Identifier: MIT
 * test_windows.c - layers with a window let go of keys and values that no later token sees: memory is bounded, as
 * model_cost says, and the bits are those of an evaluation in one batch, which has everything at hand; forks, cuts,
 * snapshots, saved states. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../model/eval/model_internal.h"
#include "../../quant/quant.h"
#include "../lib/between.h"
#include "../lib/models.h"

enum { N = 1120, WINDOW = 70, PAGE = 64*2*32*4 };       /* PAGE: keys and values of a layer in f32 */

static const struct key keys[] = { { "block_count", 2 }, { "context_length", 4096 }, { "embedding_length", WIDE },
	{ NULL, 0 } };
static const struct tensor tensors[] = { { "token_embd.weight", { WIDE, VOCAB }, 0 },
	{ "output_norm.weight", { WIDE }, 1 }, { "blk.%d.attn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.attn_q.weight", { WIDE, WIDE }, 0 }, { "blk.%d.attn_k.weight", { WIDE, WIDE/2 }, 0 },
	{ "blk.%d.attn_v.weight", { WIDE, WIDE/2 }, 0 }, { "blk.%d.attn_output.weight", { WIDE, WIDE }, 0 }, { NULL } };
#define SEEN(which) "schema: 1\narch: seen\nclasses: {SeenForCausalLM: {}}\ngraph:\n" \
	"  names: {eps: attention.layer_norm_rms_epsilon}\n  input: {embed: token_embd}\n  layers: block_count\n" \
	"  layer: {attn: {norm: {rms: attn_norm, eps: eps}, branches: {self: {attention: " \
	"{q: attn_q, k: attn_k, v: attn_v, out: attn_output, heads: 4, kv_heads: 2, " \
	"rope: {style: half, base: 10000.0}, " which "}}}}}\n" \
	"  output: {norm: {rms: output_norm, eps: eps}, head: token_embd}\n"
#define KIND(name, which) static const struct kind name = { "seen", keys, tensors, SEEN(which) }
KIND(windows, "window: 70");
KIND(mixed, "window: 'i == 0 ? 70 : 0'");
KIND(unlike, "window: 'i == 0 ? 70 : 200'");
KIND(chunks, "chunk: 100");
KIND(shared, "window: 'i == 0 ? 70 : 200', keys_of: 'i == 0 ? -1 : 0'");
KIND(shared_by_all, "window: 'i == 0 ? 70 : 0', keys_of: 'i == 0 ? -1 : 0'");
KIND(shared_chunks, "chunk: 'i == 0 ? 192 : 320', keys_of: 'i == 0 ? -1 : 0'");
static const struct kind *const kinds[] = { &windows, &mixed, &unlike, &chunks, &shared, &shared_by_all,
	&shared_chunks };
enum { KINDS = sizeof kinds/sizeof *kinds };

static int32_t ids[N];
static float *whole(struct model *m) { return alone(m, GGU_TYPE_F32, ids, N, N); }

/* A model of a kind, a work for it, a sequence, and the rows of all ids in one batch. */
struct setting { struct model *m; struct work *w; struct state *s; float *want; };
static struct setting set_up(const struct kind *kind, size_t n_batch)
{
	struct model *m = make_model(kind, GGU_TYPE_F32, 1);
	return (struct setting){ m, new_work(m, n_batch), new_state(m, GGU_TYPE_F32), whole(m) };
}
static void tear_down(struct setting *b)
{
	free(b->want);
	state_free(b->s);
	work_free(b->w);
	drop_model(b->m);
}

/* Evaluates ids from where s is up to n, in batches of n_batch; each row must be as in want[N]. */
static void goes_on(struct work *w, struct state *s, size_t n, const float *want)
{
	float *rows = malloc(N*WIDE*sizeof *rows);
	size_t at = state_pos(s);
	go_on(w, s, ids + at, n - at, rows);
	same(rows, want + at*WIDE, n - at);
	free(rows);
}

static void bits_do_not_depend_on_what_is_kept(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < KINDS; k++) {
		struct model *m = make_model(kinds[k], GGU_TYPE_F32, 2);
		float *want = whole(m);
		for (size_t n_batch = 1; n_batch < 200; n_batch = 4*n_batch + 9) {
			float *rows = alone(m, GGU_TYPE_F32, ids, N, n_batch);
			same(rows, want, N);
			free(rows);
		}
		free(want);
		drop_model(m);
	}
}

/* A state holds at most what was announced before it began, and only layers without a window make that grow. */
static void memory_is_what_was_told(void **unused)
{
	static const size_t layers_that_grow[KINDS] = { 0, 1, 0, 0, 0, 1, 1 };
	(void)unused;
	for (size_t k = 0; k < KINDS; k++) {
		struct model *m = make_model(kinds[k], GGU_TYPE_F32, 1);
		struct work *w = new_work(m, 40);
		struct state *s = new_state(m, GGU_TYPE_F32);
		struct model_cost cost;
		size_t peak = 0, half = 0, taken = 0;
		for (size_t n = 40; n <= N; n += 40) {
			go_on(w, s, ids + n - 40, 40, NULL);
			if (state_bytes(s) > peak) peak = state_bytes(s);
			if (n == N/2) half = peak, taken = m->pages.taken;
		}
		assert_int_equal(model_cost(&cost, m, NULL, 40, N, 1, NULL), GGU_OK);
		assert_int_equal(cost.state_bytes - (N + 63)/64*64*sizeof *ids, peak);
		if (layers_that_grow[k]) {
			assert_between(peak - half, layers_that_grow[k]*PAGE*(N/2/64),
				layers_that_grow[k]*(PAGE + 64)*(N/2/64 + 1));
		} else {
			assert_int_equal(peak, half);
			assert_int_equal(m->pages.taken, taken);
		}
		state_free(s);
		work_free(w);
		drop_model(m);
	}
}

static void forks_keep_what_they_see(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < KINDS; k++) {
		struct setting x = set_up(kinds[k], 64);
		struct state *b, *c;
		go_on(x.w, x.s, ids, 500, NULL);
		assert_int_equal(state_fork(&b, x.s, NULL), GGU_OK);
		goes_on(x.w, x.s, N, x.want);
		assert_int_equal(state_fork(&c, b, NULL), GGU_OK);
		state_free(x.s);
		x.s = NULL;
		go_on(x.w, b, ids + 7, 300, NULL);
		goes_on(x.w, c, N, x.want);
		state_free(b);
		state_free(c);
		tear_down(&x);
	}
}

/* A few positions can be taken back; if many are, they are computed anew, unless a snapshot has them. */
static void cuts_go_back(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < KINDS; k++) {
		struct setting x = set_up(kinds[k], 32);
		struct work *w = x.w;
		struct state *s = x.s;
		const float *want = x.want;
		bool full = kinds[k] == &shared_by_all || kinds[k] == &shared_chunks;
		go_on(w, s, ids, 300, NULL);
		assert_int_equal(state_snapshot(s, NULL), GGU_OK);
		go_on(w, s, ids + 3, 500, NULL);
		assert_int_equal(state_truncate(s, 300, NULL), GGU_OK);
		assert_false(state_lacks(s));
		goes_on(w, s, 800, want);
		assert_int_equal(state_truncate(s, 300, NULL), GGU_OK);         /* it still exists */
		assert_false(state_lacks(s));
		goes_on(w, s, 310, want);
		go_on(w, s, ids, 500, NULL);
		assert_int_equal(state_truncate(s, 310, NULL), GGU_OK);
		assert_int_equal(state_lacks(s), !full);
		goes_on(w, s, 700, want);
		for (size_t n = 700; n < 764; n += 9) go_on(w, s, ids, 9, NULL);
		assert_int_equal(state_truncate(s, 700, NULL), GGU_OK);
		assert_false(state_lacks(s));
		goes_on(w, s, N, want);
		assert_int_equal(state_truncate(s, 129, NULL), GGU_OK);
		goes_on(w, s, 130, want);
		assert_int_equal(state_truncate(s, 0, NULL), GGU_OK);
		goes_on(w, s, 200, want);
		tear_down(&x);
	}
}

static void saved_states_have_what_they_see(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < KINDS; k++) {
		struct setting x = set_up(kinds[k], 64);
		struct state *a = x.s, *b = new_state(x.m, GGU_TYPE_F32);
		for (size_t cut = 1000; cut > 300; cut -= 350) {      /* after the cut it lacks what it sees */
			size_t n;
			char *bytes;
			if (cut == 1000) go_on(x.w, a, ids, cut, NULL);
			else assert_int_equal(state_truncate(a, cut, NULL), GGU_OK);
			n = state_save_bytes(a);
			bytes = malloc(n);
			if (kinds[k] == &windows) assert_between(n, cut*4, cut*4 + 2*5*(PAGE + 200));
			state_save(a, bytes);
			assert_int_equal(state_load(b, bytes, n - 1, NULL), GGU_ERR_TRUNCATED);
			assert_int_equal(state_load(b, bytes, n, NULL), GGU_OK);
			assert_int_equal(state_lacks(a), state_lacks(b));
			goes_on(x.w, b, cut + 90, x.want);
			free(bytes);
		}
		state_free(b);
		tear_down(&x);
	}
}

/* This test's own, so that calls can fail: `left` of them do not. */
static size_t left = SIZE_MAX;
int posix_memalign(void **to, size_t align, size_t n)
{
	if (!left) return ENOMEM;
	left--;
	return (*to = aligned_alloc(align, (n + align - 1)/align*align)) ? 0 : ENOMEM;
}
static void a_state_that_could_not_be_loaded_begins_anew(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < KINDS; k++) {
		struct setting x = set_up(kinds[k], 64);
		size_t n, fails = 0;
		enum ggu_status st = GGU_ERR_NOMEM;
		char *bytes;
		go_on(x.w, x.s, ids, 1000, NULL);
		n = state_save_bytes(x.s);
		bytes = malloc(n);
		state_save(x.s, bytes);
		while (st) {
			struct model *m = make_model(kinds[k], GGU_TYPE_F32, 1);        /* has no pages yet */
			struct work *w = new_work(m, 64);
			struct state *s = new_state(m, GGU_TYPE_F32);
			left = fails++;
			st = state_load(s, bytes, n, NULL);
			left = SIZE_MAX;
			if (st) assert_int_equal(st, GGU_ERR_NOMEM);
			assert_int_equal(state_pos(s), st ? 0 : 1000);
			goes_on(w, s, st ? 200 : N, x.want);
			state_free(s);
			work_free(w);
			drop_model(m);
		}
		assert_true(fails > 2);
		free(bytes);
		tear_down(&x);
	}
}

/* The bytes say where a table's pages begin: after the header's ten numbers and six of each cache. */
static void saved_states_begin_where_they_can(void **unused)
{
	struct setting x = set_up(&mixed, 64);
	struct state *a = x.s, *b = new_state(x.m, GGU_TYPE_F32);
	const size_t at = (10 + 2*6)*8;
	uint64_t first[2];
	char *bytes;
	(void)unused;
	go_on(x.w, a, ids, 500, NULL);
	bytes = calloc(2, state_save_bytes(a));
	state_save(a, bytes);
	memcpy(first, bytes + at, sizeof first);
	assert_int_equal(first[0], (448 + 1 - WINDOW)/64 - 1);     /* 448: where the last batch began */
	assert_int_equal(first[1], 0);
	first[0] = 9;
	memcpy(bytes + at, first, sizeof first);
	assert_int_equal(state_load(b, bytes, state_save_bytes(a), NULL), GGU_ERR_FORMAT);
	first[0] = 8;                   /* everything is gone: computed anew */
	memcpy(bytes + at, first, sizeof first);
	memmove(bytes + at + 16 + 2000, bytes + at + 16 + 2000 + 4*PAGE, state_save_bytes(a) - at - 2016 - 4*PAGE);
	assert_int_equal(state_load(b, bytes, state_save_bytes(a) - 4*PAGE, NULL), GGU_OK);
	goes_on(x.w, b, 600, x.want);
	first[0] = 4, first[1] = 1;     /* for a layer that sees everything */
	memcpy(bytes + at, first, sizeof first);
	assert_int_equal(state_load(b, bytes, state_save_bytes(a), NULL), GGU_ERR_FORMAT);
	free(bytes);
	state_free(b);
	tear_down(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_do_not_depend_on_what_is_kept),
		cmocka_unit_test(memory_is_what_was_told),
		cmocka_unit_test(forks_keep_what_they_see),
		cmocka_unit_test(cuts_go_back),
		cmocka_unit_test(saved_states_have_what_they_see),
		cmocka_unit_test(saved_states_begin_where_they_can),
		cmocka_unit_test(a_state_that_could_not_be_loaded_begins_anew),
	};
	for (int i = 0; i < N; i++) ids[i] = (i*i + 3*i + i/7) % VOCAB;
	quant_select(NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
