/* SPDX-License-Identifier: MIT
 * graph.c - the `graph` part of an architecture file, resolved for one model.
 *
 * Expressions see: `i` (the layer), the shorthands under `names`, and the model's own keys without the
 * architecture's prefix. A key that holds one value per layer stands for that of layer i. Tensor names are
 * without "blk.N." and ".weight"; NAME.bias is added where it exists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/quant.h"
#include "graph.h"

enum { MAX_SIZE = 1 << 24, MAX_LIST = 4096, MAX_DEPTH = 16, MAX_NAMES = 10000 };
#define MIN_DIVISOR 1e-6f

struct builder {
	struct graph *g;
	const struct arch *arch;
	struct ggu_file *f;
	const struct ggu_meta *meta;
	struct expr_arena *arena;
	struct ggu_error *err;
	const struct yaml_node *names;
	int64_t layer;          /* -1: outside the layers */
	int depth, used;        /* of names that use names; names that one expression came to */
	const char **keys;      /* [ggu_meta_count(meta)], sorted */
};

static enum ggu_status fail(const struct builder *b, const struct yaml_node *at, const char *where, const char *what)
{
	return ggu_fail(b->err, GGU_ERR_FORMAT, GGU_NO_OFFSET, where, "%s (%s, line %u, column %u)", what, at ? at->file : b->arch->file, at ? at->line : 0, at ? at->column : 0);
}
static void *alloc(const struct builder *b, size_t n)
{
	void *p = expr_arena_alloc(b->arena, n);
	if (!p) ggu_fail(b->err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	return p;
}

/* A mapping, or null, with no other keys than these words: a misspelt key would silently change the results. */
static enum ggu_status only(const struct builder *b, const struct yaml_node *map, const char *keys)
{
	const struct yaml_node *stray = yaml_stray(map, keys);
	if (!yaml_null(map) && map->kind != YAML_MAPPING) return fail(b, map, "graph", "wants a mapping");
	return stray ? fail(b, stray, stray->text, "is no key that belongs here") : GGU_OK;
}

/* ---- expressions over the metadata ---- */

static void item_value(const struct ggu_kv *kv, size_t i, struct expr_value *v)
{
	v->kind = EXPR_NULL;
	if (ggu_kv_item_type(kv) == GGU_BOOL && ggu_kv_bool(kv, i, &v->u.b)) v->kind = EXPR_BOOL;
	else if (ggu_kv_int(kv, i, &v->u.i)) v->kind = EXPR_INT;
	else if (ggu_kv_float(kv, i, &v->u.f)) v->kind = EXPR_FLOAT;
	else if (ggu_kv_str(kv, i, &v->u.s)) v->kind = EXPR_STR;
}

static enum ggu_status key_value(struct builder *b, const struct ggu_kv *kv, struct expr_value *v)
{
	size_t n = ggu_kv_n(kv);
	struct expr_value *list;
	if (ggu_kv_type(kv) != GGU_ARRAY) { item_value(kv, 0, v); return GGU_OK; }
	if (b->layer >= 0 && n == b->g->n_layer) { item_value(kv, (size_t)b->layer, v); return GGU_OK; }
	if (n > MAX_LIST) return ggu_fail(b->err, GGU_ERR_RANGE, GGU_NO_OFFSET, ggu_kv_key(kv).p, "%zu items where at most %d make sense", n, MAX_LIST);
	list = alloc(b, n*sizeof *list + 1);
	if (!list) return GGU_ERR_NOMEM;
	for (size_t i = 0; i < n; i++) item_value(kv, i, list + i);
	*v = (struct expr_value){ EXPR_LIST, { .list = { list, n } } };
	return GGU_OK;
}

static enum ggu_status eval(struct builder *b, const struct yaml_node *at, struct expr_value *v);

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static enum ggu_status sort_keys(struct builder *b)
{
	size_t n = ggu_meta_count(b->meta);
	b->keys = alloc(b, (n + 1)*sizeof *b->keys);
	if (!b->keys) return GGU_ERR_NOMEM;
	for (size_t i = 0; i < n; i++) b->keys[i] = ggu_kv_key(ggu_meta_at(b->meta, i)).p;
	qsort(b->keys, n, sizeof *b->keys, by_text);
	return GGU_OK;
}

/* Some key begins with prefix and a dot. */
static bool has_keys_below(const struct builder *b, const char *prefix)
{
	char dotted[258];
	size_t n = (size_t)snprintf(dotted, sizeof dotted, "%s.", prefix), lo = 0, hi = ggu_meta_count(b->meta);
	while (lo < hi) {
		size_t mid = lo + (hi - lo)/2;
		if (strcmp(b->keys[mid], dotted) < 0) lo = mid + 1;
		else hi = mid;
	}
	return lo < ggu_meta_count(b->meta) && !strncmp(b->keys[lo], dotted, n);
}

/* object: the dotted prefix so far, as text */
static enum ggu_status lookup(void *ctx, const void *object, const char *name, struct expr_value *v)
{
	struct builder *b = ctx;
	const struct yaml_node *short_hand = object ? NULL : yaml_get(b->names, name);
	const struct ggu_kv *kv;
	char key[256];
	char *prefix;
	if (!object && !strcmp(name, "i") && b->layer >= 0) { *v = (struct expr_value){ EXPR_INT, { .i = b->layer } }; return GGU_OK; }
	if (short_hand) {
		enum ggu_status s;
		if (!b->depth) b->used = 0;
		if (b->depth == MAX_DEPTH) return fail(b, short_hand, name, "names that need each other");
		if (b->used++ == MAX_NAMES) return fail(b, short_hand, name, "names that use names too often");
		b->depth++;
		s = eval(b, short_hand, v);
		b->depth--;
		return s;
	}
	if (snprintf(key, sizeof key, "%s.%s%s%s", b->arch->name, object ? (const char *)object : "", object ? "." : "", name) >= (int)sizeof key) return GGU_OK;
	kv = ggu_meta_find(b->meta, key);
	if (kv) return key_value(b, kv, v);
	if (!has_keys_below(b, key)) return GGU_OK;
	prefix = alloc(b, strlen(key) + 1);
	if (!prefix) return GGU_ERR_NOMEM;
	strcpy(prefix, key + strlen(b->arch->name) + 1);
	*v = (struct expr_value){ EXPR_OBJECT, { .object = prefix } };
	return GGU_OK;
}

static enum ggu_status eval(struct builder *b, const struct yaml_node *at, struct expr_value *v)
{
	struct expr_scope scope = { b, lookup, NULL };
	enum ggu_status s;
	v->kind = EXPR_NULL;
	if (yaml_null(at)) return GGU_OK;
	if (at->kind != YAML_SCALAR) return fail(b, at, "graph", "wants an expression");
	s = expr_text(at->text, &scope, b->arena, v, b->err);
	if (s && b->err && b->err->offset != GGU_NO_OFFSET) {    /* of the text; a name's own failure has been placed by it */
		size_t n = strlen(b->err->what);
		snprintf(b->err->what + n, sizeof b->err->what - n, " (%s, line %u, column %u)", at->file, at->line,
			at->column + !at->plain + (unsigned)b->err->offset);
		b->err->offset = GGU_NO_OFFSET;
	}
	return s;
}

/* map[key] as a number in lo..hi; `none` where it is absent or null, which is an error if that is outside */
static enum ggu_status number(struct builder *b, const struct yaml_node *map, const char *key, double none, double lo, double hi, double *x)
{
	const struct yaml_node *at = yaml_get(map, key);
	struct expr_value v;
	enum ggu_status s = eval(b, at, &v);
	if (s) return s;
	if (v.kind == EXPR_NULL && !(none >= lo && none <= hi))
		return ggu_fail(b->err, GGU_ERR_MISSING, GGU_NO_OFFSET, key, "the metadata give no value (%s, line %u: %.60s)", at ? at->file : map->file, at ? at->line : map->line, at ? at->text : "");
	if (v.kind == EXPR_NULL) *x = none;
	else if (v.kind == EXPR_INT) *x = (double)v.u.i;
	else if (v.kind == EXPR_FLOAT) *x = v.u.f;
	else return fail(b, at, key, "wants a number");
	if (!(*x >= lo && *x <= hi)) return ggu_fail(b->err, GGU_ERR_RANGE, GGU_NO_OFFSET, key, "%g is not in %g..%g (%s, line %u: %.60s)", *x, lo, hi, at ? at->file : map->file, at ? at->line : map->line, at ? at->text : "");
	return GGU_OK;
}
static enum ggu_status size(struct builder *b, const struct yaml_node *map, const char *key, size_t none, size_t lo, size_t *n)
{
	double x = 0;
	enum ggu_status s = number(b, map, key, (double)none, (double)lo, MAX_SIZE, &x);
	if (s) return s;
	if (x != __builtin_floor(x)) return fail(b, yaml_get(map, key), key, "wants a whole number");
	*n = (size_t)x;
	return GGU_OK;
}

/* ---- tensors ---- */

/* Full name of a tensor of this layer, in the arena. */
static const char *full_name(const struct builder *b, const char *name, const char *suffix)
{
	char buf[256], *s;
	int n = b->layer >= 0 ? snprintf(buf, sizeof buf, "blk.%d.%s%s", (int)b->layer, name, suffix) : snprintf(buf, sizeof buf, "%s%s", name, suffix);
	if (n >= (int)sizeof buf) return "";
	s = alloc(b, (size_t)n + 1);
	if (s) memcpy(s, buf, (size_t)n + 1);
	return s;
}

/* Vector NAME of n floats (n 0: any), decoded if need be. *v NULL if it is missing. */
static enum ggu_status vector(const struct builder *b, const char *name, size_t *n, const float **v)
{
	const struct ggu_tensor *t = ggu_file_find(b->f, name);
	const void *data;
	enum ggu_status s;
	float *out;
	*v = NULL;
	if (!t) return GGU_OK;
	if (ggu_tensor_rows(t) != 1 || t->ne[0] > MAX_SIZE || !quant_can_decode(t->type) || (*n && t->ne[0] != *n))
		return ggu_fail(b->err, GGU_ERR_FORMAT, t->entry, name, "wants a vector of %zu numbers", *n);
	*n = t->ne[0];
	if ((s = ggu_map(b->f, t, &data, b->err))) return s;
	out = alloc(b, *n*sizeof *out + 1);
	if (!out) return GGU_ERR_NOMEM;
	quant_decode(t->type, data, out, *n);
	*v = out;
	return GGU_OK;
}

static enum ggu_status wrong_shape(const struct builder *b, const struct ggu_tensor *t, const char *name, size_t n_in, size_t n_out)
{
	const size_t want[2] = { n_in, n_out };
	char is[100] = "", wanted[2][24];
	int n = 0;
	for (uint32_t d = 0; d < t->n_dims; d++) n += snprintf(is + n, sizeof is - (size_t)n, "%s%llu", d ? ", " : "", (unsigned long long)t->ne[d]);
	for (int d = 0; d < 2; d++)
		if (want[d]) snprintf(wanted[d], sizeof wanted[d], "%zu", want[d]);
		else strcpy(wanted[d], "any");
	return ggu_fail(b->err, GGU_ERR_FORMAT, t->entry, name, "has shape [%s], wanted [%s, %s]", is, wanted[0], wanted[1]);
}

/* Matrix NAME.weight of n_in columns and n_out rows (0: any) and its bias. */
static enum ggu_status matrix(const struct builder *b, const char *name, size_t n_in, size_t n_out, struct weight *w)
{
	const char *full = full_name(b, name, ".weight"), *bias = full_name(b, name, ".bias");
	const struct ggu_tensor *t;
	enum ggu_status s;
	uint64_t row;
	if (!full || !bias) return GGU_ERR_NOMEM;
	t = ggu_file_find(b->f, full);
	if (!t) return ggu_fail(b->err, GGU_ERR_MISSING, GGU_NO_OFFSET, full, "is missing");
	if (t->ne[2] != 1 || t->ne[3] != 1 || !t->ne[0] || !t->ne[1] || t->ne[0] > MAX_SIZE || t->ne[1] > MAX_SIZE || (n_in && t->ne[0] != n_in) || (n_out && t->ne[1] != n_out))
		return wrong_shape(b, t, full, n_in, n_out);
	if (!quant_can_multiply(t->type) || !ggu_type_bytes(t->type, t->ne[0], &row))
		return ggu_fail(b->err, GGU_ERR_UNSUPPORTED, t->entry, full, "is of type %s, which cannot be multiplied", ggu_type_info(t->type)->name);
	*w = (struct weight){ .name = full, .type = t->type, .n_in = t->ne[0], .n_out = t->ne[1], .row_bytes = row };
	s = ggu_map(b->f, t, &w->data, b->err);
	return s ? s : vector(b, bias, &w->n_out, &w->bias);
}

/* map[key]: a name, or a list of which the first that exists counts. optional: absent is no error. */
static enum ggu_status weight(const struct builder *b, const struct yaml_node *map, const char *key, bool optional, size_t n_in, size_t n_out, struct weight *w)
{
	const struct yaml_node *at = yaml_get(map, key);
	w->name = NULL;
	if (yaml_null(at)) return optional ? GGU_OK : fail(b, map, key, "is missing");
	for (size_t i = 0; at->kind == YAML_SEQUENCE && i < at->count; i++) {
		const char *full = at->items[i]->kind == YAML_SCALAR ? full_name(b, at->items[i]->text, ".weight") : "";
		if (!full) return GGU_ERR_NOMEM;
		if (i + 1 == at->count || ggu_file_find(b->f, full)) { at = at->items[i]; break; }
	}
	return at->kind == YAML_SCALAR ? matrix(b, at->text, n_in, n_out, w) : fail(b, at, key, "wants a tensor's name");
}

/* {rms: NAME, eps: EXPR} or {layer: NAME, eps: EXPR} of n values */
static enum ggu_status norm(struct builder *b, const struct yaml_node *at, size_t n, struct norm *o)
{
	const struct yaml_node *rms = yaml_get(at, "rms"), *name = rms ? rms : yaml_get(at, "layer");
	const char *w, *bias;
	double eps;
	enum ggu_status s;
	if (yaml_null(at)) return GGU_OK;
	if ((s = only(b, at, rms ? "rms eps" : "layer eps"))) return s;
	if (!name || name->kind != YAML_SCALAR) return fail(b, at, "norm", "wants {rms: NAME, eps: ...} or {layer: NAME, eps: ...}");
	o->kind = rms ? NORM_RMS : NORM_LAYER;
	o->n = n;
	if ((s = number(b, at, "eps", -1, 0, 1, &eps))) return s;
	o->eps = (float)eps;
	w = full_name(b, name->text, ".weight");
	bias = full_name(b, name->text, ".bias");
	if (!w || !bias) return GGU_ERR_NOMEM;
	if ((s = vector(b, w, &n, &o->w))) return s;
	if (!o->w) return ggu_fail(b->err, GGU_ERR_MISSING, GGU_NO_OFFSET, w, "is missing");
	return vector(b, bias, &n, &o->b);
}

/* ---- attention and feed-forward ---- */

/* Rope divisors: bounded, so that no angle is infinite or not a number. */
static enum ggu_status factors(const struct builder *b, const struct yaml_node *map, const char *key, size_t n, const float **v)
{
	const struct yaml_node *at = yaml_get(map, key);
	char full[256];
	enum ggu_status s;
	*v = NULL;
	if (yaml_null(at)) return GGU_OK;
	if (at->kind != YAML_SCALAR || snprintf(full, sizeof full, "%s.weight", at->text) >= (int)sizeof full) return fail(b, at, key, "wants a tensor's name");
	if ((s = vector(b, full, &n, v))) return s;
	for (size_t i = 0; *v && i < n; i++)
		if (!((*v)[i] >= MIN_DIVISOR && (*v)[i] <= 1/MIN_DIVISOR))
			return ggu_fail(b->err, GGU_ERR_RANGE, ggu_file_find(b->f, full)->entry, full, "factor %zu is %g, not in %g..%g", i, (double)(*v)[i], (double)MIN_DIVISOR, 1/(double)MIN_DIVISOR);
	return GGU_OK;
}

static bool same_factors(const float *a, const float *b, size_t n) { return a == b || (a && b && !memcmp(a, b, n*sizeof *a)); }

/* Layers share tables. */
static bool same_rope(const struct rope *a, const struct rope *b)
{
	return a->interleaved == b->interleaved && a->dims == b->dims && a->base == b->base && a->linear == b->linear && a->original == b->original
		&& a->magnitude == b->magnitude && a->yarn == b->yarn && a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow
		&& same_factors(a->divisor, b->divisor, a->dims/2) && same_factors(a->long_divisor, b->long_divisor, a->dims/2);
}

static enum ggu_status rope(struct builder *b, const struct yaml_node *at, size_t head_dim, int *index)
{
	const struct yaml_node *style = yaml_get(at, "style"), *yarn = yaml_get(at, "yarn");
	struct graph *g = b->g;
	struct rope r = { .interleaved = yaml_is(style, "interleaved") };
	enum ggu_status s;
	*index = -1;
	if (yaml_null(at)) return GGU_OK;
	if ((s = only(b, at, "style dims base linear original magnitude yarn divide divide_long")) || (s = only(b, yarn, "factor beta_fast beta_slow"))) return s;
	if (!r.interleaved && !yaml_is(style, "half")) return fail(b, at, "rope", "wants style: interleaved or half");
	if ((s = size(b, at, "dims", head_dim, 2, &r.dims)) || (s = number(b, at, "base", 10000, 1, 1e12, &r.base)) || (s = number(b, at, "linear", 1, 1e-6, 1e6, &r.linear))
		|| (s = size(b, at, "original", 0, 0, &r.original)) || (s = number(b, at, "magnitude", 0, 0, 1e3, &r.magnitude))
		|| (s = number(b, yarn, "factor", 0, 0, 1e6, &r.yarn)) || (s = number(b, yarn, "beta_fast", 32, 1e-3, 1e6, &r.beta_fast))
		|| (s = number(b, yarn, "beta_slow", 1, 1e-3, 1e6, &r.beta_slow))) return s;
	if (r.dims % 2 || r.dims > head_dim) return fail(b, at, "rope", "turns an odd number of dimensions, or more than a head has");
	if (r.yarn > 0 && !r.original) return fail(b, at, "rope", "yarn wants the original context length");
	if ((s = factors(b, at, "divide", r.dims/2, &r.divisor)) || (s = factors(b, at, "divide_long", r.dims/2, &r.long_divisor))) return s;
	*index = 0;
	while ((size_t)*index < g->n_ropes && !same_rope(g->rope + *index, &r)) ++*index;
	if (*index == GRAPH_MAX_ROPES) return fail(b, at, "rope", "too many kinds of rope");
	if ((size_t)*index == g->n_ropes) g->rope[g->n_ropes++] = r;
	return GGU_OK;
}

static enum ggu_status attention(struct builder *b, const struct yaml_node *at, struct attention *a)
{
	size_t e = b->g->n_embd, q, kv;
	double scale, softcap;
	enum ggu_status s;
	if ((s = only(b, at, "q k v qkv out q_norm k_norm heads kv_heads head_dim window scale softcap rope"))) return s;
	if ((s = size(b, at, "heads", 0, 1, &a->n_head)) || (s = size(b, at, "kv_heads", a->n_head, 1, &a->n_kv)) || (s = size(b, at, "head_dim", e/a->n_head, 1, &a->head_dim))
		|| (s = size(b, at, "window", 0, 0, &a->window))) return s;
	if (a->n_head % a->n_kv || a->n_head > MAX_SIZE/a->head_dim) return fail(b, at, "attention", "heads are no multiple of key-value heads, or too large");
	q = a->n_head*a->head_dim;
	kv = a->n_kv*a->head_dim;
	if (yaml_get(at, "qkv")) s = weight(b, at, "qkv", false, e, q + 2*kv, &a->qkv);
	else if (!(s = weight(b, at, "q", false, e, q, &a->q)) && !(s = weight(b, at, "k", false, e, kv, &a->k))) s = weight(b, at, "v", false, e, kv, &a->v);
	if (s || (s = weight(b, at, "out", false, q, e, &a->out)) || (s = norm(b, yaml_get(at, "q_norm"), a->head_dim, &a->q_norm))
		|| (s = norm(b, yaml_get(at, "k_norm"), a->head_dim, &a->k_norm)) || (s = rope(b, yaml_get(at, "rope"), a->head_dim, &a->rope))
		|| (s = number(b, at, "scale", 0, 0, 1e6, &scale)) || (s = number(b, at, "softcap", 0, 0, 1e6, &softcap))) return s;
	a->scale = scale > 0 ? (float)scale : (float)(1/__builtin_sqrt((double)a->head_dim));
	a->softcap = (float)softcap;
	a->cache = b->g->n_caches++;
	return GGU_OK;
}

static enum ggu_status ffn(const struct builder *b, const struct yaml_node *at, struct ffn *f)
{
	static const char *const names[] = { "silu", "gelu", "gelu_tanh" };
	const struct yaml_node *act = yaml_get(at, "act");
	size_t e = b->g->n_embd, n;
	enum ggu_status s;
	unsigned i = 0;
	if ((s = only(b, at, "gate up gate_up down act"))) return s;
	while (i < 3 && !yaml_is(act, names[i])) i++;
	if (i == 3) return fail(b, at, "act", "wants silu, gelu or gelu_tanh");
	f->act = (enum activation)i;
	if ((s = weight(b, at, "down", false, 0, e, &f->down))) return s;
	n = f->down.n_in;
	if (yaml_get(at, "gate_up")) return weight(b, at, "gate_up", false, e, 2*n, &f->gate_up);
	if ((s = weight(b, at, "up", false, e, n, &f->up))) return s;
	return weight(b, at, "gate", true, e, n, &f->gate);
}

static enum ggu_status step(struct builder *b, const struct yaml_node *at, struct step *st)
{
	const struct yaml_node *branches = yaml_get(at, "branches");
	size_t e = b->g->n_embd;
	double scale;
	enum ggu_status s;
	if ((s = only(b, at, "norm branches post_norm scale"))) return s;
	if (!branches || branches->kind != YAML_MAPPING || !branches->count) return fail(b, at, "branches", "wants branches by name");
	if ((s = norm(b, yaml_get(at, "norm"), e, &st->before)) || (s = norm(b, yaml_get(at, "post_norm"), e, &st->after)) || (s = number(b, at, "scale", 1, -1e6, 1e6, &scale))) return s;
	st->scale = (float)scale;
	st->n_branches = branches->count;
	st->branch = alloc(b, branches->count*sizeof *st->branch);
	if (!st->branch) return GGU_ERR_NOMEM;
	for (size_t i = 0; i < branches->count; i++) {
		const struct yaml_node *x = branches->items[i], *att = yaml_get(x, "attention"), *ff = yaml_get(x, "ffn");
		st->branch[i].is_ffn = !att;
		if ((s = only(b, x, "attention ffn"))) return s;
		if (!att == !ff) return fail(b, x, "branches", "wants attention or ffn");
		if ((s = att ? attention(b, att, &st->branch[i].u.attention) : ffn(b, ff, &st->branch[i].u.ffn))) return s;
	}
	return GGU_OK;
}

static enum ggu_status layers(struct builder *b, const struct yaml_node *root)
{
	const struct yaml_node *list = yaml_get(root, "layer");
	struct graph *g = b->g;
	enum ggu_status s;
	if (!list || list->kind != YAML_MAPPING || !list->count) return fail(b, root, "layer", "wants steps by name");
	if ((s = size(b, root, "layers", 0, 1, &g->n_layer))) return s;
	if (g->n_layer > ggu_file_n_tensors(b->f)) return ggu_fail(b->err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "block_count", "%zu layers, but %zu tensors", g->n_layer, ggu_file_n_tensors(b->f));
	g->layer = alloc(b, g->n_layer*sizeof *g->layer);
	if (!g->layer) return GGU_ERR_NOMEM;
	for (size_t i = 0; i < g->n_layer; i++) {
		b->layer = (int64_t)i;
		g->layer[i].n_steps = list->count;
		g->layer[i].step = alloc(b, list->count*sizeof *g->layer[i].step);
		if (!g->layer[i].step) return GGU_ERR_NOMEM;
		for (size_t k = 0; k < list->count; k++) if ((s = step(b, list->items[k], g->layer[i].step + k))) return s;
	}
	b->layer = -1;
	return GGU_OK;
}

/* KEY: [EXPRESSION, MESSAGE]: what the metadata may say of a model that the steps do right by. */
static enum ggu_status checks(struct builder *b, const struct yaml_node *list)
{
	if (!yaml_null(list) && list->kind != YAML_MAPPING) return fail(b, list, "check", "wants a mapping");
	for (size_t i = 0; !yaml_null(list) && i < list->count; i++) {
		const struct yaml_node *row = list->items[i];
		struct expr_value v;
		enum ggu_status s;
		if (row->kind != YAML_SEQUENCE || row->count != 2 || row->items[1]->kind != YAML_SCALAR) return fail(b, row, "check", "wants [expression, message]");
		if ((s = eval(b, row->items[0], &v))) return s;
		if (!expr_true(&v))
			return ggu_fail(b->err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, list->keys[i]->text, "%.100s (%s, line %u)", row->items[1]->text, row->file, row->line);
	}
	return GGU_OK;
}

enum ggu_status graph_build(struct graph *g, const struct arch *a, struct ggu_file *f, struct expr_arena *arena, struct ggu_error *err)
{
	struct builder b = { g, a, f, ggu_file_meta(f), arena, err, yaml_get(a->graph, "names"), -1, 0, 0, NULL };
	const struct yaml_node *in = yaml_get(a->graph, "input"), *out = yaml_get(a->graph, "output");
	char key[128];
	uint64_t ctx = 0;
	double scale, softcap;
	enum ggu_status s;
	*g = (struct graph){ 0 };
	if (!a->graph) return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, a->name, "%s does not say how to evaluate it", a->file);
	if ((s = sort_keys(&b))) return s;
	if ((s = only(&b, a->graph, "names check input layers layer output")) || (s = only(&b, in, "embed scale positions")) || (s = only(&b, out, "norm head softcap"))) return s;
	if ((s = checks(&b, yaml_get(a->graph, "check")))) return s;
	if ((s = weight(&b, in, "embed", false, 0, 0, &g->embed))) return s;
	g->n_embd = g->embed.n_in;
	g->n_vocab = g->embed.n_out;
	snprintf(key, sizeof key, "%s.context_length", a->name);
	if (ggu_meta_uint(b.meta, key, &ctx)) g->n_ctx_train = ctx;
	if ((s = number(&b, in, "scale", 1, -1e6, 1e6, &scale)) || (s = weight(&b, in, "positions", true, g->n_embd, 0, &g->positions)) || (s = layers(&b, a->graph))
		|| (s = norm(&b, yaml_get(out, "norm"), g->n_embd, &g->out_norm)) || (s = weight(&b, out, "head", false, g->n_embd, 0, &g->head))
		|| (s = number(&b, out, "softcap", 0, 0, 1e6, &softcap))) return s;
	g->embed_scale = (float)scale;
	g->head_softcap = (float)softcap;
	if (g->head.n_out != g->n_vocab) return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, g->head.name, "has %zu rows, the embedding %zu", g->head.n_out, g->n_vocab);
	return GGU_OK;
}
