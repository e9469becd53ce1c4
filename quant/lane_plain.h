/* SPDX-License-Identifier: MIT
 * lane_plain.h - words of lane.h in plain C, which lane_c.h and lane_neon.h share. */

static inline rf r_bf16(const void *p) { return (rf)(r_widen(p) << 16); }
/* Each byte moves to the top of its lane by a product, as not every CPU shifts lanes by different numbers. */
static inline ri r_i8(const void *p)
{
	const ru to_top = { 1 << 24, 1 << 16, 1 << 8, 1 };
	uint32_t four;
	memcpy(&four, p, sizeof four);
	return (ri)(four*to_top) >> 24;
}
static inline rs r_i8_pairs(const void *p)
{
	typedef int8_t bytes __attribute__((vector_size(2*REG)));
	bytes a;
	memcpy(&a, p, sizeof a);
	return __builtin_convertvector(a, rs);
}
static inline rs r_u8_pairs(const void *p) { return r_i8_pairs(p) & 0xff; }
static inline int32_t r_sum(ri a)
{
	int32_t sum = 0;
	for (int i = 0; i < REG; i++) sum += a[i];
	return sum;
}
static inline rf r_max(rf a, rf b) { return r_sel(a > b, a, b); }
/* One addition to the exponent: the lowest bits of k are those of n. */
static inline rf r_raise(rf p, rf k, rf x)
{
	return (rf)(((ru)p + ((ru)k << 23 & (ru)(x == x))) & ~(ru)(x < -87.0f));
}
static inline rf r_within(rf a, float low, float high)
{
	return r_sel(a < low, r_dup(low), r_sel(a > high, r_dup(high), a));
}
/* 2^n in two factors, so that subnormal results come out. */
static inline rf r_far(rf p, rf n)
{
	ri k = __builtin_convertvector(r_sel(n == n, n, (rf){ 0 }), ri), half = k >> 1;
	return p*(rf)((half + 127) << 23)*(rf)((k - half + 127) << 23);
}
static inline ri ri_max(ri a, ri b) { return (ri)r_sel(a > b, (rf)a, (rf)b); }
static inline int32_t ri_greatest(ri a)
{
	int32_t m = a[0];
	for (int i = 1; i < REG; i++) m = a[i] > m ? a[i] : m;
	return m;
}
static inline void r_put_shorts(int16_t *p, ri a, ri b)
{
	r_put_i16(p, a);
	r_put_i16(p + REG, b);
}
static inline float r_greatest(rf a)
{
	float m = a[0];
	for (int i = 1; i < REG; i++) m = a[i] > m ? a[i] : m;
	return m;
}
static inline rf r_greatests(const rf *a)
{
	rf m = { 0 };
	for (int i = 0; i < AT_ONCE; i++) m[i] = r_greatest(a[i]);
	return m;
}
static inline ri ri_greatests(const ri *a)
{
	ri m = { 0 };
	for (int i = 0; i < AT_ONCE; i++) m[i] = ri_greatest(a[i]);
	return m;
}
/* lane l += lane l + 8, then + 4, + 2, + 1 */
static inline float r_tree(const float *p)
{
	float s[16];
	memcpy(s, p, sizeof s);
	for (int h = 8; h; h /= 2) for (int l = 0; l < h; l++) s[l] += s[l + h];
	return s[0];
}
static inline rf r_trees(const rf *a)
{
	rf r = { 0 };
	for (int i = 0; i < REG; i++) {
		float s[REG];
		memcpy(s, a + i, sizeof s);
		for (int h = REG/2; h; h /= 2) for (int l = 0; l < h; l++) s[l] += s[l + h];
		r[i] = s[0];
	}
	return r;
}
static inline void r_put_32(int16_t *p, const ri *a, int16_t *sum)
{
	for (int h = 0; h < 2; h++) {
		ri all = { 0 };
		for (int i = 0; i < 16/REG; i++) {
			r_put_i16(p + 16*h + i*REG, a[16/REG*h + i]);
			all += a[16/REG*h + i];
		}
		if (sum) sum[h] = (int16_t)r_sum(all);
	}
}
