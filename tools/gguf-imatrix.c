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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgguf/size.h"
#include "imatrix_collect.h"
#include "imatrix_stats.h"
#include "load.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"
#include "tag.h"
#include "temp.h"

static struct {
	const char *model, *output, *checkpoint, *dataset;
	struct opt_list arch_files;
	int ctx, batch, jobs, block, stride;
	struct load_place place;
	uint64_t chunks, from, every;
	bool dat, partial, merge, stats, json, process_output, covariance, special;
} o = { .ctx = 512, .batch = MODEL_BATCH };
static const struct opt opts[] = {
	OPT_FILE('m', "model", &o.model, "MODEL", "the model to evaluate"),
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
	OPT_ARCH_FILES(&o.arch_files),
	LOAD_PLACE_OPTIONS(&o.place),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

static const char partial_tag[] = "partial";

static void write_matrix(const struct imatrix *im, struct out *out)
{
	struct ggu_error err;
	enum ggu_status s = o.dat ? imatrix_write_dat(im, out_fd(out), &err)
		: o.partial ? imatrix_write_checkpoint(im, partial_tag, out_fd(out), &err)
		: imatrix_write_gguf(im, out_fd(out), &err);
	if (s) msg_die_error(out_name(out), &err);
	out_commit(out);
}

/* ---- collecting ---- */

/* Draws random windows. They are numbered like those of the text, so that the matrices of its parts use different
 * ones. */
static void draw(struct collect *c, const struct vocab *v)
{
	const size_t n = (size_t)c->n_chunks;
	c->drawn = drawn_windows(n);
	if (model_has_encoder(c->model)) c->drawn.n = c->drawn.whole;   /* a decoder needs all of the encoder */
	drawn_append(v, model_n_vocab(c->model), (size_t)o.from, c->drawn, &c->ids, n, c->ctx);
}
static void begin_decoder(struct collect *c, const struct vocab *v)
{
	c->start = model_start(c->model) >= 0 ? model_start(c->model) : vocab_bos(v);
	if (c->start < 0) msg_die("%s: names no start token for the decoder", o.model);
}

static void tokenize(struct collect *c, const char *text_name)
{
	struct vocab *v;
	struct tokenizer *t;
	size_t n;
	char *text = load_text(text_name, LOAD_TEXT, &n);
	const struct load_windows w = { c->ctx, o.from, o.chunks,
		TOKENIZE_BOS | TOKENIZE_EOS | (o.special ? TOKENIZE_SPECIAL : 0) };
	load_tokenizer(c->model, o.model, &v, &t);
	c->n_chunks = load_windows(&w, t, text_name, text, n, &c->ids);
	load_tell_context(c->model, o.model, w.ctx);
	if (model_has_encoder(c->model)) begin_decoder(c, v);
	if (vocab_add_bos(v) && vocab_bos(v) >= 0)
		for (uint64_t i = 0; i < c->n_chunks; i++) c->ids[i*c->ctx] = vocab_bos(v);
	if (o.covariance) draw(c, v);
	tokenizer_free(t);
	vocab_free(v);
	free(text);
}

/* ---- checkpoints ---- */

/* Of text, model and settings: a checkpoint belongs to one run. */
static char run_tag[TAG_BYTES];

/* Makes a tag of everything that the sums depend on, including metadata and weights: going on with another model would
 * mix two. */
static void make_tag(struct collect *c)
{
	uint64_t settings[] = { c->ctx, c->process_output, c->covariance ? c->block : 0, c->stride,
		(uint64_t)c->start };
	struct tag *t = tag_new();
	tag_add(t, settings, sizeof settings);
	tag_add(t, c->ids, (c->n_chunks + c->drawn.n)*c->ctx*sizeof *c->ids);
	tag_model(t, c->model, o.model, true);
	tag_end(t, run_tag);
}

static void save(const struct collect *c)
{
	struct out *out = out_open(o.checkpoint, true);
	struct ggu_error err;
	imatrix_set_chunks(c->im, c->done, c->ctx);
	if (imatrix_write_checkpoint(c->im, run_tag, out_fd(out), &err)) msg_die_error(o.checkpoint, &err);
	out_commit(out);
}

/* Reads the checkpoint; returns how many windows it has, 0 if there is none. */
static uint64_t resume(struct collect *c)
{
	struct imatrix *im;
	struct ggu_error err;
	struct stat st;
	if (stat(o.checkpoint, &st) && errno == ENOENT) return 0;
	if (imatrix_read(&im, o.checkpoint, &err)) msg_die_error(o.checkpoint, &err);
	if (strcmp(imatrix_tag(im), run_tag) || imatrix_chunks(im) > c->n_chunks)
		msg_die("%s: is from a run with another model, text or setting; remove it to start over", o.checkpoint);
	imatrix_free(c->im);
	c->im = im;
	msg_note("resuming from %s, window %llu of %llu", o.checkpoint, (unsigned long long)imatrix_chunks(im),
		(unsigned long long)c->n_chunks);
	return imatrix_chunks(im);
}

/* A link to it stays: it is the file with the sums that takes room. */
static void remove_checkpoint(void)
{
	char *name = temp_follow(o.checkpoint);
	if (!name || (unlink(name) && errno != ENOENT)) msg_warn("%s: %s", o.checkpoint, strerror(errno));
	free(name);
}

/* The columns of an input as wide as the model belong together in one block; wider inputs, inside a feed-forward, lose
 * little when cut into two or three (ENCODERS.md). The cost of a block grows with its square. */
static size_t usual_block(size_t n_embd)
{
	enum { LEAST = 768, MOST = 2048, STEP = 256 };
	return size_least(size_most(size_up(n_embd, STEP), LEAST), MOST);
}
/* Covariances may take many GB. Their sizes are known after a window, so a full disk shows then, not after hours. A
 * run with a checkpoint loses little to one, and would need room for a third file while it replaces its checkpoint. */
static void reserve(const struct collect *c, struct out *out)
{
	uint64_t bytes;
	struct ggu_error err;
	imatrix_set_chunks(c->im, c->n_chunks, c->ctx);
	if (imatrix_bytes(c->im, o.partial ? partial_tag : NULL, &bytes, &err)) msg_die_error(out_name(out), &err);
	out_reserve(out, bytes);
}
/* Random windows are used by covariances alone, after all of the text, so a checkpoint need not know of them. */
static void evaluate(struct collect *c, struct out *out)
{
	struct collect_teams *t = collect_teams_new(c);
	progress_begin("evaluating", c->n_chunks, "windows");
	if (o.covariance && !o.checkpoint) {
		collect_to(t, 1);
		reserve(c, out);
	}
	while (c->done < c->n_chunks) {
		uint64_t end = o.checkpoint ? c->done + (o.every - c->done%o.every) : c->n_chunks;
		collect_to(t, end < c->n_chunks ? end : c->n_chunks);
		if (c->done < c->n_chunks) save(c);
	}
	progress_end();
	collect_teams_free(t);
	collect_drawn(c);
}
static void add_dataset(struct collect *c, const char *text_name)
{
	if (imatrix_add_dataset(c->im, o.dataset ? o.dataset : load_base_name(text_name))) msg_die("out of memory");
}
static void measure(const char *text_name)
{
	struct collect c = { .im = msg_need(imatrix_new()), .name = o.model, .ctx = (size_t)o.ctx,
		.batch = (size_t)o.batch, .covariance = o.covariance, .stride = (size_t)o.stride };
	struct out *out = out_open(o.output, true);
	if (o.checkpoint) out_check(o.checkpoint);
	sandbox_output(o.checkpoint);
	sandbox_inputs(o.arch_files.v, o.arch_files.n);
	c.pool = load_pool(o.jobs, o.place.pin, (const char *[]){ o.model, text_name }, 2, o.output);
	out_refuse_input(out, text_name);
	out_refuse_input(out, o.checkpoint);    /* which is removed at the end */
	out_refuse_inputs(out, o.arch_files.v, o.arch_files.n);
	c.model = load_model_held(o.model, &o.arch_files, c.pool, load_hold(&o.place));
	out_refuse_sources(out, o.model, model_file(c.model));
	c.process_output = (o.process_output || o.covariance) && model_has_head(c.model);
	c.block = o.block ? (size_t)o.block : usual_block(model_n_embd(c.model));
	tokenize(&c, text_name);
	if (o.checkpoint) {
		make_tag(&c);
		c.done = resume(&c);
	}
	/* a checkpoint has no name, as who goes on may give the text another one */
	if (!o.checkpoint) add_dataset(&c, text_name);
	imatrix_sample(c.im, c.stride, 1, drawn_first_root(c.ctx, c.stride));
	evaluate(&c, out);
	imatrix_set_chunks(c.im, c.n_chunks, c.ctx);
	if (o.checkpoint) add_dataset(&c, text_name);
	if (!imatrix_count(c.im)) msg_die("%s: no weight of a layer was used", o.model);
	write_matrix(c.im, out);
	if (o.checkpoint) remove_checkpoint();
	free(c.ids);
	model_close(c.model);
	ggu_pool_free(c.pool);
	imatrix_free(c.im);
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
	pipe_once((const char *const *)names, n, "two files");
	tell_of_twins(names, n);
	sandbox_enter((const char *const *)names, n, o.output);
	for (int i = 0; i < n; i++) {
		out_refuse_input(out, names[i]);
		if (imatrix_read(&im, names[i], &err)) msg_die_error(names[i], &err);
		if (imatrix_counts_windows(im)) {
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
	imatrix_stats_print(im, msg_name(name), o.json);
	out_commit(out);
	imatrix_free(im);
}

/* Refuses options that have a meaning only when a text is evaluated. */
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
		"[--no-mmap] [--arch-file YAML]... [--dat | --partial] [-j N] [-o FILE] [TEXT]\n"
		"--merge [--ctx N] [--dat | --partial] [-o FILE] A ...\n"
		"--stats [--json] [-o FILE] [A]", 0, -1 });
	if (!!o.model + o.merge + o.stats != 1) msg_usage("give one of -m, --merge and --stats");
	if (!o.model) refuse_measuring();
	if (o.block % 256) msg_usage("--block expects a multiple of 256");
	if ((o.block || o.stride) && !o.covariance) msg_usage("--block and --stride need --covariance");
	if (!o.stride) o.stride = 2;
	if (o.merge && !argc) msg_usage("no matrices given to merge");
	if (o.json && !o.stats) msg_usage("--json needs --stats");
	if (o.dat && o.covariance) msg_usage("--dat and --covariance cannot be combined: the old form has no room");
	if (o.checkpoint && !strcmp(o.checkpoint, "-")) msg_usage("--checkpoint expects FILE, not '-'");
	if (o.every && !o.checkpoint) msg_usage("--every needs --checkpoint");
	if (!o.every) o.every = 10;
	if (o.dat && o.partial) msg_usage("--dat and --partial cannot be combined");
	if (o.stats && argc > 1) msg_usage("--stats shows one matrix: '%s' is too many", argv[1]);
	if (o.model && argc > 1) opt_spare(opts, argv[1]);
	if (o.merge) merge(argv, argc);
	else if (o.stats) stats(argc ? argv[0] : "-");
	else measure(argc ? argv[0] : "-");
	return EXIT_YES;
}
