/* SPDX-License-Identifier: MIT
 * limits.c - see limits.h.
 *
 * The peaks are loops over independent sums in registers, enough of them to hide an instruction's latency; an empty
 * assembler statement makes each step's operands news to the compiler. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "limits.h"
#if defined __x86_64__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

double limits_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec*1e-9;
}

enum { ROUNDS = 100000, SUMS = 12 };
/* peak_NAME: ROUNDS*SUMS steps, of which each turns the sum a and the operands x and y into another a */
#define PEAK(name, features, vec, reg, step) \
features static void peak_##name(void) \
{ \
	vec a[SUMS], x = { 0 }, y = { 0 }; \
	_Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) a[i] = x; \
	for (long n = 0; n < ROUNDS; n++) \
		_Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) { \
			__asm__ volatile("" : "+" reg(x), "+" reg(y)); \
			a[i] = step; \
		} \
	_Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) __asm__ volatile("" : : reg(a[i])); \
}
#if defined __x86_64__
#define FOR(f) __attribute__((target(f)))
PEAK(f32_c, , __m128, "x", _mm_add_ps(a[i], _mm_mul_ps(x, y)))
PEAK(int8_c, , __m128i, "x", _mm_add_epi32(a[i], _mm_madd_epi16(x, y)))
PEAK(f32_avx2, FOR("avx2,fma"), __m256, "x", _mm256_fmadd_ps(x, y, a[i]))
PEAK(int8_avx2, FOR("avx2,fma"), __m256i, "x", _mm256_add_epi32(a[i], _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), _mm256_set1_epi16(1))))
PEAK(f32_avx512, FOR("avx512f"), __m512, "v", _mm512_fmadd_ps(x, y, a[i]))
PEAK(int8_avx512, FOR("avx512f,avx512vnni"), __m512i, "v", _mm512_dpbusd_epi32(a[i], x, y))
#elif defined __aarch64__
PEAK(f32_neon, , float32x4_t, "w", vfmaq_f32(a[i], x, y))
PEAK(int8_neon, , int16x8_t, "w", vmlal_s8(a[i], vget_low_s8(vreinterpretq_s8_s16(x)), vget_low_s8(vreinterpretq_s8_s16(y))))
#endif
/* read_NAME: n bytes by registers of `bytes`, into four sums */
#define READ(name, features, bytes) \
features static void read_##name(const char *p, size_t n) \
{ \
	typedef uint64_t reg __attribute__((vector_size(bytes), aligned(8), may_alias)); \
	reg s[4] = { { 0 } }; \
	for (size_t i = 0; i < n; i += 4*bytes) \
		_Pragma("GCC unroll 4") for (size_t k = 0; k < 4; k++) s[k] ^= *(const reg *)(const void *)(p + i + k*bytes); \
	s[0] ^= s[1] ^ s[2] ^ s[3]; \
	__asm__ volatile("" : : "m"(s[0])); \
}
READ(c, , 16)
#if defined __x86_64__
READ(avx2, FOR("avx2"), 32)
READ(avx512, FOR("avx512f"), 64)
#endif
/* multiply-adds of a step */
static const struct peak {
	const char *isa;
	void (*int8)(void), (*f32)(void), (*read)(const char *, size_t);
	double int8_macs, f32_macs;
} peaks[] = {
#if defined __x86_64__
	{ "c", peak_int8_c, peak_f32_c, read_c, 8, 4 },
	{ "avx2", peak_int8_avx2, peak_f32_avx2, read_avx2, 32, 8 },
	{ "avx512", peak_int8_avx512, peak_f32_avx512, read_avx512, 64, 16 },
#elif defined __aarch64__
	{ "neon", peak_int8_neon, peak_f32_neon, read_c, 8, 4 },
#endif
	{ NULL, NULL, NULL, read_c, 0, 0 }
};

static double read_speed(void (*read)(const char *, size_t))
{
	enum { BYTES = 256 << 20 };
	char *p = malloc(BYTES);
	double secs;
	if (!p) return 0;
	memset(p, 1, BYTES);
	LIMITS_BEST(secs, 0.2, read(p, BYTES));
	free(p);
	return BYTES/secs*1e-9;
}
static double copy_speed(void)
{
	enum { BYTES = 256 << 10 };
	static char from[BYTES], to[BYTES];
	double secs;
	LIMITS_BEST(secs, 0.05, for (int i = 0; i < 16; i++) { memcpy(to, from, BYTES); __asm__ volatile("" : : "r"(from), "r"(to) : "memory"); });
	return 16.0*BYTES/secs*1e-9;
}

struct limits limits_of(const char *isa)
{
	const struct peak *p = peaks;
	struct limits l = { 0, copy_speed(), 0, 0 };
	double secs;
	while (p->isa && strcmp(p->isa, isa)) p++;
	l.read_gb = read_speed(p->read);
	if (!p->isa) return l;
	LIMITS_BEST(secs, 0.1, p->int8());
	l.int8_gmacs = (double)ROUNDS*SUMS*p->int8_macs/secs*1e-9;
	LIMITS_BEST(secs, 0.1, p->f32());
	l.f32_gmacs = (double)ROUNDS*SUMS*p->f32_macs/secs*1e-9;
	return l;
}
