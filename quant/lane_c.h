/* SPDX-License-Identifier: MIT
 * lane_c.h - the rest of lane.h for portable C: the definition. Four lanes, which every compiler can map to registers
 * or take apart. */
enum { REG = 4 };
#include "lane.h"
#include "lane_plain.h"

static inline rf r_fma(rf a, rf b, rf c)
{
	rf r = { 0 };
	for (int i = 0; i < REG; i++) r[i] = fmaf(a[i], b[i], c[i]);
	return r;
}
static inline rf r_f16(const void *p) { return r_f16_exact(p); }
