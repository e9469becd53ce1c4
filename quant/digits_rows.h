/* SPDX-License-Identifier: MIT
 * digits_rows.h - part of digits_256.h and digits_512.h: where ROWS rows begin. */

/* Where a block of each row begins: pointers for every fourth row, and the distances of the three rows after it. On
 * their own, compilers advance sixteen pointers. */
struct rows { const char *p[ROWS/4]; size_t stride, thrice; };
INLINE struct rows rows_at(const char *p, size_t stride)
{
	struct rows w = { .stride = stride, .thrice = 3*stride };
	UNROLL for (size_t i = 0; i < ROWS/4; i++) {
		w.p[i] = p + 4*i*stride;
		__asm__("" : "+r"(w.p[i]));
	}
	return w;
}
INLINE void rows_go(struct rows *w, size_t bytes) { UNROLL for (size_t i = 0; i < ROWS/4; i++) w->p[i] += bytes; }
INLINE const char *row(const struct rows *w, size_t r, int at)
{
	return w->p[r/4] + (r%4 == 3 ? w->thrice : r%4*w->stride) + at;
}
INLINE __m128i four_rows(const struct rows *w, size_t r, int at)
{
	__m128i a = _mm_loadu_si32(row(w, r, at));
	a = _mm_insert_epi32(a, (int)u32_of(row(w, r + 1, at)), 1);
	a = _mm_insert_epi32(a, (int)u32_of(row(w, r + 2, at)), 2);
	return _mm_insert_epi32(a, (int)u32_of(row(w, r + 3, at)), 3);
}
