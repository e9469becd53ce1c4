/* SPDX-License-Identifier: MIT
 * gguf-logits - token ids in, float32 logits out.
 *
 * Each line of input is a sequence, independent of the others. The output has a row of n_logits float32, little-endian,
 * for each token; with --hidden the residual stream instead, [n_layer+1][token][n_embd] for each sequence. For a model
 * without an output matrix (BERT) it has the rows that the matrix would be multiplied with, n_embd for each token. The
 * ids for an encoder come from the same line, "encoder ids | decoder ids", or from the lines of another file. */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/grow.h"
#include "../libgguf/pool.h"
#include "../libgguf/size.h"
#include "../libgguf/text.h"
#include "load.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "sandbox.h"

static struct {
	const char *model, *output, *source;
	struct opt_list arch_files;
	int jobs, batch;
	struct load_place place;
	bool hidden;
} o = { .batch = MODEL_BATCH };
static const struct opt opts[] = {
	OPT_FILE('m', "model", &o.model, "MODEL", "the GGUF file to evaluate"),
	OPT_FILE(0, "source", &o.source, "FILE", "ids for the encoder of a model that has one, a line for each of IDS"),
	OPT_FLAG(0, "hidden", &o.hidden, "write the residual stream instead of logits"),
	LOAD_BATCH_OPTION(&o.batch),
	OPT_ARCH_FILES(&o.arch_files),
	LOAD_PLACE_OPTIONS(&o.place),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* Lines of ids. */
struct lines { int32_t *ids; size_t n_ids; struct part *part; size_t n; };
/* Sequences that are computed side by side: short lines share a batch. */
struct group {
	struct model *m;
	struct work *w;
	size_t n_batch;
	struct lines l;
	struct lines source;            /* of all sequences */
	size_t done;                    /* sequences before the group */
	struct out *out;
};

/* Adds the ids of the line at *p, which is moved to its end, as another sequence; false: the line has none. */
static bool read_line(struct lines *l, size_t n_vocab, const char *file, const char *text, const char **p)
{
	int32_t id;
	size_t first = l->n_ids;
	for (; load_id(file, text, p, false, n_vocab, &id); l->ids[l->n_ids++] = id)
		l->ids = msg_need(ggu_grow(l->ids, l->n_ids, sizeof *l->ids));
	if (l->n_ids == first) return false;
	l->part = msg_need(ggu_grow(l->part, l->n, sizeof *l->part));
	l->part[l->n++] = (struct part){ .n = l->n_ids - first };
	return true;
}
static const char *next_line(const char *p)
{
	p += strcspn(p, "\n");
	return p + (*p == '\n');
}
static char *read_text(const char *path, const char *file)
{
	size_t bytes;
	char *text = load_text(path, LOAD_TEXT, &bytes);
	if (strlen(text) != bytes) msg_die("%s: byte %zu: NUL in a list of ids", file, strlen(text));
	return text;
}

static const char *source_name(void) { return msg_name(o.source); }
/* Takes the encoder's ids from lines "encoder ids | decoder ids", and leaves blanks in their place. */
static void take_sources(struct group *g, const char *file, char *text)
{
	const size_t n_vocab = model_n_vocab(g->m);
	for (char *line = text, *end, *bar; *line; line = end + (*end == '\n')) {
		const char *p = line;
		end = line + strcspn(line, "\n");
		if (line + strspn(line, " \t\r,") == end) continue;
		if (!(bar = memchr(line, '|', (size_t)(end - line))))
			msg_die("%s: byte %td: no '|' between ids for the encoder and ids for the decoder of %s",
				file, line - text, o.model);
		*bar = '\n';
		if (!read_line(&g->source, n_vocab, file, text, &p))
			msg_die("%s: byte %td: no ids for the encoder before '|'", file, line - text);
		if (bar + 1 + strspn(bar + 1, " \t\r,") == end)
			msg_die("%s: byte %td: no ids for the decoder after '|'", file, bar - text);
		memset(line, ' ', (size_t)(bar + 1 - line));
	}
}
/* The ids for an encoder: from --source, or from the text of IDS, where the decoder's ids stay. */
static void read_source(struct group *g, const char *file, char *ids)
{
	size_t at = 0;
	if (o.source && !model_has_encoder(g->m)) msg_die("%s: has no encoder for the ids of --source", o.model);
	if (o.source) {
		char *text = read_text(o.source, source_name());
		for (const char *p = text; *p; p = next_line(p))
			read_line(&g->source, model_n_vocab(g->m), source_name(), text, &p);
		free(text);
	} else if (model_has_encoder(g->m)) {
		take_sources(g, file, ids);
	}
	for (size_t i = 0; i < g->source.n; at += g->source.part[i++].n) g->source.part[i].ids = g->source.ids + at;
}

/* Reads all ids once before any is evaluated, so that a bad one, a disk without room and a sequence that is longer than
 * the model's show at once. */
static void reserve(const struct group *g, const char *file, const char *text)
{
	const size_t e = model_n_embd(g->m), v = model_n_vocab(g->m);
	const uint64_t row = o.hidden ? (model_n_layer(g->m) + 1)*(uint64_t)e : model_has_head(g->m) ?
		model_n_logits(g->m) : e;
	struct lines all = { 0 };
	size_t longest = 0;
	for (const char *p = text; *p; p = next_line(p))
		if (read_line(&all, v, file, text, &p)) longest = size_most(longest, all.part[all.n - 1].n);
	load_tell_context(g->m, o.model, longest);
	out_reserve(g->out, all.n_ids*row*sizeof(float));
	free(all.ids);
	free(all.part);
}

static void encode(struct group *g)
{
	struct part *source;
	struct ggu_error err;
	if (!model_has_encoder(g->m)) return;
	if (g->source.n - g->done < g->l.n)
		msg_die("%s: has fewer sequences than there are to evaluate", source_name());
	source = g->source.part + g->done;
	for (size_t i = 0; i < g->l.n; i++) source[i].state = g->l.part[i].state;
	if (model_encode(g->w, source, g->l.n, NULL, NULL, &err)) msg_die_error(o.model, &err);
}

/* Rows of the last layer to logits, some megabytes at a time. */
static void put_logits(const struct group *g, const float *rows)
{
	size_t e = model_n_embd(g->m), v = model_n_logits(g->m), step = ((size_t)16 << 20)/sizeof(float)/v + 8;
	float *logits = msg_need(malloc(size_times(size_least(step, g->l.n_ids), v*sizeof *logits)));
	struct ggu_error err;
	for (size_t at = 0; at < g->l.n_ids; at += step) {
		size_t n = g->l.n_ids - at < step ? g->l.n_ids - at : step;
		if (model_logits(g->w, rows + at*e, n, logits, NULL, NULL, &err)) msg_die_error(o.model, &err);
		out_write(g->out, logits, n*v*sizeof *logits);
	}
	free(logits);
}

static void make_work(struct group *g)
{
	size_t n = g->n_batch;
	struct ggu_error err;
	for (size_t i = 0; model_is_whole(g->m) && i < g->l.n; i++) if (g->l.part[i].n > n) n = g->l.part[i].n;
	if (g->w && n == g->n_batch) return;
	work_free(g->w);
	g->n_batch = n;
	if (work_new(&g->w, g->m, n, &err)) msg_die_error(o.model, &err);
}

static void run(struct group *g)
{
	size_t e = model_n_embd(g->m), width = o.hidden ? (model_n_layer(g->m) + 1)*e : e, at = 0;
	struct lines *l = &g->l;
	struct model_call c = { .part = l->part, .n_parts = l->n };
	struct ggu_error err;
	float *rows;
	if (!l->n) return;
	rows = malloc(size_times(l->n_ids, size_times(width, sizeof *rows)));
	if (!rows) msg_die("out of memory for %zu row%s", l->n_ids, text_s(l->n_ids));
	make_work(g);
	*(o.hidden ? &c.hidden : &c.rows) = rows;
	for (size_t i = 0; i < l->n; at += l->part[i++].n) {
		l->part[i].ids = l->ids + at;
		l->part[i].first = o.hidden ? l->part[i].n : 0;
		if (state_new(&l->part[i].state, g->m, NULL, &err)) msg_die_error(o.model, &err);
	}
	encode(g);
	if (model_eval(g->w, &c, &err)) msg_die_error(o.model, &err);
	if (o.hidden || !model_has_head(g->m)) out_write(g->out, rows, l->n_ids*width*sizeof *rows);
	else put_logits(g, rows);
	for (size_t i = 0; i < l->n; i++) state_free(l->part[i].state);
	free(rows);
	g->done += l->n;
	l->n = l->n_ids = 0;
}

int main(int argc, char **argv)
{
	int n = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-logits", "evaluate token ids to logits",
		"-m MODEL [--source FILE] [--hidden] [--batch N] [--pin] [--mlock] [--no-mmap] "
		"[--arch-file YAML]... [-o FILE] [-j N] [IDS]", 0, 1 });
	const char *file = msg_name(n ? argv[0] : NULL);
	if (o.source && !strcmp(o.source, "-") && (!n || !strcmp(argv[0], "-")))
		msg_usage("the ids of both --source and IDS cannot be standard input");
	struct out *out = out_open(o.output, true);
	sandbox_inputs(o.arch_files.v, o.arch_files.n);
	struct ggu_pool *pool = load_pool(o.jobs, o.place.pin,
		(const char *[]){ o.model, n ? argv[0] : NULL, o.source }, 3, o.output);
	struct model *m = load_model_held(o.model, &o.arch_files, pool, load_hold(&o.place));
	struct group g = { .m = m, .n_batch = (size_t)o.batch, .out = out };
	char *text = read_text(n ? argv[0] : NULL, file);
	out_refuse_sources(out, o.model, model_file(m));
	out_refuse_inputs(out, o.arch_files.v, o.arch_files.n);
	out_refuse_input(out, n ? argv[0] : "-");
	out_refuse_input(out, o.source);
	read_source(&g, file, text);
	reserve(&g, file, text);
	for (const char *p = text; *p; p = next_line(p)) {
		if (!read_line(&g.l, model_n_vocab(m), file, text, &p)) continue;
		if (o.hidden || g.l.n_ids >= g.n_batch) run(&g);        /* --hidden evaluates one sequence at a time */
	}
	run(&g);
	if (g.source.n > g.done) msg_die("%s: has more sequences than there are to evaluate", source_name());
	out_commit(out);
	work_free(g.w);
	free(g.l.ids);
	free(g.l.part);
	free(g.source.ids);
	free(g.source.part);
	free(text);
	model_close(m);
	ggu_pool_free(pool);
	return EXIT_YES;
}
