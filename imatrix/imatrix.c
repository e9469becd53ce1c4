/* SPDX-License-Identifier: MIT
 * imatrix.c - the matrix in memory: entries sorted by name, sums of squares with twice the digits of a double.
 *
 * A column's sum is one chain of additions in the order of the tokens, whatever the batches and threads: threads divide
 * columns, never tokens. Thanks to the additional digits, the sums of several processes, each for a part of the text,
 * add up to exactly the bytes of a single run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/grow.h"
#include "../libgguf/pool.h"
#include "../libgguf/size.h"
#include "../libgguf/try.h"
#include "../quant/vec.h"
#include "imatrix_internal.h"

struct imatrix *imatrix_new(void)
{
	struct imatrix *im = calloc(1, sizeof *im);
	if (im) pthread_mutex_init(&im->lock, NULL);
	return im;
}

static void entry_free(struct entry *e)
{
	free(e->name);
	free(e->sums);
	free(e->rest);
	free(e->counts);
	free(e);
}

void imatrix_free(struct imatrix *im)
{
	if (!im) return;
	for (size_t i = 0; i < im->n; i++) entry_free(im->v[i]);
	for (size_t i = 0; i < im->n_datasets; i++) free(im->datasets[i]);
	for (size_t i = 0; i < im->n_cov; i++) covariance_free(im->cov[i]);
	free(im->cov);
	gram_room_free(&im->room);
	ggu_close(im->file);
	free(im->bytes);
	free(im->v);
	free(im->datasets);
	ggu_index_free(&im->dataset_index);
	free(im->tag);
	pthread_mutex_destroy(&im->lock);
	free(im);
}

/* The position of name among the first n, or where it would be inserted. */
static size_t place(const struct imatrix *im, size_t n, const char *name, bool *found)
{
	size_t lo = 0, hi = n;
	*found = false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo)/2;
		int c = strcmp(im->v[mid]->name, name);
		if (!c) { *found = true; return mid; }
		if (c < 0) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

enum ggu_status imatrix_append(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out,
	struct ggu_error *err)
{
	struct entry *e, **v;
	if (!n_in || !n_mat || n_in > SIZE_MAX/sizeof(double)/n_mat)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name, "cannot have the shape [%zu, %zu]", n_in,
			n_mat);
	v = ggu_grow(im->v, im->n, sizeof *v);
	if (v) im->v = v;
	e = calloc(1, sizeof *e);
	if (e) {
		e->name = strdup(name);
		e->sums = calloc(n_in*n_mat, sizeof *e->sums);
		e->rest = calloc(n_in*n_mat, sizeof *e->rest);
		e->counts = calloc(n_mat, sizeof *e->counts);
	}
	if (!v || !e || !e->name || !e->sums || !e->rest || !e->counts) {
		if (e) entry_free(e);
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, name, "out of memory");
	}
	e->pub = (struct imatrix_entry){ e->name, n_in, n_mat, e->sums, e->counts };
	v[im->n++] = *out = e;
	return GGU_OK;
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
	int c = strcmp(x->name, y->name);
	return c ? c : (x->at > y->at) - (x->at < y->at);
}

const struct entry *imatrix_settle(struct imatrix *im)
{
	if (im->n) qsort(im->v, im->n, sizeof *im->v, by_name);
	for (size_t i = 1; i < im->n; i++) if (!strcmp(im->v[i - 1]->name, im->v[i]->name)) return im->v[i];
	return NULL;
}

static enum ggu_status same_shape(const struct entry *e, size_t n_in, size_t n_mat, struct ggu_error *err)
{
	if (e->pub.n_in == n_in && e->pub.n_mat == n_mat) return GGU_OK;
	return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, e->name,
		"has the shape [%zu, %zu], but before it had [%zu, %zu]", n_in, n_mat, e->pub.n_in, e->pub.n_mat);
}

enum ggu_status imatrix_entry(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out,
	struct ggu_error *err)
{
	bool found;
	size_t at = place(im, im->n, name, &found);
	enum ggu_status s = found ? same_shape(im->v[at], n_in, n_mat, err)
		: imatrix_append(im, name, n_in, n_mat, out, err);
	if (s) return s;
	if (!found) {
		memmove(im->v + at + 1, im->v + at, (im->n - 1 - at)*sizeof *im->v);
		im->v[at] = *out;
	}
	*out = im->v[at];
	return GGU_OK;
}

size_t imatrix_count(const struct imatrix *im) { return im->n; }
const struct imatrix_entry *imatrix_at(const struct imatrix *im, size_t i) { return i < im->n ? &im->v[i]->pub : NULL; }

struct entry *imatrix_entry_find(const struct imatrix *im, const char *name)
{
	bool found;
	size_t at = place(im, im->n, name, &found);
	return found ? im->v[at] : NULL;
}
const struct imatrix_entry *imatrix_find(const struct imatrix *im, const char *name)
{
	const struct entry *e = imatrix_entry_find(im, name);
	return e ? &e->pub : NULL;
}

bool imatrix_importance(const struct imatrix_entry *e, size_t mat, float *importance)
{
	bool seen = e->counts[mat] > 0;
	for (size_t j = 0; j < e->n_in; j++)
		importance[j] = seen ? (float)(e->sums[mat*e->n_in + j]/e->counts[mat]) : 1.0f;
	return seen;
}

static bool find_sizes(void *ctx, const char *tensor, size_t *n_in, size_t *n_mat)
{
	const struct imatrix_entry *e = imatrix_find(ctx, tensor);
	if (!e) return false;
	*n_in = e->n_in;
	*n_mat = e->n_mat;
	return true;
}
static bool get_row(void *ctx, const char *tensor, size_t matrix, float *to)
{
	return imatrix_importance(imatrix_find(ctx, tensor), matrix, to);
}
struct ggu_importance imatrix_importances(const struct imatrix *im)
{
	return (struct ggu_importance){ find_sizes, get_row, (void *)(uintptr_t)im };
}

/* ---- adding ---- */

enum { COLUMNS = 64 };          /* of one task */
struct add { const struct quant_input *in; double *sums, *rest; };

static void add_columns(void *ctx, size_t task, int worker)
{
	struct add *a = ctx;
	const struct quant_input *in = a->in;
	size_t from = task*COLUMNS, n = size_least(COLUMNS, in->n_in - from);
	(void)worker;
	vec_squares(a->sums + from, a->rest + from, in->x + from, in->stride, in->n, n);
}

/* Entries stay where they are while others are created. */
static struct entry *find_locked(struct imatrix *im, const char *name)
{
	struct entry *e;
	pthread_mutex_lock(&im->lock);
	e = imatrix_entry_find(im, name);
	pthread_mutex_unlock(&im->lock);
	return e;
}

enum ggu_status imatrix_check_input(const struct quant_input *in, struct ggu_error *err)
{
	if (in->mat < in->n_mat) return GGU_OK;
	return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, in->weight, "there is no matrix %zu of %zu", in->mat,
		in->n_mat);
}

enum ggu_status imatrix_add(struct imatrix *im, const struct quant_input *in, struct ggu_pool *pool,
	struct ggu_error *err)
{
	struct entry *e = find_locked(im, in->weight);
	const size_t at = in->mat*in->n_in, row = in->n_in*sizeof *e->sums;
	struct add a = { .in = in };
	enum ggu_status s = GGU_OK;
	TRY(imatrix_check_input(in, err));
	if (e) TRY(same_shape(e, in->n_in, in->n_mat, err));
	if (!(a.sums = calloc(2*in->n_in, sizeof *a.sums)))
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, in->weight, "out of memory");
	a.rest = a.sums + in->n_in;
	if (e) memcpy(a.sums, e->sums + at, row);
	if (e) memcpy(a.rest, e->rest + at, row);
	ggu_pool_run(pool, size_parts(in->n_in, COLUMNS), add_columns, &a);
	for (size_t j = 0; j < in->n_in && !s; j++)     /* squares of what is finite cannot overflow */
		if (!isfinite(a.sums[j]))
			s = ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, in->weight, "an activation is not finite");
	if (!s && !e) {
		pthread_mutex_lock(&im->lock);
		s = imatrix_entry(im, in->weight, in->n_in, in->n_mat, &e, err);
		pthread_mutex_unlock(&im->lock);
	}
	if (!s) {
		memcpy(e->sums + at, a.sums, row);
		memcpy(e->rest + at, a.rest, row);
		e->counts[in->mat] += (double)in->n;
	}
	free(a.sums);
	return s;
}

/* ---- provenance, merging ---- */

static struct ggu_str dataset_key(const void *list, size_t i)
{
	const char *name = ((char *const *)list)[i];
	return (struct ggu_str){ name, strlen(name) };
}

enum ggu_status imatrix_add_dataset(struct imatrix *im, const char *name)
{
	char **v = im->datasets;
	for (const char *c = name; *c; c++) if ((*c == '/' || *c == '\\') && c[1]) name = c + 1;
	if (ggu_index_find(&im->dataset_index, v, dataset_key, name, strlen(name)) != SIZE_MAX) return GGU_OK;
	v = ggu_grow(v, im->n_datasets, sizeof *v);
	if (!v) return GGU_ERR_NOMEM;
	im->datasets = v;
	v[im->n_datasets] = strdup(name);
	if (!v[im->n_datasets]) return GGU_ERR_NOMEM;
	return ggu_index_add(&im->dataset_index, v, dataset_key, im->n_datasets++) ? GGU_OK : GGU_ERR_NOMEM;
}
size_t imatrix_n_datasets(const struct imatrix *im) { return im->n_datasets; }
const char *imatrix_dataset(const struct imatrix *im, size_t i) { return i < im->n_datasets ? im->datasets[i] : NULL; }
const char *imatrix_tag(const struct imatrix *im) { return im->tag ? im->tag : ""; }
uint64_t imatrix_chunks(const struct imatrix *im) { return im->chunks; }
uint64_t imatrix_chunk_tokens(const struct imatrix *im) { return im->chunk_tokens; }
void imatrix_set_chunks(struct imatrix *im, uint64_t n_chunks, uint64_t chunk_tokens)
{
	im->chunks = n_chunks;
	im->chunk_tokens = chunk_tokens;
}

/* One matrix of n_in*n_mat columns becomes n_mat of n_in, each of which saw all the tokens. */
static enum ggu_status divide(struct entry *e, size_t n_in, size_t n_mat, struct ggu_error *err)
{
	double *counts = malloc(n_mat*sizeof *counts);
	if (!counts) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, e->name, "out of memory");
	for (size_t i = 0; i < n_mat; i++) counts[i] = e->counts[0];
	free(e->counts);
	e->counts = counts;
	e->pub = (struct imatrix_entry){ e->name, n_in, n_mat, e->sums, e->counts };
	return GGU_OK;
}
static bool is_undivided(const struct entry *e, const struct imatrix_entry *of)
{
	return e->pub.n_mat == 1 && !e->cov && of->n_mat > 1 && e->pub.n_in % of->n_mat == 0 &&
		e->pub.n_in/of->n_mat == of->n_in;
}

/* The old form does not say how many matrices an entry has, and llama-imatrix counts the heads of MLA as one, so either
 * side may have a single matrix of as many columns. */
static enum ggu_status merge_entry(struct entry *e, const struct entry *src, struct ggu_error *err)
{
	const struct imatrix_entry *from = &src->pub;
	const bool undivided = is_undivided(src, &e->pub);
	if (is_undivided(e, from)) TRY(divide(e, from->n_in, from->n_mat, err));
	else if (!undivided) TRY(same_shape(e, from->n_in, from->n_mat, err));
	for (size_t j = 0; j < from->n_in*from->n_mat; j++) {
		imatrix_sum(e->sums + j, e->rest + j, src->rest[j]);
		imatrix_sum(e->sums + j, e->rest + j, from->sums[j]);
	}
	for (size_t j = 0; j < e->pub.n_mat; j++) e->counts[j] += from->counts[undivided ? 0 : j];
	return GGU_OK;
}

enum ggu_status imatrix_merge(struct imatrix *im, const struct imatrix *src, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	size_t n = im->n;
	for (size_t i = 0; i < src->n && !s; i++) {
		const struct imatrix_entry *from = &src->v[i]->pub;
		struct entry *e = NULL;
		bool found;
		size_t at = place(im, n, from->name, &found);
		if (found) e = im->v[at];
		else s = imatrix_append(im, from->name, from->n_in, from->n_mat, &e, err);
		if (!s) s = merge_entry(e, src->v[i], err);
	}
	imatrix_settle(im);
	if (s) return s;
	TRY(covariance_merge(im, src, err));
	for (size_t i = 0; i < src->n_datasets; i++)
		if (imatrix_add_dataset(im, src->datasets[i])) return ggu_no_memory(err);
	im->chunks += src->chunks;
	if (!im->chunk_tokens) im->chunk_tokens = src->chunk_tokens;
	return GGU_OK;
}

bool imatrix_counts_windows(const struct imatrix *im) { return im->counts_windows; }
void imatrix_scale(struct imatrix *im, double by)
{
	im->counts_windows = false;
	for (size_t i = 0; i < im->n; i++) {
		struct entry *e = im->v[i];
		for (size_t j = 0; j < e->pub.n_in*e->pub.n_mat; j++) {
			e->sums[j] *= by;
			e->rest[j] *= by;
		}
		for (size_t j = 0; j < e->pub.n_mat; j++) e->counts[j] *= by;
	}
}
