/* SPDX-License-Identifier: MIT
 * attn_store.c - the blocks of a cache: their layout, and storing and loading positions.
 *
 * A block has, for each key-value head, its keys and then its values. Keys that are numbers are transposed: a row of
 * ATTN_BLOCK positions for each dimension. Values that are numbers are not: a row of dimensions for each position.
 * Blocks of codes are transposed two codes at a time: the two are from neighbouring dimensions of keys, or from
 * neighbouring positions of values. attn_outer.h has the picture. */
#include <string.h>
#include "../libgguf/size.h"
#include "attn_internal.h"
#include "mul.h"
#include "quant.h"

/* The fields into which a block of the type, or a number, is divided. As a key it is fields of `key` bytes; as a value,
 * it is `scales` fields of `scale` bytes, and then codes of `code` bytes. weights: of a block; I16's last one may have
 * fewer, in whole vectors. */
struct fields { uint32_t type; size_t weights, key, scales, scale, code; };
static const struct fields all_fields[] = {
	{ GGU_TYPE_F32, 1, 4, 0, 0, 0 }, { GGU_TYPE_F16, 1, 2, 0, 0, 0 }, { GGU_TYPE_BF16, 1, 2, 0, 0, 0 },
	{ GGU_TYPE_Q8_0, 32, 2, 1, 2, 1 }, { GGU_TYPE_Q5_1, 32, 2, 4, 2, 1 }, { GGU_TYPE_Q4_0, 32, 2, 1, 2, 1 },
	{ GGU_TYPE_I16, ATTN_SHARE, 4, 1, sizeof(float), 2 },
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
	return f && dim > 0 && (type == GGU_TYPE_I16 || dim % f->weights == 0);
}

size_t attn_row_bytes(uint32_t type, size_t dim)
{
	const struct ggu_type_info *t = ggu_type_info(type);
	if (type == GGU_TYPE_I16)
		return size_parts(dim, ATTN_SHARE)*sizeof(float) + size_up(dim, ATTN_LANES)*sizeof(int16_t);
	return size_parts(dim, t->block_weights)*t->block_bytes;
}
static size_t k_bytes(const struct attn_shape *s) { return attn_row_bytes(s->k_type, s->k_dim)*ATTN_BLOCK; }
size_t attn_head_bytes(const struct attn_shape *s)
{
	return k_bytes(s) + (s->v_in_k ? 0 : attn_row_bytes(s->v_type, s->v_dim)*ATTN_BLOCK);
}
size_t attn_block_bytes(const struct attn_shape *s) { return s->n_kv*attn_head_bytes(s); }

/* ---- between blocks of the type, one for each position, and rows of their fields ---- */

enum { CHUNK = 128, CHUNK_BYTES = 4*CHUNK };    /* dimensions at a time, of all positions */

/* Copies a field of `width` bytes of n positions, from `at` on, between `flat`, where positions are CHUNK_BYTES apart,
 * and `transposed`, where they are adjacent; to `flat` if `back`. Returns what follows the field in `transposed`. */
static inline uint8_t *transpose(size_t width, size_t n, uint8_t *flat, uint8_t *transposed, size_t at, bool back)
{
	for (size_t p = 0; p < n; p++) {
		uint8_t *there = transposed + (at + p)*width;
		if (back) memcpy(flat + p*CHUNK_BYTES, there, width);
		else memcpy(there, flat + p*CHUNK_BYTES, width);
	}
	return transposed + width*ATTN_BLOCK;
}
/* The same for `width` bytes of codes, where those of two neighbouring positions alternate. */
static inline uint8_t *transpose_codes(size_t code, size_t width, size_t n, uint8_t *flat, uint8_t *transposed,
	size_t at, bool back)
{
	for (size_t p = at; p < at + n; p++, flat += CHUNK_BYTES) {
		uint8_t *there = transposed + p/2*2*width + p%2*code;
		if (back) for (size_t i = 0; i < width; i += code) memcpy(flat + i, there + 2*i, code);
		else for (size_t i = 0; i < width; i += code) memcpy(there + 2*i, flat + i, code);
	}
	return transposed + width*ATTN_BLOCK;
}
/* Fields of keys of n positions. Eights of four bytes are transposed as those of a panel are. */
static void transpose_keys(const struct fields *f, size_t dims, size_t n, uint8_t *flat, uint8_t *keys, size_t at,
	bool back)
{
	const size_t fields = attn_row_bytes(f->type, dims)/f->key,
		eights = f->key == 4 && !back && at%8 == 0 && n%8 == 0 ? fields/8*8 : 0;
	for (size_t p = 0; p < n && eights; p += 8)
		mul_panel_32->pairs((const void *)(flat + p*CHUNK_BYTES), CHUNK_BYTES/sizeof(int16_t), at + p, 8,
			ATTN_BLOCK, eights, (void *)keys);
	flat += eights*f->key;
	keys += eights*f->key*ATTN_BLOCK;
	for (size_t i = eights; i < fields; i++, flat += f->key)
		keys = f->key == 4 ? transpose(4, n, flat, keys, at, back) : transpose(2, n, flat, keys, at, back);
}
static void transpose_values(const struct fields *f, size_t dims, size_t n, uint8_t *flat, uint8_t *values, size_t at,
	bool back)
{
	for (size_t b = 0; b < dims; b += f->weights) {
		size_t codes = attn_row_bytes(f->type, size_least(f->weights, dims - b)) - f->scales*f->scale;
		for (size_t i = 0; i < f->scales; i++, flat += f->scale)
			values = f->scale == 4 ? transpose(4, n, flat, values, at, back) :
				transpose(2, n, flat, values, at, back);
		values = f->code == 2 ? transpose_codes(2, codes, n, flat, values, at, back) :
			transpose_codes(1, codes, n, flat, values, at, back);
		flat += codes;
	}
}

/* ---- storing ---- */

/* One position's numbers, at most CHUNK for I16, to the type's blocks; and back */
static void encode(uint32_t type, const float *x, size_t n, uint8_t *to)
{
	int16_t q[CHUNK];
	float d;
	if (type == GGU_TYPE_F32) {
		memcpy(to, x, n*sizeof *x);
		return;
	}
	if (type != GGU_TYPE_I16) {
		quant_encode(type, NULL, x, NULL, 1, n, QUANT_EFFORT_MIN, to);
		return;
	}
	d = quant_attn_table->integers(x, n, q);
	memcpy(to, &d, sizeof d);
	memcpy(to + sizeof d, q, attn_row_bytes(type, n) - sizeof d);
}
static void decode(uint32_t type, const uint8_t *from, float *x, size_t n)
{
	float d;
	if (type != GGU_TYPE_I16) {
		quant_decode(type, from, x, n);
		return;
	}
	memcpy(&d, from, sizeof d);
	for (size_t i = 0; i < n; i++) {
		int16_t q;
		memcpy(&q, from + sizeof d + i*sizeof q, sizeof q);
		x[i] = d*(float)q;
	}
}
static void store_transposed(bool is_key, const struct fields *f, size_t dim, uint8_t *to, size_t at, size_t n,
	const float *x, size_t stride)
{
	_Alignas(64) uint8_t flat[ATTN_BLOCK*CHUNK_BYTES];
	for (size_t i = 0; i < dim; i += CHUNK) {
		size_t c = dim - i < CHUNK ? dim - i : CHUNK;
		uint8_t *chunk = to + attn_row_bytes(f->type, i)*ATTN_BLOCK;
		for (size_t p = 0; p < n; p++) encode(f->type, x + p*stride + i, c, flat + p*CHUNK_BYTES);
		if (is_key) transpose_keys(f, c, n, flat, chunk, at, false);
		else transpose_values(f, c, n, flat, chunk, at, false);
	}
}
static void store_values(const struct fields *f, size_t dim, uint8_t *values, size_t at, size_t n, const float *v,
	size_t stride)
{
	size_t row = attn_row_bytes(f->type, dim);
	if (f->weights > 1) store_transposed(false, f, dim, values, at, n, v, stride);
	else for (size_t p = 0; p < n; p++)
		encode(f->type, v + p*stride, dim, values + (at + p)*row);
}
void attn_store(const struct attn_shape *s, void *const *block, size_t pos, size_t n, const float *k, size_t k_stride,
	const float *v, size_t v_stride)
{
	const struct fields *keys = fields_of(s->k_type), *values = s->v_in_k ? NULL : fields_of(s->v_type);
	for (size_t i = 0, some; i < n; i += some) {
		uint8_t *b = block[(pos + i)/ATTN_BLOCK];
		size_t at = (pos + i) % ATTN_BLOCK;
		some = n - i < ATTN_BLOCK - at ? n - i : ATTN_BLOCK - at;
		for (size_t h = 0; h < s->n_kv; h++, b += attn_head_bytes(s)) {
			store_transposed(true, keys, s->k_dim, b, at, some, k + i*k_stride + h*s->k_dim, k_stride);
			if (values) store_values(values, s->v_dim, b + k_bytes(s), at, some,
				v + i*v_stride + h*s->v_dim, v_stride);
		}
	}
}

/* Loads n of the dim dimensions of position `at`, which are stored transposed. */
static void load_transposed(bool is_key, const struct fields *f, size_t dim, uint8_t *from, size_t at, float *x,
	size_t n)
{
	uint8_t flat[CHUNK_BYTES];
	for (size_t i = 0; i < n; i += CHUNK) {
		float wide[CHUNK];
		size_t c = dim - i < CHUNK ? dim - i : CHUNK;
		uint8_t *chunk = from + attn_row_bytes(f->type, i)*ATTN_BLOCK;
		if (is_key) transpose_keys(f, c, 1, flat, chunk, at, true);
		else transpose_values(f, c, 1, flat, chunk, at, true);
		decode(f->type, flat, wide, c);
		memcpy(x + i, wide, (n - i < c ? n - i : c)*sizeof *x);
	}
}
void attn_load(const struct attn_shape *s, void *const *block, size_t pos, size_t head, float *k, float *v)
{
	uint8_t *keys = (uint8_t *)block[pos/ATTN_BLOCK] + head*attn_head_bytes(s), *values = keys + k_bytes(s);
	size_t at = pos % ATTN_BLOCK;
	if (k) load_transposed(true, fields_of(s->k_type), s->k_dim, keys, at, k, s->k_dim);
	if (v && s->v_in_k) load_transposed(true, fields_of(s->k_type), s->k_dim, keys, at, v, s->v_dim);
	else if (v && fields_of(s->v_type)->weights > 1)
		load_transposed(false, fields_of(s->v_type), s->v_dim, values, at, v, s->v_dim);
	else if (v) quant_decode(s->v_type, values + at*attn_row_bytes(s->v_type, s->v_dim), v, s->v_dim);
}
