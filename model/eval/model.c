/* SPDX-License-Identifier: MIT
 * model.c - opens a model: file, architecture, graph. It also checks tensors that are not in a file yet, and puts other
 * weights in the place of a model's own (for --calibrate). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/pool.h"
#include "model_internal.h"
#include "op.h"

static enum ggu_status unknown(struct model *m, const char *name, struct ggu_error *err)
{
	char known[100] = "";           /* whole names, as many as fit into a message */
	size_t n = 0;
	enum ggu_status s = arch_set_all(m->archs, err);
	if (s) return s;
	for (size_t i = 0; i < arch_count(m->archs); i++) {
		const char *a = arch_at(m->archs, i)->name;
		if (n + strlen(a) + sizeof " ..." >= sizeof known) {
			memcpy(known + n, " ...", sizeof " ...");
			break;
		}
		n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? " " : "", a);
	}
	return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, name,
		"is not a known architecture (known: %s)", known);
}

static enum ggu_status build(struct model *m, const struct model_options *o, struct ggu_error *err)
{
	struct ggu_str name;
	const struct arch *a = NULL;
	enum ggu_status s = arch_set_open(&m->archs, o->arch_files, o->n_arch_files, err);
	if (s) return s;
	if (!ggu_meta_str(ggu_file_meta(m->file), "general.architecture", &name))
		return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "general.architecture",
			"is missing: this is not a model");
	s = arch_find(m->archs, name.p, &a, err);
	if (s) return s;
	return a ? graph_build(&m->graph, a, m->file, m->arena, err) : unknown(m, name.p, err);
}

enum ggu_status model_open(struct model **out, const char *path, const struct model_options *o, struct ggu_error *err)
{
	struct model *m = calloc(1, sizeof *m);
	enum ggu_status s;
	if (!m || !(m->arena = expr_arena_new())) {
		if (!o->lent) ggu_close(o->file);
		free(m);
		return ggu_no_memory(err);
	}
	pages_init(&m->pages);
	m->pool = o->pool;
	m->be = &backend_cpu;
	m->file = o->file;
	m->lent = o->lent;
	s = m->file ? GGU_OK : ggu_open(&m->file, path, err);
	if (!s && !ggu_file_seekable(m->file))
		s = ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "",
			"is not a seekable file: it cannot be mapped into memory");
	if (!s && (o->hold || ggu_pool_node(o->pool, ggu_pool_size(o->pool) - 1)))
		s = ggu_hold(m->file, o->hold, o->pool, err);
	if (!s) s = build(m, o, err);
	if (s) model_close(m);
	else *out = m;
	return s;
}

/* Writes the header of a file that has them and opens it, because a graph is built from a file. */
enum ggu_status model_check(const struct arch *a, const struct ggu_meta *meta, const struct ggu_tensor *t, size_t n,
	struct ggu_error *err)
{
	const struct ggu_open_options header = { .flags = GGU_OPEN_HEADER };
	struct ggu_memory bytes = { 0 };
	struct ggu_sink to = ggu_sink_memory(&bytes);
	struct ggu_writer *w = NULL;
	struct ggu_file *f = NULL;
	enum ggu_status s = ggu_writer_new(&w, meta, err);
	for (size_t i = 0; !s && i < n; i++) s = ggu_writer_add(w, t[i].name, t[i].n_dims, t[i].ne, t[i].type, err);
	if (!s) s = ggu_writer_header(w, &to, err);
	if (!s) s = ggu_open_memory(&f, bytes.p, bytes.n, &header, err);
	if (!s) s = graph_check(a, f, err);
	ggu_close(f);
	free(bytes.p);
	ggu_writer_free(w);
	return s;
}

void model_close(struct model *m)
{
	if (!m) return;
	if (!m->lent) ggu_close(m->file);
	arch_set_free(m->archs);
	expr_arena_free(m->arena);
	pages_free(&m->pages);
	free(m);
}

const struct ggu_file *model_file(const struct model *m) { return m->file; }
uint64_t model_id(const struct model *m) { return graph_id(&m->graph); }
struct ggu_pool *model_pool(const struct model *m) { return m->pool; }
size_t model_n_vocab(const struct model *m) { return m->graph.n_vocab; }
size_t model_n_logits(const struct model *m) { return m->graph.head.n_out; }
size_t model_n_embd(const struct model *m) { return m->graph.n_embd; }
size_t model_n_layer(const struct model *m) { return m->graph.n_layer; }
size_t model_n_positions(const struct model *m)
{
	return m->graph.positions.name ? size_least(m->graph.positions.n_out, MODEL_MAX_POS) : MODEL_MAX_POS;
}
size_t model_n_steps(const struct model *m)
{
	size_t n = 0;
	for (size_t l = 0; l < m->graph.n_layer; l++) n += m->graph.layer[l].n_steps;
	return n;
}

bool model_has_head(const struct model *m) { return m->graph.head.name; }
bool model_is_whole(const struct model *m) { return m->graph.whole; }
bool model_has_encoder(const struct model *m) { return m->graph.source; }
int32_t model_start(const struct model *m) { return m->graph.start; }

/* ---- other weights ---- */

typedef void see_weight(void *ctx, struct weight *w);
static void visit_fields(const struct field *f, char *params, see_weight *see, void *ctx)
{
	for (; f->key; f++)
		if (f->kind == FIELD_WEIGHT) see(ctx, (void *)(params + f->at));
		else if (f->kind == FIELD_MAP) visit_fields(f->sub, params + f->at, see, ctx);
}
static void visit_layers(const struct graph *g, see_weight *see, void *ctx)
{
	for (size_t l = 0; l < g->n_layer; l++)
		for (size_t i = 0; i < g->layer[l].n_steps; i++) {
			const struct step *st = g->layer[l].step + i;
			for (size_t k = 0; k < st->n_branches; k++)
				visit_fields(st->branch[k].op->fields, st->branch[k].params, see, ctx);
		}
}

struct change { const struct ggu_tensor *t; uint32_t type; const void *data; size_t row_bytes; };
static void change(void *ctx, struct weight *w)
{
	const struct change *c = ctx;
	if (!w->name || strcmp(w->name, c->t->name)) return;
	w->type = c->type;
	w->data = c->data;
	w->row_bytes = c->row_bytes;
}
void model_set_weights(struct model *m, const char *name, const float *weights)
{
	struct change c = { ggu_file_find(m->file, name), GGU_TYPE_F32, weights };
	uint64_t row;
	if (!c.t || (!weights && ggu_map(m->file, c.t, &c.data, NULL))) return;
	if (!weights) c.type = c.t->type;
	if (!ggu_type_bytes(c.type, c.t->ne[0], &row)) return;
	c.row_bytes = (size_t)row;
	for (struct graph *g = &m->graph; g; g = g->source) {
		change(&c, &g->embed);
		change(&c, &g->head);
		visit_layers(g, change, &c);
	}
}

/* ---- the weights that a tap is told of ---- */

struct uses { const struct graph *g; const char *name; size_t n; bool even; };
static void count_use(void *ctx, struct weight *w)
{
	struct uses *u = ctx;
	u->n += w->name && !w->made && !strcmp(w->name, u->name);
}
static void check_uses(void *ctx, struct weight *w)
{
	struct uses *all = ctx, of = { .name = w->name };
	if (!all->even || !w->name || w->made) return;
	for (const struct graph *g = all->g; g; g = g->source) visit_layers(g, count_use, &of);
	count_use(&of, (void *)(uintptr_t)&all->g->head);
	all->even = of.n == 1 && w->n_mat == 1;
}
bool model_is_even(const struct model *m)
{
	struct uses all = { .g = &m->graph, .even = true };
	for (const struct graph *g = all.g; g; g = g->source) visit_layers(g, check_uses, &all);
	return all.even;
}
