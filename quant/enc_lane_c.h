/* SPDX-License-Identifier: MIT
 * enc_lane_c.h - the rest of enc_lane.h for portable C: the definition. */
#include "lane_c.h"
#include "enc_lane_plain.h"

static inline uint32_t m_bits(rm m)
{
	uint32_t r = 0;
	for (int l = 0; l < REG; l++) r |= (uint32_t)(m[l] & 1) << l;
	return r;
}
static inline rf r_if(rm m, rf a, rf b) { return r_sel(m, a, b); }
static inline rf r_min(rf a, rf b) { return r_sel(a < b, a, b); }
static inline ri ri_min(ri a, ri b) { ri m = a < b; return (a & m) | (b & ~m); }
/* The sum has no room for a fraction. The other instances' instructions agree but for the sign of zero. */
static inline rf r_round(rf a) { return (a + 12582912.0f) - 12582912.0f; }
static inline ri ri_low(ri a, int32_t low) { return (a & -65536) | low; }
static inline rf r_lut8(const float *t, ri i)
{
	rf r = { 0 };
	for (int k = 0; k < REG; k++) r[k] = t[i[k] & 7];
	return r;
}
