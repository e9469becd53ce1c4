/* SPDX-License-Identifier: MIT
 * digits_y_avxvnni.h - the rest of digits_y.h for AVX-VNNI. */
#include "digits_y.h"
INLINE __m256i i_madd(__m256i a, __m256i u, __m256i v) { return _mm256_dpwssd_epi32(a, u, v); }
