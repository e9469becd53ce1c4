/* SPDX-License-Identifier: MIT
 * test_defects.c - defects that are reported, each by its rule, instead of refused: all of a file, and those of a
 * header that is cut short anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/ggu.h"

static struct { size_t n; enum ggu_rule rule[64]; } seen;
static void note(void *ctx, const struct ggu_error *err)
{
	assert_ptr_equal(ctx, &seen);
	assert_int_not_equal(err->code, GGU_OK);
	assert_true(*err->what);
	if (seen.n < 64)
		seen.rule[seen.n] = err->rule;
	seen.n++;
}
static const struct ggu_open_options lenient = { .defect = note, .defect_ctx = &seen };

static void put(struct ggu_memory *b, uint64_t v, size_t width)
{
	for (size_t i = 0; i < width; i++) {
		unsigned char c = (unsigned char)(v >> 8*i);
		ggu_sink_memory(b).write(b, &c, 1, NULL);
	}
}
static void put_str(struct ggu_memory *b, const char *s, size_t n)
{
	put(b, n, 8);
	ggu_sink_memory(b).write(b, s, n, NULL);
}
static void put_kv(struct ggu_memory *b, const char *key, size_t n, enum ggu_kv_type t, uint64_t v)
{
	put_str(b, key, n);
	put(b, t, 4);
	put(b, v, ggu_kv_type_bytes(t));
}
static void put_tensor(struct ggu_memory *b, const char *name, uint32_t n_dims, uint64_t ne, uint32_t type,
	uint64_t offset)
{
	put_str(b, name, strlen(name));
	put(b, n_dims, 4);
	for (uint32_t i = 0; i < n_dims; i++)
		put(b, i ? 1 : ne, 8);
	put(b, type, 4);
	put(b, offset, 8);
}

/* A file with a defect of each kind. */
static void put_defects(struct ggu_memory *b)
{
	ggu_sink_memory(b).write(b, "GGUF", 4, NULL);
	put(b, 3, 4);
	put(b, 12, 8);
	put(b, 7, 8);
	put_kv(b, "", 0, GGU_U8, 1);
	put_kv(b, "a\0b", 3, GGU_U8, 1);
	put_kv(b, "bool", 4, GGU_BOOL, 2);
	put_kv(b, "k", 1, GGU_U8, 1);
	put_kv(b, "k", 1, GGU_U8, 2);
	put_str(b, "bools", 5);                /* [[false, 3]] */
	put(b, GGU_ARRAY, 4);
	put(b, GGU_ARRAY, 4);
	put(b, 1, 8);
	put(b, GGU_BOOL, 4);
	put(b, 2, 8);
	put(b, 0x300, 2);
	put_kv(b, "general.alignment", 17, GGU_U32, 12);
	put_tensor(b, "", 1, 4, GGU_TYPE_F32, 0);
	put_tensor(b, "dims", 5, 4, GGU_TYPE_F32, 0);
	put_tensor(b, "block", 1, 33, GGU_TYPE_Q4_0, 0);
	put_tensor(b, "type", 1, 32, 99, 0);
	put_tensor(b, "removed", 1, 32, 4, 0);
	put_tensor(b, "size", 1, UINT64_C(1) << 63, GGU_TYPE_F32, 0);
	put_tensor(b, "good", 1, 4, GGU_TYPE_F32, 0);
	put_tensor(b, "good", 1, 4, GGU_TYPE_F32, 64);
	put_tensor(b, "odd", 1, 1, GGU_TYPE_F32, 33);
	put_tensor(b, "far", 1, 4, GGU_TYPE_F32, 1 << 20);
	put_tensor(b, "farther", 1, 4, GGU_TYPE_F32, UINT64_MAX - 31);
	put_tensor(b, "over", 1, 16, GGU_TYPE_F32, 0);
	for (int i = 0; i < 200; i++)
		put(b, 7, 1);
}
static void reports_every_defect(void **state)
{
	static const enum ggu_rule want[] = {
		GGU_RULE_KEY, GGU_RULE_KEY, GGU_RULE_BOOL, GGU_RULE_KEY_TWICE, GGU_RULE_BOOL, GGU_RULE_ALIGNMENT,
		GGU_RULE_NAME, GGU_RULE_DIMS, GGU_RULE_BLOCK, GGU_RULE_TYPE, GGU_RULE_TYPE, GGU_RULE_SIZE,
			GGU_RULE_NAME_TWICE,
		GGU_RULE_OFFSET, GGU_RULE_DATA, GGU_RULE_DATA, GGU_RULE_OVERLAP, GGU_RULE_OVERLAP,
	};
	struct ggu_memory b = { 0 };
	struct ggu_file *f;
	uint64_t v;
	char to[64];

	(void)state;
	put_defects(&b);
	memset(&seen, 0, sizeof seen);
	assert_int_equal(ggu_open_memory(&f, b.p, b.n, &lenient, NULL), GGU_OK);
	assert_int_equal(seen.n, sizeof want/sizeof *want);
	assert_memory_equal(seen.rule, want, sizeof want);
	assert_false(ggu_file_is_cut(f));
	assert_int_equal(ggu_meta_count(ggu_file_meta(f)), 2);
	assert_true(ggu_meta_uint(ggu_file_meta(f), "k", &v) && v == 1);
	assert_int_equal(ggu_file_alignment(f, 0), 32);
	assert_int_equal(ggu_file_n_tensors(f), 5);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "over"), 0, to, 64, NULL), GGU_OK);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "odd"), 0, to, 4, NULL), GGU_OK);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "far"), 0, to, 4, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "farther"), 0, to, 4, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(ggu_file_data_end(f, 0), UINT64_MAX);
	ggu_close(f);
	assert_int_equal(ggu_open_memory(&f, b.p, b.n, NULL, NULL), GGU_ERR_FORMAT);
	free(b.p);
}

/* Two pairs and three tensors. */
static void put_header(struct ggu_memory *b)
{
	const struct ggu_sink to = ggu_sink_memory(b);
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;

	assert_int_equal(ggu_meta_set_str(m, "general.architecture", "llama", 5), GGU_OK);
	assert_int_equal(ggu_meta_set_uint(m, "general.file_type", GGU_U32, 1), GGU_OK);
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "first", 1, (uint64_t[]){ 3 }, GGU_TYPE_F32, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "q", 2, (uint64_t[]){ 256, 2 }, GGU_TYPE_Q4_K, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "last", 1, (uint64_t[]){ 1 }, GGU_TYPE_F16, NULL), GGU_OK);
	assert_int_equal(ggu_writer_header(w, &to, NULL), GGU_OK);
	ggu_writer_free(w);
	ggu_meta_free(m);
}
static void shows_a_header_that_is_cut(void **state)
{
	const struct ggu_open_options alone = { .flags = GGU_OPEN_HEADER };
	struct ggu_memory whole = { 0 };
	struct ggu_file *f;
	size_t header, n_kv = 0, n_tensors = 0;

	(void)state;
	put_header(&whole);
	assert_int_equal(ggu_open_memory(&f, whole.p, whole.n, &alone, NULL), GGU_OK);
	header = (size_t)ggu_file_header_bytes(f, 0);
	ggu_close(f);
	for (size_t n = 8; n < header; n++) {
		unsigned char *cut = malloc(n), b[12];
		const struct ggu_tensor *t;
		const void *p;
		memcpy(cut, whole.p, n);
		memset(&seen, 0, sizeof seen);
		assert_int_equal(ggu_open_memory(&f, cut, n, &lenient, NULL), GGU_OK);
		assert_true(seen.n && seen.rule[seen.n - 1] == GGU_RULE_CUT);
		assert_true(ggu_file_is_cut(f));
		assert_true(ggu_meta_count(ggu_file_meta(f)) >= n_kv && ggu_file_n_tensors(f) >= n_tensors);
		n_kv = ggu_meta_count(ggu_file_meta(f));
		n_tensors = ggu_file_n_tensors(f);
		t = ggu_file_tensor(f, 0);
		if (t) {
			assert_int_equal(ggu_read(f, t, 0, b, 12, NULL), GGU_ERR_TRUNCATED);
			assert_int_equal(ggu_map(f, t, &p, NULL), GGU_ERR_TRUNCATED);
			assert_ptr_equal(ggu_file_in_data_order(f, 0), t);
		}
		ggu_close(f);
		free(cut);
	}
	assert_int_equal(n_kv, 2);
	assert_int_equal(n_tensors, 2);
	free(whole.p);
}

/* A tensor of 2^63 - 4 bytes whose end wraps around, and whose beginning is the file's. */
static void reads_nothing_before_the_data(void **state)
{
	struct ggu_memory b = { 0 };
	struct ggu_file *f;
	char to[4];

	(void)state;
	ggu_sink_memory(&b).write(&b, "GGUF", 4, NULL);
	put(&b, 3, 4);
	put(&b, 1, 8);
	put(&b, 0, 8);
	put_tensor(&b, "vast", 1, (UINT64_C(1) << 61) - 1, GGU_TYPE_F32, UINT64_MAX - 63);
	memset(&seen, 0, sizeof seen);
	assert_int_equal(ggu_open_memory(&f, b.p, b.n, &lenient, NULL), GGU_OK);
	assert_int_equal(ggu_file_data_offset(f, 0), 64);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "vast"), 0, to, 4, NULL), GGU_ERR_TRUNCATED);
	ggu_close(f);
	free(b.p);
}

static void no_gguf_stays_refused(void **state)
{
	struct ggu_file *f;

	(void)state;
	memset(&seen, 0, sizeof seen);
	assert_int_equal(ggu_open_memory(&f, "GGML\3\0\0\0", 8, &lenient, NULL), GGU_ERR_FORMAT);
	assert_int_equal(ggu_open_memory(&f, "GGUF\7\0\0\0", 8, &lenient, NULL), GGU_ERR_UNSUPPORTED);
	assert_int_equal(ggu_open_memory(&f, "GGUF", 4, &lenient, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(seen.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_every_defect), cmocka_unit_test(shows_a_header_that_is_cut),
		cmocka_unit_test(reads_nothing_before_the_data), cmocka_unit_test(no_gguf_stays_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
