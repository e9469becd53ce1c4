/* SPDX-License-Identifier: MIT
 * amx.h - what panel_amx.c and panel_short_amx.c share: AMX's tiles, in halves of a panel of 32 outputs.
 *
 * A tile of sums has 16 outputs times 16 tokens. Weights lie in a panel as lines of four columns of all its outputs, as
 * bytes; half of such lines is a tile of weights. A tile of activations has a token in each row.
 *
 * What Sapphire and Emerald Rapids do: a product may follow another after 16 cycles, but its sums are there after 52.
 * Tiles and vectors hardly overlap: with all of it in L1, a loop takes about half a cycle for each vector instruction
 * and for each row of a tile that is loaded or stored, and eight more for each product. If the core's other thread
 * keeps its loads busy, each load of a tile adds 16 to 40 cycles, and fewer of them if other instructions stand between
 * them. A tile that is set to zero just before a product, with no load between, costs a product's whole latency. A load
 * waits for an earlier store whose address differs from its own by 4 KB. Every call configures the tiles of its thread
 * and releases them.
 *
 * So little time is left for a strip that it shows when strips come from L3, once for each group of outputs: a group is
 * twice as large as for other instruction sets. */
#ifndef QUANT_AMX_H
#define QUANT_AMX_H
#include <string.h>
#include "inline.h"
#include "interleave_x86.h"
#include "mul.h"

/* N: outputs, and tokens, of a tile. GROUP: see struct panel_table. LINE: bytes of a panel's line; ROW: of a row of a
 * tile, at most */
enum { N = 16, FEW = 8, OUTPUTS = 2*N, GROUP = 2*MUL_GROUP, TILE_TOKENS = N, LINE = 4*OUTPUTS, ROW = 64 };
#include "tile_path.h"

/* Constant data: GCC 12 takes _tile_loadconfig to read 8 bytes of the 64, and leaves out stores to the others. */
struct tiles { uint8_t palette, start, zero[14]; uint16_t row_bytes[16]; uint8_t rows[16]; };
/* Four tiles of sums, two of activations, two of weights; columns: of the latter */
#define TILES(columns) { .palette = 1, \
	.row_bytes = { ROW, ROW, ROW, ROW, columns, columns, ROW, ROW }, \
	.rows = { N, N, N, N, N, N, (columns)/4, (columns)/4 } }

typedef int32_t sums[N*N];              /* of a tile */

/* Keeps the compiler from moving vector instructions together that are to stand between those of tiles. */
INLINE void apart(void) { __asm__ volatile("" : : : "memory"); }
INLINE __m512i sum_at(const int32_t *s, int token) { return _mm512_load_si512(s + N*token); }
INLINE __m512 spread(const char *p) { return _mm512_broadcastss_ps(_mm_load_ss((const void *)p)); }
/* y + d*x*s, the product of the scales rounded */
INLINE __m512 product(__m512 d, __m512 x, __m512 s, __m512 y) { return _mm512_fmadd_ps(_mm512_mul_ps(d, x), s, y); }
/* Copies n columns of eight rows of bytes, `stride` bytes apart, to lines of a panel. */
static void put_lines(const int8_t *rows, size_t stride, size_t n, size_t first, char *to)
{
	interleave((const void *)rows, stride/2, first, 8, OUTPUTS, n/4, (void *)to);
}
#endif
