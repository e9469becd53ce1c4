/* SPDX-License-Identifier: MIT
 * test_multiply.c - every block type at every instruction set: decode and multiply agree bit by bit with portable C on
 * random blocks, at odd sizes, with whatever scales random bits make; and portable C's products agree with those of
 * decoded weights and unpacked activations in double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../quant/quant.h"

enum { MAX_IN = 4352, MAX_OUT = 7, MAX_TOKENS = 5 };
static unsigned char w[MAX_OUT*(MAX_IN*4 + 64)], act[MAX_TOKENS*MAX_IN*5];
static float x[MAX_TOKENS*MAX_IN], want[MAX_TOKENS*MAX_OUT], got[MAX_TOKENS*MAX_OUT], row[MAX_IN], seen[MAX_IN];
static float decoded[2][MAX_OUT*MAX_IN];
static uint32_t seed;
static uint32_t next(void) { seed = seed*1664525u + 1013904223u; return seed >> 8; }

/* Random blocks with the scales of a block made modest: the same bits, but f16 and 8-bit exponents in the middle. */
static void blocks(const struct ggu_type_info *t, size_t bytes, bool wild)
{
	for (size_t i = 0; i < bytes; i++) w[i] = (unsigned char)next();
	for (size_t b = 0; !wild && b < bytes; b += t->block_bytes) {
		unsigned char *p = w + b;
		size_t at[2] = { 0, t->block_bytes };
		switch (t->id) {
		case GGU_TYPE_Q2_K: at[0] = 80; at[1] = 82; break;
		case GGU_TYPE_Q3_K: at[0] = 108; break;
		case GGU_TYPE_Q6_K: at[0] = 208; break;
		case GGU_TYPE_TQ1_0: at[0] = 52; break;
		case GGU_TYPE_TQ2_0: at[0] = 64; break;
		case GGU_TYPE_Q4_1: case GGU_TYPE_Q5_1: case GGU_TYPE_Q4_K: case GGU_TYPE_Q5_K: at[1] = 2; break;
		case GGU_TYPE_MXFP4: p[0] = (unsigned char)(118 + p[0]%8); continue;
		case GGU_TYPE_NVFP4: for (int i = 0; i < 4; i++) p[i] = (unsigned char)(32 + p[i]%32); continue;
		case GGU_TYPE_IQ1_M: p[49] &= 0x0f; p[51] &= 0x0f; p[53] = (unsigned char)((p[53] & 0x0f) | 0x40); p[55] = (unsigned char)((p[55] & 0x0f) | 0x20); continue;
		default: break;
		}
		for (int i = 0; i < 2 && at[i] < t->block_bytes; i++) p[at[i] + 1] = (unsigned char)((p[at[i] + 1] & 0x83) | 0x28);
	}
}
static int differ(const float *a, const float *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(a + i, b + i, 4) != 0 && !(isnan(a[i]) && isnan(b[i]))) return 1;
	return 0;
}

static void one(const struct ggu_type_info *t, size_t n_in, size_t n_out, size_t n_tokens, bool wild)
{
	size_t row_bytes = n_in/t->block_weights*t->block_bytes, act_bytes = quant_act_bytes(t->id, n_in);
	void *work = aligned_alloc(64, (quant_mul_work_bytes() + 63)/64*64);
	assert_non_null(work);
	assert_true(row_bytes*n_out + 1 <= sizeof w && act_bytes*n_tokens <= sizeof act);
	blocks(t, row_bytes*n_out, wild);
	for (size_t i = 0; i < n_in*n_tokens; i++) x[i] = (float)((int)(next() % 20001) - 10000)*1e-4f;
	for (const char *const *isa = quant_available(); *isa; isa++) {
		bool first = isa == quant_available();
		assert_int_equal(quant_select(*isa, NULL), GGU_OK);
		for (size_t k = 0; k < n_tokens; k++) quant_act_pack(t->id, x + k*n_in, n_in, act + k*act_bytes);
		quant_mul(t->id, n_tokens, n_out, n_in, w, row_bytes, act, first ? want : got, n_out, work);
		quant_decode(t->id, w, decoded[!first], n_in*n_out);
		if (!first && differ(decoded[0], decoded[1], n_in*n_out)) fail_msg("%s: decode differs at %s", t->name, *isa);
		if (!first && differ(want, got, n_tokens*n_out)) fail_msg("%s: product differs at %s, %zu x %zu x %zu", t->name, *isa, n_tokens, n_out, n_in);
	}
	for (size_t k = 0; !wild && k < n_tokens; k++) {
		quant_act_unpack(t->id, act + k*act_bytes, seen, n_in);
		for (size_t o = 0; o < n_out; o++) {
			double s = 0, size = 0;
			memcpy(row, decoded[0] + o*n_in, n_in*sizeof *row);
			for (size_t i = 0; i < n_in; i++) { s += (double)row[i]*seen[i]; size += fabs((double)row[i]*seen[i]); }
			if (!(fabs(s - want[k*n_out + o]) <= 1e-5*size))
				fail_msg("%s: product %g, want %g", t->name, (double)want[k*n_out + o], s);
		}
	}
	free(work);
}
static void products(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		const struct ggu_type_info *t = ggu_type_info(type);
		if (!t || t->kind != GGU_KIND_BLOCK || !quant_can_multiply(type)) continue;
		seed = 17 + type;
		for (int k = 0; k < 12; k++) {
			size_t unit = t->block_weights, n_in = k < 4 ? unit*(size_t)(1 + k) : unit*(1 + next() % (MAX_IN/unit));
			one(t, n_in, 1 + next() % MAX_OUT, 1 + next() % MAX_TOKENS, k % 3 == 2);
		}
	}
}
static void all_types(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		const struct ggu_type_info *t = ggu_type_info(type);
		if (!t || t->kind != GGU_KIND_BLOCK || type == GGU_TYPE_Q8_1 || type == GGU_TYPE_Q8_K) continue;
		if (!quant_can_decode(type) || !quant_can_multiply(type)) fail_msg("%s: no decode or no product", t->name);
	}
}
int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_types), cmocka_unit_test(products) };
	return cmocka_run_group_tests_name("multiply", tests, NULL, NULL);
}
