/* SPDX-License-Identifier: MIT
 * cmocka.h - what the tests of quant/ use of cmocka, for machines that have none: a failed check ends its test, a
 * group prints TAP. No fixtures. */
#ifndef TESTS_ARM_CMOCKA_H
#define TESTS_ARM_CMOCKA_H
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest { const char *name; void (*test)(void **); int (*setup)(void **),
	(*teardown)(void **); void *initial_state; };
#define cmocka_unit_test(f) { #f, f, NULL, NULL, NULL }

static jmp_buf cmocka_end;
#define print_error(...) fprintf(stderr, __VA_ARGS__)
#define fail_msg(...) \
	(printf("# %s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), printf("\n"), longjmp(cmocka_end, 1))
#define assert_true(a) ((a) ? (void)0 : fail_msg("%s", #a))
#define assert_non_null(a) assert_true((a) != NULL)
#define assert_int_equal(a, b) ((long long)(a) == (long long)(b) ? (void)0 : \
	fail_msg("%s is %lld, not %lld", #a, (long long)(a), (long long)(b)))
#define assert_memory_equal(a, b, n) (memcmp(a, b, n) == 0 ? (void)0 : fail_msg("%s is not %s", #a, #b))

static inline int cmocka_run(const struct CMUnitTest *t, size_t n)
{
	static volatile size_t i;
	static volatile int failed;
	for (i = 0; i < n; i++) {
		volatile int bad = setjmp(cmocka_end);
		if (!bad) t[i].test(&(void *){ t[i].initial_state });
		failed += bad;
		printf("%sok %zu - %s\n", bad ? "not " : "", i + 1, t[i].name);
	}
	printf("1..%zu\n", n);
	return failed != 0;
}
#define cmocka_run_group_tests(tests, setup, teardown) cmocka_run(tests, sizeof tests/sizeof *(tests))

#endif
