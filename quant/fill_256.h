/* SPDX-License-Identifier: MIT
 * fill_256.h - fills panels straight from blocks, eight rows side by side in registers of 32 bytes: one text for x86
 * that defines the table FILL_TABLE. Types that are not in it are unpacked row by row (mul.c).
 *
 * Each lane of a register, 32 bits, belongs to a row. Sixteen bytes of each row are transposed as they are in the file,
 * while a byte still holds up to four codes: transposing unpacked int16 would be two to eight times the work. Masks and
 * shifts then leave the codes of four columns in each lane, in the order of columns 0, 2, 1, 3, so that those of a pair
 * of columns are every other byte. One vpmaddubsw widens and scales a pair: it multiplies bytes and adds products by
 * twos, of which one is zero, as the scale stands only beside the pair's codes.
 *
 * An instance first includes ymm_avx2.h, defines WIDTH, the outputs of its panels, and BY_32 (as in struct panel_table:
 * how panels have their minima), and
 *   put_pairs(to, column, p, q)     stores columns column, + 1 (p) and + 2, + 3 (q) of eight rows, as int16
 * If its panels have the codes of blocks of 32 as bytes, and so in the order of columns, it defines PUT_BYTES and
 *   put_bytes(to, column, c)        stores four columns of eight rows
 * `to` is the panel's block, plus 4*first bytes if the rows are its outputs first to first + 7. */
#include "fill_lanes.h"

/* ---- super-blocks ---- */

INLINE void put_floats(char *to, __m256 a) { _mm256_storeu_ps((float *)(void *)to, a); }
INLINE void put_d(char *to, enum mul_kind kind, __m256 d) { put_floats(to + mul_panel_d(kind, WIDTH), d); }
INLINE void put_m(char *to, enum mul_kind kind, __m256 m) { put_floats(to + mul_panel_m(kind, WIDTH), m); }
INLINE __m256 negative(__m256 a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
INLINE void put_minima(char *to, int line, __m256i mn)
{
	_mm256_storeu_si256((void *)(to + mul_panel_mn(MUL_256_MIN, WIDTH) + 4*WIDTH*(size_t)line), mn);
}
/* Stores the minima of eight times 32 columns, which are bytes 0 to 3 of each lane of mn[0], then of mn[1]. */
INLINE void put_minima_32(char *to, const __m256i mn[2])
{
	UNROLL for (int i = 0; i < 4; i++) {
		const __m256i m = mn[i/2];
		const int a = i%2*2, b = a + 1;
		if (BY_32) {
			put_minima(to, i, _mm256_setzero_si256());
			put_minima(to, 4 + i, words_at(m, a, b));
		} else {
			put_minima(to, 2*i, words_at(m, a, a));
			put_minima(to, 2*i + 1, words_at(m, b, b));
		}
	}
}
/* Stores the minima of sixteen times 16 columns, likewise. */
INLINE void put_minima_16(char *to, const __m256i mn[4])
{
	UNROLL for (int i = 0; i < 4; i++) {
		const __m256i odd = words_at(mn[i], 1, 3);
		if (BY_32) {
			put_minima(to, i, _mm256_sub_epi16(words_at(mn[i], 0, 2), odd));
			put_minima(to, 4 + i, odd);
		} else {
			put_minima(to, 2*i, words_at(mn[i], 0, 1));
			put_minima(to, 2*i + 1, words_at(mn[i], 2, 3));
		}
	}
}
/* Stores d and dmin, the lower and the upper half of each lane. */
INLINE void put_pair(char *to, __m256i pair)
{
	put_d(to, MUL_256_MIN, low_halves(pair));
	put_m(to, MUL_256_MIN, negative(high_halves(pair)));
}

/* Q4_K, with qh 0, and Q5_K, whose fifth bits are at qh. codec/q4_k.h has the layout of scales and minima. */
INLINE void four_or_five(const struct eight *w, char *to, size_t qh, size_t qs)
{
	__m256i h[4], sc[2], mn[2], u[8];
	transpose(w, 0, h);
	put_pair(to, h[0]);
	sc[0] = v_and(h[1], 63);
	mn[0] = v_and(h[2], 63);
	sc[1] = _mm256_or_si256(v_and(h[3], 15), v_field(h[1], 6, 2, 4));
	mn[1] = _mm256_or_si256(v_field(h[3], 4, 4, 0), v_field(h[2], 6, 2, 4));
	put_minima_32(to, mn);
	if (qh) {
		transpose_codes(w, qh, u);
		transpose_codes(w, qh + 16, u + 4);
	}
	UNROLL for (int j = 0; j < 8; j += 2) {
		const struct scale low = scale_at(sc[j/4], j%4, 0), high = scale_at(sc[j/4], j%4 + 1, 0);
		UNROLL for (int half = 0; half < 2; half++) {
			__m256i x[4];
			transpose_codes(w, qs + 16*j + 16*half, x);
			UNROLL for (int i = 0; i < 4; i++) {
				const int column = 32*j + 16*half + 4*i;
				__m256i a = v_and(x[i], 15), b = v_field(x[i], 4, 4, 0);
				if (qh) {
					a = _mm256_or_si256(a, v_field(u[4*half + i], j, 1, 4));
					b = _mm256_or_si256(b, v_field(u[4*half + i], j + 1, 1, 4));
				}
				put_scaled(to, column, a, low);
				put_scaled(to, column + 32, b, high);
			}
		}
	}
}
INLINE void q4_k_fill(const struct eight *w, char *to)
{
	four_or_five(w, to, 0, offsetof(struct q4_k, qs));
}
INLINE void q5_k_fill(const struct eight *w, char *to)
{
	four_or_five(w, to, offsetof(struct q5_k, qh), offsetof(struct q5_k, qs));
}
INLINE void q6_k_fill(const struct eight *w, char *to)
{
	__m256i sc[4];
	put_d(to, MUL_256, halves_of(w, offsetof(struct q6_k, d)));
	transpose(w, offsetof(struct q6_k, scales), sc);
	UNROLL for (int part = 0; part < 4; part++) {        /* a sixteen of either half */
		const int h = part/2, s = part%2;
		__m256i x[4], up[4];
		transpose_codes(w, offsetof(struct q6_k, qh) + 32*h + 16*s, up);
		UNROLL for (int j = 0; j < 4; j++) {
			const int k = j/2 + j%2*2, at = 2*k + s, scale = 8*h + at;
			const struct scale by = scale_at(sc[scale/4], scale%4, 32);
			if (j%2 == 0) transpose_codes(w, 64*h + 16*s + 32*(j/2), x);
			UNROLL for (int i = 0; i < 4; i++)
				put_scaled(to, 128*h + 16*at + 4*i, _mm256_or_si256(
					v_field(x[i], k/2*4, 4, 0), v_field(up[i], 2*k, 2, 4)), by);
		}
	}
}
/* Scales 4*i to 4*i + 3 from the twelve bytes s, which codec/q3_k.h describes, without their bias */
INLINE __m256i q3_k_sixes(const __m256i s[3], int i)
{
	return v_minus(_mm256_or_si256(v_field(s[i%2], i/2*4, 4, 0), v_field(s[2], 2*i, 2, 4)), 32);
}
INLINE void q3_k_fill(const struct eight *w, char *to)
{
	__m256i s[4], sc[4];
	transpose_from(w, sizeof(struct q3_k) - 16, true, s);
	put_d(to, MUL_256, low_halves(s[3]));
	UNROLL for (int i = 0; i < 4; i++) sc[i] = q3_k_sixes(s, i);
	UNROLL for (int part = 0; part < 4; part++) {
		const int h = part/2, half = part%2;
		__m256i x[4], up[4];
		transpose_codes(w, offsetof(struct q3_k, qs) + 32*h + 16*half, x);
		transpose_codes(w, offsetof(struct q3_k, hmask) + 16*half, up);
		UNROLL for (int k = 0; k < 4; k++) {
			const int at = 2*k + half, scale = 8*h + at;
			const struct scale by = scale_at(sc[scale/4], scale%4, 4);
			UNROLL for (int i = 0; i < 4; i++)
				put_scaled(to, 128*h + 16*at + 4*i, _mm256_or_si256(
					v_field(x[i], 2*k, 2, 0), v_field(up[i], 4*h + k, 1, 2)), by);
		}
	}
}
INLINE void q2_k_fill(const struct eight *w, char *to)
{
	__m256i s[4], last[4], mn[4];
	transpose(w, sizeof(struct q2_k) - 16, last);
	put_pair(to, last[3]);
	transpose(w, offsetof(struct q2_k, scales), s);
	UNROLL for (int i = 0; i < 4; i++) mn[i] = v_field(s[i], 4, 4, 0);
	put_minima_16(to, mn);
	UNROLL for (int part = 0; part < 4; part++) {
		const int h = part/2, half = part%2;
		__m256i x[4];
		transpose_codes(w, offsetof(struct q2_k, qs) + 32*h + 16*half, x);
		UNROLL for (int k = 0; k < 4; k++) {
			const int at = 2*k + half, scale = 8*h + at;
			const struct scale by = scale_at(v_and(s[scale/4], 15), scale%4, 0);
			UNROLL for (int i = 0; i < 4; i++)
				put_scaled(to, 128*h + 16*at + 4*i,
					v_field(x[i], 2*k, 2, 0), by);
		}
	}
}
INLINE void iq4_xs_fill(const struct eight *w, char *to)
{
	__m256i s[4];
	transpose(w, 0, s);
	put_d(to, MUL_256, low_halves(s[0]));
	UNROLL for (int j = 0; j < 8; j++) {
		const __m256i low = _mm256_and_si256(v_right(s[1], 4*j), _mm256_set1_epi32(15)),
			up = _mm256_and_si256(v_right(s[0], 12 + 2*j), _mm256_set1_epi32(48)),
			sc = _mm256_sub_epi32(_mm256_or_si256(low, up), _mm256_set1_epi32(32));
		const struct scale by = scale_at(sc, 0, 128);
		__m256i x[4];
		transpose_codes(w, offsetof(struct iq4_xs, qs) + 16*j, x);
		UNROLL for (int i = 0; i < 4; i++) {
			const int column = 32*j + 4*i;
			put_scaled(to, column, v_level_128(iq4_levels, x[i]), by);
			put_scaled(to, column + 16, v_level_128(iq4_levels, v_right(x[i], 4)), by);
		}
	}
}

/* ---- blocks of 32 ---- */

/* A block whose bytes at `at` have sixteen columns in their lower halves and sixteen in their upper halves. bits: fifth
 * bits of these codes, or NULL; bias: what is subtracted from them. */
INLINE void nibbles(const struct eight *w, char *to, size_t at, const __m256i *bits, int bias)
{
	__m256i x[4];
	transpose_units(w, at, x);
	UNROLL for (int i = 0; i < 8; i++) {
		__m256i c = v_field(x[i%4], i/4*4, 4, 0);
		if (bits) c = _mm256_or_si256(c, v_and(v_mask(*bits, i/2, i%2, IN_PAIRS), 16));
		put_codes(to, 4*i, v_minus(c, bias));
	}
}
/* The same for codes that stand for the levels in `table` */
INLINE void levels(const struct eight *w, char *to, size_t at, const int8_t *table)
{
	__m256i x[4];
	transpose_units(w, at, x);
	UNROLL for (int i = 0; i < 8; i++)
		put_codes(to, 4*i, v_level(table, v_right(x[i%4], i/4*4)));
}
/* Stores d and m of a block that begins with them. */
INLINE void put_two(const struct eight *w, char *to)
{
	const __m256i pair = lanes_of(w, 0);
	put_d(to, MUL_32_MIN, low_halves(pair));
	put_m(to, MUL_32_MIN, high_halves(pair));
}
INLINE void q4_0_fill(const struct eight *w, char *to)
{
	put_d(to, MUL_32, halves_of(w, 0));
	nibbles(w, to, offsetof(struct q4_0, qs), NULL, 8);
}
INLINE void q4_1_fill(const struct eight *w, char *to)
{
	put_two(w, to);
	nibbles(w, to, offsetof(struct q4_1, qs), NULL, 0);
}
INLINE void q5_0_fill(const struct eight *w, char *to)
{
	const __m256i bits = lanes_of(w, offsetof(struct q5_0, qh));
	put_d(to, MUL_32, halves_of(w, 0));
	nibbles(w, to, offsetof(struct q5_0, qs), &bits, 16);
}
INLINE void q5_1_fill(const struct eight *w, char *to)
{
	const __m256i bits = lanes_of(w, offsetof(struct q5_1, qh));
	put_two(w, to);
	nibbles(w, to, offsetof(struct q5_1, qs), &bits, 0);
}
INLINE void q8_0_fill(const struct eight *w, char *to)
{
	__m256i x[8];
	put_d(to, MUL_32, halves_of(w, 0));
	transpose_units(w, offsetof(struct q8_0, qs), x);
	transpose_units(w, offsetof(struct q8_0, qs) + 16, x + 4);
	UNROLL for (int i = 0; i < 8; i++) put_codes(to, 4*i, x[i]);
}
INLINE void iq4_nl_fill(const struct eight *w, char *to)
{
	put_d(to, MUL_32, halves_of(w, 0));
	levels(w, to, offsetof(struct iq4_nl, qs), iq4_levels);
}
INLINE void mxfp4_fill(const struct eight *w, char *to)
{
	float d[8];
	UNROLL for (int r = 0; r < 8; r++) d[r] = mxfp4_scale((uint8_t)w->row[r][0]);
	put_d(to, MUL_32, _mm256_loadu_ps(d));
	levels(w, to, offsetof(struct mxfp4, qs), fp4_levels);
}

/* nvfp4_scale of a byte of each lane */
INLINE __m256 small_floats(__m256i scales, int byte)
{
	const __m256i s = v_bits(scales, 8*byte, 7, 0), small = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), s),
		none = _mm256_cmpeq_epi32(v_bits(scales, 8*byte, 8, 0), _mm256_set1_epi32(127));
	const __m256 d = (__m256)_mm256_add_epi32(v_right(s, -20), _mm256_set1_epi32(119 << 23)),
		of_small = _mm256_mul_ps(_mm256_cvtepi32_ps(s), _mm256_set1_ps(0x1p-10f));
	return _mm256_andnot_ps((__m256)none, _mm256_blendv_ps(d, of_small, (__m256)small));
}
INLINE void nvfp4_fill(const struct eight *w, char *to)
{
	const __m256i scales = lanes_of(w, 0);
	UNROLL for (int part = 0; part < 2; part++, to += mul_panel_bytes(MUL_16, WIDTH)) {
		__m256i x[4];
		transpose_units(w, offsetof(struct nvfp4, qs) + 16*part, x);
		put_d(to, MUL_16, small_floats(scales, 2*part));
		put_m(to, MUL_16, small_floats(scales, 2*part + 1));
		UNROLL for (int i = 0; i < 8; i++)
			put_codes(to, 4*i, v_level(fp4_levels, v_right(x[i/4*2 + i%2], i/2%2*4)));
	}
}
/* 128 columns, a bit each: -1 or 1 */
INLINE void q1_0_fill(const struct eight *w, char *to)
{
	const __m256 d = halves_of(w, 0);
	__m256i x[4];
	transpose(w, offsetof(struct q1_0, qs), x);
	UNROLL for (int part = 0; part < 4; part++, to += mul_panel_bytes(MUL_32, WIDTH)) {
		put_d(to, MUL_32, d);
		UNROLL for (int i = 0; i < 8; i++)
			put_codes(to, 4*i, v_minus(v_and(v_mask(x[part], i/2, i%2, IN_PAIRS), 2), 1));
	}
}
/* 64 columns, four in a byte, which is copied to all four of the lane: each keeps the two bits of one column. */
INLINE void q2_0_fill(const struct eight *w, char *to)
{
	static const int8_t two_bits[16] = { -1, 0, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 2 };
	const __m256 d = halves_of(w, 0);
	__m256i x[4];
	transpose(w, offsetof(struct q2_0, qs), x);
	UNROLL for (int part = 0; part < 2; part++, to += mul_panel_bytes(MUL_32, WIDTH)) {
		put_d(to, MUL_32, d);
		UNROLL for (int i = 0; i < 8; i++) {
			const __m256i c = _mm256_and_si256(v_spread(x[2*part + i/4], i%4),
				_mm256_set1_epi32(IN_PAIRS ? (int)0xc00c3003 : (int)0xc0300c03));
			put_codes(to, 4*i, v_level(two_bits, _mm256_or_si256(c, v_right(c, 4))));
		}
	}
}

#include "fill_books.h"

/* ---- the table ---- */

typedef void block_fn(const struct eight *w, char *to);
/* A block of a file is `parts` blocks of the panel. */
INLINE void blocks(const char *const *row, size_t n, char *to, size_t bytes, enum mul_kind kind, size_t parts,
	block_fn *fill)
{
	struct eight w;
	memcpy(w.row, row, sizeof w.row);
	for (size_t i = 0; i < n; i += parts*mul_block(kind), to += parts*mul_panel_bytes(kind, WIDTH)) {
		fill(&w, to);
		for (int r = 0; r < 8; r++) w.row[r] += bytes;
	}
}
/* name in qtypes.def, name of struct and function, kind, blocks of the panel in one of the file */
#define TYPES(TYPE) \
	TYPE(Q2_K, q2_k, MUL_256_MIN, 1) \
	TYPE(Q3_K, q3_k, MUL_256, 1) \
	TYPE(Q4_K, q4_k, MUL_256_MIN, 1) \
	TYPE(Q5_K, q5_k, MUL_256_MIN, 1) \
	TYPE(Q6_K, q6_k, MUL_256, 1) \
	TYPE(IQ4_XS, iq4_xs, MUL_256, 1) \
	TYPE(Q4_0, q4_0, MUL_32, 1) \
	TYPE(Q4_1, q4_1, MUL_32_MIN, 1) \
	TYPE(Q5_0, q5_0, MUL_32, 1) \
	TYPE(Q5_1, q5_1, MUL_32_MIN, 1) \
	TYPE(Q8_0, q8_0, MUL_32, 1) \
	TYPE(IQ4_NL, iq4_nl, MUL_32, 1) \
	TYPE(MXFP4, mxfp4, MUL_32, 1) \
	TYPE(NVFP4, nvfp4, MUL_16, 2) \
	TYPE(Q1_0, q1_0, MUL_32, 4) \
	TYPE(Q2_0, q2_0, MUL_32, 2) \
	TYPE(IQ1_S, iq1_s, MUL_256, 1) \
	TYPE(IQ1_M, iq1_m, MUL_256, 1) \
	TYPE(IQ2_XXS, iq2_xxs, MUL_256, 1) \
	TYPE(IQ2_XS, iq2_xs, MUL_256, 1) \
	TYPE(IQ2_S, iq2_s, MUL_256, 1) \
	TYPE(IQ3_XXS, iq3_xxs, MUL_256, 1) \
	TYPE(IQ3_S, iq3_s, MUL_256, 1) \
	TYPE(TQ1_0, tq1_0, MUL_256, 1) \
	TYPE(TQ2_0, tq2_0, MUL_256, 1)
#define FUNCTION(NAME, name, kind, parts) \
static void fill_##name(const char *const *row, size_t n, char *to) \
{ \
	blocks(row, n, to, sizeof(struct name), kind, parts, name##_fill); \
}
TYPES(FUNCTION)
#define ENTRY(NAME, name, kind, parts) [GGU_TYPE_##NAME] = fill_##name,
fill_fn *const FILL_TABLE[GGU_TYPE_COUNT] = { TYPES(ENTRY) };
