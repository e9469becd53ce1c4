/* SPDX-License-Identifier: MIT
 * graph.c - the `graph` part of an architecture file, resolved for one model: input, layers of steps, output.
 * build.c reads mappings, the operators their own. */
#include <string.h>
#include "../../libgguf/text.h"
#include "../../libgguf/try.h"
#include "op.h"

/* ---- what build.h leaves to the graph ---- */

static bool may_share(const struct graph *g, const struct cache *a, const struct cache *b)
{
	return g->whole && !a->across && !b->across && heads_same(&a->heads, &b->heads) && a->v_in_k == b->v_in_k;
}

enum ggu_status build_cache(struct builder *b, struct graph *g, struct cache c, size_t *index)
{
	for (size_t i = 0; i < g->n_caches; i++)
		if (may_share(g, g->cache + i, &c)) {
			*index = i;
			return GGU_OK;
		}
	if (!(g->n_caches & (g->n_caches + 1))) {       /* room doubles; the old list stays in the arena */
		struct cache *more = build_alloc(b, 2*(g->n_caches + 1)*sizeof *more);
		if (!more) return GGU_ERR_NOMEM;
		if (g->n_caches) memcpy(more, g->cache, g->n_caches*sizeof *more);
		g->cache = more;
	}
	g->cache[g->n_caches] = c;
	*index = g->n_caches++;
	return GGU_OK;
}
/* A layer uses a cache that others use too. The widest window decides what is kept. If it has another mask than they,
 * or chunks that begin elsewhere, all of the past is. */
void build_sight(struct cache *c, enum attn_mask mask, size_t window)
{
	if (c->mask != mask || !window || (mask == ATTN_CHUNK && window != c->window)) c->window = 0;
	if (c->window && window > c->window) c->window = window;
}

/* Gathers the caches whose rows see equally far back. */
static enum ggu_status horizons(struct builder *b, struct graph *g)
{
	if (!(g->horizon = build_alloc(b, (g->n_caches + 1)*sizeof *g->horizon))) return GGU_ERR_NOMEM;
	for (size_t i = 0; i < g->n_caches; i++) {
		struct cache *c = g->cache + i;
		struct horizon *h = g->horizon;
		if (!c->window) c->mask = ATTN_NONE;
		while (h < g->horizon + g->n_horizons && (h->mask != c->mask || h->window != c->window)) h++;
		if (h == g->horizon + g->n_horizons) {
			*h = (struct horizon){ c->mask, c->window, 0 };
			g->n_horizons++;
		}
		c->horizon = (size_t)(h - g->horizon);
		c->slot = h->n_caches++;
	}
	return GGU_OK;
}

enum ggu_status build_recurrent(struct builder *b, const struct yaml_node *map, const char *key, size_t n_rows,
	size_t n, size_t *at)
{
	if (n_rows > BUILD_MAX_SIZE/n) return build_fail(b, map, key, "asks for more than 2^24 numbers in a sequence");
	*at = b->g->recurrent_floats;
	b->g->recurrent_floats += (n_rows*n + 15)/16*16;
	return GGU_OK;
}

/* ---- steps ---- */

/* The one key of a branch that is neither a norm nor a condition. */
static enum ggu_status operator_of(const struct builder *b, const struct yaml_node *at, const struct op **op,
	const struct yaml_node **map)
{
	char what[160] = "expected ";
	*op = NULL;
	if (at->kind != YAML_MAPPING) return build_fail(b, at, "branches", "expected a mapping");
	for (size_t i = 0; i < at->count; i++) {
		const struct yaml_node *k = at->keys[i];
		const struct op *found = op_find(k->text);
		if (yaml_is(k, "norm") || yaml_is(k, "post_norm") || yaml_is(k, "when")) continue;
		if (!found) return build_fail(b, k, k->text, "unknown key");
		if (yaml_null(at->items[i])) continue;
		if (*op) return build_fail(b, k, k->text, "a branch has only one operator");
		*op = found;
		*map = at->items[i];
	}
	if (*op) return GGU_OK;
	op_names(what + strlen(what), sizeof what - strlen(what));
	return build_fail(b, at, "branches", what);
}

#define AT(member) offsetof(struct branch, member)
static const struct field branch_fields[] = { { "norm", FIELD_NORM, AT(before) },
	{ "post_norm", FIELD_NORM, AT(after) }, { NULL } };
#undef AT

/* Adds a branch to those that keep something of the rows of the stack they attend to. */
static enum ggu_status reader(const struct builder *b, const struct branch *br)
{
	struct graph *g = b->g->source;
	const struct branch **more = build_alloc(b, (g->n_readers + 1)*sizeof *more);
	if (!more) return GGU_ERR_NOMEM;
	if (g->n_readers) memcpy(more, g->reader, g->n_readers*sizeof *more);
	more[g->n_readers++] = br;
	g->reader = more;
	return GGU_OK;
}

/* Builds a branch, unless its condition is false. */
static enum ggu_status branch(struct builder *b, const struct yaml_node *at, struct step *st)
{
	struct branch *br = st->branch + st->n_branches;
	const struct yaml_node *map = NULL;
	size_t e = b->g->n_embd;
	bool yes;
	if (yaml_null(at)) return GGU_OK;
	TRY(operator_of(b, at, &br->op, &map));
	TRY(build_when(b, at, &yes));
	if (!yes) return GGU_OK;
	TRY(build_fields(b, at, branch_fields, br));
	TRY(build_norm_width(b, at, "norm", &br->before, e, e));
	TRY(build_norm_width(b, at, "post_norm", &br->after, e, e));
	if (!(br->params = build_alloc(b, br->op->bytes))) return GGU_ERR_NOMEM;
	if (br->op->read && !b->g->source)
		return build_fail(b, map, br->op->name, "there is no encoder to attend to");
	TRY(build_fields(b, map, br->op->fields, br->params));
	TRY(br->op->build(b, map, br->params));
	st->n_branches++;
	return br->op->read ? reader(b, br) : GGU_OK;
}

#define AT(member) offsetof(struct step, member)
static const struct field step_fields[] = {
	{ "norm", FIELD_NORM, AT(before) },
	{ "post_norm", FIELD_NORM, AT(after) },
	{ "residual_norm", FIELD_NORM, AT(residual) },
	{ "scale", FIELD_NUMBER, AT(scale), 1, -1e6, 1e6 },
	{ "branches", FIELD_OWN },
	{ "when", FIELD_OWN },
	{ NULL }
};
#undef AT

/* Builds a step. If its condition is false, it has no branches. */
static enum ggu_status step(struct builder *b, const struct yaml_node *at, struct step *st)
{
	const struct yaml_node *branches = yaml_get(at, "branches");
	size_t e = b->g->n_embd;
	bool yes;
	enum ggu_status s = GGU_OK;
	if (yaml_null(at)) return GGU_OK;
	TRY(build_when(b, at, &yes));
	if (!yes) return GGU_OK;
	TRY(build_fields(b, at, step_fields, st));
	TRY(build_norm_width(b, at, "norm", &st->before, e, e));
	TRY(build_norm_width(b, at, "post_norm", &st->after, e, e));
	TRY(build_norm_width(b, at, "residual_norm", &st->residual, e, e));
	st->branch = build_alloc(b, branches->count*sizeof *st->branch);
	if (!st->branch) return GGU_ERR_NOMEM;
	b->forms = 0;
	for (size_t i = 0; i < branches->count && !s; i++) s = branch(b, branches->items[i], st);
	st->forms = b->forms;
	if (st->n_branches > b->g->max_branches) b->g->max_branches = st->n_branches;
	return s;
}

static enum ggu_status branch_keys(const struct builder *b, const struct yaml_node *at)
{
	const struct yaml_node *map = NULL;
	const struct op *op;
	if (yaml_null(at)) return GGU_OK;
	TRY(operator_of(b, at, &op, &map));
	TRY(build_values(b, at, branch_fields));
	return build_keys(b, map, op->fields, "");
}
static enum ggu_status step_keys(const struct builder *b, const struct yaml_node *at)
{
	const struct yaml_node *branches = yaml_get(at, "branches");
	if (yaml_null(at)) return GGU_OK;
	TRY(build_keys(b, at, step_fields, ""));
	if (!branches || branches->kind != YAML_MAPPING || !branches->count)
		return build_fail(b, at, "branches", "expected branches by name");
	if (branches->count > STEP_MAX_BRANCHES) return build_fail(b, branches, "branches", "has more than eight");
	for (size_t i = 0; i < branches->count; i++) TRY(branch_keys(b, branches->items[i]));
	return GGU_OK;
}

static bool mixes(const struct step *st)
{
	for (size_t i = 0; i < st->n_branches; i++) if (!st->branch[i].op->apart) return true;
	return false;
}

/* The mapping that says something about a key: the stack, or the graph, which speaks for all stacks. */
static const struct yaml_node *owner(const struct builder *b, const char *key)
{
	return b->stack && yaml_get(b->stack, key) ? b->stack : b->arch->graph;
}
static const struct yaml_node *said(const struct builder *b, const char *key) { return yaml_get(owner(b, key), key); }

static enum ggu_status layers(struct builder *b)
{
	const struct yaml_node *root = owner(b, "layers"), *list = said(b, "layer");
	struct graph *g = b->g;
	size_t n_steps = 0;
	double n;
	if (!list || list->kind != YAML_MAPPING || !list->count)
		return build_fail(b, b->stack ? b->stack : root, "layer", "expected steps by name");
	for (size_t k = 0; k < list->count; k++) TRY(step_keys(b, list->items[k]));
	TRY(build_number(b, root, "layers", 0, 1, BUILD_MAX_SIZE, &n));
	g->n_layer = (size_t)n;
	if (n != (double)g->n_layer)
		return build_fail(b, yaml_get(root, "layers"), "layers", "expected a whole number");
	if (g->n_layer > ggu_file_n_tensors(b->f))
		return ggu_fail(b->err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "block_count", "%zu layer%s, but %zu tensor%s",
			g->n_layer, text_s(g->n_layer), ggu_file_n_tensors(b->f), text_s(ggu_file_n_tensors(b->f)));
	g->layer = build_alloc(b, g->n_layer*sizeof *g->layer);
	if (!g->layer) return GGU_ERR_NOMEM;
	for (size_t i = 0; i < g->n_layer; i++) {
		struct layer *l = g->layer + i;
		b->layer = (int64_t)i;
		l->step = build_alloc(b, list->count*sizeof *l->step);
		if (!l->step) return GGU_ERR_NOMEM;
		for (size_t k = 0; k < list->count; k++) {
			TRY(step(b, list->items[k], l->step + l->n_steps));
			if (!l->step[l->n_steps].n_branches) {
				l->step[l->n_steps] = (struct step){ 0 };
				continue;
			}
			n_steps++;
			if (mixes(l->step + l->n_steps++)) g->n_mixing = n_steps;
		}
	}
	b->layer = -1;
	return GGU_OK;
}

/* ---- input and output ---- */

#define AT(member) offsetof(struct graph, member)
static const struct field input_fields[] = {
	{ "embed", FIELD_WEIGHT, AT(embed), .flags = FIELD_NEEDED },
	{ "scale", FIELD_NUMBER, AT(embed_scale), 1, -1e6, 1e6 },
	{ "positions", FIELD_WEIGHT, AT(positions) },
	{ "n_positions", FIELD_SIZE, AT(n_positions), 0, 0, BUILD_MAX_SIZE },
	{ "token_types", FIELD_WEIGHT, AT(token_types) },
	{ "norm", FIELD_NORM, AT(embed_norm) },
	{ NULL }
};
static const struct field output_fields[] = {
	{ "norm", FIELD_NORM, AT(out_norm) },
	{ "head", FIELD_WEIGHT, AT(head) },
	{ "rows", FIELD_SIZE, AT(head_rows), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ "scale", FIELD_NUMBER, AT(head_scale), 1, -1e6, 1e6 },
	{ "softcap", FIELD_NUMBER, AT(head_softcap), 0, 0, 1e6 },
	{ NULL }
};
#undef AT

static enum ggu_status input(struct builder *b, const struct yaml_node *at)
{
	struct graph *g = b->g;
	if (yaml_null(at)) return build_fail(b, b->arch->graph, "input", "is missing");
	TRY(build_keys(b, at, input_fields, ""));
	TRY(build_fields(b, at, input_fields, g));
	TRY(build_shape(b, &g->embed, 0, 0, 1));
	g->n_embd = g->embed.n_in;
	g->n_vocab = g->embed.n_out;
	TRY(build_shape(b, &g->positions, g->n_embd, g->n_positions, 1));
	TRY(build_shape(b, &g->token_types, g->n_embd, 0, 1));
	return build_norm_width(b, at, "norm", &g->embed_norm, g->n_embd, g->n_embd);
}

static enum ggu_status output(struct builder *b, const struct yaml_node *at)
{
	struct graph *g = b->g;
	TRY(build_keys(b, at, output_fields, ""));
	TRY(build_fields(b, at, output_fields, g));
	TRY(build_norm_width(b, at, "norm", &g->out_norm, g->n_embd, g->n_embd));
	return build_shape(b, &g->head, g->n_embd, g->head_rows ? g->head_rows : g->n_vocab, 1);
}

/* KEY: [EXPRESSION, MESSAGE]: what must be true of the metadata, so that the steps compute what the model means. */
static enum ggu_status checks(struct builder *b, const struct yaml_node *list)
{
	if (!yaml_null(list) && list->kind != YAML_MAPPING) return build_fail(b, list, "check", "expected a mapping");
	for (size_t i = 0; !yaml_null(list) && i < list->count; i++) {
		const struct yaml_node *row = list->items[i];
		struct expr_value v;
		if (yaml_null(row)) continue;
		if (row->kind != YAML_SEQUENCE || row->count != 2 || row->items[1]->kind != YAML_SCALAR)
			return build_fail(b, row, "check", "expected [expression, message]");
		TRY(build_eval(b, row->items[0], &v));
		if (!expr_true(&v))
			return ggu_fail(b->err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, list->keys[i]->text,
				"%.100s (architecture %.40s)", row->items[1]->text, b->arch->name);
	}
	return GGU_OK;
}

static enum ggu_status mask(const struct builder *b, const struct yaml_node *at)
{
	b->g->whole = yaml_is(at, "none");
	return yaml_null(at) || yaml_is(at, "causal") || b->g->whole ? GGU_OK
		: build_fail(b, at, "mask", "expected causal or none");
}

static enum ggu_status blocks(struct builder *b, const struct yaml_node *at)
{
	b->blocks = yaml_null(at) ? "blk" : at->text;
	return yaml_null(at) || at->kind == YAML_SCALAR ? GGU_OK
		: build_fail(b, at, "blocks", "expected a prefix of tensor names");
}

static enum ggu_status start(struct builder *b)
{
	double id;
	TRY(build_number(b, owner(b, "start"), "start", -1, -1, (double)b->g->n_vocab - 1, &id));
	b->g->start = (int32_t)id;
	return id == (double)b->g->start ? GGU_OK : build_fail(b, said(b, "start"), "start", "expected a token id");
}

#define STACK_KEYS "mask blocks input layers layer output start"
/* stack NULL: the graph has only one, without a name. */
static enum ggu_status build_stack(struct builder *b, struct graph *g, const struct yaml_node *stack)
{
	b->g = g;
	b->stack = stack;
	g->file = b->f;
	g->arch = b->arch;
	if (stack) TRY(build_only(b, stack, NULL, STACK_KEYS));
	TRY(mask(b, said(b, "mask")));
	TRY(blocks(b, said(b, "blocks")));
	TRY(input(b, said(b, "input")));
	TRY(layers(b));
	TRY(output(b, said(b, "output")));
	return start(b);
}

static enum ggu_status stacks(struct builder *b, struct graph *g, const struct yaml_node *at)
{
	const struct yaml_node *encoder = yaml_get(at, "encoder"), *decoder = yaml_get(at, "decoder");
	enum ggu_status s = build_only(b, at, NULL, "encoder decoder");
	if (s) return s;
	if (yaml_null(encoder) || yaml_null(decoder))
		return build_fail(b, at, "stacks", "expected an encoder and a decoder");
	if (!(g->source = build_alloc(b, sizeof *g->source))) return GGU_ERR_NOMEM;
	TRY(build_stack(b, g->source, encoder));
	if (!g->source->whole) return build_fail(b, encoder, "encoder", "expected mask: none");
	TRY(build_stack(b, g, decoder));
	if (g->whole) return build_fail(b, decoder, "decoder", "expected mask: causal");
	return g->source->n_readers ? GGU_OK : build_fail(b, decoder, "decoder", "never attends to the encoder");
}

static enum ggu_status build_all(struct graph *g, const struct arch *a, struct ggu_file *f, bool shapes_only,
	struct expr_arena *arena, struct ggu_error *err)
{
	struct builder b = { .g = g, .arch = a, .f = f, .meta = ggu_file_meta(f), .arena = arena, .err = err,
		.names = yaml_get(a->graph, "names"), .layer = -1, .shapes_only = shapes_only };
	const struct yaml_node *list = yaml_get(a->graph, "stacks");
	enum ggu_status s;
	*g = (struct graph){ 0 };
	if (!a->graph)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, a->name, "%s does not say how to evaluate it",
			a->file);
	TRY(build_sort_keys(&b));
	b.read = build_alloc(&b, ggu_file_n_tensors(f));
	if (!b.read) return GGU_ERR_NOMEM;
	TRY(build_only(&b, a->graph, NULL, "names check ignore stacks " STACK_KEYS));
	TRY(build_names(&b));
	TRY(build_list(&b, "ignore"));
	TRY(checks(&b, yaml_get(a->graph, "check")));
	s = yaml_null(list) ? build_stack(&b, g, NULL) : stacks(&b, g, list);
	if (!s) s = build_unread(&b);
	if (!s) s = horizons(&b, g);
	return s || !g->source ? s : horizons(&b, g->source);
}

enum ggu_status graph_build(struct graph *g, const struct arch *a, struct ggu_file *f, struct expr_arena *arena,
	struct ggu_error *err)
{
	return build_all(g, a, f, false, arena, err);
}

enum ggu_status graph_check(const struct arch *a, struct ggu_file *f, struct ggu_error *err)
{
	struct expr_arena *arena = expr_arena_new();
	struct graph g;
	enum ggu_status s;
	if (!arena) return ggu_no_memory(err);
	s = build_all(&g, a, f, true, arena, err);
	expr_arena_free(arena);
	return s;
}
