/* SPDX-License-Identifier: MIT
 * plan.c - applies the `tensors` part of an architecture to a checkpoint; see plan.h. Each entry is expanded over
 * layers and experts, its sources become views, and every element that a view takes is counted, so that what is left
 * over is noticed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/f32.h"
#include "../libgguf/grow.h"
#include "../libgguf/text.h"
#include "../libgguf/try.h"
#include "../model/util/file.h"
#include "copies.h"
#include "plan.h"

enum { MAX_NAME = 256, MAX_ARGS = 10 };

struct builder {
	struct plan *p;
	struct config *c;
	const struct yaml_node *conv, *strip;
	uint64_t *used;                 /* [checkpoint_count]: elements that were used */
	int64_t n_layers, n_experts;
	struct ggu_error *err;
};

/* `pattern` with {i} and {x} replaced and a final ".*" by `suffix`. */
static bool expand(const struct config *c, const char *pattern, const char *suffix, char *to)
{
	size_t n = 0;
	for (const char *p = pattern; *p; p++) {
		int k = -1;
		if (text_starts(p, "{i}")) k = snprintf(to + n, MAX_NAME - n, "%lld", (long long)c->i);
		else if (text_starts(p, "{x}")) k = snprintf(to + n, MAX_NAME - n, "%lld", (long long)c->x);
		else if (suffix && !strcmp(p, ".*")) k = snprintf(to + n, MAX_NAME - n, "%s", suffix);
		if (k >= 0) {
			n += (size_t)k;
			p += *p == '{' ? 2 : 1;
		} else to[n++] = *p;
		if (n >= MAX_NAME - 1) return false;
	}
	to[n] = 0;
	return true;
}

/* ---- transforms ---- */

/* "name(expr, expr)" applied to v. */
static enum ggu_status transform(struct builder *b, const struct yaml_node *at, struct view *v)
{
	char text[MAX_NAME];
	double arg[MAX_ARGS];
	size_t n = 0;
	char *open, *p;
	const char *wrong;
	if (at->kind != YAML_SCALAR || at->n >= sizeof text)
		return config_fail(b->c, at, b->err, "expected a transform");
	memcpy(text, at->text, at->n + 1);
	open = strchr(text, '(');
	if (open) {
		int depth = 0;
		*open = 0;
		for (p = open + 1; *p && !(*p == ')' && !depth); n++) {
			char *start = p, end;
			struct expr_value x;
			if (n == MAX_ARGS) return config_fail(b->c, at, b->err, "more than %d arguments", MAX_ARGS);
			for (; *p && (depth || (*p != ',' && *p != ')')); p++)
				depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
			end = *p;
			*p = 0;
			TRY(config_eval_text(b->c, at, start, &x, b->err));
			if (x.kind != EXPR_INT && x.kind != EXPR_FLOAT)
				return config_fail(b->c, at, b->err, "%.60s is not a number", start);
			arg[n] = x.kind == EXPR_INT ? (double)x.u.i : x.u.f;
			*p = end;
			if (end == ',') p++;
		}
		if (*p != ')' || p[1]) return config_fail(b->c, at, b->err, "expected name(arguments)");
	}
	wrong = view_apply(v, text, arg, n);
	if (wrong)
		return file_fail(b->err, GGU_ERR_UNSUPPORTED, at->file, GGU_NO_OFFSET, v->t->name,
			"line %u, column %u: %.40s: %s", at->line, at->column, text, wrong);
	return GGU_OK;
}

static enum ggu_status transforms(struct builder *b, const struct yaml_node *t, struct view *v)
{
	enum ggu_status s = GGU_OK;
	if (!t) return GGU_OK;
	if (t->kind == YAML_SCALAR) return transform(b, t, v);
	if (t->kind != YAML_SEQUENCE) return config_fail(b->c, t, b->err, "expected a transform or a list");
	for (size_t k = 0; !s && k < t->count; k++) s = transform(b, t->items[k], v);
	return s;
}

/* ---- parts ---- */

/* A GGUF tensor whose parts are gathered. */
struct gathering {
	struct plan_tensor o;
	const char *suffix;             /* of expand */
	bool missing;                   /* the checkpoint lacks a part */
	bool stacked;                   /* parts get an axis of their own */
};
static enum ggu_status add_part(struct builder *b, struct gathering *g, const struct yaml_node *from,
	const struct yaml_node *tr)
{
	struct plan_tensor *o = &g->o;
	char name[MAX_NAME];
	struct view v, *grown;
	const struct source_tensor *t;
	if (from->kind != YAML_SCALAR || !expand(b->c, from->text, g->suffix, name))
		return config_fail(b->c, from, b->err, "expected the name of a checkpoint tensor");
	t = copies_find(b->c, b->p->source, name);
	if (!t) {
		g->missing = true;
		return file_fail(b->err, GGU_ERR_MISSING, "", GGU_NO_OFFSET, name,
			"not in the checkpoint, but %.60s needs it", o->name);
	}
	if (t->dtype->type == SOURCE_NO_TYPE && !o->packed)
		return file_fail(b->err, GGU_ERR_UNSUPPORTED, "", GGU_NO_OFFSET, t->name,
			"stored as %s; weights must be F64, F32, F16 or BF16", t->dtype->name);
	view_of(&v, t);
	TRY(transforms(b, tr, &v));
	grown = ggu_grow(o->part, o->n_parts, sizeof *grown);
	if (!grown) return ggu_no_memory(b->err);
	o->part = grown;
	grown[o->n_parts++] = v;
	return GGU_OK;
}

/* One source, or one for each expert, or whatever is stacked, if it has {x}. e: the entry that names it. */
static enum ggu_status add_parts(struct builder *b, struct gathering *g, const struct yaml_node *e,
	const struct yaml_node *from, const struct yaml_node *tr)
{
	enum ggu_status s;
	int64_t n;
	if (!from) return config_fail(b->c, e, b->err, "expected from or make");
	if (from->kind != YAML_SCALAR || !strstr(from->text, "{x}")) return add_part(b, g, from, tr);
	g->stacked = true;
	s = config_count(b->c, e, "stack", b->n_experts, CONFIG_MAX_EXPERTS, &n, b->err);
	for (b->c->x = 0; !s && b->c->x < n; b->c->x++) s = add_part(b, g, from, tr);
	b->c->x = -1;
	return s;
}

static enum ggu_status refuse_zero(const struct builder *b, const struct plan_tensor *o)
{
	for (unsigned k = 0; k < o->n_dims; k++)
		if (!o->ne[k])
			return file_fail(b->err, GGU_ERR_FORMAT, "", GGU_NO_OFFSET, o->part->t->name,
				"a dimension is 0");
	return GGU_OK;
}

/* Shape and element type of the parts together. */
static enum ggu_status finish(struct builder *b, const struct yaml_node *at, struct plan_tensor *o, bool stacked)
{
	const struct view *f = o->part;
	uint64_t slowest = 0, dim[VIEW_MAX_DIMS + 1];
	unsigned n = 0;
	bool change = false;
	if (!o->n_parts) return config_fail(b->c, at, b->err, "%.60s has no parts", o->name);
	if (stacked) dim[n++] = o->n_parts;
	for (unsigned k = 0; k < f->n_shape; k++) dim[n++] = f->shape[k];
	for (size_t i = 0; i < o->n_parts; i++) {
		struct view *v = o->part + i;
		if (v->n_shape != f->n_shape ||
			(v->n_shape > 1 && memcmp(v->shape + 1, f->shape + 1, (v->n_shape - 1)*sizeof *v->shape)) ||
			(stacked && v->n_shape && v->shape[0] != f->shape[0]))
			return file_fail(b->err, GGU_ERR_FORMAT, "", GGU_NO_OFFSET, v->t->name,
				"does not have the shape of %.80s", f->t->name);
		if (__builtin_add_overflow(slowest, v->n_shape ? v->shape[0] : 1, &slowest))
			return file_fail(b->err, GGU_ERR_RANGE, "", GGU_NO_OFFSET, v->t->name,
				"%.80s would be too large", o->name);
		change |= v->n_ops > 0 || v->t->dtype != f->t->dtype;
		view_coalesce(v);
	}
	if (!stacked && o->n_parts > 1) dim[0] = slowest;
	if (!n || n > 4)
		return file_fail(b->err, GGU_ERR_UNSUPPORTED, "", GGU_NO_OFFSET, f->t->name,
			"%u dimensions; GGUF has 1 to 4", n);
	o->n_dims = n;
	for (unsigned k = 0; k < 4; k++) o->ne[k] = k < n ? dim[n - 1 - k] : 1;
	o->from = change ? GGU_TYPE_F32 : (uint32_t)f->t->dtype->type;
	return refuse_zero(b, o);
}

/* Is there a scale for each of the blocks, which are the codes' last dimension? Dimensions of 1 do not count. */
static bool scale_each(const struct view *codes, const struct view *scales)
{
	unsigned k = 0;
	for (unsigned i = 0; i + 1 < codes->n_shape; i++) {
		if (codes->shape[i] == 1) continue;
		while (k < scales->n_shape && scales->shape[k] == 1) k++;
		if (k == scales->n_shape || scales->shape[k++] != codes->shape[i]) return false;
	}
	while (k < scales->n_shape && scales->shape[k] == 1) k++;
	return k == scales->n_shape;
}
/* MXFP4 as it is published: [..][n/32][16] bytes of codes, and [..][n/32] bytes of scales */
static enum ggu_status finish_packed(struct builder *b, const struct yaml_node *at, struct plan_tensor *o)
{
	struct view *codes = o->part, *scales = o->part + 1;
	unsigned n = codes->n_shape;
	if (o->n_parts != 2 || n < 2 || n > 5 || codes->shape[n - 1] != 16 || !scale_each(codes, scales))
		return file_fail(b->err, GGU_ERR_FORMAT, "", GGU_NO_OFFSET, codes->t->name,
			"expected blocks of 16 bytes, with a scale each");
	for (int k = 0; k < 2; k++) {
		view_coalesce(o->part + k);
		if (strcmp(o->part[k].t->dtype->name, "U8") || o->part[k].n_ops)
			return file_fail(b->err, GGU_ERR_UNSUPPORTED, "", GGU_NO_OFFSET, o->part[k].t->name,
				"expected bytes, without a transform");
		if (view_crosswise(o->part + k))
			return config_fail(b->c, at, b->err, "%.60s: a transform must not move blocks between rows",
				o->name);
	}
	o->n_dims = n - 1;
	for (unsigned k = 0; k < 4; k++) o->ne[k] = k < n - 1 ? codes->shape[n - 2 - k] : 1;
	o->ne[0] *= 32;
	o->from = GGU_TYPE_MXFP4;
	return refuse_zero(b, o);
}

static enum ggu_status make(struct builder *b, const struct yaml_node *e, struct plan_tensor *o)
{
	struct expr_value v;
	double d;
	enum ggu_status s = config_eval(b->c, e, &v, b->err);
	if (s) return s;
	if (v.kind != EXPR_LIST || !v.u.list.n)
		return config_fail(b->c, e, b->err, "%.60s: expected a list of numbers", o->name);
	o->values = calloc(v.u.list.n, sizeof *o->values);
	if (!o->values) return ggu_no_memory(b->err);
	for (size_t k = 0; k < v.u.list.n; k++) {
		const struct expr_value *x = v.u.list.v + k;
		if (x->kind != EXPR_INT && x->kind != EXPR_FLOAT)
			return config_fail(b->c, e, b->err, "%.60s: item %zu is not a number", o->name, k);
		d = x->kind == EXPR_INT ? (double)x->u.i : x->u.f;
		o->values[k] = (float)d;
		if (f32_overflows(d))
			return config_fail(b->c, e, b->err, "%.60s: item %zu is beyond the range of f32", o->name, k);
	}
	o->n_dims = 1;
	o->ne[0] = v.u.list.n;
	o->ne[1] = o->ne[2] = o->ne[3] = 1;
	o->from = GGU_TYPE_F32;
	return GGU_OK;
}

/* ---- entries ---- */

static void tensor_free(struct plan_tensor *o)
{
	free(o->name);
	free(o->part);
	free(o->values);
	*o = (struct plan_tensor){ 0 };
}

static enum ggu_status gather(struct builder *b, const struct yaml_node *e, struct gathering *g)
{
	const struct yaml_node *from = e->kind == YAML_MAPPING ? yaml_get(e, "from") : e;
	const struct yaml_node *tr = yaml_get(e, "transform");
	enum ggu_status s = GGU_OK;
	if (yaml_get(e, "make")) return make(b, yaml_get(e, "make"), &g->o);
	if (yaml_get(e, "pack")) {
		g->o.packed = true;
		s = add_part(b, g, from, tr);
		if (!s) s = add_part(b, g, yaml_get(e, "scales"), tr);
		return s ? s : finish_packed(b, e, &g->o);
	}
	if (from && from->kind == YAML_SEQUENCE) {
		for (size_t k = 0; !s && k < from->count; k++) {
			const struct yaml_node *p = from->items[k];
			bool sub = p->kind == YAML_MAPPING;
			s = add_parts(b, g, p, sub ? yaml_get(p, "from") : p, sub ? yaml_get(p, "transform") : tr);
		}
	} else s = add_parts(b, g, e, from, tr);
	return s ? s : finish(b, e, &g->o, g->stacked);
}

/* One GGUF tensor of an entry; may_lack: it is no error if the checkpoint does not have the source. */
static enum ggu_status add_tensor(struct builder *b, const struct yaml_node *key, const struct yaml_node *e,
	const char *suffix, bool may_lack)
{
	char name[MAX_NAME];
	const struct yaml_node *type = yaml_get(e, "type");
	struct gathering g = { .o.type = -1, .suffix = suffix };
	struct plan_tensor *o = &g.o, *v;
	enum ggu_status s;
	if (!expand(b->c, key->text, suffix, name)) return config_fail(b->c, key, b->err, "name too long");
	if (type) {
		const struct ggu_type_info *ti = ggu_type_find(type->text ? type->text : "");
		if (!ti) return config_fail(b->c, type, b->err, "no such type");
		o->type = (int)ti->id;
	}
	if (!(o->name = strdup(name))) return ggu_no_memory(b->err);
	s = gather(b, e, &g);
	v = s ? NULL : ggu_grow(b->p->v, b->p->n, sizeof *v);
	if (v) {
		b->p->v = v;
		v[b->p->n++] = *o;
		for (size_t k = 0; k < o->n_parts; k++)
			b->used[o->part[k].t - checkpoint_at(b->p->source, 0)] += view_count(o->part + k);
		return GGU_OK;
	}
	tensor_free(o);
	if (!s) return ggu_no_memory(b->err);
	return g.missing && may_lack ? GGU_OK : s;
}

static bool ends_star(const char *s)
{
	size_t n = strlen(s);
	return n > 2 && !strcmp(s + n - 2, ".*");
}

static enum ggu_status add_entry(struct builder *b, const struct yaml_node *key, const struct yaml_node *e);

static enum ggu_status add_alternative(struct builder *b, const struct yaml_node *key, const struct yaml_node *list)
{
	size_t n = b->p->n;
	for (size_t k = 0; k < list->count && b->p->n == n; k++) {
		const struct yaml_node *e = list->items[k];
		bool yes, optional;
		TRY(config_true(b->c, yaml_get(e, "when"), true, &yes, b->err));
		if (!yes) continue;
		TRY(add_entry(b, key, e));
		TRY(config_true(b->c, yaml_get(e, "optional"), false, &optional, b->err));
		if (!optional) break;
	}
	return GGU_OK;
}

static enum ggu_status add_entry(struct builder *b, const struct yaml_node *key, const struct yaml_node *e)
{
	const struct yaml_node *bias = yaml_get(e, "bias");
	bool when, optional, must = false;
	size_t n;
	enum ggu_status s;
	if (e->kind == YAML_SEQUENCE) return add_alternative(b, key, e);
	s = config_true(b->c, yaml_get(e, "when"), true, &when, b->err);
	if (!s) s = config_true(b->c, yaml_get(e, "optional"), false, &optional, b->err);
	if (!s) s = config_true(b->c, bias, false, &must, b->err);
	if (s || !when) return s;
	if (!ends_star(key->text)) return add_tensor(b, key, e, NULL, optional);
	s = add_tensor(b, key, e, ".weight", optional);
	n = b->p->n;
	if (!s) s = add_tensor(b, key, e, ".bias", !must);
	if (!s && bias && !must && n < b->p->n && !b->p->n_denied++) b->p->denied = b->p->v[n].part[0].t->name;
	return s;
}

static bool per_layer(const struct yaml_node *key) { return strstr(key->text, "{i}") != NULL; }

/* Entries of layers are processed layer by layer, at the place of the first of them. */
static enum ggu_status add_entries(struct builder *b)
{
	const struct yaml_node *m = yaml_get(b->conv, "tensors");
	enum ggu_status s = GGU_OK;
	bool layers = false;
	if (!m) return config_fail(b->c, b->conv, b->err, "no tensors");
	for (size_t k = 0; !s && k < m->count; k++) {
		if (!per_layer(m->keys[k])) s = add_entry(b, m->keys[k], m->items[k]);
		if (!per_layer(m->keys[k]) || layers) continue;
		layers = true;
		for (b->c->i = 0; !s && b->c->i < b->n_layers; b->c->i++)
			for (size_t j = k; !s && j < m->count; j++)
				if (per_layer(m->keys[j])) s = add_entry(b, m->keys[j], m->items[j]);
		b->c->i = -1;
	}
	return s;
}

/* ---- what is left over ---- */

/* `pattern` with the number of layers for {n}. */
static bool expand_count(const struct builder *b, const char *pattern, char *to)
{
	const char *n = strstr(pattern, "{n}");
	int k = n ? snprintf(to, MAX_NAME, "%.*s%lld%s", (int)(n - pattern), pattern, (long long)b->n_layers, n + 3) :
		snprintf(to, MAX_NAME, "%s", pattern);
	return k < MAX_NAME;
}

static enum ggu_status dropped(struct builder *b, const char *name, bool *yes)
{
	const struct yaml_node *d = yaml_get(b->conv, "drop");
	char plain[2*MAX_NAME];
	enum ggu_status s = GGU_OK;
	*yes = false;
	for (size_t k = 0; b->strip && k < b->strip->count; k++) {
		const struct yaml_node *has = b->strip->keys[k];
		if (!has->n || strncmp(name, has->text, has->n)) continue;
		snprintf(plain, sizeof plain, "%s%s", b->strip->items[k]->text, name + has->n);
		name = plain;
		break;
	}
	for (size_t k = 0; d && k < d->count && !*yes && !s; k++) {
		char pattern[MAX_NAME];
		if (!expand_count(b, d->keys[k]->text, pattern))
			return config_fail(b->c, d->keys[k], b->err, "pattern too long");
		if (config_matches(pattern, name)) s = config_true(b->c, d->items[k], true, yes, b->err);
	}
	return s || *yes ? s : copies_has(b->c, name, yes, b->err);
}

static enum ggu_status check_rest(struct builder *b)
{
	for (size_t k = 0; k < checkpoint_count(b->p->source); k++) {
		const struct source_tensor *t = checkpoint_at(b->p->source, k);
		bool yes = b->used[k] >= t->n_weights;
		enum ggu_status s = yes ? GGU_OK : dropped(b, t->name, &yes);
		if (s) return s;
		if (!yes && b->used[k])
			return file_fail(b->err, GGU_ERR_FORMAT, "", GGU_NO_OFFSET, t->name,
				"is too large: only %llu of its %llu elements are used",
				(unsigned long long)b->used[k], (unsigned long long)t->n_weights);
		if (!yes)
			return file_fail(b->err, GGU_ERR_UNSUPPORTED, "", GGU_NO_OFFSET, t->name,
				"unknown tensor: architecture %s has no place for it", b->c->arch->name);
	}
	return GGU_OK;
}

enum ggu_status plan_new(struct plan *p, struct config *c, const struct checkpoint *source, struct ggu_error *err)
{
	struct builder b = { .p = p, .c = c, .conv = c->arch->convert, .err = err };
	enum ggu_status s;
	*p = (struct plan){ .source = source };
	b.strip = yaml_get(b.conv, "strip");
	b.used = calloc(checkpoint_count(source) + 1, sizeof *b.used);
	if (!b.used) return ggu_no_memory(err);
	s = config_layers(c, -1, &b.n_layers, err);
	if (!s) s = config_count(c, b.conv, "experts", 0, CONFIG_MAX_EXPERTS, &b.n_experts, err);
	if (!s) s = add_entries(&b);
	if (!s) s = check_rest(&b);
	free(b.used);
	if (s) plan_free(p);
	return s;
}

void plan_free(struct plan *p)
{
	for (size_t k = 0; k < p->n; k++) tensor_free(p->v + k);
	free(p->v);
	free(p->strip);
	free(p->work);
	free(p->raw);
	plan_codes_let_go(p->codes);
	*p = (struct plan){ 0 };
}
