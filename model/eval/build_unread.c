/* SPDX-License-Identifier: MIT
 * build_unread.c - tensors that no layer has read. A model that has one means something that its description does not
 * say, so its results would be wrong: a norm of queries in an architecture without them, a scale beside a weight.
 *
 *   ignore     {PREFIX: EXPR}: tensors whose names begin so and that change no logits, if EXPR is true. {n} in a prefix
 *              stands for the number of any layer after the last. */
#include <string.h>
#include "../../libgguf/try.h"
#include "build_internal.h"

void build_read(const struct builder *b, const struct ggu_tensor *t) { b->read[t - ggu_file_tensor(b->f, 0)] = true; }

/* Does name begin with prefix? */
static bool begins(const char *prefix, const char *name, size_t n_layer)
{
	const char *place = strstr(prefix, "{n}");
	size_t n = place ? (size_t)(place - prefix) : strlen(prefix), i = 0;
	if (strncmp(name, prefix, n)) return false;
	if (!place) return true;
	name += n;
	n = strspn(name, "0123456789");
	if (!n || n > 9) return false;
	while (n--) i = 10*i + (size_t)(*name++ - '0');
	return i >= n_layer && !strncmp(name, place + 3, strlen(place + 3));
}

enum ggu_status build_unread(struct builder *b)
{
	const struct yaml_node *list = yaml_get(b->arch->graph, "ignore");
	for (size_t i = 0; i < ggu_file_n_tensors(b->f); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(b->f, i);
		bool known = b->read[i];
		for (size_t k = 0; !known && !yaml_null(list) && k < list->count; k++) {
			struct expr_value v;
			if (!begins(list->keys[k]->text, t->name, b->g->n_layer)) continue;
			TRY(build_eval(b, list->items[k], &v));
			known = expr_true(&v);
		}
		if (!known)
			return ggu_fail(b->err, GGU_ERR_UNSUPPORTED, t->entry, t->name, "no layer reads it (%s)",
				b->arch->file);
	}
	return GGU_OK;
}
