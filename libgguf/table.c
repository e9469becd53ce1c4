/* SPDX-License-Identifier: MIT
 * table.c - the table of tensors: what a name, a shape and a type must be, for reader and writer alike.
 *
 *   name: length u64, bytes | n_dims u32 | ne u64 each, fastest first | type u32 | offset u64 */
#include <stdlib.h>
#include <string.h>
#include "grow.h"
#include "internal.h"
#include "text.h"
#include "types.h"

enum { DIMS_SKIPPED_MAX = 64 };

enum ggu_status ggu_tensor_check(struct ggu_tensor *t, const struct ggu_tensor_at *at, struct ggu_error *err)
{
	const struct ggu_type_info *info = ggu_type_info(t->type);
	uint64_t n = 1, any = 1;

	if (!t->name_bytes)
		return ggu_rule(err, GGU_RULE_NAME, ggu_fail(err, GGU_ERR_FORMAT, at->name, "", "empty tensor name"));
	if (memchr(t->name, 0, t->name_bytes))
		return ggu_rule(err, GGU_RULE_NAME, ggu_fail(err, GGU_ERR_FORMAT, at->name, t->name,
			"tensor name contains a NUL byte"));
	if (t->n_dims > 4)
		return ggu_rule(err, GGU_RULE_DIMS, ggu_fail(err, GGU_ERR_FORMAT, at->n_dims, t->name,
			"%u dimensions; at most 4 are supported", t->n_dims));
	/* the product without zeros is bounded too, so that products of a part of the dimensions cannot wrap around */
	for (uint32_t i = 0; i < t->n_dims; i++) {
		uint64_t ne_at = at->ne == GGU_NO_OFFSET ? at->ne : at->ne + 8*i;
		if (!ggu_mul(any, t->ne[i] ? t->ne[i] : 1, &any))
			return ggu_rule(err, GGU_RULE_SIZE, ggu_fail(err, GGU_ERR_FORMAT, ne_at, t->name,
				"number of elements overflows"));
		n *= t->ne[i];
	}
	if (!info)
		return ggu_rule(err, GGU_RULE_TYPE, ggu_fail(err, GGU_ERR_UNSUPPORTED, at->type, t->name,
			"tensor type %u is %s", t->type, t->type < GGU_TYPE_COUNT ? "no longer in use" : "unknown"));
	if (t->ne[0] % info->block_weights)
		return ggu_rule(err, GGU_RULE_BLOCK, ggu_fail(err, GGU_ERR_FORMAT, at->ne, t->name,
			"rows of %llu element%s are not whole blocks of %u (%s)", (unsigned long long)t->ne[0],
				text_s(t->ne[0]), info->block_weights, info->name));
	if (!ggu_type_bytes(t->type, n, &t->bytes))
		return ggu_rule(err, GGU_RULE_SIZE, ggu_fail(err, GGU_ERR_FORMAT, at->ne, t->name,
			"size in bytes overflows"));
	return GGU_OK;
}

static struct ggu_str name_of(const void *list, size_t i)
{
	const struct ggu_tensor *t = &((const struct ggu_table *)list)->t[i];
	return (struct ggu_str){ t->name, t->name_bytes };
}

size_t ggu_table_find(const struct ggu_table *x, const char *name)
{
	return ggu_index_find(&x->index, x, name_of, name, strlen(name));
}

enum ggu_status ggu_table_append(struct ggu_table *x, const struct ggu_tensor *t, bool *dup)
{
	struct ggu_tensor *p;

	*dup = ggu_index_find(&x->index, x, name_of, t->name, t->name_bytes) != SIZE_MAX;
	if (*dup)
		return GGU_OK;
	p = ggu_grow(x->t, x->n, sizeof *p);
	if (!p)
		return GGU_ERR_NOMEM;
	x->t = p;
	x->t[x->n] = *t;
	if (!ggu_index_add(&x->index, x, name_of, x->n))
		return GGU_ERR_NOMEM;
	x->n++;
	return GGU_OK;
}

void ggu_table_free(struct ggu_table *x)
{
	ggu_arena_free(&x->arena);
	ggu_index_free(&x->index);
	free(x->t);
	*x = (struct ggu_table){ 0 };
}

/* Skips the rest of an entry with more dimensions than allowed. */
static enum ggu_status skip_rest(struct ggu_cursor *c, uint32_t n_dims)
{
	uint64_t nothing;
	uint32_t type;

	for (uint32_t i = 0; i < n_dims; i++)
		TRY(ggu_cursor_u64(c, &nothing));
	TRY(ggu_cursor_u32(c, &type));
	return ggu_cursor_u64(c, &nothing);
}

enum ggu_status ggu_table_read(struct ggu_cursor *c, struct ggu_table *x, uint32_t shard)
{
	struct ggu_tensor t = { .source = shard, .entry = c->at, .ne = { 1, 1, 1, 1 } };
	struct ggu_tensor_at at = { .name = c->at };
	struct ggu_str name;
	enum ggu_status s;
	bool dup;

	c->where = "";
	TRY(ggu_cursor_str(c, &x->arena, GGU_KEY_MAX, &name));
	t.name = c->where = name.p;
	t.name_bytes = (uint32_t)name.n;
	at.n_dims = c->at;
	TRY(ggu_cursor_u32(c, &t.n_dims));
	at.ne = c->at;
	if (t.n_dims > 4) {             /* with so many, the end of the entry cannot be found */
		s = ggu_tensor_check(&t, &at, c->err);
		if (t.n_dims > DIMS_SKIPPED_MAX)
			return s;
		TRY(ggu_tolerate(c->lenient, s, c->err));
		return skip_rest(c, t.n_dims);
	}
	for (uint32_t i = 0; i < t.n_dims; i++)
		TRY(ggu_cursor_u64(c, &t.ne[i]));
	at.type = c->at;
	TRY(ggu_cursor_u32(c, &t.type));
	TRY(ggu_cursor_u64(c, &t.offset));
	s = ggu_tensor_check(&t, &at, c->err);
	/* zeros, as an unfinished download leaves them, are no entries: reading ends with the first */
	if (!t.name_bytes && !t.n_dims && !t.type && !t.offset)
		return s;
	if (s != GGU_OK)
		return ggu_tolerate(c->lenient, s, c->err);
	s = ggu_table_append(x, &t, &dup);
	if (s != GGU_OK)
		return ggu_fail(c->err, s, t.entry, t.name, "out of memory");
	if (!dup)
		return GGU_OK;
	s = ggu_rule(c->err, GGU_RULE_NAME_TWICE, ggu_fail(c->err, GGU_ERR_FORMAT, t.entry, t.name,
		"duplicate tensor name"));
	return ggu_tolerate(c->lenient, s, c->err);
}
