/* SPDX-License-Identifier: MIT
 * meta.c - ordered key/value pairs with hashed look-up.
 *
 * Pairs are in one array, in order, their keys and values in an arena. A value that is replaced stays in the arena
 * until the meta is freed, since programs set only a handful of keys, once. */
#include <stdlib.h>
#include <string.h>
#include "f32.h"
#include "grow.h"
#include "internal.h"

struct ggu_meta *ggu_meta_new(void)
{
	return calloc(1, sizeof(struct ggu_meta));
}

void ggu_meta_free(struct ggu_meta *m)
{
	if (!m)
		return;
	ggu_arena_free(&m->arena);
	ggu_index_free(&m->index);
	free(m->kv);
	free(m);
}

size_t ggu_meta_count(const struct ggu_meta *m) { return m->n; }

const struct ggu_kv *ggu_meta_at(const struct ggu_meta *m, size_t i)
{
	return i < m->n ? &m->kv[i] : NULL;
}

static struct ggu_str key_of(const void *list, size_t i)
{
	return ((const struct ggu_meta *)list)->kv[i].key;
}

static struct ggu_kv *find(const struct ggu_meta *m, const char *key, size_t n)
{
	size_t i = ggu_index_find(&m->index, m, key_of, key, n);
	return i == SIZE_MAX ? NULL : &m->kv[i];
}

const struct ggu_kv *ggu_meta_find(const struct ggu_meta *m, const char *key)
{
	return find(m, key, strlen(key));
}

enum ggu_status ggu_meta_append(struct ggu_meta *m, const struct ggu_kv *kv)
{
	struct ggu_kv *p = ggu_grow(m->kv, m->n, sizeof *p);

	if (!p)
		return GGU_ERR_NOMEM;
	m->kv = p;
	m->kv[m->n] = *kv;
	if (!ggu_index_add(&m->index, m, key_of, m->n))
		return GGU_ERR_NOMEM;
	m->n++;
	return GGU_OK;
}

/* ---- looking ---- */

struct ggu_str ggu_kv_key(const struct ggu_kv *kv) { return kv->key; }
enum ggu_kv_type ggu_kv_type(const struct ggu_kv *kv) { return kv->type; }
uint64_t ggu_kv_offset(const struct ggu_kv *kv) { return kv->offset; }
enum ggu_kv_type ggu_kv_item_type(const struct ggu_kv *kv) { return kv->item_type; }
size_t ggu_kv_n(const struct ggu_kv *kv) { return kv->n; }

const void *ggu_kv_data(const struct ggu_kv *kv)
{
	if (!ggu_kv_type_bytes(kv->item_type))
		return NULL;
	return kv->type == GGU_ARRAY ? kv->v.items : kv->v.scalar;
}

/* Item i as a signed or unsigned 64-bit number or a double. */
struct number { enum { N_NONE, N_UINT, N_INT, N_FLOAT } sort; uint64_t u; int64_t i; double f; };

#define GET(T, name, field) case name: { T x; memcpy(&x, p, sizeof x); n.field = x; } break
static struct number number(const struct ggu_kv *kv, size_t i)
{
	struct number n = { N_NONE, 0, 0, 0 };
	const unsigned char *p = ggu_kv_data(kv);

	if (!p || i >= kv->n)
		return n;
	p += i*ggu_kv_type_bytes(kv->item_type);
	switch (kv->item_type) {
	GET(uint8_t, GGU_U8, u); GET(uint16_t, GGU_U16, u); GET(uint32_t, GGU_U32, u); GET(uint64_t, GGU_U64, u);
	GET(uint8_t, GGU_BOOL, u);
	GET(int8_t, GGU_I8, i); GET(int16_t, GGU_I16, i); GET(int32_t, GGU_I32, i); GET(int64_t, GGU_I64, i);
	GET(float, GGU_F32, f); GET(double, GGU_F64, f);
	default:
		return n;
	}
	switch (kv->item_type) {
	case GGU_I8: case GGU_I16: case GGU_I32: case GGU_I64:
		n.sort = N_INT;
		break;
	case GGU_F32: case GGU_F64:
		n.sort = N_FLOAT;
		break;
	default:
		n.sort = N_UINT;
	}
	return n;
}
#undef GET

bool ggu_kv_int(const struct ggu_kv *kv, size_t i, int64_t *v)
{
	struct number n = number(kv, i);

	if (n.sort == N_INT)
		*v = n.i;
	else if (n.sort == N_UINT && n.u <= INT64_MAX)
		*v = (int64_t)n.u;
	else
		return false;
	return true;
}

bool ggu_kv_uint(const struct ggu_kv *kv, size_t i, uint64_t *v)
{
	struct number n = number(kv, i);

	if (n.sort == N_UINT)
		*v = n.u;
	else if (n.sort == N_INT && n.i >= 0)
		*v = (uint64_t)n.i;
	else
		return false;
	return true;
}

bool ggu_kv_float(const struct ggu_kv *kv, size_t i, double *v)
{
	struct number n = number(kv, i);

	if (n.sort == N_NONE)
		return false;
	*v = n.sort == N_FLOAT ? n.f : n.sort == N_INT ? (double)n.i : (double)n.u;
	return true;
}

bool ggu_kv_bool(const struct ggu_kv *kv, size_t i, bool *v)
{
	struct number n = number(kv, i);

	if (kv->item_type != GGU_BOOL || n.sort != N_UINT)
		return false;
	*v = n.u != 0;
	return true;
}

bool ggu_kv_str(const struct ggu_kv *kv, size_t i, struct ggu_str *v)
{
	if (kv->item_type != GGU_STRING || i >= kv->n)
		return false;
	*v = kv->type == GGU_ARRAY ? kv->v.strs[i] : kv->v.str;
	return true;
}

const struct ggu_kv *ggu_kv_sub(const struct ggu_kv *kv, size_t i)
{
	return kv->type == GGU_ARRAY && kv->item_type == GGU_ARRAY && i < kv->n ? &kv->v.subs[i] : NULL;
}

#define BY_KEY(name, T) \
	bool ggu_meta_##name(const struct ggu_meta *m, const char *key, T *v) \
	{ \
		const struct ggu_kv *kv = ggu_meta_find(m, key); \
		return kv && kv->type != GGU_ARRAY && ggu_kv_##name(kv, 0, v); \
	}
BY_KEY(uint, uint64_t)
BY_KEY(int, int64_t)
BY_KEY(float, double)
BY_KEY(bool, bool)
BY_KEY(str, struct ggu_str)
#undef BY_KEY

/* ---- setting ---- */

static enum ggu_status put(struct ggu_meta *m, const char *key, size_t key_n, struct ggu_kv *kv)
{
	struct ggu_kv *old = find(m, key, key_n);

	if (old) {
		kv->key = old->key;
		kv->offset = old->offset;
		*old = *kv;
		return GGU_OK;
	}
	if (!key_n || key_n > GGU_KEY_MAX || memchr(key, 0, key_n))
		return GGU_ERR_RANGE;
	kv->key = (struct ggu_str){ ggu_arena_str(&m->arena, key, key_n), key_n };
	kv->offset = GGU_NO_OFFSET;
	return kv->key.p ? ggu_meta_append(m, kv) : GGU_ERR_NOMEM;
}

static enum ggu_status put_scalar(struct ggu_meta *m, const char *key, enum ggu_kv_type t, const void *v)
{
	struct ggu_kv kv = { .type = (uint8_t)t, .item_type = (uint8_t)t, .n = 1 };

	memcpy(kv.v.scalar, v, ggu_kv_type_bytes(t));
	return put(m, key, strlen(key), &kv);
}

#define STORE(T) do { T x = (T)v; return put_scalar(m, key, t, &x); } while (0)
enum ggu_status ggu_meta_set_uint(struct ggu_meta *m, const char *key, enum ggu_kv_type t, uint64_t v)
{
	switch (t) {
	case GGU_U8: case GGU_U16: case GGU_U32:
		if (v >> 8*ggu_kv_type_bytes(t))
			return GGU_ERR_RANGE;
		break;
	case GGU_U64:
		break;
	case GGU_I8: case GGU_I16: case GGU_I32: case GGU_I64:
		return v <= INT64_MAX ? ggu_meta_set_int(m, key, t, (int64_t)v) : GGU_ERR_RANGE;
	default:
		return GGU_ERR_TYPE;
	}
	switch (t) {
	case GGU_U8: STORE(uint8_t);
	case GGU_U16: STORE(uint16_t);
	case GGU_U32: STORE(uint32_t);
	default: STORE(uint64_t);
	}
}

enum ggu_status ggu_meta_set_int(struct ggu_meta *m, const char *key, enum ggu_kv_type t, int64_t v)
{
	switch (t) {
	case GGU_I8: case GGU_I16: case GGU_I32: {
		int64_t top = (INT64_C(1) << (8*ggu_kv_type_bytes(t) - 1)) - 1;
		if (v > top || v < -top - 1)
			return GGU_ERR_RANGE;
		break;
	}
	case GGU_I64:
		break;
	case GGU_U8: case GGU_U16: case GGU_U32: case GGU_U64:
		return v >= 0 ? ggu_meta_set_uint(m, key, t, (uint64_t)v) : GGU_ERR_RANGE;
	default:
		return GGU_ERR_TYPE;
	}
	switch (t) {
	case GGU_I8: STORE(int8_t);
	case GGU_I16: STORE(int16_t);
	case GGU_I32: STORE(int32_t);
	default: STORE(int64_t);
	}
}

enum ggu_status ggu_meta_set_float(struct ggu_meta *m, const char *key, enum ggu_kv_type t, double v)
{
	switch (t) {
	case GGU_F32:                   /* what is a little above FLT_MAX is rounded to it */
		if (f32_overflows(v))
			return GGU_ERR_RANGE;
		STORE(float);
	case GGU_F64: STORE(double);
	default: return GGU_ERR_TYPE;
	}
}
#undef STORE

enum ggu_status ggu_meta_set_bool(struct ggu_meta *m, const char *key, bool v)
{
	uint8_t x = v;
	return put_scalar(m, key, GGU_BOOL, &x);
}

enum ggu_status ggu_meta_set_str(struct ggu_meta *m, const char *key, const char *s, size_t n)
{
	struct ggu_kv kv = { .type = GGU_STRING, .item_type = GGU_STRING, .n = 1 };

	kv.v.str = (struct ggu_str){ ggu_arena_str(&m->arena, s, n), n };
	return kv.v.str.p ? put(m, key, strlen(key), &kv) : GGU_ERR_NOMEM;
}

/* Copies n items into the arena: numbers, strings, or nested arrays. */
static enum ggu_status copy_items(struct ggu_meta *m, struct ggu_kv *kv, const void *items)
{
	size_t width = ggu_kv_type_bytes(kv->item_type), n = kv->n;
	uint64_t bytes;

	if (!width)
		width = kv->item_type == GGU_STRING ? sizeof(struct ggu_str) : sizeof(struct ggu_kv);
	if (!ggu_mul(n, width, &bytes))
		return GGU_ERR_RANGE;
	void *p = ggu_arena_alloc(&m->arena, (size_t)bytes);
	if (!p)
		return GGU_ERR_NOMEM;
	if (n)
		memcpy(p, items, (size_t)bytes);
	if (kv->item_type == GGU_STRING)
		for (struct ggu_str *s = p; n--; s++)
			if (!(s->p = ggu_arena_str(&m->arena, s->p, s->n)))
				return GGU_ERR_NOMEM;
	if (kv->item_type == GGU_ARRAY)         /* as deep as the source was, at most GGU_ARRAY_DEPTH_MAX */
		for (struct ggu_kv *k = p; n--; k++)
			TRY(copy_items(m, k, k->v.items));
	kv->v.items = p;
	return GGU_OK;
}

/* How deep arrays are nested in kv: 1 for an array of numbers. */
static int depth(const struct ggu_kv *kv)
{
	int most = 0;

	if (kv->type != GGU_ARRAY)
		return 0;
	for (size_t i = 0; kv->item_type == GGU_ARRAY && i < kv->n; i++) {
		int d = depth(&kv->v.subs[i]);
		most = d > most ? d : most;
	}
	return most + 1;
}

enum ggu_status ggu_meta_set_array(struct ggu_meta *m, const char *key, enum ggu_kv_type item, const void *items,
	size_t n)
{
	struct ggu_kv kv = { .type = GGU_ARRAY, .item_type = (uint8_t)item, .n = n };
	const uint8_t *b = items;

	if (!ggu_kv_type_bytes(item))
		return GGU_ERR_TYPE;
	for (size_t i = 0; item == GGU_BOOL && i < n; i++)
		if (b[i] > 1)
			return GGU_ERR_RANGE;
	TRY(copy_items(m, &kv, items));
	return put(m, key, strlen(key), &kv);
}

enum ggu_status ggu_meta_set_strs(struct ggu_meta *m, const char *key, const struct ggu_str *items, size_t n)
{
	struct ggu_kv kv = { .type = GGU_ARRAY, .item_type = GGU_STRING, .n = n };

	TRY(copy_items(m, &kv, items));
	return put(m, key, strlen(key), &kv);
}

enum ggu_status ggu_meta_set_arrays(struct ggu_meta *m, const char *key, const struct ggu_kv *const *items, size_t n)
{
	struct ggu_kv kv = { .type = GGU_ARRAY, .item_type = GGU_ARRAY, .n = n };
	struct ggu_kv *subs = n <= SIZE_MAX/2/sizeof *subs ? ggu_arena_alloc(&m->arena, n*sizeof *subs) : NULL;

	if (!subs)
		return GGU_ERR_NOMEM;
	for (size_t i = 0; i < n; i++) {
		if (items[i]->type != GGU_ARRAY)
			return GGU_ERR_TYPE;
		if (depth(items[i]) >= GGU_ARRAY_DEPTH_MAX)
			return GGU_ERR_RANGE;
		subs[i] = *items[i];
		subs[i].key = (struct ggu_str){ "", 0 };
		subs[i].offset = GGU_NO_OFFSET;
		TRY(copy_items(m, &subs[i], items[i]->v.items));
	}
	kv.v.subs = subs;
	return put(m, key, strlen(key), &kv);
}

enum ggu_status ggu_meta_set_kv(struct ggu_meta *m, const struct ggu_kv *from)
{
	struct ggu_kv kv = *from;
	struct ggu_str key = from->key;

	if (kv.type == GGU_ARRAY)
		TRY(copy_items(m, &kv, from->v.items));
	else if (kv.type == GGU_STRING) {
		kv.v.str.p = ggu_arena_str(&m->arena, kv.v.str.p, kv.v.str.n);
		if (!kv.v.str.p)
			return GGU_ERR_NOMEM;
	}
	return put(m, key.p, key.n, &kv);
}

enum ggu_status ggu_meta_copy(struct ggu_meta **to, const struct ggu_meta *from)
{
	struct ggu_meta *m = ggu_meta_new();
	enum ggu_status status = m ? GGU_OK : GGU_ERR_NOMEM;

	for (size_t i = 0; status == GGU_OK && i < from->n; i++)
		status = ggu_meta_set_kv(m, &from->kv[i]);
	if (status == GGU_OK)
		*to = m;
	else
		ggu_meta_free(m);
	return status;
}

/* Positions or keys have changed: enters all of them again, into the existing slots, so that nothing can fail. */
static void enter_again(struct ggu_meta *m)
{
	memset(m->index.slot, 0, m->index.n_slots*sizeof *m->index.slot);
	m->index.n = 0;
	for (size_t i = 0; i < m->n; i++)
		ggu_index_add(&m->index, m, key_of, i);
}

bool ggu_meta_remove(struct ggu_meta *m, const char *key)
{
	struct ggu_kv *kv = find(m, key, strlen(key));

	if (!kv)
		return false;
	memmove(kv, kv + 1, (size_t)(m->kv + m->n - kv - 1)*sizeof *kv);
	m->n--;
	enter_again(m);
	return true;
}

enum ggu_status ggu_meta_rename(struct ggu_meta *m, const char *key, const char *to)
{
	struct ggu_kv *kv = find(m, key, strlen(key)), *other = find(m, to, strlen(to));
	size_t n = strlen(to);
	char *name;

	if (!kv)
		return GGU_ERR_MISSING;
	if (other)
		return other == kv ? GGU_OK : GGU_ERR_STATE;
	if (!n || n > GGU_KEY_MAX)
		return GGU_ERR_RANGE;
	name = ggu_arena_str(&m->arena, to, n);
	if (!name)
		return GGU_ERR_NOMEM;
	kv->key = (struct ggu_str){ name, n };
	enter_again(m);
	return GGU_OK;
}
