/* SPDX-License-Identifier: MIT
 * arch.c - the set of architecture descriptions: the built-in texts, and files added at run time.
 *
 * A program needs one description and those that it is like. So a built-in text is parsed only when its name, or a
 * class that occurs in it, is requested: parsing all of them takes 25 000 allocations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arch.h"
#include "embed/embed.h"
#include "../util/file.h"
#include "../../libgguf/try.h"

enum { SCHEMA = 1, MAX_FILE = 1 << 20 };

/* One of the texts that a description is made of: its index, and the document of it laid over those before. NULL: there
 * are none before, or the document is that of another description, which has the same. */
struct layer { size_t text; struct yaml_doc *over; };
struct entry {
	struct arch arch;
	struct yaml_doc *doc;                   /* its own text */
	struct layer *layer; size_t n_layers;   /* from the lowest to its own */
	const struct yaml_node *root;           /* of them all */
	bool laid;
	char *file;
};
struct arch_set {
	struct entry **all; size_t n_all;       /* as added; the last of a name counts */
	size_t n_built_in;                      /* the first ones, as in arch_data; NULL: not parsed yet */
	struct entry **v; size_t n;             /* all that have classes, sorted by name: see arch_set_all */
};

static bool name_ok(const struct yaml_node *s)
{
	if (!s || s->kind != YAML_SCALAR || !s->n || s->n > 63) return false;
	return strspn(s->text, "abcdefghijklmnopqrstuvwxyz0123456789_-") == s->n;
}

static enum ggu_status fail(const struct yaml_node *at, const char *key, struct ggu_error *err, const char *what)
{
	enum ggu_status s = ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, key, "line %u, column %u: %s",
		at->line, at->column, what);
	ggu_error_file(err, at->file);
	return s;
}

static enum ggu_status check_like(const struct yaml_node *like, struct ggu_error *err)
{
	static const char expected[] = "expected the name of a description, or a list of names";
	if (!like || like->kind == YAML_SCALAR) return GGU_OK;
	if (like->kind != YAML_SEQUENCE || !like->count) return fail(like, "like", err, expected);
	for (size_t k = 0; k < like->count; k++)
		if (like->items[k]->kind != YAML_SCALAR) return fail(like->items[k], "like", err, expected);
	return GGU_OK;
}

/* Checks the parts that every description has. Their contents are checked where they are read. */
static enum ggu_status check(struct entry *e, struct ggu_error *err)
{
	const struct yaml_node *root = yaml_doc_root(e->doc), *schema = yaml_get(root, "schema"),
		*name = yaml_get(root, "arch"), *fallback = yaml_get(root, "fallback");
	const struct yaml_node *classes = yaml_get(root, "classes"), *stray;
	char version[12];
	if (root->kind != YAML_MAPPING) return fail(root, "", err, "expected a mapping");
	snprintf(version, sizeof version, "%d", SCHEMA);
	if (!yaml_is(schema, version))
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "schema",
			"line %u, column %u: expected schema: %s", (schema ? schema : root)->line,
			(schema ? schema : root)->column, version);
	stray = yaml_stray(root, "schema arch like fallback defaults classes convert graph");
	if (stray) return fail(stray, stray->text, err, "unknown key");
	if (!name) return fail(root, "arch", err, "is missing: general.architecture of its files");
	if (!name_ok(name)) return fail(name, "arch", err, "expected a name of a-z, 0-9, _ and -");
	TRY(check_like(yaml_get(root, "like"), err));
	if (!yaml_null(fallback) && !yaml_is(fallback, "true") && !yaml_is(fallback, "false"))
		return fail(fallback, "fallback", err, "expected true or false");
	if (!yaml_null(classes) && classes->kind != YAML_MAPPING)
		return fail(classes, "classes", err, "expected a mapping of Hugging Face classes");
	e->arch.name = name->text;
	e->arch.file = e->file;
	e->arch.fallback = yaml_is(fallback, "true");
	e->arch.classes = yaml_null(classes) ? NULL : classes;
	return GGU_OK;
}

static void entry_free(struct entry *e)
{
	if (!e) return;
	for (size_t k = 0; k < e->n_layers; k++) yaml_doc_free(e->layer[k].over);
	free(e->layer);
	yaml_doc_free(e->doc);
	free(e->file);
	free(e);
}

static enum ggu_status entry_new(struct entry **out, const char *file, const char *text, size_t n,
	struct ggu_error *err)
{
	struct entry *e = calloc(1, sizeof *e);
	enum ggu_status st;
	if (e) e->file = strdup(file);
	if (e && e->file) st = yaml_doc_parse(&e->doc, file, text, n, err);
	else st = ggu_no_memory(err);
	if (!st) st = check(e, err);
	if (!st) {
		*out = e;
		return GGU_OK;
	}
	ggu_error_file(err, file);
	entry_free(e);
	return st;
}

static enum ggu_status resolve(struct arch_set *s, size_t i, struct ggu_error *err);

/* Makes sure that a built-in description has been read. */
static enum ggu_status need(struct arch_set *s, size_t i, struct ggu_error *err)
{
	enum ggu_status st;
	if (s->all[i]) return GGU_OK;
	st = entry_new(s->all + i, arch_data[i].name, arch_data[i].text, arch_data[i].n, err);
	if (!st) st = resolve(s, i, err);
	if (st && s->all[i]) {
		entry_free(s->all[i]);
		s->all[i] = NULL;
	}
	return st;
}

/* Is this description's name `name`? A built-in one is named after its file. */
static bool is_named(const struct arch_set *s, size_t i, const char *name)
{
	size_t n = strlen(name);
	if (s->all[i]) return !strcmp(s->all[i]->arch.name, name);
	return !strncmp(arch_data[i].name, name, n) && !strcmp(arch_data[i].name + n, ".yaml");
}

/* The last of this name among the first n; n: there is none. */
static size_t last_named(const struct arch_set *s, const char *name, size_t n)
{
	for (size_t i = n; i-- > 0;)
		if (is_named(s, i, name)) return i;
	return n;
}

static bool has_text(const struct entry *e, size_t text)
{
	for (size_t k = 0; k < e->n_layers; k++)
		if (e->layer[k].text == text) return true;
	return false;
}

/* Lays a text over those that e has. Only in e's own must there be something for each null to remove: in others there
 * was, where they were laid over what they are like. */
static enum ggu_status lay(const struct arch_set *s, struct entry *e, size_t text, struct ggu_error *err)
{
	const struct yaml_doc *doc = s->all[text]->doc;
	struct layer *l = e->layer + e->n_layers;
	*l = (struct layer){ text, NULL };
	if (e->n_layers) TRY(yaml_doc_over(&l->over, e->root, yaml_doc_root(doc), doc == e->doc, err));
	e->n_layers++;
	e->root = yaml_doc_root(l->over ? l->over : doc);
	return GGU_OK;
}

/* Lays the texts of the description with this name, if e does not have them yet. It is an earlier one of e's own name,
 * or the last one of another name; that of a built-in one is a built-in one, whatever was added since. */
static enum ggu_status lay_named(struct arch_set *s, size_t i, const struct yaml_node *name, struct ggu_error *err)
{
	struct entry *e = s->all[i];
	const struct entry *below;
	size_t n = !strcmp(name->text, e->arch.name) ? i : i < s->n_built_in ? s->n_built_in : s->n_all;
	const size_t found = last_named(s, name->text, n);
	if (found == n) return fail(name, name->text, err, "no such description");
	TRY(need(s, found, err));
	below = s->all[found];
	if (!below->laid) return fail(name, name->text, err, "is itself like this one");
	if (!e->n_layers) {
		for (; e->n_layers < below->n_layers; e->n_layers++)
			e->layer[e->n_layers] = (struct layer){ below->layer[e->n_layers].text, NULL };
		e->root = below->root;
		return GGU_OK;
	}
	for (size_t k = 0; k < below->n_layers; k++)
		if (!has_text(e, below->layer[k].text)) TRY(lay(s, e, below->layer[k].text, err));
	return GGU_OK;
}

/* Lays description i over those that it is like. */
static enum ggu_status resolve(struct arch_set *s, size_t i, struct ggu_error *err)
{
	struct entry *e = s->all[i];
	const struct yaml_node *like = yaml_get(yaml_doc_root(e->doc), "like");
	e->layer = calloc(s->n_all, sizeof *e->layer);
	if (!e->layer) return ggu_no_memory(err);
	if (like && like->kind == YAML_SEQUENCE)
		for (size_t k = 0; k < like->count; k++) TRY(lay_named(s, i, like->items[k], err));
	else if (!yaml_null(like)) TRY(lay_named(s, i, like, err));
	TRY(lay(s, e, i, err));
	e->arch.defaults = yaml_get(e->root, "defaults");
	e->arch.convert = yaml_get(e->root, "convert");
	e->arch.graph = yaml_get(e->root, "graph");
	e->laid = true;
	return GGU_OK;
}

enum ggu_status arch_set_add(struct arch_set *s, const char *file, const char *text, size_t n, struct ggu_error *err)
{
	struct entry **all = realloc(s->all, (s->n_all + 1)*sizeof *all);
	enum ggu_status st;
	if (!all) return ggu_no_memory(err);
	s->all = all;
	st = entry_new(all + s->n_all, file, text, n, err);
	if (st) return st;
	st = resolve(s, s->n_all++, err);
	if (st) entry_free(s->all[--s->n_all]);
	return st;
}

enum ggu_status arch_set_empty(struct arch_set **out, struct ggu_error *err)
{
	struct arch_set *s = calloc(1, sizeof *s);
	if (!s) return ggu_no_memory(err);
	*out = s;
	return GGU_OK;
}

enum ggu_status arch_set_new(struct arch_set **out, struct ggu_error *err)
{
	struct arch_set *s = NULL;
	enum ggu_status st = arch_set_empty(&s, err);
	size_t n = 0;
	if (st) return st;
	while (arch_data[n].name) n++;
	s->all = calloc(n, sizeof *s->all);
	if (!s->all) {
		arch_set_free(s);
		return ggu_no_memory(err);
	}
	s->n_all = s->n_built_in = n;
	*out = s;
	return GGU_OK;
}

enum ggu_status arch_set_add_file(struct arch_set *s, const char *path, struct ggu_error *err)
{
	char *text = NULL, *name = file_named(path);
	size_t n;
	enum ggu_status st = file_slurp_any(path, MAX_FILE, &text, &n, err);
	if (!st)
		st = name ? arch_set_add(s, name, text, n, err) : ggu_no_memory(err);
	if (st) ggu_error_file(err, name);
	free(text);
	free(name);
	return st;
}

enum ggu_status arch_set_open(struct arch_set **out, const char *const *files, size_t n, struct ggu_error *err)
{
	struct arch_set *s;
	enum ggu_status st = arch_set_new(&s, err);
	if (st) return st;
	for (size_t i = 0; i < n && !st; i++) st = arch_set_add_file(s, files[i], err);
	if (st) arch_set_free(s);
	else *out = s;
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

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct entry *const *)a)->arch.name, (*(struct entry *const *)b)->arch.name);
}

enum ggu_status arch_set_all(struct arch_set *s, struct ggu_error *err)
{
	struct entry **v = realloc(s->v, (s->n_all + 1)*sizeof *v);
	enum ggu_status st = GGU_OK;
	if (!v) return ggu_no_memory(err);
	s->v = v;
	s->n = 0;
	for (size_t i = 0; i < s->n_all && !st; i++) st = need(s, i, err);
	for (size_t i = 0; i < s->n_all && !st; i++)
		if (s->all[i]->arch.classes && last_named(s, s->all[i]->arch.name, s->n_all) == i)
			s->v[s->n++] = s->all[i];
	if (s->n) qsort(s->v, s->n, sizeof *s->v, by_name);
	return st;
}

size_t arch_count(const struct arch_set *s) { return s->n; }
const struct arch *arch_at(const struct arch_set *s, size_t i) { return i < s->n ? &s->v[i]->arch : NULL; }

static enum ggu_status refuse_base(const struct entry *e, struct ggu_error *err)
{
	enum ggu_status s = ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, e->arch.name,
		"has no classes, so it is a base and not an architecture");
	ggu_error_file(err, e->file);
	return s;
}

enum ggu_status arch_find(struct arch_set *s, const char *name, const struct arch **found, struct ggu_error *err)
{
	size_t i = last_named(s, name, s->n_all);
	if (i < s->n_all) {
		TRY(need(s, i, err));
		if (!s->all[i]->arch.classes) return refuse_base(s->all[i], err);
	}
	*found = i < s->n_all ? &s->all[i]->arch : NULL;
	return GGU_OK;
}

/* Reads the descriptions that could have this word as a key: the built-in ones whose text has it anywhere. */
static enum ggu_status need_with(struct arch_set *s, const char *word, struct ggu_error *err)
{
	enum ggu_status st = GGU_OK;
	for (size_t i = 0; i < s->n_built_in && !st; i++)
		if (strstr(arch_data[i].text, word)) st = need(s, i, err);
	return st;
}

enum ggu_status arch_find_class(struct arch_set *s, const char *hf_class, const struct arch **found,
	const struct yaml_node **class_node, struct ggu_error *err)
{
	const struct entry *base = NULL;
	TRY(need_with(s, hf_class, err));
	*found = NULL;
	for (size_t i = s->n_all; i-- > 0 && !*found;) {
		const struct yaml_node *c = s->all[i] ? yaml_get(s->all[i]->arch.classes, hf_class) : NULL;
		const struct entry *last;
		if (!c) continue;
		last = s->all[last_named(s, s->all[i]->arch.name, s->n_all)];
		if (last == s->all[i]) {
			*class_node = c;
			*found = &last->arch;
		} else if (!last->arch.classes) base = last;
	}
	return !*found && base ? refuse_base(base, err) : GGU_OK;
}

enum ggu_status arch_find_fallback(struct arch_set *s, const struct arch **found, struct ggu_error *err)
{
	enum ggu_status st = need_with(s, "fallback: true", err);
	if (st) return st;
	*found = NULL;
	for (size_t i = s->n_all; i-- > 0 && !*found;)
		if (s->all[i] && s->all[i]->arch.fallback && last_named(s, s->all[i]->arch.name, s->n_all) == i)
			*found = &s->all[i]->arch;
	return GGU_OK;
}
