/* SPDX-License-Identifier: MIT
 * tile_512_vnni.h - tile_512.h with i_madd by VNNI; the instance gives TILE_TOKENS. */
#include "tile_512.h"

/* The empty statement keeps the compiler from copying sums between registers. */
static inline vi i_madd(vi a, vi u, vi v)
{
	a = _mm512_dpwssd_epi32(a, u, v);
	__asm__("" : "+v"(a));
	return a;
}
