/* SPDX-License-Identifier: MIT
 * test_registers.c - kernels leave the upper halves of vector registers clear, so that the baseline code which called
 * them does not pay for mixing (SSE instructions after AVX).
 *
 * XGETBV with 1 in ECX says which parts of the register file are in use. Bits 2 and 6, the upper halves of ymm and zmm
 * 0 to 15, must be off. Bit 7, zmm 16 to 31, is free: no SSE instruction can name those registers. */
#include <stdio.h>
#include "../../libgguf/types.h"
#include "../../quant/quant.h"
#include "../../quant/vec.h"
#include "../lib/kerntest.h"
#if defined __x86_64__
#include <cpuid.h>
#include <immintrin.h>

static unsigned in_use(void)
{
	unsigned lo, hi;
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(1));
	return lo & (1u << 2 | 1u << 6);
}
static bool can_tell(void)
{
	unsigned a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX)) return false;
	if (!__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a & 4)) return false;
	__asm__ volatile("vzeroupper" ::: "memory");
	return !in_use();
}
/* loads ymm0: if an upper half in use did not show here, the test would prove nothing */
static bool does_tell(void)
{
	static const float ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	bool seen;
	__asm__ volatile("vmovups %0, %%ymm0" : : "m"(ones) : "xmm0");
	seen = in_use();
	__asm__ volatile("vzeroupper" ::: "memory");
	return seen;
}
/* does the compiler clear what it used? */
__attribute__((target("avx2"), noinline)) static void twice(float *p)
{
	__m256 a = _mm256_loadu_ps(p);
	_mm256_storeu_ps(p, _mm256_add_ps(a, a));
}
static bool is_compiled_to(void)
{
	static float ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	bool dirty;
	twice(ones);
	dirty = in_use();
	__asm__ volatile("vzeroupper" ::: "memory");
	return !dirty;
}
static void clear(const char *what)
{
	if (!in_use()) return;
	kt_fail("%s leaves them in use", what);
	__asm__ volatile("vzeroupper" ::: "memory");
}

enum { N = 1024, TOKENS = 17, OUT = 5 };
static _Alignas(64) char work[4 << 20];
static uint8_t w[OUT*N*8];
static _Alignas(64) uint8_t act[48*N*5];
static float x[TOKENS*N], y[TOKENS*N];

static void check_type(const struct ggu_type_info *t)
{
	size_t row = N/t->block_weights*t->block_bytes;
	kt_fill_blocks(t, w, OUT*N/t->block_weights, KT_RANDOM);
	kt_fill_floats(x, TOKENS*N, KT_MIXED);
	if (quant_can_decode(t->id)) { quant_decode(t->id, w, y, N); clear("decoding"); }
	if (quant_can_multiply(t->id)) {
		struct quant_mul m = { t->id, 0, OUT, N, w, row, act, y, OUT };
		for (m.n_tokens = 1; m.n_tokens <= TOKENS; m.n_tokens += 8) {
			quant_act_pack(quant_act_of(t->id), x, N, m.n_tokens, N, 0, m.n_tokens, act);
			clear("packing");
			quant_mul(&m, 0, m.n_tokens, 0, OUT, work);
			clear("multiplying");
		}
	}
	if (quant_can_encode(t->id)) { quant_encode(t->id, NULL, x, y, 1, N, 3, w); clear("encoding"); }
}
static void check_vectors(size_t n)
{
	double error = 0, norm = 0, sums[2][67] = { { 0 } };
	float s = vec_dot(x, y, n); clear("dot");
	s += vec_sum(x, n); clear("sum");
	s += vec_max(x, n); clear("max");
	s += (float)vec_beyond(x, n, 1e9f); clear("beyond");
	vec_loss(x, y, NULL, n, &error, &norm); clear("loss");
	vec_squares(sums[0], sums[1], x, 0, 2, n); clear("squares");
	vec_axpy(y, s, x, n); clear("axpy");
	vec_scale(y, 0.5f, n); clear("scale");
	vec_scale_mul(y, x, 0.5f, x, n); clear("scale_mul");
	vec_add(y, x, n); clear("add");
	vec_mul(y, x, n); clear("mul");
	vec_exp(y, n); clear("exp");
	vec_silu(y, y, x, n); clear("silu");
	vec_gelu_tanh(y, x, NULL, n); clear("gelu_tanh");
	vec_softmax(y, n); clear("softmax");
}

int main(int argc, char **argv)
{
	if (!can_tell() || !does_tell()) {
		puts("1..0 # SKIP this CPU does not tell which registers are in use");
		return 0;
	}
	if (!is_compiled_to()) {
		puts("1..0 # SKIP built without the optimisation that clears registers");
		return 0;
	}
	kt_begin(argc, argv);
	for (const char *const *isa = quant_available(); *isa; isa++) {
		quant_select(*isa, NULL);
		kt_name("%s: upper halves are clear after every kernel", *isa);
		for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++)
			if (ggu_type_info(id)) check_type(ggu_type_info(id));
		kt_result();
		kt_name("%s: upper halves are clear after every vector function", *isa);
		for (size_t n = 0; n <= 67; n++) check_vectors(n);
		kt_result();
	}
	return kt_end();
}
#else
int main(void)
{
	puts("1..0 # SKIP registers have no upper halves of their own");
	return 0;
}
#endif
