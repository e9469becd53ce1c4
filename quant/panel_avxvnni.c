/* SPDX-License-Identifier: MIT
 * panel_avxvnni.c - the tile of AVX-VNNI: tile.h in the words of tile_256.h. */
#if defined __x86_64__
#include "tile_256.h"
#define FILL quant_fill_avxvnni
#define PANEL_TABLE quant_panel_avxvnni
enum { VECTORS = 2, TILE_TOKENS = 6, FEW = 8 };
/* The empty statement keeps the compiler from copying sums between registers. */
static inline vi i_madd(vi a, vi u, vi v)
{
	a = _mm256_dpwssd_epi32(a, u, v);
	__asm__("" : "+x"(a));
	return a;
}
#include "tile.h"
#else
typedef int isa_none;
#endif
