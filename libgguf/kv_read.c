/* SPDX-License-Identifier: MIT
 * kv_read.c - one key/value pair of a header: checked, and copied into a meta's arena.
 *
 *   key: length u64, bytes | type u32 | value, an array being: item type u32, count u64, items */
#include <string.h>
#include "internal.h"
#include "text.h"
#include "types.h"

/* No file has more items, and no pipe brings them; their bytes can be counted. */
#define ITEMS_MAX (UINT64_C(1) << 56)

static enum ggu_status type_of(struct ggu_cursor *c, uint8_t *t)
{
	uint64_t at = c->at;
	uint32_t v;

	TRY(ggu_cursor_u32(c, &v));
	if (v >= GGU_KV_TYPE_COUNT)
		return ggu_rule(c->err, GGU_RULE_VALUE_TYPE, ggu_fail(c->err, GGU_ERR_FORMAT, at, c->where,
			"unknown value type %u", v));
	*t = (uint8_t)v;
	return GGU_OK;
}

static enum ggu_status array(struct ggu_cursor *c, struct ggu_arena *a, struct ggu_kv *kv, int depth);

/* Reads n items, each of `bytes` in memory, by a call for each. If the end of the source is not known, the list grows
 * with what arrives. */
static enum ggu_status list(struct ggu_cursor *c, struct ggu_arena *a, struct ggu_kv *kv, uint64_t n, int depth)
{
	bool strings = kv->item_type == GGU_STRING;
	size_t bytes = strings ? sizeof(struct ggu_str) : sizeof(struct ggu_kv);
	uint64_t first = c->s->size != UINT64_MAX || n < 4096 ? n : 4096;
	size_t room = (size_t)first;
	char *p = first <= SIZE_MAX/bytes ? ggu_arena_alloc(a, room*bytes) : NULL;

	for (size_t i = 0; p && i < n; i++) {
		if (i == room) {
			room = n - room < room ? (size_t)n : 2*room;
			p = ggu_arena_grow(a, p, i*bytes, room*bytes);
			if (!p)
				break;
		}
		if (strings) {
			TRY(ggu_cursor_str(c, a, UINT64_MAX, (struct ggu_str *)(void *)p + i));
		} else {
			struct ggu_kv *sub = (struct ggu_kv *)(void *)p + i;
			*sub = (struct ggu_kv){ .key = { "", 0 }, .offset = c->at, .type = GGU_ARRAY };
			TRY(array(c, a, sub, depth + 1));
		}
	}
	if (!p)
		return ggu_fail(c->err, GGU_ERR_NOMEM, c->at, c->where, "out of memory for %llu items",
			(unsigned long long)n);
	kv->v.items = p;
	return GGU_OK;
}

static enum ggu_status array(struct ggu_cursor *c, struct ggu_arena *a, struct ggu_kv *kv, int depth)
{
	uint64_t at = c->at, n;
	size_t width, item_bytes;
	void *p;

	if (depth >= GGU_ARRAY_DEPTH_MAX)
		return ggu_rule(c->err, GGU_RULE_DEPTH,
			ggu_fail(c->err, GGU_ERR_UNSUPPORTED, at, c->where, "arrays nested more than %d deep",
				GGU_ARRAY_DEPTH_MAX));
	TRY(type_of(c, &kv->item_type));
	at = c->at;
	TRY(ggu_cursor_u64(c, &n));
	width = ggu_kv_type_bytes(kv->item_type);
	/* a string takes at least its length; an array its type and count */
	item_bytes = width ? width : kv->item_type == GGU_STRING ? 8 : 12;
	if (n > ggu_cursor_left(c)/item_bytes || n > ITEMS_MAX)
		return ggu_rule(c->err, GGU_RULE_CUT,
			ggu_fail(c->err, GGU_ERR_TRUNCATED, at, c->where,
				"array of %llu item%s extends past the end of the file",
				(unsigned long long)n, text_s(n)));
	if (!width) {
		TRY(list(c, a, kv, n, depth));
	} else {
		TRY(ggu_cursor_numbers(c, a, n, width, &p));
		kv->v.items = p;
	}
	kv->n = (size_t)n;
	return GGU_OK;
}

static enum ggu_status value(struct ggu_cursor *c, struct ggu_arena *a, struct ggu_kv *kv)
{
	size_t width;
	void *p;

	TRY(type_of(c, &kv->type));
	if (kv->type == GGU_ARRAY)
		return array(c, a, kv, 0);
	kv->item_type = kv->type;
	kv->n = 1;
	if (kv->type == GGU_STRING)
		return ggu_cursor_str(c, a, UINT64_MAX, &kv->v.str);
	width = ggu_kv_type_bytes(kv->type);
	TRY(ggu_cursor_numbers(c, a, 1, width, &p));
	memcpy(kv->v.scalar, p, width);
	return GGU_OK;
}

/* at: of the first item */
static enum ggu_status bools(const struct ggu_cursor *c, const struct ggu_kv *kv, uint64_t at)
{
	const uint8_t *b = ggu_kv_data(kv);

	for (size_t i = 0; kv->item_type == GGU_BOOL && i < kv->n; i++)
		if (b[i] > 1)
			return ggu_rule(c->err, GGU_RULE_BOOL,
				ggu_fail(c->err, GGU_ERR_FORMAT, at + i, c->where, "bool is %u, neither 0 nor 1",
					b[i]));
	for (size_t i = 0; kv->item_type == GGU_ARRAY && i < kv->n; i++)
		TRY(bools(c, &kv->v.subs[i], kv->v.subs[i].offset + 12));   /* after type and count */
	return GGU_OK;
}

/* Checks a pair that was read as a whole. */
static enum ggu_status pair(const struct ggu_cursor *c, const struct ggu_meta *m, const struct ggu_kv *kv)
{
	const char *key = kv->key.p;

	if (!kv->key.n)
		return ggu_rule(c->err, GGU_RULE_KEY, ggu_fail(c->err, GGU_ERR_FORMAT, kv->offset, "", "empty key"));
	if (memchr(key, 0, kv->key.n))
		return ggu_rule(c->err, GGU_RULE_KEY, ggu_fail(c->err, GGU_ERR_FORMAT, kv->offset, key,
			"key contains a NUL byte"));
	TRY(bools(c, kv, kv->offset + 8 + kv->key.n + 4 + (kv->type == GGU_ARRAY ? 12 : 0)));
	if (ggu_meta_find(m, key))
		return ggu_rule(c->err, GGU_RULE_KEY_TWICE, ggu_fail(c->err, GGU_ERR_FORMAT, kv->offset, key,
			"duplicate key"));
	return GGU_OK;
}

enum ggu_status ggu_kv_read(struct ggu_cursor *c, struct ggu_meta *m)
{
	struct ggu_kv kv = { .offset = c->at };
	enum ggu_status s;

	c->where = "";
	TRY(ggu_cursor_str(c, &m->arena, GGU_KEY_MAX, &kv.key));
	c->where = kv.key.p;
	TRY(value(c, &m->arena, &kv));
	s = pair(c, m, &kv);
	if (!kv.key.n && kv.type == GGU_U8 && !*kv.v.scalar)    /* zeros are no pair: see ggu_table_read */
		return s;
	if (s != GGU_OK)
		return ggu_tolerate(c->lenient, s, c->err);
	s = ggu_meta_append(m, &kv);
	return s == GGU_OK ? s : ggu_fail(c->err, s, kv.offset, kv.key.p, "out of memory");
}
