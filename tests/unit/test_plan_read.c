/* SPDX-License-Identifier: MIT
 * test_plan_read.c - pieces of coded tensors that are read by one thread and finished by others, in any order, through
 * views of every kind, against elements that are computed one by one. The matrix has more elements than a strip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../convert/plan.h"
#include "../../libgguf/pool.h"
#include "../lib/scratch.h"

enum { ROWS = 1536, COLUMNS = 1500, N = ROWS*COLUMNS, BLOCK = 300, ACROSS = COLUMNS/BLOCK };
enum { N_SCALES = (ROWS + BLOCK - 1)/BLOCK*ACROSS, PIECES = 8 };

static char dir[SCRATCH_PATH];
static struct checkpoint *source;
static int8_t code_of(uint64_t i) { return (int8_t)(i*7%251 + i/1000%3 - 120); }
static float weight_of(uint64_t i)
{
	return code_of(i)*(float)(1 + i/COLUMNS/BLOCK*ACROSS + i%COLUMNS/BLOCK);
}
static int open_folder(void **state)
{
	const char *said = "{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [300, 300]}}";
	struct config config = { .root = json_loads(said, 0, NULL) };
	char path[SCRATCH_FILE], head[400];
	const int len = snprintf(head, sizeof head,
		"{\"t\": {\"dtype\": \"I8\", \"shape\": [%d, %d], \"data_offsets\": [0, %d]}, "
		"\"t_scale_inv\": {\"dtype\": \"F32\", \"shape\": [%d, %d], \"data_offsets\": [%d, %d]}}",
		ROWS, COLUMNS, N, N_SCALES/ACROSS, ACROSS, N, N + 4*N_SCALES);
	FILE *f;
	(void)state;
	if (!scratch_folder(dir)) return 1;
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	f = fopen(path, "wb");
	if (!f) return 1;
	for (int k = 0; k < 8; k++) putc(k < 2 ? len >> 8*k & 255 : 0, f);
	fputs(head, f);
	for (uint64_t i = 0; i < N; i++) putc((unsigned char)code_of(i), f);
	for (int k = 1; k <= N_SCALES; k++) {
		const float x = (float)k;
		fwrite(&x, sizeof x, 1, f);
	}
	fclose(f);
	config.text = config.root;
	const bool bad = checkpoint_open(&source, dir, NULL) || coded_open(source, &config, NULL);
	json_decref(config.root);
	return bad;
}
static int close_folder(void **state)
{
	char path[SCRATCH_FILE];
	(void)state;
	checkpoint_close(source);
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	return unlink(path) || rmdir(dir);
}

/* The number in the file of each element of a view, in order */
static uint64_t position(const struct view *v, uint64_t e)
{
	uint64_t p = v->offset;
	for (unsigned i = v->n; i-- > 0; e /= v->dim[i]) p += e%v->dim[i]*v->stride[i];
	return p;
}
static void finish(void *ctx, size_t task, int worker)
{
	struct recode_piece *p = (struct recode_piece *)ctx + (PIECES - 1 - task);
	(void)worker;
	if (plan_finish(p, NULL)) memset(p->to, 255, p->n);
}
/* Two parts: a view and the same again. Pieces have `some` elements. */
static void check(const struct view *view, uint64_t some)
{
	struct view part[2] = { *view, *view };
	char name[] = "made";
	struct plan_tensor t = { .name = name, .n_dims = 2, .part = part, .n_parts = 2, .from = GGU_TYPE_F32 };
	struct plan p = { .source = source, .v = &t, .n = 1 };
	struct ggu_pool *pool = ggu_pool_new(3);
	struct recode_piece piece[PIECES];
	const uint64_t half = view_count(view), n = 2*half;
	float *got = malloc(n*sizeof *got);
	bool left = false;
	assert_true(got && pool);
	view_coalesce(part);
	view_coalesce(part + 1);
	memset(got, 255, n*sizeof *got);
	for (uint64_t at = 0; at < n;) {
		memset(piece, 0, sizeof piece);
		for (size_t i = 0; i < PIECES && at < n; i++, at += some) {
			if (some > n - at) some = n - at;
			piece[i] = (struct recode_piece){ 0, at*sizeof *got, got + at, some*sizeof *got, NULL };
			assert_int_equal(plan_fetch(&p, piece + i, NULL), GGU_OK);
			left |= piece[i].later != NULL;
		}
		ggu_pool_run(pool, PIECES, finish, piece);
	}
	assert_true(left);
	for (uint64_t e = 0; e < n; e++) {
		float want = weight_of(position(view, e%half));
		for (const struct view_op *o = view->op; o < view->op + view->n_ops; o++)
			want = o->op == '+' ? want + o->x : want*o->x;
		if (memcmp(got + e, &want, sizeof want)) fail_msg("element %llu: %g, expected %g",
			(unsigned long long)e, (double)got[e], (double)want);
	}
	plan_codes_let_go(p.codes);
	free(p.strip);
	free(p.work);
	free(p.raw);
	free(got);
	ggu_pool_free(pool);
}
static struct view whole(void)
{
	struct view v;
	view_of(&v, checkpoint_find(source, "t"));
	return v;
}
static void apply(struct view *v, const char *name, double a, double b, double c)
{
	const size_t n = !strcmp(name, "transpose") ? 0 : !strcmp(name, "take") ? 3 : 1;
	assert_null(view_apply(v, name, (double[]){ a, b, c }, n));
}

static void rows_are_finished_in_any_order(void **state)
{
	struct view v = whole();
	(void)state;
	check(&v, 65536);
	check(&v, 40*COLUMNS);
	apply(&v, "permute", 6, 0, 0);
	check(&v, 65536);
}
static void columns_are_finished_in_any_order(void **state)
{
	struct view v = whole();
	(void)state;
	apply(&v, "transpose", 0, 0, 0);
	check(&v, 40*ROWS);
	check(&v, 65537);
	apply(&v, "permute", 5, 0, 0);
	check(&v, 40*ROWS);             /* not whole units of two rows each */
	check(&v, 41*ROWS);
}
static void parts_of_a_tensor_are_taken_and_changed(void **state)
{
	struct view v = whole();
	(void)state;
	apply(&v, "take", 0, 700, 801);
	apply(&v, "take", 1, 299, 1001);
	apply(&v, "mul", 0.37, 0, 0);
	apply(&v, "add", 1.5, 0, 0);
	check(&v, 50000);
	apply(&v, "transpose", 0, 0, 0);
	check(&v, 50000);
}
/* The rest of what was read is freed with the plan, whatever became of the piece. */
static void a_piece_past_the_end_leaves_nothing(void **state)
{
	struct view v = whole();
	char name[] = "made";
	struct plan_tensor t = { .name = name, .n_dims = 2, .part = &v, .n_parts = 1, .from = GGU_TYPE_F32 };
	struct plan p = { .source = source, .v = &t, .n = 1 };
	float to[20];
	struct recode_piece piece = { 0, (N - 10)*sizeof *to, to, sizeof to, NULL };
	(void)state;
	view_coalesce(&v);
	assert_int_equal(plan_fetch(&p, &piece, NULL), GGU_ERR_RANGE);
	assert_null(piece.later);
	plan_codes_let_go(p.codes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_finished_in_any_order),
		cmocka_unit_test(columns_are_finished_in_any_order),
		cmocka_unit_test(parts_of_a_tensor_are_taken_and_changed),
		cmocka_unit_test(a_piece_past_the_end_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, open_folder, close_folder);
}
