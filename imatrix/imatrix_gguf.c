/* SPDX-License-Identifier: MIT
 * imatrix_gguf.c - importance matrices as GGUF files.
 *
 * The form (llama.cpp #9400, #14842), tensors sorted by name:
 *   general.type "imatrix", imatrix.datasets [str], imatrix.chunk_count u32, imatrix.chunk_size u32
 *   NAME.in_sum2 F32 [n_in] or [n_in, n_mat]      sums of squares
 *   NAME.counts  F32 [1]    or [1, n_mat]         tokens seen
 *   NAME.in_cov  F32 [n] or [n, n_mat]            sums of x xT (imatrix.h), for the first of the weights that share
 *                                                 them
 *   NAME.in_cov_n F32 [1] or [1, n_mat]           tokens seen
 *   gguf-utils.imatrix.block u32                  columns of a block of every in_cov, at most
 *   gguf-utils.imatrix.shared [str]               pairs: a weight, and the one whose in_cov is its too
 * Programs that do not know the last four ignore them.
 * A checkpoint is the same with sums and counts in F64, and with NAME.in_sum2_rest, F64, the rounding errors of the
 * sums, so that resuming from it loses nothing; both are read. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "../libgguf/try.h"
#include "imatrix_internal.h"

static const char sums_suffix[] = ".in_sum2", rest_suffix[] = ".in_sum2_rest", counts_suffix[] = ".counts",
	tag_key[] = "gguf-utils.imatrix.run";
static const char cov_suffix[] = ".in_cov", cov_counts_suffix[] = ".in_cov_n", block_key[] = "gguf-utils.imatrix.block",
	shared_key[] = "gguf-utils.imatrix.shared";

/* ---- read ---- */

/* Reads tensor t, F32 or F64, as doubles into to[n], none of them below `least`. */
static enum ggu_status read_doubles(struct ggu_file *f, const struct ggu_tensor *t, double *to, size_t n, double least,
	struct ggu_error *err)
{
	size_t width = t->type == GGU_TYPE_F64 ? 8 : 4;
	if (t->type != GGU_TYPE_F32 && t->type != GGU_TYPE_F64)
		return ggu_fail(err, GGU_ERR_TYPE, t->entry, t->name, "is neither f32 nor f64");
	if (t->bytes != n*width)
		return ggu_fail(err, GGU_ERR_FORMAT, t->entry, t->name, "does not have the shape of its sums");
	/* narrow items are read into the upper half, then widened from the front */
	TRY(ggu_read(f, t, 0, (char *)to + (8 - width)*n, n*width, err));
	if (width == 4) for (size_t i = 0; i < n; i++) {
		float x;
		memcpy(&x, (char *)to + 4*n + 4*i, 4);
		to[i] = x;
	}
	for (size_t i = 0; i < n; i++)
		if (!(to[i] >= least && to[i] < 1e300))
			return ggu_fail(err, GGU_ERR_FORMAT, t->entry, t->name,
				"item %zu is negative or not finite", i);
	return GGU_OK;
}

static enum ggu_status read_entry(struct imatrix *im, struct ggu_file *f, const struct ggu_tensor *sums,
	struct ggu_error *err)
{
	size_t n = sums->name_bytes - strlen(sums_suffix);
	char *name = malloc(n + sizeof rest_suffix);
	const struct ggu_tensor *counts, *rest;
	struct entry *e;
	enum ggu_status s;
	if (!name) return ggu_no_memory(err);
	memcpy(name, sums->name, n);
	memcpy(name + n, counts_suffix, sizeof counts_suffix);
	counts = ggu_file_find(f, name);
	memcpy(name + n, rest_suffix, sizeof rest_suffix);
	rest = ggu_file_find(f, name);
	name[n] = 0;
	if (!counts) s = ggu_fail(err, GGU_ERR_MISSING, sums->entry, name, "has sums but no counts");
	else if (!n) s = ggu_fail(err, GGU_ERR_FORMAT, sums->entry, sums->name, "has no name before the suffix");
	else if (!sums->bytes) s = ggu_fail(err, GGU_ERR_FORMAT, sums->entry, sums->name, "is empty");
	else s = imatrix_append(im, name, sums->ne[0], ggu_tensor_rows(sums), &e, err);
	if (!s) e->at = sums->entry;
	if (!s) s = read_doubles(f, sums, e->sums, e->pub.n_in*e->pub.n_mat, 0, err);
	if (!s && rest) s = read_doubles(f, rest, e->rest, e->pub.n_in*e->pub.n_mat, -1e300, err);
	if (!s) s = read_doubles(f, counts, e->counts, e->pub.n_mat, 0, err);
	free(name);
	return s;
}

static bool ends_with(const struct ggu_tensor *t, const char *suffix)
{
	return text_ends(t->name, t->name_bytes, suffix);
}

/* Reads a number that has 32 bits in these files; 0 if there is none. */
static enum ggu_status read_chunks(const struct ggu_meta *m, const char *key, uint64_t *v, struct ggu_error *err)
{
	const struct ggu_kv *kv = ggu_meta_find(m, key);
	if (!kv) return GGU_OK;
	if (ggu_meta_uint(m, key, v) && *v <= UINT32_MAX) return GGU_OK;
	return ggu_fail(err, GGU_ERR_RANGE, ggu_kv_offset(kv), key, "is not an unsigned 32-bit integer");
}

static enum ggu_status read_covariance(struct imatrix *im, struct ggu_file *f, const struct ggu_tensor *t,
	size_t block, struct ggu_error *err)
{
	size_t n = t->name_bytes - strlen(cov_suffix), n_mat = ggu_tensor_rows(t);
	char *name = malloc(n + sizeof cov_counts_suffix);
	const struct ggu_tensor *counts;
	struct covariance *c;
	struct entry *e;
	enum ggu_status s = GGU_OK;
	if (!name) return ggu_no_memory(err);
	memcpy(name, t->name, n);
	memcpy(name + n, cov_counts_suffix, sizeof cov_counts_suffix);
	counts = ggu_file_find(f, name);
	name[n] = 0;
	e = imatrix_entry_find(im, name);
	if (!e || !counts)
		s = ggu_fail(err, GGU_ERR_MISSING, t->entry, name, "has covariances but no %s",
			e ? "counts of them" : "sums");
	else if (t->type != GGU_TYPE_F32) s = ggu_fail(err, GGU_ERR_TYPE, t->entry, t->name, "is not f32");
	else if (!block || n_mat != e->pub.n_mat || t->ne[0] != covariance_floats(e->pub.n_in, block))
		s = ggu_fail(err, GGU_ERR_FORMAT, t->entry, t->name,
			"does not have the shape that its sums and %s imply", block_key);
	if (!s) s = covariance_new(im, &(struct imatrix_covariance){ name, e->pub.n_in, n_mat, block }, true, &c, err);
	if (!s) {
		c->tensor = t;
		e->cov = c;
		s = read_doubles(f, counts, c->counts, n_mat, 0, err);
	}
	free(name);
	return s;
}
/* Notes the covariances of all tensors, which stay in the file until they are wanted. */
static enum ggu_status read_covariances(struct imatrix *im, struct ggu_file *f, struct ggu_error *err)
{
	const struct ggu_meta *m = ggu_file_meta(f);
	const struct ggu_kv *shared = ggu_meta_find(m, shared_key);
	uint64_t block = 0;
	enum ggu_status s = read_chunks(m, block_key, &block, err);
	for (size_t i = 0; i < ggu_file_n_tensors(f) && !s; i++)
		if (ends_with(ggu_file_tensor(f, i), cov_suffix))
			s = read_covariance(im, f, ggu_file_tensor(f, i), (size_t)block, err);
	for (size_t i = 0; shared && i + 1 < ggu_kv_n(shared) && !s; i += 2) {
		struct ggu_str weight, owner;
		struct entry *e, *of;
		if (!ggu_kv_str(shared, i, &weight) || !ggu_kv_str(shared, i + 1, &owner))
			return ggu_fail(err, GGU_ERR_TYPE, ggu_kv_offset(shared), shared_key,
				"is not a list of strings");
		e = imatrix_entry_find(im, weight.p);
		of = imatrix_entry_find(im, owner.p);
		if (!e || !of || !of->cov || e->cov || e->pub.n_in != of->pub.n_in || e->pub.n_mat != of->pub.n_mat)
			return ggu_fail(err, GGU_ERR_FORMAT, ggu_kv_offset(shared), shared_key,
				"pair %zu names weights that cannot share a covariance", i/2);
		e->cov = of->cov;
	}
	return s;
}

enum ggu_status imatrix_check_type(const struct ggu_file *f, struct ggu_error *err)
{
	const struct ggu_kv *kv = ggu_meta_find(ggu_file_meta(f), "general.type");
	struct ggu_str type = { "", 0 };
	ggu_meta_str(ggu_file_meta(f), "general.type", &type);
	return strcmp(type.p, "imatrix") == 0 ? GGU_OK :
		ggu_fail(err, GGU_ERR_TYPE, kv ? ggu_kv_offset(kv) : GGU_NO_OFFSET, "general.type",
			"is not an importance matrix");
}
enum ggu_status imatrix_read_gguf(struct imatrix *im, struct ggu_file *f, struct ggu_error *err)
{
	const struct ggu_meta *m = ggu_file_meta(f);
	const struct ggu_kv *sets = ggu_meta_find(m, "imatrix.datasets");
	struct ggu_str tag;
	const struct entry *twice;
	TRY(imatrix_check_type(f, err));
	TRY(read_chunks(m, "imatrix.chunk_count", &im->chunks, err));
	TRY(read_chunks(m, "imatrix.chunk_size", &im->chunk_tokens, err));
	if (ggu_meta_str(m, tag_key, &tag) && !(im->tag = strdup(tag.p))) return ggu_no_memory(err);
	for (size_t i = 0; sets && i < ggu_kv_n(sets); i++) {
		struct ggu_str d;
		if (!ggu_kv_str(sets, i, &d))
			return ggu_fail(err, GGU_ERR_TYPE, ggu_kv_offset(sets), "imatrix.datasets",
				"is not a list of strings");
		if (imatrix_add_dataset(im, d.p)) return ggu_no_memory(err);
	}
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		if (ends_with(t, sums_suffix)) TRY(read_entry(im, f, t, err));
	}
	if ((twice = imatrix_settle(im))) return ggu_fail(err, GGU_ERR_FORMAT, twice->at, twice->name,
		"is given twice");
	if (!im->n) return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "the matrix has no sums");
	return read_covariances(im, f, err);
}

/* ---- write ---- */

static enum ggu_status set_shared(const struct imatrix *im, struct ggu_meta *m)
{
	struct ggu_str *pairs = calloc(2*im->n, sizeof *pairs);
	size_t n = 0, block = 0;
	enum ggu_status s = pairs ? GGU_OK : GGU_ERR_NOMEM;
	for (size_t i = 0; i < im->n_cov; i++) block = im->cov[i]->block > block ? im->cov[i]->block : block;
	for (size_t i = 0; i < im->n && !s; i++) {
		const struct entry *e = im->v[i];
		if (!e->cov || strcmp(e->cov->name, e->name) == 0) continue;
		pairs[n++] = (struct ggu_str){ e->name, strlen(e->name) };
		pairs[n++] = (struct ggu_str){ e->cov->name, strlen(e->cov->name) };
	}
	if (!s) s = ggu_meta_set_uint(m, block_key, GGU_U32, block);
	if (!s) s = ggu_meta_set_strs(m, shared_key, pairs, n);
	free(pairs);
	return s;
}
static enum ggu_status set_keys(const struct imatrix *im, struct ggu_meta *m)
{
	struct ggu_str *sets = calloc(im->n_datasets + 1, sizeof *sets);
	enum ggu_status s = sets ? ggu_meta_set_str(m, "general.type", "imatrix", 7) : GGU_ERR_NOMEM;
	for (size_t i = 0; sets && i < im->n_datasets; i++)
		sets[i] = (struct ggu_str){ im->datasets[i], strlen(im->datasets[i]) };
	if (!s) s = ggu_meta_set_strs(m, "imatrix.datasets", sets, im->n_datasets);
	if (!s) s = ggu_meta_set_uint(m, "imatrix.chunk_count", GGU_U32, im->chunks);
	if (!s) s = ggu_meta_set_uint(m, "imatrix.chunk_size", GGU_U32, im->chunk_tokens);
	free(sets);
	return s || !im->n_cov ? s : set_shared(im, m);
}

static enum ggu_status add_tensor(struct ggu_writer *w, const char *name, const char *suffix, size_t ne0, size_t n_mat,
	uint32_t type, struct ggu_error *err)
{
	uint64_t ne[2] = { ne0, n_mat };
	size_t n = strlen(name) + strlen(suffix) + 1;
	char *full = malloc(n);
	enum ggu_status s;
	if (!full) return ggu_no_memory(err);
	snprintf(full, n, "%s%s", name, suffix);
	s = ggu_writer_add(w, full, n_mat > 1 ? 2 : 1, ne, type, err);
	free(full);
	return s;
}

static enum ggu_status write_doubles(struct ggu_writer *w, const double *x, size_t n, uint32_t type,
	struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	if (type == GGU_TYPE_F64) return ggu_writer_data(w, x, n*sizeof *x, err);
	for (size_t i = 0; i < n && !s; ) {
		float part[1024];
		size_t k = 0;
		for (; k < 1024 && i < n; k++, i++) part[k] = (float)x[i];
		s = ggu_writer_data(w, part, k*sizeof *part, err);
	}
	return s;
}

static enum ggu_status add_covariances(struct ggu_writer *w, const struct imatrix *im, uint32_t type,
	struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < im->n_cov && !s; i++) {
		const struct covariance *c = im->cov[i];
		s = add_tensor(w, c->name, cov_suffix, covariance_floats(c->n_in, c->block), c->n_mat,
			GGU_TYPE_F32, err);
		if (!s) s = add_tensor(w, c->name, cov_counts_suffix, 1, c->n_mat, type, err);
	}
	return s;
}
static enum ggu_status write_covariances(struct ggu_writer *w, const struct imatrix *im, uint32_t type,
	struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < im->n_cov && !s; i++) {
		const struct covariance *c = im->cov[i];
		const size_t n = covariance_floats(c->n_in, c->block);
		float *part = c->sums ? NULL : calloc(n, sizeof *part);
		if (!c->sums && !part) return ggu_no_memory(err);
		for (size_t m = 0; m < c->n_mat && !s; m++) {
			if (part)
				s = ggu_read(im->file, c->tensor, (uint64_t)m*n*sizeof *part, part, n*sizeof *part,
					err);
			if (!s) s = ggu_writer_data(w, part ? part : c->sums + m*n, n*sizeof *part, err);
		}
		free(part);
		if (!s) s = write_doubles(w, c->counts, c->n_mat, type, err);
	}
	return s;
}

static bool all_fit(const double *x, size_t n)
{
	size_t i = 0;
	while (i < n && x[i] <= FLT_MAX) i++;
	return i == n;
}
/* Refuses what float32 cannot hold: every reader would refuse an infinity. */
static enum ggu_status fits_f32(const struct imatrix *im, struct ggu_error *err)
{
	const char *bad = NULL;
	for (size_t i = 0; i < im->n; i++) {
		const struct imatrix_entry *e = &im->v[i]->pub;
		if (!all_fit(e->sums, e->n_in*e->n_mat) || !all_fit(e->counts, e->n_mat)) bad = e->name;
	}
	for (size_t i = 0; i < im->n_cov; i++) {
		const struct covariance *c = im->cov[i];
		const size_t n = c->sums ? covariance_floats(c->n_in, c->block)*c->n_mat : 0;
		size_t k = 0;
		while (k < n && isfinite(c->sums[k])) k++;
		if (k < n || !all_fit(c->counts, c->n_mat)) bad = c->name;
	}
	return bad ? ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, bad, "has sums or counts that 32 bits cannot hold")
		: GGU_OK;
}

/* A writer that knows all of the matrix. tag NULL: not of a checkpoint. */
static enum ggu_status new_writer(const struct imatrix *im, const char *tag, uint32_t type, struct ggu_writer **w,
	struct ggu_error *err)
{
	struct ggu_meta *m = ggu_meta_new();
	enum ggu_status s = m ? set_keys(im, m) : GGU_ERR_NOMEM;
	if (!s && tag) s = ggu_meta_set_str(m, tag_key, tag, strlen(tag));
	if (s == GGU_ERR_RANGE)
		ggu_fail(err, s, GGU_NO_OFFSET, "",
			"%llu chunks of %llu tokens do not fit the 32 bits that the form has",
			(unsigned long long)im->chunks, (unsigned long long)im->chunk_tokens);
	else if (s) s = ggu_no_memory(err);
	if (!s) s = ggu_writer_new(w, m, err);
	for (size_t i = 0; i < im->n && !s; i++) {
		const struct imatrix_entry *e = &im->v[i]->pub;
		s = add_tensor(*w, e->name, sums_suffix, e->n_in, e->n_mat, type, err);
		if (!s && tag) s = add_tensor(*w, e->name, rest_suffix, e->n_in, e->n_mat, type, err);
		if (!s) s = add_tensor(*w, e->name, counts_suffix, 1, e->n_mat, type, err);
	}
	if (!s) s = add_covariances(*w, im, type, err);
	ggu_meta_free(m);
	return s;
}
static enum ggu_status write_gguf(const struct imatrix *im, const char *tag, int fd, uint32_t type,
	struct ggu_error *err)
{
	struct ggu_writer *w = NULL;
	enum ggu_status s = new_writer(im, tag, type, &w, err);
	if (!s && type == GGU_TYPE_F32) s = fits_f32(im, err);
	if (!s) s = ggu_writer_begin(w, fd, err);
	for (size_t i = 0; i < im->n && !s; i++) {
		const struct imatrix_entry *e = &im->v[i]->pub;
		s = write_doubles(w, e->sums, e->n_in*e->n_mat, type, err);
		if (!s && tag) s = write_doubles(w, im->v[i]->rest, e->n_in*e->n_mat, type, err);
		if (!s) s = write_doubles(w, e->counts, e->n_mat, type, err);
	}
	if (!s) s = write_covariances(w, im, type, err);
	if (!s) s = ggu_writer_end(w, err);
	ggu_writer_free(w);
	return s;
}
enum ggu_status imatrix_write_gguf(const struct imatrix *im, int fd, struct ggu_error *err)
{
	return write_gguf(im, NULL, fd, GGU_TYPE_F32, err);
}
enum ggu_status imatrix_write_checkpoint(const struct imatrix *im, const char *tag, int fd, struct ggu_error *err)
{
	return write_gguf(im, tag, fd, GGU_TYPE_F64, err);
}
enum ggu_status imatrix_bytes(const struct imatrix *im, const char *tag, uint64_t *bytes, struct ggu_error *err)
{
	struct ggu_writer *w = NULL;
	enum ggu_status s = new_writer(im, tag, tag ? GGU_TYPE_F64 : GGU_TYPE_F32, &w, err);
	if (!s) *bytes = ggu_writer_file_bytes(w);
	ggu_writer_free(w);
	return s;
}
