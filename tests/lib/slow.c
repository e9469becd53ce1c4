/* SPDX-License-Identifier: MIT
 * slow.c - see slow.h. A block is taken apart one weight at a time, by the descriptions of the formats; products add
 * exact integers in 64 bits. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/ggu.h"
#include "../../quant/grids.h"
#include "slow.h"

static float half(const uint8_t *p)
{
	int h = p[0] | p[1] << 8, e = h >> 10 & 31, m = h & 1023;
	float v = e == 31 ? m ? NAN : INFINITY : e ? ldexpf((float)(1024 + m), e - 25) : ldexpf((float)m, -24);
	return h & 0x8000 ? -v : v;
}
static int u16(const uint8_t *p) { return p[0] | p[1] << 8; }
/* 2 to a byte, in turn */
static int nibble(const uint8_t *p, size_t i) { return i % 2 ? p[i/2] / 16 : p[i/2] % 16; }
static int split(const uint8_t *p, size_t i, size_t span) { return i < span ? p[i] % 16 : p[i - span] / 16; }
static int bit(const uint8_t *p, size_t i) { return p[i/8] >> i%8 & 1; }

/* the 6-bit scales and minima of Q4_K and Q5_K: 8 of each in 12 bytes */
static void six(const uint8_t *s, size_t j, struct slow_weight *w)
{
	w->scale = j < 4 ? s[j] % 64 : s[j + 4] % 16 + s[j - 4]/64*16;
	w->min = j < 4 ? s[j + 4] % 64 : s[j + 4]/16 + s[j]/64*16;
}
static int iq4_level(int code)
{
	static const int level[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
	return level[code];
}
/* twice a float with one sign bit, two exponent bits (bias 1) and one mantissa bit */
static int fp4_twice(int code)
{
	int e = code/2 % 4, v = e ? (2 + code%2) << (e - 1) : code % 2;
	return code & 8 ? -v : v;
}
/* sign e of eight, of which seven are stored; the eighth makes the number of minuses even */
static int even_sign(unsigned seven, size_t e)
{
	unsigned ones = 0;
	for (int k = 0; k < 7; k++) ones += seven >> k & 1;
	return (e < 7 ? seven >> e : ones) & 1 ? -1 : 1;
}
static int byte_of(uint64_t word, size_t e) { return (int)(word >> 8*e & 255); }

static void affine_weight(uint32_t type, const uint8_t *b, size_t i, struct slow_weight *w)
{
	switch (type) {
	case GGU_TYPE_Q4_1: w->code = split(b + 4, i, 16); w->m = -half(b + 2); w->min = 1; break;
	case GGU_TYPE_Q5_1: w->code = split(b + 8, i, 16) + 16*bit(b + 4, i); w->m = -half(b + 2); w->min = 1; break;
	case GGU_TYPE_Q2_K:
		w->code = b[16 + i/128*32 + i%32] >> i%128/32*2 & 3;
		w->d = half(b + 80); w->m = half(b + 82);
		w->scale = b[i/16] % 16; w->min = b[i/16]/16;
		break;
	case GGU_TYPE_Q4_K: w->code = split(b + 16 + i/64*32, i%64, 32); w->m = half(b + 2); six(b + 4, i/32, w); break;
	case GGU_TYPE_Q5_K:
		w->code = split(b + 48 + i/64*32, i%64, 32) + 16*(b[16 + i%32] >> i/32 & 1);
		w->m = half(b + 2);
		six(b + 4, i/32, w);
		break;
	}
}
static void grid_weight(uint32_t type, const uint8_t *b, size_t i, struct slow_weight *w)
{
	size_t j = i/32, k = i/8, e = i%8;
	uint32_t tail;
	uint64_t word;
	unsigned signs;
	switch (type) {
	case GGU_TYPE_IQ2_XXS: case GGU_TYPE_IQ3_XXS:
		b += type == GGU_TYPE_IQ2_XXS ? 2 + 8*j + 4 : 66 + 4*j;
		tail = (uint32_t)u16(b) | (uint32_t)u16(b + 2) << 16;
		word = type == GGU_TYPE_IQ2_XXS ? grid_iq2_xxs[b[(int)(k%4) - 4]] :
			grid_iq3_xxs[(b - 66 - 4*j)[2 + i/4]];
		w->scale = 2*(int)(tail >> 28) + 1;
		w->code = byte_of(word, type == GGU_TYPE_IQ2_XXS ? e : i%4)*even_sign(tail >> 7*(k%4) & 127, e);
		w->d /= type == GGU_TYPE_IQ2_XXS ? 8 : 4;
		break;
	case GGU_TYPE_IQ2_XS:
		word = grid_iq2_xs[u16(b + 2 + 2*k) % 512];
		w->scale = 2*nibble(b + 66, i/16) + 1;
		w->code = byte_of(word, e)*even_sign((unsigned)u16(b + 2 + 2*k)/512, e);
		w->d /= 8;
		break;
	case GGU_TYPE_IQ2_S:
		word = grid_iq2_s[b[2 + k] + 256*(b[66 + k/4] >> k%4*2 & 3)];
		w->scale = 2*nibble(b + 74, i/16) + 1;
		w->code = byte_of(word, e)*(bit(b + 34, i) ? -1 : 1);
		w->d /= 8;
		break;
	case GGU_TYPE_IQ3_S:
		w->scale = 2*nibble(b + 106, j) + 1;
		w->code = byte_of(grid_iq3_s[b[2 + i/4] + 256*bit(b + 66, i/4)], i%4)*(bit(b + 74, i) ? -1 : 1);
		break;
	case GGU_TYPE_IQ1_S:
		signs = (unsigned)u16(b + 34 + 2*j);
		w->scale = 2*(int)(signs >> 12 & 7) + 1;
		w->code = 8*(byte_of(grid_iq1[b[2 + k] + 256*(signs >> 3*(k%4) & 7)], e) - 1) +
			(signs & 0x8000 ? -1 : 1);
		w->d /= 8;
		break;
	case GGU_TYPE_IQ1_M:
		signs = (unsigned)nibble(b + 32, k);
		w->scale = 2*(u16(b + 48 + i/64*2) >> i/16%4*3 & 7) + 1;
		w->code = 8*(byte_of(grid_iq1[b[k] + 256*(signs % 8)], e) - 1) + (signs & 8 ? -1 : 1);
		w->d = half((const uint8_t[2]){ (uint8_t)(b[49]/16 + b[51]/16*16),
			(uint8_t)(b[53]/16 + b[55]/16*16) })/8;
		break;
	}
}
static int ternary_digit(const uint8_t *b, size_t i)
{
	size_t k = i < 160 ? i/32 : i < 240 ? (i - 160)/16 : (i - 240)/4;
	unsigned v = i < 160 ? b[i%32] : i < 240 ? b[32 + (i - 160)%16] : b[48 + (i - 240)%4];
	while (k--) v = 3*v % 256;
	return (int)(3*v/256);
}

static size_t block_weights(uint32_t type) { return ggu_type_info(type)->block_weights; }
int slow_weight(uint32_t type, const uint8_t *row, size_t at, struct slow_weight *w)
{
	const struct ggu_type_info *t = ggu_type_info(type);
	const uint8_t *b = row + at/t->block_weights*t->block_bytes;
	size_t i = at % t->block_weights;
	*w = (struct slow_weight){ .d = half(b), .scale = 1 };
	switch (type) {
	case GGU_TYPE_Q4_0: w->code = split(b + 2, i, 16) - 8; break;
	case GGU_TYPE_Q5_0: w->code = split(b + 6, i, 16) + 16*bit(b + 2, i) - 16; break;
	case GGU_TYPE_Q8_0: w->code = (int8_t)b[2 + i]; break;
	case GGU_TYPE_Q4_1: case GGU_TYPE_Q5_1: case GGU_TYPE_Q2_K: case GGU_TYPE_Q4_K: case GGU_TYPE_Q5_K:
		affine_weight(type, b, i, w);
		break;
	case GGU_TYPE_Q3_K:
		w->d = half(b + 108);
		w->code = (b[32 + i/128*32 + i%32] >> i%128/32*2 & 3) + 4*(b[i%32] >> i/32 & 1) - 4;
		w->scale = split(b + 96, i/16, 8) + 16*(b[104 + i/16%4] >> i/64*2 & 3) - 32;
		break;
	case GGU_TYPE_Q6_K:
		w->d = half(b + 208);
		w->code = (b[64*(i/128) + i/32%2*32 + i%32] >> i/64%2*4 & 15) +
			16*(b[128 + 32*(i/128) + i%32] >> i/32%4*2 & 3) - 32;
		w->scale = (int8_t)b[192 + i/16];
		break;
	case GGU_TYPE_IQ2_XXS: case GGU_TYPE_IQ2_XS: case GGU_TYPE_IQ2_S: case GGU_TYPE_IQ3_XXS: case GGU_TYPE_IQ3_S:
	case GGU_TYPE_IQ1_S: case GGU_TYPE_IQ1_M:
		grid_weight(type, b, i, w);
		break;
	case GGU_TYPE_IQ4_NL: w->code = iq4_level(split(b + 2, i, 16)); break;
	case GGU_TYPE_IQ4_XS:
		w->code = iq4_level(split(b + 8 + i/32*16, i%32, 16));
		w->scale = nibble(b + 4, i/32) + 16*(u16(b + 2) >> i/32*2 & 3) - 32;
		break;
	case GGU_TYPE_TQ1_0: w->d = half(b + 52); w->code = ternary_digit(b, i) - 1; break;
	case GGU_TYPE_TQ2_0: w->d = half(b + 64); w->code = (b[i/128*32 + i%32] >> i/32%4*2 & 3) - 1; break;
	case GGU_TYPE_Q1_0: w->code = bit(b + 2, i) ? 1 : -1; break;
	case GGU_TYPE_Q2_0: w->code = (b[2 + i/4] >> i%4*2 & 3) - 1; break;
	case GGU_TYPE_MXFP4: w->d = ldexp(1, b[0] - 128); w->code = fp4_twice(split(b + 1, i, 16)); break;
	case GGU_TYPE_NVFP4: {
		int s = b[i/16] % 128, e = s/8;
		w->d = b[i/16] == 127 ? 0 : e ? ldexp(8 + s%8, e - 11) : ldexp(s%8, -10);
		w->code = fp4_twice(split(b + 4 + i/16*8, i%16, 8));
		break;
	}
	default: return 0;
	}
	return 1;
}

/* How many elements are in one exact sum, and whether minima are subtracted. */
static int span_of(uint32_t type) { return type == GGU_TYPE_NVFP4 ? 16 : block_weights(type) == 256 ? 256 : 32; }
static bool has_min(uint32_t type)
{
	return type == GGU_TYPE_Q4_1 || type == GGU_TYPE_Q5_1 || type == GGU_TYPE_Q2_K || type == GGU_TYPE_Q4_K ||
		type == GGU_TYPE_Q5_K;
}

int slow_decode(uint32_t type, const uint8_t *row, size_t i, float *w)
{
	struct slow_weight s;
	uint32_t u;
	double f;
	switch (type) {
	case GGU_TYPE_F32: memcpy(w, row + 4*i, 4); return 1;
	case GGU_TYPE_F64: memcpy(&f, row + 8*i, 8); *w = (float)f; return 1;
	case GGU_TYPE_F16: *w = half(row + 2*i); return 1;
	case GGU_TYPE_BF16: u = (uint32_t)u16(row + 2*i) << 16; memcpy(w, &u, 4); return 1;
	default:
		if (!slow_weight(type, row, i, &s)) return 0;
		*w = (float)(s.d*s.scale*s.code - s.m*s.min);
		return 1;
	}
}

/* ---- activations and products ---- */

static float largest(const float *x, size_t n)
{
	float m = 0;
	for (size_t i = 0; i < n; i++) m = isnan(x[i]) ? INFINITY : fmaxf(m, fabsf(x[i]));
	return m;
}
void slow_pack(uint32_t type, const float *x, size_t n, struct slow_act *act)
{
	size_t block = block_weights(type) == 256 ? 256 : 32;
	for (size_t i = 0; i < n; i += block) {
		float amax = largest(x + i, block), d = isinf(amax) ? NAN : amax < 0x1p-96f ? 0 : amax/2032;
		for (size_t k = i; k < i + block; k++)
			act[k] = (struct slow_act){ d, d > 0 ? (int)rintf(x[k]*(1/d)) : 0 };
	}
}

float slow_product(uint32_t type, const struct slow_weight *w, size_t n, const struct slow_act *act, int64_t *widest)
{
	int span = span_of(type);
	float y = 0;
	for (size_t i = 0; i < n; i += (size_t)span) {
		int64_t sum = 0, mins = 0;
		for (size_t k = i; k < i + (size_t)span; k++) {
			sum += (int64_t)w[k].scale*w[k].code*act[k].q;
			mins += (int64_t)w[k].min*act[k].q;
		}
		if (llabs(sum) > *widest) *widest = llabs(sum);
		if (llabs(mins) > *widest) *widest = llabs(mins);
		y = fmaf((float)w[i].d*act[i].d, (float)sum, y);
		if (has_min(type)) y = fmaf(-((float)w[i].m*act[i].d), (float)mins, y);
	}
	return y;
}

float slow_tree(float lane[16])
{
	for (int step = 8; step; step /= 2)
		for (int l = 0; l < step; l++) lane[l] += lane[l + step];
	return lane[0];
}
float slow_float_product(const float *w, const float *x, size_t n)
{
	float lane[16] = { 0 };
	for (size_t i = 0; i < n; i++) lane[i%16] = fmaf(w[i], x[i], lane[i%16]);
	return slow_tree(lane);
}
