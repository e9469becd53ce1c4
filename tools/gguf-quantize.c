/* SPDX-License-Identifier: MIT
 * gguf-quantize - make a model smaller: every tensor to the type that a recipe or a plan gives it.
 *
 * The header of the output is known before the first weight is read: sizes follow from shapes and types. Then
 * tensors pass one after another, in the order of their data, so that the input may be a pipe and memory stays
 * bounded (recode.h). Nothing here knows an architecture. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../imatrix/imatrix.h"
#include "../quant/quant.h"
#include "../quant/recipe.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "progress.h"
#include "recode.h"
#include "typeplan.h"

static struct {
	const char *imatrix, *out, *output_type, *embd_type, *plan;
	struct opt_list tensor_type;
	bool pure, leave_output, allow_requantize, keep_non_finite, dry_run, verbose, json;
	int effort, jobs;
} o = { .effort = QUANT_EFFORT_DEFAULT };

static const struct opt opts[] = {
	OPT_STR('i', "imatrix", &o.imatrix, "FILE", "weigh errors by this importance matrix"),
	OPT_FLAG(0, "pure", &o.pure, "the recipe's one type for every weight"),
	OPT_LIST(0, "tensor-type", &o.tensor_type, "REGEX=T", "type T for tensors whose name REGEX finds; first match wins"),
	OPT_STR(0, "output-tensor-type", &o.output_type, "T", "type of output.weight"),
	OPT_STR(0, "token-embedding-type", &o.embd_type, "T", "type of token_embd.weight"),
	OPT_FLAG(0, "leave-output-tensor", &o.leave_output, "keep output.weight as it is"),
	OPT_STR(0, "plan", &o.plan, "FILE", "types from a YAML list of tensor and type"),
	OPT_FLAG(0, "allow-requantize", &o.allow_requantize, "take tensors that are quantized already"),
	OPT_FLAG(0, "keep-non-finite", &o.keep_non_finite, "go on past weights that are not finite"),
	OPT_INT(0, "effort", &o.effort, "N", QUANT_EFFORT_MIN, QUANT_EFFORT_MAX, "how hard to search, 1 to 9 (default: 5)"),
	OPT_FLAG('n', "dry-run", &o.dry_run, "print the plan and sizes, read no weights"),
	OPT_FLAG('v', "verbose", &o.verbose, "print a line for each tensor with its error"),
	OPT_FLAG(0, "json", &o.json, "print the table as JSON; with --dry-run or -o"),
	OPT_OUTPUT(&o.out),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

static struct ggu_pool *pool;

/* ---- the matrix ---- */

/* A tensor's importances, [n_mat][n_in], or NULL where the matrix has none. Experts that no token reached
 * weigh all columns alike. */
struct weights { float *w; size_t n_mat; };
static struct { size_t n_missing, n_unseen; char *missing, *unseen; } gaps;

static void note(char **list, const char *name)
{
	size_t have = *list ? strlen(*list) : 0, n = strlen(name) + 3;
	char *p = realloc(*list, have + n), *masked = text_mask(name, strlen(name));
	if (!p) msg_die("out of memory");
	p = realloc(p, have + strlen(masked) + 3);
	if (!p) msg_die("out of memory");
	snprintf(p + have, strlen(masked) + 3, "%s%s", have ? ", " : "", masked);
	free(masked);
	*list = p;
}
static bool uses_importance(uint32_t type)
{
	return ggu_type_info(type)->kind == GGU_KIND_BLOCK && type != GGU_TYPE_Q8_0;
}
static struct weights weights_of(const struct imatrix *im, const struct ggu_tensor *t, uint32_t type)
{
	struct weights r = { NULL, 0 };
	const struct imatrix_entry *e = im && uses_importance(type) ? imatrix_find(im, t->name) : NULL;
	size_t n_unseen = 0;
	if (!im || !uses_importance(type)) return r;
	if (!e) {
		/* the embedding is looked up, not multiplied: no matrix has it */
		if (strcmp(t->name, "token_embd.weight") != 0) { gaps.n_missing++; note(&gaps.missing, t->name); }
		return r;
	}
	if (e->n_in != t->ne[0] || (e->n_mat != 1 && e->n_mat != t->ne[2]*t->ne[3]))
		msg_die("%s: %s has %zu columns of %zu matrices, the model's tensor %llu of %llu: is it another model's?", o.imatrix,
			t->name, e->n_in, e->n_mat, (unsigned long long)t->ne[0], (unsigned long long)(t->ne[2]*t->ne[3]));
	r.n_mat = e->n_mat;
	r.w = calloc(e->n_in*e->n_mat, sizeof *r.w);
	if (!r.w) msg_die("out of memory");
	for (size_t m = 0; m < e->n_mat; m++)
		if (!imatrix_importance(e, m, r.w + m*e->n_in)) n_unseen++;
	if (n_unseen) {
		char text[300];
		gaps.n_unseen += n_unseen;
		snprintf(text, sizeof text, "%zu of %zu in %s", n_unseen, e->n_mat, t->name);
		note(&gaps.unseen, text);
	}
	return r;
}
static void report_gaps(void)
{
	if (gaps.n_missing)
		msg_warn("%s: nothing about these tensors (%zu), so that their columns weigh alike: %s", o.imatrix, gaps.n_missing, gaps.missing);
	if (gaps.n_unseen)
		msg_warn("%s: no token reached these experts (%zu), so that their columns weigh alike: %s", o.imatrix, gaps.n_unseen, gaps.unseen);
}

/* ---- the output's metadata ---- */

static void must(enum ggu_status s)
{
	if (s != GGU_OK) msg_die("metadata: %s", ggu_status_name(s));
}
static struct ggu_meta *new_meta(const struct ggu_meta *from, uint32_t file_type, const struct imatrix *im)
{
	struct ggu_meta *m = ggu_meta_new();
	if (!m) msg_die("out of memory");
	for (size_t i = 0; i < ggu_meta_count(from); i++) {
		const struct ggu_kv *kv = ggu_meta_at(from, i);
		const char *key = ggu_kv_key(kv).p;
		/* what is said of shards is not true of one file, and of an older matrix not of this one */
		if (strncmp(key, "split.", 6) == 0 || (im && strncmp(key, "quantize.imatrix.", 17) == 0)) continue;
		must(ggu_meta_set_kv(m, kv));
	}
	if (file_type == RECIPE_KEEP) return m;
	must(ggu_meta_set_uint(m, "general.quantization_version", GGU_U32, 2));
	must(ggu_meta_set_uint(m, "general.file_type", GGU_U32, file_type));
	if (im) {
		char digest[65];
		typeplan_sha256(o.imatrix, digest);
		must(ggu_meta_set_str(m, "quantize.imatrix.sha256", digest, 64));
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

/* ---- the table ---- */

/* One line of it; error below 0: not measured. */
static void table_line(FILE *f, const struct ggu_tensor *t, const struct recipe_choice *c, uint64_t bytes, double error)
{
	static const char *const why[] = { "", "asked for", "fallback", "as it is" };
	char *name = text_mask(t->name, t->name_bytes), shape[100] = "", lost[32] = "";
	for (uint32_t d = 0; d < t->n_dims; d++)
		snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%llu", d ? "x" : "", (unsigned long long)t->ne[d]);
	if (error >= 0) snprintf(lost, sizeof lost, "%.3e", error);
	fprintf(f, "%-40s %-16s %8s -> %-8s %12llu  %9s  %s\n", name, shape, ggu_type_info(t->type)->name, ggu_type_info(c->type)->name,
		(unsigned long long)bytes, lost, why[c->reason]);
	free(name);
}
static void table_json(json_t *list, const struct ggu_tensor *t, const struct recipe_choice *c, uint64_t bytes, double error)
{
	static const char *const why[] = { "rule", "override", "fallback", "kept" };
	json_t *shape = json_array(), *row;
	for (uint32_t d = 0; d < t->n_dims; d++) json_array_append_new(shape, json_integer((json_int_t)t->ne[d]));
	row = json_pack("{s:s%, s:o, s:s, s:s, s:I, s:s}", "name", t->name, (size_t)t->name_bytes, "shape", shape,
		"from", ggu_type_info(t->type)->name, "to", ggu_type_info(c->type)->name, "bytes", (json_int_t)bytes, "reason", why[c->reason]);
	if (!row) {     /* a name that is no UTF-8 */
		char *name = text_mask(t->name, t->name_bytes);
		row = json_pack("{s:s, s:o, s:s, s:s, s:I, s:s}", "name", name, "shape", json_array(), "from", ggu_type_info(t->type)->name,
			"to", ggu_type_info(c->type)->name, "bytes", (json_int_t)bytes, "reason", why[c->reason]);
		free(name);
	}
	if (row && error >= 0) json_object_set_new(row, "error", json_real(error));
	if (!row || json_array_append_new(list, row) != 0) msg_die("out of memory");
}

/* ---- the run ---- */

struct run {
	struct ggu_file *in;
	const char *name;               /* of the input, for messages */
	size_t n;
	const struct ggu_tensor **t;    /* in the order of their data */
	struct recipe_choice *choice;
	uint64_t *bytes;                /* of the output's tensors */
	uint64_t n_weights, total;
};

static enum ggu_status read_from(void *ctx, uint64_t at, void *to, size_t n, struct ggu_error *err)
{
	void **p = ctx;
	return ggu_read(p[0], p[1], at, to, n, err);
}
static enum ggu_status write_to(void *ctx, const void *p, size_t n, struct ggu_error *err)
{
	return ggu_writer_data(ctx, p, n, err);
}
static void check_sources(const struct run *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct ggu_tensor *t = r->t[i];
		uint32_t to = r->choice[i].type;
		char *name;
		if (t->type == to) continue;
		name = text_mask(t->name, t->name_bytes);
		if (ggu_type_info(t->type)->kind == GGU_KIND_BLOCK && !o.allow_requantize)
			msg_die("%s: %s is quantized already (%s); start from the original, or give --allow-requantize", r->name, name, ggu_type_info(t->type)->name);
		if (!quant_can_decode(t->type)) msg_die("%s: %s: type %s cannot be decoded", r->name, name, ggu_type_info(t->type)->name);
		if (!quant_can_encode(to)) msg_die("%s: type %s cannot be made (%s)", r->name, ggu_type_info(to)->name, name);
		free(name);
	}
}
static void report_fallbacks(const struct run *r)
{
	char *list = NULL;
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		if (r->choice[i].reason == RECIPE_FALLBACK) {
			char text[400];
			snprintf(text, sizeof text, "%s (%llu to a row) %s instead of %s", r->t[i]->name, (unsigned long long)r->t[i]->ne[0],
				ggu_type_info(r->choice[i].type)->name, ggu_type_info(r->choice[i].wanted)->name);
			note(&list, text);
			n++;
		}
	if (n) msg_warn("fall-backs (%zu), where no whole number of blocks makes a row: %s", n, list);
	free(list);
}
static void summary(const struct run *r, uint64_t file_bytes)
{
	uint64_t before = 0;
	for (size_t i = 0; i < r->n; i++) before += r->t[i]->bytes;
	msg_note("%s of weights became %s, %.2f bits per weight; the file has %s", msg_bytes(before), msg_bytes(r->total),
		r->n_weights ? 8.0*(double)r->total/(double)r->n_weights : 0, msg_bytes(file_bytes));
}

/* All weights through the recoder into the writer; lines of the table as they are done. */
static void run_tensors(struct run *r, const struct imatrix *im, struct ggu_writer *w, json_t *list)
{
	struct recode *rc = recode_new(pool);
	struct ggu_error err;
	uint64_t done = 0, total = 0;
	for (size_t i = 0; i < r->n; i++) total += r->t[i]->bytes;
	progress_begin("quantizing", total, "B");
	for (size_t i = 0; i < r->n; i++) {
		const struct ggu_tensor *t = r->t[i];
		struct weights imp = t->type == r->choice[i].type ? (struct weights){ NULL, 0 } : weights_of(im, t, r->choice[i].type);
		void *from[2] = { r->in, (void *)(uintptr_t)t };
		struct recode_result got;
		struct recode_job job = {
			.name = t->name, .from = t->type, .to = r->choice[i].type, .ne = t->ne, .effort = o.effort,
			.importance = imp.w, .n_mat = imp.n_mat, .measure = o.verbose || list, .keep_non_finite = o.keep_non_finite,
			.read = read_from, .read_ctx = from, .write = write_to, .write_ctx = w,
		};
		double error;
		if (im && !imp.w && r->choice[i].type != t->type && quant_needs_importance(r->choice[i].type) &&
			strcmp(t->name, "token_embd.weight") != 0 && strcmp(t->name, "output.weight") != 0)
			msg_die("%s: nothing about %s, which as %s needs it", o.imatrix, t->name, ggu_type_info(r->choice[i].type)->name);
		if (recode(rc, &job, &got, &err) != GGU_OK) {
			if (err.code == GGU_ERR_RANGE && !o.keep_non_finite) {
				msg_error(r->name, &err);
				msg_die("nothing written; --keep-non-finite goes on");
			}
			msg_die_error(r->name, &err);
		}
		if (got.n_bad) msg_warn("%s: %s: %llu weights are not finite", r->name, t->name, (unsigned long long)got.n_bad);
		if (got.n_lost) msg_warn("%s: %s: %llu weights exceed the range of f16", r->name, t->name, (unsigned long long)got.n_lost);
		error = t->type == r->choice[i].type ? -1 : got.norm > 0 ? got.error/got.norm : 0;
		if (o.verbose) table_line(stderr, t, &r->choice[i], r->bytes[i], error);
		if (list) table_json(list, t, &r->choice[i], r->bytes[i], error);
		free(imp.w);
		progress_set(done += t->bytes);
	}
	progress_end();
	recode_free(rc);
}
static void print_json(const struct run *r, json_t *list, uint64_t file_bytes)
{
	json_t *root = json_pack("{s:o, s:I, s:I, s:f}", "tensors", list, "file_bytes", (json_int_t)file_bytes,
		"weights", (json_int_t)r->n_weights, "bits_per_weight", r->n_weights ? 8.0*(double)r->total/(double)r->n_weights : 0.0);
	if (!root || json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0 || putchar('\n') == EOF) msg_die("cannot write JSON");
	json_decref(root);
}

/* RECIPE IN, IN RECIPE, RECIPE, or IN with --plan */
static const struct recipe *operands(int n, char **v, const char **in)
{
	const struct recipe *r = NULL;
	*in = "-";
	for (int i = 0; i < n; i++) {
		if (!r && !o.plan && (r = recipe_find(v[i])) != NULL) continue;
		if (strcmp(*in, "-") != 0) msg_die("two files, %s and %s%s", *in, v[i], o.plan ? "" : ", and no recipe");
		*in = v[i];
	}
	if (!r && !o.plan) {
		fprintf(stderr, "gguf-quantize: %s%sno recipe given; they are:\n", n ? v[0] : "", n ? ": " : "");
		for (size_t i = 0; recipe_at(i); i++) fprintf(stderr, "  %-10s %s\n", recipe_name(recipe_at(i)), recipe_summary(recipe_at(i)));
		exit(EXIT_TROUBLE);
	}
	return r;
}

static void open_run(struct run *r, const char *in)
{
	struct ggu_error err;
	r->name = strcmp(in, "-") == 0 ? "standard input" : in;
	if (ggu_open(&r->in, in, &err) != GGU_OK) msg_die_error(r->name, &err);
	r->n = ggu_file_n_tensors(r->in);
	r->t = calloc(r->n + 1, sizeof *r->t);
	r->choice = calloc(r->n + 1, sizeof *r->choice);
	r->bytes = calloc(r->n + 1, sizeof *r->bytes);
	if (!r->t || !r->choice || !r->bytes) msg_die("out of memory");
	for (size_t i = 0; i < r->n; i++) r->t[i] = ggu_file_in_data_order(r->in, i);
}
/* The types of all tensors, and the file_type to record. */
static uint32_t choose(struct run *r, const struct recipe *recipe, bool have_importance)
{
	struct typeplan_options p = {
		.tensor_type = &o.tensor_type, .output_type = o.output_type, .embd_type = o.embd_type, .plan = o.plan,
		.recipe = { .pure = o.pure, .leave_output = o.leave_output, .have_importance = have_importance, .need_nothing = o.dry_run },
	};
	uint32_t ftype = typeplan_choose(&p, recipe, r->name, ggu_file_meta(r->in), r->t, r->n, r->choice);
	for (size_t i = 0; i < r->n; i++) {
		uint64_t n = r->t[i]->ne[0]*ggu_tensor_rows(r->t[i]);
		if (!ggu_type_bytes(r->choice[i].type, n, &r->bytes[i])) msg_die("%s: %s: bad size", r->name, r->t[i]->name);
		r->n_weights += n;
		r->total += r->bytes[i];
	}
	return ftype;
}

int main(int argc, char **argv)
{
	struct run r = { 0 };
	struct imatrix *im = NULL;
	struct ggu_writer *w;
	struct ggu_meta *meta;
	struct ggu_error err;
	struct out *out = NULL;
	json_t *list = NULL;
	const struct recipe *recipe;
	const char *in;
	uint32_t ftype;

	argc = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-quantize", "make a GGUF model's tensors smaller by a recipe or a plan",
		"[-nqv] [-i FILE] [-j N] [-o FILE] [options] RECIPE [FILE]\n[-nqv] [-i FILE] [-j N] [-o FILE] [options] --plan FILE [FILE]", 0, 2 });
	recipe = operands(argc, argv, &in);
	if (o.json && !o.dry_run && (!o.out || strcmp(o.out, "-") == 0)) msg_die("--json writes to standard output, where the model goes: give -o FILE");
	if (o.imatrix && strcmp(o.imatrix, "-") == 0) msg_die("-i wants a file");
	if (o.json && !(list = json_array())) msg_die("out of memory");
	if (!o.dry_run) {
		out = out_open(o.out, true);
		if (strcmp(in, "-") != 0) out_refuse_input(out, in);
	}
	if (o.imatrix && imatrix_read(&im, o.imatrix, &err) != GGU_OK) msg_die_error(o.imatrix, &err);
	open_run(&r, in);
	ftype = choose(&r, recipe, im != NULL);
	check_sources(&r);
	report_fallbacks(&r);
	meta = new_meta(ggu_file_meta(r.in), ftype, im);
	if (ggu_writer_new(&w, meta, &err) != GGU_OK) msg_die_error(r.name, &err);
	for (size_t i = 0; i < r.n; i++)
		if (ggu_writer_add(w, r.t[i]->name, r.t[i]->n_dims, r.t[i]->ne, r.choice[i].type, &err) != GGU_OK) msg_die_error(r.name, &err);
	if (o.dry_run) {
		for (size_t i = 0; i < r.n; i++) {
			if (list) table_json(list, r.t[i], &r.choice[i], r.bytes[i], -1);
			else table_line(stdout, r.t[i], &r.choice[i], r.bytes[i], -1);
		}
		if (!list) printf("%llu bytes, %.2f bits per weight\n", (unsigned long long)ggu_writer_file_bytes(w),
			r.n_weights ? 8.0*(double)r.total/(double)r.n_weights : 0);
	} else {
		pool = ggu_pool_new(o.jobs);
		if (!pool) msg_die("out of memory");
		out_reserve(out, ggu_writer_file_bytes(w));
		if (ggu_writer_begin(w, out_fd(out), &err) != GGU_OK) msg_die_error(o.out, &err);
		run_tensors(&r, im, w, list);
		if (ggu_writer_end(w, &err) != GGU_OK) msg_die_error(o.out, &err);
		out_commit(out);
		ggu_pool_free(pool);
		report_gaps();
		summary(&r, ggu_writer_file_bytes(w));
	}
	if (list) print_json(&r, list, ggu_writer_file_bytes(w));
	if (fflush(stdout) != 0 || ferror(stdout)) msg_die("cannot write to standard output");
	ggu_writer_free(w);
	ggu_meta_free(meta);
	imatrix_free(im);
	ggu_close(r.in);
	free(r.t); free(r.choice); free(r.bytes); free(gaps.missing); free(gaps.unseen);
	return EXIT_YES;
}
