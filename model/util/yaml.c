/* SPDX-License-Identifier: MIT
 * yaml.c - libyaml's document, re-dressed as a read-only tree.
 *
 * libyaml composes the document and keeps it (its scalars' text is ours to point at); this file adds nodes with keys
 * and values as plain arrays. An alias is the same node again, so a document of aliases to aliases costs no more than
 * its text; one that contains itself is refused. A document laid over another has mappings of its own where both have
 * one, and borrows all else. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "yaml.h"

enum { MAX_DEPTH = 64, MAX_NODES = 1000000 };

struct yaml_doc {
	yaml_document_t doc;
	char *file;
	struct yaml_node *nodes;                /* [n_nodes], as libyaml numbers them */
	const struct yaml_node **links;         /* items and keys of all nodes */
	unsigned char *state;                   /* 0 unseen, 1 being built, 2 done */
	size_t n_nodes, used_links;
	struct merged *merged;                  /* instead of all this: mappings laid over one another */
	bool strict;                            /* ... with something for each null to remove */
};

static int by_text(const void *a, const void *b)
{
	const struct yaml_node *x = *(const struct yaml_node *const *)a, *y = *(const struct yaml_node *const *)b;
	size_t n = x->n < y->n ? x->n : y->n;
	int c = memcmp(x->text, y->text, n);
	return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* Equal keys in their order in the file, whatever this machine's qsort does with equal items. */
static int by_text_and_place(const void *a, const void *b)
{
	const struct yaml_node *x = *(const struct yaml_node *const *)a, *y = *(const struct yaml_node *const *)b;
	int c = by_text(a, b);
	if (c) return c;
	if (x->line != y->line) return x->line < y->line ? -1 : 1;
	return (x->column > y->column) - (x->column < y->column);
}

/* Keys are scalars and differ. */
static enum ggu_status check_keys(const struct yaml_node *map, struct ggu_error *err)
{
	const struct yaml_node **sorted;
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < map->count; i++)
		if (map->keys[i]->kind != YAML_SCALAR)
			return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "",
				"line %u, column %u: a key is not plain text", map->keys[i]->line,
				map->keys[i]->column);
	if (map->count < 2) return GGU_OK;
	sorted = malloc(map->count*sizeof *sorted);
	if (!sorted) return ggu_no_memory(err);
	memcpy(sorted, map->keys, map->count*sizeof *sorted);
	qsort(sorted, map->count, sizeof *sorted, by_text_and_place);
	for (size_t i = 1; i < map->count && !s; i++)
		if (!by_text(sorted + i - 1, sorted + i))
			s = ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, sorted[i]->text,
				"line %u, column %u: key given twice", sorted[i]->line, sorted[i]->column);
	free(sorted);
	return s;
}

static enum ggu_status build(struct yaml_doc *d, int index, int depth, struct ggu_error *err);

static enum ggu_status build_items(struct yaml_doc *d, struct yaml_node *to, const yaml_node_t *from, int depth,
	struct ggu_error *err)
{
	const struct yaml_node **items = d->links + d->used_links, **keys;
	bool map = from->type == YAML_MAPPING_NODE;
	to->count = map ? (size_t)(from->data.mapping.pairs.top - from->data.mapping.pairs.start)
		: (size_t)(from->data.sequence.items.top - from->data.sequence.items.start);
	d->used_links += to->count*(map ? 2 : 1);
	keys = items + to->count;
	to->items = items;
	to->keys = map ? keys : NULL;
	for (size_t i = 0; i < to->count; i++) {
		int value = map ? from->data.mapping.pairs.start[i].value : from->data.sequence.items.start[i];
		enum ggu_status s = build(d, value, depth + 1, err);
		if (!s && map) s = build(d, from->data.mapping.pairs.start[i].key, depth + 1, err);
		if (s) return s;
		items[i] = d->nodes + value - 1;
		if (map) keys[i] = d->nodes + from->data.mapping.pairs.start[i].key - 1;
	}
	return map ? check_keys(to, err) : GGU_OK;
}

static enum ggu_status build(struct yaml_doc *d, int index, int depth, struct ggu_error *err)
{
	const yaml_node_t *from = yaml_document_get_node(&d->doc, index);
	struct yaml_node *to = d->nodes + index - 1;
	enum ggu_status s = GGU_OK;
	if (d->state[index - 1] == 2) return GGU_OK;
	to->file = d->file;
	to->line = (unsigned)from->start_mark.line + 1;
	to->column = (unsigned)from->start_mark.column + 1;
	if (d->state[index - 1] == 1)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "line %u, column %u: an alias contains itself",
			to->line, to->column);
	if (depth > MAX_DEPTH)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "line %u, column %u: nested more than %d deep",
			to->line, to->column, MAX_DEPTH);
	d->state[index - 1] = 1;
	if (from->type == YAML_SCALAR_NODE) {
		to->kind = YAML_SCALAR;
		to->text = (const char *)from->data.scalar.value;
		to->n = from->data.scalar.length;
		to->plain = from->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	} else {
		to->kind = from->type == YAML_MAPPING_NODE ? YAML_MAPPING : YAML_SEQUENCE;
		to->text = "";
		s = build_items(d, to, from, depth, err);
	}
	d->state[index - 1] = 2;
	return s;
}

static enum ggu_status build_all(struct yaml_doc *d, struct ggu_error *err)
{
	size_t links = 0;
	d->n_nodes = (size_t)(d->doc.nodes.top - d->doc.nodes.start);
	if (!d->n_nodes) return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "empty document");
	if (d->n_nodes > MAX_NODES)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "more than %d nodes", MAX_NODES);
	for (const yaml_node_t *n = d->doc.nodes.start; n < d->doc.nodes.top; n++)
		if (n->type == YAML_MAPPING_NODE)
			links += 2*(size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start);
		else if (n->type == YAML_SEQUENCE_NODE)
			links += (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
	d->nodes = calloc(d->n_nodes, sizeof *d->nodes);
	d->links = calloc(links + 1, sizeof *d->links);
	d->state = calloc(d->n_nodes, 1);
	if (!d->nodes || !d->links || !d->state)
		return ggu_no_memory(err);
	return build(d, 1, 0, err);
}

static enum ggu_status failed(const yaml_parser_t *p, struct ggu_error *err)
{
	/* building the tree can only fail for lack of memory, for which the library has no text */
	if (p->error == YAML_MEMORY_ERROR || !p->problem) return ggu_no_memory(err);
	return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "line %zu, column %zu: %s", p->problem_mark.line + 1,
		p->problem_mark.column + 1, p->problem);
}
static enum ggu_status expect_end(yaml_parser_t *p, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	yaml_document_t next;
	if (!yaml_parser_load(p, &next)) return failed(p, err);
	if (yaml_document_get_root_node(&next))
		s = ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "line %zu, column %zu: a second document",
			next.start_mark.line + 1, next.start_mark.column + 1);
	yaml_document_delete(&next);
	return s;
}

enum ggu_status yaml_doc_parse(struct yaml_doc **out, const char *file, const char *text, size_t n,
	struct ggu_error *err)
{
	struct yaml_doc *d = calloc(1, sizeof *d);
	yaml_parser_t p;
	enum ggu_status s;
	if (!d || !(d->file = strdup(file)) || !yaml_parser_initialize(&p)) {
		if (d) free(d->file);
		free(d);
		return ggu_no_memory(err);
	}
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	if (!yaml_parser_load(&p, &d->doc)) {
		s = failed(&p, err);
		yaml_parser_delete(&p);
		free(d->file);
		free(d);
		return s;
	}
	s = expect_end(&p, err);
	yaml_parser_delete(&p);
	if (!s) s = build_all(d, err);
	if (s) yaml_doc_free(d);
	else *out = d;
	return s;
}

/* ---- one document over another ---- */

struct merged { struct merged *next; struct yaml_node node; const struct yaml_node *link[]; };

static enum ggu_status lay(struct yaml_doc *d, const struct yaml_node *below, const struct yaml_node *above,
	const struct yaml_node **out, struct ggu_error *err);

/* The value of a key that is in the upper document, and perhaps in the lower one too. */
static enum ggu_status lay_value(struct yaml_doc *d, const struct yaml_node *below, const struct yaml_node *above,
	const struct yaml_node **out, struct ggu_error *err)
{
	if (below && below->kind == YAML_MAPPING && above->kind == YAML_MAPPING) return lay(d, below, above, out, err);
	*out = above;
	return GGU_OK;
}

static enum ggu_status lay_fail(const struct yaml_node *key, struct ggu_error *err, const char *what)
{
	ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "line %u, column %u: %.60s: %s", key->line, key->column,
		key->text, what);
	ggu_error_file(err, key->file);
	return GGU_ERR_FORMAT;
}

/* Is what is below to go? Nothing at all would read as null, but whoever writes `check:` and nothing below it does not
 * mean to remove all checks. */
static enum ggu_status lay_removes(const struct yaml_node *above, const struct yaml_node *key, bool *yes,
	struct ggu_error *err)
{
	const struct yaml_node *over = yaml_get(above, key->text);
	*yes = over && yaml_null(over);
	if (!*yes || over->n) return GGU_OK;
	for (size_t i = 0; i < above->count; i++) if (above->items[i] == over) key = above->keys[i];
	return lay_fail(key, err, "has no value: null removes what is below");
}

/* Recursion is as deep as the shallower tree. Mappings that aliases repeat are laid again each time; n_nodes bounds
 * this. */
static enum ggu_status lay(struct yaml_doc *d, const struct yaml_node *below, const struct yaml_node *above,
	const struct yaml_node **out, struct ggu_error *err)
{
	size_t room = below->count + above->count, n = 0;
	struct merged *m = calloc(1, sizeof *m + 2*room*sizeof *m->link);
	const struct yaml_node **items, **keys;
	enum ggu_status s = GGU_OK;
	if (!m) return ggu_no_memory(err);
	m->next = d->merged;
	d->merged = m;
	if ((d->n_nodes += room + 1) > MAX_NODES)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "", "more than %d nodes", MAX_NODES);
	items = m->link;
	keys = items + room;
	for (size_t i = 0; i < below->count && !s; i++) {
		const struct yaml_node *over = yaml_get(above, below->keys[i]->text);
		bool gone;
		s = lay_removes(above, below->keys[i], &gone, err);
		if (s || gone) continue;
		keys[n] = below->keys[i];
		items[n] = below->items[i];
		if (over) s = lay_value(d, below->items[i], over, items + n, err);
		n++;
	}
	for (size_t i = 0; i < above->count && !s; i++) {
		const struct yaml_node *key = above->keys[i];
		if (yaml_get(below, key->text)) continue;
		if (yaml_null(above->items[i])) {
			if (!d->strict) continue;
			s = lay_fail(key, err, "there is no such key that null could remove");
		}
		keys[n] = key;
		items[n++] = above->items[i];
	}
	m->node = *above;
	m->node.count = n;
	m->node.items = items;
	m->node.keys = keys;
	*out = &m->node;
	return s;
}

enum ggu_status yaml_doc_over(struct yaml_doc **out, const struct yaml_node *below, const struct yaml_node *above,
	bool strict, struct ggu_error *err)
{
	struct yaml_doc *d = calloc(1, sizeof *d);
	const struct yaml_node *root;
	enum ggu_status s;
	if (!d) return ggu_no_memory(err);
	d->strict = strict;
	s = lay(d, below, above, &root, err);
	if (!s && !(d->nodes = malloc(sizeof *d->nodes)))
		s = ggu_no_memory(err);
	if (s) yaml_doc_free(d);
	else {
		*d->nodes = *root;
		*out = d;
	}
	return s;
}

void yaml_doc_free(struct yaml_doc *d)
{
	if (!d) return;
	for (struct merged *m = d->merged, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	yaml_document_delete(&d->doc);
	free(d->file);
	free(d->nodes);
	free(d->links);
	free(d->state);
	free(d);
}

const struct yaml_node *yaml_doc_root(const struct yaml_doc *d) { return d->nodes; }

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	if (!map || map->kind != YAML_MAPPING) return NULL;
	for (size_t i = 0; i < map->count; i++)
		if (!strcmp(map->keys[i]->text, key)) return map->items[i];
	return NULL;
}

bool yaml_is(const struct yaml_node *s, const char *text)
{
	return s && s->kind == YAML_SCALAR && s->n == strlen(text) && !memcmp(s->text, text, s->n);
}

bool yaml_null(const struct yaml_node *s)
{
	return !s || (s->kind == YAML_SCALAR && s->plain && (!s->n || yaml_is(s, "~") || yaml_is(s, "null")));
}

const struct yaml_node *yaml_stray(const struct yaml_node *map, const char *keys)
{
	for (size_t i = 0; map && map->kind == YAML_MAPPING && i < map->count; i++) {
		const struct yaml_node *k = map->keys[i];
		const char *p = keys;
		while (*p && !(strcspn(p, " ") == k->n && !memcmp(p, k->text, k->n))) {
			p += strcspn(p, " ");
			p += strspn(p, " ");
		}
		if (!*p) return k;
	}
	return NULL;
}

static bool is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }
/* What follows a dot is a key of something else. */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = text; (p = strstr(p, word)); p++)
		if ((p == text || !(is_letter(p[-1]) || p[-1] == '.')) && !is_letter(p[n])) return true;
	return false;
}
/* left: nodes that may still be looked at, since aliases can repeat one without end */
static bool mentions(const struct yaml_node *at, const char *word, size_t *left)
{
	if (!at) return false;
	if (!*left) return true;
	--*left;
	if (at->kind == YAML_SCALAR) return has_word(at->text, word);
	for (size_t i = 0; i < at->count; i++) if (mentions(at->items[i], word, left)) return true;
	return false;
}
bool yaml_mentions(const struct yaml_node *at, const char *word)
{
	size_t left = 1 << 16;
	return mentions(at, word, &left);
}
