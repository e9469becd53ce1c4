/* SPDX-License-Identifier: MIT
 * imatrix_dat.c - importance matrices in the form before GGUF's, little-endian:
 *   i32 n_entries | i32 len, name, i32 n_call, i32 n_values, f32 values[] ... | i32 last_chunk | i32 len, dataset
 * A value is the mean square times n_call. It does not say how many matrices an entry has: one is assumed. */
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/span.h"
#include "imatrix_internal.h"

enum { DAT_NAME_BYTES = 256 };  /* with a NUL */

/* ---- read ---- */

static enum ggu_status cut(struct ggu_error *err, const struct span *s, const char *what)
{
	return ggu_fail(err, GGU_ERR_TRUNCATED, s->at, "", "%s exceeds the file", what);
}

static enum ggu_status read_dat_entry(struct imatrix *im, struct span *s, struct ggu_error *err)
{
	uint32_t len, calls, n;
	uint64_t at = s->at;
	struct span text;
	struct entry *e;
	char name[DAT_NAME_BYTES];
	enum ggu_status st;
	if (!span_u32(s, &len)) return cut(err, s, "a name's length");
	if (!len || len >= sizeof name) return ggu_fail(err, GGU_ERR_FORMAT, at, "", "name of %u bytes", len);
	if (!span_take(s, len, &text)) return cut(err, s, "a name");
	if (memchr(text.p, 0, len)) return ggu_fail(err, GGU_ERR_FORMAT, text.at, "", "NUL in a name");
	memcpy(name, text.p, len);
	name[len] = 0;
	at = s->at;
	if (!span_u32(s, &calls) || !span_u32(s, &n)) return cut(err, s, "a count");
	if (!n || !span_has(s, n, 4))
		return ggu_fail(err, GGU_ERR_TRUNCATED, at + 4, name, "%u values exceed the file", n);
	if (calls > INT_MAX) return ggu_fail(err, GGU_ERR_FORMAT, at, name, "negative number of calls");
	if ((st = imatrix_append(im, name, n, 1, &e, err))) return st;
	e->at = text.at;
	e->counts[0] = calls;
	for (uint32_t j = 0; j < n; j++) {
		float x = 0;
		at = s->at;
		span_f32(s, &x);
		if (!(x >= 0 && x <= FLT_MAX))
			return ggu_fail(err, GGU_ERR_FORMAT, at, name, "value %u is negative or not finite", j);
		e->sums[j] = x;
	}
	return GGU_OK;
}

enum ggu_status imatrix_read_dat(struct imatrix *im, struct span *s, struct ggu_error *err)
{
	uint32_t n, chunks, len;
	struct span text;
	const struct entry *twice;
	enum ggu_status st;
	if (!span_u32(s, &n)) return cut(err, s, "the number of entries");
	if (!n || !span_has(s, n, 16))
		return ggu_fail(err, GGU_ERR_FORMAT, 0, "", "neither GGUF nor an old importance matrix");
	for (uint32_t i = 0; i < n; i++) if ((st = read_dat_entry(im, s, err))) return st;
	if ((twice = imatrix_settle(im))) return ggu_fail(err, GGU_ERR_FORMAT, twice->at, twice->name, "given twice");
	if (!s->n) return GGU_OK;               /* the oldest files end here */
	if (!span_u32(s, &chunks) || !span_u32(s, &len)) return cut(err, s, "the trailer");
	if (!span_take(s, len, &text)) return cut(err, s, "the dataset's name");
	im->chunks = chunks > INT_MAX ? 0 : chunks;
	if (len) {
		char *name = strndup((const char *)text.p, len);
		st = name ? imatrix_add_dataset(im, name) : GGU_ERR_NOMEM;
		free(name);
		if (st) return ggu_no_memory(err);
	}
	return GGU_OK;
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

/* The number of calls is that of chunks: tokens of the busiest matrix over a chunk's, at least 1. */
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

/* Every count has 31 bits. */
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
		enum ggu_status s = ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "cannot write");
		if (copy >= 0) close(copy);
		return s;
	}
	ok = put_u32(f, im->n);
	for (size_t i = 0; ok && i < im->n; i++) ok = put_entry(f, &im->v[i]->pub, im->chunk_tokens);
	ok = ok && put_u32(f, im->chunks) && put_u32(f, strlen(set)) && (!*set || fwrite(set, strlen(set), 1, f) == 1);
	if (fclose(f)) ok = false;
	return ok ? GGU_OK : ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "cannot write");
}

enum ggu_status imatrix_write_dat(const struct imatrix *im, int fd, struct ggu_error *err)
{
	enum ggu_status s = fits_dat(im, err);
	return s ? s : write_dat(im, fd, err);
}
