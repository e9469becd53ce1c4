/* SPDX-License-Identifier: MIT
 * test_writer.c - writing to sinks and at given offsets; metadata that is copied, renamed and set within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/types.h"

static struct ggu_file *open_bytes(const struct ggu_memory *m)
{
	struct ggu_file *f = NULL;
	struct ggu_error e;

	if (ggu_open_memory(&f, m->p, m->n, NULL, &e))
		fail_msg("byte %llu: %s: %s", (unsigned long long)e.offset, e.where, e.what);
	return f;
}

static void add(struct ggu_writer *w, const char *name, uint64_t bytes, uint64_t offset)
{
	assert_int_equal(ggu_writer_add_at(w, name, 1, &bytes, GGU_TYPE_I8, offset, NULL), GGU_OK);
}

/* More data than the tensors have is an error that ending does not forgive. */
static void fails_after_too_much_data(void **state)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_memory b = { 0 };
	struct ggu_sink to = ggu_sink_memory(&b);
	struct ggu_writer *w;

	(void)state;
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	add(w, "three", 3, 0);
	assert_int_equal(ggu_writer_begin_sink(w, &to, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, "four", 4, NULL), GGU_ERR_RANGE);
	assert_int_equal(ggu_writer_data(w, "", 0, NULL), GGU_ERR_STATE);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_ERR_STATE);
	ggu_writer_free(w);
	ggu_meta_free(m);
	free(b.p);
}

/* The order of the table differs from that of the data, which has gaps. */
static void keeps_offsets_and_order(void **state)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_memory b = { 0 }, head = { 0 };
	struct ggu_sink to = ggu_sink_memory(&b), to_head = ggu_sink_memory(&head);
	struct ggu_writer *w;
	struct ggu_file *f;
	const unsigned char *data;

	(void)state;
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	add(w, "late", 5, 256);
	add(w, "empty", 0, 64);
	add(w, "early", 3, 64);
	add(w, "middle", 33, 128);
	assert_int_equal(ggu_writer_add_at(w, "odd", 1, (uint64_t[]){ 1 }, GGU_TYPE_I8, 7, NULL), GGU_ERR_RANGE);
	assert_int_equal(ggu_writer_add_at(w, "far", 1, (uint64_t[]){ 1 }, GGU_TYPE_I8, UINT64_C(1) << 62, NULL),
		GGU_ERR_RANGE);
	assert_int_equal(ggu_writer_add(w, "behind", 1, (uint64_t[]){ 1 }, GGU_TYPE_I8, NULL), GGU_OK);
	assert_int_equal(ggu_writer_header(w, &to_head, NULL), GGU_OK);
	assert_int_equal(ggu_writer_begin_sink(w, &to, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, "abcMIDDLE-MIDDLE-MIDDLE-MIDDLE-MIDDL", 36, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, "lateX", 5, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, "!", 1, NULL), GGU_OK);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
	assert_int_equal(b.n, ggu_writer_file_bytes(w));
	assert_int_equal(head.n, ggu_writer_header_bytes(w));
	assert_memory_equal(b.p, head.p, head.n);
	f = open_bytes(&b);
	assert_string_equal(ggu_file_tensor(f, 0)->name, "late");
	assert_string_equal(ggu_file_in_data_order(f, 0)->name, "empty");
	assert_string_equal(ggu_file_in_data_order(f, 1)->name, "early");
	assert_int_equal(ggu_file_find(f, "behind")->offset, 288);
	data = b.p + ggu_file_data_offset(f, 0);
	assert_memory_equal(data + 64, "abc", 4);
	assert_memory_equal(data + 128, "MIDDLE-", 7);
	assert_memory_equal(data + 256, "lateX\0", 6);
	assert_int_equal(data[288], '!');
	for (int i = 0; i < 64; i++)
		assert_int_equal(data[i], 0);
	ggu_close(f);
	ggu_writer_free(w);
	ggu_meta_free(m);
	free(b.p);
	free(head.p);
}

static void refuses_overlap(void **state)
{
	struct ggu_memory b = { 0 };
	struct ggu_sink to = ggu_sink_memory(&b);
	struct ggu_error e;
	struct ggu_writer *w;

	(void)state;
	assert_int_equal(ggu_writer_new(&w, NULL, NULL), GGU_OK);
	add(w, "b", 32, 32);
	add(w, "a", 33, 0);
	assert_int_equal(ggu_writer_header(w, &to, &e), GGU_ERR_FORMAT);
	assert_int_equal(e.rule, GGU_RULE_OVERLAP);
	assert_string_equal(e.where, "b");
	assert_int_equal(ggu_writer_begin_sink(w, &to, NULL), GGU_ERR_FORMAT);
	assert_int_equal(b.n, 0);
	ggu_writer_free(w);
}

/* A sink that fails after it has taken so many bytes. */
static enum ggu_status narrow(void *ctx, const void *p, size_t n, struct ggu_error *err)
{
	size_t *left = ctx;

	(void)p;
	if (n > *left)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "full");
	*left -= n;
	return GGU_OK;
}

static void tells_of_a_sink_that_fails(void **state)
{
	static char data[5000000];    /* more than the writer holds back */
	const size_t whole = sizeof data + 96;
	struct ggu_error e;

	(void)state;
	for (size_t room = 0; room <= whole; room += room < 200 ? 1 : 99991) {
		size_t left = room;
		struct ggu_sink to = { narrow, &left };
		struct ggu_writer *w;
		enum ggu_status s;
		assert_int_equal(ggu_writer_new(&w, NULL, NULL), GGU_OK);
		add(w, "x", sizeof data, 0);
		s = ggu_writer_begin_sink(w, &to, &e);
		for (size_t at = 0; !s && at < sizeof data; at += sizeof data/50)
			s = ggu_writer_data(w, data + at, sizeof data/50, &e);
		if (!s)
			s = ggu_writer_end(w, &e);
		assert_int_equal(s, room < ggu_writer_file_bytes(w) ? GGU_ERR_RANGE : GGU_OK);
		if (s) {
			assert_string_equal(e.what, "full");
			assert_int_equal(ggu_writer_data(w, data, 1, &e), GGU_ERR_STATE);
		}
		ggu_writer_free(w);
	}
}

/* ---- metadata ---- */

/* A sink that holds each piece against the size of large pages. */
enum { LARGE = 2 << 20 };
struct pieces { size_t bytes, n, uneven; };
static enum ggu_status measure(void *ctx, const void *p, size_t n, struct ggu_error *err)
{
	struct pieces *s = ctx;
	(void)p, (void)err;
	if (s->bytes % LARGE) s->uneven++;      /* the one before was not the last */
	s->bytes += n;
	s->n++;
	return GGU_OK;
}
static void writes_whole_large_pages(void **state)
{
	static const size_t some[] = { 1, 4095, 69156, LARGE - 1, LARGE, LARGE + 1, 3*LARGE };
	const size_t bytes = 9*(size_t)LARGE + 32;
	unsigned char *p = calloc(1, 3*(size_t)LARGE);
	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < sizeof some/sizeof *some; i++) {
		struct ggu_writer *w;
		struct pieces got = { 0 };
		const struct ggu_sink to = { measure, &got };
		assert_int_equal(ggu_writer_new(&w, NULL, NULL), GGU_OK);
		add(w, "w", bytes, 0);
		assert_int_equal(ggu_writer_begin_sink(w, &to, NULL), GGU_OK);
		for (size_t at = 0, n; at < bytes; at += n) {
			n = bytes - at < some[i] ? bytes - at : some[i];
			if (some[i] == 1 && at >= 100) n = bytes - at < LARGE ? bytes - at : LARGE;
			assert_int_equal(ggu_writer_data(w, p, n, NULL), GGU_OK);
		}
		assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
		assert_int_equal(got.bytes, ggu_writer_file_bytes(w));
		assert_int_equal(got.uneven, 0);
		assert_true(got.n <= bytes/LARGE + 1);
		ggu_writer_free(w);
	}
	free(p);
}

static void copies_and_renames(void **state)
{
	struct ggu_meta *m = ggu_meta_new(), *copy;
	struct ggu_str strs[] = { { "x", 1 }, { "y", 1 } };
	char key[16];
	uint64_t v;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		snprintf(key, sizeof key, "k%u", i);
		assert_int_equal(ggu_meta_set_uint(m, key, GGU_U16, i), GGU_OK);
	}
	assert_int_equal(ggu_meta_set_strs(m, "list", strs, 2), GGU_OK);
	assert_int_equal(ggu_meta_copy(&copy, m), GGU_OK);
	assert_int_equal(ggu_meta_rename(m, "k7", "seven"), GGU_OK);
	assert_int_equal(ggu_meta_rename(m, "k7", "eight"), GGU_ERR_MISSING);
	assert_int_equal(ggu_meta_rename(m, "k8", "seven"), GGU_ERR_STATE);
	assert_int_equal(ggu_meta_rename(m, "k8", "k8"), GGU_OK);
	assert_int_equal(ggu_meta_rename(m, "k8", ""), GGU_ERR_RANGE);
	assert_string_equal(ggu_kv_key(ggu_meta_at(m, 7)).p, "seven");
	assert_true(ggu_meta_uint(m, "seven", &v) && v == 7);
	assert_null(ggu_meta_find(m, "k7"));
	assert_true(ggu_meta_uint(m, "k299", &v) && v == 299);
	ggu_meta_free(m);
	assert_int_equal(ggu_meta_count(copy), 301);
	assert_true(ggu_meta_uint(copy, "k7", &v) && v == 7);
	assert_int_equal(ggu_kv_n(ggu_meta_find(copy, "list")), 2);
	ggu_meta_free(copy);
}

static void sets_nested_arrays(void **state)
{
	struct ggu_meta *m = ggu_meta_new(), *parts = ggu_meta_new();
	struct ggu_memory b = { 0 };
	struct ggu_sink to = ggu_sink_memory(&b);
	const struct ggu_kv *items[2];
	struct ggu_writer *w;
	struct ggu_file *f;
	uint64_t v;
	char key[2] = "a";

	(void)state;
	assert_int_equal(ggu_meta_set_array(parts, "a", GGU_U8, "\1\2", 2), GGU_OK);
	assert_int_equal(ggu_meta_set_array(parts, "n", GGU_U8, "\3", 1), GGU_OK);
	assert_int_equal(ggu_meta_set_bool(parts, "scalar", true), GGU_OK);
	items[0] = ggu_meta_find(parts, "a");
	items[1] = ggu_meta_find(parts, "n");
	assert_int_equal(ggu_meta_set_arrays(m, "nested", items, 2), GGU_OK);
	assert_int_equal(ggu_meta_set_arrays(m, "none", items, 0), GGU_OK);
	items[1] = ggu_meta_find(parts, "scalar");
	assert_int_equal(ggu_meta_set_arrays(m, "bad", items, 2), GGU_ERR_TYPE);
	for (int depth = 2; depth <= 8; depth++) {      /* b holds a, c holds b, ... */
		items[0] = ggu_meta_find(parts, key);
		key[0]++;
		assert_int_equal(ggu_meta_set_arrays(parts, key, items, 1), GGU_OK);
	}
	items[0] = ggu_meta_find(parts, key);
	assert_int_equal(ggu_meta_set_arrays(parts, "deep", items, 1), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_kv(m, items[0]), GGU_OK);
	ggu_meta_free(parts);
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	assert_int_equal(ggu_writer_begin_sink(w, &to, NULL), GGU_OK);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
	ggu_writer_free(w);
	ggu_meta_free(m);
	f = open_bytes(&b);
	m = NULL;
	assert_true(ggu_kv_uint(ggu_kv_sub(ggu_meta_find(ggu_file_meta(f), "nested"), 0), 1, &v) && v == 2);
	assert_int_equal(ggu_kv_n(ggu_meta_find(ggu_file_meta(f), "none")), 0);
	assert_non_null(ggu_meta_find(ggu_file_meta(f), key));
	ggu_close(f);
	free(b.p);
}

static void setters_fail_alike(void **state)
{
	static const unsigned char bools[] = { 0, 1, 2 };
	struct ggu_meta *m = ggu_meta_new();
	uint64_t v;
	double x;

	(void)state;
	assert_int_equal(ggu_meta_set_uint(m, "k", GGU_U8, 7), GGU_OK);
	assert_int_equal(ggu_meta_set_uint(m, "k", GGU_U8, 256), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_uint(m, "k", GGU_I64, UINT64_MAX), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_int(m, "k", GGU_I8, 128), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_int(m, "k", GGU_U64, -1), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_float(m, "k", GGU_F32, 1e39), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_array(m, "k", GGU_BOOL, bools, 3), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_array(m, "k", GGU_BOOL, bools, 2), GGU_OK);
	assert_int_equal(ggu_meta_set_uint(m, "k", GGU_U8, 7), GGU_OK);
	for (enum ggu_kv_type t = GGU_U8; t < GGU_KV_TYPE_COUNT; t++) {
		bool integer = t <= GGU_I32 || t == GGU_U64 || t == GGU_I64, real = t == GGU_F32 || t == GGU_F64;
		assert_int_equal(ggu_meta_set_uint(m, "u", t, 1), integer ? GGU_OK : GGU_ERR_TYPE);
		assert_int_equal(ggu_meta_set_int(m, "i", t, 1), integer ? GGU_OK : GGU_ERR_TYPE);
		if (!integer)
			assert_int_equal(ggu_meta_set_int(m, "i", t, -1), GGU_ERR_TYPE);
		assert_int_equal(ggu_meta_set_float(m, "f", t, 1), real ? GGU_OK : GGU_ERR_TYPE);
	}
	assert_int_equal(ggu_meta_set_float(m, "f", GGU_F32, -FLT_MAX), GGU_OK);
	assert_int_equal(ggu_meta_set_float(m, "f", GGU_F32, 0x1.fffffefffffffp127), GGU_OK);
	assert_true(ggu_meta_float(m, "f", &x) && x == FLT_MAX);
	assert_int_equal(ggu_meta_set_float(m, "f", GGU_F32, 0x1.ffffffp127), GGU_ERR_RANGE);
	assert_int_equal(ggu_meta_set_float(m, "f", GGU_F32, (double)INFINITY), GGU_OK);
	assert_true(ggu_meta_float(m, "f", &x) && isinf(x));
	assert_true(ggu_meta_uint(m, "k", &v) && v == 7);
	ggu_meta_free(m);
}

static void errors_keep_the_end_of_a_path(void **state)
{
	struct ggu_error e = { .code = GGU_OK };
	char path[400];

	(void)state;
	memset(path, 'd', sizeof path);
	strcpy(path + sizeof path - 12, "/model.gguf");
	ggu_error_file(&e, path);
	assert_int_equal(strlen(e.file), sizeof e.file - 1);
	assert_memory_equal(e.file, "...d", 4);
	assert_string_equal(e.file + strlen(e.file) - 11, "/model.gguf");
	path[sizeof e.file - 1] = 0;
	ggu_error_file(&e, path);
	assert_string_equal(e.file, path);
	ggu_error_file(NULL, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fails_after_too_much_data), cmocka_unit_test(keeps_offsets_and_order),
		cmocka_unit_test(refuses_overlap),
			cmocka_unit_test(tells_of_a_sink_that_fails), cmocka_unit_test(writes_whole_large_pages),
		cmocka_unit_test(copies_and_renames), cmocka_unit_test(sets_nested_arrays),
			cmocka_unit_test(setters_fail_alike),
		cmocka_unit_test(errors_keep_the_end_of_a_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
