/* SPDX-License-Identifier: MIT
 * gguf-logits - token ids in, float32 logits out.
 *
 * A line of input is a sequence; sequences are independent. Per token a row of n_vocab float32, little-endian;
 * with --hidden the residual stream instead, [n_layer+1][token][n_embd] for each sequence. */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "load.h"
#include "msg.h"
#include "opt.h"
#include "out.h"

static struct {
	const char *model, *arch_file, *output;
	int jobs, batch, ctx;
	struct load_place place;
	bool hidden;
} o;
static const struct opt opts[] = {
	OPT_STR('m', "model", &o.model, "MODEL", "the GGUF file to evaluate"),
	OPT_FLAG(0, "hidden", &o.hidden, "write the residual stream instead of logits"),
	OPT_INT(0, "batch", &o.batch, "N", 1, 1 << 20,
		"tokens computed at once (default: 512); does not change the result"),
	OPT_STR(0, "arch-file", &o.arch_file, "YAML", "also know the architecture described in YAML"),
	LOAD_PLACE_OPTIONS(&o.place),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* Sequences that are computed side by side: short lines share a batch. */
struct group {
	struct model *m;
	struct work *w;
	size_t n_batch;
	int32_t *ids; size_t n_ids, cap;
	struct part *part; size_t n_parts, part_cap;
	struct out *out;
};

static void *more(void *p, size_t n, size_t *cap, size_t bytes)
{
	if (n < *cap) return p;
	*cap = *cap ? 2**cap : 256;
	p = realloc(p, *cap*bytes);
	if (!p) msg_die("out of memory");
	return p;
}

/* The ids of the line at *p, which then stands at its end, into the group as one more sequence. */
static size_t read_line(struct group *g, const char *file, const char *text, const char **p)
{
	int32_t id;
	size_t first = g->n_ids;
	for (; load_id(file, text, p, false, model_n_vocab(g->m), &id); g->ids[g->n_ids++] = id)
		g->ids = more(g->ids, g->n_ids, &g->cap, sizeof *g->ids);
	if (g->n_ids == first) return 0;
	g->part = more(g->part, g->n_parts, &g->part_cap, sizeof *g->part);
	g->part[g->n_parts++] = (struct part){ .n = g->n_ids - first };
	return g->n_ids - first;
}

/* Rows of the last layer to logits, some megabytes at a time. */
static void put_logits(const struct group *g, const float *rows)
{
	size_t e = model_n_embd(g->m), v = model_n_vocab(g->m), step = ((size_t)16 << 20)/sizeof(float)/v + 8;
	float *logits = malloc((step < g->n_ids ? step : g->n_ids)*v*sizeof *logits);
	struct ggu_error err;
	if (!logits) msg_die("out of memory");
	for (size_t at = 0; at < g->n_ids; at += step) {
		size_t n = g->n_ids - at < step ? g->n_ids - at : step;
		if (model_logits(g->w, rows + at*e, n, logits, NULL, NULL, &err)) msg_die_error(o.model, &err);
		out_floats(g->out, logits, n*v);
	}
	free(logits);
}

static void make_work(struct group *g)
{
	size_t n = g->n_batch;
	struct ggu_error err;
	for (size_t i = 0; model_is_whole(g->m) && i < g->n_parts; i++) if (g->part[i].n > n) n = g->part[i].n;
	if (g->w && n == g->n_batch) return;
	work_free(g->w);
	g->n_batch = n;
	if (work_new(&g->w, g->m, n, &err)) msg_die_error(o.model, &err);
}

static void run(struct group *g)
{
	size_t e = model_n_embd(g->m), width = o.hidden ? (model_n_layer(g->m) + 1)*e : e, at = 0;
	struct model_call c = { .part = g->part, .n_parts = g->n_parts };
	struct ggu_error err;
	float *rows;
	if (!g->n_parts) return;
	if (!o.hidden && !model_has_head(g->m)) msg_die("%s: gives no logits; --hidden writes its rows", o.model);
	rows = width <= SIZE_MAX/sizeof(float)/g->n_ids ? malloc(g->n_ids*width*sizeof *rows) : NULL;
	if (!rows) msg_die("out of memory for %zu rows", g->n_ids);
	make_work(g);
	*(o.hidden ? &c.hidden : &c.rows) = rows;
	for (size_t i = 0; i < g->n_parts; at += g->part[i++].n) {
		g->part[i].ids = g->ids + at;
		g->part[i].first = o.hidden ? g->part[i].n : 0;
		if (state_new(&g->part[i].state, g->m, NULL, &err)) msg_die_error(o.model, &err);
	}
	if (model_eval(g->w, &c, &err)) msg_die_error(o.model, &err);
	if (o.hidden) out_floats(g->out, rows, g->n_ids*width);
	else put_logits(g, rows);
	for (size_t i = 0; i < g->n_parts; i++) state_free(g->part[i].state);
	free(rows);
	g->n_parts = g->n_ids = 0;
}

int main(int argc, char **argv)
{
	int n = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-logits", "evaluate token ids to logits",
		"-m MODEL [--hidden] [--batch N] [--pin] [--mlock] [--no-mmap] "
		"[--arch-file YAML] [-o FILE] [-j N] [IDS]", 0, 1 });
	const char *file = n ? argv[0] : "(stdin)";
	size_t bytes;
	struct ggu_pool *pool = load_pool(o.jobs, o.place.pin,
		(const char *[]){ o.model, o.arch_file, n ? file : NULL }, 3, o.output);
	struct model *m = load_model_held(o.model, o.arch_file, pool, load_hold(&o.place));
	struct out *out = out_open(o.output, true);
	struct group g = { .m = m, .n_batch = o.batch ? (size_t)o.batch : 512, .out = out };
	char *text = load_text(n ? argv[0] : NULL, &bytes);
	out_refuse_sources(out, o.model, model_file(m));
	out_refuse_input(out, o.arch_file);
	out_refuse_input(out, n ? argv[0] : "-");
	if (strlen(text) != bytes) msg_die("%s: byte %zu: NUL in a list of ids", file, strlen(text));
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		if (!read_line(&g, file, text, &p)) continue;
		if (o.hidden || g.n_ids >= g.n_batch) run(&g);          /* --hidden is by sequence */
	}
	run(&g);
	out_commit(out);
	work_free(g.w);
	free(g.ids);
	free(g.part);
	free(text);
	model_close(m);
	ggu_pool_free(pool);
	return EXIT_YES;
}
