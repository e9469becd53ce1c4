/* SPDX-License-Identifier: MIT
 * panel_avx2.c - panels with AVX2: 16 outputs times 4 tokens in eight registers. */
#if defined __x86_64__
#include "tile_256.h"
#define PANEL_TABLE quant_panel_avx2
enum { TILE_TOKENS = 4 };
#define CROSSED 4
/* The empty statement keeps the compiler from putting the additions off, for which it would need more registers than
 * there are. */
static inline vi i_madd(vi a, vi u, vi v)
{
	a = _mm256_add_epi32(a, _mm256_madd_epi16(u, v));
	__asm__("" : "+x"(a));
	return a;
}
#include "tile.h"
#else
typedef int isa_none;
#endif
