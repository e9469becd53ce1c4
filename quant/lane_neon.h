/* SPDX-License-Identifier: MIT
 * lane_neon.h - the rest of lane.h for NEON. */
#include <arm_neon.h>
enum { REG = 4 };
#include "lane.h"
#include "lane_plain.h"

static inline rf r_fma(rf a, rf b, rf c) { return (rf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
static inline rf r_f16(const void *p)
{
	uint16x4_t h;
	memcpy(&h, p, sizeof h);
	return (rf)vcvt_f32_f16(vreinterpret_f16_u16(h));
}
