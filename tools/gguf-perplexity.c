/* SPDX-License-Identifier: MIT
 * gguf-perplexity - perplexity of a text, and how far a model is from another.
 *
 * The text is tokenized once, with what the model puts in front, and cut into windows of --ctx tokens; the last
 * partial one is dropped. In each window token 0 is replaced by BOS where the model adds one, and the logits at
 * positions ctx/2 .. ctx-2 are scored against the tokens after them: 255 of 512, llama-perplexity's number.
 * Every score is kept and summed in order in double, so threads cannot show. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../quant/vec.h"
#include "kv_json.h"
#include "load.h"
#include "logits_file.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "progress.h"
#include "sandbox.h"

static struct {
	const char *model, *base, *arch_file, *save, *output;
	int jobs, ctx, chunks, batch;
	bool json;
	struct opt_list fail_above;
} o = { .ctx = 512 };
static const struct opt opts[] = {
	OPT_STR('m', "model", &o.model, "MODEL", "the GGUF file to measure"),
	OPT_STR(0, "base", &o.base, "MODEL|LOGITS", "compare with this model, or with logits saved from one"),
	OPT_INT(0, "ctx", &o.ctx, "N", 4, 1 << 24, "tokens of a window (default: 512)"),
	OPT_INT(0, "chunks", &o.chunks, "N", 1, 1 << 30, "measure the first N windows only"),
	OPT_INT(0, "batch", &o.batch, "N", 1, 1 << 20, "tokens computed at once (default: 2048); does not change the result"),
	OPT_LIST(0, "fail-above", &o.fail_above, "NAME=X", "exit 1 if the result NAME is above X or not a number"),
	OPT_STR(0, "save-logits", &o.save, "FILE", "write the logits in llama-perplexity's form"),
	OPT_FLAG(0, "json", &o.json, "print JSON"),
	OPT_STR(0, "arch-file", &o.arch_file, "YAML", "also know the architecture described in YAML"),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* One scored position. */
struct score { double nll, base_nll, kld; bool same_top; };
/* Positions beside those of a base: their logits, some at a time. */
struct tile {
	bool base_log_p;                /* base holds log p, as a file of logits does: below -16 it is unknown and left out */
	float *logits, *base;           /* [n][n_vocab] */
	float *spare;                   /* [workers][n_vocab] */
	const int32_t *next;            /* [n]: the tokens to be predicted */
	size_t n_vocab;
	struct score *score;            /* [n] */
};

static struct model_score score_copy(const float *x, size_t n, int32_t next, float *spare)
{
	memcpy(spare, x, n*sizeof *x);
	return model_score_row(spare, n, next);
}

static void score_row(void *ctx, size_t t, int worker)
{
	const struct tile *w = ctx;
	size_t n = w->n_vocab;
	float *x = w->logits + t*n, *y = w->base + t*n, *spare = w->spare + (size_t)worker*n;
	struct model_score a = score_copy(x, n, w->next[t], spare), b = score_copy(y, n, w->next[t], spare);
	double ly = w->base_log_p ? 0 : b.log_sum, d = 0;
	for (size_t i = 0; i < n; i++) {
		double lp = y[i] - ly;
		if (w->base_log_p && lp <= -16) continue;
		d += num_exp(lp)*(lp - (x[i] - a.log_sum));
	}
	w->score[t] = (struct score){ a.log_sum - a.logit, ly - b.logit, d, a.top == b.top };
}

/* ---- results ---- */

/* In the order of printing. All but the first are there with --base. */
enum measure { PPL, BASE_PPL, KLD, KLD_MEDIAN, KLD_P99, KLD_P999, KLD_MAX, TOP1, RATIO, RMS_DELTA_P, N_MEASURES };
static const char *const names[N_MEASURES] = {
	"ppl", "base_ppl", "kld", "kld_median", "kld_p99", "kld_p999", "kld_max", "top1", "ratio", "rms_delta_p",
};
struct result { double value, error; bool has_error; };
static void set(struct result *r, enum measure m, double value, const double *error)
{
	r[m] = (struct result){ value, error ? *error : 0, error };
}
static size_t n_measures(void) { return o.base ? N_MEASURES : PPL + 1; }

/* Mean and its standard error of a member of all scores. */
static double mean(const struct score *s, size_t n, size_t offset, double *error)
{
	double sum = 0, squares = 0, m;
	for (size_t i = 0; i < n; i++) {
		double x;
		memcpy(&x, (const char *)(s + i) + offset, sizeof x);
		sum += x;
		squares += x*x;
	}
	m = sum/(double)n;
	squares = squares/(double)n - m*m;
	*error = n > 1 && squares > 0 ? sqrt(squares/(double)(n - 1)) : 0;
	return m;
}

/* What is no number is last, so that the largest tells it. */
static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return isnan(x) || isnan(y) ? !!isnan(x) - !!isnan(y) : (x > y) - (x < y);
}

static void base_results(struct result *r, const struct score *s, size_t n, double ppl)
{
	double error, kld = mean(s, n, offsetof(struct score, kld), &error), base, base_error, same = 0, same_error, ratio = 0, ratio2 = 0, delta = 0;
	double *sorted = malloc(n*sizeof *sorted);
	if (!sorted) msg_die("out of memory");
	base = num_exp(mean(s, n, offsetof(struct score, base_nll), &base_error));
	base_error *= base;
	set(r, BASE_PPL, base, &base_error);
	set(r, KLD, kld, &error);
	for (size_t i = 0; i < n; i++) {
		double l = s[i].nll - s[i].base_nll, p = num_exp(-s[i].nll) - num_exp(-s[i].base_nll);
		sorted[i] = s[i].kld;
		same += s[i].same_top;
		ratio += l;
		ratio2 += l*l;
		delta += p*p;
	}
	qsort(sorted, n, sizeof *sorted, by_value);
	set(r, KLD_MEDIAN, n % 2 ? sorted[n/2] : (sorted[n/2 - 1] + sorted[n/2])/2, NULL);
	set(r, KLD_P99, sorted[(size_t)(0.99*(double)(n - 1) + 0.5)], NULL);
	set(r, KLD_P999, sorted[(size_t)(0.999*(double)(n - 1) + 0.5)], NULL);
	set(r, KLD_MAX, sorted[n - 1], NULL);
	same /= (double)n;
	same_error = n > 1 ? sqrt(same*(1 - same)/(double)(n - 1)) : 0;
	set(r, TOP1, same, &same_error);
	ratio /= (double)n;
	ratio2 = ratio2/(double)n - ratio*ratio;
	ratio2 = n > 1 && ratio2 > 0 ? sqrt(ratio2/(double)(n - 1))*ppl/base : 0;
	set(r, RATIO, ppl/base, &ratio2);
	set(r, RMS_DELTA_P, sqrt(delta/(double)n), NULL);
	free(sorted);
}

static void print_json(const struct result *r, size_t n_tokens, size_t n_scored)
{
	json_t *root = json_object(), *base = NULL, *to;
	char name[64];
	for (size_t i = 0; i < n_measures(); i++) {
		if (i == BASE_PPL) base = json_object();
		to = base ? base : root;
		snprintf(name, sizeof name, "%s", names[i == BASE_PPL ? PPL : i]);
		json_put(to, name, json_of_double(r[i].value));
		strncat(name, "_stderr", sizeof name - strlen(name) - 1);
		if (r[i].has_error) json_put(to, name, json_of_double(r[i].error));
	}
	json_put(root, "n_tokens", json_of_uint(n_tokens));
	json_put(root, "n_scored", json_of_uint(n_scored));
	json_put(root, "n_ctx", json_of_uint((uint64_t)o.ctx));
	if (base) json_put(root, "base", base);
	json_print(root, JSON_INDENT(1));
}

/* Perplexities have digits before the point; all else is a share or a divergence. */
static void print_text(const struct result *r)
{
	for (size_t i = 0; i < n_measures(); i++) {
		int digits = i == PPL || i == BASE_PPL ? 4 : 8;
		printf("%s %.*f", names[i], digits, r[i].value);
		if (r[i].has_error) printf(" +- %.*f", digits, r[i].error);
		putchar('\n');
	}
}

/* NAME=X of --fail-above; checked before the first window. */
static size_t read_rule(const char *rule, double *bound)
{
	size_t m = 0, n = strcspn(rule, "=");
	char *end;
	if (!rule[n] || (*bound = strtod(rule + n + 1, &end), end == rule + n + 1) || *end) msg_die("--fail-above wants NAME=NUMBER, not '%s'", rule);
	while (m < n_measures() && (strlen(names[m]) != n || memcmp(names[m], rule, n))) m++;
	if (m == n_measures()) msg_die("--fail-above %s: %s gives no such result", rule, o.base ? "--base" : "a measurement without --base");
	return m;
}

static int verdict(const struct result *r)
{
	int status = EXIT_YES;
	for (size_t i = 0; i < o.fail_above.n; i++) {
		double bound;
		size_t m = read_rule(o.fail_above.v[i], &bound);
		if (r[m].value <= bound) continue;
		msg_warn("%s is %.8g, above %.8g", names[m], r[m].value, bound);
		status = EXIT_NO;
	}
	return status;
}

/* ---- the loop ---- */

/* One of the two models: its sequences are windows side by side. */
struct side {
	struct model *m;
	struct work *w;
	struct part *part;              /* [n_side] */
	const char *path;
	float *rows, *logits;           /* [n_side*per][n_embd], behind the last layer; [TILE_ROWS][n_vocab] */
};
enum { TILE_ROWS = 64, BATCH = 2048 };

/* Windows that are computed at once. */
static size_t n_side(size_t windows)
{
	size_t n = (o.batch ? (size_t)o.batch : BATCH)/((size_t)o.ctx - 1);
	return n < 1 ? 1 : n < windows ? n : windows;
}

static void side_make(struct side *d, size_t n, size_t per)
{
	size_t n_batch = o.batch ? (size_t)o.batch : n*((size_t)o.ctx - 1) < BATCH ? n*((size_t)o.ctx - 1) : BATCH;
	struct ggu_error err;
	if (!model_has_head(d->m)) msg_die("%s: gives no logits", d->path);
	d->part = calloc(n, sizeof *d->part);
	d->rows = malloc(n*per*model_n_embd(d->m)*sizeof *d->rows);
	if (!d->part || !d->rows) msg_die("out of memory");
	if (work_new(&d->w, d->m, n_batch, &err)) msg_die_error(d->path, &err);
	for (size_t i = 0; i < n; i++) if (state_new(&d->part[i].state, d->m, NULL, &err)) msg_die_error(d->path, &err);
}

static void need_logits(struct side *d)
{
	if (!d->logits) d->logits = malloc(TILE_ROWS*model_n_vocab(d->m)*sizeof *d->logits);
	if (!d->logits) msg_die("out of memory");
}

/* The rows of the scored positions of n windows. */
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
	if (model_logits(d->w, d->rows + row*model_n_embd(d->m), n, d->logits, NULL, NULL, &err)) msg_die_error(d->path, &err);
	return d->logits;
}

/* The text's tokens in windows, and where the scores of all of them go. */
struct job {
	struct side a, b;               /* the model and its base; b.m NULL: the base comes from a file, or there is none */
	struct side file;               /* of which logits alone are used */
	float *spare;                   /* [workers][n_vocab] */
	struct logits_file base, save;
	bool from_file;
	struct out *out, *results;      /* of the saved logits; what is printed */
	struct vocab *v;
	int32_t *ids;
	size_t windows, first, per;     /* positions first .. first + per - 1 of each window are scored */
	struct score *score;            /* [windows*per] */
};

static void read_text(struct job *j, const char *path)
{
	const char *name = path && strcmp(path, "-") ? path : "(stdin)";
	struct tokenizer *t;
	struct ggu_error err;
	size_t n = 0, cap = 0, bytes;
	char *text;
	load_tokenizer(j->a.m, o.model, &j->v, &t);
	text = load_text(path, &bytes);
	if (tokenizer_encode(t, text, bytes, TOKENIZE_BOS | TOKENIZE_SPECIAL, &j->ids, &n, &cap, &err)) msg_die_error(name, &err);
	tokenizer_free(t);
	free(text);
	j->windows = n/(size_t)o.ctx;
	if (j->windows < 1) msg_die("%s: %zu token%s no window of %d: give more text or a smaller --ctx", name, n, n == 1 ? " makes" : "s make", o.ctx);
	if (o.chunks && j->windows > (size_t)o.chunks) j->windows = (size_t)o.chunks;
	/* the last token of a window is scored without being evaluated: nobody else looks at it */
	for (size_t i = 0; i < j->windows*(size_t)o.ctx; i++)
		if (j->ids[i] < 0 || (size_t)j->ids[i] >= model_n_vocab(j->a.m))
			msg_die("%s: token %d of its vocabulary is beyond the %zu that it gives logits for", o.model, (int)j->ids[i], model_n_vocab(j->a.m));
}

/* Both sides speak of the same tokens. */
static void check_base(struct job *j)
{
	size_t n_vocab = model_n_vocab(j->a.m);
	if (j->b.m && model_n_vocab(j->b.m) != n_vocab) msg_die("%s has %zu tokens, %s %zu: they cannot be compared", o.model, n_vocab, o.base, model_n_vocab(j->b.m));
	if (!j->from_file) return;
	if (j->base.n_vocab != n_vocab || j->base.n_ctx != (size_t)o.ctx)
		msg_die("%s is of windows of %zu and %zu tokens, not of %d and %zu", o.base, j->base.n_ctx, j->base.n_vocab, o.ctx, n_vocab);
	if (j->windows > j->base.n_chunk) j->windows = j->base.n_chunk;
	for (size_t i = 0; i < j->windows*(size_t)o.ctx; i++)
		if (j->base.tokens[i] != j->ids[i]) msg_die("%s: token %zu is %d, but %d in this text", o.base, i, (int)j->base.tokens[i], (int)j->ids[i]);
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
	if (!strcmp(o.save, "-")) msg_die("--save-logits wants a file: the results go to standard output");
	j->out = out_open(o.save, true);
	refuse_inputs(j, j->out, text);
	out_refuse_input(j->out, o.output);
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

/* Scores rows 0..n of the sides, those of windows w.. */
static void score(struct job *j, const int32_t *next, size_t n, struct score *to)
{
	struct model_score *s = malloc(n*sizeof *s);
	struct ggu_error err;
	if (!s) msg_die("out of memory");
	if (model_scores(j->a.w, j->a.rows, n, next, s, &err)) msg_die_error(o.model, &err);
	for (size_t i = 0; i < n; i++) to[i] = (struct score){ .nll = s[i].log_sum - s[i].logit };
	free(s);
}

/* The same beside a base, or with logits to be kept: these are there for some positions at a time. */
static void score_tiles(struct job *j, const int32_t *next, size_t n, struct score *to)
{
	size_t v = model_n_vocab(j->a.m);
	for (size_t at = 0; at < n; at += TILE_ROWS) {
		size_t k = n - at < TILE_ROWS ? n - at : TILE_ROWS;
		struct tile t = { .base_log_p = j->from_file, .logits = side_logits(&j->a, at, k), .spare = j->spare, .next = next + at, .n_vocab = v, .score = to + at };
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
	size_t ctx = (size_t)o.ctx, side = n_side(j->windows), n;
	int32_t *ids = malloc(side*ctx*sizeof *ids), *next = malloc(side*j->per*sizeof *next);
	j->score = calloc(j->windows*j->per, sizeof *j->score);
	j->spare = malloc((size_t)ggu_pool_size(model_pool(j->a.m))*model_n_vocab(j->a.m)*sizeof *j->spare);
	if (!ids || !next || !j->score || !j->spare) msg_die("out of memory");
	side_make(&j->a, side, j->per);
	if (j->b.m) side_make(&j->b, side, j->per);
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

static int report(const struct job *j)
{
	struct result r[N_MEASURES];
	size_t n = j->windows*j->per;
	double error, ppl = num_exp(mean(j->score, n, offsetof(struct score, nll), &error));
	error *= ppl;
	set(r, PPL, ppl, &error);
	if (o.base) base_results(r, j->score, n, ppl);
	out_take_stdout(j->results);
	if (o.json) print_json(r, j->windows*(size_t)o.ctx, n);
	else print_text(r);
	out_commit(j->results);
	return verdict(r);
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
	free(j->spare);
	logits_file_close(&j->base);
	logits_file_close(&j->save);
	vocab_free(j->v);
	free(j->ids);
	free(j->score);
}

int main(int argc, char **argv)
{
	int operands = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-perplexity", "measure perplexity, and the divergence from another model",
		"-m MODEL [--base MODEL|LOGITS] [--ctx N] [--chunks N] [--batch N] [--fail-above NAME=X]... [--save-logits FILE] [--json] [--arch-file YAML] [-o FILE] [-j N] [TEXT]", 0, 1 });
	struct ggu_pool *pool;
	struct job j = { .first = (size_t)o.ctx/2, .per = (size_t)o.ctx - 1 - (size_t)o.ctx/2 };
	double bound;
	int status;
	for (size_t i = 0; i < o.fail_above.n; i++) read_rule(o.fail_above.v[i], &bound);
	if (o.save && o.output) sandbox_off = 1;        /* it knows of one folder to write in */
	pool = load_pool(o.jobs, (const char *[]){ o.model, o.base, o.arch_file, operands ? argv[0] : NULL }, 4, o.save ? o.save : o.output);
	j.a = (struct side){ .m = load_model(o.model, o.arch_file, pool), .path = o.model };
	j.from_file = o.base && logits_file_open(&j.base, o.base);
	if (o.base && !j.from_file) j.b = (struct side){ .m = load_model(o.base, o.arch_file, pool), .path = o.base };
	j.file.m = j.a.m;
	read_text(&j, operands ? argv[0] : NULL);
	check_base(&j);
	open_outputs(&j, operands ? argv[0] : NULL);
	measure(&j);
	status = report(&j);
	close_save(&j);         /* last, so that after exit 2 there is no file */
	job_free(&j);
	ggu_pool_free(pool);
	return status;
}
