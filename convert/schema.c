/* SPDX-License-Identifier: MIT
 * schema.c - a walk over the `convert` part of a description; see schema.h. Each key has a function that checks its
 * value and parses the expressions in it, without evaluating them. */
#include <stdlib.h>
#include <string.h>
#include "schema.h"

struct walk { const struct config *c; struct ggu_error *err; };
typedef enum ggu_status check_fn(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at);

static enum ggu_status only(const struct walk *w, const struct yaml_node *map, const char *keys)
{
	const struct yaml_node *stray = yaml_stray(map, keys);
	return stray ? config_fail(w->c, stray, w->err, "%.60s: unknown key", stray->text) : GGU_OK;
}

static enum ggu_status expression(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at)
{
	struct ggu_error inner = { 0 };
	struct yaml_node place;
	struct expr *e;
	(void)key;
	if (!at) return GGU_OK;
	if (at->kind != YAML_SCALAR) return config_fail(w->c, at, w->err, "expected an expression");
	if (expr_parse(&e, at->text, &inner) == GGU_OK) {
		expr_free(e);
		return GGU_OK;
	}
	place = *at;
	if (inner.offset != GGU_NO_OFFSET) place.column += !at->plain + (unsigned)inner.offset;
	return config_fail(w->c, &place, w->err, "%s: %.60s", inner.what, at->text);
}

static enum ggu_status text(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at)
{
	(void)key;
	return at->kind == YAML_SCALAR ? GGU_OK : config_fail(w->c, at, w->err, "expected a text");
}

static enum ggu_status rule(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at)
{
	if (at->kind != YAML_SEQUENCE || at->count != 2 || at->items[1]->kind != YAML_SCALAR)
		return config_fail(w->c, at, w->err, "expected [expression, message]");
	return expression(w, key, at->items[0]);
}

static enum ggu_status entry(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at)
{
	const struct yaml_node *type = at->kind == YAML_SEQUENCE && at->count == 2 ? at->items[0] :
		yaml_get(at, "type");
	static const char *const forms[] = { "value", "list", "each" };
	size_t n = 0;
	enum ggu_status s;
	if (!type || type->kind != YAML_SCALAR) return config_fail(w->c, at, w->err, "expected [type, value]");
	if (at->kind == YAML_SEQUENCE) return expression(w, key, at->items[1]);
	s = only(w, at, "type value list each when");
	for (size_t k = 0; k < 3 && !s; k++) {
		n += yaml_get(at, forms[k]) != NULL;
		s = expression(w, key, yaml_get(at, forms[k]));
	}
	if (!s && n != 1) s = config_fail(w->c, at, w->err, "expected value, list or each");
	return s ? s : expression(w, key, yaml_get(at, "when"));
}

/* A transform's arguments are expressions that the plan evaluates, and it looks up the transform's name too. */
static enum ggu_status transform(const struct walk *w, const struct yaml_node *at)
{
	if (!at || at->kind == YAML_SCALAR) return GGU_OK;
	if (at->kind != YAML_SEQUENCE) return config_fail(w->c, at, w->err, "expected a transform or a list");
	for (size_t k = 0; k < at->count; k++)
		if (at->items[k]->kind != YAML_SCALAR)
			return config_fail(w->c, at->items[k], w->err, "expected a transform");
	return GGU_OK;
}

static enum ggu_status part(const struct walk *w, const struct yaml_node *at)
{
	enum ggu_status s;
	if (at->kind == YAML_SCALAR) return GGU_OK;
	if (at->kind != YAML_MAPPING || !yaml_get(at, "from")) return config_fail(w->c, at, w->err, "expected from");
	s = only(w, at, "from transform");
	return s ? s : transform(w, yaml_get(at, "transform"));
}

static enum ggu_status source(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at)
{
	static const char *const expressions[] = { "make", "when", "optional", "bias", "stack" };
	const struct yaml_node *from = at->kind == YAML_MAPPING ? yaml_get(at, "from") : at;
	const struct yaml_node *type = yaml_get(at, "type"), *pack = yaml_get(at, "pack");
	enum ggu_status s = only(w, at, "from transform make when optional bias stack type pack scales");
	for (size_t k = 0; !s && k < sizeof expressions/sizeof *expressions; k++)
		s = expression(w, key, yaml_get(at, expressions[k]));
	if (!s && type && (type->kind != YAML_SCALAR || !ggu_type_find(type->text)))
		s = config_fail(w->c, type, w->err, "no such type");
	if (!s && pack && !yaml_is(pack, "mxfp4")) s = config_fail(w->c, pack, w->err, "expected mxfp4");
	if (!s && !pack != !yaml_get(at, "scales")) s = config_fail(w->c, at, w->err, "expected both pack and scales");
	if (!s) s = transform(w, yaml_get(at, "transform"));
	if (s) return s;
	if (!from == !yaml_get(at, "make")) return config_fail(w->c, at, w->err, "expected from or make");
	if (!from && yaml_get(at, "bias"))
		return config_fail(w->c, yaml_get(at, "bias"), w->err, "numbers that are made have no bias");
	if (from && (from->kind == YAML_MAPPING || (pack && from->kind != YAML_SCALAR)))
		return config_fail(w->c, from, w->err, "expected a tensor's name or a list");
	for (size_t k = 0; from && from->kind == YAML_SEQUENCE && k < from->count && !s; k++)
		s = part(w, from->items[k]);
	return s;
}

static enum ggu_status sources(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at)
{
	enum ggu_status s = GGU_OK;
	if (at->kind != YAML_SEQUENCE) return source(w, key, at);
	for (size_t k = 0; k < at->count && !s; k++)
		s = at->items[k]->kind != YAML_SEQUENCE ? source(w, key, at->items[k])
			: config_fail(w->c, at->items[k], w->err, "alternatives have none themselves");
	return s;
}

static enum ggu_status copy(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at)
{
	const struct yaml_node *of = yaml_get(at, "of");
	enum ggu_status s = only(w, at, "of when");
	if (!s && (!of || of->kind != YAML_SCALAR)) s = config_fail(w->c, at, w->err, "expected of");
	return s ? s : expression(w, key, yaml_get(at, "when"));
}

static enum ggu_status vocab(const struct walk *w, const struct yaml_node *key, const struct yaml_node *at)
{
	(void)key;
	return at->kind == YAML_MAPPING ?
		only(w, at, "pre add_space_prefix config_prefix add_bos kind bos eos unk sep pad mask eot eom") :
		config_fail(w->c, at, w->err, "expected a mapping");
}

static const struct { const char *key; check_fn *each, *whole; } parts[] = {
	{ "names", expression, NULL }, { "check", rule, NULL }, { "check_layer", rule, NULL },
	{ "layers", NULL, expression }, { "experts", NULL, expression }, { "metadata", entry, NULL },
	{ "needs", expression, NULL }, { "others", expression, NULL }, { "tensors", sources, NULL },
	{ "drop", expression, NULL },
	{ "copies", copy, NULL }, { "strip", text, NULL }, { "endings", text, NULL },
	{ "ignore", expression, NULL }, { "matters", expression, NULL }, { "vocab", expression, vocab },
};
enum { N_PARTS = sizeof parts/sizeof *parts };

/* A misspelt name or default would never be read. Those inherited may be there for others; what an architecture has is
 * checked when it is used itself. */
static enum ggu_status unread(const struct walk *w, const struct yaml_node *map)
{
	const struct arch *a = w->c->arch;
	for (size_t i = 0; map && map->kind == YAML_MAPPING && i < map->count; i++) {
		const char *name = map->keys[i]->text;
		if (strcmp(map->keys[i]->file, a->file) == 0 && !yaml_mentions(a->convert, name)
			&& !yaml_mentions(a->defaults, name) && !yaml_mentions(a->classes, name))
			return config_fail(w->c, map->keys[i], w->err, "%.60s: no expression reads it", name);
	}
	return GGU_OK;
}

/* The same for metadata, which the graph should read: what it forgets or misspells would be null there. */
static enum ggu_status unread_metadata(const struct walk *w)
{
	static const char tokenizer[] = "tokenizer.";
	const struct arch *a = w->c->arch;
	const struct yaml_node *map = yaml_get(a->convert, "metadata"), *others = yaml_get(a->convert, "others");
	for (size_t i = 0; a->graph && map && map->kind == YAML_MAPPING && i < map->count; i++) {
		const char *name = map->keys[i]->text;
		if (strcmp(map->keys[i]->file, a->file) == 0 && strncmp(name, tokenizer, sizeof tokenizer - 1) != 0
			&& yaml_null(yaml_get(others, name)) && !yaml_mentions(a->graph, name))
			return config_fail(w->c, map->keys[i], w->err, "%.60s: no expression of the graph reads it",
				name);
	}
	return GGU_OK;
}

enum ggu_status schema_check(const struct config *c, struct ggu_error *err)
{
	const struct yaml_node *conv = c->arch->convert;
	struct walk w = { c, err };
	enum ggu_status s = GGU_OK;
	if (conv->kind != YAML_MAPPING) return config_fail(c, conv, err, "expected a mapping");
	for (size_t i = 0; i < conv->count && !s; i++) {
		const struct yaml_node *at = conv->items[i];
		size_t k = 0;
		while (k < N_PARTS && strcmp(parts[k].key, conv->keys[i]->text)) k++;
		if (k == N_PARTS)
			return config_fail(c, conv->keys[i], err, "%.60s: unknown key", conv->keys[i]->text);
		if (yaml_null(at)) continue;
		if (parts[k].whole) s = parts[k].whole(&w, conv->keys[i], at);
		if (s || !parts[k].each) continue;
		if (at->kind != YAML_MAPPING) return config_fail(c, at, err, "%.60s: expected a mapping", parts[k].key);
		for (size_t j = 0; j < at->count && !s; j++) s = parts[k].each(&w, at->keys[j], at->items[j]);
	}
	if (!s) s = unread(&w, yaml_get(conv, "names"));
	if (!s) s = unread(&w, c->arch->defaults);
	for (size_t i = 0; c->arch->classes && i < c->arch->classes->count && !s; i++)
		s = unread(&w, c->arch->classes->items[i]);
	return s ? s : unread_metadata(&w);
}
