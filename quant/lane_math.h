/* SPDX-License-Identifier: MIT
 * lane_math.h - loads, fma and exp over a register of floats: the vocabulary of loops over elements that have nothing
 * to do with each other. lane16.h has the registers. Every lane has the bits of portable C. */
#ifndef QUANT_LANE_MATH_H
#define QUANT_LANE_MATH_H
#include "kern.h"
#include "lane16.h"

static inline rf r_floats(const float *p) { rf a; memcpy(&a, p, sizeof a); return a; }
static inline void r_put(float *p, rf a) { memcpy(p, &a, sizeof a); }
static inline rf r_dup(float x) { return x - (rf){ 0 }; }
static inline rf r_sel(ri m, rf a, rf b) { return (rf)(((ri)a & m) | ((ri)b & ~m)); }
static inline rf r_pick(rf a, ri from)          /* lane i is a's lane from[i] */
{
#if defined __clang__
	rf r;
	for (int i = 0; i < REG; i++) r[i] = a[from[i]];
	return r;
#else
	return __builtin_shuffle(a, from);
#endif
}
static inline rf r_abs(rf a) { return (rf)((ri)a & INT32_MAX); }
static inline rf r_fma(rf a, rf b, rf c)
{
#if defined __AVX512F__
	return (rf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined __AVX2__ && defined __FMA__
	return (rf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined LANE_NEON
	return (rf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
	rf r = { 0 };
	for (int i = 0; i < REG; i++) r[i] = fmaf(a[i], b[i], c[i]);
	return r;
#endif
}
/* The first of n lanes of a, and of memory; zeros elsewhere. */
static inline rf r_part(const float *p, size_t n) { rf a = { 0 }; memcpy(&a, p, n*4); return a; }
static inline void r_put_part(float *p, rf a, size_t n) { memcpy(p, &a, n*4); }
/* REG halves and bfloats as floats; of NaN, r_f16 may change the payload. */
static inline rf r_bf16(const void *p)
{
#if defined __AVX512F__
	return (rf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16);
#elif defined __AVX2__
	return (rf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16);
#else
	return (rf)(r_widen(p) << 16);
#endif
}
/* as kern_f16_to_f32, without branches */
static inline rf r_f16_exact(const void *p)
{
	ri h = r_widen(p), m = h & 0x7fff, below = m < 0x400;
	ri sub = (ri)(__builtin_convertvector(m, rf)*0x1p-24f),
		r = (m << 13) + 0x38000000 + ((m >= 0x7c00) & 0x38000000);
	return (rf)((sub & below) | (r & ~below) | (-(h >> 15) & INT32_MIN));
}
static inline rf r_f16(const void *p)
{
#if defined __AVX512F__
	return (rf)_mm512_cvtph_ps(_mm256_loadu_si256(p));
#elif defined __F16C__
	return (rf)_mm256_cvtph_ps(_mm_loadu_si128(p));
#elif defined LANE_NEON
	uint16x4_t h;
	memcpy(&h, p, sizeof h);
	return (rf)vcvt_f32_f16(vreinterpret_f16_u16(h));
#else
	return r_f16_exact(p);
#endif
}
/* REG bytes and halves as integers: compilers take detours to widen a vector fourfold. */
typedef int8_t r_bytes __attribute__((vector_size(REG)));
static inline ri r_i8(const void *p)
{
#if defined __AVX512F__
	return (ri)_mm512_cvtepi8_epi32(_mm_loadu_si128(p));
#elif defined __AVX2__
	return (ri)_mm256_cvtepi8_epi32(_mm_loadl_epi64(p));
#else
	r_bytes a;
	memcpy(&a, p, sizeof a);
	return __builtin_convertvector(a, ri);
#endif
}
static inline ri r_u8(const void *p)
{
#if defined __AVX512F__
	return (ri)_mm512_cvtepu8_epi32(_mm_loadu_si128(p));
#elif defined __AVX2__
	return (ri)_mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
#else
	return r_i8(p) & 0xff;
#endif
}
/* Twice as many bytes as pairs of int16, and sums of products of such pairs. */
typedef int16_t rs __attribute__((vector_size(4*REG), may_alias));
typedef int8_t rs_bytes __attribute__((vector_size(2*REG)));
static inline rs r_i8_pairs(const void *p)
{
#if defined __AVX512BW__
	return (rs)_mm512_cvtepi8_epi16(_mm256_loadu_si256(p));
#elif defined __AVX2__
	return (rs)_mm256_cvtepi8_epi16(_mm_loadu_si128(p));
#else
	rs_bytes a;
	memcpy(&a, p, sizeof a);
	return __builtin_convertvector(a, rs);
#endif
}
static inline rs r_u8_pairs(const void *p)
{
#if defined __AVX512BW__
	return (rs)_mm512_cvtepu8_epi16(_mm256_loadu_si256(p));
#elif defined __AVX2__
	return (rs)_mm256_cvtepu8_epi16(_mm_loadu_si128(p));
#else
	return r_i8_pairs(p) & 0xff;
#endif
}
static inline ri r_pairs(rs a, rs b, ri sum)
{
#if defined __AVX512VNNI__
	return (ri)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined __AVX512BW__
	return sum + (ri)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined __AVXVNNI__
	return (ri)_mm256_dpwssd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
#elif defined __AVX2__
	return sum + (ri)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined LANE_NEON
	int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
	return sum + (ri)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
#else
	for (int i = 0; i < REG; i++) sum[i] += a[2*i]*b[2*i] + a[2*i + 1]*b[2*i + 1];
	return sum;
#endif
}
/* a + 16 where a bit is set, a below 16; bits has one for each lane, from bit `at` on, which is a multiple of REG */
static inline ri r_or_16(ri a, const uint8_t *bits, size_t at)
{
#if defined __AVX512F__
	__mmask16 m;
	memcpy(&m, bits + at/8, sizeof m);
	return (ri)_mm512_mask_or_epi32((__m512i)a, m, (__m512i)a, _mm512_set1_epi32(16));
#else
	ri lane = { 0 }, all = (ri){ 0 } + (bits[at/8] >> at%8);
	for (int i = 0; i < REG; i++) lane[i] = i;
	return a | (all >> lane & 1) << 4;
#endif
}
static inline rf r_int(ri a) { return __builtin_convertvector(a, rf); }
static inline void r_put_i16(int16_t *p, ri a)
{
	typedef int16_t narrow __attribute__((vector_size(2*REG)));
	narrow b = __builtin_convertvector(a, narrow);
	memcpy(p, &b, sizeof b);
}
static inline int32_t r_sum(ri a)
{
#if defined __AVX512F__
	return _mm512_reduce_add_epi32((__m512i)a);
#elif defined __AVX2__
	__m128i s = _mm_add_epi32(_mm256_castsi256_si128((__m256i)a), _mm256_extracti128_si256((__m256i)a, 1));
	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
	return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
#else
	int32_t sum = 0;
	for (int i = 0; i < REG; i++) sum += a[i];
	return sum;
#endif
}
/* 32 integers as int16, and the sums of each 16 of them, which fit as well */
static inline void r_put_32(int16_t *p, const ri *a, int16_t *sum)
{
#if defined __AVX2__ && !defined __AVX512F__
	const __m256i one = _mm256_set1_epi16(1);
	__m256i s[2];
	__m128i both;
	for (int h = 0; h < 2; h++) {
		__m256i w = _mm256_packs_epi32((__m256i)a[2*h], (__m256i)a[2*h + 1]);
		w = _mm256_permute4x64_epi64(w, 0xd8);
		_mm256_storeu_si256((void *)(p + 16*h), w);
		s[h] = _mm256_madd_epi16(w, one);
	}
	s[0] = _mm256_hadd_epi32(s[0], s[1]);
	both = _mm_add_epi32(_mm256_castsi256_si128(s[0]), _mm256_extracti128_si256(s[0], 1));
	both = _mm_add_epi32(both, _mm_shuffle_epi32(both, 0xb1));
	sum[0] = (int16_t)_mm_cvtsi128_si32(both);
	sum[1] = (int16_t)_mm_extract_epi16(both, 4);
#else
	for (int h = 0; h < 2; h++) {
		ri all = { 0 };
		for (int i = 0; i < 16/REG; i++) {
			r_put_i16(p + 16*h + i*REG, a[16/REG*h + i]);
			all += a[16/REG*h + i];
		}
		sum[h] = (int16_t)r_sum(all);
	}
#endif
}
/* No lane is NaN. */
static inline float r_greatest(rf a)
{
#if defined __AVX512F__
	return _mm512_reduce_max_ps((__m512)a);
#elif defined __AVX2__
	__m128 m = _mm_max_ps(_mm256_castps256_ps128((__m256)a), _mm256_extractf128_ps((__m256)a, 1));
	m = _mm_max_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
#else
	float m = a[0];
	for (int i = 1; i < REG; i++) m = a[i] > m ? a[i] : m;
	return m;
#endif
}

/* e^z for z in -104.5..89, as p*2^k: z = k ln 2 + r, |r| <= ln 2 / 2; p = e^r by its Taylor sum to r^7/7! (the rest is
 * below 0.05 ulp). k is 0 where z is not a number. */
static inline rf r_exp_parts(rf z, ri *k)
{
	const rf big = r_dup(12582912.0f);      /* adding it rounds to a whole number */
	rf n = r_fma(z, r_dup(1.44269504f), big) - big, r, p;
	*k = __builtin_convertvector(r_sel(z == z, n, (rf){ 0 }), ri);
	r = r_fma(n, r_dup(-0.693359375f), z);          /* ln 2 in two parts, the first of 9 bits */
	r = r_fma(n, r_dup(2.12194440e-4f), r);
	p = r_fma(r, r_dup(1.98412698e-4f), r_dup(1.38888889e-3f));
	p = r_fma(p, r, r_dup(8.33333333e-3f));
	p = r_fma(p, r, r_dup(4.16666667e-2f));
	p = r_fma(p, r, r_dup(1.66666667e-1f));
	p = r_fma(p, r, r_dup(0.5f));
	p = r_fma(p, r, r_dup(1.0f));
	return r_fma(p, r, r_dup(1.0f));
}
/* 2^k in two factors so that subnormal results come out. Within 1 ulp where the result is normal; 0 below -104, inf
 * above 88.73. */
static inline rf r_exp(rf x)
{
	ri k, half;
	rf z = r_sel(x < -104.5f, r_dup(-104.5f), r_sel(x > 89.0f, r_dup(89.0f), x)), p = r_exp_parts(z, &k);
	half = k >> 1;
	p = p*(rf)((half + 127) << 23)*(rf)((k - half + 127) << 23);
	return r_sel(x == x, p, x);
}
/* The same for x up to 0, but 0 where x < -87, so that 2^k is one addition to the exponent; NaN stays what it is. */
static inline rf r_exp_below(rf x)
{
	ri k, dead = x < -87.0f;
	rf p = r_exp_parts(r_sel(dead, (rf){ 0 }, x), &k);
	return (rf)(((ri)p + (k << 23)) & ~dead);
}
/* tanh, odd: below 0.625 x + x^3 P(x^2), P fitted for the least greatest relative error; above 1 - 2/(e^2x + 1). */
static inline rf r_tanh(rf x)
{
	rf t = r_abs(x), z = x*x, p, far;
	p = r_fma(z, r_dup(-5.70497848e-3f), r_dup(2.06390787e-2f));
	p = r_fma(p, z, r_dup(-5.37397116e-2f));
	p = r_fma(p, z, r_dup(0.133314416f));
	p = r_fma(p, z, r_dup(-0.333332807f));
	p = r_fma(p*z, x, x);
	far = 1.0f - 2.0f/(r_exp(t + t) + 1.0f);
	far = (rf)((ri)far | ((ri)x & INT32_MIN));
	return r_sel(t < 0.625f, p, r_sel(x == x, far, x));
}

/* e^w for w in -708..0: as r_exp_parts, in double, whose Taylor sum to r^9/9! is near enough for floats */
typedef int64_t rl __attribute__((vector_size(4*REG), may_alias));
static inline rd r_exp_double(rd w)
{
	const rd big = (rd){ 0 } + 0x1.8p52;
	rd t = w*1.4426950408889634 + big, k = t - big,
		r = w - k*6.93147180369123816490e-01 - k*1.90821492927058770002e-10, p = r*(1.0/362880);
	p = (p + 1.0/40320)*r;
	p = (p + 1.0/5040)*r;
	p = (p + 1.0/720)*r;
	p = (p + 1.0/120)*r;
	p = (p + 1.0/24)*r;
	p = (p + 1.0/6)*r;
	p = (p + 0.5)*r;
	p = (p + 1)*r + 1;
	return (rd)((rl)p + ((rl)t << 52));
}
/* The normal distribution function, in double because e^-square asks for more digits than a float has. For z = |x|,
 * erfc(z/sqrt 2)/2 = e^-(z^2/2) P(u)/(1 + 1.5 z) with u = (z - 3)/(z + 3), P fitted for the least greatest relative
 * error, 5e-10, on z up to 14.5, beyond which it is no float any more. */
static inline rd r_normal(rd x)
{
	static const double c[] = { 3.488537088269e-05, 0.0001328776660952, -2.230600223094e-05, -0.0008331248678684,
		-0.0003508650076751, 0.005007098618481, 0.0002863175412718, -0.03716088126577,
		0.09085273750151, -0.08626075178754, -0.04158883525733, 0.6683267159987 };
	rl is_far, positive = x > 0;
	rd z = (rd)((rl)x & INT64_MAX), u, p = (rd){ 0 } + c[0], beyond;
	is_far = z > 14.5;
	z = (rd)(((rl)z & ~is_far) | ((rl)((rd){ 0 } + 14.5) & is_far));
	u = (z - 3)/(z + 3);
	for (size_t i = 1; i < sizeof c/sizeof *c; i++) p = p*u + c[i];
	beyond = (rd)((rl)(r_exp_double(-0.5*z*z)*p/(1 + 1.5*z)) & ~is_far);
	return (rd)(((rl)(1 - beyond) & positive) | ((rl)beyond & ~positive));
}
#endif
