/* SPDX-License-Identifier: MIT
 * arch.c - the set of architecture descriptions: the built-in texts, and files added at run time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arch.h"
#include "embed/embed.h"
#include "../util/file.h"

enum { SCHEMA = 1, MAX_FILE = 1 << 20 };

struct entry { struct arch arch; struct yaml_doc *doc; char *file; };
struct arch_set { struct entry *v; size_t n; };

static bool name_ok(const struct yaml_node *s)
{
	if (!s || s->kind != YAML_SCALAR || !s->n || s->n > 63) return false;
	return strspn(s->text, "abcdefghijklmnopqrstuvwxyz0123456789_-") == s->n;
}

/* The parts every description has; their insides are their readers' business. */
static enum ggu_status check(struct entry *e, struct ggu_error *err)
{
	const struct yaml_node *root = yaml_doc_root(e->doc), *schema = yaml_get(root, "schema");
	const struct yaml_node *name = yaml_get(root, "arch"), *classes = yaml_get(root, "classes");
	char version[12];
	snprintf(version, sizeof version, "%d", SCHEMA);
	if (!yaml_is(schema, version))
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "schema", "line %u: wants schema: %s", schema ? schema->line : root->line, version);
	if (!name_ok(name))
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "arch", "line %u: wants a name of a-z, 0-9, _ and -", name ? name->line : root->line);
	if (!classes || classes->kind != YAML_MAPPING)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "classes", "line %u: wants a mapping of Hugging Face classes", root->line);
	e->arch.name = name->text;
	e->arch.root = root;
	e->arch.convert = yaml_get(root, "convert");
	e->arch.graph = yaml_get(root, "graph");
	return GGU_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->arch.name, ((const struct entry *)b)->arch.name);
}

static void entry_free(struct entry *e)
{
	yaml_doc_free(e->doc);
	free(e->file);
}

enum ggu_status arch_set_add(struct arch_set *s, const char *file, const char *text, size_t n, struct ggu_error *err)
{
	struct entry e = { .file = strdup(file) }, *v;
	enum ggu_status st = e.file ? yaml_doc_parse(&e.doc, text, n, err) : ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	if (!st) st = check(&e, err);
	if (st) {
		if (err) snprintf(err->file, sizeof err->file, "%s", file);
		entry_free(&e);
		return st;
	}
	e.arch.file = e.file;
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i].arch.name, e.arch.name)) {
			entry_free(&s->v[i]);
			s->v[i] = e;
			return GGU_OK;
		}
	v = realloc(s->v, (s->n + 1)*sizeof *v);
	if (!v) {
		entry_free(&e);
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	}
	s->v = v;
	s->v[s->n++] = e;
	qsort(s->v, s->n, sizeof *s->v, by_name);
	return GGU_OK;
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
	struct arch_set *s;
	enum ggu_status st = arch_set_empty(&s, err);
	if (st) return st;
	for (const struct embedded *f = arch_data; f->name && !st; f++) st = arch_set_add(s, f->name, f->text, f->n, err);
	if (st) arch_set_free(s);
	else *out = s;
	return st;
}

enum ggu_status arch_set_add_file(struct arch_set *s, const char *path, struct ggu_error *err)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(MAX_FILE + 1), *name = file_named(path);
	enum ggu_status st;
	size_t n = 0;
	if (!text || !name) st = ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	else if (!f || (n = fread(text, 1, MAX_FILE + 1, f), ferror(f))) {
		int e = errno;
		st = ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "%s", strerror(e));
		if (err) err->sys_errno = e;
	} else if (n > MAX_FILE) st = ggu_fail(err, GGU_ERR_RANGE, MAX_FILE, "", "longer than %d bytes", MAX_FILE);
	else st = arch_set_add(s, name, text, n, err);
	if (st && err && name) snprintf(err->file, sizeof err->file, "%s", name);
	if (f) fclose(f);
	free(text);
	free(name);
	return st;
}

void arch_set_free(struct arch_set *s)
{
	if (!s) return;
	for (size_t i = 0; i < s->n; i++) entry_free(&s->v[i]);
	free(s->v);
	free(s);
}

size_t arch_count(const struct arch_set *s) { return s->n; }
const struct arch *arch_at(const struct arch_set *s, size_t i) { return i < s->n ? &s->v[i].arch : NULL; }

const struct arch *arch_find(const struct arch_set *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i].arch.name, name)) return &s->v[i].arch;
	return NULL;
}

const struct arch *arch_find_class(const struct arch_set *s, const char *hf_class, const struct yaml_node **class_node)
{
	const struct arch *found = NULL;
	for (size_t i = 0; i < s->n; i++) {
		const struct arch *a = &s->v[i].arch;
		const struct yaml_node *c = yaml_get(yaml_get(a->root, "classes"), hf_class);
		if (!c || (found && !strchr(a->file, '/'))) continue;
		if (class_node) *class_node = c;
		found = a;
	}
	return found;
}
