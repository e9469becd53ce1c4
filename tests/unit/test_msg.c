/* SPDX-License-Identifier: MIT
 * test_msg.c - strings made fit for a terminal, sizes with units, metadata in a line. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../tools/kv_text.h"
#include "../../tools/msg.h"

static void masked(const char *from, size_t n, const char *want)
{
	char *got = text_mask(from, n);
	assert_string_equal(got, want);
	free(got);
}

static void text_is_masked(void **state)
{
	(void)state;
	masked("plain", 5, "plain");
	masked("", 0, "");
	masked("a\0b", 3, "a\\x00b");
	masked("\033[31m\n\t\x7f", 8, "\\x1B[31m\\n\\t\\x7F");
	masked("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	masked("\xe2\x80\xae" "abc", 6, "\\u{202E}abc");
	masked("\xc2\x9b", 2, "\\u{9B}");                       /* CSI in C1 */
	masked("\xff\xc3", 2, "\\xFF\\xC3");                    /* no UTF-8; cut */
	masked("\xc0\xaf\xed\xa0\x80", 5, "\\xC0\\xAF\\xED\\xA0\\x80");        /* overlong; surrogate */
	masked("\xf4\x90\x80\x80", 4, "\\xF4\\x90\\x80\\x80");  /* above U+10FFFF */
}

static void what_is_no_utf8_is_replaced(void **state)
{
	char *to;
	size_t n;
	(void)state;
	assert_false(text_replace("a\0\xc3\xa9", 4, &to, &n));
	assert_false(text_replace("", 0, &to, &n));
	assert_true(text_replace("a\xff\xc3\xa9\xe2\x82", 6, &to, &n));
	assert_int_equal(n, 12);
	assert_memory_equal(to, "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd", 12);
	free(to);
}

static void sizes_have_units(void **state)
{
	(void)state;
	assert_string_equal(msg_bytes(0), "0 B");
	assert_string_equal(msg_bytes(1023), "1023 B");
	assert_string_equal(msg_bytes(1024), "1.00 KiB");
	assert_string_equal(msg_bytes(10240), "10.0 KiB");
	assert_string_equal(msg_bytes(1048575), "1.00 MiB");
	assert_string_equal(msg_bytes(UINT64_C(4330000000)), "4.03 GiB");
	assert_string_equal(msg_bytes(UINT64_MAX), "16384 PiB");
	assert_string_equal(msg_count(999), "999");
	assert_string_equal(msg_count(6800000), "6.80 M");
	assert_string_equal(msg_count(999999), "1.00 M");
}

static void line_is(struct ggu_meta *m, const char *key, size_t width, const char *want)
{
	char *got = kv_text(ggu_meta_find(m, key), width);
	assert_string_equal(got, want);
	free(got);
}

static void metadata_fits_a_line(void **state)
{
	struct ggu_meta *m = ggu_meta_new();
	const uint16_t many[5] = { 1, 22, 333, 4444, 55555 };
	(void)state;
	ggu_meta_set_float(m, "f", GGU_F32, 0.1f);
	ggu_meta_set_float(m, "d", GGU_F64, 0.1f);
	ggu_meta_set_float(m, "n", GGU_F32, NAN);
	ggu_meta_set_uint(m, "u", GGU_U64, UINT64_MAX);
	ggu_meta_set_str(m, "s", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 8);
	ggu_meta_set_array(m, "a", GGU_U16, many, 5);
	ggu_meta_set_array(m, "e", GGU_U16, many, 0);
	line_is(m, "f", 72, "0.1");
	line_is(m, "d", 72, "0.10000000149011612");
	line_is(m, "n", 72, "NaN");
	line_is(m, "u", 72, "18446744073709551615");
	line_is(m, "s", 4, "\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\"");
	line_is(m, "s", 2, "\"\xc3\xa9\xc3\xa9\"... (8 bytes)");
	line_is(m, "a", 72, "[1, 22, 333, 4444, 55555]");
	line_is(m, "a", 10, "[1, 22, 333, ... 5 in all]");
	line_is(m, "e", 10, "[]");
	ggu_meta_free(m);
}

/* ---- trouble in two threads at once ---- */

static pthread_barrier_t barrier;
static void slow(void) { usleep(20000); }
static void *die(void *ctx)
{
	pthread_barrier_wait(&barrier);
	msg_die("thread %d", *(int *)ctx);
}
static void threads_die_together(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		static int number[4] = { 0, 1, 2, 3 };
		int status = -1, p[2];
		char text[400] = "";
		ssize_t n = 0, got;
		pid_t pid;
		assert_int_equal(pipe(p), 0);
		pid = fork();
		if (!pid) {
			pthread_t t[4];
			dup2(p[1], 2);
			close(p[0]);
			atexit(slow);
			pthread_barrier_init(&barrier, NULL, 4);
			for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, die, &number[i]);
			for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
			_exit(9);
		}
		close(p[1]);
		while ((got = read(p[0], text + n, sizeof text - 1 - (size_t)n)) > 0) n += got;
		close(p[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_TROUBLE);
		assert_true(n > 0 && text[n - 1] == '\n');
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))         /* whole lines */
			assert_true(!strncmp(line, "gguf-utils: thread ", 19) && strlen(line) == 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_masked),
		cmocka_unit_test(what_is_no_utf8_is_replaced),
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(metadata_fits_a_line),
		cmocka_unit_test(threads_die_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
