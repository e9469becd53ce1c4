/* SPDX-License-Identifier: MIT
 * panel_avx2.c - the tile of AVX2, 32 outputs times 2 tokens in eight registers: tile_tall.h in the words of
 * tile_256.h. */
#if defined __x86_64__
#include "tile_256.h"
#define FILL quant_fill_avx2
#define PANEL_TABLE quant_panel_avx2
enum { VECTORS = 4, TILE_TOKENS = 2, FEW = 5 };
#define CROSSED 4
/* The empty statement keeps the compiler from putting the additions off, for which it would need more registers than
 * there are. */
static inline vi i_madd(vi a, vi u, vi v)
{
	a = _mm256_add_epi32(a, _mm256_madd_epi16(u, v));
	__asm__("" : "+x"(a));
	return a;
}
static inline vw i_keep(vw u) { __asm__("" : "+x"(u)); return u; }
static inline vw i_plus_at(vw u, const char *p)
{
	vw a;
	__asm__("vpaddw %2, %1, %0" : "=x"(a) : "x"(u), "m"(*(const __m256i_u *)(const void *)p));
	return a;
}
#include "tile_tall.h"
#else
typedef int isa_none;
#endif
