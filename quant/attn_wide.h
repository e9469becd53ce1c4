/* SPDX-License-Identifier: MIT
 * attn_wide.h - makes floats of a tile's keys and values; part of attn_text.h.
 *
 * Keys as floats are transposed: dimensions are rows of ATTN_BLOCK positions, so that lanes are positions. The numbers
 * are those of quant_decode, as d*q is exact. */

static void wide_halves(const void *src, size_t n, bool bf16, float *to)
{
	const char *s = src;
	size_t i = 0;
	for (; i + REG <= n; i += REG) r_put(to + i, bf16 ? r_bf16(s + 2*i) : r_f16(s + 2*i));
	for (; i < n; i++) {
		uint16_t h;
		memcpy(&h, s + 2*i, 2);
		to[i] = bf16 ? kern_bf16_to_f32(h) : kern_f16_to_f32(h);
	}
}

/* ---- keys ---- */

/* Stores REG positions of two neighbouring dimensions, whose codes are pairs. */
INLINE void put_pairs(enum form form, rs pairs, rf d, rf m, float *k)
{
	ri even = (ri)pairs << 16 >> 16, odd = (ri)pairs >> 16;
	if (form == CODES_4) { even -= 8; odd -= 8; }
	r_put(k, has_minima(form) ? d*r_int(even) + m : d*r_int(even));
	r_put(k + ATTN_BLOCK, has_minima(form) ? d*r_int(odd) + m : d*r_int(odd));
}
/* 32 dimensions of all positions, from the block of codes at b */
INLINE void k_block(enum form form, const char *b, float *k)
{
	float d[2*ATTN_BLOCK] = { 0 };
	uint32_t bits[2*ATTN_BLOCK];
	begin_block(form, b, d, bits);
	for (size_t p = 0; p < ATTN_BLOCK; p += REG) {
		const char *q = b + (has_minima(form) ? 4 : 1)*ROW + 2*p;
		rf scale = r_floats(d + p), m = r_floats(d + ATTN_BLOCK + p);
		for (size_t i = 0; i < (form == CODES_8 ? 16 : 8); i++, q += ROW) {
			float *to = k + 2*i*ATTN_BLOCK + p;
			rs x = form == CODES_8 ? r_i8_pairs(q) : r_u8_pairs(q), low = x & 15, high = x >> 4;
			if (form == CODES_8) {
				put_pairs(form, x, scale, m, to);
				continue;
			}
			if (form == CODES_5) {
				low |= fifth(bits + p, i);
				high |= fifth(bits + ATTN_BLOCK + p, i);
			}
			put_pairs(form, low, scale, m, to);
			put_pairs(form, high, scale, m, to + 16*ATTN_BLOCK);
		}
	}
}
/* All dimensions, from I16 */
static void k_integers(const char *b, size_t dim, float *k)
{
	for (size_t i = 0, n; i < dim; i += n, k += n*ATTN_BLOCK) {
		float d[ATTN_BLOCK];
		n = size_least(dim - i, ATTN_SHARE);
		memcpy(d, b, sizeof d);
		b += sizeof d;
		for (size_t j = 0; j < n; j += 2, b += 2*ROW)
			for (size_t p = 0; p < ATTN_BLOCK; p += REG)
				put_pairs(CODES_16, (rs)r_load(b + 4*p), r_floats(d + p), (rf){ 0 },
					k + j*ATTN_BLOCK + p);
	}
}
static void wide_k(uint32_t type, const void *src, size_t dim, float *k)
{
	const char *b = src;
	if (type == GGU_TYPE_I16) {
		k_integers(b, size_up(dim, ATTN_LANES), k);
		return;
	}
	if (type == GGU_TYPE_F16 || type == GGU_TYPE_BF16) {
		wide_halves(src, dim*ATTN_BLOCK, type == GGU_TYPE_BF16, k);
		return;
	}
	for (size_t i = 0; i < dim/32; i++, k += 32*ATTN_BLOCK) {
		if (type == GGU_TYPE_Q8_0) k_block(CODES_8, b + i*ATTN_BLOCK*sizeof(struct q8_0), k);
		else if (type == GGU_TYPE_Q4_0) k_block(CODES_4, b + i*ATTN_BLOCK*sizeof(struct q4_0), k);
		else k_block(CODES_5, b + i*ATTN_BLOCK*sizeof(struct q5_1), k);
	}
}

/* ---- values ---- */

static void wide_v(uint32_t type, const void *src, size_t dim, size_t n_pos, float *v, size_t v_wide)
{
	const char *s = src;
	size_t bytes = type == GGU_TYPE_F32 ? 4*dim : 2*dim;
	for (size_t p = 0; p < n_pos; p++, v += v_wide, s += bytes) {
		if (type == GGU_TYPE_F32) memcpy(v, s, bytes);
		else wide_halves(s, dim, type == GGU_TYPE_BF16, v);
	}
}
/* Values that are the front of keys: transposed back, in squares of 16, so that lines are used while they are in L1 */
static void turn_k(const float *k, size_t dim, size_t n_pos, float *v, size_t v_wide)
{
	for (size_t j0 = 0; j0 < dim; j0 += 16)
		for (size_t p0 = 0; p0 < n_pos; p0 += 16)
			for (size_t p = p0; p < p0 + 16; p++)
				for (size_t j = j0; j < j0 + 16 && j < dim; j++) v[p*v_wide + j] = k[j*ATTN_BLOCK + p];
}
