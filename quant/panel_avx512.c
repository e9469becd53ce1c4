/* SPDX-License-Identifier: MIT
 * panel_avx512.c - the tiles of AVX-512's VNNI: tile.h in the words of tile_512_vnni.h. */
#if defined __x86_64__
#include "tile_512_vnni.h"
#define PANEL_TABLE quant_panel_avx512
enum { TILE_TOKENS = 12, FEW = 8 };
#define SHORT_TABLE quant_panel_avx512_32
#include "tile.h"
#else
typedef int isa_none;
#endif
