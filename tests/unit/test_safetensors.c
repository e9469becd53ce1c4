/* SPDX-License-Identifier: MIT
 * test_safetensors.c - checkpoint folders: what is read, and how broken ones are refused. Each case is a header as
 * text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../convert/checkpoint.h"
#include "../lib/scratch.h"

static char dir[SCRATCH_PATH];

static void put(const char *name, const void *head, size_t n, size_t data_bytes, uint64_t say)
{
	char path[SCRATCH_FILE];
	FILE *f;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	for (int k = 0; k < 8 && say != UINT64_MAX; k++) putc((int)(say >> 8*k & 255), f);
	fwrite(head, 1, n, f);
	for (size_t k = 0; k < data_bytes; k++) putc((int)(k & 255), f);
	fclose(f);
}
static void drop(const char *name)
{
	char path[SCRATCH_FILE];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	unlink(path);
}

static const struct { const char *head; size_t data; long offset; const char *what; } broken[] = {
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, 60, "'}'" },
	{ "[1,2]", 0, 8, "not a JSON object" },
	{ "{\"a\":7}", 0, 9, "not a JSON object" },
	{ "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, 9, "no dtype" },
	{ "{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9, 70, "bytes at the end: 1" },
	{ "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, 9, "no shape" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, 9, "shape[0] is not a count" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, 9, "shape[0] is not a count" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", 8, 9, "too large" },
	{ "{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 8, 9, "too large" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}", 8, 37,
		"too big integer" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8, 9, "9 dimensions" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, 9, "data_offsets is not" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, 9, "data_offsets is not" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, 9, "end before they begin" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, 9,
		"data ends at byte 8, after the file's 7" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, 9, "the shape needs 12" },
	{ "{\"a\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"I8\",\"shape\":[4],"
		"\"data_offsets\":[3,7]}}", 7, 61, "overlaps" },
	{ "{\"a\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"I8\",\"shape\":[4],"
		"\"data_offsets\":[5,9]}}", 9, 61, "bytes before the data: 1" },
	{ "{\"a\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 9, 65, "bytes at the end: 5" },
	{ "{\"a\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"I8\",\"shape\":[4],"
		"\"data_offsets\":[4,8]}}", 8, 61, "duplicate" },
	{ "{\"a\xff\":1}", 0, 9, "decode" },
};

static void refuses_broken_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof broken/sizeof *broken; i++) {
		struct checkpoint *c = NULL;
		struct ggu_error err = { 0 };
		put("model.safetensors", broken[i].head, strlen(broken[i].head), broken[i].data,
			strlen(broken[i].head));
		if (!checkpoint_open(&c, dir, &err)) fail_msg("accepted: %s", broken[i].head);
		assert_null(c);
		assert_string_equal(err.file, "model.safetensors");
		if (!strstr(err.what, broken[i].what) || (long)err.offset != broken[i].offset)
			fail_msg("%s: byte %ld: %s", broken[i].head, (long)err.offset, err.what);
	}
	drop("model.safetensors");
}

static void refuses_broken_files(void **state)
{
	struct checkpoint *c = NULL;
	struct ggu_error err = { 0 };
	char deep[20000];
	(void)state;
	put("model.safetensors", "abc", 3, 0, UINT64_MAX);
	assert_int_equal(checkpoint_open(&c, dir, &err), GGU_ERR_TRUNCATED);
	put("model.safetensors", "{}", 2, 0, 3);
	assert_int_equal(checkpoint_open(&c, dir, &err), GGU_ERR_FORMAT);
	assert_non_null(strstr(err.what, "extends past the end of the file"));
	assert_int_equal(err.offset, 0);
	put("model.safetensors", "{}", 2, 0, UINT64_MAX - 1);
	assert_int_equal(checkpoint_open(&c, dir, &err), GGU_ERR_FORMAT);
	memset(deep, '[', sizeof deep);
	put("model.safetensors", deep, sizeof deep, 0, sizeof deep);
	assert_int_equal(checkpoint_open(&c, dir, &err), GGU_ERR_FORMAT);
	drop("model.safetensors");
	assert_int_equal(checkpoint_open(&c, dir, &err), GGU_ERR_MISSING);
	assert_int_not_equal(checkpoint_open(&c, "/nonexistent", &err), GGU_OK);
}

static const char one[] = "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"I8\",\"shape\":[2,3],"
	"\"data_offsets\":[4,10]},\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
	"\"e\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[10,10]}}   ";

static void reads_tensors(void **state)
{
	struct checkpoint *c;
	struct ggu_error err = { 0 };
	const struct source_tensor *t;
	unsigned char b[6];
	(void)state;
	put("model.safetensors", one, strlen(one), 10, strlen(one));
	assert_int_equal(checkpoint_open(&c, dir, &err), GGU_OK);
	assert_int_equal(checkpoint_count(c), 3);
	assert_string_equal(checkpoint_at(c, 0)->name, "a");
	t = checkpoint_find(c, "b");
	assert_int_equal(t->shape[1], 3);
	assert_int_equal(checkpoint_read(c, t, 1, b, 5, &err), GGU_OK);
	assert_memory_equal(b, "\5\6\7\10\11", 5);
	assert_int_equal(checkpoint_read(c, t, 2, b, 5, &err), GGU_ERR_RANGE);
	assert_null(checkpoint_find(c, "c"));
	checkpoint_close(c);
	drop("model.safetensors");
}

static void reads_shards(void **state)
{
	static const char a[] = "{\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
		b[] = "{\"b\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[0,1]}}";
	static const struct { const char *index; enum ggu_status want; const char *where; } t[] = {
		{ "{\"weight_map\":{\"a\":\"x-1.safetensors\",\"b\":\"x-2.safetensors\"}}", GGU_OK, "" },
		{ "{\"weight_map\":{\"a\":\"x-1.safetensors\",\"b\":\"x-1.safetensors\"}}", GGU_ERR_MISSING,
			"weight_map.b" },
		{ "{\"weight_map\":{\"a\":\"x-2.safetensors\",\"b\":\"x-1.safetensors\"}}", GGU_ERR_MISSING,
			"weight_map.a" },
		{ "{\"weight_map\":{\"a\":\"../x-1.safetensors\"}}", GGU_ERR_FORMAT, "weight_map.a" },
		{ "{\"weight_map\":{\"a\":7}}", GGU_ERR_FORMAT, "weight_map.a" },
		{ "{\"weight_map\":[]}", GGU_ERR_FORMAT, "weight_map" },
		{ "{\"weight_map\":{\"a\":\"x-3.safetensors\"}}", GGU_ERR_MISSING, "" },
		{ "{\"weight_map\":{\"a\":\"x-1.safetensors\",\"c\":\"x-4.safetensors\"}}", GGU_ERR_FORMAT, "a" },
	};
	(void)state;
	put("x-1.safetensors", a, strlen(a), 1, strlen(a));
	put("x-2.safetensors", b, strlen(b), 1, strlen(b));
	put("x-4.safetensors", a, strlen(a), 1, strlen(a));
	for (size_t i = 0; i < sizeof t/sizeof *t; i++) {
		struct checkpoint *c;
		struct ggu_error err = { 0 };
		put("model.safetensors.index.json", t[i].index, strlen(t[i].index), 0, UINT64_MAX);
		if (checkpoint_open(&c, dir, &err) != t[i].want || strcmp(err.where, t[i].where))
			fail_msg("%s: %s: %s", t[i].index, err.where, err.what);
		if (t[i].want) continue;
		assert_int_equal(checkpoint_count(c), 2);
		assert_int_equal(checkpoint_find(c, "b")->n_dims, 0);
		checkpoint_close(c);
	}
	drop("x-1.safetensors");
	drop("x-2.safetensors");
	drop("x-4.safetensors");
	drop("model.safetensors.index.json");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_broken_headers), cmocka_unit_test(refuses_broken_files),
			cmocka_unit_test(reads_tensors), cmocka_unit_test(reads_shards),
	};
	int bad;
	if (!scratch_folder(dir)) return 2;
	bad = cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
	rmdir(dir);
	return bad;
}
