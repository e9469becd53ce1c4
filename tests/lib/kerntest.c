/* SPDX-License-Identifier: MIT
 * kerntest.c - see kerntest.h. Blocks are filled with bytes of some kind; scales_at knows where each type has its
 * scales, which then get sane or wild values. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "guard.h"
#include "kerntest.h"
#include "slow.h"

static uint64_t state;
static unsigned long long first_seed;
static int n_tests, n_failed;
static char name[160], why[240], last_words[260];

/* ---- TAP ---- */

static void touched(int sig)
{
	ssize_t n = write(1, last_words, strlen(last_words));
	(void)sig;
	_exit(n < 0 ? 3 : 2);
}

void kt_begin(int argc, char **argv)
{
	const char *s = argc > 1 ? argv[1] : getenv("TEST_SEED");
	first_seed = s ? strtoull(s, NULL, 0) : (unsigned long long)time(NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# TEST_SEED=%llu\n", first_seed);
	kt_reseed(first_seed);
	signal(SIGSEGV, touched);
	signal(SIGBUS, touched);
}
void kt_name(const char *format, ...)
{
	va_list a;
	va_start(a, format);
	vsnprintf(name, sizeof name, format, a);
	va_end(a);
	snprintf(last_words, sizeof last_words, "Bail out!  %s: memory beside a buffer was touched, TEST_SEED=%llu\n",
		name, first_seed);
}
bool kt_fail(const char *format, ...)
{
	va_list a;
	if (*why) return false;
	va_start(a, format);
	vsnprintf(why, sizeof why, format, a);
	va_end(a);
	return false;
}
bool kt_failed(void) { return *why; }
void kt_result(void)
{
	n_failed += *why != 0;
	printf("%sok %d - %s\n", *why ? "not " : "", ++n_tests, name);
	if (*why) printf("# %s (TEST_SEED=%llu)\n", why, first_seed);
	if (*why && getenv("TEST_STOP")) exit(1);
	*why = 0;
}
int kt_end(void)
{
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}

/* ---- numbers ---- */

void kt_reseed(uint64_t seed) { state = seed*0x9e3779b97f4a7c15u + 1; }
uint32_t kt_random(void)
{
	state = state*6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 32);
}
size_t kt_below(size_t n) { return kt_random() % n; }
float kt_uniform(void) { return ((float)(kt_random() >> 8) - 0x1p23f)*0x1p-23f; }
float kt_bell(void) { return 0.5f*(kt_uniform() + kt_uniform() + (kt_uniform() + kt_uniform())); }

bool kt_same(const float *a, const float *b, size_t n, size_t *at)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(a + i, b + i, 4) && !(isnan(a[i]) && isnan(b[i]))) {
			if (at) *at = i;
			return false;
		}
	return true;
}

/* ---- buffers ---- */

void *kt_buffer(size_t n)
{
	void *p = guard_new(n, kt_random() % GUARD_SIDES);
	if (!p) { perror("kt_buffer"); exit(2); }
	return p;
}
void kt_free(void *p, size_t n) { if (guard_free(p, n)) kt_fail("wrote beside a buffer of %zu bytes", n); }

/* ---- inputs ---- */

const char *const kt_blocks_name[KT_BLOCKS] = { "random", "ff", "00", "80", "7f", "08", "ends of bytes",
	"longest sums", "wild scales" };
const char *const kt_floats_name[KT_FLOATS] = { "mixed", "plus", "minus", "signs", "outliers", "zero", "subnormal",
	"hair", "huge", "strange" };

/* The offsets of the scales, which are halves, in a type's block; -1: none. */
static void scales_at(uint32_t type, int at[2])
{
	at[0] = at[1] = -1;
	switch (type) {
	case GGU_TYPE_Q4_1: case GGU_TYPE_Q5_1: case GGU_TYPE_Q4_K: case GGU_TYPE_Q5_K: at[0] = 0; at[1] = 2; break;
	case GGU_TYPE_Q2_K: at[0] = 80; at[1] = 82; break;
	case GGU_TYPE_Q3_K: at[0] = 108; break;
	case GGU_TYPE_Q6_K: at[0] = 208; break;
	case GGU_TYPE_TQ1_0: at[0] = 52; break;
	case GGU_TYPE_TQ2_0: at[0] = 64; break;
	case GGU_TYPE_F32: case GGU_TYPE_F64: case GGU_TYPE_BF16: case GGU_TYPE_IQ1_M: case GGU_TYPE_MXFP4:
	case GGU_TYPE_NVFP4:
		break;
	default: at[0] = 0; break;
	}
}
static void set_scales(const struct ggu_type_info *t, uint8_t *w, bool wild)
{
	static const uint16_t odd[] = { 0, 0x8000, 1, 0x03ff, 0x8001, 0x83ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
		0x3c00, 0xbc00 };
	static const uint8_t exponents[] = { 0, 1, 2, 3, 127, 128, 253, 254, 255 };
	int at[2];
	float f = kt_uniform();
	double d = f*(kt_random() % 64 ? 1.000000001 : 1e300);
	scales_at(t->id, at);
	for (int k = 0; k < 2 && at[k] >= 0; k++) {
		uint16_t h = wild ? odd[kt_below(sizeof odd/sizeof *odd)] : (uint16_t)(0x1c00 + (kt_random() & 0x83ff));
		memcpy(w + at[k], &h, 2);
	}
	if (t->id == GGU_TYPE_F32 && !wild) memcpy(w, &f, 4);
	if (t->id == GGU_TYPE_F64 && !wild) memcpy(w, &d, 8);
	if (t->id == GGU_TYPE_BF16 && !wild) w[1] = (uint8_t)((w[1] & 0x80) | 0x3e);
	if (t->id == GGU_TYPE_MXFP4)
		w[0] = wild ? exponents[kt_below(sizeof exponents)] : (uint8_t)(110 + kt_below(20));
	if (t->id == GGU_TYPE_IQ1_M && wild)
		for (int i = 0; i < 4; i++)
			w[49 + 2*i] = (uint8_t)((w[49 + 2*i] & 15) | (odd[kt_below(9)] >> 4*i & 15) << 4);
	/* the uppermost bits of its half */
	if (t->id == GGU_TYPE_IQ1_M && !wild) w[55] = (uint8_t)((w[55] & 15) | 0x10);
	for (int i = 0; i < 4 && t->id == GGU_TYPE_NVFP4 && !wild; i++)
		w[i] = (uint8_t)(w[i] % 2 ? w[i] : 32 + w[i] % 32);
}
/* For one byte after another, from several starts, takes the value that makes the block's sum of |scale*code|
 * largest. */
static const uint8_t *longest(const struct ggu_type_info *t)
{
	static const uint8_t tries[] = { 0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0, 0x08, 0x88, 0x77, 0x3f, 0xaa, 0x55 };
	static uint8_t best[512], b[512];
	static uint32_t of = UINT32_MAX;
	long most = -1;
	if (of == t->id) return best;
	of = t->id;
	for (size_t start = 0; start < 4; start++) {
		long here = -1;
		memset(b, tries[start], sizeof b);
		for (size_t i = 0; i < t->block_bytes; i++) {
			uint8_t keep = b[i];
			for (size_t k = 0; k < sizeof tries; k++) {
				long sum = 0;
				b[i] = tries[k];
				for (size_t j = 0; j < t->block_weights; j++) {
					struct slow_weight w = { 0 };
					slow_weight(t->id, b, j, &w);
					sum += labs((long)w.scale*w.code);
				}
				if (sum > here) { here = sum; keep = b[i]; }
				if (sum > most) { most = sum; memcpy(best, b, sizeof b); }
			}
			b[i] = keep;
		}
	}
	return best;
}
void kt_fill_blocks(const struct ggu_type_info *t, uint8_t *w, size_t n_blocks, enum kt_blocks kind)
{
	static const uint8_t all[KT_BLOCKS] = { 0, 0xff, 0x00, 0x80, 0x7f, 0x08 }, top[4] = { 0x00, 0x7f, 0x80, 0xff };
	for (size_t i = 0; i < n_blocks*t->block_bytes; i++)
		w[i] = kind == KT_LONGEST ? longest(t)[i % t->block_bytes] :
			kind == KT_RANDOM || kind == KT_WILD ? (uint8_t)kt_random() :
			kind == KT_TOP ? top[kt_below(4)] : all[kind];
	for (size_t b = 0; b < n_blocks; b++) set_scales(t, w + b*t->block_bytes, kind == KT_WILD);
}

void kt_fill_floats(float *x, size_t n, enum kt_floats kind)
{
	static const float strange[] = { 0, -0.0f, 1e-45f, -1e-38f, 1e-30f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN,
		__builtin_nanf("0x3fffff"), -__builtin_nanf("0x3fffff") };
	float size = 1;
	for (size_t i = 0; i < n; i++) {
		float v = kt_uniform();
		if (i % 32 == 0) size = ldexpf(1, (int)kt_below(12) - 6);
		switch (kind) {
		case KT_PLUS: v = 1.5f; break;
		case KT_MINUS: v = -1.5f; break;
		case KT_SIGNS: v = v < 0 ? -1.5f : 1.5f; break;
		case KT_OUTLIERS: v *= kt_below(97) ? 1 : 1000; break;
		case KT_ZERO: v = v < 0 ? -0.0f : 0; break;
		case KT_SUBNORMAL: v *= 1e-39f; break;
		case KT_HAIR: v *= size*0x1p-96f; break;
		case KT_HUGE: v *= size < 1 ? 3.4e38f*size : 3.4e38f; break;
		case KT_STRANGE: v = kt_below(300) ? v : strange[kt_below(sizeof strange/sizeof *strange)]; break;
		default: v *= v*v*size; break;
		}
		x[i] = v;
	}
}
