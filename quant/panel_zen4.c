/* SPDX-License-Identifier: MIT
 * panel_zen4.c - panels with the VNNI of AVX-512 on Zen 4, whose additions take pipes that products leave idle. */
#if defined __x86_64__
#include "tile_512.h"
#define PANEL_TABLE quant_panel_zen4
enum { TILE_TOKENS = 8 };
#define SHORT_TABLE quant_panel_zen4_32
#define CROSSED 3
/* The empty statement keeps the compiler from copying sums between registers. */
static inline vi i_madd(vi a, vi u, vi v)
{
	a = _mm512_dpwssd_epi32(a, u, v);
	__asm__("" : "+v"(a));
	return a;
}
#include "tile.h"
#else
typedef int isa_none;
#endif
