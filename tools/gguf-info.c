/* SPDX-License-Identifier: MIT
 * gguf-info - what is in a GGUF file: header, metadata, tensors, an estimate of memory and speed.
 *
 * Only the header is read; a pipe is read on to its end, see pipe.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "estimate.h"
#include "kv_json.h"
#include "kv_text.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "sandbox.h"

static struct {
	bool json, metadata, tensors;
	uint64_t ctx;
	double bandwidth;
	int jobs;
	const char *output;
} o = { .bandwidth = 20 };
static const struct opt opts[] = {
	OPT_FLAG(0, "json", &o.json, "print JSON, complete: long arrays and strings are not shortened"),
	OPT_FLAG(0, "metadata", &o.metadata, "only the metadata"),
	OPT_FLAG(0, "tensors", &o.tensors, "only the tensor table"),
	OPT_U64(0, "ctx", &o.ctx, "N", 1, 1e12, "estimate for a context of N tokens (default: as trained, at most 4096)"),
	OPT_DOUBLE(0, "bandwidth", &o.bandwidth, "GB", 0.001, 1e6, "estimate for a memory that reads GB gigabytes a second (default: 20)"),
	OPT_ONE_JOB(&o.jobs),
	OPT_OUTPUT(&o.output),
	OPT_COMMON, OPT_END
};

struct sums { uint64_t n, weights, bytes; };
struct totals { struct sums all, type[GGU_TYPE_COUNT]; };

static void total(const struct ggu_file *f, struct totals *t)
{
	memset(t, 0, sizeof *t);
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *x = ggu_file_tensor(f, i);
		struct sums *both[2] = { &t->all, &t->type[x->type] };
		for (int k = 0; k < 2; k++) {
			both[k]->n++;
			both[k]->weights += x->ne[0]*ggu_tensor_rows(x);
			both[k]->bytes += x->bytes;
		}
	}
}

static double bits(const struct sums *s) { return s->weights ? 8*(double)s->bytes/(double)s->weights : 0; }

/* ---- JSON ---- */

static json_t *json_tensors(const struct ggu_file *f)
{
	json_t *a = json_array();
	if (!a) msg_die("out of memory");
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		struct ggu_str name = { t->name, t->name_bytes };
		json_t *j = json_object(), *shape = json_array(), *raw = json_raw(name);
		if (!j || !shape) msg_die("out of memory");
		for (uint32_t d = 0; d < t->n_dims; d++) json_push(shape, json_of_uint(t->ne[d]));
		json_put(j, "name", json_of_str(name));
		if (raw) json_put(j, "name_raw", raw);
		json_put(j, "type", json_string(ggu_type_info(t->type)->name));
		json_put(j, "shape", shape);
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
	if (!values || !types || !raw) msg_die("out of memory");
	for (size_t i = 0; i < ggu_meta_count(m); i++) {
		const struct ggu_kv *kv = ggu_meta_at(m, i);
		struct ggu_str k = ggu_kv_key(kv);
		json_t *key = json_of_str(k), *hex = kv_json_raw(kv), *hex_key = json_raw(k);
		/* a key that is no UTF-8 could become another one's: its bytes are part of it */
		char *shown = hex_key ? malloc(json_string_length(key) + json_string_length(hex_key) + 4) : NULL;
		if (hex_key && !shown) msg_die("out of memory");
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
	if (!j) msg_die("out of memory");
	json_put(j, "weights_bytes", json_of_uint(e->weights));
	if (!e->known) return j;
	json_put(j, "ctx", json_of_uint(e->n_ctx));
	json_put(j, "kv_cache_bytes", json_of_uint(e->kv_cache));
	json_put(j, "scratch_bytes", json_of_uint(e->scratch));
	json_put(j, "total_bytes", json_of_uint(e->total));
	json_put(j, "read_bytes_per_token", json_of_uint(e->read_per_token));
	json_put(j, "macs_per_token", json_of_uint(e->macs_per_token));
	json_put(j, "gb_per_s", json_of_double(o.bandwidth));
	json_put(j, "tokens_per_s", json_of_double(e->tokens_per_s));
	return j;
}

static void print_json(const struct ggu_file *f, const struct totals *t, const struct estimate *e)
{
	json_t *root = json_object();
	bool all = o.metadata == o.tensors;
	if (!root) msg_die("out of memory");
	json_put(root, "version", json_of_uint(ggu_file_version(f)));
	json_put(root, "alignment", json_of_uint(ggu_file_alignment(f)));
	json_put(root, "endian", json_string(ggu_file_big_endian(f) ? "big" : "little"));
	json_put(root, "data_offset", json_of_uint(ggu_file_data_offset(f, 0)));
	if (ggu_file_n_sources(f) > 1) json_put(root, "shards", json_of_uint(ggu_file_n_sources(f)));
	if (all || o.metadata) json_metadata(root, ggu_file_meta(f));
	if (all || o.tensors) json_put(root, "tensors", json_tensors(f));
	json_put(root, "parameters", json_of_uint(t->all.weights));
	json_put(root, "bits_per_weight", json_of_double(bits(&t->all)));
	if (all) json_put(root, "estimate", json_estimate(e));
	json_print(root, JSON_INDENT(1));
}

/* ---- text ---- */

static const char *bold = "", *dim = "", *plain = "";

static void print_header(const char *name, const struct ggu_file *f, const struct totals *t)
{
	struct ggu_str arch = { "", 0 };
	char *shown = text_mask(name, strlen(name)), *a;
	uint32_t n = ggu_file_n_sources(f);
	ggu_meta_str(ggu_file_meta(f), "general.architecture", &arch);
	a = text_mask(arch.p, arch.n);
	printf("%s%s%s: GGUF version %" PRIu32 ", %s-endian", bold, shown, plain, ggu_file_version(f), ggu_file_big_endian(f) ? "big" : "little");
	if (n > 1) printf(", %" PRIu32 " shards", n);
	printf(", header of %s, data of %s\n", msg_bytes(ggu_file_data_offset(f, 0)), msg_bytes(t->all.bytes));
	if (arch.n) printf("%s, ", a);
	if (!t->all.n) printf("no tensors\n");
	else printf("%s parameters in %" PRIu64 " tensor%s, %.2f bits per weight\n", msg_count(t->all.weights), t->all.n, t->all.n == 1 ? "" : "s", bits(&t->all));
	free(shown);
	free(a);
}

/* Groups of keys by what stands before the first dot; the architecture's own name is one. */
enum group { GENERAL, ARCHITECTURE, TOKENIZER, REST, N_GROUPS };
static enum group group_of(struct ggu_str key, struct ggu_str arch)
{
	if (!strncmp(key.p, "general.", 8)) return GENERAL;
	if (arch.n && key.n > arch.n && !memcmp(key.p, arch.p, arch.n) && key.p[arch.n] == '.') return ARCHITECTURE;
	return !strncmp(key.p, "tokenizer.", 10) ? TOKENIZER : REST;
}

static void print_metadata(const struct ggu_meta *m)
{
	static const char *const titles[N_GROUPS] = { "general", NULL, "tokenizer", "other" };
	struct ggu_str arch = { "", 0 };
	size_t n = ggu_meta_count(m);
	ggu_meta_str(m, "general.architecture", &arch);
	for (int g = 0; g < N_GROUPS; g++) {
		size_t skip = g == GENERAL ? 8 : g == ARCHITECTURE ? arch.n + 1 : g == TOKENIZER ? 10 : 0, width = 0;
		bool any = false;
		for (int pass = 0; pass < 2; pass++)
			for (size_t i = 0; i < n; i++) {
				const struct ggu_kv *kv = ggu_meta_at(m, i);
				struct ggu_str key = ggu_kv_key(kv);
				char *k;
				if ((int)group_of(key, arch) != g) continue;
				k = text_mask(key.p + skip, key.n - skip);
				if (!pass) width = text_width(k) > width && text_width(k) <= 40 ? text_width(k) : width;
				else {
					char *title = text_mask(g == ARCHITECTURE ? arch.p : titles[g], g == ARCHITECTURE ? arch.n : strlen(titles[g])), *v = kv_text(kv, 72);
					size_t w = text_width(k);
					if (!any) printf("\n%s%s%s\n", bold, title, plain);
					printf("  %s%*s  %s  %s%s%s\n", k, w < width ? (int)(width - w) : 0, "", v, dim, kv_type_text(kv), plain);
					any = true;
					free(title);
					free(v);
				}
				free(k);
			}
	}
}

/* "256 x 768" */
static void shape_text(char to[96], const struct ggu_tensor *t)
{
	int n = 0;
	to[0] = 0;
	for (uint32_t d = 0; d < t->n_dims; d++) n += snprintf(to + n, 96 - (size_t)n, "%s%" PRIu64, d ? " x " : "", t->ne[d]);
}

static void print_tensors(const struct ggu_file *f)
{
	size_t n = ggu_file_n_tensors(f), wide = 0;
	int wide_shape = 0;
	char shape[96];
	if (!n) return;
	for (size_t i = 0; i < n; i++) {
		char *name = text_mask(ggu_file_tensor(f, i)->name, ggu_file_tensor(f, i)->name_bytes);
		shape_text(shape, ggu_file_tensor(f, i));
		if (text_width(name) > wide) wide = text_width(name);
		if ((int)strlen(shape) > wide_shape) wide_shape = (int)strlen(shape);
		free(name);
	}
	printf("\n%stensors%s\n", bold, plain);
	for (size_t i = 0; i < n; i++) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		char *name = text_mask(t->name, t->name_bytes);
		shape_text(shape, t);
		printf("  %s%*s  %-8s %-*s  %10s\n", name, (int)(wide - text_width(name)), "", ggu_type_info(t->type)->name, wide_shape, shape, msg_bytes(t->bytes));
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
		if (s->n) printf("  %-8s %8" PRIu64 " %10s %10s %5.1f %% %7.2f\n", ggu_type_info(i)->name, s->n, msg_count(s->weights), msg_bytes(s->bytes),
			t->all.bytes ? 100*(double)s->bytes/(double)t->all.bytes : 0, bits(s));
	}
}

static void print_estimate(const struct estimate *e)
{
	if (!e->known) return;
	printf("\n%sestimate for a context of %" PRIu64 " tokens%s\n", bold, e->n_ctx, plain);
	printf("  weights  %10s\n", msg_bytes(e->weights));
	printf("  KV cache %10s  %sF32, every layer over the whole context%s\n", msg_bytes(e->kv_cache), dim, plain);
	printf("  scratch  %10s  %sfor batches of 512 tokens%s\n", msg_bytes(e->scratch), dim, plain);
	printf("  memory   %10s\n", msg_bytes(e->total));
	printf("  generation reads %s a token: at most %.*f tokens/s from a memory of %g GB/s\n", msg_bytes(e->read_per_token),
		e->tokens_per_s < 100, e->tokens_per_s, o.bandwidth);
	printf("  a token of a prompt takes %s multiply-adds\n", msg_count(e->macs_per_token));
}

int main(int argc, char **argv)
{
	struct ggu_file *f;
	struct ggu_error err;
	struct totals t;
	struct estimate e;
	struct out *out;
	bool all;
	const char *name;
	argc = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-info", "show what is in a GGUF file",
		"[--json] [--metadata | --tensors] [--ctx N] [--bandwidth GB] [-j N] [-o FILE] [FILE]", 0, 1 });
	name = argc ? argv[0] : "-";
	pipe_input(name);
	out = out_open(o.output, false);
	out_take_stdout(out);
	sandbox_enter(argv, argc, o.output);
	if (ggu_open(&f, name, &err)) msg_die_error(name, &err);
	out_refuse_sources(out, name, f);
	if (msg_colour()) { bold = "\033[1m"; dim = "\033[2m"; plain = "\033[0m"; }
	total(f, &t);
	estimate_make(&e, f, o.ctx, o.bandwidth*1e9);
	all = o.metadata == o.tensors;
	if (o.json) print_json(f, &t, &e);
	else {
		print_header(strcmp(name, "-") ? name : "(stdin)", f, &t);
		if (all || o.metadata) print_metadata(ggu_file_meta(f));
		if (all || o.tensors) print_tensors(f);
		if (all || o.tensors) print_types(&t);
		if (all) print_estimate(&e);
	}
	pipe_drain(f, name);
	ggu_close(f);
	out_commit(out);
	return EXIT_YES;
}
