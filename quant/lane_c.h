/* SPDX-License-Identifier: MIT
 * lane_c.h - the rest of lane.h for portable C: the definition. Four lanes, which every compiler can map to registers
 * or take apart. */
enum { REG = 4 };
#include "lane.h"
#include "lane_plain.h"

/* As fused.h. Without an instruction for it, this is forty others. It is a call, as attention alone has thousands of
 * them, which inlined would take 3 MB, and compilers a minute. */
static __attribute__((noinline, unused)) rf r_fma_called(rf a, rf b, rf c)
{
	typedef double wide __attribute__((vector_size(8*REG)));
	typedef uint64_t bits __attribute__((vector_size(8*REG)));
	wide p = __builtin_convertvector(a, wide)*__builtin_convertvector(b, wide);
	wide d = __builtin_convertvector(c, wide), s = p + d, t = s - p, e = (p - (s - t)) + (d - t);
	bits u = (bits)s, step = (bits)((e < 0) | (e > 0)) & ~u & 1;
	u += step - 2*((u ^ (bits)e) >> 63 & step);
	return __builtin_convertvector((wide)u, rf);
}
static inline rf r_fma(rf a, rf b, rf c)
{
	rf r = { 0 };
	if (!FUSED_IS_FAST) return r_fma_called(a, b, c);
	for (int i = 0; i < REG; i++) r[i] = fmaf(a[i], b[i], c[i]);
	return r;
}
static inline rf r_f16(const void *p) { return r_f16_exact(p); }
