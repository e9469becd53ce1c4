/* SPDX-License-Identifier: MIT
 * types.c - the tables of tensor types, made of qtypes.def, and of metadata types: by number and by name. */
#include "internal.h"
#include "text.h"
#include "types.h"

static const struct ggu_type_info types[GGU_TYPE_COUNT] = {
#define QTYPE(id, NAME, name, weights, bytes, swap, kind) [id] = { name, id, weights, bytes, GGU_KIND_##kind },
#include "qtypes.def"
#undef QTYPE
};

static const char *const swaps[GGU_TYPE_COUNT] = {
#define QTYPE(id, NAME, name, weights, bytes, swap, kind) [id] = swap,
#include "qtypes.def"
#undef QTYPE
};

const char *ggu_type_swap(uint32_t id) { return swaps[id]; }
uint32_t ggu_type_end(void) { return GGU_TYPE_COUNT; }

const struct ggu_type_info *ggu_type_info(uint32_t id)
{
	return id < GGU_TYPE_COUNT && types[id].name ? &types[id] : NULL;
}

const struct ggu_type_info *ggu_type_find(const char *name)
{
	for (int i = 0; i < GGU_TYPE_COUNT; i++)
		if (types[i].name && text_same(types[i].name, name))
			return &types[i];
	return NULL;
}

bool ggu_type_bytes(uint32_t id, uint64_t n_weights, uint64_t *bytes)
{
	const struct ggu_type_info *t = ggu_type_info(id);
	uint64_t n;

	if (!t || n_weights % t->block_weights || !ggu_mul(n_weights/t->block_weights, t->block_bytes, &n))
		return false;
	*bytes = n;
	return true;
}

static const struct { const char *name; uint8_t bytes; } kv_types[GGU_KV_TYPE_COUNT] = {
	[GGU_U8] = { "u8", 1 }, [GGU_I8] = { "i8", 1 }, [GGU_U16] = { "u16", 2 }, [GGU_I16] = { "i16", 2 },
	[GGU_U32] = { "u32", 4 }, [GGU_I32] = { "i32", 4 }, [GGU_F32] = { "f32", 4 }, [GGU_BOOL] = { "bool", 1 },
	[GGU_STRING] = { "str", 0 }, [GGU_ARRAY] = { "arr", 0 }, [GGU_U64] = { "u64", 8 }, [GGU_I64] = { "i64", 8 },
	[GGU_F64] = { "f64", 8 },
};

const char *ggu_kv_type_name(enum ggu_kv_type t)
{
	return (unsigned)t < GGU_KV_TYPE_COUNT ? kv_types[t].name : "unknown";
}

size_t ggu_kv_type_bytes(enum ggu_kv_type t)
{
	return (unsigned)t < GGU_KV_TYPE_COUNT ? kv_types[t].bytes : 0;
}
