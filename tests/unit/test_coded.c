/* SPDX-License-Identifier: MIT
 * test_coded.c - for which codes each scale is: shapes of codes and of scales, with and without a size of blocks in
 * config.json, against loops over matrices, rows and columns. tests/cli/coded.t has the formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../convert/coded.h"
#include "../lib/scratch.h"

static char dir[SCRATCH_PATH];
enum { MOST = 400 };
/* Codes are bytes 0, 1, 2, ..., scales 1, 2, 3, ... */
static void write_folder(const char *shape, int n, const char *scale_shape, int n_scales)
{
	char path[SCRATCH_FILE], head[400];
	const int len = snprintf(head, sizeof head,
		"{\"t\": {\"dtype\": \"I8\", \"shape\": [%s], \"data_offsets\": [0, %d]}, "
		"\"t_scale_inv\": {\"dtype\": \"F32\", \"shape\": [%s], \"data_offsets\": [%d, %d]}}",
		shape, n, scale_shape, n, n + 4*n_scales);
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	for (int k = 0; k < 8; k++) putc(k < 2 ? len >> 8*k & 255 : 0, f);
	fputs(head, f);
	for (int k = 0; k < n; k++) putc(k%100, f);
	for (int k = 1; k <= n_scales; k++) {
		const float x = (float)k;
		fwrite(&x, 4, 1, f);
	}
	fclose(f);
}
static struct checkpoint *open_folder(const char *said, enum ggu_status want)
{
	struct checkpoint *c = NULL;
	struct ggu_error err = { 0 };
	struct config config = { .root = json_pack("{s: o}", "quantization_config", json_loads(said, 0, NULL)) };
	config.text = config.root;
	assert_true(coded_is(&config));
	assert_int_equal(checkpoint_open(&c, dir, &err), GGU_OK);
	assert_int_equal(coded_open(c, &config, &err), want);
	json_decref(config.root);
	return c;
}
/* Every element, read in pieces of every size: element (m, r, c) has scale m*per_matrix + r/block_rows*across +
 * c/block_columns. */
struct blocks { int matrices, rows, columns, per_matrix, block_rows, block_columns, across; };
static void check(const char *shape, const char *scale_shape, const char *said, struct blocks b)
{
	const int n = b.matrices*b.rows*b.columns, last = (b.per_matrix ? b.matrices - 1 : 0)*b.per_matrix +
		(b.rows - 1)/b.block_rows*b.across + (b.columns - 1)/b.block_columns;
	float want[MOST], got[MOST];
	write_folder(shape, n, scale_shape, last + 1);
	struct checkpoint *c = open_folder(said, GGU_OK);
	assert_int_equal(checkpoint_count(c), 1);
	const struct source_tensor *t = checkpoint_find(c, "t");
	assert_string_equal(t->dtype->name, "F32");
	assert_int_equal(t->n_weights, n);
	for (int m = 0, i = 0; m < b.matrices; m++)
		for (int r = 0; r < b.rows; r++)
			for (int k = 0; k < b.columns; k++, i++)
				want[i] = (float)(i%100)*(float)(1 + m*b.per_matrix + r/b.block_rows*b.across +
					k/b.block_columns);
	for (int piece = 1; piece <= n; piece++) {
		memset(got, 255, sizeof got);
		for (int at = 0; at < n; at += piece)
			assert_int_equal(checkpoint_read(c, t, (uint64_t)at, got + at,
				(size_t)(n - at < piece ? n - at : piece), NULL), GGU_OK);
		assert_memory_equal(got, want, (size_t)n*sizeof *want);
	}
	checkpoint_close(c);
}
static const char plain[] = "{\"quant_method\": \"fp8\"}", told[] =
	"{\"quant_method\": \"fp8\", \"weight_block_size\": [4, 3]}";

static void scales_are_for_a_matrix_a_row_or_a_block(void **state)
{
	(void)state;
	check("6, 8", "", plain, (struct blocks){ 1, 6, 8, 0, 6, 8, 1 });
	check("6, 8", "1", plain, (struct blocks){ 1, 6, 8, 0, 6, 8, 1 });
	check("6, 8", "1, 1", plain, (struct blocks){ 1, 6, 8, 0, 6, 8, 1 });
	check("6, 8", "6", plain, (struct blocks){ 1, 6, 8, 0, 1, 8, 1 });
	check("6, 8", "6, 1", plain, (struct blocks){ 1, 6, 8, 0, 1, 8, 1 });
	check("6, 8", "1, 8", plain, (struct blocks){ 1, 6, 8, 0, 6, 1, 8 });
	check("6, 8", "6, 4", plain, (struct blocks){ 1, 6, 8, 0, 1, 2, 4 });
	check("6, 8", "3, 2", plain, (struct blocks){ 1, 6, 8, 0, 2, 4, 2 });
	check("6, 8", "2, 3", told, (struct blocks){ 1, 6, 8, 0, 4, 3, 3 });
	check("9, 7", "3, 3", told, (struct blocks){ 1, 9, 7, 0, 4, 3, 3 });
	check("12", "", plain, (struct blocks){ 1, 1, 12, 0, 1, 12, 1 });
}
static void matrices_have_scales_of_their_own_or_in_common(void **state)
{
	(void)state;
	check("3, 6, 8", "", plain, (struct blocks){ 3, 6, 8, 0, 6, 8, 1 });
	check("3, 6, 8", "3", plain, (struct blocks){ 3, 6, 8, 1, 6, 8, 1 });
	check("3, 6, 8", "3, 1, 1", plain, (struct blocks){ 3, 6, 8, 1, 6, 8, 1 });
	check("3, 6, 8", "3, 6", plain, (struct blocks){ 3, 6, 8, 6, 1, 8, 1 });
	check("3, 6, 8", "3, 6, 1", plain, (struct blocks){ 3, 6, 8, 6, 1, 8, 1 });
	check("3, 6, 8", "3, 3, 2", plain, (struct blocks){ 3, 6, 8, 6, 2, 4, 2 });
	check("3, 6, 8", "1, 3, 2", plain, (struct blocks){ 3, 6, 8, 0, 2, 4, 2 });
	check("2, 9, 7", "2, 3, 3", told, (struct blocks){ 2, 9, 7, 9, 4, 3, 3 });
}
static void other_shapes_are_refused(void **state)
{
	static const struct { const char *shape; int n; const char *scale_shape; int n_scales; } all[] = {
		{ "6, 8", 48, "4", 4 }, { "6, 8", 48, "8, 6", 48 }, { "6, 8", 48, "6, 9", 54 },
		{ "6, 8", 48, "4, 1", 4 },
		{ "6, 8", 48, "2, 6, 8", 96 }, { "3, 6, 8", 144, "2", 2 }, { "3, 6, 8", 144, "2, 6", 12 },
		{ "3, 6, 8", 144, "2, 3, 2", 12 }, { "3, 6, 8", 144, "6, 8", 48 }, { "12", 12, "5", 5 },
		{ "6, 8", 48, "0", 0 }, { "6, 8", 48, "0, 1", 0 }, { "0, 8", 0, "1", 1 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof all/sizeof *all; i++) {
		write_folder(all[i].shape, all[i].n, all[i].scale_shape, all[i].n_scales);
		checkpoint_close(open_folder(plain, GGU_ERR_FORMAT));
	}
}
static int make_folder(void **state) { (void)state; return !scratch_folder(dir); }
static int remove_folder(void **state)
{
	char path[SCRATCH_FILE];
	(void)state;
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	return unlink(path) || rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scales_are_for_a_matrix_a_row_or_a_block),
		cmocka_unit_test(matrices_have_scales_of_their_own_or_in_common),
		cmocka_unit_test(other_shapes_are_refused),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
