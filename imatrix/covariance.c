/* SPDX-License-Identifier: MIT
 * covariance.c - the sums of x xT over a weight's inputs x, as far as they are kept: blocks on the diagonal, as lower
 * triangles.
 *
 * Weights with the same input share one matrix, which is named after the first of them: a call with the same numbers as
 * the previous one (by shape and a hash of HASHED of its tokens) adds nothing.
 *
 * One token of `every` in a window is used and counts root*root times, the first of them more (imatrix_sample). Tokens
 * count by the size of their inputs, not by its square (imatrix_moderate).
 *
 * Tokens are summed in stretches of TOKENS: the product of a stretch is computed in integers (quant/gram.h) and added
 * to the sum. Fewer tokens are copied and wait for more. Stretches are counted from the beginning of a window, at whose
 * end imatrix_flush is called, so neither batches nor threads change a bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL         /* so that libggu needs no other library */
#include <xxhash.h>
#include "../libgguf/grow.h"
#include "../libgguf/pool.h"
#include "../libgguf/size.h"
#include "../libgguf/try.h"
#include "../libgguf/zeros.h"
#include "../quant/vec.h"
#include "imatrix_internal.h"

enum { TOKENS = GRAM_TOKENS, HASHED = 64 };
/* The least sum of squares that a token's inputs are taken to have, as a share of the median. */
#define SILENT 1e-4f

size_t covariance_floats(size_t n_in, size_t block)
{
	size_t whole, rest, most;
	if (block > n_in) block = n_in;
	if (block == SIZE_MAX || __builtin_mul_overflow(n_in, block + 1, &most)) return SIZE_MAX;
	whole = n_in/block;
	rest = n_in - whole*block;
	return whole*(block*(block + 1)/2) + rest*(rest + 1)/2;
}

void covariance_free(struct covariance *c)
{
	if (!c) return;
	for (size_t m = 0; c->waiting && m < c->n_mat; m++) free(c->waiting[m].x);
	free(c->waiting);
	free(c->name); free(c->sums); free(c->counts);
	free(c);
}
enum ggu_status covariance_new(struct imatrix *im, const struct imatrix_covariance *of, bool empty,
	struct covariance **out, struct ggu_error *err)
{
	const size_t n = covariance_floats(of->n_in, of->block), n_mat = of->n_mat;
	struct covariance *c = calloc(1, sizeof *c), **v = ggu_grow(im->cov, im->n_cov, sizeof *v);
	if (v) im->cov = v;
	if (c) {
		*c = (struct covariance){ .n_in = of->n_in, .n_mat = n_mat, .block = size_least(of->block, of->n_in) };
		c->name = strdup(of->name);
		c->counts = calloc(n_mat, sizeof *c->counts);
		if (!empty && n <= SIZE_MAX/sizeof *c->sums/n_mat) c->sums = ggu_zeros(n*n_mat, sizeof *c->sums);
		/* if pages are read before they are written, the kernel does twice the work */
		if (c->sums) memset(c->sums, 0, n*n_mat*sizeof *c->sums);
	}
	if (!c || !v || !c->name || !c->counts || (!empty && !c->sums)) {
		covariance_free(c);
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, of->name, "out of memory");
	}
	im->cov[im->n_cov++] = *out = c;
	return GGU_OK;
}
struct covariance *covariance_find(const struct imatrix *im, const char *name)
{
	for (size_t i = 0; i < im->n_cov; i++) if (strcmp(im->cov[i]->name, name) == 0) return im->cov[i];
	return NULL;
}

static enum ggu_status load(const struct imatrix *im, const struct covariance *c, size_t mat, float *to,
	struct ggu_error *err)
{
	const size_t n = covariance_floats(c->n_in, c->block);
	enum ggu_status s = GGU_OK;
	if (c->sums) memcpy(to, c->sums + mat*n, n*sizeof *to);
	else s = ggu_read(im->file, c->tensor, (uint64_t)mat*n*sizeof *to, to, n*sizeof *to, err);
	for (size_t i = 0; !s && i < n; i++)
		if (!isfinite(to[i]))
			s = ggu_fail(err, GGU_ERR_FORMAT, c->sums ? GGU_NO_OFFSET : c->tensor->entry, c->name,
				"a covariance is not finite");
	return s;
}
/* Reads sums from their file into memory, as more will be added to them. */
static enum ggu_status own_sums(const struct imatrix *im, struct covariance *c, struct ggu_error *err)
{
	const size_t n = covariance_floats(c->n_in, c->block);
	float *sums;
	enum ggu_status s = GGU_OK;
	if (c->sums) return GGU_OK;
	sums = n <= SIZE_MAX/sizeof *sums/c->n_mat ? ggu_zeros(n*c->n_mat, sizeof *sums) : NULL;
	if (!sums) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, c->name, "out of memory");
	for (size_t m = 0; m < c->n_mat && !s; m++) s = load(im, c, m, sums + m*n, err);
	if (s) free(sums);
	else c->sums = sums;
	return s;
}

/* ---- adding ---- */

static int by_size(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}
void imatrix_moderate(const float *x, size_t stride, size_t n_in, size_t n, float *by)
{
	float size[TOKENS], median;
	for (size_t first = 0; first < n; first += TOKENS) {
		const size_t part = n - first < TOKENS ? n - first : TOKENS;
		for (size_t t = first; t < first + part; t++) by[t] = vec_dot(x + t*stride, x + t*stride, n_in);
		memcpy(size, by + first, part*sizeof *size);
		qsort(size, part, sizeof *size, by_size);
		median = size[part/2];
		for (size_t t = first; t < first + part; t++)
			by[t] = median > 0 ? sqrtf(sqrtf(median/fmaxf(by[t], SILENT*median))) : 1;
	}
}
static size_t every_of(const struct imatrix *im) { return im->every ? im->every : 1; }
static float root_of(const struct imatrix *im) { return im->root > 0 ? im->root : 1; }
static float first_root_of(const struct imatrix *im) { return im->first_root > 0 ? im->first_root : 1; }
/* The inputs of n tokens, rows of the covariance's n_in floats. */
struct tokens { const float *x; size_t stride, n; };
/* Adds at most TOKENS of them to the sums; the first may begin a window. */
static enum ggu_status sum_up(struct imatrix *im, struct covariance *c, size_t mat, struct tokens in,
	struct ggu_pool *pool)
{
	struct waiting *w = c->waiting + mat;
	float by[TOKENS], *to = c->sums + mat*covariance_floats(c->n_in, c->block);
	imatrix_moderate(in.x, in.stride, c->n_in, in.n, by);
	for (size_t t = 0; t < in.n; t++) by[t] *= w->root*(w->begins && !t ? first_root_of(im) : 1);
	w->begins = false;
	for (size_t first = 0; first < c->n_in; first += c->block) {
		const size_t width = size_least(c->block, c->n_in - first);
		const struct gram g = { .to = to, .n = width, .n_tokens = in.n, .x = in.x + first,
			.stride = in.stride, .by = by };
		if (gram_add(&g, &im->room, pool)) return GGU_ERR_NOMEM;
		to += width*(width + 1)/2;
	}
	return GGU_OK;
}
static enum ggu_status sum_waiting(struct imatrix *im, struct covariance *c, size_t mat, struct ggu_pool *pool)
{
	struct waiting *w = c->waiting + mat;
	enum ggu_status s = w->n ? sum_up(im, c, mat, (struct tokens){ w->x, c->n_in, w->n }, pool) : GGU_OK;
	free(w->x);
	*w = (struct waiting){ .seen = w->seen, .root = w->root };
	return s;
}
/* Adds tokens to those that wait; there are never more than TOKENS. */
static enum ggu_status wait(struct waiting *w, size_t n_in, struct tokens in)
{
	const size_t n = w->n + in.n, cap = n <= TOKENS/2 ? 2*n : TOKENS;
	if (n > w->cap) {
		float *to = realloc(w->x, size_times(cap, n_in*sizeof *to));
		if (!to) return GGU_ERR_NOMEM;
		w->x = to;
		w->cap = cap;
	}
	for (size_t t = 0; t < in.n; t++)
		memcpy(w->x + (w->n + t)*n_in, in.x + t*in.stride, n_in*sizeof *in.x);
	w->n = n;
	return GGU_OK;
}
static enum ggu_status add_tokens(struct imatrix *im, struct covariance *c, size_t mat, struct tokens in,
	struct ggu_pool *pool)
{
	const size_t every = every_of(im);
	const double first = (double)first_root_of(im);
	struct waiting *w;
	double root;
	size_t skip;
	enum ggu_status s = GGU_OK;
	if (!c->waiting) c->waiting = calloc(c->n_mat, sizeof *c->waiting);
	if (!c->waiting) return GGU_ERR_NOMEM;
	w = c->waiting + mat;
	if (!w->seen) w->root = root_of(im);
	root = (double)w->root;
	if (!w->seen && in.n) {
		w->begins = true;
		c->counts[mat] += root*root*(first*first - 1);
	}
	skip = (every - w->seen % every) % every;
	w->seen += in.n;
	in.x += skip*in.stride;
	in.stride *= every;
	in.n = in.n > skip ? size_parts(in.n - skip, every) : 0;
	c->counts[mat] += root*root*(double)in.n;
	while (in.n && !s) {
		const struct tokens some = { in.x, in.stride, size_least(in.n, TOKENS - w->n) };
		s = some.n == TOKENS ? sum_up(im, c, mat, some, pool) : wait(w, c->n_in, some);
		if (!s && w->n == TOKENS) s = sum_waiting(im, c, mat, pool);
		in.x += some.n*in.stride;
		in.n -= some.n;
	}
	return s;
}

void imatrix_sample(struct imatrix *im, size_t every, float root, float first_root)
{
	im->every = every;
	im->root = root;
	im->first_root = first_root;
}
enum ggu_status imatrix_flush(struct imatrix *im, struct ggu_pool *pool, struct ggu_error *err)
{
	for (size_t i = 0; i < im->n_cov; i++) {
		struct covariance *c = im->cov[i];
		for (size_t m = 0; c->waiting && m < c->n_mat; m++) {
			if (sum_waiting(im, c, m, pool))
				return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, c->name, "out of memory");
			c->waiting[m].seen = 0;
		}
	}
	return GGU_OK;
}

/* Has a call the same input as the previous one, by shape and hash? */
static bool same_input(struct imatrix *im, const struct covariance_call *now)
{
	const struct covariance_call *b = &im->before;
	return b->of && b->hash == now->hash && b->n_in == now->n_in && b->n_tokens == now->n_tokens &&
		b->n_mat == now->n_mat && b->mat == now->mat;
}
enum ggu_status imatrix_add_covariance(struct imatrix *im, const struct quant_input *in, size_t block,
	struct ggu_pool *pool, struct ggu_error *err)
{
	const struct imatrix_covariance new = { in->weight, in->n_in, in->n_mat, block };
	struct covariance_call now = { .n_in = in->n_in, .n_tokens = in->n, .n_mat = in->n_mat, .mat = in->mat };
	struct entry *e;
	bool same;
	TRY(imatrix_check_input(in, err));
	TRY(imatrix_entry(im, in->weight, in->n_in, in->n_mat, &e, err));
	for (size_t t = 0; t < in->n; t += size_parts(in->n, HASHED))
		now.hash = XXH3_64bits_withSeed(in->x + t*in->stride, in->n_in*sizeof *in->x, now.hash);
	same = same_input(im, &now);
	if (!e->cov && same) e->cov = im->before.of;
	if (!e->cov) TRY(covariance_new(im, &new, false, &e->cov, err));
	if (same && e->cov == im->before.of) return GGU_OK;
	if (strcmp(e->cov->name, in->weight) != 0)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, in->weight,
			"does not have the same input as %.60s, as it did before", e->cov->name);
	TRY(own_sums(im, e->cov, err));
	now.of = e->cov;
	im->before = now;
	if (add_tokens(im, e->cov, in->mat, (struct tokens){ in->x, in->stride, in->n }, pool))
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, in->weight, "out of memory");
	return GGU_OK;
}

/* ---- reading, merging ---- */

size_t imatrix_n_covariances(const struct imatrix *im) { return im->n_cov; }

bool imatrix_has_covariance(const struct imatrix *im, const char *name, struct imatrix_covariance *of)
{
	const struct entry *e = imatrix_entry_find(im, name);
	const struct covariance *c = e ? e->cov : NULL;
	if (!c) return false;
	*of = (struct imatrix_covariance){ c->name, c->n_in, c->n_mat, c->block, covariance_floats(c->n_in, c->block),
		c->counts };
	return true;
}
enum ggu_status imatrix_covariance(const struct imatrix *im, const char *name, size_t mat, float *mean,
	struct ggu_error *err)
{
	const struct entry *e = imatrix_entry_find(im, name);
	const struct covariance *c = e ? e->cov : NULL;
	if (!c || mat >= c->n_mat || !(c->counts[mat] > 0))
		return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, name, "has no covariance");
	TRY(load(im, c, mat, mean, err));
	for (size_t i = 0, n = covariance_floats(c->n_in, c->block); i < n; i++)
		mean[i] = (float)((double)mean[i]/c->counts[mat]);
	return GGU_OK;
}

static enum ggu_status merge_one(struct imatrix *im, const struct imatrix *src, const struct covariance *from,
	struct ggu_error *err)
{
	const size_t n = covariance_floats(from->n_in, from->block);
	const struct imatrix_covariance new = { from->name, from->n_in, from->n_mat, from->block };
	struct covariance *to = covariance_find(im, from->name);
	float *part = calloc(n, sizeof *part);
	enum ggu_status s = part ? GGU_OK : ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, from->name, "out of memory");
	if (!s && !to) s = covariance_new(im, &new, false, &to, err);
	if (!s && (to->n_in != from->n_in || to->n_mat != from->n_mat || to->block != from->block))
		s = ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, from->name,
			"has covariances in blocks of %zu columns, but of %zu before", from->block, to->block);
	if (!s) s = own_sums(im, to, err);
	for (size_t m = 0; m < from->n_mat && !s; m++) {
		s = load(src, from, m, part, err);
		for (size_t i = 0; i < n && !s; i++) to->sums[m*n + i] += part[i];
		to->counts[m] += from->counts[m];
	}
	free(part);
	return s;
}
enum ggu_status covariance_merge(struct imatrix *im, const struct imatrix *src, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < src->n_cov && !s; i++) s = merge_one(im, src, src->cov[i], err);
	for (size_t i = 0; i < src->n && !s; i++) {
		struct entry *e = imatrix_entry_find(im, src->v[i]->name);
		struct covariance *of = src->v[i]->cov ? covariance_find(im, src->v[i]->cov->name) : NULL;
		if (e->cov && of && e->cov != of)
			s = ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, e->name,
				"shares its input with %.60s, but before it was %.60s", of->name, e->cov->name);
		if (!e->cov) e->cov = of;
	}
	return s;
}
