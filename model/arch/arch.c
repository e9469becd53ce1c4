/* SPDX-License-Identifier: MIT
 * arch.c - the set of architecture descriptions: the built-in texts, and files added at run time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arch.h"
#include "embed/embed.h"
#include "../util/file.h"

enum { SCHEMA = 1, MAX_FILE = 1 << 20 };

/* One text. `over` is its document laid over the one that it is like. */
struct entry {
	struct arch arch;
	struct yaml_doc *doc, *over;
	const struct yaml_node *root;
	char *file;
	enum { RAW, BUSY, DONE } state;
};
struct arch_set {
	struct entry **all; size_t n_all;       /* as they came; the last of a name counts */
	struct entry **v; size_t n;             /* of these, those with classes, sorted by name */
};

static bool name_ok(const struct yaml_node *s)
{
	if (!s || s->kind != YAML_SCALAR || !s->n || s->n > 63) return false;
	return strspn(s->text, "abcdefghijklmnopqrstuvwxyz0123456789_-") == s->n;
}

static enum ggu_status fail(const struct yaml_node *at, const char *key, struct ggu_error *err, const char *what)
{
	enum ggu_status s = ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, key, "line %u, column %u: %s", at->line,
		at->column, what);
	if (err) snprintf(err->file, sizeof err->file, "%s", at->file);
	return s;
}

/* The parts every description has; their insides are their readers' business. */
static enum ggu_status check(struct entry *e, struct ggu_error *err)
{
	const struct yaml_node *root = yaml_doc_root(e->doc), *schema = yaml_get(root, "schema"),
		*name = yaml_get(root, "arch");
	const struct yaml_node *classes = yaml_get(root, "classes"), *like = yaml_get(root, "like"), *stray;
	char version[12];
	if (root->kind != YAML_MAPPING) return fail(root, "", err, "wants a mapping");
	snprintf(version, sizeof version, "%d", SCHEMA);
	if (!yaml_is(schema, version))
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "schema", "line %u: wants schema: %s",
			schema ? schema->line : root->line, version);
	stray = yaml_stray(root, "schema arch like fallback defaults classes convert graph");
	if (stray) return fail(stray, stray->text, err, "no such key here");
	if (!name_ok(name)) return fail(name ? name : root, "arch", err, "wants a name of a-z, 0-9, _ and -");
	if (like && like->kind != YAML_SCALAR) return fail(like, "like", err, "wants the name of a description");
	if (!yaml_null(classes) && classes->kind != YAML_MAPPING)
		return fail(classes, "classes", err, "wants a mapping of Hugging Face classes");
	e->root = root;
	e->arch.name = name->text;
	e->arch.file = e->file;
	e->arch.fallback = yaml_is(yaml_get(root, "fallback"), "true");
	e->arch.classes = yaml_null(classes) ? NULL : classes;
	return GGU_OK;
}

static void entry_free(struct entry *e)
{
	if (!e) return;
	yaml_doc_free(e->over);
	yaml_doc_free(e->doc);
	free(e->file);
	free(e);
}

/* Adds the text as it is. */
static enum ggu_status add_raw(struct arch_set *s, const char *file, const char *text, size_t n, struct ggu_error *err)
{
	struct entry *e = calloc(1, sizeof *e), **all = realloc(s->all, (s->n_all + 1)*sizeof *all), **v;
	enum ggu_status st;
	if (all) s->all = all;
	v = realloc(s->v, (s->n_all + 1)*sizeof *v);
	if (v) s->v = v;
	if (e && all && v && (e->file = strdup(file))) st = yaml_doc_parse(&e->doc, file, text, n, err);
	else st = ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	if (!st) st = check(e, err);
	if (st) {
		if (err) snprintf(err->file, sizeof err->file, "%s", file);
		entry_free(e);
		return st;
	}
	s->all[s->n_all++] = e;
	return GGU_OK;
}

/* The last of this name before `but`, or of all if `but` has another one. */
static struct entry *named(const struct arch_set *s, const char *name, const struct entry *but)
{
	bool before = strcmp(but->arch.name, name) != 0;
	for (size_t i = s->n_all; i-- > 0;) {
		if (before && !strcmp(s->all[i]->arch.name, name)) return s->all[i];
		before |= s->all[i] == but;
	}
	return NULL;
}

static enum ggu_status resolve(const struct arch_set *s, struct entry *e, struct ggu_error *err)
{
	const struct yaml_node *like = yaml_get(e->root, "like");
	enum ggu_status st = GGU_OK;
	struct entry *below;
	if (e->state == DONE) return GGU_OK;
	if (e->state == BUSY) return fail(like, like->text, err, "is like one that is like it");
	e->state = BUSY;
	if (!yaml_null(like)) {
		below = named(s, like->text, e);
		if (!below) return fail(like, like->text, err, "no such description");
		st = resolve(s, below, err);
		if (!st) st = yaml_doc_over(&e->over, below->root, e->root, err);
		if (st) return st;
		e->root = yaml_doc_root(e->over);
	}
	e->arch.defaults = yaml_get(e->root, "defaults");
	e->arch.convert = yaml_get(e->root, "convert");
	e->arch.graph = yaml_get(e->root, "graph");
	e->state = DONE;
	return GGU_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct entry *const *)a)->arch.name, (*(struct entry *const *)b)->arch.name);
}

/* Resolves those that came since n, which leave again if one of them is wrong. */
static enum ggu_status settle(struct arch_set *s, size_t n, struct ggu_error *err)
{
	enum ggu_status st = GGU_OK;
	for (size_t i = n; !st && i < s->n_all; i++) st = resolve(s, s->all[i], err);
	while (st && s->n_all > n) entry_free(s->all[--s->n_all]);
	s->n = 0;
	for (size_t i = 0; i < s->n_all; i++) {
		size_t k = 0;
		if (!s->all[i]->arch.classes) continue;
		while (k < s->n && strcmp(s->v[k]->arch.name, s->all[i]->arch.name)) k++;
		s->v[k] = s->all[i];
		s->n += k == s->n;
	}
	if (s->n) qsort(s->v, s->n, sizeof *s->v, by_name);
	return st;
}

enum ggu_status arch_set_add(struct arch_set *s, const char *file, const char *text, size_t n, struct ggu_error *err)
{
	size_t had = s->n_all;
	enum ggu_status st = add_raw(s, file, text, n, err);
	return st ? st : settle(s, had, err);
}

enum ggu_status arch_set_empty(struct arch_set **out, struct ggu_error *err)
{
	struct arch_set *s = calloc(1, sizeof *s);
	if (!s) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	*out = s;
	return GGU_OK;
}

enum ggu_status arch_set_new(struct arch_set **out, struct ggu_error *err)
{
	struct arch_set *s = NULL;
	enum ggu_status st = arch_set_empty(&s, err);
	if (st) return st;
	for (const struct embedded *f = arch_data; f->name && !st; f++) st = add_raw(s, f->name, f->text, f->n, err);
	if (!st) st = settle(s, 0, err);
	if (st) arch_set_free(s);
	else *out = s;
	return st;
}

enum ggu_status arch_set_add_file(struct arch_set *s, const char *path, struct ggu_error *err)
{
	char *text = NULL, *name = file_named(path);
	size_t n;
	enum ggu_status st = file_slurp_any(path, MAX_FILE, &text, &n, err);
	if (!st)
		st = name ? arch_set_add(s, name, text, n, err) : ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "",
			"out of memory");
	if (st && err && name) snprintf(err->file, sizeof err->file, "%s", name);
	free(text);
	free(name);
	return st;
}

void arch_set_free(struct arch_set *s)
{
	if (!s) return;
	for (size_t i = 0; i < s->n_all; i++) entry_free(s->all[i]);
	free(s->all);
	free(s->v);
	free(s);
}

size_t arch_count(const struct arch_set *s) { return s->n; }
const struct arch *arch_at(const struct arch_set *s, size_t i) { return i < s->n ? &s->v[i]->arch : NULL; }

const struct arch *arch_find(const struct arch_set *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i]->arch.name, name)) return &s->v[i]->arch;
	return NULL;
}

const struct arch *arch_find_class(const struct arch_set *s, const char *hf_class, const struct yaml_node **class_node)
{
	const struct arch *found = NULL;
	for (size_t i = 0; i < s->n; i++) {
		const struct arch *a = &s->v[i]->arch;
		const struct yaml_node *c = yaml_get(a->classes, hf_class);
		if (!c || (found && !strchr(a->file, '/'))) continue;
		if (class_node) *class_node = c;
		found = a;
	}
	return found;
}
