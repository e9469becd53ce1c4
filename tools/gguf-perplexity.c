/* SPDX-License-Identifier: MIT
 * gguf-perplexity - measures the perplexity of a text, and the divergence from another model.
 *
 * The text is tokenized as far as necessary, with what the model puts in front, and cut into windows of --ctx tokens;
 * the last, partial one is dropped. In each window token 0 is replaced by BOS if the model adds one, and the logits at
 * positions ctx/2 .. ctx-2 are scored against the tokens after them: 255 of 512, llama-perplexity's number. Every score
 * is kept, and they are summed in order in double, so results do not depend on threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "../libgguf/size.h"
#include "../libgguf/text.h"
#include "load.h"
#include "logits_file.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"
#include "score_tile.h"
#include "teams.h"

static struct {
	const char *model, *base, *save, *output;
	int jobs, ctx, chunks, from, batch;
	struct load_place place;
	struct load_cache cache;
	bool no_bos, no_special, json, partial, merge;
	struct opt_list fail_above, arch_files;
} o = { .ctx = 512, .batch = MODEL_BATCH };
static const struct opt opts[] = {
	OPT_FILE('m', "model", &o.model, "MODEL", "the GGUF file to measure"),
	OPT_FILE(0, "base", &o.base, "MODEL|LOGITS", "compare with this model, or with logits saved from one"),
	OPT_INT('c', "ctx", &o.ctx, "N", 4, MODEL_MAX_POS, "tokens of a window (default: 512)"),
	OPT_INT(0, "chunks", &o.chunks, "N", 1, 1 << 30, "measure only N windows"),
	OPT_INT(0, "from", &o.from, "N", 0, 1 << 30, "begin with window N, counted from 0"),
	OPT_FLAG(0, "no-bos", &o.no_bos, "add no token at the beginning of the text and of windows"),
	OPT_FLAG(0, "no-special", &o.no_special, "treat special tokens in the text as plain text"),
	LOAD_BATCH_OPTION(&o.batch),
	LOAD_CACHE_OPTIONS(&o.cache, "f32"),
	OPT_LIST(0, "fail-above", &o.fail_above, "NAME=X", "exit with 1 if the result NAME is above X or not a number"),
	OPT_STR(0, "save-logits", &o.save, "FILE", "write the logits in llama-perplexity's format"),
	OPT_FLAG(0, "json", &o.json, "print JSON"),
	OPT_FLAG(0, "partial", &o.partial, "print every score as JSON, for --merge"),
	OPT_FLAG(0, "merge", &o.merge, "combine what --partial printed"),
	OPT_ARCH_FILES(&o.arch_files),
	LOAD_PLACE_OPTIONS(&o.place),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* ---- windows ---- */

/* One of the two models: its sequences are windows side by side. */
struct side {
	struct model *m;
	const char *path;
	struct work *w;
	struct part *part;              /* [n_side] */
	float *rows, *logits;           /* [n_side*per][n_embd], after the last layer; [TILE_ROWS][n_logits] */
};
/* Both models, and room for the windows that a team (teams.h) evaluates side by side. */
struct team {
	struct ggu_pool *pool;          /* NULL: a single thread */
	struct side a, b;
	/* for files: the base's logits [TILE_ROWS][n_logits], and TILE_ROWS rows of either file */
	float *base;
	unsigned char *row_from, *row_to;
	int32_t *ids, *next;            /* [n_side][ctx], [n_side*per] */
	struct model_score *score;      /* [n_side*per] */
	size_t at;                      /* the first of its windows */
	struct teams_error why;         /* it failed */
};
enum { TILE_ROWS = 64 };

/* Windows that a team computes at once. */
static size_t n_side(size_t windows)
{
	size_t n = (size_t)o.batch/((size_t)o.ctx - 1);
	return n < 1 ? 1 : size_least(n, windows);
}
/* Tokens of n windows that a work computes at once. */
static size_t n_batch(size_t n) { return size_least(n*((size_t)o.ctx - 1), (size_t)o.batch); }

static struct side side_new(struct model *m, const char *path, const struct team *t, size_t n, size_t per,
	const struct state_options *cache)
{
	struct side d = { .m = m, .path = path };
	struct ggu_error err;
	d.part = msg_need(calloc(n, sizeof *d.part));
	d.rows = msg_need(malloc(size_times(n*per, size_times(model_n_embd(m), sizeof *d.rows))));
	if (o.base || o.save)
		d.logits = msg_need(malloc(size_times(model_n_logits(m), TILE_ROWS*sizeof *d.logits)));
	if (work_new_for(&d.w, m, t->pool, n_batch(n), &err)) msg_die_error(path, &err);
	for (size_t i = 0; i < n; i++)
		if (state_new(&d.part[i].state, m, cache, &err)) msg_die_error(path, &err);
	return d;
}
static void side_free(struct side *d, size_t n)
{
	for (size_t i = 0; d->part && i < n; i++) state_free(d->part[i].state);
	free(d->part);
	work_free(d->w);
	free(d->rows);
	free(d->logits);
}
/* Bytes of a side of a team of one thread. */
static double side_bytes(struct model *m, const char *path, size_t n, size_t per, const struct state_options *cache)
{
	struct model_cost c;
	struct ggu_error err;
	if (model_cost(&c, m, cache, n_batch(n), (size_t)o.ctx, 1, &err)) msg_die_error(path, &err);
	return c.work_bytes + (double)n*(c.state_bytes + (double)per*(double)model_n_embd(m)*sizeof(float))
		+ (o.base || o.save ? TILE_ROWS*(double)model_n_logits(m)*sizeof(float) : 0);
}

/* Extracts the rows of the scored positions of n windows. */
static enum ggu_status side_eval(struct side *d, const int32_t *ids, size_t n, struct ggu_error *err)
{
	struct model_call c = { .part = d->part, .n_parts = n, .rows = d->rows };
	for (size_t i = 0; i < n; i++) {
		state_reset(d->part[i].state);
		d->part[i].ids = ids + i*(size_t)o.ctx;
		d->part[i].n = (size_t)o.ctx - 1;
		d->part[i].first = (size_t)o.ctx/2;
	}
	return model_eval(d->w, &c, err);
}

static bool stop(struct team *t, const char *path)
{
	t->why.path = path;
	return false;
}
static bool logits(struct team *t, struct side *d, size_t row, size_t n)
{
	const float *rows = d->rows + row*model_n_embd(d->m);
	return !model_logits(d->w, rows, n, d->logits, NULL, NULL, &t->why.err) || stop(t, d->path);
}

/* The text's tokens in windows, and where the scores of all of them go. */
struct job {
	struct ggu_pool *pool;
	/* the model and its base; b NULL: the base comes from a file, or there is none */
	struct model *a, *b;
	struct logits_file base, save;
	bool from_file;
	struct out *out, *results;      /* the saved logits; what is printed */
	struct vocab *v;
	int32_t *ids;
	size_t windows, first, per;     /* positions first .. first + per - 1 of each window are scored */
	struct score *score;            /* [windows*per] */
	struct state_options cache;
	struct team *team;              /* [n_apart] of one thread each, and one of all threads */
	size_t n_apart;
	_Atomic uint64_t done;          /* windows */
	char of[TAG_BYTES];             /* what all parts of a measurement have in common */
};

static void make_tag(struct job *j, unsigned flags, const char *text, size_t n)
{
	struct tag *t = tag_new();
	tag_add(t, &j->cache, sizeof j->cache);
	tag_add(t, &flags, sizeof flags);
	tag_add(t, text, n);
	tag_tokenizer(t, j->a);
	tag_model(t, j->a, o.model, false);
	if (j->b) tag_model(t, j->b, o.base, false);
	if (j->from_file) tag_add(t, j->base.row, logits_file_row_bytes(&j->base));
	tag_end(t, j->of);
}

static void read_text(struct job *j, const char *path)
{
	const struct load_windows w = { (size_t)o.ctx, (uint64_t)o.from, (uint64_t)o.chunks,
		(o.no_bos ? 0 : TOKENIZE_BOS) | (o.no_special ? 0 : TOKENIZE_SPECIAL) };
	struct tokenizer *t;
	size_t n;
	char *text;
	load_tokenizer(j->a, o.model, &j->v, &t);
	text = load_text(path, LOAD_TEXT, &n);
	j->windows = load_windows(&w, t, path, text, n, &j->ids);
	load_tell_context(j->a, o.model, w.ctx);
	tokenizer_free(t);
	if (o.partial) make_tag(j, w.flags, text, n);
	free(text);
	/* only tokens that are scored need a logit */
	for (size_t i = 0; i < j->windows*(size_t)o.ctx; i++) {
		bool scored = i%(size_t)o.ctx > j->first;
		size_t most = scored ? model_n_logits(j->a) : model_n_vocab(j->a);
		if ((size_t)j->ids[i] >= most)
			msg_die("%s: token %d is in its vocabulary, but it has only %zu %s%s", o.model, (int)j->ids[i],
				most, scored ? "logit" : "embedding", text_s(most));
	}
}

/* Skips the saved logits of the windows before the first, which come through a pipe all the same. */
static void skip_base(struct job *j)
{
	unsigned char *row = msg_need(malloc(logits_file_row_bytes(&j->base)));
	struct ggu_error err;
	for (uint64_t i = 0; j->base.in_order && i < (uint64_t)o.from*j->per; i++)
		if (logits_file_read(&j->base, i, 1, row, &err)) msg_die_error(o.base, &err);
	free(row);
}

/* Vocabularies of one size may still be two, in which the ids of this text are other tokens. */
static void check_tokens(const struct job *j)
{
	static const char key[] = "tokenizer.ggml.tokens";
	const struct ggu_kv *a = ggu_meta_find(ggu_file_meta(model_file(j->a)), key),
		*b = ggu_meta_find(ggu_file_meta(model_file(j->b)), key);
	for (size_t i = 0; a && b && i < j->windows*(size_t)o.ctx; i++) {
		const size_t id = (size_t)j->ids[i];
		struct ggu_str x, y;
		if (!ggu_kv_str(a, id, &x) || !ggu_kv_str(b, id, &y)) continue;
		if (x.n == y.n && !memcmp(x.p, y.p, x.n)) continue;
		msg_die("%s: token %zu is '%.*s', but '%.*s' in %s: they cannot be compared", o.model, id, (int)x.n,
			x.p, (int)y.n, y.p, o.base);
	}
}
/* Both sides must have the same tokens. */
static void check_base(struct job *j)
{
	size_t n_logits = model_n_logits(j->a), of_base = j->b ? model_n_logits(j->b) : n_logits;
	const char *base = msg_name(o.base);
	const int32_t *saved;
	if (j->from_file) of_base = j->base.n_vocab;
	if (of_base != n_logits)
		msg_die("%s has %zu logit%s, %s %zu: they cannot be compared", o.model, n_logits, text_s(n_logits),
			base, of_base);
	if (j->b) check_tokens(j);
	if (!j->from_file) return;
	if (j->base.n_ctx != (size_t)o.ctx)
		msg_die("%s: has windows of %zu tokens: use --ctx %zu", base, j->base.n_ctx, j->base.n_ctx);
	if (j->base.n_chunk <= (size_t)o.from)
		msg_die("%s: has only %zu window%s, none from %d on", base, j->base.n_chunk,
			text_s(j->base.n_chunk), o.from);
	if (j->windows > j->base.n_chunk - (size_t)o.from) {
		j->windows = j->base.n_chunk - (size_t)o.from;
		load_few_windows(base, j->windows, (uint64_t)o.from);
	}
	skip_base(j);
	saved = j->base.tokens + (size_t)o.from*(size_t)o.ctx;
	for (size_t i = 0; i < j->windows*(size_t)o.ctx; i++)
		if (saved[i] != j->ids[i])
			msg_die("%s: token %zu is %d, but %d in this text", base, (size_t)o.from*(size_t)o.ctx + i,
				(int)saved[i], (int)j->ids[i]);
}

static void refuse_inputs(const struct job *j, const struct out *out, const char *text)
{
	out_refuse_sources(out, o.model, model_file(j->a));
	if (j->b) out_refuse_sources(out, o.base, model_file(j->b));
	out_refuse_input(out, o.base);
	out_refuse_inputs(out, o.arch_files.v, o.arch_files.n);
	out_refuse_input(out, text ? text : "-");
}

/* What is wrong with them shows before the models are read. */
static void open_outputs(struct job *j)
{
	j->results = out_open(o.output, false);
	if (!o.save) return;
	j->out = out_open(o.save, true);
	if (out_is(j->out, o.output)) msg_die("%s: -o and --save-logits name the same file", o.save);
	if (out_fd(j->out) == 1 && out_fd(j->results) == 1)
		msg_usage("--save-logits %s is standard output, where the results go: give -o FILE", o.save);
}
static void begin_outputs(struct job *j, const char *text)
{
	FILE *f;
	refuse_inputs(j, j->results, text);
	if (!o.save) return;
	refuse_inputs(j, j->out, text);
	f = fdopen(out_fd(j->out), "wb");
	if (!f) msg_die("%s: %s", out_name(j->out), strerror(errno));
	logits_file_create(&j->save, f, out_name(j->out), (size_t)o.ctx, model_n_logits(j->a), j->windows, j->ids);
	out_reserve(j->out, logits_file_bytes(&j->save));
}

static void close_save(struct job *j)
{
	if (!o.save) return;
	out_commit(j->out);
}

/* ---- the loop ---- */

/* Scores rows 0..n - 1 of the sides. */
static bool score(struct team *t, size_t n, struct score *to)
{
	if (model_scores(t->a.w, t->a.rows, n, t->next, t->score, &t->why.err)) return stop(t, o.model);
	for (size_t i = 0; i < n; i++) to[i] = (struct score){ .nll = t->score[i].log_sum - t->score[i].logit };
	return true;
}
/* The same with a base, or with logits to be saved: these are in memory for some positions at a time. */
static bool score_tiles(struct team *t, struct job *j, size_t n, struct score *to)
{
	for (size_t at = 0; at < n; at += TILE_ROWS) {
		const size_t k = n - at < TILE_ROWS ? n - at : TILE_ROWS;
		const uint64_t row = ((uint64_t)o.from + t->at)*j->per + at;
		struct score_tile w = { .logits = t->a.logits, .base = j->from_file ? t->base : t->b.logits,
			.next = t->next + at, .n_vocab = model_n_logits(j->a), .score = to + at,
			.from = j->from_file ? &j->base : NULL, .to = o.save ? &j->save : NULL,
			.row_from = t->row_from, .row_to = t->row_to };
		if (!logits(t, &t->a, at, k) || (j->b && !logits(t, &t->b, at, k))) return false;
		if (w.from && logits_file_read(&j->base, row, k, w.row_from, &t->why.err)) return stop(t, o.base);
		ggu_pool_run(t->pool, k, score_tile_row, &w);
		if (w.to && logits_file_write(&j->save, row, k, w.row_to, &t->why.err))
			return stop(t, out_name(j->out));
	}
	return true;
}

/* Scores windows w..w + n - 1, at most n_side of them. */
static bool measure(struct team *t, struct job *j, size_t w, size_t n)
{
	const size_t ctx = (size_t)o.ctx;
	struct score *to = j->score + w*j->per;
	t->at = w;
	memcpy(t->ids, j->ids + w*ctx, n*ctx*sizeof *t->ids);
	for (size_t i = 0; i < n; i++) {
		if (!o.no_bos && vocab_add_bos(j->v) && vocab_bos(j->v) >= 0) t->ids[i*ctx] = vocab_bos(j->v);
		memcpy(t->next + i*j->per, j->ids + (w + i)*ctx + j->first + 1, j->per*sizeof *t->next);
	}
	if (side_eval(&t->a, t->ids, n, &t->why.err)) return stop(t, o.model);
	if (j->b && side_eval(&t->b, t->ids, n, &t->why.err)) return stop(t, o.base);
	return o.base || o.save ? score_tiles(t, j, n*j->per, to) : score(t, n*j->per, to);
}

static struct team team_new(const struct job *j, struct ggu_pool *pool)
{
	const size_t n = n_side(j->windows);
	struct team t = { .pool = pool };
	t.ids = msg_need(malloc(n*(size_t)o.ctx*sizeof *t.ids));
	t.next = msg_need(malloc(n*j->per*sizeof *t.next));
	t.score = msg_need(malloc(n*j->per*sizeof *t.score));
	if (j->from_file) {
		t.base = msg_need(malloc(size_times(model_n_logits(j->a), TILE_ROWS*sizeof *t.base)));
		t.row_from = msg_need(malloc(size_times(TILE_ROWS, logits_file_row_bytes(&j->base))));
	}
	if (o.save) t.row_to = msg_need(malloc(size_times(TILE_ROWS, logits_file_row_bytes(&j->save))));
	t.a = side_new(j->a, o.model, &t, n, j->per, &j->cache);
	if (j->b) t.b = side_new(j->b, o.base, &t, n, j->per, NULL);
	return t;
}
static void team_free(struct team *t, size_t n)
{
	side_free(&t->a, n);
	side_free(&t->b, n);
	free(t->ids); free(t->next); free(t->score); free(t->base); free(t->row_from); free(t->row_to);
}

/* How many teams of one thread there are: none if a pipe wants windows in order. */
static size_t n_apart(const struct job *j, size_t groups)
{
	const size_t n = n_side(j->windows), base = model_n_logits(j->a)*sizeof(float);
	double bytes;
	if (j->save.in_order || j->base.in_order) return 0;
	bytes = side_bytes(j->a, o.model, n, j->per, &j->cache);
	if (j->b) bytes += side_bytes(j->b, o.base, n, j->per, NULL);
	if (j->from_file) bytes += TILE_ROWS*(double)(base + logits_file_row_bytes(&j->base));
	if (o.save) bytes += TILE_ROWS*(double)logits_file_row_bytes(&j->save);
	return teams_apart(j->pool, groups, bytes);
}

static void free_apart(struct job *j)
{
	for (size_t i = 0; i < j->n_apart; i++) team_free(j->team + i, n_side(j->windows));
	memset(j->team, 0, j->n_apart*sizeof *j->team);
}
/* The team of all threads takes the place of the others, so that memory for both is never needed. */
static const struct teams_error *measure_group(void *ctx, size_t team, uint64_t first, size_t n)
{
	struct job *j = ctx;
	struct team *t = j->team + team;
	if (!t->ids) {
		free_apart(j);
		*t = team_new(j, j->pool);
	}
	return measure(t, j, (size_t)first, n) ? NULL : &t->why;
}

static void measure_all(struct job *j)
{
	const size_t side = n_side(j->windows), n = n_apart(j, j->windows/side);
	const struct teams teams = { j->pool, n, side, measure_group, j, &j->done };
	const struct teams_error *why;
	j->score = msg_need(calloc(j->windows*j->per, sizeof *j->score));
	j->team = msg_need(calloc(n + 1, sizeof *j->team));
	j->n_apart = n;
	for (size_t i = 0; i < n; i++) j->team[i] = team_new(j, NULL);
	progress_begin("windows", j->windows, "windows");
	why = teams_run(&teams, 0, j->windows);
	if (why) msg_die_error(why->path, &why->err);
	progress_end();
	free_apart(j);
	team_free(j->team + n, side);
}

static int report(struct out *out, const struct scores *s)
{
	int status;
	out_take_stdout(out);
	status = scores_report(s, o.partial ? SCORES_PARTIAL : o.json ? SCORES_JSON : SCORES_TEXT, &o.fail_above);
	out_commit(out);
	return status;
}

static void job_free(struct job *j)
{
	model_close(j->a);
	model_close(j->b);
	logits_file_close(&j->base);
	logits_file_close(&j->save);
	vocab_free(j->v);
	free(j->ids);
	free(j->score);
	free(j->team);
	ggu_pool_free(j->pool);
}

static int merge(char **files, int n)
{
	struct out *out = out_open(o.output, false);
	struct scores all;
	int status;
	pipe_once((const char *const *)files, n, "two files");
	for (int i = 0; i < n; i++) out_refuse_input(out, files[i]);
	sandbox_enter((const char *const *)files, n, o.output);
	all = scores_merge(files, n);
	scores_check_rules(&o.fail_above, all.has_base);
	status = report(out, &all);
	free(all.v);
	return status;
}

static struct model *open_model(const struct job *j, const char *path)
{
	struct model *m = load_model_held(path, &o.arch_files, j->pool, load_hold(&o.place));
	if (!model_has_head(m)) msg_die("%s: the model has no logits", path);
	load_refuse_encoder(m, path);
	return m;
}

static int evaluate(const char *text)
{
	struct job j = { .first = (size_t)o.ctx/2, .per = scores_per((size_t)o.ctx) };
	struct scores all;
	int status;
	scores_check_rules(&o.fail_above, o.base != NULL);
	j.cache = load_cache_types(&o.cache, GGU_TYPE_F32);
	open_outputs(&j);
	sandbox_output(o.save);
	sandbox_inputs(o.arch_files.v, o.arch_files.n);
	j.pool = load_pool(o.jobs, o.place.pin, (const char *[]){ o.model, o.base, text }, 3, o.output);
	j.a = open_model(&j, o.model);
	j.from_file = o.base && logits_file_open(&j.base, o.base);
	if (o.base && !j.from_file) j.b = open_model(&j, o.base);
	read_text(&j, text);
	check_base(&j);
	begin_outputs(&j, text);
	measure_all(&j);
	all = (struct scores){ .has_base = o.base != NULL, .n_ctx = (size_t)o.ctx, .from = (size_t)o.from,
		.windows = j.windows, .v = j.score };
	memcpy(all.of, j.of, sizeof all.of);
	status = report(j.results, &all);
	close_save(&j);         /* last, so that after exit 2 there is no file */
	if (j.from_file) logits_file_rest(&j.base);
	job_free(&j);
	return status;
}

int main(int argc, char **argv)
{
	int operands = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-perplexity",
		"measure perplexity, and the divergence from another model",
		"-m MODEL [--base MODEL|LOGITS] [--ctx N] [--from N] [--chunks N] [--no-bos] [--no-special] "
		"[--batch N] [--cache-type-k T] [--cache-type-v T] [--fail-above NAME=X]... [--save-logits FILE] "
		"[--json | --partial] [--pin] [--mlock] [--no-mmap] [--arch-file YAML]... [-o FILE] [-j N] [TEXT]\n"
		"--merge [--fail-above NAME=X]... [--json | --partial] [-o FILE] A ...", 0, -1 });
	if (!!o.model + o.merge != 1) msg_usage("give one of -m and --merge");
	if (o.json && o.partial) msg_usage("--json and --partial cannot be combined");
	if (o.merge) opt_refuse("--merge, which only combines results", "base ctx chunks from no-bos no-special batch "
		"cache-type-k cache-type-v save-logits pin mlock no-mmap arch-file");
	if (o.merge && !operands) msg_usage("--merge needs the parts as operands");
	if (o.merge) return merge(argv, operands);
	if (operands > 1) opt_spare(opts, argv[1]);
	pipe_once((const char *[]){ o.base, operands ? argv[0] : "-" }, 2, "the saved logits and the text");
	if (o.base) pipe_input(o.base);
	if (o.save && o.from)
		msg_usage("--save-logits and --from cannot be combined: saved logits begin with the text");
	return evaluate(operands ? argv[0] : NULL);
}
