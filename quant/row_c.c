/* SPDX-License-Identifier: MIT
 * row_c.c - row products in portable C, the definition: row_text.h in the words of bytes_c.h. Partial sums wrap around,
 * as registers do; the total fits. */
#include "bytes_c.h"
#define ROW_TABLE quant_row_c

typedef uint32_t isum;
static inline isum i_zero(void) { return 0; }
static inline isum i_add(isum a, isum b) { return a + b; }
static inline isum i_codes16(isum a, const int8_t *q, const int16_t *x)
{
	int32_t s = 0;
	for (int i = 0; i < 16; i++) s += q[i]*x[i];
	return a + (uint32_t)s;
}
static inline isum i_codes32(isum a, const int8_t *q, const int16_t *x)
{
	return i_codes16(i_codes16(a, q, x), q + 16, x + 16);
}
static inline isum i_scaled(isum a, const int8_t *q, const int16_t *sc, const int16_t *x)
{
	return a + i_codes16(0, q, x)*(uint32_t)sc[0] + i_codes16(0, q + 16, x + 16)*(uint32_t)sc[1];
}
static inline isum i_pairs(isum a, const int16_t *u, const int16_t *v)
{
	int32_t s = 0;
	for (int i = 0; i < 16; i++) s += u[i]*v[i];
	return a + (uint32_t)s;
}
static inline void i_totals(const isum *s, int32_t *total) { for (int i = 0; i < 8; i++) total[i] = (int32_t)s[i]; }
static inline void x_put(int16_t *to, const int16_t *q, size_t n) { memcpy(to, q, n*sizeof *q); }
static inline int x_get(const int16_t *from, size_t i) { return from[i]; }
#include "row_text.h"
