/* SPDX-License-Identifier: MIT
 * panel_zen4.c - the tiles of Zen 4, whose additions take pipes that the products of AVX-512's VNNI leave idle: tile.h
 * in the words of tile_512_vnni.h. */
#if defined __x86_64__
#include "tile_512_vnni.h"
#define PANEL_TABLE quant_panel_zen4
enum { TILE_TOKENS = 8, FEW = 8 };
#define SHORT_TABLE quant_panel_zen4_32
#define CROSSED 3
#include "tile.h"
#else
typedef int isa_none;
#endif
