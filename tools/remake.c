/* SPDX-License-Identifier: MIT
 * remake.c - see remake.h. */
#include <stdlib.h>
#include <string.h>
#include "../quant/quant.h"
#include "msg.h"
#include "pipe.h"
#include "progress.h"
#include "recode.h"
#include "remake.h"
#include "typeplan.h"

/* ---- the matrix ---- */

/* Names for a message, the first of them: a table shows the others. */
enum { NAMES_MAX = 16 };
struct names { size_t n; char *text; };
static void note(struct names *list, const char *name)
{
	if (list->n++ >= NAMES_MAX) return;
	size_t have = list->text ? strlen(list->text) : 0;
	char *p = realloc(list->text, have + strlen(name) + 3);
	if (!p) msg_die("out of memory");
	sprintf(p + have, "%s%s", have ? ", " : "", name);
	list->text = p;
}
static const char *more(const struct names *list) { return list->n > NAMES_MAX ? ", ..." : ""; }
static bool uses_importance(uint32_t type)
{
	return ggu_type_info(type)->kind == GGU_KIND_BLOCK && type != GGU_TYPE_Q8_0;
}
/* Is tensor i made of weights whose errors a matrix could weigh? */
static bool is_weighed(const struct remake *r, size_t i)
{
	return r->imatrix && r->t[i]->type != r->choice[i].type && uses_importance(r->choice[i].type);
}
/* Sizes agree, and nothing is missing that is needed; what else is missing is told. */
static void check_matrix(const struct remake *r)
{
	struct names missing = { 0, NULL };
	for (size_t i = 0; i < r->n; i++) {
		const struct ggu_tensor *t = r->t[i];
		const struct imatrix_entry *e = is_weighed(r, i) ? imatrix_find(r->imatrix, t->name) : NULL;
		if (e && (e->n_in != t->ne[0] || (e->n_mat != 1 && e->n_mat != t->ne[2]*t->ne[3])))
			msg_die("%s: %s has %zu columns of %zu matrices, the model's tensor %llu of %llu: is it another model's?", r->imatrix_name,
				t->name, e->n_in, e->n_mat, (unsigned long long)t->ne[0], (unsigned long long)(t->ne[2]*t->ne[3]));
		/* the embedding is looked up, not multiplied: no matrix has it */
		if (e || !is_weighed(r, i) || strcmp(t->name, "token_embd.weight") == 0) continue;
		if (quant_needs_importance(r->choice[i].type) && !recipe_needs_no_importance(t->name))
			msg_die("%s: nothing about %s, which as %s needs it", r->imatrix_name, t->name, ggu_type_info(r->choice[i].type)->name);
		note(&missing, t->name);
	}
	if (missing.n)
		msg_warn("%s: nothing about these tensors (%zu), so that their columns weigh alike: %s%s", r->imatrix_name, missing.n, missing.text, more(&missing));
	free(missing.text);
}
/* A tensor's importances, [n_mat][n_in], or NULL where the matrix has none. Experts that no token reached
 * weigh all columns alike, and are noted. */
struct weights { float *w; size_t n_mat; };
static enum ggu_status weights_of(const struct remake *r, size_t i, struct weights *to, struct names *unseen, struct ggu_error *err)
{
	const struct ggu_tensor *t = r->t[i];
	const struct imatrix_entry *e = is_weighed(r, i) ? imatrix_find(r->imatrix, t->name) : NULL;
	size_t n_unseen = 0;
	*to = (struct weights){ NULL, 0 };
	if (!e) return GGU_OK;
	to->n_mat = e->n_mat;
	to->w = calloc(e->n_in*e->n_mat, sizeof *to->w);
	if (!to->w) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, t->name, "out of memory");
	for (size_t k = 0; k < e->n_mat; k++)
		if (!imatrix_importance(e, k, to->w + k*e->n_in)) n_unseen++;
	if (n_unseen) {
		char text[300];
		snprintf(text, sizeof text, "%zu of %zu in %s", n_unseen, e->n_mat, t->name);
		note(unseen, text);
	}
	return GGU_OK;
}

/* ---- the output's metadata ---- */

static void must(enum ggu_status s)
{
	if (s != GGU_OK) msg_die("metadata: %s", ggu_status_name(s));
}
struct ggu_meta *remake_meta(const struct remake *r, const struct ggu_meta *from, uint32_t file_type)
{
	const struct imatrix *im = file_type != RECIPE_KEEP ? r->imatrix : NULL;
	struct ggu_meta *m = ggu_meta_new();
	bool blocks = file_type != RECIPE_KEEP;
	if (!m) msg_die("out of memory");
	/* of a copy with exceptions, what holds for the exceptions */
	for (size_t i = 0; i < r->n; i++) {
		if (is_weighed(r, i)) im = r->imatrix;
		blocks |= r->t[i]->type != r->choice[i].type && ggu_type_info(r->choice[i].type)->kind == GGU_KIND_BLOCK;
	}
	for (size_t i = 0; i < ggu_meta_count(from); i++) {
		const struct ggu_kv *kv = ggu_meta_at(from, i);
		const char *key = ggu_kv_key(kv).p;
		/* what is said of shards is not true of one file, and of an older matrix not of this one */
		if (strncmp(key, "split.", 6) == 0 || (im && strncmp(key, "quantize.imatrix.", 17) == 0)) continue;
		must(ggu_meta_set_kv(m, kv));
	}
	if (blocks) must(ggu_meta_set_uint(m, "general.quantization_version", GGU_U32, 2));
	if (file_type != RECIPE_KEEP) must(ggu_meta_set_uint(m, "general.file_type", GGU_U32, file_type));
	if (im) {
		char digest[65];
		if (typeplan_sha256(r->imatrix_name, digest)) must(ggu_meta_set_str(m, "quantize.imatrix.sha256", digest, 64));
		if (imatrix_n_datasets(im)) {
			const char *d = imatrix_dataset(im, 0), *slash = strrchr(d, '/');
			d = slash ? slash + 1 : d;
			must(ggu_meta_set_str(m, "quantize.imatrix.dataset", d, strlen(d)));
		}
		must(ggu_meta_set_uint(m, "quantize.imatrix.entries_count", GGU_U32, imatrix_count(im)));
		must(ggu_meta_set_uint(m, "quantize.imatrix.chunks_count", GGU_U32, imatrix_chunks(im)));
	}
	return m;
}

/* ---- the run ---- */

void remake_report_fallbacks(const struct remake *r)
{
	struct names list = { 0, NULL };
	for (size_t i = 0; i < r->n; i++)
		if (r->choice[i].reason == RECIPE_FALLBACK) {
			char text[400];
			snprintf(text, sizeof text, "%s (%llu to a row) %s instead of %s", r->t[i]->name, (unsigned long long)r->t[i]->ne[0],
				ggu_type_info(r->choice[i].type)->name, ggu_type_info(r->choice[i].wanted)->name);
			note(&list, text);
		}
	if (list.n) msg_warn("fall-backs (%zu), where no whole number of blocks makes a row: %s%s", list.n, list.text, more(&list));
	free(list.text);
}

/* What the belt of recode.h works for. */
struct run {
	const struct remake *r;
	struct ggu_writer *w;
	struct out *out;
	uint64_t done;                          /* bytes of the source */
	struct remake_table table;
	const char *blame;                      /* file of an error */
	struct names unseen;                    /* experts */
};
static enum ggu_status begin(void *ctx, size_t i, struct recode_tensor *t, struct ggu_error *err)
{
	struct run *run = ctx;
	const struct remake *r = run->r;
	struct weights imp;
	enum ggu_status s = weights_of(r, i, &imp, &run->unseen, err);
	if (s != GGU_OK) return s;
	*t = (struct recode_tensor){ .name = r->t[i]->name, .from = r->from ? r->from[i] : r->t[i]->type, .to = r->choice[i].type,
		.ne = r->t[i]->ne, .importance = imp.w, .n_mat = imp.n_mat };
	return GGU_OK;
}
static enum ggu_status read_from(void *ctx, size_t i, uint64_t at, void *to, size_t n, struct ggu_error *err)
{
	const struct remake *r = ((struct run *)ctx)->r;
	return r->read(r->read_ctx, i, at, to, n, err);
}
static enum ggu_status write_to(void *ctx, const void *p, size_t n, struct ggu_error *err)
{
	struct run *run = ctx;
	enum ggu_status s = ggu_writer_data(run->w, p, n, err);
	out_wrote(run->out, n);
	if (s != GGU_OK) run->blame = out_name(run->out);
	return s;
}
static void end(void *ctx, size_t i, const struct recode_tensor *t, const struct recode_result *got)
{
	struct run *run = ctx;
	const struct remake *r = run->r;
	free((void *)(uintptr_t)t->importance);
	if (!got) return;
	if (got->n_bad) msg_warn("%s: %s: %llu weight%s not finite", r->name, t->name, (unsigned long long)got->n_bad, got->n_bad == 1 ? " is" : "s are");
	if (got->n_lost)
		msg_warn("%s: %s: %llu weight%s of %g or more, which %s is not sure to hold", r->name, t->name, (unsigned long long)got->n_lost, got->n_lost == 1 ? "" : "s",
			(double)recode_range(t->to), ggu_type_info(t->to)->name);
	double error = t->from == t->to ? -1 : got->norm > 0 ? got->error/got->norm : 0;
	if (r->verbose) remake_table_line(&run->table, i, error);
	if (r->list) remake_json_tensor(r->list, r, i, error);
	progress_set(run->done += r->t[i]->bytes);
}

static void run_all(const struct remake *r, struct ggu_pool *pool, struct ggu_writer *w, struct out *out)
{
	struct run run = { .r = r, .w = w, .out = out, .blame = r->name };
	struct recode_job job = {
		.n = r->n, .effort = r->effort, .objective = r->objective, .measure = r->verbose || r->list, .keep_non_finite = r->keep_non_finite,
		.read_anywhere = r->read_anywhere, .ctx = &run, .begin = begin, .read = read_from, .write = write_to, .end = end,
	};
	struct ggu_error err;
	uint64_t total = 0;
	for (size_t i = 0; i < r->n; i++) total += r->t[i]->bytes;
	if (r->verbose) remake_table_begin(&run.table, stderr, r, true);
	progress_begin(r->doing, total, "B");
	if (recode(pool, &job, &err) != GGU_OK) msg_die_error(run.blame, &err);
	progress_end();
	if (r->verbose) remake_table_total(stderr, r, ggu_writer_file_bytes(w));
	if (run.unseen.n)
		msg_warn("%s: no token reached these matrices, so that their columns weigh alike: %s%s", r->imatrix_name, run.unseen.text, more(&run.unseen));
	free(run.unseen.text);
}

struct ggu_writer *remake_writer(const struct remake *r, const struct ggu_meta *meta)
{
	struct ggu_writer *w;
	struct ggu_error err;
	check_matrix(r);
	if (ggu_writer_new(&w, meta, &err) != GGU_OK) msg_die_error(r->name, &err);
	for (size_t i = 0; i < r->n; i++)
		if (ggu_writer_add(w, r->t[i]->name, r->t[i]->n_dims, r->t[i]->ne, r->choice[i].type, &err) != GGU_OK) msg_die_error(r->name, &err);
	return w;
}

void remake_write(const struct remake *r, struct ggu_writer *w, struct out *out, int jobs)
{
	struct ggu_pool *pool = ggu_pool_new(jobs);
	struct ggu_error err;
	if (!pool) msg_die("out of memory");
	pipe_widen(out_fd(out));
	out_reserve(out, ggu_writer_file_bytes(w));
	if (ggu_writer_begin(w, out_fd(out), &err) != GGU_OK) msg_die_error(out_name(out), &err);
	run_all(r, pool, w, out);
	if (ggu_writer_end(w, &err) != GGU_OK) msg_die_error(out_name(out), &err);
	ggu_pool_free(pool);
}
