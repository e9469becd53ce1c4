/* SPDX-License-Identifier: MIT
 * panel_avx512bw.c - the tiles of AVX-512 without VNNI: tile.h in the words of tile_512.h. */
#if defined __x86_64__
#include "tile_512.h"
#define PANEL_TABLE quant_panel_avx512bw
enum { TILE_TOKENS = 12, FEW = 6 };
#define SHORT_TABLE quant_panel_avx512bw_32
/* The empty statement keeps the compiler from putting the additions off. */
static inline vi i_madd(vi a, vi u, vi v)
{
	a = _mm512_add_epi32(a, _mm512_madd_epi16(u, v));
	__asm__("" : "+v"(a));
	return a;
}
#include "tile.h"
#else
typedef int isa_none;
#endif
