/* SPDX-License-Identifier: MIT
 * limits.c - see limits.h.
 *
 * The peaks are loops over independent sums in registers, enough of them to hide an instruction's latency; an empty
 * assembler statement makes the compiler treat each step's operands as new. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "../libgguf/pool.h"
#include "../quant/quant.h"
#include "limits.h"
#if defined __x86_64__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec*1e-9;
}
double limits_cpu_now(void) { return seconds(CLOCK_PROCESS_CPUTIME_ID); }
double limits_now(void) { return seconds(CLOCK_MONOTONIC); }

/* ---- products ---- */

enum { ROUNDS = 100000, SUMS = 12 };
/* peak_NAME: ROUNDS*SUMS steps, each of which updates a sum a with operands x and y */
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
PEAK(int16_c, , __m128i, "x", _mm_add_epi32(a[i], _mm_madd_epi16(x, y)))
PEAK(f32_avx2, FOR("avx2,fma"), __m256, "x", _mm256_fmadd_ps(x, y, a[i]))
PEAK(int16_avx2, FOR("avx2"), __m256i, "x", _mm256_add_epi32(a[i], _mm256_madd_epi16(x, y)))
PEAK(int8_avx2, FOR("avx2"), __m256i, "x",
	_mm256_add_epi32(a[i], _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), _mm256_set1_epi16(1))))
PEAK(int16_avxvnni, FOR("avx2,avxvnni"), __m256i, "x", _mm256_dpwssd_avx_epi32(a[i], x, y))
PEAK(int8_avxvnni, FOR("avx2,avxvnni"), __m256i, "x", _mm256_dpbusd_avx_epi32(a[i], x, y))
PEAK(f32_avx512, FOR("avx512f"), __m512, "v", _mm512_fmadd_ps(x, y, a[i]))
PEAK(int16_avx512bw, FOR("avx512f,avx512bw"), __m512i, "v", _mm512_add_epi32(a[i], _mm512_madd_epi16(x, y)))
PEAK(int8_avx512bw, FOR("avx512f,avx512bw"), __m512i, "v",
	_mm512_add_epi32(a[i], _mm512_madd_epi16(_mm512_maddubs_epi16(x, y), _mm512_set1_epi16(1))))
PEAK(int16_avx512, FOR("avx512f,avx512vnni"), __m512i, "v", _mm512_dpwssd_epi32(a[i], x, y))
PEAK(int8_avx512, FOR("avx512f,avx512vnni"), __m512i, "v", _mm512_dpbusd_epi32(a[i], x, y))
#elif defined __aarch64__
PEAK(f32_neon, , float32x4_t, "w", vfmaq_f32(a[i], x, y))
PEAK(int16_neon, , int32x4_t, "w",
	vmlal_s16(a[i], vget_low_s16(vreinterpretq_s16_s32(x)), vget_low_s16(vreinterpretq_s16_s32(y))))
PEAK(int8_neon, , int16x8_t, "w",
	vmlal_s8(a[i], vget_low_s8(vreinterpretq_s8_s16(x)), vget_low_s8(vreinterpretq_s8_s16(y))))
/* In assembler, since the compiler's flags need not allow the instruction. */
static inline int32x4_t sdot(int32x4_t a, int32x4_t x, int32x4_t y)
{
	__asm__(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(a) : "w"(x), "w"(y));
	return a;
}
static inline int32x4_t smmla(int32x4_t a, int32x4_t x, int32x4_t y)
{
	__asm__(".arch_extension i8mm\n\tsmmla %0.4s, %1.16b, %2.16b" : "+w"(a) : "w"(x), "w"(y));
	return a;
}
PEAK(int8_dotprod, , int32x4_t, "w", sdot(a[i], x, y))
PEAK(int8_i8mm, , int32x4_t, "w", smmla(a[i], x, y))
#endif

/* AMX: sixteen rows of 64 bytes times sixteen columns of 64 a step; four sums, two operands each. Their shape is
 * constant data as in quant/panel_amx.c, which says why. */
enum { AMX_MACS = 16*16*64, AMX_STEPS = 12, AMX_ROUNDS = ROUNDS/50 };
#if defined __x86_64__
FOR("amx-tile,amx-int8") static void peak_amx(void)
{
	static const struct { uint8_t palette, start, zero[14]; uint16_t row_bytes[16]; uint8_t rows[16]; } shape = {
		1, .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 }, .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };
	_tile_loadconfig(&shape);
	_tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
	_tile_zero(4); _tile_zero(5); _tile_zero(6); _tile_zero(7);
	for (int n = 0; n < AMX_ROUNDS*AMX_STEPS; n += 4) {
		_tile_dpbusd(0, 4, 6);
		_tile_dpbusd(1, 4, 7);
		_tile_dpbusd(2, 5, 6);
		_tile_dpbusd(3, 5, 7);
	}
	_tile_release();
}
#else
static void peak_amx(void) {}
#endif

/* ---- memory ---- */

/* read_NAME: reads n bytes in registers of `bytes` into four sums */
#define READ(name, features, bytes) \
features static void read_##name(const char *p, size_t n) \
{ \
	typedef uint64_t reg __attribute__((vector_size(bytes), aligned(8), may_alias)); \
	reg s[4] = { { 0 } }; \
	for (size_t i = 0; i < n; i += 4*bytes) \
		_Pragma("GCC unroll 4") for (size_t k = 0; k < 4; k++) \
			s[k] ^= *(const reg *)(const void *)(p + i + k*bytes); \
	s[0] ^= s[1] ^ s[2] ^ s[3]; \
	__asm__ volatile("" : : "m"(s[0])); \
}
READ(c, , 16)
#if defined __x86_64__
READ(avx2, FOR("avx2"), 32)
READ(avx512, FOR("avx512f"), 64)
#endif

enum { COPY_BYTES = 256 << 10, COPIES = 16 };
static void copy(void)
{
	static _Thread_local char from[COPY_BYTES], to[COPY_BYTES];
	for (int i = 0; i < COPIES; i++) {
		memcpy(to, from, COPY_BYTES);
		__asm__ volatile("" : : "r"(from), "r"(to) : "memory");
	}
}

/* ---- all ---- */

/* *_macs: multiply-adds of a step. */
static const struct peak {
	const char *isa;
	void (*int16)(void), (*int8)(void), (*f32)(void), (*read)(const char *, size_t);
	double int16_macs, int8_macs, f32_macs;
} peaks[] = {
#if defined __x86_64__
	{ "c", peak_int16_c, peak_int16_c, peak_f32_c, read_c, 8, 8, 4 },
	{ "avx2", peak_int16_avx2, peak_int8_avx2, peak_f32_avx2, read_avx2, 16, 32, 8 },
	{ "avxvnni", peak_int16_avxvnni, peak_int8_avxvnni, peak_f32_avx2, read_avx2, 16, 32, 8 },
	{ "avx512bw", peak_int16_avx512bw, peak_int8_avx512bw, peak_f32_avx512, read_avx512, 32, 64, 16 },
	{ "avx512", peak_int16_avx512, peak_int8_avx512, peak_f32_avx512, read_avx512, 32, 64, 16 },
	{ "avx512vbmi", peak_int16_avx512, peak_int8_avx512, peak_f32_avx512, read_avx512, 32, 64, 16 },
	{ "zen4", peak_int16_avx512, peak_int8_avx512, peak_f32_avx512, read_avx512, 32, 64, 16 },
	{ "amx", peak_int16_avx512, peak_int8_avx512, peak_f32_avx512, read_avx512, 32, 64, 16 },
#elif defined __aarch64__
	{ "neon", peak_int16_neon, peak_int8_neon, peak_f32_neon, read_c, 4, 8, 4 },
	{ "dotprod", peak_int16_neon, peak_int8_dotprod, peak_f32_neon, read_c, 4, 16, 4 },
	{ "i8mm", peak_int16_neon, peak_int8_i8mm, peak_f32_neon, read_c, 4, 32, 4 },
#endif
	{ NULL, NULL, NULL, NULL, read_c, 0, 0, 0 }
};

static void call(void *ctx, size_t task, int worker)
{
	void (*const *run)(void) = ctx;
	(void)task, (void)worker;
	(*run)();
}
/* How many billion times a second all workers together, at the same time, do what `run` does. */
static double rate(struct ggu_pool *pool, void (*run)(void))
{
	size_t n = (size_t)ggu_pool_size(pool);
	const struct ggu_phase phase = { call, &run, n, GGU_TAKE_OWN };
	double secs;
	if (!run) return 0;
	LIMITS_BEST_BY(limits_now, secs, 0.12, ggu_pool_phases(pool, &phase, 1));
	return (double)n/secs*1e-9;
}

static const struct peak *peak_of(const char *isa)
{
	const struct peak *p = peaks;
	while (p->isa && strcmp(p->isa, isa)) p++;
	return p;
}
double limits_products(const char *isa, bool f32)
{
	const struct peak *p = peak_of(isa);
	void (*run)(void) = f32 ? p->f32 : p->int16;
	double start = limits_cpu_now();
	if (!run) return 0;
	run();
	return (double)ROUNDS*SUMS*(f32 ? p->f32_macs : p->int16_macs)/(limits_cpu_now() - start)*1e-9;
}

/* ---- reads ---- */

/* n bytes for each worker */
struct limits_reader { char *p; size_t n, bytes; void (*read)(const char *, size_t); struct ggu_pool *pool; };
static void fill(void *ctx, size_t task, int worker)
{
	const struct limits_reader *r = ctx;
	(void)worker;
	memset(r->p + task*r->n, 1, r->n);
}
static void read_own(void *ctx, size_t task, int worker)
{
	const struct limits_reader *r = ctx;
	(void)worker;
	r->read(r->p + task*r->n, r->n);
}
static void each_its_own(struct limits_reader *r, void (*fn)(void *, size_t, int))
{
	ggu_pool_phases(r->pool, &(struct ggu_phase){ fn, r, (size_t)ggu_pool_size(r->pool), GGU_TAKE_OWN }, 1);
}
/* Far more than caches hold, in memory of each worker's node, in huge pages if there are any. */
struct limits_reader *limits_reader_new(const char *isa, struct ggu_pool *pool)
{
	enum { LEAST = 256 << 20, EACH = 32 << 20 };
	size_t n = (size_t)ggu_pool_size(pool), bytes = n*EACH > LEAST ? n*EACH : LEAST;
	struct limits_reader *r = malloc(sizeof *r);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!r || p == MAP_FAILED) {
		if (p != MAP_FAILED) munmap(p, bytes);
		free(r);
		return NULL;
	}
	*r = (struct limits_reader){ p, bytes/n/256*256, bytes, peak_of(isa)->read, pool };
#ifdef MADV_HUGEPAGE
	madvise(p, bytes, MADV_HUGEPAGE);
#endif
	each_its_own(r, fill);
	return r;
}
void limits_reader_free(struct limits_reader *r)
{
	if (r) munmap(r->p, r->bytes);
	free(r);
}
double limits_reader_gb(struct limits_reader *r)
{
	double from = limits_now();
	if (!r) return 0;
	each_its_own(r, read_own);
	return (double)((size_t)ggu_pool_size(r->pool)*r->n)/(limits_now() - from)*1e-9;
}
static double read_speed(const char *isa, struct ggu_pool *pool)
{
	struct limits_reader *r = limits_reader_new(isa, pool);
	double best = 0;
	for (double end = limits_now() + 0.25; r && limits_now() < end;) {
		double gb = limits_reader_gb(r);
		if (gb > best) best = gb;
	}
	limits_reader_free(r);
	return best;
}

static bool is_available(const char *isa)
{
	const char *const *set = quant_available();
	while (*set && strcmp(*set, isa)) set++;
	return *set;
}
struct limits limits_of(const char *isa, struct ggu_pool *pool)
{
	const struct peak *p = peak_of(isa);
	struct limits l = { .copy_gb = (double)COPIES*COPY_BYTES*rate(pool, copy) };
	const double steps = (double)ROUNDS*SUMS;
	l.read_gb = read_speed(isa, pool);
	l.int16_gmacs = steps*p->int16_macs*rate(pool, p->int16);
	l.int8_gmacs = steps*p->int8_macs*rate(pool, p->int8);
	l.f32_gmacs = steps*p->f32_macs*rate(pool, p->f32);
	if (!strcmp(isa, "amx") && is_available(isa))
		l.amx_gmacs = (double)AMX_ROUNDS*AMX_STEPS*AMX_MACS*rate(pool, peak_amx);
	return l;
}
struct ggu_pool *limits_of_one_and_all(const char *isa, struct limits *one, struct limits *all)
{
	struct ggu_pool *pool = ggu_pool_new(1);
	*one = limits_of(isa, pool);
	ggu_pool_free(pool);
	pool = ggu_pool_new(0);
	*all = limits_of(isa, pool);
	return pool;
}
