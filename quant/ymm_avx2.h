/* SPDX-License-Identifier: MIT
 * ymm_avx2.h - the rest of ymm.h for AVX2. */
#include "ymm.h"
INLINE __m256i i_madd(__m256i a, __m256i u, __m256i v) { return _mm256_add_epi32(a, _mm256_madd_epi16(u, v)); }
