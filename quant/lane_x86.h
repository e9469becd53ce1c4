/* SPDX-License-Identifier: MIT
 * lane_x86.h - what lane_avx2.h and lane_avx512.h share. */
#include <immintrin.h>

static inline float r_tree(const float *p)
{
	__m256 h = _mm256_add_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
	__m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
	q = _mm_add_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
