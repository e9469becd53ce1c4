/* SPDX-License-Identifier: MIT
 * amx_stand_in.h - AMX's tiles in C, by the instructions' description, for machines without them: `make
 * check-stand-ins` puts this before quant/panel_amx.c. Shapes are those of the configuration; a tile that was not
 * configured aborts. */
#ifndef TESTS_AMX_STAND_IN_H
#define TESTS_AMX_STAND_IN_H
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct stand_in_config { uint8_t palette, start, zero[14]; uint16_t row_bytes[16]; uint8_t rows[16]; };
static _Thread_local struct stand_in_config stand_in;
static _Thread_local int8_t stand_in_tile[8][16][64];

static inline void stand_in_check(int t)
{
	if (stand_in.palette != 1 || !stand_in.rows[t] || stand_in.rows[t] > 16 || stand_in.row_bytes[t] > 64) abort();
}
static inline void stand_in_zero(int t) { stand_in_check(t); memset(stand_in_tile[t], 0, sizeof *stand_in_tile); }
static inline void stand_in_load(int t, const void *p, size_t stride)
{
	stand_in_zero(t);
	for (size_t r = 0; r < stand_in.rows[t]; r++)
		memcpy(stand_in_tile[t][r], (const char *)p + r*stride, stand_in.row_bytes[t]);
}
static inline void stand_in_store(int t, void *p, size_t stride)
{
	stand_in_check(t);
	for (size_t r = 0; r < stand_in.rows[t]; r++)
		memcpy((char *)p + r*stride, stand_in_tile[t][r], stand_in.row_bytes[t]);
}
static inline void stand_in_dot(int c, int a, int b)
{
	stand_in_check(c); stand_in_check(a); stand_in_check(b);
	if (stand_in.row_bytes[a]/4 != stand_in.rows[b] || stand_in.rows[a] != stand_in.rows[c] ||
		stand_in.row_bytes[b] != stand_in.row_bytes[c])
		abort();
	for (int m = 0; m < stand_in.rows[c]; m++)
		for (int n = 0; n < stand_in.row_bytes[c]/4; n++) {
			uint32_t s;
			memcpy(&s, stand_in_tile[c][m] + 4*n, 4);
			for (int k = 0; k < stand_in.row_bytes[a]; k++)
				s += (uint32_t)(stand_in_tile[a][m][k]*stand_in_tile[b][k/4][4*n + k%4]);
			memcpy(stand_in_tile[c][m] + 4*n, &s, 4);
		}
}
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#define _tile_loadconfig(p) memcpy(&stand_in, (p), sizeof stand_in)
#define _tile_release() memset(&stand_in, 0, sizeof stand_in)
#define _tile_zero stand_in_zero
#define _tile_loadd stand_in_load
#define _tile_stored stand_in_store
#define _tile_dpbssd stand_in_dot

#endif
