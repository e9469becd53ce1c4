/* SPDX-License-Identifier: MIT
 * test_kernels.c - every type on every instruction set of this CPU.
 *
 *   test_kernels [SEED]      TAP; the seed is printed
 *
 * Decoding: equal to portable C bit for bit, and to the slow decoder of tests/lib. Products: equal to
 * portable C bit for bit for odd sizes, any number of tokens and any cut of the outputs; portable C is
 * near the product in double of what the packing kept. Inputs: random; every byte and every activation
 * at its end, so that sums are as long as they get; scales zero, negative, subnormal, infinite, NaN.
 * All buffers end at a page that may not be touched. No test library, so that it runs wherever a
 * compiler does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../quant/quant.h"
#include "../lib/guard.h"
#include "../lib/slow_decode.h"

enum { INPUTS = 8, RANDOM = 0, SCALES = 6, WILD = 7 };
static const char *const input_name[INPUTS] = { "random", "ff", "00", "80", "7f", "08", "odd scales", "wild activations" };
static uint64_t state;
static uint32_t rnd(void) { state = state*6364136223846793005u + 1442695040888963407u; return (uint32_t)(state >> 32); }
static int n_tests, n_failed;
static char why[256];

static void report(const char *type, const char *isa, const char *what)
{
	n_failed += *why != 0;
	printf("%sok %d - %s %s %s\n", *why ? "not " : "", ++n_tests, type, isa, what);
	if (*why) printf("# %s\n", why);
	*why = 0;
}
static void *buffer(size_t n)
{
	void *p = guard_new(n);
	if (!p) { perror("test_kernels"); exit(2); }
	return p;
}
static void done(void *p, size_t n) { if (guard_free(p, n)) snprintf(why, sizeof why, "wrote before a buffer"); }

/* Where the halves of a type's scales lie in its block; -1: there are none. */
static void scales_at(uint32_t type, int at[2])
{
	at[0] = at[1] = -1;
	switch (type) {
	case GGU_TYPE_Q4_0: case GGU_TYPE_Q5_0: case GGU_TYPE_Q8_0: at[0] = 0; break;
	case GGU_TYPE_Q4_1: case GGU_TYPE_Q5_1: case GGU_TYPE_Q4_K: case GGU_TYPE_Q5_K: at[0] = 0; at[1] = 2; break;
	case GGU_TYPE_Q2_K: at[0] = 80; at[1] = 82; break;
	case GGU_TYPE_Q3_K: at[0] = 108; break;
	case GGU_TYPE_Q6_K: at[0] = 208; break;
	case GGU_TYPE_TQ1_0: at[0] = 52; break;
	case GGU_TYPE_TQ2_0: at[0] = 64; break;
	case GGU_TYPE_IQ1_S: case GGU_TYPE_IQ2_XXS: case GGU_TYPE_IQ2_XS: case GGU_TYPE_IQ2_S: case GGU_TYPE_IQ3_XXS: case GGU_TYPE_IQ3_S:
	case GGU_TYPE_IQ4_NL: case GGU_TYPE_IQ4_XS: case GGU_TYPE_Q1_0: case GGU_TYPE_Q2_0: at[0] = 0; break;
	}
}

/* Blocks that decode to finite numbers of sane size unless the input is about scales. */
static void fill_weights(const struct ggu_type_info *t, uint8_t *w, size_t n_blocks, int input)
{
	static const uint8_t all[INPUTS] = { 0, 0xff, 0x00, 0x80, 0x7f, 0x08 };
	static const uint16_t odd[] = { 0, 0x8000, 1, 0x03ff, 0x8001, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3c00, 0xbc00 };
	int at[2];
	scales_at(t->id, at);
	for (size_t i = 0; i < n_blocks*t->block_bytes; i++) w[i] = input == RANDOM || input >= SCALES ? (uint8_t)rnd() : all[input];
	for (size_t b = 0; b < n_blocks; b++, w += t->block_bytes) {
		uint16_t h = (uint16_t)(0x1c00 + (rnd() & 0x83ff));
		float f = ((float)(rnd() & 0xffff) - 32768)*0x1p-15f;
		for (int k = 0; k < 2; k++) {
			if (at[k] < 0) continue;
			h = input == SCALES ? odd[rnd() % (sizeof odd/sizeof *odd)] : (uint16_t)(0x1c00 + (rnd() & 0x83ff));
			memcpy(w + at[k], &h, 2);
		}
		if (t->id == GGU_TYPE_MXFP4 && input != SCALES) w[0] = (uint8_t)(110 + rnd() % 20);     /* a power of two */
		if (t->id == GGU_TYPE_IQ1_M && input != SCALES) w[55] = (uint8_t)((w[55] & 15) | 0x10); /* a half's uppermost bits */
		if (t->id == GGU_TYPE_F32) memcpy(w, &f, 4);
		if (t->id == GGU_TYPE_F16 && input != SCALES) memcpy(w, &h, 2);
		if (t->id == GGU_TYPE_BF16) { h = quant_f32_to_bf16(f); memcpy(w, &h, 2); }
	}
}
static void fill_activations(float *x, size_t n, int input)
{
	static const float wild[] = { 0, -0.0f, 1e-45f, 1e-38f, 1e-30f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN };
	float size = 1;
	for (size_t i = 0; i < n; i++) {
		float v = ((float)(rnd() & 0xffff) - 32768)*0x1p-15f;
		if (i % 32 == 0) size = ldexpf(1, (int)(rnd() % 12) - 6);
		x[i] = input == RANDOM || input >= SCALES ? v*v*v*size : input & 1 ? 1.5f : -1.5f;
		if (input == WILD && rnd() % 200 == 0) x[i] = wild[rnd() % (sizeof wild/sizeof *wild)];
	}
}

static int same(const float *a, const float *b, size_t n)       /* bits, but any NaN is any NaN */
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(a + i, b + i, 4) && !(isnan(a[i]) && isnan(b[i]))) return 0;
	return 1;
}

static void check_decode(const struct ggu_type_info *t, const char *isa, int input)
{
	size_t blocks = t->block_weights == 1 ? 1 + rnd() % 99 : 1 + rnd() % 9, n = blocks*t->block_weights, bytes = blocks*t->block_bytes;
	uint8_t *w = buffer(bytes);
	float *c = buffer(4*n), *y = buffer(4*n);
	fill_weights(t, w, blocks, input);
	quant_select("c", NULL);
	quant_decode(t->id, w, c, n);
	quant_select(isa, NULL);
	quant_decode(t->id, w, y, n);
	if (!same(c, y, n)) snprintf(why, sizeof why, "differs from C, input %s", input_name[input]);
	for (size_t i = 0; i < n; i++) {
		float slow;
		if (!slow_decode(t->id, w, i, &slow)) break;
		if (!same(&slow, y + i, 1)) { snprintf(why, sizeof why, "weight %zu is %a, not %a, input %s", i, y[i], slow, input_name[input]); break; }
	}
	done(w, bytes); done(c, 4*n); done(y, 4*n);
}

/* C's product against double; finite inputs only */
static void check_near(const struct ggu_type_info *t, size_t n_in, const uint8_t *w, size_t stride, const void *act, const float *y, size_t o)
{
	float *a = buffer(4*n_in), *b = buffer(4*n_in);
	double sum = 0, size = 0;
	quant_decode(t->id, w + o*stride, a, n_in);
	quant_act_unpack(t->id, act, b, n_in);
	for (size_t i = 0; i < n_in; i++) { sum += (double)a[i]*b[i]; size += fabs((double)a[i]*b[i]); }
	if (t->kind == GGU_KIND_BLOCK) {        /* minima are subtracted after the products: count what they cancel */
		double wide = 0;
		for (size_t i = 0; i < n_in; i++) wide = fmax(wide, fabs((double)a[i]));
		for (size_t i = 0; i < n_in; i++) size += 64*wide*fabs((double)b[i]);
	}
	if (!(fabs(y[o] - sum) <= 1e-6*size + 1e-30)) snprintf(why, sizeof why, "C gives %.9g, double %.9g", y[o], sum);
	done(a, 4*n_in); done(b, 4*n_in);
}

static void check_mul(const struct ggu_type_info *t, const char *isa, size_t nt, size_t no, size_t n_in, int input)
{
	size_t blocks = n_in/t->block_weights, stride = blocks*t->block_bytes + (rnd() & 1)*t->block_bytes;
	size_t w_bytes = (no - 1)*stride + blocks*t->block_bytes, row = quant_act_bytes(t->id, n_in), y_stride = no + rnd() % 3;
	size_t y_bytes = 4*((nt - 1)*y_stride + no), cut = 1 + rnd() % no;
	uint8_t *w = buffer(w_bytes), *act = buffer(nt*row), *act_c = buffer(nt*row);
	float *x = buffer(4*n_in), *c = buffer(y_bytes), *y = buffer(y_bytes);
	void *work = NULL;
	if (posix_memalign(&work, 64, quant_mul_work_bytes())) exit(2);
	memset(work, 0xff, quant_mul_work_bytes());
	memset(c, 0xff, y_bytes); memset(y, 0xff, y_bytes);
	fill_weights(t, w, w_bytes/t->block_bytes, input);
	for (size_t i = 0; i < nt; i++) {
		fill_activations(x, n_in, input);
		quant_select("c", NULL);
		quant_act_pack(t->id, x, n_in, act_c + i*row);
		quant_select(isa, NULL);
		quant_act_pack(t->id, x, n_in, act + i*row);
	}
	if (memcmp(act, act_c, nt*row)) snprintf(why, sizeof why, "activations packed unlike C's, input %s", input_name[input]);
	quant_select("c", NULL);
	quant_mul(t->id, nt, no, n_in, w, stride, act_c, c, y_stride, work);
	if (input < SCALES) check_near(t, n_in, w, stride, act_c, c, rnd() % no);
	/* C itself: one row and one token at a time */
	for (size_t i = 0; i < nt*no; i += 1 + rnd() % 7) {
		float one;
		quant_mul(t->id, 1, 1, n_in, w + i%no*stride, stride, act_c + i/no*row, &one, 1, work);
		if (!same(&one, c + i/no*y_stride + i%no, 1)) snprintf(why, sizeof why, "C: a single product differs, input %s", input_name[input]);
	}
	quant_select(isa, NULL);
	quant_mul(t->id, nt, cut, n_in, w, stride, act, y, y_stride, work);
	if (cut < no) quant_mul(t->id, nt, no - cut, n_in, w + cut*stride, stride, act, y + cut, y_stride, work);
	for (size_t i = 0; i < nt; i++)
		if (!same(c + i*y_stride, y + i*y_stride, no))
			snprintf(why, sizeof why, "%zu tokens %zu outputs (cut at %zu) %zu inputs: differs from C, input %s", nt, no, cut, n_in, input_name[input]);
	for (size_t i = 0; i + 1 < nt; i++)
		for (size_t o = no; o < y_stride; o++)
			if (memcmp(y + i*y_stride + o, "\xff\xff\xff\xff", 4)) snprintf(why, sizeof why, "wrote beside the outputs");
	free(work);
	done(w, w_bytes); done(act, nt*row); done(act_c, nt*row); done(x, 4*n_in); done(c, y_bytes); done(y, y_bytes);
}

static void check_type(const struct ggu_type_info *t, const char *isa)
{
	for (int input = 0; input < INPUTS - 1; input++)
		for (int k = 0; k < 5 && !*why; k++) check_decode(t, isa, input);
	report(t->name, isa, "decodes");
	if (!quant_can_multiply(t->id)) return;
	size_t unit = t->block_weights, longest = unit == 1 ? 700 : 1 + 2600/unit;
	for (size_t nt = 1; nt <= 70 && !*why; nt += nt < 14 ? 1 : 1 + rnd() % 20)
		check_mul(t, isa, nt, 1 + rnd() % 37, unit*(1 + rnd() % longest), RANDOM);
	report(t->name, isa, "multiplies for any number of tokens and outputs");
	for (int input = 1; input < INPUTS && !*why; input++)
		for (size_t nt = 1; nt <= 9 && !*why; nt += 4) check_mul(t, isa, nt, 1 + rnd() % 37, unit*(1 + rnd() % longest), input);
	report(t->name, isa, "multiplies the largest, the smallest and the strangest");
}

static void check_scalars(void)
{
	for (uint32_t h = 0; h < 65536 && !*why; h++) {
		uint8_t b[2] = { (uint8_t)h, (uint8_t)(h >> 8) };
		float f = quant_f16_to_f32((uint16_t)h), g = quant_bf16_to_f32((uint16_t)h), slow;
		slow_decode(GGU_TYPE_F16, b, 0, &slow);
		if (!same(&f, &slow, 1)) snprintf(why, sizeof why, "half %04x is %a, not %a", h, f, slow);
		slow_decode(GGU_TYPE_BF16, b, 0, &slow);
		if (!same(&g, &slow, 1)) snprintf(why, sizeof why, "bfloat %04x", h);
		if (!isnan(f) && quant_f32_to_f16(f) != h) snprintf(why, sizeof why, "half %04x does not come back", h);
		if (!isnan(g) && quant_f32_to_bf16(g) != h) snprintf(why, sizeof why, "bfloat %04x does not come back", h);
		if ((h & 0x7fff) >= 0x7bff) continue;
		/* between two halves: the nearer one, at the middle the even one */
		float next = quant_f16_to_f32((uint16_t)(h + 1)), mid = f + (next - f)/2;
		if (quant_f32_to_f16(mid) != h + (h & 1) || quant_f32_to_f16(nextafterf(mid, f)) != h || quant_f32_to_f16(nextafterf(mid, next)) != h + 1)
			snprintf(why, sizeof why, "rounding beside half %04x", h);
	}
	report("f16", "bf16", "round and come back, all 65536");
}

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	printf("# seed %llu\n", (unsigned long long)state);
	state = state*0x9e3779b97f4a7c15u + 1;
	check_scalars();
	for (const char *const *isa = quant_available(); *isa; isa++)
		for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++) {
			const struct ggu_type_info *t = ggu_type_info(id);
			if (t && quant_can_decode(id)) check_type(t, *isa);
		}
	struct ggu_error err;
	if (quant_select("z80", &err) != GGU_ERR_UNSUPPORTED) snprintf(why, sizeof why, "z80 accepted");
	report("select", "-", "refuses what is not there");
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
