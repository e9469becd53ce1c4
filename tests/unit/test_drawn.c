/* SPDX-License-Identifier: MIT
 * test_drawn.c - tokens drawn by lot: which ones, in which order, and what they weigh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../libgguf/ggu.h"
#include "../../model/vocab/vocab.h"
#include "../../tools/drawn.h"

enum { N = 300, FIRST_WORD = 3, UNUSED = 40, CTX = 32 };

/* <unk> <s> </s>, words, one of them unused. */
static struct vocab *words(bool begins)
{
	static char name[N][8];
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_str token[N];
	float score[N];
	int32_t type[N];
	struct vocab *v;
	assert_non_null(m);
	for (int i = 0; i < N; i++) {
		name[i][0] = (char)('a' + i/26);
		name[i][1] = (char)('a' + i % 26);
		token[i] = (struct ggu_str){ name[i], 2 };
		score[i] = (float)-i;
		type[i] = i == 0 ? VOCAB_UNKNOWN : i < FIRST_WORD ? VOCAB_CONTROL : i == UNUSED ? VOCAB_UNUSED
			: VOCAB_NORMAL;
	}
	assert_int_equal(ggu_meta_set_str(m, "tokenizer.ggml.model", "llama", 5), GGU_OK);
	assert_int_equal(ggu_meta_set_bool(m, "tokenizer.ggml.add_bos_token", begins), GGU_OK);
	assert_int_equal(ggu_meta_set_strs(m, "tokenizer.ggml.tokens", token, N), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, score, N), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, type, N), GGU_OK);
	assert_int_equal(vocab_from_meta(&v, m, NULL), GGU_OK);
	ggu_meta_free(m);
	return v;
}
static int32_t *drawn(const struct vocab *v, size_t n_vocab, size_t first, size_t n)
{
	int32_t *ids = calloc(n*CTX, sizeof *ids);
	assert_non_null(ids);
	for (size_t i = 0; i < n*CTX; i++) ids[i] = -7;
	drawn_append(v, n_vocab, first, drawn_windows(n), &ids, n, CTX);
	for (size_t i = 0; i < n*CTX; i++) assert_int_equal(ids[i], -7);
	return ids;
}

static void every_word_comes_once_before_one_comes_again(void **state)
{
	(void)state;
	for (int begins = 0; begins < 2; begins++) {
		enum { TEXT = 4*20 };
		struct vocab *v = words(begins);
		int32_t *ids = drawn(v, N, 0, TEXT);
		size_t words = 0, times[N] = { 0 };
		assert_int_equal(drawn_windows(TEXT).n, 20);
		for (size_t i = 0; i < 20*CTX; i++) {
			const int32_t id = ids[TEXT*CTX + i];
			if (begins && i % CTX == 0) {
				assert_int_equal(id, vocab_bos(v));
				continue;
			}
			assert_true(id >= FIRST_WORD && id < N && id != UNUSED);
			assert_int_equal(times[id]++, words++/(N - FIRST_WORD - 1));
		}
		free(ids);
		vocab_free(v);
	}
}
static void a_window_is_known_by_its_number(void **state)
{
	struct vocab *v = words(true);
	int32_t *all = drawn(v, N, 0, 40), *last = drawn(v, N, 7, 12);
	(void)state;
	assert_memory_equal(all + (40 + 7)*CTX, last + 12*CTX, 3*CTX*sizeof *all);
	free(all);
	free(last);
	vocab_free(v);
}
static void a_model_may_have_fewer_tokens_than_its_vocabulary(void **state)
{
	struct vocab *v = words(false);
	(void)state;
	for (size_t n_vocab = 1; n_vocab < 10; n_vocab += 4) {
		int32_t *ids = drawn(v, n_vocab, 0, 1);
		for (size_t i = CTX; i < 2*CTX; i++) assert_true(ids[i] >= 0 && (size_t)ids[i] < n_vocab);
		free(ids);
	}
	vocab_free(v);
}

/* The share of all tokens in the sums that are drawn ones. */
static double part(size_t n, size_t stride, const char *weight)
{
	const struct drawn d = drawn_windows(n);
	const double root = (double)drawn_root(n, d, stride, weight);
	const double drawn = root*root*(double)(drawn_in_first_block(weight) ? d.n : d.whole);
	return drawn/(drawn + (double)n/(double)stride);
}
static void they_are_a_fifth_of_the_sums_and_half_in_the_first_block(void **state)
{
	static const size_t n[] = { 1, 24, 25, 1000 };
	(void)state;
	assert_true(drawn_windows(25).n == 7 && drawn_windows(25).whole == 2);
	for (size_t i = 0; i < sizeof n/sizeof *n; i++)
		for (size_t stride = 1; stride < 4; stride++) {
			assert_float_equal(part(n[i], stride, "blk.0.attn_q.weight"), 0.5, 1e-6);
			assert_float_equal(part(n[i], stride, "enc.blk.0.ffn_up.weight"), 0.5, 1e-6);
			assert_float_equal(part(n[i], stride, "blk.10.attn_q.weight"), 0.2, 1e-6);
			assert_float_equal(part(n[i], stride, "output.weight"), 0.2, 1e-6);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_comes_once_before_one_comes_again),
		cmocka_unit_test(a_window_is_known_by_its_number),
		cmocka_unit_test(a_model_may_have_fewer_tokens_than_its_vocabulary),
		cmocka_unit_test(they_are_a_fifth_of_the_sums_and_half_in_the_first_block),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
