/* SPDX-License-Identifier: MIT
 * remake.c - see remake.h. The table of the new file follows from shapes and types. Its data is the work of recode.h,
 * for which this file looks up importances and, by factors.h, what error feedback needs. */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "../libgguf/split_key.h"
#include "../libgguf/text.h"
#include "factors.h"
#include "remake.h"

/* ---- importances ---- */

bool remake_is_weighed(const struct remake *r, size_t i)
{
	uint32_t type = r->choice[i].type;
	return r->t[i]->type != type && ggu_type_info(type)->kind == GGU_KIND_BLOCK && type != GGU_TYPE_Q8_0;
}
/* Finds the importances of tensor i, if it uses any. */
static bool find(const struct remake *r, size_t i, size_t *n_in, size_t *n_mat)
{
	const struct ggu_importance *m = r->importance;
	return m && remake_is_weighed(r, i) && m->find(m->ctx, r->t[i]->name, n_in, n_mat);
}
/* Do importances of these sizes suit a tensor: those of each of its matrices, a single one's, or those of all as one,
 * as the old form of importance matrices has them? */
static bool suits(const struct ggu_tensor *t, size_t n_in, size_t n_mat)
{
	const uint64_t all = t->ne[2]*t->ne[3];
	return n_in == t->ne[0] ? n_mat == 1 || n_mat == all : n_mat == 1 && n_in == t->ne[0]*all;
}
static enum ggu_status check_types(const struct remake *r, size_t i, struct ggu_error *err)
{
	const struct ggu_tensor *t = r->t[i];
	uint32_t from = r->from ? r->from[i] : t->type, to = r->choice[i].type;
	uint64_t bytes;
	if (from != to && !quant_can_decode(from))
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, t->name, "type %s cannot be decoded",
			ggu_type_info(from)->name);
	if (from != to && !quant_can_encode(to))
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, t->name, "type %s cannot be encoded",
			ggu_type_info(to)->name);
	if (!ggu_type_bytes(to, t->ne[0], &bytes))
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, t->name,
			"rows of %llu weight%s are not a whole number of %s blocks",
			(unsigned long long)t->ne[0], text_s(t->ne[0]), ggu_type_info(to)->name);
	return GGU_OK;
}
enum ggu_status remake_check(const struct remake *r, bool *lacks, struct ggu_error *err)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct ggu_tensor *t = r->t[i];
		enum ggu_status s = check_types(r, i, err);
		size_t n_in, n_mat;
		bool found = find(r, i, &n_in, &n_mat);
		if (s != GGU_OK) return s;
		if (found && !suits(t, n_in, n_mat))
			return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, t->name,
				"%zu column%s of %zu matri%s, the model's tensor %llu of %llu",
				n_in, text_s(n_in), n_mat, n_mat == 1 ? "x" : "ces", (unsigned long long)t->ne[0],
				(unsigned long long)(t->ne[2]*t->ne[3]));
		/* the embedding is looked up, not multiplied, so no matrix has it */
		bool none = r->importance && !found && remake_is_weighed(r, i)
			&& strcmp(t->name, "token_embd.weight") != 0;
		if (none && quant_needs_importance(r->choice[i].type) && !recipe_needs_no_importance(t->name))
			return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, t->name, "needs importances to become %s",
				ggu_type_info(r->choice[i].type)->name);
		if (lacks) lacks[i] = none;
	}
	return GGU_OK;
}

/* ---- the new header ---- */

enum ggu_status remake_meta(const struct remake *r, const struct ggu_meta *from, uint32_t file_type,
	struct ggu_meta **to, struct ggu_error *err)
{
	/* for a copy with exceptions, the properties of the exceptions */
	bool blocks = file_type != RECIPE_KEEP, weighed = blocks;
	struct ggu_meta *m = ggu_meta_new();
	enum ggu_status s = m ? GGU_OK : GGU_ERR_NOMEM;
	for (size_t i = 0; i < r->n; i++) {
		weighed |= remake_is_weighed(r, i);
		blocks |= r->t[i]->type != r->choice[i].type &&
			ggu_type_info(r->choice[i].type)->kind == GGU_KIND_BLOCK;
	}
	for (size_t i = 0; s == GGU_OK && i < ggu_meta_count(from); i++) {
		const struct ggu_kv *kv = ggu_meta_at(from, i);
		const char *key = ggu_kv_key(kv).p;
		/* keys about shards do not apply to one file, nor those about an older matrix to this one */
		bool old = split_key(key) ||
			(r->importance && weighed && text_starts(key, "quantize.imatrix."));
		if (!old) s = ggu_meta_set_kv(m, kv);
	}
	if (s == GGU_OK && blocks) s = ggu_meta_set_uint(m, "general.quantization_version", GGU_U32, 2);
	if (s == GGU_OK && file_type != RECIPE_KEEP) s = ggu_meta_set_uint(m, "general.file_type", GGU_U32, file_type);
	if (s != GGU_OK) {
		ggu_meta_free(m);
		return ggu_fail(err, s, GGU_NO_OFFSET, "", "metadata: %s", ggu_status_name(s));
	}
	*to = m;
	return GGU_OK;
}

enum ggu_status remake_writer(const struct remake *r, const struct ggu_meta *meta, struct ggu_writer **to,
	struct ggu_error *err)
{
	struct ggu_writer *w;
	enum ggu_status s = ggu_writer_new(&w, meta, err);
	if (s != GGU_OK) return s;
	for (size_t i = 0; s == GGU_OK && i < r->n; i++)
		s = ggu_writer_add(w, r->t[i]->name, r->t[i]->n_dims, r->t[i]->ne, r->choice[i].type, err);
	if (s == GGU_OK) *to = w;
	else ggu_writer_free(w);
	return s;
}

/* ---- the data: what the belt of recode.h works for ---- */

struct run {
	const struct remake *r;
	struct ggu_writer *w;
	struct factors *factors;        /* or NULL */
};
struct weights { size_t n_unseen; float w[]; };         /* of a tensor, [n_mat][n_in] */

static enum ggu_status begin(void *ctx, size_t i, struct recode_tensor *t, struct ggu_error *err)
{
	const struct remake *r = ((struct run *)ctx)->r;
	const struct ggu_importance *m = r->importance;
	struct weights *x;
	size_t n_in, n_mat;
	*t = (struct recode_tensor){ .name = r->t[i]->name, .from = r->from ? r->from[i] : r->t[i]->type,
		.to = r->choice[i].type, .ne = r->t[i]->ne };
	if (!find(r, i, &n_in, &n_mat)) return GGU_OK;
	x = n_mat && n_in < SIZE_MAX/16/n_mat ? malloc(sizeof *x + n_in*n_mat*sizeof *x->w) : NULL;
	if (!x) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, t->name, "out of memory");
	x->n_unseen = 0;
	for (size_t k = 0; k < n_mat; k++)
		if (!m->get(m->ctx, t->name, k, x->w + k*n_in)) x->n_unseen++;
	t->importance = x->w;
	t->n_mat = (size_t)(n_in*n_mat/t->ne[0]);
	x->n_unseen *= t->n_mat/n_mat;
	t->user = x;
	return GGU_OK;
}
static enum ggu_status factor(void *ctx, size_t i, size_t mat, struct quant_feedback **q, struct ggu_error *err)
{
	struct factors *f = ((struct run *)ctx)->factors;
	return f ? factors_get(f, i, mat, q, err) : GGU_OK;
}
static enum ggu_status read_from(void *ctx, struct recode_piece *p, struct ggu_error *err)
{
	const struct remake *r = ((struct run *)ctx)->r;
	return r->read(r->read_ctx, p, err);
}
static enum ggu_status finish(void *ctx, struct recode_piece *p, struct ggu_error *err)
{
	const struct remake *r = ((struct run *)ctx)->r;
	return r->finish(r->read_ctx, p, err);
}
static enum ggu_status write_to(void *ctx, const void *p, size_t n, struct ggu_error *err)
{
	return ggu_writer_data(((struct run *)ctx)->w, p, n, err);
}
static void end(void *ctx, size_t i, const struct recode_tensor *t, const struct recode_result *got)
{
	const struct remake *r = ((struct run *)ctx)->r;
	struct weights *x = t->user;
	bool measured = got && r->measure && t->from != t->to;
	double error = !measured ? -1 : got->norm > 0 ? got->error/got->norm : 0;
	if (got && r->done) r->done(r->done_ctx, i, got, error, x ? x->n_unseen : 0);
	free(x);
}

enum ggu_status remake_write(const struct remake *r, struct ggu_writer *w, const struct ggu_sink *to,
	struct ggu_pool *pool, struct ggu_error *err)
{
	struct run run = { .r = r, .w = w };
	struct recode_job job = {
		.n = r->n, .effort = r->effort, .objective = r->objective, .measure = r->measure,
		.keep_non_finite = r->keep_non_finite,
		.read_anywhere = r->read_anywhere, .ctx = &run, .begin = begin, .factor = factor, .read = read_from,
		.finish = r->finish ? finish : NULL, .write = write_to, .end = end,
	};
	enum ggu_status s = ggu_writer_begin_sink(w, to, err);
	if (s == GGU_OK && r->covariance) s = factors_new(&run.factors, r, ggu_pool_size(pool), err);
	if (s == GGU_OK) s = recode(pool, &job, err);
	factors_free(run.factors);
	return s == GGU_OK ? ggu_writer_end(w, err) : s;
}
