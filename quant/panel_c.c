/* SPDX-License-Identifier: MIT
 * panel_c.c - panels in portable C: the definition. A tile is one output and one token, so that a panel and a strip are
 * columns in order. */
#include "fused.h"
#include "interleave_c.h"

static void strip(const struct narrow *q, size_t block, char *to) { mul_strip(interleave, 1, false, q, block, to); }
static inline int32_t dot(const int16_t *w, const int16_t *x, size_t n)
{
	int32_t s = 0;
	for (size_t i = 0; i < n; i++) s += w[i]*x[i];
	return s;
}
static inline float float_at(const char *p) { float f; memcpy(&f, p, sizeof f); return f; }

static inline void gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	const size_t n = mul_block(kind);
	for (size_t t = 0; t < n_strips; t++) {
		float *acc = mul_results(y, t, 1);
		const char *w = panel, *x = strips + t*strip_bytes;
		for (size_t b = 0; b < n_blocks; b++, w += mul_panel_bytes(kind, 1), x += mul_strip_bytes(n, 1)) {
			const int16_t *wq = (const void *)w, *xq = (const void *)x;
			float d = float_at(w + mul_panel_d(kind, 1)), xd = float_at(x + mul_strip_d(n, 1));
			float m = mul_has_m(kind) ? float_at(w + mul_panel_m(kind, 1)) : 0;
			*acc = fused(d*xd, (float)dot(wq, xq, kind == MUL_16 ? 16 : n), *acc);
			if (kind == MUL_16) *acc = fused(m*xd, (float)dot(wq + 16, xq + 16, 16), *acc);
			if (kind == MUL_32_MIN) *acc = fused(m*xd, float_at(x + mul_strip_sum(n, 1)), *acc);
			if (kind == MUL_256_MIN) *acc = fused(m*xd, (float)dot(wq + 256, xq + 256, 16), *acc);
		}
		mul_results_done(y, t, 1, 1);
	}
}
MUL_GEMM(gemm_16, gemm, MUL_16)
MUL_GEMM(gemm_32, gemm, MUL_32)
MUL_GEMM(gemm_32_min, gemm, MUL_32_MIN)
MUL_GEMM(gemm_256, gemm, MUL_256)
MUL_GEMM(gemm_256_min, gemm, MUL_256_MIN)

const struct panel_table quant_panel_c = {
	.outputs = 1, .tokens = 1, .few = 8, .codes = interleave, .pairs = interleave, .strip = strip, .sums = true,
	.gemm = { gemm_16, gemm_32, gemm_32_min, gemm_256, gemm_256_min },
};
