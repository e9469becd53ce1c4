/* SPDX-License-Identifier: MIT
 * build.c - expressions of a description over one model's metadata, and mappings read by a table of fields.
 * build_tensor.c reads what names tensors. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "../../libgguf/try.h"
#include "../util/number.h"
#include "build_internal.h"

enum { MAX_LIST = 4096, MAX_DEPTH = 16, MAX_NAMES = 10000 };

enum ggu_status build_fail(const struct builder *b, const struct yaml_node *at, const char *where, const char *what)
{
	return ggu_fail(b->err, GGU_ERR_FORMAT, GGU_NO_OFFSET, where, "%s (%s, line %u, column %u)", what,
		at ? at->file : b->arch->file, at ? at->line : 0, at ? at->column : 0);
}
void *build_alloc(const struct builder *b, size_t n)
{
	void *p = expr_arena_alloc(b->arena, n + 1);
	if (!p) ggu_no_memory(b->err);
	return p;
}

/* Requires a mapping, or null, that has no other keys: a misspelt key would silently change the results. */
enum ggu_status build_only(const struct builder *b, const struct yaml_node *map, const struct field *fields,
	const char *words)
{
	char keys[1024];
	size_t n = (size_t)snprintf(keys, sizeof keys, "%s", words);
	const struct yaml_node *stray;
	if (yaml_null(map)) return GGU_OK;
	if (map->kind != YAML_MAPPING) return build_fail(b, map, "graph", "expected a mapping");
	for (; fields && fields->key && n < sizeof keys; fields++)
		n += (size_t)snprintf(keys + n, sizeof keys - n, " %s", fields->key);
	stray = yaml_stray(map, keys + strspn(keys, " "));
	return stray ? build_fail(b, stray, stray->text, "unknown key") : GGU_OK;
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
	enum ggu_status s;
	if (ggu_kv_type(kv) != GGU_ARRAY) {
		item_value(kv, 0, v);
		return GGU_OK;
	}
	if (n > MAX_LIST)
		return ggu_fail(b->err, GGU_ERR_RANGE, GGU_NO_OFFSET, ggu_kv_key(kv).p,
			"has %zu items, more than %d", n, MAX_LIST);
	s = expr_arena_items(b->arena, n, &list, b->err);
	if (s) return s;
	for (size_t i = 0; i < n; i++) item_value(kv, i, list + i);
	*v = (struct expr_value){ EXPR_LIST, { .list = { list, n } } };
	b->list.kv = kv;
	b->list.v = list;
	return GGU_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

enum ggu_status build_sort_keys(struct builder *b)
{
	size_t n = ggu_meta_count(b->meta);
	b->keys = build_alloc(b, n*sizeof *b->keys);
	if (!b->keys) return GGU_ERR_NOMEM;
	for (size_t i = 0; i < n; i++) b->keys[i] = ggu_kv_key(ggu_meta_at(b->meta, i)).p;
	qsort(b->keys, n, sizeof *b->keys, by_text);
	return GGU_OK;
}

/* Does any key begin with prefix and a dot? */
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

static enum ggu_status short_hand(struct builder *b, const struct yaml_node *at, const char *name, struct expr_value *v)
{
	enum ggu_status s;
	if (!b->depth) b->used = 0;
	if (b->depth == MAX_DEPTH) return build_fail(b, at, name, "names refer to each other");
	if (b->used++ == MAX_NAMES) return build_fail(b, at, name, "names are used too many times");
	b->depth++;
	s = build_eval(b, at, v);
	b->depth--;
	return s;
}

/* object: the dotted prefix so far, as text */
static enum ggu_status lookup(void *ctx, const void *object, const char *name, struct expr_value *v)
{
	struct builder *b = ctx;
	const struct yaml_node *named = object ? NULL : yaml_get(b->names, name);
	const struct ggu_kv *kv;
	char key[256];
	char *prefix;
	if (!object && !strcmp(name, "i") && b->layer >= 0) {
		*v = (struct expr_value){ EXPR_INT, { .i = b->layer } };
		return GGU_OK;
	}
	if (named) return short_hand(b, named, name, v);
	if (snprintf(key, sizeof key, "%s.%s%s%s", b->arch->name, object ? (const char *)object : "",
		object ? "." : "", name) >= (int)sizeof key)
		return GGU_OK;
	kv = ggu_meta_find(b->meta, key);
	if (kv) return key_value(b, kv, v);
	if (!has_keys_below(b, key)) return GGU_OK;
	prefix = build_alloc(b, strlen(key));
	if (!prefix) return GGU_ERR_NOMEM;
	strcpy(prefix, key + strlen(b->arch->name) + 1);
	*v = (struct expr_value){ EXPR_OBJECT, { .object = prefix } };
	return GGU_OK;
}

static enum ggu_status is_tensor(const struct builder *b, const struct expr_value *name, struct expr_value *v,
	struct ggu_error *err)
{
	if (name->kind != EXPR_STR) return ggu_fail(err, GGU_ERR_FORMAT, 0, "", "tensor: expected a name");
	*v = (struct expr_value){ EXPR_BOOL,
		{ .b = build_find(b, name->u.s.p, ".weight") || build_find(b, name->u.s.p, "") } };
	return GGU_OK;
}

/* A list of the metadata is named by its key. */
static enum ggu_status of_layer(const struct builder *b, const struct expr_value *args, size_t n_args,
	struct expr_value *v, struct ggu_error *err)
{
	const size_t n = args->kind == EXPR_LIST ? args->u.list.n : 0;
	if (n && n_args == 1 && args->u.list.v == b->list.v && b->layer >= 0 && n != b->g->n_layer)
		return ggu_fail(err, GGU_ERR_FORMAT, 0, ggu_kv_key(b->list.kv).p,
			"has %zu value%s, but the number of layers is %zu", n, text_s(n), b->g->n_layer);
	return expr_layer(args, n_args, b->layer, b->g->n_layer, v, err);
}

/* tensor('NAME') and layer(VALUE) */
static enum ggu_status call(void *ctx, const char *name, const struct expr_value *args, size_t n_args,
	struct expr_arena *a, struct expr_value *v, bool *known, struct ggu_error *err)
{
	const struct builder *b = ctx;
	const bool layer = !strcmp(name, "layer");
	(void)a;
	*known = layer || !strcmp(name, "tensor");
	if (layer) return of_layer(b, args, n_args, v, err);
	if (!*known) return GGU_OK;
	if (n_args != 1) return ggu_fail(err, GGU_ERR_FORMAT, 0, "", "tensor expects one argument");
	return is_tensor(b, args, v, err);
}

/* Says where an error in an expression is: err has its place in the text, unless it is inside a name, which has one. */
static enum ggu_status placed(const struct builder *b, const struct yaml_node *at, enum ggu_status s)
{
	if (s && b->err && b->err->offset != GGU_NO_OFFSET) {
		size_t n = strlen(b->err->what);
		snprintf(b->err->what + n, sizeof b->err->what - n, " (%s, line %u, column %u)", at->file, at->line,
			at->column + !at->plain + (unsigned)b->err->offset);
		b->err->offset = GGU_NO_OFFSET;
	}
	return s;
}

enum ggu_status build_eval(struct builder *b, const struct yaml_node *at, struct expr_value *v)
{
	struct expr_scope scope = { b, lookup, call };
	v->kind = EXPR_NULL;
	if (yaml_null(at)) return GGU_OK;
	if (at->kind != YAML_SCALAR) return build_fail(b, at, "graph", "expected an expression");
	return placed(b, at, expr_text(at->text, &scope, b->arena, v, b->err));
}

/* Of a name, maybe of a member, that s begins with. */
static size_t name_bytes(const char *s)
{
	size_t n = 0;
	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.') n++;
	return n;
}

const char *build_key(const struct builder *b, const struct yaml_node *map, const char *key, char to[BUILD_KEY])
{
	static const char call[] = "layer(";
	const struct yaml_node *at = yaml_get(map, key);
	for (int depth = 0; depth < MAX_DEPTH && at && at->kind == YAML_SCALAR && at->plain; depth++) {
		const bool layer = text_starts(at->text, call);
		const char *name = at->text + (layer ? strlen(call) : 0);
		const size_t n = name_bytes(name);
		if (!n || strcmp(name + n, layer ? ")" : "") != 0 || n >= BUILD_KEY) break;
		snprintf(to, BUILD_KEY, "%.*s", (int)n, name);
		at = yaml_get(b->names, to);
		if (!at && snprintf(to, BUILD_KEY, "%s.%.*s", b->arch->name, (int)n, name) < BUILD_KEY) return to;
	}
	return key;
}

static enum ggu_status parse(const struct builder *b, const struct yaml_node *at)
{
	struct expr *e;
	if (yaml_null(at)) return GGU_OK;
	if (at->kind != YAML_SCALAR) return build_fail(b, at, "graph", "expected an expression");
	TRY(placed(b, at, expr_parse(&e, at->text, b->err)));
	expr_free(e);
	return GGU_OK;
}

enum ggu_status build_number(struct builder *b, const struct yaml_node *map, const char *key, double none, double lo,
	double hi, double *x)
{
	const struct yaml_node *at = yaml_get(map, key);
	struct expr_value v;
	char named[BUILD_KEY];
	enum ggu_status s = build_eval(b, at, &v);
	if (s) return s;
	if (!at && !(none >= lo && none <= hi)) return build_fail(b, map, key, "is missing");
	if (v.kind == EXPR_NULL && !(none >= lo && none <= hi))
		return ggu_fail(b->err, GGU_ERR_MISSING, GGU_NO_OFFSET, build_key(b, map, key, named),
			"the metadata have no value (%s, line %u, column %u: %.60s)", at->file, at->line, at->column,
			at->text);
	if (v.kind == EXPR_NULL) *x = none;
	else if (v.kind == EXPR_INT) *x = (double)v.u.i;
	else if (v.kind == EXPR_FLOAT) *x = v.u.f;
	else return build_fail(b, at, key, "expected a number");
	if (!(*x >= lo && *x <= hi)) {
		char is[NUMBER_TEXT], least[NUMBER_TEXT], most[NUMBER_TEXT];
		return ggu_fail(b->err, GGU_ERR_RANGE, GGU_NO_OFFSET, key,
			"%s is not between %s and %s (%s, line %u, column %u: %.60s)",
			number_text(is, *x, *x == (double)(float)*x), number_text(least, lo, false),
			number_text(most, hi, false), at->file, at->line, at->column, at->text);
	}
	return GGU_OK;
}

enum ggu_status build_when(struct builder *b, const struct yaml_node *map, bool *yes)
{
	const struct yaml_node *at = yaml_get(map, "when");
	struct expr_value v;
	enum ggu_status s = build_eval(b, at, &v);
	*yes = yaml_null(at) || expr_true(&v);
	return s;
}

/* ---- fields ---- */

/* The position of the word in the list, or -1. */
static int which(const char *const *words, const char *p, size_t n)
{
	for (int i = 0; words[i]; i++) if (strlen(words[i]) == n && !memcmp(words[i], p, n)) return i;
	return -1;
}
static int word_of(const struct field *f, const struct yaml_node *at)
{
	return at && at->kind == YAML_SCALAR ? which(f->words, at->text, strlen(at->text)) : -1;
}

static enum ggu_status value(const struct builder *b, const struct yaml_node *at, const struct field *f)
{
	switch (f->kind) {
	case FIELD_SIZE: case FIELD_NUMBER: case FIELD_FLAG: return parse(b, at);
	case FIELD_WORD: return word_of(f, at) < 0 ? parse(b, at) : GGU_OK;
	case FIELD_NORM: return build_keys(b, at, build_norm_fields, "");
	case FIELD_ROPE: return build_keys(b, at, build_rope_fields, "");
	case FIELD_MAP: return build_keys(b, at, f->sub, "when");
	case FIELD_OWN: return f->sub && at && at->kind == YAML_MAPPING ? build_keys(b, at, f->sub, "when") : GGU_OK;
	default: return GGU_OK;
	}
}
enum ggu_status build_values(const struct builder *b, const struct yaml_node *map, const struct field *fields)
{
	enum ggu_status s = parse(b, yaml_get(map, "when"));
	for (; fields->key && !s; fields++) s = value(b, yaml_get(map, fields->key), fields);
	return s;
}
enum ggu_status build_keys(const struct builder *b, const struct yaml_node *map, const struct field *fields,
	const char *words)
{
	enum ggu_status s = build_only(b, map, fields, words);
	return s ? s : build_values(b, map, fields);
}
enum ggu_status build_list(const struct builder *b, const char *key)
{
	const struct yaml_node *list = yaml_get(b->arch->graph, key);
	if (yaml_null(list)) return GGU_OK;
	if (list->kind != YAML_MAPPING) return build_fail(b, list, key, "expected a mapping");
	for (size_t i = 0; i < list->count; i++) TRY(parse(b, list->items[i]));
	return GGU_OK;
}

enum ggu_status build_names(const struct builder *b)
{
	TRY(build_list(b, "names"));
	for (size_t i = 0; b->names && i < b->names->count; i++) {
		const struct yaml_node *name = b->names->keys[i];
		if (strcmp(name->file, b->arch->file) == 0 && !yaml_mentions(b->arch->graph, name->text))
			return build_fail(b, name, name->text, "no expression reads it");
	}
	return GGU_OK;
}

/* A word, or an expression that gives one. */
static enum ggu_status word(struct builder *b, const struct yaml_node *at, const struct yaml_node *map,
	const struct field *f, int *index)
{
	char wanted[120] = "expected ";
	size_t n = strlen(wanted);
	struct expr_value v;
	*index = 0;
	if (yaml_null(at) && !(f->flags & FIELD_NEEDED)) return GGU_OK;
	*index = word_of(f, at);
	if (*index >= 0) return GGU_OK;
	TRY(build_eval(b, at, &v));
	if (v.kind == EXPR_STR) *index = which(f->words, v.u.s.p, v.u.s.n);
	if (*index >= 0) return GGU_OK;
	for (int i = 0; f->words[i]; i++)
		n += (size_t)snprintf(wanted + n, n < sizeof wanted ? sizeof wanted - n : 0, "%s%s", !i ? ""
			: f->words[i + 1] ? ", " : " or ", f->words[i]);
	return build_fail(b, at ? at : map, f->key, wanted);
}

static enum ggu_status number(struct builder *b, const struct yaml_node *map, const struct field *f, void *to)
{
	double x = f->none;
	struct expr_value v = { EXPR_BOOL };
	enum ggu_status s = f->flags & FIELD_MAY_LACK ? build_eval(b, yaml_get(map, f->key), &v) : GGU_OK;
	if (!s && v.kind != EXPR_NULL) s = build_number(b, map, f->key, f->none, f->lo, f->hi, &x);
	if (s) return s;
	if (f->kind == FIELD_NUMBER) {
		*(double *)to = x;
		return GGU_OK;
	}
	if (x != __builtin_floor(x)) return build_fail(b, yaml_get(map, f->key), f->key, "expected a whole number");
	*(size_t *)to = (size_t)x;
	return GGU_OK;
}

/* A mapping whose `when` is false does not exist. */
static enum ggu_status map_field(struct builder *b, const struct yaml_node *at, const struct field *f, void *to)
{
	bool yes;
	if (yaml_null(at)) return GGU_OK;
	TRY(build_when(b, at, &yes));
	return yes ? build_fields(b, at, f->sub, to) : GGU_OK;
}

static enum ggu_status one_field(struct builder *b, const struct yaml_node *map, const struct field *f, void *base)
{
	const struct yaml_node *at = yaml_get(map, f->key);
	void *to = (char *)base + f->at;
	struct expr_value v;
	switch (f->kind) {
	case FIELD_SIZE: case FIELD_NUMBER: return number(b, map, f, to);
	case FIELD_FLAG:
		TRY(build_eval(b, at, &v));
		*(bool *)to = v.kind == EXPR_NULL ? f->none != 0 : expr_true(&v);
		return GGU_OK;
	case FIELD_WORD: return word(b, at, map, f, to);
	case FIELD_NORM: return build_norm(b, at, to);
	case FIELD_ROPE: return build_rope(b, at, to);
	case FIELD_MAP: return map_field(b, at, f, to);
	case FIELD_OWN: return GGU_OK;
	default: return build_named(b, map, f, to);
	}
}

enum ggu_status build_fields(struct builder *b, const struct yaml_node *map, const struct field *fields, void *to)
{
	enum ggu_status s = GGU_OK;
	for (; fields->key && !s; fields++) s = one_field(b, map, fields, to);
	return s;
}
