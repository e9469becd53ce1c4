/* SPDX-License-Identifier: MIT
 * gguf-diff - what differs between two GGUF files: metadata, tensor table, data or decoded values.
 *
 * Keys and tensors are matched by name. Order, padding, version and byte order are not compared: they mean
 * nothing to a reader. Data goes through buffers of a fixed size, in the file order of a pipe if one side is
 * one. Sums of squares are made for parts of PART weights and added in order: no result depends on the threads. */
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "../quant/quant.h"
#include "kv_diff.h"
#include "kv_json.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"

enum { PART = 1 << 15, PARTS = 32, CHUNK = PART*PARTS };

static struct {
	bool metadata, tensors, values, json, unified, brief;
	struct opt_list ignore;
	const char *output;
	int jobs;
} o;
static const struct opt opts[] = {
	OPT_FLAG(0, "metadata", &o.metadata, "compare the metadata only"),
	OPT_FLAG(0, "tensors", &o.tensors, "compare the tensors' names, types and shapes only"),
	OPT_FLAG(0, "values", &o.values,
		"compare decoded values, whatever the types: largest and rms error"),
	OPT_FLAG('u', "unified", &o.unified, "show strings and arrays that differ line by line, like diff -u"),
	OPT_FLAG(0, "brief", &o.brief, "only report whether they differ, and stop at the first difference"),
	OPT_LIST('I', "ignore", &o.ignore, "REGEX", "ignore keys and tensors that match; may be repeated"),
	OPT_FLAG(0, "json", &o.json, "print JSON"),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

static regex_t *ignored;
static json_t *found[4];                /* lists of differences: */
enum { METADATA, TENSORS, DATA, VALUES };
static bool differ;
static struct out *out;
static char **names;            /* of the two files */

static void prepare_ignored(void)
{
	ignored = msg_need(calloc(o.ignore.n + 1, sizeof *ignored));
	for (size_t i = 0; i < o.ignore.n; i++) {
		int e = regcomp(ignored + i, o.ignore.v[i], REG_EXTENDED | REG_NOSUB);
		char why[128];
		if (e) { regerror(e, ignored + i, why, sizeof why); msg_usage("--ignore %s: %s", o.ignore.v[i], why); }
	}
}

static bool pass_over(const char *name)
{
	for (size_t i = 0; i < o.ignore.n; i++) if (!regexec(ignored + i, name, 0, NULL, 0)) return true;
	return false;
}

/* --brief: prints only that the files differ, and exits. */
static _Noreturn void say_so(void)
{
	char *a = text_mask(names[0], strlen(names[0])), *b = text_mask(names[1], strlen(names[1]));
	progress_end();
	printf("%s and %s differ\n", a, b);
	out_commit(out);
	exit(EXIT_NO);
}

/* A difference's JSON object with its name, or NULL for text, which is printed next. */
static json_t *note(int list, const char *label, struct ggu_str name)
{
	json_t *j;
	differ = true;
	if (o.brief) say_so();
	if (!o.json) {
		progress_make_way();
		return NULL;
	}
	if (!found[list]) found[list] = json_array();
	j = json_object();
	json_put_str(j, label, name);
	json_push(found[list], j);
	return j;
}

/* ---- metadata ---- */

/* One side's value, type and, if that is not all of it, bytes: "a", "a_type", "a_raw". */
static void json_side(json_t *j, const char *side, const struct ggu_kv *kv)
{
	json_t *raw = kv_json_raw(kv);
	char key[16];
	json_put(j, side, kv_json(kv));
	snprintf(key, sizeof key, "%s_type", side);
	json_put(j, key, json_string(kv_type_text(kv)));
	snprintf(key, sizeof key, "%s_raw", side);
	if (raw) json_put(j, key, raw);
}

static void differ_kv(struct ggu_str key, const struct ggu_kv *a, const struct ggu_kv *b)
{
	json_t *j = note(METADATA, "key", key);
	char *k = text_mask(key.p, key.n), *x = kv_side_text(a, b), *y = kv_side_text(b, a);
	if (!j) printf("metadata %s: %s | %s\n", k, x, y);
	if (!j && a && b && o.unified) kv_print_unified(a, b);
	if (j && a) json_side(j, "a", a);
	if (j && b) json_side(j, "b", b);
	free(k);
	free(x);
	free(y);
}

static void diff_metadata(const struct ggu_meta *a, const struct ggu_meta *b)
{
	for (size_t i = 0; i < ggu_meta_count(a); i++) {
		const struct ggu_kv *x = ggu_meta_at(a, i), *y = ggu_meta_find(b, ggu_kv_key(x).p);
		if (!pass_over(ggu_kv_key(x).p) && (!y || !kv_same(x, y))) differ_kv(ggu_kv_key(x), x, y);
	}
	for (size_t i = 0; i < ggu_meta_count(b); i++) {
		const struct ggu_kv *y = ggu_meta_at(b, i);
		if (!pass_over(ggu_kv_key(y).p) && !ggu_meta_find(a, ggu_kv_key(y).p))
			differ_kv(ggu_kv_key(y), NULL, y);
	}
}

/* ---- tensor table ---- */

static struct ggu_str name_of(const struct ggu_tensor *t) { return (struct ggu_str){ t->name, t->name_bytes }; }

static bool same_shape(const struct ggu_tensor *a, const struct ggu_tensor *b)
{
	return a->n_dims == b->n_dims && !memcmp(a->ne, b->ne, sizeof a->ne);
}

static void describe(char to[128], const struct ggu_tensor *t)
{
	char shape[TEXT_SHAPE];
	if (!t) { strcpy(to, "absent"); return; }
	text_shape(shape, t->ne, t->n_dims);
	snprintf(to, 128, "%s %s", ggu_type_info(t->type)->name, shape);
}

static json_t *json_tensor(const struct ggu_tensor *t)
{
	json_t *j = json_object();
	json_put(j, "type", json_string(ggu_type_info(t->type)->name));
	json_put(j, "shape", json_of_shape(t));
	return j;
}

/* a or b, but not both, may be NULL */
static void differ_tensor(struct ggu_str name, const struct ggu_tensor *a, const struct ggu_tensor *b)
{
	json_t *j = note(TENSORS, "name", name);
	char x[128], y[128], *n = text_mask(name.p, name.n);
	describe(x, a);
	describe(y, b);
	if (!j) printf("tensor %s: %s | %s\n", n, x, y);
	if (j && a) json_put(j, "a", json_tensor(a));
	if (j && b) json_put(j, "b", json_tensor(b));
	free(n);
}

/* types: a tensor of another type is a difference too */
static void diff_tensors(const struct ggu_file *a, const struct ggu_file *b, bool types)
{
	for (size_t i = 0; i < ggu_file_n_tensors(a); i++) {
		const struct ggu_tensor *x = ggu_file_tensor(a, i), *y = ggu_file_find(b, x->name);
		if (!pass_over(x->name) && (!y || (types && x->type != y->type) || !same_shape(x, y)))
			differ_tensor(name_of(x), x, y);
	}
	for (size_t i = 0; i < ggu_file_n_tensors(b); i++) {
		const struct ggu_tensor *y = ggu_file_tensor(b, i);
		if (!pass_over(y->name) && !ggu_file_find(a, y->name)) differ_tensor(name_of(y), NULL, y);
	}
}

/* ---- data ---- */

struct side {
	struct ggu_file *f;
	const char *name;
	const struct ggu_tensor *t;
	struct ggu_walk *walk;
	struct ggu_part part;
};
/* at: weight with the largest difference, or the first NaN */
struct part { double max, sum, norm; bool nan; uint64_t at; };
/* lead: the side whose bytes count for progress; done: those of the tensors before */
struct work { struct side side[2]; struct part part[PARTS]; float *decoded; int lead; uint64_t done; };

static size_t bytes_of(const struct ggu_tensor *t, size_t weights)
{
	const struct ggu_type_info *info = ggu_type_info(t->type);
	return weights/info->block_weights*info->block_bytes;
}

/* The next weights of both sides, equally many of each; false after the last. */
static bool fetch(struct work *w)
{
	struct ggu_error err;
	for (int k = 0; k < 2; k++)
		if (ggu_walk_next(w->side[k].walk, &w->side[k].part, &err)) msg_die_error(w->side[k].name, &err);
	if (!w->side[0].part.n_weights) return false;
	progress_set(w->done + w->side[w->lead].part.at_byte);
	return true;
}

static void decode(const struct side *s, size_t from, float *to, size_t n)
{
	quant_decode(s->t->type, (const unsigned char *)s->part.bytes + bytes_of(s->t, from), to, n);
}

static void compare_part(void *ctx, size_t task, int worker)
{
	struct work *w = ctx;
	struct part p = { 0 };
	size_t from = task*PART, all = w->side[0].part.n_weights, n = all - from < PART ? all - from : PART;
	float *x = w->decoded + (size_t)worker*2*PART, *y = x + PART;
	decode(&w->side[0], from, x, n);
	decode(&w->side[1], from, y, n);
	for (size_t i = 0; i < n; i++) {
		double d = (double)y[i] - x[i];
		if (x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))) d = 0;       /* equal infinities too */
		if (!p.nan && (isnan(d) || fabs(d) > p.max)) p.at = w->side[0].part.at_weight + from + i;
		if (isnan(d)) p.nan = true;
		if (fabs(d) > p.max) p.max = fabs(d);
		p.sum += d*d;
		if (isfinite(x[i])) p.norm += (double)x[i]*x[i];
	}
	w->part[task] = p;
}

static void diff_values(struct work *w, struct ggu_pool *pool)
{
	const struct ggu_tensor *t = w->side[0].t;
	uint64_t total = t->ne[0]*ggu_tensor_rows(t);
	struct part all = { 0 };
	double rms, relative;
	json_t *j;
	while (fetch(w)) {
		size_t tasks = (w->side[0].part.n_weights + PART - 1)/PART;
		ggu_pool_run(pool, tasks, compare_part, w);
		for (size_t i = 0; i < tasks; i++) {
			const struct part *p = w->part + i;
			if (!all.nan && (p->nan || p->max > all.max)) all.at = p->at;
			if (p->max > all.max) all.max = p->max;
			all.sum += p->sum;
			all.norm += p->norm;
			all.nan |= p->nan;
		}
	}
	if (!all.nan && !(all.max > 0)) return;
	if (all.nan) all.max = all.sum = NAN;   /* without the sign that a difference of infinities may have */
	rms = sqrt(all.sum/(double)total);
	relative = sqrt(all.sum/all.norm);
	j = note(VALUES, "name", name_of(t));
	if (j) {
		json_put(j, "max", json_of_double(all.max));
		json_put(j, "row", json_of_uint(all.at/t->ne[0]));
		json_put(j, "column", json_of_uint(all.at % t->ne[0]));
		json_put(j, "rms", json_of_double(rms));
		json_put(j, "relative", json_of_double(relative));
	} else {
		char *n = text_mask(t->name, t->name_bytes);
		printf("values %s: max %.6g in row %llu, column %llu, rms %.6g, relative %.6g\n", n, all.max,
			(unsigned long long)(all.at/t->ne[0]), (unsigned long long)(all.at % t->ne[0]), rms, relative);
		free(n);
	}
}

static void diff_data(struct work *w)
{
	const struct ggu_tensor *t = w->side[0].t;
	uint64_t differing = 0, first = 0;
	json_t *j;
	while (fetch(w)) {
		const struct ggu_part *p = &w->side[0].part;
		const unsigned char *x = p->bytes, *y = w->side[1].part.bytes;
		if (!memcmp(x, y, p->n_bytes)) continue;
		for (size_t i = 0; i < p->n_bytes; i++)
			if (x[i] != y[i] && !differing++) first = p->at_byte + i;
	}
	if (!differing) return;
	j = note(DATA, "name", name_of(t));
	if (j) {
		json_put(j, "bytes", json_of_uint(t->bytes));
		json_put(j, "differing", json_of_uint(differing));
		json_put(j, "first", json_of_uint(first));
	} else {
		char *n = text_mask(t->name, t->name_bytes);
		printf("data %s: %llu of %llu byte%s differ%s, the first is byte %llu of the tensor\n", n,
			(unsigned long long)differing, (unsigned long long)t->bytes, text_s(t->bytes),
			differing == 1 ? "s" : "", (unsigned long long)first);
		free(n);
	}
}

/* With --values, the types of a tensor, of which one has no values in floats, are a difference. */
static void differ_undecoded(const struct ggu_tensor *a, const struct ggu_tensor *b)
{
	const uint32_t bad = quant_can_decode(a->type) ? b->type : a->type;
	if (!o.tensors) differ_tensor(name_of(a), a, b);        /* if they are compared too, it is known */
	msg_warn("%s: type %s cannot be decoded", a->name, ggu_type_info(bad)->name);
}

static void diff_all_data(struct ggu_file *a, const char *name_a, struct ggu_file *b, const char *name_b,
	struct ggu_pool *pool)
{
	struct work w = { .side = { { .f = a, .name = name_a }, { .f = b, .name = name_b } } };
	struct ggu_error err;
	bool by_b = !ggu_file_seekable(b);
	struct ggu_file *lead = by_b ? b : a;
	uint64_t total = 0;
	w.lead = by_b;
	for (int k = 0; k < 2; k++)
		if (ggu_walk_new(&w.side[k].walk, w.side[k].f, CHUNK, &err)) msg_die_error(w.side[k].name, &err);
	w.decoded = msg_need(malloc((size_t)ggu_pool_size(pool)*2*PART*sizeof *w.decoded));
	for (size_t i = 0; i < ggu_file_n_tensors(lead); i++) total += ggu_file_tensor(lead, i)->bytes;
	progress_begin("comparing", total, "B");
	for (size_t i = 0; i < ggu_file_n_tensors(lead); w.done += w.side[w.lead].t->bytes, i++) {
		const struct ggu_tensor *t = ggu_file_in_data_order(lead, i), *u = ggu_file_find(by_b ? a : b, t->name);
		w.side[0].t = by_b ? u : t;
		w.side[1].t = by_b ? t : u;
		if (!u || pass_over(t->name) || !same_shape(t, u)) continue;
		for (int k = 0; k < 2; k++) ggu_walk_to(w.side[k].walk, w.side[k].t);
		if (o.values && quant_can_decode(t->type) && quant_can_decode(u->type)) diff_values(&w, pool);
		else if (t->type == u->type) diff_data(&w);
		else if (o.values) differ_undecoded(w.side[0].t, w.side[1].t);
	}
	progress_end();
	for (int k = 0; k < 2; k++) ggu_walk_free(w.side[k].walk);
	free(w.decoded);
}

static void print_json(void)
{
	static const char *const lists[] = { "metadata", "tensors", "data", "values" };
	json_t *root = json_object();
	json_put(root, "same", json_boolean(!differ));
	for (int i = 0; i < 4; i++) json_put(root, lists[i], found[i] ? found[i] : json_array());
	json_print(root, JSON_INDENT(1));
}

int main(int argc, char **argv)
{
	struct ggu_file *f[2];
	struct ggu_error err;
	struct ggu_pool *pool;
	bool all;
	opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-diff", "compare two GGUF files",
		"[--metadata] [--tensors] [--values] [-u] [--brief] [-I REGEX]... [--json] [-j N] [-o FILE] A B",
		2, 2 });
	all = !o.metadata && !o.tensors && !o.values;
	names = argv;
	if (o.brief && (o.json || o.unified))
		msg_usage("--brief cannot be combined with --json or --unified");
	if (!strcmp(argv[0], "-") && !strcmp(argv[1], "-")) msg_usage("only one of A and B can be standard input");
	for (int i = 0; i < 2; i++) pipe_input(argv[i]);
	prepare_ignored();
	out = out_open(o.output, false);
	if (!o.jobs) o.jobs = ggu_cpu_count();  /* reads files, so before the sandbox */
	sandbox_enter((const char *const *)argv, 2, o.output);
	for (int i = 0; i < 2; i++) {
		if (ggu_open(&f[i], argv[i], &err)) msg_die_error(argv[i], &err);
		out_refuse_sources(out, argv[i], f[i]);
	}
	if (!ggu_file_seekable(f[0]) && !ggu_file_seekable(f[1])) msg_die("only one of A and B can be a pipe");
	out_take_stdout(out);
	pool = msg_need(ggu_pool_new(o.jobs));
	if (all || o.metadata) diff_metadata(ggu_file_meta(f[0]), ggu_file_meta(f[1]));
	if (all || o.tensors || o.values) diff_tensors(f[0], f[1], all || o.tensors);
	if (all || o.values) diff_all_data(f[0], argv[0], f[1], argv[1], pool);
	if (o.json) print_json();
	ggu_pool_free(pool);
	for (int i = 0; i < 2; i++) pipe_drain(f[i], argv[i]);
	ggu_close(f[0]);
	ggu_close(f[1]);
	out_commit(out);
	return differ ? EXIT_NO : EXIT_YES;
}
