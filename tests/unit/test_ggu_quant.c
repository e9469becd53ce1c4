/* SPDX-License-Identifier: MIT
 * test_ggu_quant.c - rows and whole models quantized through libggu: the bytes are those of quant.h, options are
 * heeded, and what cannot be done is reported as a status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/ggu_quant.h"
#include "../../quant/quant.h"
#include "../../quant/recipe.h"
#include "../lib/skip.h"

enum { ROWS = 8, COLS = 512 };
static float x[ROWS*COLS], importance[COLS];

static int make(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS*COLS; i++)
		x[i] = (float)((int)(i*2654435761u >> 20)%2001 - 1000)/1000;
	for (size_t i = 0; i < COLS; i++)
		importance[i] = (float)(1 + i % 7);
	return 0;
}

static void rows_are_those_of_quant(void **state)
{
	static const uint32_t types[] = { GGU_TYPE_Q4_K, GGU_TYPE_IQ2_XS, GGU_TYPE_Q8_0, GGU_TYPE_F16, GGU_TYPE_MXFP4 };
	static unsigned char a[ROWS*COLS*2], b[ROWS*COLS*2];
	static float back[ROWS*COLS], weights[COLS];

	(void)state;
	for (size_t k = 0; k < sizeof types/sizeof *types; k++) {
		struct quant_objective o = quant_objective_default(types[k], true);
		uint64_t bytes;
		assert_true(ggu_type_bytes(types[k], ROWS*COLS, &bytes));
		quant_weigh(&o, importance, COLS, weights);
		assert_int_equal(ggu_encode(types[k], x, importance, ROWS, COLS, 0, a, NULL), GGU_OK);
		assert_int_equal(quant_encode(types[k], NULL, x, weights, ROWS, COLS, QUANT_EFFORT_DEFAULT, b), GGU_OK);
		assert_memory_equal(a, b, bytes);
		assert_int_equal(ggu_decode(types[k], a, back, ROWS*COLS, NULL), GGU_OK);
		assert_true(fabsf(back[7] - x[7]) < 1);
	}
}

static void *ask_and_decode(void *to)
{
	static const unsigned char blocks[4*18];
	return ggu_can_decode(GGU_TYPE_Q4_0) && ggu_decode(GGU_TYPE_Q4_0, blocks, to, 128, NULL) == GGU_OK ? to : NULL;
}
/* The first calls choose the instruction set, and ThreadSanitizer sees whether all threads wait for that. Run first. */
static void threads_may_begin_together(void **state)
{
	enum { N = 8 };
	static float y[N][128];
	pthread_t thread[N];
	void *got;

	(void)state;
	for (int i = 0; i < N; i++) assert_int_equal(pthread_create(thread + i, NULL, ask_and_decode, y[i]), 0);
	for (int i = 0; i < N; i++) {
		assert_int_equal(pthread_join(thread[i], &got), 0);
		assert_ptr_equal(got, y[i]);
	}
}

static void *encode_every_type(void *effort)
{
	static unsigned char to[4*ROWS*COLS];
	const int e = *(int *)effort;

	for (uint32_t id = 0; id < ggu_type_end(); id++)
		if (ggu_can_encode(id) && ggu_encode(id, x, importance, ROWS, COLS, e, to, NULL)) return NULL;
	return effort;
}
static void encodes_with_the_stack_that_the_header_says(void **state)
{
	pthread_attr_t a;
	pthread_t thread;
	void *got;

	(void)state;
	if (cannot_run(getenv("SANITIZED"), "a sanitizer's frames are larger")) return;
	assert_int_equal(pthread_attr_init(&a), 0);
	assert_int_equal(pthread_attr_setstacksize(&a, 128 << 10), 0);
	for (int effort = 1; effort <= 9; effort += 4) {
		assert_int_equal(pthread_create(&thread, &a, encode_every_type, &effort), 0);
		assert_int_equal(pthread_join(thread, &got), 0);
		assert_ptr_equal(got, &effort);
	}
	pthread_attr_destroy(&a);
}

static void refuses_rows(void **state)
{
	struct ggu_error e;
	float y[64];

	(void)state;
	assert_int_equal(ggu_encode(GGU_TYPE_Q4_K, x, NULL, 1, 100, 0, y, &e), GGU_ERR_RANGE);
	assert_int_equal(ggu_encode(GGU_TYPE_I8, x, NULL, 1, 32, 0, y, &e), GGU_ERR_UNSUPPORTED);
	assert_int_equal(ggu_encode(4, x, NULL, 1, 32, 0, y, &e), GGU_ERR_UNSUPPORTED);
	assert_int_equal(ggu_encode(ggu_type_end(), x, NULL, 1, 32, 0, y, &e), GGU_ERR_UNSUPPORTED);
	assert_int_equal(ggu_decode(GGU_TYPE_Q4_0, x, y, 33, &e), GGU_ERR_RANGE);
	assert_int_equal(ggu_decode(GGU_TYPE_I32, x, y, 32, &e), GGU_ERR_UNSUPPORTED);
}

static void can_decode_and_encode_what_the_header_says(void **state)
{
	(void)state;
	for (uint32_t id = 0; id < ggu_type_end() + 2; id++) {
		const struct ggu_type_info *info = ggu_type_info(id);
		bool can = info && info->kind != GGU_KIND_INT && id != GGU_TYPE_Q8_1 && id != GGU_TYPE_Q8_K;
		assert_int_equal(ggu_can_decode(id), can);
		assert_int_equal(ggu_can_encode(id), can && id != GGU_TYPE_F64);
	}
}

/* the name in upper or lower case, as in ASCII */
static const char *in_case(const char *name, char first, char to[32])
{
	size_t n = strlen(name);

	assert_true(n < 32);
	for (size_t i = 0; i <= n; i++) {
		bool letter = (name[i] | 0x20) >= 'a' && (name[i] | 0x20) <= 'z';
		to[i] = (char)(letter ? (name[i] & 0x1f) + (first & 0x60) : name[i]);
	}
	return to;
}
/* In Turkish, I and i are different letters; where that locale is not installed, this is a test of case alone. */
static void types_and_recipes_are_found_in_any_case_in_turkish_too(void **state)
{
	const char *name;
	char to[32];

	(void)state;
	setlocale(LC_ALL, "tr_TR.UTF-8");
	for (uint32_t id = 0; id < ggu_type_end(); id++) {
		const struct ggu_type_info *info = ggu_type_info(id);
		if (!info) continue;
		assert_ptr_equal(ggu_type_find(in_case(info->name, 'A', to)), info);
		assert_ptr_equal(ggu_type_find(in_case(info->name, 'a', to)), info);
	}
	for (size_t i = 0; (name = ggu_recipe_name(i)); i++) {
		assert_ptr_equal(recipe_find(in_case(name, 'A', to)), recipe_at(i));
		assert_ptr_equal(recipe_find(in_case(name, 'a', to)), recipe_at(i));
	}
	setlocale(LC_ALL, "C");
	assert_null(ggu_type_find("q4_"));
	assert_null(ggu_type_find("q4_00"));
	assert_null(ggu_type_find("q4?0"));
}

/* ---- models ---- */

static struct ggu_file *model(struct ggu_memory *b)
{
	struct ggu_sink to = ggu_sink_memory(b);
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;
	struct ggu_file *f;

	assert_int_equal(ggu_meta_set_str(m, "general.architecture", "llama", 5), GGU_OK);
	assert_int_equal(ggu_meta_set_uint(m, "llama.block_count", GGU_U32, 1), GGU_OK);
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "blk.0.attn_q.weight", 2, (uint64_t[]){ COLS, ROWS }, GGU_TYPE_F32, NULL),
		GGU_OK);
	assert_int_equal(ggu_writer_add(w, "blk.0.ffn_up.weight", 2, (uint64_t[]){ COLS, ROWS }, GGU_TYPE_F32, NULL),
		GGU_OK);
	assert_int_equal(ggu_writer_begin_sink(w, &to, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, x, sizeof x, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, x, sizeof x, NULL), GGU_OK);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
	ggu_writer_free(w);
	ggu_meta_free(m);
	assert_int_equal(ggu_open_memory(&f, b->p, b->n, NULL, NULL), GGU_OK);
	return f;
}

static uint32_t wish(void *ctx, const struct ggu_tensor *t)
{
	(void)ctx;
	return strstr(t->name, "ffn_up") ? GGU_TYPE_Q8_0 : UINT32_MAX;
}
static uint32_t wish_for_none(void *ctx, const struct ggu_tensor *t)
{
	(void)ctx; (void)t;
	return 4;       /* Q4_2, long gone */
}
static void count(void *ctx, const struct ggu_tensor *t, uint32_t type, uint64_t done, uint64_t all)
{
	assert_true(done <= all && all == 2*sizeof x && ggu_type_info(type) && *t->name);
	++*(int *)ctx;
}
static bool find(void *ctx, const char *tensor, size_t *n_in, size_t *n_mat)
{
	*n_in = *(const size_t *)ctx;
	*n_mat = 1;
	return strstr(tensor, "attn_q");
}
static bool get(void *ctx, const char *tensor, size_t matrix, float *to)
{
	(void)tensor;
	assert_int_equal(matrix, 0);
	memcpy(to, importance, *(const size_t *)ctx*sizeof *to);
	return true;
}

static void quantizes_a_model(void **state)
{
	struct ggu_memory in = { 0 }, out = { 0 };
	struct ggu_sink to = ggu_sink_memory(&out);
	struct ggu_file *f = model(&in), *g;
	size_t n_in = COLS;
	struct ggu_importance matrix = { find, get, &n_in };
	int calls = 0;
	struct ggu_quantize_options o = { .n_threads = 2, .importance = &matrix, .choose = wish, .progress = count,
		.ctx = &calls };
	static unsigned char got[ROWS*COLS], want[ROWS*COLS];
	struct ggu_error e;
	uint64_t v;

	(void)state;
	assert_int_equal(ggu_quantize(f, "Q4_K_S", &o, &to, NULL), GGU_OK);
	assert_int_equal(calls, 2);
	assert_int_equal(ggu_open_memory(&g, out.p, out.n, NULL, NULL), GGU_OK);
	assert_int_equal(ggu_file_tensor(g, 0)->type, GGU_TYPE_Q4_K);
	assert_int_equal(ggu_file_tensor(g, 1)->type, GGU_TYPE_Q8_0);
	assert_true(ggu_meta_uint(ggu_file_meta(g), "general.file_type", &v) && v == 14);
	assert_int_equal(ggu_read(g, ggu_file_tensor(g, 0), 0, got, (size_t)ggu_file_tensor(g, 0)->bytes, NULL),
		GGU_OK);
	assert_int_equal(ggu_encode(GGU_TYPE_Q4_K, x, importance, ROWS, COLS, 0, want, NULL), GGU_OK);
	assert_memory_equal(got, want, ggu_file_tensor(g, 0)->bytes);
	out.n = 0;
	assert_int_equal(ggu_quantize(g, "Q5_0", NULL, &to, &e), GGU_ERR_UNSUPPORTED);
	assert_string_equal(e.where, "blk.0.attn_q.weight");
	assert_int_equal(out.n, 0);
	ggu_close(g);
	n_in = COLS/2;
	assert_int_equal(ggu_quantize(f, "Q4_K_S", &o, &to, &e), GGU_ERR_RANGE);
	assert_int_equal(ggu_quantize(f, "Q17", &o, &to, &e), GGU_ERR_MISSING);
	o.choose = wish_for_none;
	assert_int_equal(ggu_quantize(f, "Q4_K_S", &o, &to, &e), GGU_ERR_UNSUPPORTED);
	assert_string_equal(e.what, "there is no tensor type 4");
	assert_int_equal(out.n, 0);
	ggu_close(f);
	free(in.p);
	free(out.p);
}

static void ignore(void *ctx, const struct ggu_error *err) { (void)ctx; (void)err; }
/* A header that ends within its pairs opens where defects are only reported; its tensors are unknown, not none. */
static void refuses_a_header_that_is_cut(void **state)
{
	const struct ggu_open_options lenient = { .defect = ignore };
	struct ggu_memory in = { 0 }, out = { 0 };
	struct ggu_sink to = ggu_sink_memory(&out);
	struct ggu_file *f;
	struct ggu_error e;

	(void)state;
	ggu_close(model(&in));
	assert_int_equal(ggu_open_memory(&f, in.p, 100, &lenient, &e), GGU_OK);
	assert_int_equal(ggu_quantize(f, "Q8_0", NULL, &to, &e), GGU_ERR_TRUNCATED);
	assert_string_equal(e.what, "the header is truncated");
	assert_int_equal(out.n, 0);
	ggu_close(f);
	free(in.p);
	free(out.p);
}

static void recipes_are_listed(void **state)
{
	bool found = false;
	size_t i;

	(void)state;
	for (i = 0; ggu_recipe_name(i); i++) {
		assert_true(*ggu_recipe_summary(i));
		found |= !strcmp(ggu_recipe_name(i), "Q4_K_M");
	}
	assert_true(found);
	assert_null(ggu_recipe_summary(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_may_begin_together),
		cmocka_unit_test(rows_are_those_of_quant),
		cmocka_unit_test(encodes_with_the_stack_that_the_header_says), cmocka_unit_test(refuses_rows),
		cmocka_unit_test(can_decode_and_encode_what_the_header_says),
		cmocka_unit_test(types_and_recipes_are_found_in_any_case_in_turkish_too),
		cmocka_unit_test(quantizes_a_model), cmocka_unit_test(refuses_a_header_that_is_cut),
		cmocka_unit_test(recipes_are_listed),
	};
	return cmocka_run_group_tests(tests, make, NULL);
}
