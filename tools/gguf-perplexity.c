/* SPDX-License-Identifier: MIT
 * gguf-perplexity - measures the perplexity of a text, and the divergence from another model.
 *
 * The text is tokenized as far as necessary, with what the model puts in front, and cut into windows of --ctx tokens;
 * the last, partial one is dropped. In each window token 0 is replaced by BOS if the model adds one, and the logits at
 * positions ctx/2 .. ctx-2 are scored against the tokens after them: 255 of 512, llama-perplexity's number. Every score
 * is kept, and they are summed in order in double, so results do not depend on threads. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "../quant/vec.h"
#include "load.h"
#include "logits_file.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "progress.h"
#include "sandbox.h"
#include "scores.h"

static struct {
	const char *model, *base, *arch_file, *save, *output, *cache_k, *cache_v;
	int jobs, ctx, chunks, from, batch;
	struct load_place place;
	bool json, partial, merge;
	struct opt_list fail_above;
} o = { .ctx = 512 };
static const struct opt opts[] = {
	OPT_STR('m', "model", &o.model, "MODEL", "the GGUF file to measure"),
	OPT_STR(0, "base", &o.base, "MODEL|LOGITS", "compare with this model, or with logits saved from one"),
	OPT_INT('c', "ctx", &o.ctx, "N", 4, 1 << 24, "tokens of a window (default: 512)"),
	OPT_INT(0, "chunks", &o.chunks, "N", 1, 1 << 30, "measure only N windows"),
	OPT_INT(0, "from", &o.from, "N", 0, 1 << 30, "begin with window N, counted from 0"),
	LOAD_BATCH_OPTION(&o.batch),
	OPT_STR(0, "cache-type-k", &o.cache_k, "T",
		"cached keys: f32, f16, bf16, i16, q8_0, q5_1 or q4_0 (default: f32)"),
	OPT_STR(0, "cache-type-v", &o.cache_v, "T", "cached values (default: f32); the base's cache is f32"),
	OPT_LIST(0, "fail-above", &o.fail_above, "NAME=X", "exit with 1 if the result NAME is above X or not a number"),
	OPT_STR(0, "save-logits", &o.save, "FILE", "write the logits in llama-perplexity's format"),
	OPT_FLAG(0, "json", &o.json, "print JSON"),
	OPT_FLAG(0, "partial", &o.partial, "print every score as JSON, for --merge"),
	OPT_FLAG(0, "merge", &o.merge, "combine what --partial printed"),
	OPT_STR(0, "arch-file", &o.arch_file, "YAML", "also use the architecture described in YAML"),
	LOAD_PLACE_OPTIONS(&o.place),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* Positions of a model and its base: their logits, some at a time. */
struct tile {
	/* base has log p, as a file of logits does: below -16 it is unknown and left out */
	bool base_log_p;
	float *logits, *base;           /* [n][n_vocab] */
	const int32_t *next;            /* [n]: the tokens to be predicted */
	size_t n_vocab;
	struct score *score;            /* [n] */
};

/* The divergence of a position's log q = x - lx from log p = y - ly. p is within 1e-11 of itself. */
static double divergence(const struct tile *w, const float *x, double lx, const float *y, double ly)
{
	enum { PIECE = 256 };
	double p[PIECE];
	double d = 0;
	for (size_t n, at = 0; at < w->n_vocab; at += n) {
		n = w->n_vocab - at < PIECE ? w->n_vocab - at : PIECE;
		vec_exp_from(p, y + at, ly, n);
		for (size_t i = 0; i < n; i++) {
			const double lp = y[at + i] - ly;
			if (w->base_log_p && lp <= -16) continue;
			d += p[i]*(lp - (x[at + i] - lx));
		}
	}
	return d;
}
static void score_row(void *ctx, size_t t, int worker)
{
	const struct tile *w = ctx;
	size_t n = w->n_vocab;
	const float *x = w->logits + t*n, *y = w->base + t*n;
	struct model_score a = model_score_row(x, n, w->next[t]), b = model_score_row(y, n, w->next[t]);
	double ly = w->base_log_p ? 0 : b.log_sum;
	(void)worker;
	w->score[t] = (struct score){ a.log_sum - a.logit, ly - b.logit, divergence(w, x, a.log_sum, y, ly),
		a.top == b.top };
}

/* ---- the loop ---- */

/* One of the two models: its sequences are windows side by side. */
struct side {
	struct model *m;
	struct work *w;
	struct part *part;              /* [n_side] */
	const char *path;
	float *rows, *logits;           /* [n_side*per][n_embd], after the last layer; [TILE_ROWS][n_vocab] */
};
enum { TILE_ROWS = 64, BATCH = 512 };

/* Windows that are computed at once. */
static size_t n_side(size_t windows)
{
	size_t n = (o.batch ? (size_t)o.batch : BATCH)/((size_t)o.ctx - 1);
	return n < 1 ? 1 : n < windows ? n : windows;
}

static void side_make(struct side *d, size_t n, size_t per, const struct state_options *cache)
{
	size_t n_batch = o.batch ? (size_t)o.batch : n*((size_t)o.ctx - 1) < BATCH ? n*((size_t)o.ctx - 1) : BATCH;
	struct ggu_error err;
	if (!model_has_head(d->m)) msg_die("%s: the model has no logits", d->path);
	load_refuse_encoder(d->m, d->path);
	d->part = msg_need(calloc(n, sizeof *d->part));
	d->rows = msg_need(malloc(n*per*model_n_embd(d->m)*sizeof *d->rows));
	if (work_new(&d->w, d->m, n_batch, &err)) msg_die_error(d->path, &err);
	for (size_t i = 0; i < n; i++)
		if (state_new(&d->part[i].state, d->m, cache, &err)) msg_die_error(d->path, &err);
}

static void need_logits(struct side *d)
{
	if (!d->logits) d->logits = msg_need(malloc(TILE_ROWS*model_n_vocab(d->m)*sizeof *d->logits));
}

/* Extracts the rows of the scored positions of n windows. */
static void side_eval(struct side *d, const int32_t *ids, size_t n)
{
	struct model_call c = { .part = d->part, .n_parts = n, .rows = d->rows };
	struct ggu_error err;
	for (size_t i = 0; i < n; i++) {
		state_reset(d->part[i].state);
		d->part[i].ids = ids + i*(size_t)o.ctx;
		d->part[i].n = (size_t)o.ctx - 1;
		d->part[i].first = (size_t)o.ctx/2;
	}
	if (model_eval(d->w, &c, &err)) msg_die_error(d->path, &err);
}

static float *side_logits(struct side *d, size_t row, size_t n)
{
	struct ggu_error err;
	need_logits(d);
	if (model_logits(d->w, d->rows + row*model_n_embd(d->m), n, d->logits, NULL, NULL, &err))
		msg_die_error(d->path, &err);
	return d->logits;
}

/* The text's tokens in windows, and where the scores of all of them go. */
struct job {
	/* the model and its base; b.m NULL: the base comes from a file, or there is none */
	struct side a, b;
	struct side file;               /* of which logits alone are used */
	struct logits_file base, save;
	bool from_file;
	struct out *out, *results;      /* the saved logits; what is printed */
	struct vocab *v;
	int32_t *ids;
	size_t windows, first, per;     /* positions first .. first + per - 1 of each window are scored */
	struct score *score;            /* [windows*per] */
	char of[TAG_BYTES];             /* what all parts of a measurement have in common */
};

static void make_tag(struct job *j, const char *text, size_t n)
{
	struct state_options cache = load_cache_types(o.cache_k, o.cache_v, GGU_TYPE_F32);
	struct tag *t = tag_new();
	tag_add(t, &cache, sizeof cache);
	tag_add(t, text, n);
	tag_model(t, model_file(j->a.m), o.model, false);
	if (j->b.m) tag_model(t, model_file(j->b.m), o.base, false);
	tag_end(t, j->of);
}

static void read_text(struct job *j, const char *path)
{
	const struct load_windows w = { (size_t)o.ctx, (uint64_t)o.from, (uint64_t)o.chunks,
		TOKENIZE_BOS | TOKENIZE_SPECIAL };
	struct tokenizer *t;
	size_t n;
	char *text;
	load_tokenizer(j->a.m, o.model, &j->v, &t);
	text = load_text(path, LOAD_TEXT, &n);
	j->windows = load_windows(&w, t, path, text, n, &j->ids);
	load_tell_context(j->a.m, o.model, w.ctx);
	tokenizer_free(t);
	if (o.partial) make_tag(j, text, n);
	free(text);
	/* the last token of a window is scored but never evaluated: nobody else looks at it */
	for (size_t i = 0; i < j->windows*(size_t)o.ctx; i++)
		if (j->ids[i] < 0 || (size_t)j->ids[i] >= model_n_vocab(j->a.m))
			msg_die("%s: token %d is in its vocabulary, but it has only %zu logits", o.model,
				(int)j->ids[i], model_n_vocab(j->a.m));
}

/* Skips the saved logits of the windows before the first. */
static void skip_base(struct job *j, size_t n_vocab)
{
	float *row = msg_need(malloc(n_vocab*sizeof *row));
	for (size_t i = 0; i < (size_t)o.from*j->per; i++) logits_file_read(&j->base, 1, row);
	free(row);
}

/* Both sides must have the same tokens. */
static void check_base(struct job *j)
{
	size_t n_vocab = model_n_vocab(j->a.m), of_base = j->b.m ? model_n_vocab(j->b.m) : n_vocab;
	const int32_t *saved;
	if (j->from_file) of_base = j->base.n_vocab;
	if (of_base != n_vocab)
		msg_die("%s has %zu tokens, %s %zu: they cannot be compared", o.model, n_vocab, o.base, of_base);
	if (!j->from_file) return;
	if (j->base.n_ctx != (size_t)o.ctx)
		msg_die("%s: has windows of %zu tokens: use --ctx %zu", o.base, j->base.n_ctx, j->base.n_ctx);
	if (j->base.n_chunk <= (size_t)o.from)
		msg_die("%s: has only %zu windows, none from %d on", o.base, j->base.n_chunk, o.from);
	if (j->windows > j->base.n_chunk - (size_t)o.from) {
		j->windows = j->base.n_chunk - (size_t)o.from;
		load_few_windows(o.base, j->windows, (uint64_t)o.from);
	}
	skip_base(j, n_vocab);
	saved = j->base.tokens + (size_t)o.from*(size_t)o.ctx;
	for (size_t i = 0; i < j->windows*(size_t)o.ctx; i++)
		if (saved[i] != j->ids[i])
			msg_die("%s: token %zu is %d, but %d in this text", o.base, (size_t)o.from*(size_t)o.ctx + i,
				(int)saved[i], (int)j->ids[i]);
}

static void refuse_inputs(const struct job *j, const struct out *out, const char *text)
{
	out_refuse_sources(out, o.model, model_file(j->a.m));
	if (j->b.m) out_refuse_sources(out, o.base, model_file(j->b.m));
	out_refuse_input(out, o.base);
	out_refuse_input(out, o.arch_file);
	out_refuse_input(out, text ? text : "-");
}

static void open_outputs(struct job *j, const char *text)
{
	FILE *f;
	j->results = out_open(o.output, false);
	refuse_inputs(j, j->results, text);
	if (!o.save) return;
	if (!strcmp(o.save, "-")) msg_die("--save-logits needs a file: the results go to standard output");
	j->out = out_open(o.save, true);
	refuse_inputs(j, j->out, text);
	if (out_is(j->out, o.output)) msg_die("%s: -o and --save-logits name the same file", o.save);
	f = fdopen(out_fd(j->out), "wb");
	if (!f) msg_die("%s: %s", o.save, strerror(errno));
	logits_file_create(&j->save, f, o.save, (size_t)o.ctx, model_n_vocab(j->a.m), j->windows, j->ids);
}

static void close_save(struct job *j)
{
	if (!o.save) return;
	if (fflush(j->save.f)) msg_die("%s: %s", o.save, strerror(errno));
	out_commit(j->out);
}

/* Scores rows 0..n of the sides, which are those of windows w... */
static void score(struct job *j, const int32_t *next, size_t n, struct score *to)
{
	struct model_score *s = msg_need(malloc(n*sizeof *s));
	struct ggu_error err;
	if (model_scores(j->a.w, j->a.rows, n, next, s, &err)) msg_die_error(o.model, &err);
	for (size_t i = 0; i < n; i++) to[i] = (struct score){ .nll = s[i].log_sum - s[i].logit };
	free(s);
}

/* The same with a base, or with logits to be saved: these are in memory for some positions at a time. */
static void score_tiles(struct job *j, const int32_t *next, size_t n, struct score *to)
{
	size_t v = model_n_vocab(j->a.m);
	for (size_t at = 0; at < n; at += TILE_ROWS) {
		size_t k = n - at < TILE_ROWS ? n - at : TILE_ROWS;
		struct tile t = { .base_log_p = j->from_file, .logits = side_logits(&j->a, at, k),
			.next = next + at, .n_vocab = v, .score = to + at };
		if (o.save) logits_file_write(&j->save, k, t.logits);
		if (!o.base) continue;
		if (j->from_file) need_logits(&j->file);
		t.base = j->from_file ? j->file.logits : side_logits(&j->b, at, k);
		if (j->from_file) logits_file_read(&j->base, k, t.base);
		ggu_pool_run(model_pool(j->a.m), k, score_row, &t);
	}
	if (!o.base) score(j, next, n, to);
}

static void measure(struct job *j)
{
	struct state_options cache = load_cache_types(o.cache_k, o.cache_v, GGU_TYPE_F32);
	size_t ctx = (size_t)o.ctx, side = n_side(j->windows), n;
	int32_t *ids = msg_need(malloc(side*ctx*sizeof *ids)), *next = msg_need(malloc(side*j->per*sizeof *next));
	j->score = msg_need(calloc(j->windows*j->per, sizeof *j->score));
	side_make(&j->a, side, j->per, &cache);
	if (j->b.m) side_make(&j->b, side, j->per, NULL);
	progress_begin("windows", j->windows, "windows");
	for (size_t w = 0; w < j->windows; w += n) {
		n = j->windows - w < side ? j->windows - w : side;
		memcpy(ids, j->ids + w*ctx, n*ctx*sizeof *ids);
		for (size_t i = 0; i < n; i++) {
			if (vocab_add_bos(j->v) && vocab_bos(j->v) >= 0) ids[i*ctx] = vocab_bos(j->v);
			memcpy(next + i*j->per, j->ids + (w + i)*ctx + j->first + 1, j->per*sizeof *next);
		}
		side_eval(&j->a, ids, n);
		if (j->b.m) side_eval(&j->b, ids, n);
		(o.base || o.save ? score_tiles : score)(j, next, n*j->per, j->score + w*j->per);
		progress_set(w + n);
	}
	progress_end();
	free(ids);
	free(next);
}

static int report(struct out *out, const struct scores *s)
{
	int status;
	out_take_stdout(out);
	status = scores_report(s, o.partial ? SCORES_PARTIAL : o.json ? SCORES_JSON : SCORES_TEXT, &o.fail_above);
	out_commit(out);
	return status;
}

static void side_close(struct side *d, size_t n)
{
	for (size_t i = 0; d->part && i < n; i++) state_free(d->part[i].state);
	free(d->part);
	work_free(d->w);
	model_close(d->m);
	free(d->rows);
	free(d->logits);
}

static void job_free(struct job *j)
{
	side_close(&j->a, n_side(j->windows));
	side_close(&j->b, n_side(j->windows));
	free(j->file.logits);
	logits_file_close(&j->base);
	logits_file_close(&j->save);
	vocab_free(j->v);
	free(j->ids);
	free(j->score);
}

static int merge(char **files, int n)
{
	struct out *out = out_open(o.output, false);
	struct scores all;
	int status;
	for (int i = 0; i < n; i++) out_refuse_input(out, files[i]);
	sandbox_enter((const char *const *)files, n, o.output);
	all = scores_merge(files, n);
	scores_check_rules(&o.fail_above, all.has_base);
	status = report(out, &all);
	free(all.v);
	return status;
}

static int evaluate(const char *text)
{
	struct ggu_pool *pool;
	struct job j = { .first = (size_t)o.ctx/2, .per = scores_per((size_t)o.ctx) };
	struct scores all;
	int status;
	scores_check_rules(&o.fail_above, o.base != NULL);
	sandbox_output(o.save);
	pool = load_pool(o.jobs, o.place.pin, (const char *[]){ o.model, o.base, o.arch_file, text }, 4, o.output);
	j.a = (struct side){ .m = load_model_held(o.model, o.arch_file, pool, load_hold(&o.place)), .path = o.model };
	j.from_file = o.base && logits_file_open(&j.base, o.base);
	if (o.base && !j.from_file)
		j.b = (struct side){ .m = load_model_held(o.base, o.arch_file, pool, load_hold(&o.place)),
			.path = o.base };
	j.file.m = j.a.m;
	read_text(&j, text);
	check_base(&j);
	open_outputs(&j, text);
	measure(&j);
	all = (struct scores){ .has_base = o.base != NULL, .n_ctx = (size_t)o.ctx, .from = (size_t)o.from,
		.windows = j.windows, .v = j.score };
	memcpy(all.of, j.of, sizeof all.of);
	status = report(j.results, &all);
	close_save(&j);         /* last, so that after exit 2 there is no file */
	job_free(&j);
	ggu_pool_free(pool);
	return status;
}

int main(int argc, char **argv)
{
	int operands = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-perplexity",
		"measure perplexity, and the divergence from another model",
		"-m MODEL [--base MODEL|LOGITS] [--ctx N] [--from N] [--chunks N] [--batch N] [--cache-type-k T] "
		"[--cache-type-v T] [--fail-above NAME=X]... [--save-logits FILE] [--json | --partial] [--pin] "
		"[--mlock] [--no-mmap] [--arch-file YAML] [-o FILE] [-j N] [TEXT]\n"
		"--merge [--fail-above NAME=X]... [--json | --partial] [-o FILE] A ...", 0, -1 });
	if (!!o.model + o.merge != 1) msg_die("give one of -m and --merge; see -h");
	if (o.json && o.partial) msg_die("--json and --partial cannot be combined");
	if (o.merge) opt_refuse("--merge, which only combines results", "base ctx chunks from batch cache-type-k "
		"cache-type-v save-logits pin mlock no-mmap arch-file");
	if (o.merge && !operands) msg_die("--merge needs the parts as operands");
	if (o.merge) return merge(argv, operands);
	if (operands > 1) msg_die("too many operands: '%s'", argv[1]);
	if (o.save && o.from) msg_die("--save-logits and --from cannot be combined: saved logits begin with the text");
	return evaluate(operands ? argv[0] : NULL);
}
