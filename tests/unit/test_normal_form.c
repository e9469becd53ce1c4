/* SPDX-License-Identifier: MIT
 * test_normal_form.c - Unicode's normal forms beside utf8proc_map, for drawn texts with many marks; and a letter with
 * so many marks that a sort by swapping neighbours would take half an hour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <utf8proc.h>
#include "../../model/vocab/normal_form.h"

static const int forms[] = { UTF8PROC_COMPOSE, UTF8PROC_COMPOSE | UTF8PROC_COMPAT, UTF8PROC_DECOMPOSE,
	UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT };
enum { FORMS = sizeof forms/sizeof *forms };

static uint64_t seed = 1;
static int32_t drawn(int32_t from, int32_t to)
{
	seed = seed*6364136223846793005u + 1442695040888963407u;
	return from + (int32_t)((seed >> 33)%(uint64_t)(to - from));
}

static void texts_are_those_of_utf8proc(void **state)
{
	/* marks three times, a mark that is two, letters with marks, Hangul, what only compatibility takes apart */
	static const int32_t blocks[][2] = { { 0x300, 0x370 }, { 0x300, 0x370 }, { 0x591, 0x5c8 }, { 0x344, 0x345 },
		{ 'A', 'z' }, { 0xc0, 0x180 }, { 0x1100, 0x1200 }, { 0xac00, 0xd7a4 }, { 0xfb00, 0xfe00 },
		{ 0x1d15e, 0x1d1c0 }, { 0xe000, 0x110000 } };
	(void)state;
	for (int round = 0; round < 4000; round++) {
		utf8proc_uint8_t t[400], *want;
		size_t n = 0, got_n;
		char *got;
		int form = forms[round%FORMS] | UTF8PROC_STABLE;
		for (int k = drawn(1, 100); k > 0; k--) {
			const int32_t *b = blocks[drawn(0, sizeof blocks/sizeof *blocks)];
			n += (size_t)utf8proc_encode_char(drawn(b[0], b[1]), t + n);
		}
		utf8proc_ssize_t want_n = utf8proc_map(t, (utf8proc_ssize_t)n, &want, (utf8proc_option_t)form);
		assert_int_equal(normal_form((const char *)t, n, form, &got, &got_n, NULL), GGU_OK);
		assert_int_equal(got_n, want_n);
		assert_memory_equal(got, want, got_n);
		free(got);
		free(want);
	}
}

static void marks_are_sorted_at_once(void **state)
{
	enum { PAIRS = 1 << 20 };
	char *t = malloc(1 + 4*PAIRS);
	(void)state;
	assert_non_null(t);
	t[0] = 'x';
	for (size_t k = 0; k < PAIRS; k++) memcpy(t + 1 + 4*k, "\xcc\x95\xcc\x80", 4);  /* classes 232 and 230 */
	for (int f = 0; f < FORMS; f++) {
		char *got;
		size_t n;
		assert_int_equal(normal_form(t, 1 + 4*PAIRS, forms[f] | UTF8PROC_STABLE, &got, &n, NULL), GGU_OK);
		assert_int_equal(n, 1 + 4*PAIRS);
		assert_memory_equal(got, "x\xcc\x80\xcc\x80", 5);
		assert_memory_equal(got + 1 + 2*PAIRS - 2, "\xcc\x80\xcc\x95", 4);
		assert_memory_equal(got + 4*PAIRS - 1, "\xcc\x95", 2);
		free(got);
	}
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_those_of_utf8proc),
		cmocka_unit_test(marks_are_sorted_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
