/* SPDX-License-Identifier: MIT
 * test_gguf_forms.c - the forms a GGUF comes in: version 2, big-endian, nested arrays, shards; and editing metadata. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../libgguf/ggu.h"
#include "../lib/scratch.h"

/* A file made by hand, in either byte order. */
struct bytes { unsigned char p[4096]; size_t n; bool big; };
static void put(struct bytes *b, uint64_t v, size_t width)
{
	for (size_t i = 0; i < width; i++)
		b->p[b->n++] = (unsigned char)(v >> 8*(b->big ? width - 1 - i : i));
}
static void put_str(struct bytes *b, const char *s)
{
	put(b, strlen(s), 8);
	while (*s)
		b->p[b->n++] = (unsigned char)*s++;
}
static void put_key(struct bytes *b, const char *key, enum ggu_kv_type t)
{
	put_str(b, key);
	put(b, t, 4);
}
static void put_array(struct bytes *b, enum ggu_kv_type t, size_t n)
{
	put(b, t, 4);
	put(b, n, 8);
}

/* One block of q4_K, which begins with two halves; an array of each width; [[1, 2], ["x"], [[3]]]. */
static void build(struct bytes *b, uint32_t version)
{
	memcpy(b->p, "GGUF", 4);
	b->n = 4;
	put(b, version, 4);
	put(b, 2, 8);
	put(b, 5, 8);
	put_key(b, "u16", GGU_ARRAY);
	put_array(b, GGU_U16, 2);
	put(b, 0x0102, 2), put(b, 0x0304, 2);
	put_key(b, "f64", GGU_F64);
	put(b, 0x3ff8000000000000, 8);
	put_key(b, "i64", GGU_ARRAY);
	put_array(b, GGU_I64, 1);
	put(b, (uint64_t)-2, 8);
	put_key(b, "str", GGU_STRING);
	put_str(b, "text");
	put_key(b, "nested", GGU_ARRAY);
	put_array(b, GGU_ARRAY, 3);
	put_array(b, GGU_U16, 2);
	put(b, 1, 2), put(b, 2, 2);
	put_array(b, GGU_STRING, 1);
	put_str(b, "x");
	put_array(b, GGU_ARRAY, 1);
	put_array(b, GGU_U8, 1);
	put(b, 3, 1);
	put_str(b, "q");
	put(b, 2, 4), put(b, 256, 8), put(b, 1, 8), put(b, GGU_TYPE_Q4_K, 4), put(b, 0, 8);
	put_str(b, "w");
	put(b, 1, 4), put(b, 3, 8), put(b, GGU_TYPE_I32, 4), put(b, 160, 8);
	b->n = (b->n + 31) & ~(size_t)31;
	put(b, 0x3c00, 2), put(b, 0x1234, 2);
	for (int i = 0; i < 140; i++)
		put(b, (uint64_t)i, 1);
	b->n += 16;
	put(b, 1, 4), put(b, 0x01020304, 4), put(b, (uint64_t)-1, 4);
}

static void check_nested(const struct ggu_kv *kv)
{
	const struct ggu_kv *sub;
	struct ggu_str s;
	uint64_t u = 0;

	assert_non_null(kv);
	assert_int_equal(ggu_kv_type(kv), GGU_ARRAY);
	assert_int_equal(ggu_kv_item_type(kv), GGU_ARRAY);
	assert_int_equal(ggu_kv_n(kv), 3);
	assert_null(ggu_kv_data(kv));
	assert_false(ggu_kv_uint(kv, 0, &u));
	sub = ggu_kv_sub(kv, 0);
	assert_true(ggu_kv_uint(sub, 1, &u) && u == 2);
	assert_null(ggu_kv_sub(sub, 0));
	assert_true(ggu_kv_str(ggu_kv_sub(kv, 1), 0, &s) && s.n == 1 && *s.p == 'x');
	sub = ggu_kv_sub(ggu_kv_sub(kv, 2), 0);
	assert_true(ggu_kv_uint(sub, 0, &u) && u == 3);
	assert_null(ggu_kv_sub(kv, 3));
}

static void check_form(uint32_t version, bool big)
{
	static const unsigned char q[4] = { 0x00, 0x3c, 0x34, 0x12 }, w[12] = { 1, 0, 0, 0, 4, 3, 2, 1, 255, 255, 255,
		255 };
	struct bytes b = { .big = big };
	unsigned char data[144];
	struct ggu_error e;
	struct ggu_file *f;
	const void *p;
	double d = 0;
	int64_t i = 0;

	build(&b, version);
	if (ggu_open_memory(&f, b.p, b.n, NULL, &e))
		fail_msg("byte %llu: %s: %s", (unsigned long long)e.offset, e.where, e.what);
	assert_int_equal(ggu_file_version(f), version);
	assert_int_equal(ggu_file_big_endian(f, 0), big);
	assert_int_equal(((const uint16_t *)ggu_kv_data(ggu_meta_find(ggu_file_meta(f), "u16")))[1], 0x0304);
	assert_true(ggu_meta_float(ggu_file_meta(f), "f64", &d) && d == 1.5);
	assert_true(ggu_kv_int(ggu_meta_find(ggu_file_meta(f), "i64"), 0, &i) && i == -2);
	check_nested(ggu_meta_find(ggu_file_meta(f), "nested"));
	assert_int_equal(ggu_read(f, ggu_file_find(f, "q"), 0, data, 144, &e), GGU_OK);
	assert_memory_equal(data, q, 4);
	for (int k = 0; k < 140; k++)
		assert_int_equal(data[4 + k], k);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "w"), 0, data, 12, &e), GGU_OK);
	assert_memory_equal(data, w, 12);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "w"), 4, data, 9, &e), GGU_ERR_RANGE);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "q"), 1, data, 1, &e), big ? GGU_ERR_RANGE : GGU_OK);
	assert_int_equal(ggu_map(f, ggu_file_find(f, "w"), &p, &e), big ? GGU_ERR_UNSUPPORTED : GGU_OK);
	ggu_close(f);
}

static void version_2(void **state) { (void)state; check_form(2, false); }
static void version_3(void **state) { (void)state; check_form(3, false); }
static void big_endian(void **state) { (void)state; check_form(3, true); }
static void big_endian_2(void **state) { (void)state; check_form(2, true); }

static void metadata_is_edited(void **state)
{
	struct bytes b = { .n = 0 };
	struct ggu_meta *m = ggu_meta_new(), *copy = ggu_meta_new();
	struct ggu_file *f;
	uint64_t u = 0;
	char key[16];

	(void)state;
	build(&b, 3);
	assert_int_equal(ggu_open_memory(&f, b.p, b.n, NULL, NULL), GGU_OK);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(ggu_meta_set_kv(m, ggu_meta_at(ggu_file_meta(f), i)), GGU_OK);
	ggu_close(f);                           /* copies outlive the original */
	memset(b.p, 0xee, sizeof b.p);
	check_nested(ggu_meta_find(m, "nested"));
	assert_int_equal(ggu_meta_set_kv(copy, ggu_meta_find(m, "nested")), GGU_OK);
	ggu_meta_free(m);
	check_nested(ggu_meta_find(copy, "nested"));
	/* replaced in place, whatever the type was */
	assert_int_equal(ggu_meta_set_uint(copy, "nested", GGU_U8, 9), GGU_OK);
	assert_int_equal(ggu_meta_count(copy), 1);
	assert_true(ggu_meta_uint(copy, "nested", &u) && u == 9);
	assert_int_equal(ggu_meta_set_uint(copy, "", GGU_U8, 9), GGU_ERR_RANGE);
	/* many are added and removed, in order */
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "k%u", i);
		assert_int_equal(ggu_meta_set_uint(copy, key, GGU_U32, i), GGU_OK);
	}
	for (unsigned i = 0; i < 1000; i += 2) {
		snprintf(key, sizeof key, "k%u", i);
		assert_true(ggu_meta_remove(copy, key));
		assert_false(ggu_meta_remove(copy, key));
	}
	assert_int_equal(ggu_meta_count(copy), 501);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "k%u", i);
		assert_int_equal(ggu_meta_uint(copy, key, &u), i % 2);
		if (i % 2) {
			assert_int_equal(u, i);
			assert_string_equal(ggu_kv_key(ggu_meta_at(copy, 1 + i/2)).p, key);
		}
	}
	assert_int_equal(ggu_meta_set_uint(copy, "k0", GGU_U32, 7), GGU_OK);
	assert_string_equal(ggu_kv_key(ggu_meta_at(copy, 501)).p, "k0");
	ggu_meta_free(copy);
}

static char dir[SCRATCH_PATH];

/* Shard `no` of 3, with tensor "t<no>" of one f32. */
static void write_shard(unsigned no)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;
	char path[SCRATCH_FILE], name[8];
	float v = (float)no;
	int fd;

	snprintf(path, sizeof path, "%s/m-%05u-of-00003.gguf", dir, no + 1);
	snprintf(name, sizeof name, "t%u", no);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	if (!no)
		ggu_meta_set_str(m, "general.architecture", "llama", 5);
	ggu_meta_set_uint(m, "split.no", GGU_U16, no);
	ggu_meta_set_uint(m, "split.count", GGU_U16, 3);
	ggu_meta_set_int(m, "split.tensors.count", GGU_I32, 3);
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, name, 1, (uint64_t[]){ 1 }, GGU_TYPE_F32, NULL), GGU_OK);
	assert_int_equal(ggu_writer_begin(w, fd, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, &v, 4, NULL), GGU_OK);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
	ggu_writer_free(w);
	ggu_meta_free(m);
	close(fd);
}

static void shards_are_one_file(void **state)
{
	char path[SCRATCH_FILE];
	struct ggu_file *f;

	(void)state;
	assert_true(scratch_folder(dir));
	for (unsigned i = 0; i < 3; i++)
		write_shard(i);
	for (unsigned named = 1; named <= 3; named++) {         /* whichever is named */
		snprintf(path, sizeof path, "%s/m-%05u-of-00003.gguf", dir, named);
		assert_int_equal(ggu_open(&f, path, NULL), GGU_OK);
		assert_int_equal(ggu_file_n_sources(f), 3);
		assert_int_equal(ggu_file_n_tensors(f), 3);
		assert_int_equal(ggu_meta_count(ggu_file_meta(f)), 1);
		for (unsigned i = 0; i < 3; i++) {
			const struct ggu_tensor *t = ggu_file_tensor(f, i);
			const void *p;
			float v = -1;
			assert_int_equal(t->source, i);
			assert_int_equal(ggu_read(f, t, 0, &v, 4, NULL), GGU_OK);
			assert_true(v == (float)i);
			assert_int_equal(ggu_map(f, t, &p, NULL), GGU_OK);
			assert_memory_equal(p, &v, 4);
			assert_ptr_equal(ggu_file_in_data_order(f, i), t);
		}
		ggu_close(f);
	}
	for (unsigned i = 1; i <= 3; i++) {
		snprintf(path, sizeof path, "%s/m-%05u-of-00003.gguf", dir, i);
		unlink(path);
		if (i == 1)
			assert_int_equal(ggu_open(&f, path, NULL), GGU_ERR_IO);
	}
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2), cmocka_unit_test(version_3), cmocka_unit_test(big_endian),
			cmocka_unit_test(big_endian_2),
		cmocka_unit_test(metadata_is_edited), cmocka_unit_test(shards_are_one_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
