/* SPDX-License-Identifier: MIT
 * gguf-quantize - makes a model smaller: every tensor gets the type that a recipe or a plan gives it.
 *
 * The header of the output is known before the first weight is read, as sizes follow from shapes and types. Then
 * tensors are processed one after another, in the order of their data, so that the input may be a pipe and memory is
 * bounded (quant/remake.h). Nothing here depends on an architecture. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../imatrix/imatrix.h"
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "../quant/quant.h"
#include "../quant/recipe.h"
#include "calibrate.h"
#include "decimal.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "remake_run.h"
#include "sandbox.h"
#include "shard.h"
#include "typeplan.h"

enum { CTX = 512 };
static struct {
	const char *imatrix, *calibrate, *out, *plan;
	struct typeplan_given given;
	bool allow_requantize, keep_non_finite, dry_run, json, no_feedback;
	double damp;
	int effort, jobs, shards, ctx;
	uint64_t chunks;
	struct { uint32_t i, n; } part;         /* of --part I/N, i from 0; n 0: not given */
	const struct quant_objective *objective;        /* NULL: the default of each type */
} o = { .effort = QUANT_EFFORT_DEFAULT, .damp = -1 };

static int parse_part(void *to, const char *text)
{
	const char *at = text;
	uint64_t i, n;
	(void)to;
	if (!decimal_whole(&at, &i) || *at++ != '/' || !decimal_whole(&at, &n) || *at || !n || n > SHARD_MAX) return 1;
	if (i < 1 || i > n) msg_usage("--part %s: parts are counted from 1, to %u here", text, (unsigned)n);
	o.part.i = (uint32_t)i - 1;
	o.part.n = (uint32_t)n;
	return 0;
}

static int parse_objective(void *to, const char *text)
{
	static struct quant_objective given;
	const struct quant_objective none = { 0, 0, 0 };
	float *const part[] = { &given.doubt, &given.prior, &given.lift };
	double x;
	(void)to;
	o.objective = NULL;
	if (strcmp(text, "default") == 0) return 0;
	given = none;
	o.objective = &given;
	if (strcmp(text, "plain") == 0) return 0;
	for (int k = 0; k < 3; k++) {
		if (!decimal_real(&text, &x) || x > 100 || *text++ != (k < 2 ? ',' : 0)) return 1;
		*part[k] = (float)x;
	}
	return 0;
}

static const struct opt opts[] = {
	OPT_FILE('i', "imatrix", &o.imatrix, "FILE", "weight errors by this importance matrix"),
	OPT_FILE(0, "calibrate", &o.calibrate, "TEXT",
		"fit each tensor to its inputs on TEXT in the quantized model"),
	OPT_INT('c', "ctx", &o.ctx, "N", 8, 1 << 20, "tokens in a window of TEXT (default: 512)"),
	OPT_U64(0, "chunks", &o.chunks, "N", 1, 1e12, "use only N windows of TEXT"),
	TYPEPLAN_OPTIONS(&o.given),
	OPT_FILE(0, "plan", &o.plan, "FILE", "types from a YAML list of tensor and type"),
	OPT_FLAG(0, "allow-requantize", &o.allow_requantize, "accept tensors that are already quantized"),
	OPT_FLAG(0, "keep-non-finite", &o.keep_non_finite, "continue past weights that are not finite"),
	OPT_INT(0, "effort", &o.effort, "N", QUANT_EFFORT_MIN, QUANT_EFFORT_MAX,
		"how hard to search, 1 to 9 (default: 5)"),
	OPT_CALL(0, "objective", &o.objective, "NAME|D,P,L", parse_objective,
		"what to minimise: default, plain, or doubt D, prior P and lift L"),
	OPT_FLAG(0, "no-feedback", &o.no_feedback, "no error feedback, even if the matrix has covariances"),
	OPT_DOUBLE(0, "damp", &o.damp, "X", 0, 100,
		"add X times their diagonal to covariances (default: by type)"),
	OPT_FLAG('n', "dry-run", &o.dry_run, "show what each tensor would become; read no weights, write no file"),
	OPT_FLAG('v', "verbose", &msg_verbose, "print a line for each tensor with its error"),
	OPT_FLAG(0, "json", &o.json, "print the table as JSON; with --dry-run or -o"),
	OPT_INT(0, "shards", &o.shards, "N", 1, SHARD_MAX, "write N shards of even size, named after -o PREFIX"),
	OPT_CALL(0, "part", &o.part, "I/N", parse_part, "write only shard I of N"),
	OPT_OUTPUT(&o.out),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* ---- the run ---- */

struct run {
	struct remake_run re;           /* what is done with the following */
	struct ggu_file *in;
	size_t n;
	const struct ggu_tensor **t;    /* in the order of their data */
	struct recipe_choice *choice;
	uint32_t *from;                 /* [n]: types that are read, or NULL: those of t */
};

static enum ggu_status read_from(void *ctx, struct recode_piece *p, struct ggu_error *err)
{
	const struct run *r = ctx;
	const unsigned char *made = remake_run_made(&r->re, p->i);
	if (made) {
		memcpy(p->to, made + p->at, p->n);
		return GGU_OK;
	}
	return ggu_read(r->in, r->t[p->i], p->at, p->to, p->n, err);
}
/* Dies if a tensor must not or cannot be quantized; a dry run only warns of the first. */
static void check_sources(const struct run *r)
{
	void (*const tell)(const char *fmt, ...) = o.dry_run ? msg_warn : msg_die;
	for (size_t i = 0; i < r->n; i++) {
		const struct ggu_tensor *t = r->t[i];
		uint32_t to = r->choice[i].type;
		const char *from_name = ggu_type_info(t->type)->name, *to_name = ggu_type_info(to)->name;
		if (t->type == to) continue;
		if (ggu_type_info(t->type)->kind == GGU_KIND_BLOCK && !o.allow_requantize)
			tell("%s: %s is already quantized (%s); start from the original, or give --allow-requantize",
				r->re.name, t->name, from_name);
		else if (ggu_type_info(t->type)->kind == GGU_KIND_BLOCK && o.calibrate)
			tell("%s: %s is already quantized (%s); --calibrate needs the original",
				r->re.name, t->name, from_name);
		else if (!quant_can_decode(t->type))
			tell("%s: %s: type %s cannot be decoded", r->re.name, t->name, from_name);
		else if (!quant_can_encode(to)) tell("%s: type %s cannot be encoded (%s)", r->re.name, to_name,
			t->name);
		else continue;
		return;
	}
}
static void check_shards(const struct run *r, uint32_t n_shards)
{
	void (*const tell)(const char *fmt, ...) = o.dry_run ? msg_warn : msg_die;
	if (r->n < n_shards)
		tell("%s: has %zu tensor%s, too few for %u shard%s", r->re.name, r->n, text_s(r->n), n_shards,
			text_s(n_shards));
}
/* RECIPE IN, IN RECIPE, RECIPE, or IN with --plan */
static const struct recipe *operands(int n, char **v, const char **in)
{
	const struct recipe *r = NULL;
	const char *file[3];
	int files = 0;
	for (int i = 0; i < n; i++) {
		const struct recipe *named = r ? NULL : recipe_find(v[i]);
		if (named) r = named;
		else file[files++] = v[i];
	}
	if (r && o.plan)
		msg_usage("the recipe %s and --plan cannot be combined", recipe_name(r));
	if (!r && !o.plan) typeplan_no_recipe(file, files);
	if (files >= 2)
		msg_usage("two input files, %s and %s; name the output with -o", file[0], file[1]);
	*in = files ? file[0] : "-";
	return r;
}

static void open_run(struct run *r, const char *in, const struct imatrix *im, json_t *list)
{
	const char *name = msg_name(in);
	struct ggu_error err;
	pipe_input(in);
	if (ggu_open(&r->in, in, &err) != GGU_OK) msg_die_error(name, &err);
	r->n = ggu_file_n_tensors(r->in);
	r->t = msg_need(calloc(r->n + 1, sizeof *r->t));
	r->choice = msg_need(calloc(r->n + 1, sizeof *r->choice));
	for (size_t i = 0; i < r->n; i++) r->t[i] = ggu_file_in_data_order(r->in, i);
	r->re = (struct remake_run){
		.re = { .n = r->n, .t = r->t, .choice = r->choice, .read = read_from, .read_ctx = r,
			.read_anywhere = ggu_file_seekable(r->in),
			.effort = o.effort, .objective = o.objective, .keep_non_finite = o.keep_non_finite },
		.name = name, .imatrix = im, .imatrix_name = o.imatrix, .no_feedback = o.no_feedback, .damp = o.damp,
		.verbose = msg_verbose && !o.dry_run,
		.list = list, .doing = "quantizing" };
}
/* The types of all tensors, and the file_type to record. */
static uint32_t choose(struct run *r, const struct recipe *recipe, bool have_importance)
{
	struct typeplan_options p = { .given = o.given, .plan = o.plan,
		.recipe = { .have_importance = have_importance, .need_nothing = o.dry_run } };
	return typeplan_choose(&p, recipe, r->re.name, ggu_file_meta(r->in), r->t, r->n, r->choice);
}

/* Refuses to write onto what is read: the model, each of its shards, and the other files. out: NULL for no output */
static void refuse_inputs(const struct out *out, const struct ggu_file *f, const char *in)
{
	if (!out) return;
	out_refuse_sources(out, in, f);
	out_refuse_input(out, o.imatrix);
	out_refuse_input(out, o.plan);
	out_refuse_input(out, o.calibrate);
}

static void dry_run(const struct run *r, json_t *list, uint64_t file_bytes)
{
	struct remake_table table;
	if (!list) remake_table_begin(&table, stdout, &r->re.re, false);
	for (size_t i = 0; i < r->n; i++) {
		if (list) remake_json_tensor(list, &r->re.re, i, -1, NULL);
		else remake_table_line(&table, i, -1, NULL);
	}
	if (!list) remake_table_total(stdout, &r->re.re, file_bytes);
}

/* ---- writing ---- */

static struct run part_of(const struct run *r, size_t first, size_t n)
{
	struct run part = *r;
	part.t += first;
	part.choice += first;
	part.re.re.n = part.n = n;
	part.re.re.t = part.t;
	part.re.re.choice = part.choice;
	if (r->from) part.re.re.from = r->from + first;
	part.re.first = first;
	return part;
}
static struct ggu_writer *writer(const struct run *part, const struct ggu_meta *meta)
{
	struct ggu_writer *w;
	struct ggu_error err;
	if (remake_writer(&part->re.re, meta, &w, &err) != GGU_OK) msg_die_error(part->re.name, &err);
	return w;
}
/* Dies, or warns, of what stands against writing all; returns the bytes of one file. */
static uint64_t check_writing(const struct run *r, const struct ggu_meta *meta)
{
	struct ggu_writer *w = remake_run_writer(&r->re, meta);
	uint64_t bytes = ggu_writer_file_bytes(w);
	ggu_writer_free(w);
	return bytes;
}
/* Writes n tensors of the run, from `first` on, and their metadata. */
static void write_tensors(const struct run *r, size_t first, size_t n, const struct ggu_meta *meta, struct out *out)
{
	struct run part = part_of(r, first, n);
	struct ggu_writer *w = writer(&part, meta);
	part.re.re.read_ctx = &part;
	remake_run_write(&part.re, w, out, o.jobs);
	ggu_writer_free(w);
}

/* The tensors of a shard; meta NULL: it was not requested. */
struct shard { size_t first, n; struct ggu_meta *meta; uint64_t bytes; struct out *out; };

/* *sum: the bytes of all that were requested. */
static struct shard *cut(const struct run *r, const struct ggu_meta *meta, uint32_t n_shards, uint64_t *sum)
{
	struct shard *all = msg_need(calloc(n_shards, sizeof *all));
	uint64_t *bytes = msg_need(calloc(r->n + 1, sizeof *bytes));
	uint32_t *shard = msg_need(calloc(r->n + 1, sizeof *shard));
	size_t first = 0;
	for (size_t i = 0; i < r->n; i++) bytes[i] = remake_bytes(&r->re.re, i);
	shard_cut(bytes, r->n, n_shards, shard);
	*sum = 0;
	for (uint32_t i = 0; i < n_shards; first += all[i++].n) {
		struct shard *s = all + i;
		struct run part;
		struct ggu_writer *w;
		s->first = first;
		while (first + s->n < r->n && shard[first + s->n] == i) s->n++;
		if (o.part.n && o.part.i != i) continue;
		part = part_of(r, first, s->n);
		s->meta = shard_meta(meta, i, n_shards, r->n);
		w = writer(&part, s->meta);
		s->bytes = ggu_writer_file_bytes(w);
		*sum += s->bytes;
		ggu_writer_free(w);
	}
	free(bytes);
	free(shard);
	return all;
}
/* All of them before the first is written, which may take hours: a name that cannot be, or a full disk, shows at
 * once. So many stay open and without a name, the others rest: no more files may be open than the system permits. */
enum { MOST_OPEN = 32 };
static void open_shards(struct shard *s, uint32_t n_shards, const struct ggu_file *f, const char *in)
{
	for (uint32_t i = 0; i < n_shards; i++, s++) {
		char *name = shard_name(o.out, i, n_shards);
		if (s->meta) {
			s->out = out_open(name, true);
			refuse_inputs(s->out, f, in);
			out_reserve(s->out, s->bytes);
			if (i >= MOST_OPEN && !o.part.n) out_rest(s->out);
		}
		free(name);
	}
}
static void write_shards(const struct run *r, const struct shard *s, uint32_t n_shards)
{
	for (uint32_t i = 0; i < n_shards; i++, s++) {
		if (!s->meta) continue;
		out_resume(s->out);
		write_tensors(r, s->first, s->n, s->meta, s->out);
		out_seal(s->out);
	}
}
static void commit_shards(struct shard *s, uint32_t n_shards)
{
	struct out **out = msg_need(calloc(n_shards, sizeof *out));
	for (uint32_t i = 0; i < n_shards; i++) {
		out[i] = s[i].out;
		ggu_meta_free(s[i].meta);
	}
	out_commit_set(out, n_shards);
	free(out);
	free(s);
}

static void check_options(const char *in)
{
	pipe_once((const char *[]){ o.plan, in }, 2, "the plan and the model");
	pipe_once((const char *[]){ o.plan, o.calibrate }, 2, "the plan and the text");
	pipe_once((const char *[]){ o.imatrix, in }, 2, "the importance matrix and the model");
	pipe_once((const char *[]){ o.imatrix, o.plan }, 2, "the importance matrix and the plan");
	if (o.calibrate && o.imatrix)
		msg_usage("-i and --calibrate cannot be combined");
	if (o.calibrate && o.no_feedback) msg_usage("--calibrate and --no-feedback cannot be combined");
	if (o.calibrate && strcmp(in, "-") == 0)
		msg_usage("with --calibrate, the model cannot be standard input: it is mapped into memory");
	if ((o.chunks || o.ctx) && !o.calibrate) msg_usage("--chunks and --ctx need --calibrate");
	if (o.given.leave_output) opt_refuse("--leave-output-tensor", "output-tensor-type");
	if (o.damp >= 0 && !o.calibrate && !o.imatrix) msg_usage("--damp needs -i or --calibrate");
	if (o.damp >= 0 && o.no_feedback) msg_usage("--damp and --no-feedback cannot be combined");
	if (o.shards && o.part.n) msg_usage("--shards and --part cannot be combined");
	if ((o.shards || o.part.n) && !o.dry_run && !shard_prefix(o.out))
		msg_usage("no output name given: use -o PREFIX for shards PREFIX-00001-of-0000N.gguf");
}

static struct imatrix *read_matrix(void)
{
	struct imatrix *im = NULL;
	struct ggu_error err;
	if (o.imatrix && imatrix_read(&im, o.imatrix, &err) != GGU_OK) msg_die_error(o.imatrix, &err);
	if (im && o.damp >= 0 && !imatrix_n_covariances(im))
		msg_warn("%s: it has no covariances, so --damp changes nothing", msg_name(o.imatrix));
	return im;
}

/* The model's, unless it is written in shards or not at all, and that of the table; NULL: there is none. */
static void open_outputs(struct out **out, struct out **table)
{
	*out = o.dry_run || o.shards || o.part.n ? NULL : out_open(o.out, true);
	*table = o.dry_run || o.json ? out_open(NULL, false) : NULL;
	if (*out && *table && out_fd(*out) == 1)
		msg_usage("--json writes to standard output, where the model goes: give -o FILE");
}

/* --calibrate: what is used in products is made before the file is written. */
static void make_by_text(struct run *r, const char *in)
{
	const struct calibrate_options c = { in, o.calibrate, o.out, o.ctx ? o.ctx : CTX, o.jobs, o.chunks, o.damp,
		msg_verbose || o.json };
	if (!ggu_file_seekable(r->in))
		msg_die("%s: with --calibrate, the model cannot be a pipe: it is mapped into memory", in);
	r->re.calibration = calibrate(&r->re.re, &c);
	r->from = msg_need(calloc(r->n + 1, sizeof *r->from));
	for (size_t i = 0; i < r->n; i++) r->from[i] = remake_run_made(&r->re, i) ? r->choice[i].type : r->t[i]->type;
	r->re.re.from = r->from;
}

int main(int argc, char **argv)
{
	struct run r = { 0 }, written;
	struct imatrix *im;
	struct ggu_meta *meta;
	struct out *out, *table;
	struct shard *shards = NULL;
	json_t *list = NULL;
	const struct recipe *recipe;
	const char *in;
	uint32_t ftype, n_shards;
	uint64_t bytes;
	argc = opt_parse(argc, argv, opts,
		&(struct opt_program){ "gguf-quantize", "quantize a GGUF model by a recipe or a plan",
		"[-nv] [-i FILE] [--pure] [--tensor-type REGEX=T]... [--output-tensor-type T] "
		"[--token-embedding-type T] [--leave-output-tensor] [--allow-requantize] [--keep-non-finite] "
		"[--effort N] [--objective NAME|D,P,L] [--no-feedback] [--damp X] "
		"[--calibrate TEXT [--ctx N] [--chunks N]] [--json] "
		"[--shards N | --part I/N] [-j N] [-o FILE] RECIPE|--plan FILE [FILE]", 0, 3 });
	recipe = operands(argc, argv, &in);
	check_options(in);
	n_shards = o.part.n ? o.part.n : (uint32_t)o.shards;
	if (o.json) list = json_array();
	open_outputs(&out, &table);
	if (!o.jobs) o.jobs = ggu_cpu_count();  /* reads files, so before the sandbox */
	sandbox_enter((const char *[]){ in, o.imatrix, o.plan, o.calibrate }, 4, o.out);
	im = read_matrix();
	open_run(&r, in, im, list);
	refuse_inputs(out, r.in, in);
	refuse_inputs(table, r.in, in);
	ftype = choose(&r, recipe, im != NULL || o.calibrate);
	check_sources(&r);
	check_shards(&r, n_shards);
	remake_run_fallbacks(&r.re, msg_verbose || o.dry_run);
	meta = remake_run_meta(&r.re, ggu_file_meta(r.in), ftype);
	if (o.calibrate) remake_run_told(meta, o.calibrate);
	bytes = check_writing(&r, meta);
	if (out) out_reserve(out, bytes);
	if (n_shards) {
		shards = cut(&r, meta, n_shards, &bytes);
		if (!o.dry_run) open_shards(shards, n_shards, r.in, in);
	}
	if (o.calibrate && !o.dry_run) make_by_text(&r, in);
	written = o.part.n ? part_of(&r, shards[o.part.i].first, shards[o.part.i].n) : r;
	if (o.dry_run) dry_run(&written, list, bytes);
	else if (n_shards) write_shards(&r, shards, n_shards);
	else write_tensors(&r, 0, r.n, meta, out);
	if (!o.dry_run) pipe_drain(r.in, in);
	if (!o.dry_run && !msg_verbose && !o.part.n && !msg_quiet && isatty(2))
		remake_table_total(stderr, &r.re.re, bytes);
	if (list) remake_json_total(&written.re.re, list, bytes);
	if (table) out_commit(table);
	if (out) out_commit(out);       /* last, so that after exit 2 there is no output */
	if (shards) commit_shards(shards, n_shards);
	ggu_meta_free(meta);
	imatrix_free(im);
	ggu_close(r.in);
	calibrate_free(r.re.calibration);
	free(r.t); free(r.choice); free(r.from);
	return EXIT_YES;
}
