/* SPDX-License-Identifier: MIT
 * test_gguf.c - what the writer writes, the reader reads back; a file cut anywhere is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../libgguf/ggu.h"

static unsigned char *bytes;
static size_t n_bytes;

static int make(void **state)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;
	struct ggu_str strs[] = { { "ab", 2 }, { "", 0 }, { "c\0d", 3 } };
	uint32_t ids[] = { 7, 8, 9 };
	unsigned char data[36];
	FILE *f = tmpfile();

	(void)state;
	assert_int_equal(ggu_meta_set_str(m, "general.architecture", "llama", 5), GGU_OK);
	assert_int_equal(ggu_meta_set_uint(m, "n", GGU_U8, 255), GGU_OK);
	assert_int_equal(ggu_meta_set_uint(m, "n", GGU_U8, 256), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_int(m, "i", GGU_I16, -32768), GGU_OK);
	assert_int_equal(ggu_meta_set_float(m, "f", GGU_F32, 1.5), GGU_OK);
	assert_int_equal(ggu_meta_set_bool(m, "b", true), GGU_OK);
	assert_int_equal(ggu_meta_set_strs(m, "s", strs, 3), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "ids", GGU_U32, ids, 3), GGU_OK);
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "a", 1, (uint64_t[]){ 9 }, GGU_TYPE_F32, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "a", 1, (uint64_t[]){ 9 }, GGU_TYPE_F32, NULL), GGU_ERR_FORMAT);
	assert_int_equal(ggu_writer_add(w, "none", 2, (uint64_t[]){ 0, 5 }, GGU_TYPE_F32, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "q", 2, (uint64_t[]){ 32, 2 }, GGU_TYPE_Q4_0, NULL), GGU_OK);
	uint64_t total = ggu_writer_file_bytes(w);
	assert_int_equal(ggu_writer_begin(w, fileno(f), NULL), GGU_OK);
	for (int i = 0; i < 36; i++)
		data[i] = (unsigned char)i;
	assert_int_equal(ggu_writer_data(w, data, 36, NULL), GGU_OK);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_ERR_STATE);
	assert_int_equal(ggu_writer_data(w, data, 36, NULL), GGU_OK);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
	ggu_writer_free(w);
	ggu_meta_free(m);
	n_bytes = (size_t)lseek(fileno(f), 0, SEEK_END);
	assert_int_equal(n_bytes, total);
	bytes = malloc(n_bytes);
	assert_int_equal(pread(fileno(f), bytes, n_bytes, 0), n_bytes);
	fclose(f);
	return 0;
}

static void look(struct ggu_file *f)
{
	const struct ggu_meta *m = ggu_file_meta(f);
	const struct ggu_tensor *q = ggu_file_find(f, "q");
	unsigned char data[36];
	struct ggu_str s;
	uint64_t u = 0;
	int64_t i = 0;

	assert_int_equal(ggu_meta_count(m), 7);
	assert_true(ggu_meta_uint(m, "n", &u) && u == 255);
	assert_true(ggu_meta_int(m, "i", &i) && i == -32768);
	assert_false(ggu_meta_uint(m, "i", &u));
	assert_true(ggu_kv_str(ggu_meta_find(m, "s"), 2, &s) && s.n == 3 && !memcmp(s.p, "c\0d", 4));
	assert_int_equal(ggu_kv_n(ggu_meta_find(m, "ids")), 3);
	assert_int_equal(((const uint32_t *)ggu_kv_data(ggu_meta_find(m, "ids")))[2], 9);
	assert_int_equal(ggu_file_n_tensors(f), 3);
	assert_non_null(q);
	assert_int_equal(q->bytes, 36);
	assert_int_equal(ggu_read(f, q, 0, data, 36, NULL), GGU_OK);
	assert_int_equal(data[35], 35);
}

static void reads_memory(void **state)
{
	struct ggu_file *f;
	struct ggu_error e;

	(void)state;
	if (ggu_open_memory(&f, bytes, n_bytes, NULL, &e))
		fail_msg("byte %llu: %s: %s", (unsigned long long)e.offset, e.where, e.what);
	look(f);
	ggu_close(f);
}

static void reads_pipe(void **state)
{
	struct ggu_file *f;
	int p[2];
	unsigned char b;

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], bytes, n_bytes), n_bytes);
	close(p[1]);
	assert_int_equal(ggu_open_fd(&f, p[0], NULL, NULL), GGU_OK);
	assert_false(ggu_file_seekable(f));
	look(f);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "a"), 0, &b, 1, NULL), GGU_ERR_STATE);
	ggu_close(f);
	close(p[0]);
}

static void reads_file_and_maps(void **state)
{
	FILE *t = tmpfile();
	struct ggu_file *f;
	const void *p;

	(void)state;
	fwrite(bytes, 1, n_bytes, t);
	fflush(t);
	assert_int_equal(ggu_open_fd(&f, fileno(t), NULL, NULL), GGU_OK);
	look(f);
	assert_int_equal(ggu_map(f, ggu_file_find(f, "q"), &p, NULL), GGU_OK);
	assert_int_equal(((const unsigned char *)p)[7], 7);
	ggu_close(f);
	fclose(t);
}

/* Each truncated file is in a block of its exact size, so that a sanitizer sees a read past the end. */
static void refuses_every_truncation(void **state)
{
	struct ggu_file *f;
	struct ggu_error e;
	size_t last = n_bytes - 64 + 36;        /* the padding at the end may be missing */

	(void)state;
	for (size_t n = 0; n < last; n++) {
		unsigned char *cut = malloc(n + !n);
		memcpy(cut, bytes, n);
		if (ggu_open_memory(&f, cut, n, NULL, &e) == GGU_OK)
			fail_msg("%zu of %zu bytes were accepted", n, n_bytes);
		assert_true(e.offset != GGU_NO_OFFSET && e.offset <= n_bytes);
		free(cut);
	}
}

static void survives_mutations(void **state)
{
	uint64_t x = 88172645463325252u;

	(void)state;
	for (int k = 0; k < 20000; k++) {
		unsigned char *copy = malloc(n_bytes);
		struct ggu_file *f;
		memcpy(copy, bytes, n_bytes);
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		copy[x % n_bytes] ^= (unsigned char)((x >> 32) | 1);
		if (ggu_open_memory(&f, copy, n_bytes, NULL, NULL) == GGU_OK)
			ggu_close(f);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_memory), cmocka_unit_test(reads_pipe), cmocka_unit_test(reads_file_and_maps),
		cmocka_unit_test(refuses_every_truncation), cmocka_unit_test(survives_mutations),
	};
	int bad = cmocka_run_group_tests(tests, make, NULL);
	free(bytes);
	return bad;
}
