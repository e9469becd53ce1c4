/* SPDX-License-Identifier: MIT
 * attn_store.c - blocks of a cache: their layout, and positions in and out.
 *
 * A block is, for each key-value head, its keys and then its values:
 *
 *   head 0: keys, turned (attn_wide.h) | values [ATTN_BLOCK][row of the type] | head 1: ... */
#include <string.h>
#include "attn_internal.h"
#include "quant.h"

/* A block of the type as fields of one width after fields of another: each becomes a row of positions. */
struct fields { uint32_t type; size_t weights, n_wide, wide, n_bytes; };
static const struct fields all_fields[] = {
	{ GGU_TYPE_F32, 1, 1, 4, 0 }, { GGU_TYPE_F16, 1, 1, 2, 0 }, { GGU_TYPE_BF16, 1, 1, 2, 0 },
	{ GGU_TYPE_Q8_0, 32, 1, 2, 32 }, { GGU_TYPE_Q5_1, 32, 2, 2, 20 }, { GGU_TYPE_Q4_0, 32, 1, 2, 16 },
};
static const struct fields *fields_of(uint32_t type)
{
	for (size_t i = 0; i < sizeof all_fields/sizeof *all_fields; i++)
		if (all_fields[i].type == type) return all_fields + i;
	return NULL;
}
bool attn_can_store(uint32_t type, size_t dim)
{
	const struct fields *f = fields_of(type);
	return f && dim > 0 && dim % f->weights == 0;
}

static size_t block_bytes(const struct fields *f) { return f->n_wide*f->wide + f->n_bytes; }
size_t attn_row_bytes(uint32_t type, size_t n)
{
	const struct fields *f = fields_of(type);
	return n/f->weights*block_bytes(f);
}
static size_t k_bytes(const struct attn_shape *s) { return attn_row_bytes(s->k_type, s->k_dim)*ATTN_BLOCK; }
size_t attn_head_bytes(const struct attn_shape *s)
{
	return k_bytes(s) + (s->v_in_k ? 0 : attn_row_bytes(s->v_type, s->v_dim)*ATTN_BLOCK);
}
size_t attn_block_bytes(const struct attn_shape *s) { return s->n_kv*attn_head_bytes(s); }

/* ---- keys: between blocks of the type, one for each position, and rows of their fields ---- */

enum { CHUNK = 64, CHUNK_BYTES = 4*CHUNK };     /* dimensions at a time, of all positions */

/* n positions, their blocks CHUNK_BYTES apart in `flat`; `turned` is that of the first of them. */
static inline void turn(size_t width, size_t n_fields, size_t n, uint8_t *flat, uint8_t *turned, bool back)
{
	for (size_t i = 0; i < n_fields; i++, flat += width, turned += width*ATTN_BLOCK)
		for (size_t p = 0; p < n; p++) {
			if (back) memcpy(flat + p*CHUNK_BYTES, turned + p*width, width);
			else memcpy(turned + p*width, flat + p*CHUNK_BYTES, width);
		}
}
static void turn_blocks(const struct fields *f, size_t n_blocks, size_t n, uint8_t *flat, uint8_t *keys, size_t at,
	bool back)
{
	for (size_t b = 0; b < n_blocks; b++, flat += block_bytes(f), keys += block_bytes(f)*ATTN_BLOCK) {
		size_t wide = f->n_wide*f->wide;
		if (f->wide == 4) turn(4, f->n_wide, n, flat, keys + 4*at, back);
		else turn(2, f->n_wide, n, flat, keys + 2*at, back);
		turn(1, f->n_bytes, n, flat + wide, keys + wide*ATTN_BLOCK + at, back);
	}
}

/* ---- storing ---- */

static void encode(uint32_t type, const float *x, size_t n, void *to)
{
	quant_encode(type, NULL, x, NULL, 1, n, QUANT_EFFORT_MIN, to);
}
static void store_keys(uint32_t type, size_t dim, uint8_t *keys, size_t at, size_t n, const float *k, size_t stride)
{
	const struct fields *f = fields_of(type);
	uint8_t flat[ATTN_BLOCK*CHUNK_BYTES];
	for (size_t i = 0; i < dim; i += CHUNK) {
		size_t c = dim - i < CHUNK ? dim - i : CHUNK;
		for (size_t p = 0; p < n; p++) encode(type, k + p*stride + i, c, flat + p*CHUNK_BYTES);
		turn_blocks(f, c/f->weights, n, flat, keys + attn_row_bytes(type, i)*ATTN_BLOCK, at, false);
	}
}
void attn_store(const struct attn_shape *s, void *const *block, size_t pos, size_t n, const float *k, size_t k_stride,
	const float *v, size_t v_stride)
{
	if (s->v_in_k) v_stride = 0;
	for (size_t end = pos + n, some; pos < end; pos += some, k += some*k_stride, v += some*v_stride) {
		uint8_t *b = block[pos/ATTN_BLOCK];
		size_t at = pos % ATTN_BLOCK;
		some = end - pos < ATTN_BLOCK - at ? end - pos : ATTN_BLOCK - at;
		for (size_t h = 0; h < s->n_kv; h++) {
			uint8_t *keys = b + h*attn_head_bytes(s), *values = keys + k_bytes(s);
			store_keys(s->k_type, s->k_dim, keys, at, some, k + h*s->k_dim, k_stride);
			for (size_t p = 0; p < some && !s->v_in_k; p++)
				encode(s->v_type, v + p*v_stride + h*s->v_dim, s->v_dim,
					values + (at + p)*attn_row_bytes(s->v_type, s->v_dim));
		}
	}
}

void attn_load(const struct attn_shape *s, void *const *block, size_t pos, size_t head, float *k, float *v)
{
	const struct fields *f = fields_of(s->k_type);
	uint8_t *keys = (uint8_t *)block[pos/ATTN_BLOCK] + head*attn_head_bytes(s), flat[CHUNK_BYTES];
	size_t at = pos % ATTN_BLOCK, k_dim = k ? s->k_dim : v && s->v_in_k ? s->v_dim : 0;
	for (size_t i = 0; i < k_dim; i += CHUNK) {
		float wide[CHUNK];
		size_t c = s->k_dim - i < CHUNK ? s->k_dim - i : CHUNK;
		turn_blocks(f, c/f->weights, 1, flat, keys + attn_row_bytes(s->k_type, i)*ATTN_BLOCK, at, true);
		quant_decode(s->k_type, flat, wide, c);
		if (k) memcpy(k + i, wide, c*sizeof *k);
		if (v && s->v_in_k && i < s->v_dim)
			memcpy(v + i, wide, (s->v_dim - i < c ? s->v_dim - i : c)*sizeof *v);
	}
	if (v && !s->v_in_k)
		quant_decode(s->v_type, keys + k_bytes(s) + at*attn_row_bytes(s->v_type, s->v_dim), v, s->v_dim);
}
