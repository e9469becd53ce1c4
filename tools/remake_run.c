/* SPDX-License-Identifier: MIT
 * remake_run.c - see remake_run.h. It gives quant/remake.h the functions that find importances and covariances in a
 * matrix, and those that report a tensor that is done. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "../model/util/file.h"
#include "load.h"
#include "msg.h"
#include "pipe.h"
#include "progress.h"
#include "remake_run.h"
#include "typeplan.h"

/* ---- names for a message, the first of them: a table shows the others ---- */

enum { NAMES_MAX = 16 };
struct names { size_t n; char *text; };
static void note(struct names *list, const char *name)
{
	if (list->n++ >= NAMES_MAX) return;
	size_t have = list->text ? strlen(list->text) : 0;
	char *p = msg_need(realloc(list->text, have + strlen(name) + 3));
	sprintf(p + have, "%s%s", have ? ", " : "", name);
	list->text = p;
}
static const char *more(const struct names *list) { return list->n > NAMES_MAX ? ", ..." : ""; }

/* Did tensor k fall back, with the types of tensor i? */
static bool same_fallback(const struct remake *r, size_t i, size_t k)
{
	const struct recipe_choice *a = r->choice + i, *b = r->choice + k;
	return b->reason == RECIPE_FALLBACK && a->wanted == b->wanted && a->type == b->type;
}

void remake_run_fallbacks(const struct remake_run *run, bool listed)
{
	const struct remake *r = &run->re;
	struct names list = { 0, NULL };
	for (size_t i = 0; i < r->n; i++) {
		size_t first = 0, n = 0;
		char text[100];
		if (r->choice[i].reason != RECIPE_FALLBACK) continue;
		while (!same_fallback(r, i, first)) first++;
		if (first < i) continue;
		for (size_t k = i; k < r->n; k++) n += same_fallback(r, i, k);
		snprintf(text, sizeof text, "%zu%s from %s to %s", n, list.n ? "" : n == 1 ? " tensor" : " tensors",
			ggu_type_info(r->choice[i].wanted)->name, ggu_type_info(r->choice[i].type)->name);
		note(&list, text);
	}
	if (list.n)
		msg_warn("fall-backs, where rows are not a whole number of blocks: %s%s%s", list.text, more(&list),
			listed ? "" : " (-v shows which)");
	free(list.text);
}

/* ---- the header ---- */

static void must(enum ggu_status s)
{
	if (s != GGU_OK) msg_die("metadata: %s", ggu_status_name(s));
}
/* Where the importances came from. */
static void provenance(const struct remake_run *run, struct ggu_meta *m)
{
	const struct imatrix *im = run->imatrix;
	char digest[65];
	if (typeplan_sha256(run->imatrix_name, digest))
		must(ggu_meta_set_str(m, "quantize.imatrix.sha256", digest, 64));
	if (imatrix_n_datasets(im)) {
		const char *d = imatrix_dataset(im, 0), *slash = strrchr(d, '/');
		d = slash ? slash + 1 : d;
		must(ggu_meta_set_str(m, "quantize.imatrix.dataset", d, strlen(d)));
	}
	must(ggu_meta_set_uint(m, "quantize.imatrix.entries_count", GGU_U32, imatrix_count(im)));
	must(ggu_meta_set_uint(m, "quantize.imatrix.chunks_count", GGU_U32, imatrix_chunks(im)));
}
void remake_run_told(struct ggu_meta *m, const char *text)
{
	const char *name = load_base_name(text);
	for (size_t i = ggu_meta_count(m); i-- > 0;) {
		const char *key = ggu_kv_key(ggu_meta_at(m, i)).p;
		if (strncmp(key, "quantize.imatrix.", 17) == 0) ggu_meta_remove(m, key);
	}
	must(ggu_meta_set_str(m, "quantize.imatrix.dataset", name, strlen(name)));
}
/* With fewer tokens than a block has columns, a covariance says too little. */
static bool find_covariance(void *ctx, const char *tensor, size_t mat, struct remake_known *known)
{
	const struct remake_run *run = ctx;
	struct imatrix_covariance c;
	if (!imatrix_has_covariance(run->imatrix, tensor, &c) || mat >= c.n_mat) return false;
	if (c.counts[mat] < (double)c.block) return false;
	*known = (struct remake_known){ c.name, c.n_in, c.block, c.n_floats, c.counts[mat] };
	return true;
}
/* It is read from the matrix's file when its turn comes, so an error must say that it is not about the model's. */
static enum ggu_status get_covariance(void *ctx, const char *tensor, size_t mat, float *mean, struct ggu_error *err)
{
	const struct remake_run *run = ctx;
	const enum ggu_status s = imatrix_covariance(run->imatrix, tensor, mat, mean, err);
	char *name = s != GGU_OK ? file_named(run->imatrix_name) : NULL;
	ggu_error_file(err, name);
	free(name);
	return s;
}
/* run->re with the functions that look things up in the matrix, which are in *known. */
struct known { struct ggu_importance importance; struct remake_covariance covariance; };
static struct remake with_matrix(const struct remake_run *run, struct known *known)
{
	struct remake re = run->re;
	if (!run->imatrix) return re;
	known->importance = imatrix_importances(run->imatrix);
	re.importance = &known->importance;
	if (run->no_feedback || !imatrix_n_covariances(run->imatrix)) return re;
	known->covariance = (struct remake_covariance){ find_covariance, get_covariance,
		(void *)(uintptr_t)run, run->damp };
	re.covariance = &known->covariance;
	return re;
}
struct ggu_meta *remake_run_meta(const struct remake_run *run, const struct ggu_meta *from, uint32_t file_type)
{
	struct known known;
	struct remake re = with_matrix(run, &known);
	bool weighed = file_type != RECIPE_KEEP;
	struct ggu_error err;
	struct ggu_meta *m;
	if (remake_meta(&re, from, file_type, &m, &err) != GGU_OK) msg_die_error(run->name, &err);
	for (size_t i = 0; i < re.n; i++) weighed |= remake_is_weighed(&re, i);
	if (run->imatrix && weighed) provenance(run, m);
	return m;
}
void remake_run_check(const struct remake *re, bool *lacks, const char *name, const char *imatrix_name)
{
	struct ggu_error err;
	enum ggu_status s = remake_check(re, lacks, &err);
	if (s == GGU_ERR_RANGE)
		msg_die("%s: %s has %s: is it from another model?", msg_name(imatrix_name), err.where, err.what);
	if (s == GGU_ERR_MISSING)
		msg_die("%s: has no data for %s, which %s", msg_name(imatrix_name), err.where, err.what);
	if (s != GGU_OK) msg_die_error(name, &err);
}
struct ggu_writer *remake_run_writer(const struct remake_run *run, const struct ggu_meta *meta)
{
	struct known known;
	struct remake re = with_matrix(run, &known);
	struct names missing = { 0, NULL };
	bool *lacks = msg_need(calloc(re.n + 1, sizeof *lacks)), output = false;
	struct ggu_writer *w;
	struct ggu_error err;
	remake_run_check(&re, lacks, run->name, run->imatrix_name);
	for (size_t i = 0; i < re.n; i++) {
		if (lacks[i]) note(&missing, re.t[i]->name);
		output |= lacks[i] && !strcmp(re.t[i]->name, "output.weight");
	}
	if (missing.n)
		msg_warn("%s: has no data for these tensors (%zu), whose columns are weighted equally: %s%s%s",
			msg_name(run->imatrix_name), missing.n, missing.text, more(&missing),
			output ? " (gguf-imatrix --process-output collects for output.weight)" : "");
	free(missing.text);
	free(lacks);
	if (remake_writer(&re, meta, &w, &err) != GGU_OK) msg_die_error(run->name, &err);
	return w;
}

/* ---- the data ---- */

/* From here on a double is rounded to an infinite float. */
#define FLOAT_RANGE 0x1.ffffffp127

struct writing {
	const struct remake_run *run;
	struct out *out;
	bool out_failed;
	uint64_t done;                          /* bytes written, so that progress moves within a tensor too */
	struct remake_table table;
	struct names unseen;                    /* experts */
};
static enum ggu_status write_out(void *ctx, const void *p, size_t n, struct ggu_error *err)
{
	struct writing *w = ctx;
	enum ggu_status s = out_put(w->out, p, n, err);
	w->out_failed = s != GGU_OK;
	progress_set(w->done += n);
	return s;
}
const void *remake_run_made(const struct remake_run *r, size_t i)
{
	return r->calibration ? calibrated(r->calibration, r->first + i) : NULL;
}
/* "a.weight: 3 weights of 65520 or more, which F16 may not be able to hold; the first in row 1, column 2" */
static void tell(const struct writing *w, const struct ggu_tensor *t, uint64_t n, const char *which, uint64_t first)
{
	const unsigned long long row = first/t->ne[0], column = first % t->ne[0];
	msg_warn("%s: %s: %llu weight%s; the first in row %llu, column %llu", w->run->name, t->name,
		(unsigned long long)n, which, row, column);
}
static void done(void *ctx, size_t i, const struct recode_result *got, double error, size_t n_unseen)
{
	struct writing *w = ctx;
	const struct remake *r = &w->run->re;
	const struct ggu_tensor *t = r->t[i];
	uint32_t to = r->choice[i].type;
	struct recode_result made;
	if (remake_run_made(w->run, i)) {
		made = calibrated_result(w->run->calibration, w->run->first + i);
		got = &made;
		error = made.norm > 0 ? made.error/made.norm : 0;
	}
	if (got->n_bad) tell(w, t, got->n_bad, got->n_bad == 1 ? " is not finite" : "s are not finite", got->bad_at);
	if (got->n_lost) {
		char which[100];
		snprintf(which, sizeof which, "%s of %g or more, which %s may not be able to hold",
			text_s(got->n_lost), fmin((double)recode_range(to), FLOAT_RANGE),
			ggu_type_info(to)->name);
		tell(w, t, got->n_lost, which, got->lost_at);
	}
	if (n_unseen) {
		char text[300];
		snprintf(text, sizeof text, "%zu of %llu in %s", n_unseen, (unsigned long long)(t->ne[2]*t->ne[3]),
			t->name);
		note(&w->unseen, text);
	}
	if (w->run->verbose) remake_table_line(&w->table, i, error, got);
	if (w->run->list) remake_json_tensor(w->run->list, r, i, error, got);
}

void remake_run_write(const struct remake_run *run, struct ggu_writer *w, struct out *out, int jobs)
{
	struct writing writing = { .run = run, .out = out };
	const struct ggu_sink sink = { write_out, &writing };
	struct known known;
	struct remake re = with_matrix(run, &known);
	struct ggu_pool *pool = msg_need(ggu_pool_new(jobs));
	struct ggu_error err;
	re.measure = run->verbose || run->list;
	re.done = done;
	re.done_ctx = &writing;
	pipe_widen(out_fd(out));
	out_reserve(out, ggu_writer_file_bytes(w));
	if (run->verbose) remake_table_begin(&writing.table, stderr, &run->re, true);
	progress_begin(run->doing, ggu_writer_file_bytes(w), "B");
	if (remake_write(&re, w, &sink, pool, &err) != GGU_OK)
		msg_die_error(writing.out_failed ? out_name(out) : run->name, &err);
	progress_end();
	if (run->verbose) remake_table_total(stderr, &run->re, ggu_writer_file_bytes(w));
	if (writing.unseen.n)
		msg_warn("%s: no token reached these matrices, whose columns are weighted equally: %s%s",
			msg_name(run->imatrix_name), writing.unseen.text, more(&writing.unseen));
	free(writing.unseen.text);
	ggu_pool_free(pool);
}
