/* SPDX-License-Identifier: MIT
 * gguf-info - shows what is in a GGUF file: header, metadata, tensors, an estimate of memory and speed.
 *
 * Only the header is read, even from a pipe: the program exits after printing it. Of a truncated file it shows what is
 * there. */
#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/types.h"
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "estimate.h"
#include "kv_json.h"
#include "kv_text.h"
#include "load.h"
#include "msg.h"
#include "near.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "sandbox.h"

static struct {
	bool json, metadata, tensors;
	const char *get, *match, *sort;
	uint64_t ctx;
	double bandwidth;
	int jobs;
	struct load_cache cache;
	const char *output;
} o = { .bandwidth = 20 };
static const struct opt opts[] = {
	OPT_FLAG(0, "json", &o.json, "print JSON, complete: long arrays and strings are not shortened"),
	OPT_FLAG(0, "metadata", &o.metadata, "show only the metadata"),
	OPT_FLAG(0, "tensors", &o.tensors, "show only the tensor table"),
	OPT_STR(0, "get", &o.get, "KEY", "print the bare value of KEY; an array as a line for each item"),
	OPT_STR(0, "match", &o.match, "REGEX", "show only tensors whose name matches"),
	OPT_STR(0, "sort", &o.sort, "BY", "sort tensors by name, type, bytes or offset"),
	OPT_U64('c', "ctx", &o.ctx, "N", 1, 1e12,
		"estimate for a context of N tokens (default: as trained, at most 4096)"),
	OPT_STR(0, "cache-type-k", &o.cache.k, "T", "estimate for cached keys of that type (default: i16)"),
	OPT_STR(0, "cache-type-v", &o.cache.v, "T", "estimate for cached values of that type (default: i16)"),
	OPT_DOUBLE(0, "bandwidth", &o.bandwidth, "GB", 0.001, 1e6,
		"estimate for a memory that reads GB gigabytes a second (default: 20)"),
	OPT_ONE_JOB(&o.jobs),
	OPT_OUTPUT(&o.output),
	OPT_COMMON, OPT_END
};

static struct state_options cache;
static int threads;
static bool printed;                    /* a file, or the value that --get names */

/* ---- which tensors ---- */

/* the tensors that are shown, in this order */
struct list { const struct ggu_tensor **t; size_t n; };

static int by_name(const struct ggu_tensor *a, const struct ggu_tensor *b) { return strcmp(a->name, b->name); }
static int by_type(const struct ggu_tensor *a, const struct ggu_tensor *b)
{
	return (a->type > b->type) - (a->type < b->type);
}
static int by_bytes(const struct ggu_tensor *a, const struct ggu_tensor *b)
{
	return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}
static int by_offset(const struct ggu_tensor *a, const struct ggu_tensor *b)
{
	return a->source != b->source ? (a->source > b->source) - (a->source < b->source) :
		(a->offset > b->offset) - (a->offset < b->offset);
}
typedef int compare_fn(const struct ggu_tensor *a, const struct ggu_tensor *b);
static const struct { const char *name; compare_fn *compare; } orders[] = {
	{ "name", by_name }, { "type", by_type }, { "bytes", by_bytes }, { "offset", by_offset },
};
static compare_fn *order;

/* Equal ones stay in the order of the table. */
static int compare(const void *a, const void *b)
{
	const struct ggu_tensor *const *x = a, *const *y = b;
	int c = order(*x, *y);
	return c ? c : by_offset(*x, *y) ? by_offset(*x, *y) : (*x > *y) - (*x < *y);
}
static void choose_order(void)
{
	for (size_t i = 0; i < sizeof orders/sizeof *orders; i++)
		if (!strcmp(o.sort, orders[i].name)) order = orders[i].compare;
	if (!order) msg_usage("--sort expects name, type, bytes or offset, not '%s'", o.sort);
}

static struct list choose(const struct ggu_file *f)
{
	struct list l = { msg_need(calloc(ggu_file_n_tensors(f) + 1, sizeof *l.t)), 0 };
	regex_t re;
	int bad = o.match ? regcomp(&re, o.match, REG_EXTENDED | REG_NOSUB) : 0;
	if (bad) {
		char why[128];
		regerror(bad, &re, why, sizeof why);
		msg_usage("--match %s: %s", o.match, why);
	}
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		if (!o.match || !regexec(&re, t->name, 0, NULL, 0)) l.t[l.n++] = t;
	}
	if (o.match) regfree(&re);
	if (order && l.n) qsort(l.t, l.n, sizeof *l.t, compare);
	return l;
}

struct sums { uint64_t n, weights, bytes; };
struct totals { struct sums all, type[GGU_TYPE_COUNT]; };

static struct totals total(const struct ggu_tensor *const *list, size_t n)
{
	struct totals t;
	memset(&t, 0, sizeof t);
	for (size_t i = 0; i < n; i++) {
		const struct ggu_tensor *x = list[i];
		struct sums *both[2] = { &t.all, &t.type[x->type] };
		for (int k = 0; k < 2; k++) {
			both[k]->n++;
			both[k]->weights += x->ne[0]*ggu_tensor_rows(x);
			both[k]->bytes += x->bytes;
		}
	}
	return t;
}

static double bits(const struct sums *s) { return s->weights ? 8*(double)s->bytes/(double)s->weights : 0; }

/* ---- JSON ---- */

static json_t *json_tensors(const struct ggu_file *f, const struct list *l)
{
	json_t *a = json_array();
	for (size_t i = 0; i < l->n; i++) {
		const struct ggu_tensor *t = l->t[i];
		struct ggu_str name = { t->name, t->name_bytes };
		json_t *j = json_object();
		json_put_str(j, "name", name);
		json_put(j, "type", json_string(ggu_type_info(t->type)->name));
		json_put(j, "shape", json_of_shape(t));
		json_put(j, "offset", json_of_uint(t->offset));
		json_put(j, "bytes", json_of_uint(t->bytes));
		if (ggu_file_n_sources(f) > 1) json_put(j, "shard", json_of_uint(t->source));
		json_push(a, j);
	}
	return a;
}

static void json_metadata(json_t *root, const struct ggu_meta *m)
{
	json_t *values = json_object(), *types = json_object(), *raw = json_object();
	for (size_t i = 0; i < ggu_meta_count(m); i++) {
		const struct ggu_kv *kv = ggu_meta_at(m, i);
		struct ggu_str k = ggu_kv_key(kv);
		json_t *key = json_of_str(k), *hex = kv_json_raw(kv), *hex_key = json_raw(k);
		/* a key that is not UTF-8 could look like another one: its bytes are added */
		char *shown = hex_key ?
			msg_need(malloc(json_string_length(key) + json_string_length(hex_key) + 4)) : NULL;
		if (hex_key) sprintf(shown, "%s (%s)", json_string_value(key), json_string_value(hex_key));
		json_put(values, shown ? shown : json_string_value(key), kv_json(kv));
		json_put(types, shown ? shown : json_string_value(key), json_string(kv_type_text(kv)));
		if (hex) json_put(raw, shown ? shown : json_string_value(key), hex);
		json_decref(key);
		json_decref(hex_key);
		free(shown);
	}
	json_put(root, "metadata", values);
	json_put(root, "metadata_types", types);
	if (json_object_size(raw)) json_put(root, "metadata_raw", raw);
	else json_decref(raw);
}

static json_t *json_estimate(const struct estimate *e)
{
	json_t *j = json_object();
	json_put(j, "weights_bytes", json_of_uint(e->weights));
	if (!e->known) return j;
	json_put(j, "ctx", json_of_uint(e->n_ctx));
	json_put(j, "cache_type_k", json_string(ggu_type_info(cache.k_type)->name));
	json_put(j, "cache_type_v", json_string(ggu_type_info(cache.v_type)->name));
	json_put(j, "kv_cache_bytes", json_of_uint(e->kv_cache));
	json_put(j, "scratch_bytes", json_of_uint(e->scratch));
	json_put(j, "total_bytes", json_of_uint(e->total));
	json_put(j, "read_bytes_per_token", json_of_uint(e->read_per_token));
	json_put(j, "macs_per_token", json_of_uint(e->macs_per_token));
	json_put(j, "gb_per_s", json_of_double(o.bandwidth));
	json_put(j, "tokens_per_s", json_of_double(e->tokens_per_s));
	return j;
}

static json_t *json_file(const struct ggu_file *f, const struct list *l, const struct totals *t,
	const struct estimate *e)
{
	json_t *root = json_object();
	bool all = o.metadata == o.tensors;
	json_put(root, "version", json_of_uint(ggu_file_version(f)));
	json_put(root, "alignment", json_of_uint(ggu_file_alignment(f, 0)));
	json_put(root, "endian", json_string(ggu_file_big_endian(f, 0) ? "big" : "little"));
	json_put(root, "data_offset", json_of_uint(ggu_file_data_offset(f, 0)));
	if (ggu_file_n_sources(f) > 1) json_put(root, "shards", json_of_uint(ggu_file_n_sources(f)));
	if (all || o.metadata) json_metadata(root, ggu_file_meta(f));
	if (all || o.tensors) json_put(root, "tensors", json_tensors(f, l));
	json_put(root, "parameters", json_of_uint(t->all.weights));
	json_put(root, "bits_per_weight", json_of_double(bits(&t->all)));
	if (all) json_put(root, "estimate", json_estimate(e));
	return root;
}

/* ---- text ---- */

static const char *bold = "", *dim = "", *plain = "";

/* name: NULL for a single file, so that git's textconv shows the same line for the same file. */
static void print_header(const char *name, const struct ggu_file *f, const struct totals *t)
{
	struct ggu_str arch = { "", 0 };
	char *shown = name ? text_mask(name, strlen(name)) : NULL, *a;
	uint32_t n = ggu_file_n_sources(f);
	ggu_meta_str(ggu_file_meta(f), "general.architecture", &arch);
	a = text_mask(arch.p, arch.n);
	if (name) printf("%s%s:%s\n", bold, shown, plain);
	printf("%sGGUF version %" PRIu32 "%s, %s-endian", bold, ggu_file_version(f), plain,
		ggu_file_big_endian(f, 0) ? "big" : "little");
	if (n > 1) printf(", %" PRIu32 " shards", n);
	printf(", header of %s, data of %s\n", msg_bytes(ggu_file_data_offset(f, 0)), msg_bytes(t->all.bytes));
	if (arch.n) printf("%s, ", a);
	if (!t->all.n) printf("no tensors\n");
	else
		printf("%s parameters in %" PRIu64 " tensor%s, %.2f bits per weight\n", msg_count(t->all.weights),
			t->all.n, text_s(t->all.n), bits(&t->all));
	free(shown);
	free(a);
}

/* Keys are grouped by what precedes the first dot; the architecture's name is one group. */
enum group { GENERAL, ARCHITECTURE, TOKENIZER, REST, N_GROUPS };
static enum group group_of(struct ggu_str key, struct ggu_str arch)
{
	if (text_starts(key.p, "general.")) return GENERAL;
	if (arch.n && key.n > arch.n && !memcmp(key.p, arch.p, arch.n) && key.p[arch.n] == '.') return ARCHITECTURE;
	return text_starts(key.p, "tokenizer.") ? TOKENIZER : REST;
}

/* A key of the group, without what all of its keys begin with; NULL: it belongs to another. The caller frees. */
static char *key_in(enum group g, const struct ggu_kv *kv, struct ggu_str arch)
{
	const size_t skip[N_GROUPS] = { strlen("general."), arch.n + 1, strlen("tokenizer."), 0 };
	struct ggu_str key = ggu_kv_key(kv);
	return group_of(key, arch) == g ? text_mask(key.p + skip[g], key.n - skip[g]) : NULL;
}
static void print_pair(const char *key, size_t width, const struct ggu_kv *kv)
{
	char *value = kv_text(kv, 72);
	size_t w = text_width(key);
	printf("  %s%*s  %s  %s%s%s\n", key, w < width ? (int)(width - w) : 0, "", value, dim, kv_type_text(kv), plain);
	free(value);
}
static void print_group(enum group g, const struct ggu_meta *m, struct ggu_str arch)
{
	static const char *const titles[N_GROUPS] = { "general", NULL, "tokenizer", "other" };
	char *title = g == ARCHITECTURE ? text_mask(arch.p, arch.n) : text_mask(titles[g], strlen(titles[g])), *key;
	size_t width = 0, found = 0;
	for (size_t i = 0; i < ggu_meta_count(m); i++) {
		if (!(key = key_in(g, ggu_meta_at(m, i), arch))) continue;
		if (text_width(key) > width && text_width(key) <= 40) width = text_width(key);
		free(key);
		found++;
	}
	if (found) printf("\n%s%s%s\n", bold, title, plain);
	for (size_t i = 0; i < ggu_meta_count(m); i++) {
		if (!(key = key_in(g, ggu_meta_at(m, i), arch))) continue;
		print_pair(key, width, ggu_meta_at(m, i));
		free(key);
	}
	free(title);
}
static void print_metadata(const struct ggu_meta *m)
{
	struct ggu_str arch = { "", 0 };
	ggu_meta_str(m, "general.architecture", &arch);
	for (int g = 0; g < N_GROUPS; g++) print_group((enum group)g, m, arch);
}

static void print_tensors(const struct list *l)
{
	size_t wide = 0;
	int wide_shape = 0;
	char shape[TEXT_SHAPE];
	if (!l->n) return;
	for (size_t i = 0; i < l->n; i++) {
		char *name = text_mask(l->t[i]->name, l->t[i]->name_bytes);
		int k = text_shape(shape, l->t[i]->ne, l->t[i]->n_dims);
		if (text_width(name) > wide) wide = text_width(name);
		if (k > wide_shape) wide_shape = k;
		free(name);
	}
	printf("\n%stensors%s\n", bold, plain);
	for (size_t i = 0; i < l->n; i++) {
		const struct ggu_tensor *t = l->t[i];
		char *name = text_mask(t->name, t->name_bytes);
		text_shape(shape, t->ne, t->n_dims);
		printf("  %s%*s  %-8s %-*s  %10s\n", name, (int)(wide - text_width(name)), "",
			ggu_type_info(t->type)->name, wide_shape, shape, msg_bytes(t->bytes));
		free(name);
	}
}

static void print_types(const struct totals *t)
{
	if (!t->all.n) return;
	printf("\n%stypes%s\n", bold, plain);
	printf("  %s%-8s %8s %10s %10s %7s %7s%s\n", dim, "type", "tensors", "weights", "size", "share", "bits", plain);
	for (uint32_t i = 0; i < GGU_TYPE_COUNT; i++) {
		const struct sums *s = &t->type[i];
		if (s->n)
			printf("  %-8s %8" PRIu64 " %10s %10s %5.1f %% %7.2f\n", ggu_type_info(i)->name, s->n,
				msg_count(s->weights), msg_bytes(s->bytes),
				t->all.bytes ? 100*(double)s->bytes/(double)t->all.bytes : 0, bits(s));
	}
}

static void print_estimate(const struct estimate *e)
{
	if (!e->known) return;
	printf("\n%sestimate for a context of %" PRIu64 " token%s%s\n", bold, e->n_ctx, text_s(e->n_ctx), plain);
	printf("  weights  %10s\n", msg_bytes(e->weights));
	printf("  KV cache %10s  %sas %s and %s%s\n", msg_bytes(e->kv_cache), dim, ggu_type_info(cache.k_type)->name,
		ggu_type_info(cache.v_type)->name, plain);
	printf("  scratch  %10s  %sfor the tokens of a batch%s\n", msg_bytes(e->scratch), dim, plain);
	printf("  memory   %10s\n", msg_bytes(e->total));
	printf("  generation reads %s a token: at most %.*f tokens/s from a memory of %g GB/s\n",
		msg_bytes(e->read_per_token), e->tokens_per_s < 100, e->tokens_per_s, o.bandwidth);
	printf("  a token of a prompt takes %s multiply-adds\n", msg_count(e->macs_per_token));
}

/* ---- one value ---- */

/* A value of several lines has the title before each, so that whoever selects lines by it gets all of them. */
static void print_lines(const char *title, const char *s, size_t n)
{
	const char *end = s + n, *stop;
	do {
		stop = memchr(s, '\n', (size_t)(end - s));
		if (!stop) stop = end;
		printf("%s: ", title);
		text_print(s, (size_t)(stop - s));
		putchar('\n');
		s = stop + 1;
	} while (s < end);
}
/* title: NULL, or the name of the file, which then precedes each item */
static void print_items(const char *title, const struct ggu_kv *kv)
{
	struct ggu_str s;
	for (size_t i = 0; i < ggu_kv_n(kv); i++) {
		if (ggu_kv_sub(kv, i)) {
			print_items(title, ggu_kv_sub(kv, i));
			continue;
		}
		if (ggu_kv_str(kv, i, &s)) {
			if (title) print_lines(title, s.p, s.n);
			else text_print(s.p, s.n);
			if (!title && ggu_kv_type(kv) == GGU_ARRAY) putchar('\n');
		} else {
			char *text = kv_item_text(kv, i);
			printf("%s%s%s\n", title ? title : "", title ? ": " : "", text);
			free(text);
		}
	}
}
static void no_key(const char *name, const struct ggu_meta *m)
{
	struct near near = { .asked = o.get };
	char hint[NEAR_BYTES];
	for (size_t i = 0; i < ggu_meta_count(m); i++) near_try(&near, ggu_kv_key(ggu_meta_at(m, i)).p);
	msg_say("%s: no key '%s'%s", msg_name(name), o.get, near_hint(&near, "", hint));
}
static bool print_value(const struct ggu_file *f, const char *title, const char *name)
{
	const struct ggu_kv *kv = ggu_meta_find(ggu_file_meta(f), o.get);
	char *shown = title ? text_mask(title, strlen(title)) : NULL;
	if (kv) {
		print_items(shown, kv);
		printed = true;
	} else if (!msg_quiet) no_key(name, ggu_file_meta(f));
	free(shown);
	return kv != NULL;
}

/* ---- a file ---- */

/* Something wrong with a file; the first is kept. A file that is cut short is shown as far as it goes. */
static void keep_first(void *ctx, const struct ggu_error *err)
{
	struct ggu_error *first = ctx;
	if (first->rule == GGU_RULE_NONE) *first = *err;
}
static bool is_cut(const struct ggu_error *err)
{
	return err->rule == GGU_RULE_CUT || err->rule == GGU_RULE_COUNT || err->rule == GGU_RULE_DATA;
}

/* The tokens that are evaluated together: all of a text if it must be whole, and one if the prompt goes into an
 * encoder, for which there is room besides. */
static size_t batch_of(const struct model *m, size_t n_ctx)
{
	if (model_has_encoder(m)) return 1;
	return model_is_whole(m) || n_ctx < MODEL_BATCH ? n_ctx : MODEL_BATCH;
}
static void warn_of_header(const char *name, const struct ggu_error *err)
{
	const char *reason = err->sys_errno ? strerror(err->sys_errno) : "";
	msg_warn("%s: %s%s%s%s%s; this is estimated from the header", msg_name(name), err->where,
		*err->where ? ": " : "", err->what, *reason ? ": " : "", reason);
}
/* What the evaluator plans to take for the file; false if it cannot evaluate it. If it cannot map the file, or not have
 * this context and cache, that is reported. */
static bool plan(struct ggu_file *f, const char *name, uint64_t n_ctx, struct model_cost *cost)
{
	struct model_options options = { .pool = ggu_pool_new(1), .file = f, .lent = true };
	struct ggu_error err;
	struct model *m = NULL;
	enum ggu_status s = options.pool ? model_open(&m, NULL, &options, &err) : ggu_no_memory(&err);
	if (!s) s = model_cost(cost, m, &cache, batch_of(m, (size_t)n_ctx), (size_t)n_ctx, (size_t)threads, &err);
	if (s == GGU_ERR_NOMEM) msg_die_error(name, &err);
	if (s && (m || s == GGU_ERR_IO)) warn_of_header(name, &err);
	model_close(m);
	ggu_pool_free(options.pool);
	return !s;
}

/* whole: the file has all of its data; otherwise the estimate comes from the header alone */
static void print_file(const char *name, bool titled, struct ggu_file *f, bool whole, json_t *all)
{
	const bool everything = o.metadata == o.tensors;
	const char *title = titled ? msg_name(name) : NULL;
	struct list l = choose(f);
	struct totals t = total(l.t, l.n);
	struct estimate e;
	struct model_cost cost;
	struct estimate_options options = { estimate_ctx(f, o.ctx), o.bandwidth*1e9, cache, NULL };
	const bool planned = everything && whole && options.n_ctx && options.n_ctx <= MODEL_MAX_POS;
	if (planned && plan(f, name, options.n_ctx, &cost)) options.cost = &cost;
	estimate_make(&e, f, &options);
	if (all) {
		json_t *j = json_file(f, &l, &t, &e);
		if (title) json_put_str(j, "file", (struct ggu_str){ title, strlen(title) });
		json_push(all, j);
	} else {
		print_header(title, f, &t);
		if (everything || o.metadata) print_metadata(ggu_file_meta(f));
		if (everything || o.tensors) print_tensors(&l);
		if (everything || o.tensors) print_types(&t);
		if (everything && !o.match) print_estimate(&e);
	}
	free(l.t);
}

/* EXIT_NO: there is no such key; EXIT_TROUBLE: the file is cut short, or no GGUF, which was reported. */
static int show(const char *name, bool titled, const struct out *out, json_t *all)
{
	struct ggu_error err, first = { 0 };
	const struct ggu_open_options options = { .defect = keep_first, .defect_ctx = &first };
	const char *title = titled ? msg_name(name) : NULL;
	struct ggu_file *f;
	int status = EXIT_YES;
	pipe_input(name);
	if (ggu_open_path(&f, name, &options, &err)) {
		msg_error(name, first.rule ? &first : &err);
		return EXIT_TROUBLE;
	}
	if (first.rule && !is_cut(&first)) {
		msg_error(name, &first);
		ggu_close(f);
		return EXIT_TROUBLE;
	}
	out_refuse_sources(out, name, f);
	if (o.get) status = print_value(f, title, name) ? EXIT_YES : EXIT_NO;
	else {
		if (printed && !all) putchar('\n');
		print_file(name, titled, f, !first.rule, all);
		printed = true;
	}
	ggu_close(f);
	if (!first.rule) return status;
	fflush(stdout);
	msg_error(name, &first);
	return EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
	static char *standard[] = { "-", NULL };
	json_t *all = NULL;
	struct out *out;
	int worst = EXIT_YES;
	argc = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-info", "show what is in GGUF files",
		"[--json] [--metadata | --tensors] [--get KEY] [--match REGEX] [--sort BY] [--ctx N] "
		"[--cache-type-k T] [--cache-type-v T] [--bandwidth GB] [-j N] [-o FILE] [FILE ...]", 0, -1 });
	if (!argc) {
		argv = standard;
		argc = 1;
	}
	cache = load_cache_types(&o.cache, GGU_TYPE_I16);
	threads = ggu_cpu_count();              /* reads files, so before the sandbox */
	if (o.sort) choose_order();
	if (o.get) opt_refuse("--get", "json metadata tensors match sort ctx cache-type-k cache-type-v bandwidth");
	if (o.json) all = json_array();
	pipe_once((const char *const *)argv, argc, "two files");
	out = out_open(o.output, false);
	for (int i = 0; i < argc; i++) out_refuse_input(out, argv[i]);  /* before anything is printed */
	out_take_stdout(out);
	sandbox_enter((const char *const *)argv, argc, o.output);
	load_tell_of_shrinking();               /* the estimate maps a model */
	if (msg_colour()) { bold = "\033[1m"; dim = "\033[2m"; plain = "\033[0m"; }
	for (int i = 0; i < argc; i++) {
		int s = show(argv[i], argc > 1, out, all);
		if (s > worst) worst = s;
	}
	if (all) json_print_files(all, argc > 1);
	out_end(out, worst == EXIT_YES || (worst == EXIT_NO && printed));
	return worst;
}
