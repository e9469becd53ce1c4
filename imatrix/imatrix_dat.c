/* SPDX-License-Identifier: MIT
 * imatrix_dat.c - importance matrices in the form before GGUF's, little-endian:
 *   i32 n_entries | i32 len, name, i32 n_call, i32 n_values, f32 values[] ... | i32 last_chunk | i32 len, dataset
 * A value is the mean square times n_call. It does not say how many matrices an entry has: one is assumed. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/span.h"
#include "../libgguf/text.h"
#include "../libgguf/try.h"
#include "imatrix_internal.h"

enum { DAT_NAME_BYTES = 256, DAT_DATASET_BYTES = 1 << 16 };     /* the first includes a NUL */

/* ---- read ---- */

/* A position in a file that is read an entry at a time, with at most `left` bytes after it. */
struct dat { struct whole *w; uint64_t at, left; };

/* The next n bytes, valid until the next call; none if the file ends before. */
static enum ggu_status take(struct dat *d, uint64_t n, struct span *part, struct ggu_error *err)
{
	bool has = n <= d->left && n < SIZE_MAX;
	enum ggu_status st = has ? whole_want(d->w, (size_t)n, err) : GGU_OK;
	has = has && d->w->n >= n;
	*part = (struct span){ has ? (const unsigned char *)d->w->p : NULL, has ? (size_t)n : 0, d->at };
	if (has) {
		d->w->n = 0;
		d->at += n;
		d->left -= n;
	}
	return st;
}
static enum ggu_status take_u32(struct dat *d, const char *what, uint32_t *v, struct ggu_error *err)
{
	struct span s;
	enum ggu_status st = take(d, 4, &s, err);
	if (st || span_u32(&s, v)) return st;
	return ggu_fail(err, GGU_ERR_TRUNCATED, d->at, "", "%s extends past the end of the file", what);
}
static enum ggu_status not_a_matrix(struct ggu_error *err)
{
	return ggu_fail(err, GGU_ERR_FORMAT, 0, "", "not an importance matrix, neither in GGUF nor in the old form");
}

static enum ggu_status read_name(struct dat *d, char name[DAT_NAME_BYTES], struct ggu_error *err)
{
	const uint64_t at = d->at;
	struct span text;
	uint32_t len = 0;
	enum ggu_status st = take_u32(d, "a name's length", &len, err);
	if (st) return st;
	if (!len || len >= DAT_NAME_BYTES)
		return at == 4 ? not_a_matrix(err) : ggu_fail(err, GGU_ERR_FORMAT, at, "",
			"a name cannot have %u bytes", len);
	TRY(take(d, len, &text, err));
	if (!text.n) return ggu_fail(err, GGU_ERR_TRUNCATED, d->at, "", "a name extends past the end of the file");
	if (memchr(text.p, 0, len)) return ggu_fail(err, GGU_ERR_FORMAT, text.at, "", "a name contains a NUL byte");
	memcpy(name, text.p, len);
	name[len] = 0;
	return GGU_OK;
}
static enum ggu_status read_dat_entry(struct imatrix *im, struct dat *d, struct ggu_error *err)
{
	const uint64_t at = d->at;
	char name[DAT_NAME_BYTES];
	uint32_t calls, n;
	struct span s;
	struct entry *e;
	TRY(read_name(d, name, err));
	TRY(take_u32(d, "a count", &calls, err));
	TRY(take_u32(d, "a count", &n, err));
	if (calls > INT_MAX) return ggu_fail(err, GGU_ERR_FORMAT, d->at - 8, name, "negative number of calls");
	if (!n) return ggu_fail(err, GGU_ERR_FORMAT, d->at - 4, name, "has no values");
	TRY(take(d, (uint64_t)n*4, &s, err));
	if (!s.n)
		return ggu_fail(err, GGU_ERR_TRUNCATED, d->at - 4, name, "%u value%s past the end of the file",
			n, n == 1 ? " extends" : "s extend");
	TRY(imatrix_append(im, name, n, 1, &e, err));
	e->at = at + 4;
	e->counts[0] = calls;
	for (uint32_t j = 0; j < n; j++) {
		const uint64_t value_at = s.at;
		float x = 0;
		span_f32(&s, &x);
		if (!(x >= 0 && x <= FLT_MAX))
			return ggu_fail(err, GGU_ERR_FORMAT, value_at, name, "value %u is negative or not finite", j);
		e->sums[j] = x;
	}
	return GGU_OK;
}

/* What follows the entries; the oldest files have nothing there. */
static enum ggu_status read_trailer(struct imatrix *im, struct dat *d, struct ggu_error *err)
{
	uint32_t chunks, len;
	struct span text;
	char *name;
	enum ggu_status st = d->left ? whole_want(d->w, 1, err) : GGU_OK;
	if (st || !d->left || !d->w->n) return st;
	TRY(take_u32(d, "the trailer", &chunks, err));
	TRY(take_u32(d, "the trailer", &len, err));
	im->chunks = chunks > INT_MAX ? 0 : chunks;
	if (!len) return GGU_OK;
	if (len > DAT_DATASET_BYTES)
		return ggu_fail(err, GGU_ERR_FORMAT, d->at - 4, "", "the dataset's name cannot have %u bytes", len);
	TRY(take(d, len, &text, err));
	if (!text.n) return ggu_fail(err, GGU_ERR_TRUNCATED, d->at, "",
		"the dataset's name extends past the end of the file");
	name = strndup((const char *)text.p, len);
	st = name ? imatrix_add_dataset(im, name) : GGU_ERR_NOMEM;
	free(name);
	return st ? ggu_no_memory(err) : GGU_OK;
}

enum ggu_status imatrix_read_dat(struct imatrix *im, struct whole *w, uint64_t bytes, struct ggu_error *err)
{
	struct dat d = { w, 0, bytes };
	const struct entry *twice;
	uint32_t n = 0;
	enum ggu_status st = take_u32(&d, "the number of entries", &n, err);
	if (st) return st;
	if (!n || n > INT_MAX || n > d.left/16) return not_a_matrix(err);
	im->counts_windows = true;
	for (uint32_t i = 0; i < n; i++) TRY(read_dat_entry(im, &d, err));
	if ((twice = imatrix_settle(im))) return ggu_fail(err, GGU_ERR_FORMAT, twice->at, twice->name,
		"is given twice");
	return read_trailer(im, &d, err);
}

/* ---- write ---- */

static bool put_u32(FILE *f, uint64_t v)
{
	unsigned char b[4] = { (unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
		(unsigned char)(v >> 24) };
	return fwrite(b, 4, 1, f) == 1;
}
static bool put_f32(FILE *f, float x)
{
	uint32_t u;
	memcpy(&u, &x, 4);
	return put_u32(f, u);
}

/* The number of calls is that of chunks: the tokens of the busiest matrix divided by those of a chunk, at least 1. */
static uint64_t dat_calls(const struct imatrix_entry *e, uint64_t chunk_tokens)
{
	double most = 0;
	for (size_t i = 0; i < e->n_mat; i++) most = e->counts[i] > most ? e->counts[i] : most;
	if (chunk_tokens) most = ceil(most/(double)chunk_tokens);
	return most < 1 ? 1 : most < INT_MAX ? (uint64_t)most : INT_MAX;
}
static double dat_value(const struct imatrix_entry *e, size_t mat, size_t col, uint64_t calls)
{
	return e->counts[mat] > 0 ? e->sums[mat*e->n_in + col]/e->counts[mat]*(double)calls : (double)calls;
}

static bool put_entry(FILE *f, const struct imatrix_entry *e, uint64_t chunk_tokens)
{
	uint64_t calls = dat_calls(e, chunk_tokens);
	bool ok = put_u32(f, strlen(e->name)) && fwrite(e->name, strlen(e->name), 1, f) == 1 && put_u32(f, calls) &&
		put_u32(f, e->n_in*e->n_mat);
	for (size_t i = 0; ok && i < e->n_mat; i++)
		for (size_t j = 0; ok && j < e->n_in; j++)
			ok = put_f32(f, (float)dat_value(e, i, j, calls));
	return ok;
}

/* Refuses what does not fit: every count has 31 bits, and a value must be finite. */
static enum ggu_status fits_dat(const struct imatrix *im, struct ggu_error *err)
{
	if (im->n > INT_MAX || im->chunks > INT_MAX)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"%zu entries of %llu chunks do not fit the old form", im->n, (unsigned long long)im->chunks);
	for (size_t i = 0; i < im->n; i++) {
		const struct imatrix_entry *e = &im->v[i]->pub;
		uint64_t calls = dat_calls(e, im->chunk_tokens);
		bool fits = strlen(e->name) < DAT_NAME_BYTES && e->n_in*e->n_mat <= INT_MAX;
		for (size_t k = 0; fits && k < e->n_in*e->n_mat; k++)
			fits = dat_value(e, k/e->n_in, k%e->n_in, calls) <= FLT_MAX;
		if (!fits) return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, e->name, "does not fit the old form");
	}
	return GGU_OK;
}

static enum ggu_status write_dat(const struct imatrix *im, int fd, struct ggu_error *err)
{
	int copy = dup(fd);
	FILE *f = copy < 0 ? NULL : fdopen(copy, "wb");
	const char *set = im->n_datasets ? im->datasets[0] : "";
	bool ok;
	if (!f) {
		enum ggu_status s = ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "write");
		if (copy >= 0) close(copy);
		return s;
	}
	ok = put_u32(f, im->n);
	for (size_t i = 0; ok && i < im->n; i++) ok = put_entry(f, &im->v[i]->pub, im->chunk_tokens);
	ok = ok && put_u32(f, im->chunks) && put_u32(f, strlen(set)) && (!*set || fwrite(set, strlen(set), 1, f) == 1);
	if (fclose(f)) ok = false;
	return ok ? GGU_OK : ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "write");
}

enum ggu_status imatrix_write_dat(const struct imatrix *im, int fd, struct ggu_error *err)
{
	enum ggu_status s = fits_dat(im, err);
	return s ? s : write_dat(im, fd, err);
}
