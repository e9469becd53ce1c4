/* SPDX-License-Identifier: MIT
 * config_keys.c - marks on the keys of a JSON document's objects; see config_keys.h.
 *
 * Values cannot be marked, since jansson has only one true and one false, so the marks are a sorted table of (object,
 * name). A list counts as read as a whole, with the objects in it. */
#include <stdlib.h>
#include <string.h>
#include "config_keys.h"

struct mark { const json_t *object; const char *name; bool read; };
struct config_keys { size_t n; struct mark v[]; };

static size_t count(const json_t *object)
{
	size_t n = 0;
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)object, name, value) n += 1 + count(value);
	return n;
}

static void fill(struct config_keys *k, const json_t *object)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)object, name, value) {
		k->v[k->n++] = (struct mark){ object, name, false };
		fill(k, value);
	}
}

static int by_place(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	if (x->object != y->object) return x->object < y->object ? -1 : 1;
	return strcmp(x->name, y->name);
}

enum ggu_status config_keys_new(struct config_keys **out, const json_t *root, struct ggu_error *err)
{
	struct config_keys *k = calloc(1, sizeof *k + count(root)*sizeof *k->v);
	if (!k) return ggu_no_memory(err);
	fill(k, root);
	if (k->n) qsort(k->v, k->n, sizeof *k->v, by_place);
	*out = k;
	return GGU_OK;
}

void config_keys_free(struct config_keys *k) { free(k); }

static const struct mark *find(const struct config_keys *k, const json_t *object, const char *name)
{
	struct mark want = { object, name, false };
	return k && k->n ? bsearch(&want, k->v, k->n, sizeof want, by_place) : NULL;
}

void config_keys_mark(struct config_keys *k, const json_t *object, const char *name)
{
	const struct mark *m = find(k, object, name);
	if (m) k->v[m - k->v].read = true;
}

bool config_keys_marked(const struct config_keys *k, const json_t *object, const char *name)
{
	const struct mark *m = find(k, object, name);
	return m && m->read;
}
