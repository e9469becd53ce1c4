/* SPDX-License-Identifier: MIT
 * panel_dotprod.c - panels of blocks of 32 with NEON's dot product of bytes. A square of sums is a register for each
 * token, whose pairs of lanes are an output's first and second four columns. Super-blocks, whose integers are two
 * digits as well, are no faster this way than with NEON (tests/kernels/README.md). */
#if defined __aarch64__
#include <arm_neon.h>
#define BYTES_TABLE quant_panel_dotprod_32

typedef struct { int8x16_t first, second; } vx;
typedef struct { int32x4_t first, second; } vs;
static inline int8x16_t twice(const char *p) { return vreinterpretq_s8_u64(vld1q_dup_u64((const void *)p)); }
static inline vx x_load(const char *p) { return (vx){ twice(p), twice(p + 8) }; }
static inline vs s_zero(void) { return (vs){ vdupq_n_s32(0), vdupq_n_s32(0) }; }
static inline vs s_madd(vs a, vx x, int8x16_t w)
{
	return (vs){ vdotq_s32(a.first, w, x.first), vdotq_s32(a.second, w, x.second) };
}
static inline int32x4_t s_total(vs a) { return vpaddq_s32(a.first, a.second); }
#include "tile_bytes.h"
#else
typedef int isa_none;
#endif
