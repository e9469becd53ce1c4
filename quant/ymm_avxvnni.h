/* SPDX-License-Identifier: MIT
 * ymm_avxvnni.h - the rest of ymm.h for AVX-VNNI. */
#include "ymm.h"
INLINE __m256i i_madd(__m256i a, __m256i u, __m256i v) { return _mm256_dpwssd_epi32(a, u, v); }
