/* SPDX-License-Identifier: MIT
 * ggu_quant.c - what libggu offers of this folder: quant.h, recipe.h and remake.h under installed names. */
#include <pthread.h>
#include <stdlib.h>
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "ggu_quant.h"
#include "remake.h"

static void select_once(void)
{
	quant_select(NULL, NULL);
}
/* The fastest instance; all give the same bits. Comes before anything that looks at which one is in use, for another
 * thread may be choosing it. */
static void select_instance(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, select_once);
}

bool ggu_can_decode(uint32_t type)
{
	select_instance();
	return quant_can_decode(type);
}
bool ggu_can_encode(uint32_t type) { return quant_can_encode(type); }
bool ggu_needs_importance(uint32_t type) { return quant_needs_importance(type); }

static enum ggu_status refuse(uint32_t type, const char *what, struct ggu_error *err)
{
	const struct ggu_type_info *info = ggu_type_info(type);
	return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "type %u (%s) cannot be %s", type,
		info ? info->name : "unknown", what);
}
static enum ggu_status whole_blocks(uint32_t type, size_t n, struct ggu_error *err)
{
	uint32_t block = ggu_type_info(type)->block_weights;
	if (n % block == 0) return GGU_OK;
	return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "%zu weight%s not whole blocks of %u", n,
		n == 1 ? " is" : "s are", block);
}
enum ggu_status ggu_decode(uint32_t type, const void *from, float *to, size_t n, struct ggu_error *err)
{
	enum ggu_status s;
	select_instance();
	if (!quant_can_decode(type)) return refuse(type, "decoded", err);
	s = whole_blocks(type, n, err);
	return s == GGU_OK ? quant_decode(type, from, to, n) : s;
}
enum ggu_status ggu_encode(uint32_t type, const float *x, const float *importance, size_t rows, size_t cols,
	int effort, void *to, struct ggu_error *err)
{
	const struct quant_objective usual = quant_objective_default(type, importance != NULL);
	float *weights = NULL;
	enum ggu_status s;
	select_instance();
	if (!quant_can_encode(type)) return refuse(type, "made", err);
	s = whole_blocks(type, cols, err);
	if (s != GGU_OK || !rows || !cols) return s;
	if (importance) {
		weights = cols < SIZE_MAX/sizeof *weights ? malloc(cols*sizeof *weights) : NULL;
		if (!weights) return ggu_no_memory(err);
		quant_weigh(&usual, importance, cols, weights);
	}
	s = quant_encode(type, NULL, x, weights, rows, cols, effort ? effort : QUANT_EFFORT_DEFAULT, to);
	free(weights);
	return s;
}

const char *ggu_recipe_name(size_t i) { return recipe_at(i) ? recipe_name(recipe_at(i)) : NULL; }
const char *ggu_recipe_summary(size_t i) { return recipe_at(i) ? recipe_summary(recipe_at(i)) : NULL; }

/* ---- models ---- */

struct run {
	const struct ggu_file *f;
	const struct ggu_quantize_options *o;
	size_t n;
	const struct ggu_tensor **t;            /* [n], in the order of their data */
	struct recipe_choice *choice;
	uint64_t done, all;                     /* bytes */
};

static uint32_t choose(void *ctx, const char *name)
{
	const struct run *r = ctx;
	uint32_t type = r->o->choose(r->o->ctx, ggu_file_find(r->f, name));
	return type == UINT32_MAX ? RECIPE_KEEP : type;
}
static enum ggu_status read_from(void *ctx, struct recode_piece *p, struct ggu_error *err)
{
	const struct run *r = ctx;
	return ggu_read(r->f, r->t[p->i], p->at, p->to, p->n, err);
}
static void done(void *ctx, size_t i, const struct recode_result *result, double error, size_t n_unseen)
{
	struct run *r = ctx;
	(void)result; (void)error; (void)n_unseen;
	r->done += r->t[i]->bytes;
	if (r->o->progress) r->o->progress(r->o->ctx, r->t[i], r->choice[i].type, r->done, r->all);
}
static enum ggu_status check_again(const struct run *r, struct ggu_error *err)
{
	for (size_t i = 0; i < r->n && !(r->o->flags & GGU_QUANTIZE_AGAIN); i++)
		if (r->t[i]->type != r->choice[i].type && ggu_type_info(r->t[i]->type)->kind == GGU_KIND_BLOCK)
			return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, r->t[i]->name,
				"is already quantized (%s)", ggu_type_info(r->t[i]->type)->name);
	return GGU_OK;
}
static enum ggu_status plan(struct run *r, const struct recipe *recipe, struct ggu_error *err)
{
	struct recipe_options o = {
		.pure = r->o->flags & GGU_QUANTIZE_PURE, .output_type = -1, .token_embd_type = -1,
		.have_importance = r->o->importance != NULL,
		.override = r->o->choose ? choose : NULL, .override_ctx = r,
	};
	r->t = calloc(r->n + 1, sizeof *r->t);
	r->choice = calloc(r->n + 1, sizeof *r->choice);
	if (!r->t || !r->choice) return ggu_no_memory(err);
	for (size_t i = 0; i < r->n; i++) {
		r->t[i] = ggu_file_in_data_order(r->f, i);
		r->all += r->t[i]->bytes;
	}
	return recipe_choose(recipe, &o, ggu_file_meta(r->f), r->t, r->n, r->choice, err);
}
static enum ggu_status write_all(struct run *r, const struct recipe *recipe, const struct ggu_sink *to,
	struct ggu_error *err)
{
	const struct remake re = {
		.n = r->n, .t = r->t, .choice = r->choice, .read = read_from, .read_ctx = r,
		.read_anywhere = ggu_file_seekable(r->f),
		.importance = r->o->importance, .effort = r->o->effort ? r->o->effort : QUANT_EFFORT_DEFAULT,
		.keep_non_finite = r->o->flags & GGU_QUANTIZE_NON_FINITE, .done = done, .done_ctx = r,
	};
	struct ggu_meta *meta = NULL;
	struct ggu_writer *w = NULL;
	struct ggu_pool *pool = NULL;
	enum ggu_status s = remake_check(&re, NULL, err);
	if (s == GGU_OK) s = remake_meta(&re, ggu_file_meta(r->f), recipe_file_type(recipe), &meta, err);
	if (s == GGU_OK) s = remake_writer(&re, meta, &w, err);
	if (s == GGU_OK) pool = ggu_pool_new(r->o->n_threads);
	if (s == GGU_OK && !pool) s = ggu_no_memory(err);
	if (s == GGU_OK) s = remake_write(&re, w, to, pool, err);
	ggu_pool_free(pool);
	ggu_writer_free(w);
	ggu_meta_free(meta);
	return s;
}
enum ggu_status ggu_quantize(const struct ggu_file *f, const char *recipe, const struct ggu_quantize_options *options,
	const struct ggu_sink *to, struct ggu_error *err)
{
	static const struct ggu_quantize_options usual;
	struct run r = { .f = f, .o = options ? options : &usual, .n = ggu_file_n_tensors(f) };
	const struct recipe *found = recipe_find(recipe);
	enum ggu_status s;
	if (!found) return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, recipe, "no such recipe");
	if (ggu_file_is_cut(f))
		return ggu_fail(err, GGU_ERR_TRUNCATED, GGU_NO_OFFSET, "", "the header is truncated");
	select_instance();
	s = plan(&r, found, err);
	if (s == GGU_OK) s = check_again(&r, err);
	if (s == GGU_OK) s = write_all(&r, found, to, err);
	free(r.t);
	free(r.choice);
	return s;
}
