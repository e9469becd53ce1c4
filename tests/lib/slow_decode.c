/* SPDX-License-Identifier: MIT
 * slow_decode.c - see slow_decode.h. Shares nothing with quant/: it is there to disagree. */
#include <math.h>
#include <string.h>
#include "slow_decode.h"

static float half(const uint8_t *p)
{
	int h = p[0] | p[1] << 8, e = h >> 10 & 31, m = h & 1023;
	float v = e == 31 ? m ? NAN : INFINITY : e ? ldexpf((float)(1024 + m), e - 25) : ldexpf((float)m, -24);
	return h & 0x8000 ? -v : v;
}
static int nibble(const uint8_t *p, size_t i, size_t span) { return i < span ? p[i] & 15 : p[i - span] >> 4; }
static int bit(const uint8_t *p, size_t i) { return p[i/8] >> i%8 & 1; }

/* the 6-bit scales and minima of Q4_K and Q5_K: 12 bytes, 8 of each */
static void six(const uint8_t *s, size_t j, int *scale, int *min)
{
	if (j < 4) { *scale = s[j] % 64; *min = s[j + 4] % 64; return; }
	*scale = s[j + 4] % 16 + s[j - 4]/64*16;
	*min = s[j + 4]/16 + s[j]/64*16;
}

static float q2_k(const uint8_t *b, size_t i)
{
	int code = b[16 + i/128*32 + i%32] >> i%128/32*2 & 3, s = b[i/16];
	float d = half(b + 80)*(float)(s % 16), m = half(b + 82)*(float)(s/16);
	return d*(float)code - m;
}
static float q3_k(const uint8_t *b, size_t i)
{
	const uint8_t *s = b + 96;
	size_t j = i/16;
	int code = (b[32 + i/128*32 + i%32] >> i%128/32*2 & 3) + 4*(b[i%32] >> i/32 & 1) - 4;
	int low = nibble(s, j, 8), high = s[8 + j%4] >> j/4*2 & 3;
	float d = half(b + 108)*(float)(low + 16*high - 32);
	return d*(float)code;
}
static float q45_k(const uint8_t *b, size_t i, int five)
{
	const uint8_t *qs = b + (five ? 48 : 16);
	int scale, min, code = nibble(qs + i/64*32, i%64, 32);
	if (five) code += 16*(b[16 + i%32] >> i/32 & 1);
	six(b + 4, i/32, &scale, &min);
	float d = half(b)*(float)scale, m = half(b + 2)*(float)min;
	return d*(float)code - m;
}
static float q6_k(const uint8_t *b, size_t i)
{
	size_t h = i/128, quarter = i%128/32, l = i%32;
	int low = b[64*h + quarter%2*32 + l] >> quarter/2*4 & 15, high = b[128 + 32*h + l] >> 2*quarter & 3;
	float d = half(b + 208)*(float)(int8_t)b[192 + i/16];
	return d*(float)(low + 16*high - 32);
}

int slow_decode(uint32_t type, const uint8_t *row, size_t i, float *w)
{
	const uint8_t *b;
	uint32_t u;
	size_t j = i % 32;
	switch (type) {
	case 0: memcpy(w, row + 4*i, 4); return 1;
	case 1: *w = half(row + 2*i); return 1;
	case 30: u = (uint32_t)row[2*i] << 16 | (uint32_t)row[2*i + 1] << 24; memcpy(w, &u, 4); return 1;
	case 2: b = row + i/32*18; *w = half(b)*(float)(nibble(b + 2, j, 16) - 8); return 1;
	case 3: b = row + i/32*20; *w = half(b)*(float)nibble(b + 4, j, 16); *w += half(b + 2); return 1;
	case 6: b = row + i/32*22; *w = half(b)*(float)(nibble(b + 6, j, 16) + 16*bit(b + 2, j) - 16); return 1;
	case 7: b = row + i/32*24; *w = half(b)*(float)(nibble(b + 8, j, 16) + 16*bit(b + 4, j)); *w += half(b + 2); return 1;
	case 8: b = row + i/32*34; *w = half(b)*(float)(int8_t)b[2 + j]; return 1;
	case 10: *w = q2_k(row + i/256*84, i%256); return 1;
	case 11: *w = q3_k(row + i/256*110, i%256); return 1;
	case 12: *w = q45_k(row + i/256*144, i%256, 0); return 1;
	case 13: *w = q45_k(row + i/256*176, i%256, 1); return 1;
	case 14: *w = q6_k(row + i/256*210, i%256); return 1;
	}
	return 0;
}
