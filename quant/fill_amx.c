/* SPDX-License-Identifier: MIT
 * fill_amx.c - fills the panels of panel_amx.c, which have digits of super-blocks, and those of panel_short_amx.c,
 * which have the codes of blocks of 32 and 16 times these. */
#if defined __x86_64__
#include <stdbool.h>
#include "mul.h"
#include "ymm_avx2.h"
#define FILL_TABLE quant_fill_amx
#define PUT_BYTES
enum { WIDTH = 32, BY_32 = true, LINE = 4*WIDTH, LOW = 256*WIDTH };
/* The int16 of a and b as bytes: in each lane, the two of a and then the two of b */
INLINE __m256i bytes_of(__m256i a, __m256i b)
{
	return _mm256_shuffle_epi8(_mm256_packs_epi16(a, b), _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 2, 3,
		10, 11, 4, 5, 12, 13, 6, 7, 14, 15)));
}
INLINE __m256i high_digits(__m256i a) { return _mm256_srai_epi16(_mm256_add_epi16(a, _mm256_set1_epi16(64)), 7); }
INLINE __m256i low_digits(__m256i a, __m256i high) { return _mm256_sub_epi16(a, _mm256_slli_epi16(high, 7)); }
INLINE void put_pairs(char *to, int column, __m256i p, __m256i q)
{
	const __m256i high_p = high_digits(p), high_q = high_digits(q), high = bytes_of(high_p, high_q),
		low = bytes_of(low_digits(p, high_p), low_digits(q, high_q));
	to += column/4*LINE;
	_mm256_storeu_si256((void *)to, high);
	_mm256_storeu_si256((void *)(to + LOW), low);
	_mm256_storeu_si256((void *)(to + mul_panel_bytes(MUL_256_MIN, WIDTH)), _mm256_add_epi8(high, low));
}
INLINE void put_bytes(char *to, int column, __m256i c)
{
	const __m256i sixteen = _mm256_and_si256(_mm256_slli_epi16(c, 4), _mm256_set1_epi8((char)0xf0));
	to += column/4*LINE;
	_mm256_storeu_si256((void *)to, c);
	_mm256_storeu_si256((void *)(to + 8*LINE), sixteen);
}
#include "fill_256.h"
#else
typedef int isa_none;
#endif
