/* SPDX-License-Identifier: MIT
 * vec_text.h - the functions of vec.h, one text for all instruction sets; vec_c.c, vec_avx2.c and
 * vec_avx512.c compile it. Defines the table VEC_TABLE.
 *
 * The vocabulary is lane16.h. A rest of less than 16 elements is padded with zeros, which no sum can see. */
#include "lane_math.h"
#include "vec_internal.h"

static inline float dot1(const float *a, const float *b, size_t n)
{
	t16 s = t_dup(0);
	float l[16];
	size_t i = 0;
	for (; i + 16 <= n; i += 16) s = t_fma(t_load(a + i), t_load(b + i), s);
	if (i == n) return v_tree(t_to(s));
	t_store(l, s);
	for (size_t k = 0; i < n; i++, k++) l[k] = fmaf(a[i], b[i], l[k]);
	return v_tree(v_load(l));
}
static float dot(const float *a, const float *b, size_t n) { return dot1(a, b, n); }
static void dots(const float *a, const float *rows, size_t stride, size_t n_rows, size_t n, float *out)
{
	for (size_t r = 0; r < n_rows; r++) out[r] = dot1(a, rows + r*stride, n);
}

static float sum(const float *a, size_t n)
{
	v16 s = { 0 };
	size_t i = 0;
	for (; i + 16 <= n; i += 16) s += v_load(a + i);
	if (i < n) s += v_part(a + i, n - i);
	return v_tree(s);
}

static float max(const float *a, size_t n)
{
	float m = -INFINITY;
	for (size_t i = 0; i < n; i++) {
		if (a[i] != a[i]) return a[i];
		m = a[i] > m ? a[i] : m;
	}
	return m;
}

/* By their bits magnitudes are ordered as integers, with NaN above infinity. */
static size_t beyond(const float *a, size_t n, float limit)
{
	int32_t u, least;
	size_t i = 0;
	memcpy(&least, &limit, 4);
	for (; i + 64 <= n; i += 64) {
		ri any = { 0 };
		for (size_t j = i; j < i + 64; j += REG) any |= (r_load(a + j) & 0x7fffffff) >= least;
		if (r_any(any)) break;
	}
	for (; i < n; i++) {
		memcpy(&u, a + i, 4);
		if ((u & 0x7fffffff) >= least) break;
	}
	return i;
}

enum { RD = REG/2, PARTS = 16/RD };
static inline double double_tree(const rd *a)
{
	double s[16];
	memcpy(s, a, sizeof s);
	for (int h = 8; h; h /= 2) for (int l = 0; l < h; l++) s[l] += s[l + h];
	return s[0];
}
static void loss(const float *x, const float *y, const float *w, size_t n, double *error, double *norm)
{
	rd e[PARTS] = { { 0 } }, s[PARTS] = { { 0 } };
	float rest[3][16] = { { 0 } };
	for (size_t i = 0; i < n; i += 16) {
		const float *xi = x + i, *yi = y + i, *wi = w ? w + i : NULL;
		if (n - i < 16) {               /* zeros, which no sum can see */
			memcpy(rest[0], xi, (n - i)*sizeof *x);
			memcpy(rest[1], yi, (n - i)*sizeof *y);
			if (w) memcpy(rest[2], wi, (n - i)*sizeof *w);
			xi = rest[0], yi = rest[1], wi = w ? rest[2] : NULL;
		}
		_Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++) {
			rd a = r_double(xi + p*RD), d = r_double(yi + p*RD) - a, wd = d, wa = a;
			if (wi) {
				wd = r_double(wi + p*RD)*d;
				wa = r_double(wi + p*RD)*a;
			}
			e[p] += wd*d;
			s[p] += wa*a;
		}
	}
	*error += double_tree(e);
	*norm += double_tree(s);
}

/* y[j] = fma(p[r], rows[r][j], y[j]), r in order: a column is one chain */
static void mix(float *y, const float *p, const float *rows, size_t stride, size_t n_rows, size_t n)
{
	size_t j = 0;
	for (; j + 64 <= n; j += 64) {
		t16 a = t_load(y + j), b = t_load(y + j + 16), c = t_load(y + j + 32), d = t_load(y + j + 48);
		for (size_t r = 0; r < n_rows; r++) {
			const float *x = rows + r*stride + j;
			t16 q = t_dup(p[r]);
			a = t_fma(q, t_load(x), a);
			b = t_fma(q, t_load(x + 16), b);
			c = t_fma(q, t_load(x + 32), c);
			d = t_fma(q, t_load(x + 48), d);
		}
		t_store(y + j, a); t_store(y + j + 16, b); t_store(y + j + 32, c); t_store(y + j + 48, d);
	}
	for (; j < n; j += 16) {
		size_t w = n - j < 16 ? n - j : 16;
		v16 a = v_part(y + j, w);
		for (size_t r = 0; r < n_rows; r++) a = v_fma(v_dup(p[r]), v_part(rows + r*stride + j, w), a);
		v_put(y + j, a, w);
	}
}

static void axpy(float *y, float a, const float *x, size_t n) { mix(y, &a, x, n, 1, n); }

/* Whole vectors of an array, then the padded rest. */
#define EACH(n, EXPR) \
	size_t i = 0; \
	for (; i + 16 <= (n); i += 16) { v16 x = v_load(y + i); v_store(y + i, EXPR); } \
	if (i < (n)) { v16 x = v_part(y + i, (n) - i); v_put(y + i, EXPR, (n) - i); }

static void scale(float *y, float a, size_t n) { EACH(n, x*v_dup(a)) }
static void add(float *y, const float *b, size_t n)
{
	size_t i = 0;
	for (; i + 16 <= n; i += 16) v_store(y + i, v_load(y + i) + v_load(b + i));
	for (; i < n; i++) y[i] += b[i];
}
static void mul(float *y, const float *b, size_t n)
{
	size_t i = 0;
	for (; i + 16 <= n; i += 16) v_store(y + i, v_load(y + i)*v_load(b + i));
	for (; i < n; i++) y[i] *= b[i];
}

/* e^x: x = k ln 2 + r, |r| <= ln 2 / 2; e^r by its Taylor sum to r^7/7! (the rest is below 0.05 ulp); 2^k in two
 * factors so that subnormal results come out. Within 1 ulp where the result is normal; 0 below -104, inf above 88.73. */
static inline v16 v_exp(v16 x)
{
	const v16 big = v_dup(12582912.0f);     /* adding it rounds to a whole number */
	v16 z = v_sel(x < -104.5f, v_dup(-104.5f), v_sel(x > 89.0f, v_dup(89.0f), x));
	v16 k = v_fma(z, v_dup(1.44269504f), big) - big, r, p;
	i16 n = __builtin_convertvector(v_sel(x == x, k, (v16){ 0 }), i16), half = n >> 1;
	r = v_fma(k, v_dup(-0.693359375f), z);          /* ln 2 in two parts, the first of 9 bits */
	r = v_fma(k, v_dup(2.12194440e-4f), r);
	p = v_fma(r, v_dup(1.98412698e-4f), v_dup(1.38888889e-3f));
	p = v_fma(p, r, v_dup(8.33333333e-3f));
	p = v_fma(p, r, v_dup(4.16666667e-2f));
	p = v_fma(p, r, v_dup(1.66666667e-1f));
	p = v_fma(p, r, v_dup(0.5f));
	p = v_fma(p, r, v_dup(1.0f));
	p = v_fma(p, r, v_dup(1.0f));
	p = p*(v16)((half + 127) << 23)*(v16)((n - half + 127) << 23);
	return v_sel(x == x, p, x);
}
/* x / (1 + e^-t); for t far below 0 the quotient is -0 as it should be */
static inline v16 v_gate(v16 x, v16 t) { return x/(1.0f + v_exp(-t)); }
static void expv(float *y, size_t n) { EACH(n, v_exp(x)) }
static void silu(float *y, size_t n) { EACH(n, v_gate(x, x)) }
/* x/2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3) */
static void gelu_tanh(float *y, size_t n) { EACH(n, v_gate(x, 1.5957691216f*(x + 0.044715f*x*x*x))) }

/* Whole registers of an array, then the padded rest. */
#define EACH_REG(n, EXPR) \
	size_t i = 0; \
	for (; i + REG <= (n); i += REG) { rf x = r_floats(y + i); r_put(y + i, EXPR); } \
	if (i < (n)) { rf x = r_part(y + i, (n) - i); r_put_part(y + i, EXPR, (n) - i); }
static void tanhv(float *y, size_t n) { EACH_REG(n, r_tanh(x)) }

static void softmax(float *y, size_t n)
{
	float m = max(y, n), s;
	{ EACH(n, v_exp(x - v_dup(m))) }
	s = sum(y, n);
	{ EACH(n, x/v_dup(s)) }
}

const struct vec_table VEC_TABLE = { dot, dots, sum, max, beyond, loss, mix, axpy, scale, add, mul, expv, silu, gelu_tanh, tanhv, softmax };
