/* SPDX-License-Identifier: MIT
 * test_view.c - strided views against the same rearrangement written as loops, read as a whole and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../convert/view.h"
#include "../lib/scratch.h"

/* One tensor of 16-bit numbers 0, 1, 2, ... with the shape asked for. */
static char dir[SCRATCH_PATH];
static struct checkpoint *open_shape(const char *shape, int n)
{
	char path[SCRATCH_FILE], head[200];
	struct checkpoint *c = NULL;
	struct ggu_error err;
	FILE *f;
	uint64_t len = (uint64_t)snprintf(head, sizeof head,
		"{\"t\":{\"dtype\":\"I16\",\"shape\":[%s],\"data_offsets\":[0,%d]}}", shape, 2*n);
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	f = fopen(path, "wb");
	assert_non_null(f);
	for (int k = 0; k < 8; k++) putc((int)(len >> 8*k & 255), f);
	fputs(head, f);
	for (int k = 0; k < n; k++) { putc(k & 255, f); putc(k >> 8 & 255, f); }
	fclose(f);
	assert_int_equal(checkpoint_open(&c, dir, &err), GGU_OK);
	unlink(path);
	return c;
}

struct step { const char *name; double arg[4]; size_t n; };
static void check(const char *shape, int n, const struct step *steps, const int16_t *want, size_t n_want)
{
	struct checkpoint *c = open_shape(shape, n);
	struct view v;
	struct ggu_error err;
	int16_t *got = calloc(n_want + 1, 2);
	view_of(&v, checkpoint_find(c, "t"));
	for (; steps->name; steps++) assert_null(view_apply(&v, steps->name, steps->arg, steps->n));
	view_coalesce(&v);
	assert_int_equal(view_count(&v), n_want);
	for (uint64_t piece = view_unit(&v); piece <= n_want; piece += view_unit(&v)) {
		memset(got, 255, n_want*2);
		for (uint64_t e = 0; e < n_want; e += piece) {
			uint64_t m = n_want - e < piece ? n_want - e : piece;
			void *work = malloc(view_work_bytes(&v, m) + 1);
			assert_int_equal(view_read(&v, c, e, m, got + e, work, &err), GGU_OK);
			free(work);
		}
		assert_memory_equal(got, want, n_want*2);
	}
	free(got);
	checkpoint_close(c);
}

static void permutes_heads(void **state)
{
	int16_t want[24*5], bias[24];
	(void)state;
	for (int h = 0; h < 3; h++) for (int d = 0; d < 4; d++) for (int half = 0; half < 2; half++) {
		bias[h*8 + d*2 + half] = (int16_t)(h*8 + half*4 + d);
		for (int j = 0; j < 5; j++) want[(h*8 + d*2 + half)*5 + j] = (int16_t)((h*8 + half*4 + d)*5 + j);
	}
	check("24, 5", 120, (struct step[]){ { "permute", { 3 }, 1 }, { 0 } }, want, 120);
	check("24", 24, (struct step[]){ { "permute", { 3 }, 1 }, { 0 } }, bias, 24);
}

static void transposes(void **state)
{
	int16_t want[7*11], batch[3*4*5];
	(void)state;
	for (int r = 0; r < 11; r++) for (int j = 0; j < 7; j++) want[r*7 + j] = (int16_t)(j*11 + r);
	check("7, 11", 77, (struct step[]){ { "transpose", { 0 }, 0 }, { 0 } }, want, 77);
	check("7, 11", 77, (struct step[]){ { "linear", { 0 }, 0 }, { 0 } }, want, 77);
	for (int e = 0; e < 3; e++)
		for (int r = 0; r < 4; r++)
			for (int j = 0; j < 5; j++) batch[(e*4 + r)*5 + j] = (int16_t)((e*5 + j)*4 + r);
	check("3, 5, 4", 60, (struct step[]){ { "swap", { 1, 2 }, 2 }, { 0 } }, batch, 60);
}

/* gate and up columns that alternate, stored as [expert][in][2 ff]: the up half as [expert][ff][in] */
static void takes_every_second(void **state)
{
	int16_t want[2*6*5], rows[2*5*6];
	(void)state;
	for (int e = 0; e < 2; e++) for (int f = 0; f < 6; f++) for (int i = 0; i < 5; i++) {
		want[(e*6 + f)*5 + i] = (int16_t)((e*5 + i)*12 + 2*f + 1);
		rows[(e*5 + i)*6 + f] = (int16_t)((e*5 + i)*12 + 2*f + 1);
	}
	check("2, 5, 12", 120, (struct step[]){ { "reshape", { 2, 5, -1, 2 }, 4 }, { "take", { 3, 1, 1 }, 3 },
		{ "squeeze", { 0 }, 0 }, { "swap", { -1, -2 }, 2 }, { 0 } }, want, 60);
	check("2, 5, 12", 120, (struct step[]){ { "reshape", { 2, 5, -1, 2 }, 4 }, { "take", { -1, 1, 1 }, 3 },
		{ 0 } }, rows, 60);
}

/* q of rows that are ordered head by head: q, k, v */
static void splits_fused_heads(void **state)
{
	int16_t want[2*4*3];
	(void)state;
	for (int h = 0; h < 2; h++)
		for (int d = 0; d < 4; d++)
			for (int j = 0; j < 3; j++) want[(h*4 + d)*3 + j] = (int16_t)((h*12 + 4 + d)*3 + j);
	check("24, 3", 72, (struct step[]){ { "reshape", { 2, 3, 4, 3 }, 4 }, { "take", { 1, 1, 1 }, 3 },
		{ "reshape", { 8, 3 }, 2 }, { 0 } }, want, 24);
}

/* Strides as torch has them: with gaps, with rows that repeat or overlap, with more elements than memory should
 * hold. */
static void reads_any_strides(void **state)
{
	static const struct { unsigned n; uint64_t shape[4], stride[4]; } all[] = {
		{ 2, { 7, 11 }, { 1, 7 } }, { 2, { 7, 11 }, { 13, 1 } }, { 2, { 7, 11 }, { 23, 2 } },
		{ 2, { 7, 11 }, { 0, 1 } },
		{ 2, { 7, 11 }, { 1, 0 } }, { 2, { 7, 11 }, { 0, 0 } }, { 2, { 7, 11 }, { 1, 1 } }, { 1, { 9 }, { 3 } },
		{ 3, { 3, 4, 5 }, { 20, 0, 1 } }, { 3, { 3, 4, 5 }, { 1, 0, 3 } }, { 3, { 3, 4, 5 }, { 1, 3, 12 } },
		{ 3, { 3, 1, 5 }, { 5, 1, 1 } }, { 4, { 2, 3, 2, 3 }, { 5, 2, 0, 1 } }, { 2, { 2, 3 }, { 1, 70000 } },
		{ 1, { 3 }, { 70000 } }, { 3, { 2, 1025, 2049 }, { 1, 2, 2 } },
	};
	struct checkpoint *c = open_shape("150000", 150000);
	(void)state;
	for (size_t k = 0; k < sizeof all/sizeof *all; k++) {
		struct source_tensor t = *checkpoint_find(c, "t");
		struct view v;
		struct ggu_error err;
		uint64_t step;
		t.n_dims = all[k].n;
		t.n_weights = 1;
		for (unsigned d = 0; d < t.n_dims; d++) {
			t.shape[d] = all[k].shape[d];
			t.stride[d] = all[k].stride[d];
			t.n_weights *= t.shape[d];
		}
		view_of(&v, &t);
		view_coalesce(&v);
		assert_int_equal(view_count(&v), t.n_weights);
		step = 1000 - 1000%view_unit(&v) + view_unit(&v);
		for (uint64_t from = 0; from < t.n_weights; from += step) {
			uint64_t n = t.n_weights - from < step ? t.n_weights - from : step;
			int16_t *got = malloc(n*2);
			void *work = malloc(view_work_bytes(&v, n) + 1);
			assert_true(view_work_bytes(&v, n) < 1 << 20);
			assert_int_equal(view_read(&v, c, from, n, got, work, &err), GGU_OK);
			for (uint64_t e = from; e < from + n; e++) {
				uint64_t at = 0, left = e;
				for (unsigned d = t.n_dims; d-- > 0; left /= t.shape[d])
					at += left % t.shape[d]*t.stride[d];
				if (got[e - from] != (int16_t)at) fail_msg("strides %zu, element %u", k, (unsigned)e);
			}
			free(got);
			free(work);
		}
	}
	checkpoint_close(c);
}

static void says_what_is_wrong(void **state)
{
	struct checkpoint *c = open_shape("24, 5", 120);
	static const struct step bad[] = { { "permute", { 5 }, 1 }, { "permute", { 0 }, 1 },
		{ "permute", { 1, 2 }, 2 }, { "reshape", { 7, -1 }, 2 }, { "reshape", { 24, 6 }, 2 },
		{ "reshape", { 0 }, 0 }, { "swap", { 0, 2 }, 2 }, { "take", { 0, 20, 5 }, 3 },
		{ "take", { 0, -1, 1 }, 3 }, { "twist", { 0 }, 0 }, { "reshape", { -1, -1 }, 2 },
		{ "reshape", { 1e300, 1 }, 2 }, { "reshape", { 5, 24 }, 2 }, { "reshape", { 6, 20 }, 2 },
		{ "reshape", { 5, 2, 12 }, 3 } };
	struct view v;
	(void)state;
	for (size_t i = 0; i < sizeof bad/sizeof *bad; i++) {
		view_of(&v, checkpoint_find(c, "t"));
		assert_non_null(view_apply(&v, bad[i].name, bad[i].arg, bad[i].n));
	}
	view_of(&v, checkpoint_find(c, "t"));
	assert_null(view_apply(&v, "transpose", NULL, 0));
	assert_null(view_apply(&v, "reshape", (double[]){ 120 }, 1));
	assert_string_equal(view_apply(&v, "take", (double[]){ 0, 0, 1 }, 3),
		"cannot follow a reshape that joined dimensions");
	/* as many elements, but rows of 5 have no place there: the tensor is not what the description takes it for */
	view_of(&v, checkpoint_find(c, "t"));
	assert_string_equal(view_apply(&v, "reshape", (double[]){ 2, 5, 12 }, 3),
		"cuts across the tensor's dimensions");
	assert_null(view_apply(&v, "reshape", (double[]){ 4, 1, 6, 1, 5, 1 }, 6));
	assert_null(view_apply(&v, "reshape", (double[]){ 1, 24, 5 }, 3));
	checkpoint_close(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(permutes_heads), cmocka_unit_test(transposes),
		cmocka_unit_test(takes_every_second),
		cmocka_unit_test(splits_fused_heads), cmocka_unit_test(reads_any_strides),
		cmocka_unit_test(says_what_is_wrong) };
	int bad;
	if (!scratch_folder(dir)) return 2;
	bad = cmocka_run_group_tests_name("view", tests, NULL, NULL);
	rmdir(dir);
	return bad;
}
