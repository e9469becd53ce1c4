/* SPDX-License-Identifier: MIT
 * gguf-imatrix - collects, merges, converts and reports importance matrices.
 *
 * The text is tokenized once and cut into windows of n_ctx tokens; what is left at the end is not used. If the model
 * wants a beginning token, it replaces the first of every window. Each window is evaluated from an empty cache, and the
 * squares of the inputs of every weight are summed, with every token counting once, as in llama.cpp. The evaluator's
 * numbers and the sums depend neither on batches nor on threads, and a checkpoint has the exact sums, so an interrupted
 * run ends with the bytes of an uninterrupted one.
 *
 * Covariances use one token of a window in two (--stride), which halves their cost and loses next to nothing, and those
 * of some windows of random tokens (drawn.h). */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "drawn.h"
#include "imatrix_stats.h"
#include "load.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"
#include "tag.h"
#include "turns.h"

static struct {
	const char *model, *output, *checkpoint, *dataset, *arch_file;
	int ctx, batch, jobs, block, stride;
	struct load_place place;
	uint64_t chunks, from, every;
	bool dat, partial, merge, stats, json, process_output, covariance, special;
} o = { .ctx = 512 };
static const struct opt opts[] = {
	OPT_STR('m', "model", &o.model, "MODEL", "the model to evaluate"),
	OPT_INT('c', "ctx", &o.ctx, "N", 8, 1 << 20,
		"tokens of a window (default: 512); with --merge, what .dat files count"),
	OPT_U64(0, "from", &o.from, "N", 0, 1e12, "begin with window N, counted from 0"),
	OPT_U64(0, "chunks", &o.chunks, "N", 1, 1e12, "use only N windows"),
	LOAD_BATCH_OPTION(&o.batch),
	OPT_FLAG(0, "process-output", &o.process_output, "also collect for output.weight"),
	OPT_FLAG(0, "covariance", &o.covariance,
		"also collect how inputs vary together, for error feedback"),
	OPT_INT(0, "block", &o.block, "N", 256, 1 << 16,
		"with --covariance: columns of a block (default: the model's width)"),
	OPT_INT(0, "stride", &o.stride, "N", 1, 512,
		"with --covariance: use one of every N tokens (default: 2)"),
	OPT_FLAG(0, "special", &o.special, "read the strings of special tokens in TEXT as those tokens"),
	OPT_STR(0, "dataset", &o.dataset, "NAME", "name of the data set (default: base name of TEXT)"),
	OPT_STR(0, "checkpoint", &o.checkpoint, "FILE",
		"save the sums to FILE now and then; resume from it if it exists"),
	OPT_U64(0, "every", &o.every, "N", 1, 1e9, "save after every N windows (default: 10)"),
	OPT_FLAG(0, "merge", &o.merge, "add up the matrices A ..."),
	OPT_FLAG(0, "stats", &o.stats, "show the matrix A by tensor and layer"),
	OPT_FLAG(0, "json", &o.json, "with --stats: print JSON"),
	OPT_FLAG(0, "partial", &o.partial, "write sums in full precision, for --merge"),
	OPT_FLAG(0, "dat", &o.dat, "write the old form, llama.cpp's .dat"),
	OPT_ARCH_FILE(&o.arch_file),
	LOAD_PLACE_OPTIONS(&o.place),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

static void write_matrix(const struct imatrix *im, struct out *out)
{
	struct ggu_error err;
	enum ggu_status s = o.dat ? imatrix_write_dat(im, out_fd(out), &err)
		: o.partial ? imatrix_write_checkpoint(im, "partial", out_fd(out), &err)
		: imatrix_write_gguf(im, out_fd(out), &err);
	if (s) msg_die_error(out_name(out), &err);
	out_commit(out);
}

/* ---- collecting ---- */

struct run {
	struct imatrix *im;
	struct ggu_pool *pool;
	struct model *model;
	int32_t *ids;           /* [n_chunks + drawn.n][ctx] */
	uint64_t n_chunks;
	struct drawn drawn;     /* windows of random tokens, after those of the text; only covariances use them */
	enum { TEXT, DRAWN, DRAWN_FOR_FIRST_BLOCK } now;        /* what is being evaluated */
	int32_t start;          /* what a decoder's sequence begins with */
	char tag[TAG_BYTES];    /* of text, model and settings: a checkpoint belongs to one run */
	_Atomic uint64_t done;  /* windows */
};
/* What evaluates n windows side by side: all threads, or one of several that have windows of their own. */
struct team {
	struct run *r;
	struct ggu_pool *pool;  /* NULL: one thread */
	struct work *w;
	struct part *part, *source;     /* [n] */
	int32_t *target;        /* [n][seen]: with an encoder */
	float *rows;            /* [n*seen][n_embd]: with --process-output */
	size_t n;
	/* with other teams; `turn`: of the windows */
	struct turns *turns;
	size_t turn;
	bool stopped;           /* behind the first block */
	bool failed;
	struct ggu_error err, refused;  /* refused: why tap does not take activations */
};

/* The embedding is multiplied by where it is the output matrix too. */
static bool is_output(const char *weight)
{
	return !strcmp(weight, "output.weight") || !strcmp(weight, "token_embd.weight");
}
/* "blk.3.attn_q.weight"; of a model with an encoder "enc.blk.3.attn_q.weight" */
static bool is_layers(const char *weight)
{
	return text_starts(weight, "blk.") || strstr(weight, ".blk.");
}
static enum ggu_status tap(void *ctx, const char *weight, size_t n_mat, size_t mat, size_t n_in, const float *x,
	size_t stride, size_t n)
{
	struct team *t = ctx;
	struct run *r = t->r;
	enum ggu_status s;
	if (!is_layers(weight) && !(o.process_output && is_output(weight))) return GGU_OK;
	if (r->now == DRAWN_FOR_FIRST_BLOCK && !drawn_in_first_block(weight)) {
		t->stopped = true;
		return GGU_ERR_STATE;
	}
	if (t->turns && !turns_wait(t->turns, t->turn)) return GGU_ERR_STATE;
	s = r->now != TEXT ? GGU_OK : imatrix_add(r->im, weight, n_mat, mat, n_in, x, stride, n, t->pool,
		&t->refused);
	if (t->turns) turns_next(t->turns, t->turn);
	if (s || !o.covariance) return s;
	if (r->now != TEXT) imatrix_sample(r->im, 1, drawn_root((size_t)r->n_chunks, r->drawn, (size_t)o.stride,
		weight), drawn_first_root((size_t)o.ctx, 1));
	return imatrix_add_covariance(r->im, weight, n_mat, mat, n_in, (size_t)o.block, x, stride, n, t->pool,
		&t->refused);
}
static _Noreturn void die(const struct team *t)
{
	msg_die_error(o.model, t->refused.code ? &t->refused : &t->err);
}

/* Counted from the first window of the text, so that the matrices of parts of a text use different windows. */
static void draw(struct run *r, const struct vocab *v)
{
	const size_t n = (size_t)r->n_chunks;
	r->drawn = drawn_windows(n);
	if (model_has_encoder(r->model)) r->drawn.n = r->drawn.whole;   /* a decoder needs all of the encoder */
	drawn_append(v, model_n_vocab(r->model), (size_t)o.from, r->drawn, &r->ids, n, (size_t)o.ctx);
}
static size_t half(void) { return (size_t)o.ctx/2; }
static void begin_decoder(struct run *r, const struct vocab *v)
{
	r->start = model_start(r->model) >= 0 ? model_start(r->model) : vocab_bos(v);
	if (r->start < 0) msg_die("%s: names no start token for the decoder", o.model);
}

static void tokenize(struct run *r, const char *text_name)
{
	struct vocab *v;
	struct tokenizer *t;
	size_t n;
	char *text = load_text(text_name, LOAD_TEXT, &n);
	const struct load_windows w = { (size_t)o.ctx, o.from, o.chunks,
		TOKENIZE_BOS | TOKENIZE_EOS | (o.special ? TOKENIZE_SPECIAL : 0) };
	load_tokenizer(r->model, o.model, &v, &t);
	r->n_chunks = load_windows(&w, t, text_name, text, n, &r->ids);
	load_tell_context(r->model, o.model, w.ctx);
	if (model_has_encoder(r->model)) begin_decoder(r, v);
	if (vocab_add_bos(v) && vocab_bos(v) >= 0)
		for (uint64_t i = 0; i < r->n_chunks; i++) r->ids[i*(size_t)o.ctx] = vocab_bos(v);
	if (o.covariance) draw(r, v);
	tokenizer_free(t);
	vocab_free(v);
	free(text);
}

/* ---- checkpoints ---- */

/* Everything that the sums depend on, including the weights: going on with another model would mix two. */
static void make_tag(struct run *r)
{
	uint64_t settings[4] = { (uint64_t)o.ctx, o.process_output, o.covariance ? (uint64_t)o.block : 0,
		(uint64_t)o.stride };
	struct tag *t = tag_new();
	tag_add(t, settings, sizeof settings);
	tag_add(t, r->ids, (r->n_chunks + r->drawn.n)*(size_t)o.ctx*sizeof *r->ids);
	tag_model(t, model_file(r->model), o.model, true);
	tag_end(t, r->tag);
}

static void save(const struct run *r, uint64_t done)
{
	struct out *out = out_open(o.checkpoint, true);
	struct ggu_error err;
	imatrix_set_chunks(r->im, done, (uint64_t)o.ctx);
	if (imatrix_write_checkpoint(r->im, r->tag, out_fd(out), &err)) msg_die_error(o.checkpoint, &err);
	out_commit(out);
}

/* How many windows the checkpoint has; 0 if there is none. */
static uint64_t resume(struct run *r)
{
	struct imatrix *im;
	struct ggu_error err;
	struct stat st;
	if (stat(o.checkpoint, &st) && errno == ENOENT) return 0;
	if (imatrix_read(&im, o.checkpoint, &err)) msg_die_error(o.checkpoint, &err);
	if (strcmp(imatrix_tag(im), r->tag) || imatrix_chunks(im) > r->n_chunks)
		msg_die("%s: is from a run with another model, text or setting; remove it to start over", o.checkpoint);
	imatrix_free(r->im);
	r->im = im;
	msg_note("resuming from %s, window %llu of %llu", o.checkpoint, (unsigned long long)imatrix_chunks(im),
		(unsigned long long)r->n_chunks);
	return imatrix_chunks(im);
}

/* ---- a team ---- */

/* How many windows are evaluated side by side: as many as fit into a batch, or one if sums are taken by window. */
static size_t side_by_side(size_t batch)
{
	size_t n = batch/(size_t)o.ctx;
	return o.covariance || n < 1 ? 1 : n;
}

/* Tokens that a work takes at once: those of a whole window where a window must not be cut. */
static size_t whole_batch(const struct model *m, size_t batch)
{
	return model_is_whole(m) && batch < (size_t)o.ctx ? (size_t)o.ctx : batch;
}

/* How many tokens of a window the decoder, or the only stack, sees. If there is an encoder, it gets the first half, and
 * the decoder the second, after the token that it begins with. */
static size_t seen(const struct model *m) { return model_has_encoder(m) ? (size_t)o.ctx - half() : (size_t)o.ctx; }

static struct team team_new(struct run *r, struct ggu_pool *pool, size_t batch)
{
	struct team t = { .r = r, .pool = pool, .n = side_by_side(batch) };
	struct ggu_error err;
	t.part = msg_need(calloc(t.n, sizeof *t.part));
	t.source = msg_need(calloc(t.n, sizeof *t.source));
	t.target = msg_need(malloc(t.n*(size_t)o.ctx*sizeof *t.target));
	if (o.process_output) t.rows = msg_need(malloc(t.n*(size_t)o.ctx*model_n_embd(r->model)*sizeof *t.rows));
	if (work_new_for(&t.w, r->model, pool, whole_batch(r->model, batch), &err)) msg_die_error(o.model, &err);
	for (size_t i = 0; i < t.n; i++)
		if (state_new(&t.part[i].state, r->model, NULL, &err)) msg_die_error(o.model, &err);
	return t;
}
static void team_free(struct team *t)
{
	for (size_t i = 0; i < t->n; i++) state_free(t->part[i].state);
	work_free(t->w);
	free(t->part);
	free(t->source);
	free(t->target);
	free(t->rows);
}

/* Passes the first halves of windows through the encoder side by side. What the decoder sees replaces the windows. */
static enum ggu_status encode(struct team *t, size_t n)
{
	const size_t h = half(), rest = (size_t)o.ctx - h;
	for (size_t i = 0; i < n; i++) {
		struct part *p = t->part + i;
		int32_t *to = t->target + i*rest;
		t->source[i] = (struct part){ p->state, p->ids, h, h };
		*to = t->r->start;
		memcpy(to + 1, p->ids + h, (rest - 1)*sizeof *to);
		p->ids = to;
	}
	return model_encode(t->w, t->source, n, tap, t, &t->err);
}

/* Windows chunk..chunk + n - 1; false: failed. */
static bool evaluate(struct team *t, uint64_t chunk, size_t n)
{
	struct run *r = t->r;
	struct model_call c = { .part = t->part, .n_parts = n, .rows = t->rows, .tap = tap, .tap_ctx = t };
	size_t n_seen = seen(r->model);
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < n; i++) {
		state_reset(t->part[i].state);
		t->part[i].ids = r->ids + (chunk + i)*(size_t)o.ctx;
		t->part[i].n = n_seen;
		t->part[i].first = t->rows ? 0 : n_seen;
	}
	t->stopped = false;
	if (model_has_encoder(r->model)) s = encode(t, n);
	if (!s) s = model_eval(t->w, &c, &t->err);
	if (!s && t->rows) s = model_logits(t->w, t->rows, n*n_seen, NULL, tap, t, &t->err);
	if (o.covariance && (!s || t->stopped)) s = imatrix_flush(r->im, t->pool, &t->err);
	t->failed = s;
	return !s;
}

/* ---- windows to each thread ---- */

/* What teams of one thread share: windows from `first` on. */
struct apart { struct team *team; struct turns *turns; uint64_t first; };
static void evaluate_apart(void *ctx, size_t task, int worker)
{
	struct apart *a = ctx;
	struct team *t = a->team + worker;
	uint64_t done;
	if (t->failed) return;
	t->turns = a->turns;
	t->turn = task;
	if (!evaluate(t, a->first + task*t->n, t->n)) {
		turns_fail(a->turns, task);
		return;
	}
	turns_end(a->turns, task);
	done = atomic_fetch_add(&t->r->done, t->n) + t->n;
	progress_set(done);
}
static void die_if_failed(const struct team *t, size_t n)
{
	const struct team *first = NULL;
	for (size_t i = 0; i < n; i++)
		if (t[i].failed && (!first || t[i].turn < first->turn)) first = t + i;
	if (first) die(first);
}

/* Turns need windows with the same inputs, each once. */
static size_t n_apart(const struct run *r, size_t batch)
{
	struct model_cost c;
	struct ggu_error err;
	const size_t n = side_by_side(batch);
	const bool cut = whole_batch(r->model, batch) < (size_t)o.ctx;
	const double rows = (double)n*o.ctx*(double)model_n_embd(r->model)*sizeof(float);
	if (o.covariance || cut || !model_is_even(r->model)) return 0;
	if (model_cost(&c, r->model, NULL, whole_batch(r->model, batch), (size_t)o.ctx, 1, &err))
		msg_die_error(o.model, &err);
	return load_threads_apart(r->pool, r->n_chunks/n,
		c.work_bytes + (double)n*c.state_bytes + (o.process_output ? rows : 0));
}

/* Windows up to `end`: as many as can be shared out evenly to each thread, the rest to all of them together, in a team
 * that is made when it is needed. */
static void evaluate_to(struct run *r, size_t batch, struct team *all, struct team *apart, size_t n, uint64_t end)
{
	const uint64_t groups = n ? (end - r->done)/apart->n/n*n : 0;
	if (groups) {
		struct apart a = { apart, msg_need(turns_new(groups)), r->done };
		ggu_pool_run(r->pool, groups, evaluate_apart, &a);
		turns_free(a.turns);
		die_if_failed(apart, n);
	}
	if (r->done < end && !all->w) *all = team_new(r, r->pool, batch);
	while (r->done < end) {
		size_t some = end - r->done < all->n ? (size_t)(end - r->done) : all->n;
		if (!evaluate(all, r->done, some)) die(all);
		r->done += some;
		progress_set(r->done);
	}
}
static void evaluate_all(struct run *r, size_t batch)
{
	const size_t n = n_apart(r, batch);
	struct team all = { .n = 0 }, *apart = msg_need(calloc(n + 1, sizeof *apart));
	for (size_t i = 0; i < n; i++) apart[i] = team_new(r, NULL, batch);
	progress_begin("evaluating", r->n_chunks, "windows");
	while (r->done < r->n_chunks) {
		uint64_t end = o.checkpoint ? r->done + (o.every - r->done%o.every) : r->n_chunks;
		evaluate_to(r, batch, &all, apart, n, end < r->n_chunks ? end : r->n_chunks);
		if (r->done < r->n_chunks) save(r, r->done);
	}
	progress_end();
	for (size_t i = 0; i < n; i++) team_free(apart + i);
	team_free(&all);
	free(apart);
}

/* Random windows are used by covariances alone, after all of the text, so a checkpoint need not know of them. */
static void evaluate_drawn(struct run *r)
{
	struct team t;
	if (!r->drawn.n) return;
	t = team_new(r, r->pool, (size_t)o.ctx);
	for (size_t i = 0; i < r->drawn.n; i++) {
		r->now = i < r->drawn.whole ? DRAWN : DRAWN_FOR_FIRST_BLOCK;
		if (!evaluate(&t, r->n_chunks + i, 1)) die(&t);
	}
	team_free(&t);
}

/* Rows as wide as the model vary as a whole; those inside a feed-forward lose little when cut into two or three blocks
 * (ENCODERS.md), and the cost of a matrix grows with its square. */
static int usual_block(size_t n_embd)
{
	enum { LEAST = 768, MOST = 2048, STEP = 256 };
	return n_embd <= LEAST ? LEAST : n_embd >= MOST ? MOST : (int)((n_embd + STEP - 1)/STEP*STEP);
}
static void collect(const char *text_name)
{
	struct run r = { .im = msg_need(imatrix_new()) };
	struct out *out = out_open(o.output, true);
	if (o.checkpoint) out_check(o.checkpoint);
	sandbox_output(o.checkpoint);
	r.pool = load_pool(o.jobs, o.place.pin, (const char *[]){ o.model, text_name, o.arch_file }, 3, o.output);
	out_refuse_input(out, text_name);
	out_refuse_input(out, o.checkpoint);    /* which is removed at the end */
	out_refuse_input(out, o.arch_file);
	r.model = load_model_held(o.model, o.arch_file, r.pool, load_hold(&o.place));
	out_refuse_sources(out, o.model, model_file(r.model));
	if (!o.block) o.block = usual_block(model_n_embd(r.model));
	tokenize(&r, text_name);
	if (o.checkpoint) {
		make_tag(&r);
		r.done = resume(&r);
	}
	if (!r.done && imatrix_add_dataset(r.im, o.dataset ? o.dataset : load_base_name(text_name)))
		msg_die("out of memory");
	imatrix_sample(r.im, (size_t)o.stride, 1, drawn_first_root((size_t)o.ctx, (size_t)o.stride));
	evaluate_all(&r, o.batch ? (size_t)o.batch : 512);
	evaluate_drawn(&r);
	imatrix_set_chunks(r.im, r.n_chunks, (uint64_t)o.ctx);
	if (!imatrix_count(r.im)) msg_die("%s: no weight of a layer was used", o.model);
	write_matrix(r.im, out);
	if (o.checkpoint && unlink(o.checkpoint) && errno != ENOENT) msg_warn("%s: %s", o.checkpoint, strerror(errno));
	free(r.ids);
	model_close(r.model);
	ggu_pool_free(r.pool);
	imatrix_free(r.im);
}

/* Warns about a file that is named again: it would count twice. */
static void tell_of_twins(char **names, int n)
{
	struct stat *st = msg_need(calloc((size_t)n, sizeof *st));
	for (int i = 0; i < n; i++) {
		if (stat(names[i], st + i) || !S_ISREG(st[i].st_mode)) continue;
		for (int k = 0; k < i; k++) {
			if (st[k].st_dev != st[i].st_dev || st[k].st_ino != st[i].st_ino) continue;
			msg_warn("%s: is the same file as %s, and counts twice", names[i], names[k]);
			break;
		}
	}
	free(st);
}

static void merge(char **names, int n)
{
	struct out *out = out_open(o.output, true);
	struct imatrix *sum = msg_need(imatrix_new()), *im;
	struct ggu_error err;
	tell_of_twins(names, n);
	sandbox_enter((const char *const *)names, n, o.output);
	for (int i = 0; i < n; i++) {
		out_refuse_input(out, names[i]);
		if (imatrix_read(&im, names[i], &err)) msg_die_error(names[i], &err);
		if (!imatrix_chunk_tokens(im)) {        /* the old form, which counts in windows */
			imatrix_scale(im, o.ctx);
			imatrix_set_chunks(im, imatrix_chunks(im), (uint64_t)o.ctx);
		}
		if (imatrix_merge(sum, im, &err)) msg_die_error(names[i], &err);
		imatrix_free(im);
	}
	write_matrix(sum, out);
	imatrix_free(sum);
}

static void stats(const char *name)
{
	struct out *out = out_open(o.output, false);
	struct imatrix *im;
	struct ggu_error err;
	pipe_input(name);
	out_refuse_input(out, name);
	sandbox_enter((const char *[]){ name }, 1, o.output);
	if (imatrix_read(&im, name, &err)) msg_die_error(name, &err);
	out_take_stdout(out);
	imatrix_stats_print(im, strcmp(name, "-") ? name : "(stdin)", o.json);
	out_commit(out);
	imatrix_free(im);
}

/* What only evaluating a text has a use for. */
static void refuse_measuring(void)
{
	const char *with = o.merge ? "--merge" : "--stats";
	opt_refuse(with, "from chunks batch process-output covariance block stride special dataset checkpoint every "
		"pin mlock no-mmap arch-file");
	if (o.stats) opt_refuse(with, "ctx dat partial");
}

int main(int argc, char **argv)
{
	argc = opt_parse(argc, argv, opts,
		&(struct opt_program){ "gguf-imatrix", "collect, merge and show importance matrices",
		"-m MODEL [--ctx N] [--from N] [--chunks N] [--batch N] [--process-output] [--covariance] [--block N] "
		"[--stride N] [--special] [--dataset NAME] [--checkpoint FILE [--every N]] [--pin] [--mlock] "
		"[--no-mmap] [--arch-file YAML] [--dat | --partial] [-j N] [-o FILE] [TEXT]\n"
		"--merge [--ctx N] [--dat | --partial] [-o FILE] A ...\n"
		"--stats [--json] [-o FILE] [A]", 0, -1 });
	if (!!o.model + o.merge + o.stats != 1) msg_die("give one of -m, --merge and --stats; see -h");
	if (!o.model) refuse_measuring();
	if (o.block % 256) msg_die("--block expects a multiple of 256");
	if ((o.block || o.stride) && !o.covariance) msg_die("--block and --stride need --covariance");
	if (!o.stride) o.stride = 2;
	if (o.covariance) o.process_output = true;
	if (o.merge && !argc) msg_die("no matrices given to merge");
	if (o.json && !o.stats) msg_die("--json needs --stats");
	if (o.dat && o.covariance) msg_die("--dat and --covariance cannot be combined: the old form has no room");
	if (o.every && !o.checkpoint) msg_die("--every needs --checkpoint");
	if (!o.every) o.every = 10;
	if (o.dat && o.partial) msg_die("--dat and --partial cannot be combined");
	if (!o.merge && argc > 1) msg_die("too many operands: '%s'", argv[1]);
	if (o.merge) merge(argv, argc);
	else if (o.stats) stats(argc ? argv[0] : "-");
	else collect(argc ? argv[0] : "-");
	return EXIT_YES;
}
