/* SPDX-License-Identifier: MIT
 * vec_text.h - the functions of vec.h, one text for all instruction sets; defines the table VEC_TABLE. An instance
 * (vec_ISA.c) first includes one of lane.h's vocabularies.
 *
 * A remainder of less than 16 elements is padded with zeros, which change no sum. */
#include "inline.h"
#include "lane_math.h"
#include "vec_internal.h"

static float dot(const float *a, const float *b, size_t n)
{
	t16 s = t_dup(0);
	float l[16];
	size_t i = 0;
	for (; i + 16 <= n; i += 16) s = t_fma(t_load(a + i), t_load(b + i), s);
	t_store(l, s);
	for (size_t k = 0; i < n; i++, k++) l[k] = fused(a[i], b[i], l[k]);
	return r_tree(l);
}

enum { LANE_REGS = 16/REG };    /* registers of sixteen lanes */
static float sum(const float *a, size_t n)
{
	rf s[LANE_REGS] = { { 0 } };
	float l[16];
	size_t i = 0;
	for (; i + 16 <= n; i += 16)
		UNROLL for (int p = 0; p < LANE_REGS; p++) s[p] += r_floats(a + i + p*REG);
	for (int p = 0; p < LANE_REGS; p++) memcpy(l + p*REG, s + p, sizeof *s);
	for (size_t k = 0; i < n; i++, k++) l[k] += a[i];
	return r_tree(l);
}

static float max(const float *a, size_t n)
{
	rf m = r_dup(-INFINITY);
	size_t i = 0;
	float top;
	for (; i + REG <= n; i += REG) {
		rf x = r_floats(a + i);
		if (r_any(x != x)) break;
		m = r_sel(x > m, x, m);
	}
	top = r_greatest(m);
	for (; i < n; i++) {
		if (a[i] != a[i]) return a[i];
		top = a[i] > top ? a[i] : top;
	}
	return top + 0.0f;              /* which of two zeros came first depends on the registers */
}

/* Each lane keeps its first largest element and the place of that. */
static size_t top(const float *a, size_t n)
{
	rf m = r_dup(-INFINITY);
	ri here = { 0 }, at;
	float best;
	size_t i = 0, first = 0;
	for (int p = 0; p < REG; p++) here[p] = p;
	at = here;
	for (; i + REG <= n; i += REG, here += REG) {
		rf x = r_floats(a + i);
		ri more = x > m;
		m = r_sel(more, x, m);
		at = (here & more) | (at & ~more);
	}
	best = r_greatest(m);
	if (i) first = n;
	for (int p = 0; i && p < REG; p++) if (m[p] == best && (size_t)at[p] < first) first = (size_t)at[p];
	for (; i < n; i++)
		if (a[i] > best) {
			best = a[i];
			first = i;
		}
	return first;
}

/* The bits of magnitudes, as integers, have the same order, with NaN above infinity. */
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
		if (n - i < 16) {               /* zeros, which change no sum */
			memcpy(rest[0], xi, (n - i)*sizeof *x);
			memcpy(rest[1], yi, (n - i)*sizeof *y);
			if (w) memcpy(rest[2], wi, (n - i)*sizeof *w);
			xi = rest[0], yi = rest[1], wi = w ? rest[2] : NULL;
		}
		UNROLL for (int p = 0; p < PARTS; p++) {
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

static inline void add_square(double *sum, double *rest, double x)
{
	double y = x*x, s = *sum + y, b = s - *sum, e = (*sum - (s - b)) + (y - b) + *rest;
	*sum = s + e;
	*rest = e - (*sum - s);
}
/* Some columns stay in registers over all rows: a column is one chain. */
static void squares(double *sum, double *rest, const float *x, size_t stride, size_t n_rows, size_t n)
{
	enum { COLUMNS = 4 };           /* registers of them */
	size_t j = 0;
	for (; j + COLUMNS*RD <= n; j += COLUMNS*RD) {
		rd s[COLUMNS], r[COLUMNS];
		memcpy(s, sum + j, sizeof s);
		memcpy(r, rest + j, sizeof r);
		for (size_t t = 0; t < n_rows; t++)
			UNROLL for (int p = 0; p < COLUMNS; p++) {
				rd a = r_double(x + t*stride + j + (size_t)p*RD), y = a*a;
				rd new = s[p] + y, b = new - s[p], e = (s[p] - (new - b)) + (y - b) + r[p];
				s[p] = new + e;
				r[p] = e - (s[p] - new);
			}
		memcpy(sum + j, s, sizeof s);
		memcpy(rest + j, r, sizeof r);
	}
	for (; j < n; j++) for (size_t t = 0; t < n_rows; t++) add_square(sum + j, rest + j, x[t*stride + j]);
}

static void axpy(float *y, float a, const float *x, size_t n)
{
	t16 by = t_dup(a);
	size_t j = 0;
	_Pragma("GCC unroll 4")
	for (; j + 16 <= n; j += 16) t_store(y + j, t_fma(by, t_load(x + j), t_load(y + j)));
	for (; j < n; j += REG) {
		size_t some = n - j < REG ? n - j : REG;
		r_put_part(y + j, r_fma(r_dup(a), r_part(x + j, some), r_part(y + j, some)), some);
	}
}

/* Whole registers of an array, then the padded remainder. */
#define EACH(n, EXPR) \
	size_t i = 0; \
	for (; i + REG <= (n); i += REG) { rf x = r_floats(y + i); r_put(y + i, EXPR); } \
	if (i < (n)) { rf x = r_part(y + i, (n) - i); r_put_part(y + i, EXPR, (n) - i); }

static void scale(float *y, float a, size_t n) { EACH(n, x*r_dup(a)) }
static void scale_mul(float *y, const float *x, float a, const float *w, size_t n)
{
	size_t i = 0;
	for (; i + REG <= n; i += REG) r_put(y + i, r_floats(x + i)*r_dup(a)*r_floats(w + i));
	for (; i < n; i++) y[i] = x[i]*a*w[i];
}
static void add(float *y, const float *b, size_t n)
{
	size_t i = 0;
	for (; i + REG <= n; i += REG) r_put(y + i, r_floats(y + i) + r_floats(b + i));
	for (; i < n; i++) y[i] += b[i];
}
static void mul(float *y, const float *b, size_t n)
{
	size_t i = 0;
	for (; i + REG <= n; i += REG) r_put(y + i, r_floats(y + i)*r_floats(b + i));
	for (; i < n; i++) y[i] *= b[i];
}

/* x / (1 + e^-t); for t far below 0 the quotient is -0 as it should be */
static inline rf gate(rf x, rf t) { return x/(1.0f + r_exp(-t)); }
static void expv(float *y, size_t n) { EACH(n, r_exp(x)) }
static void exp_from(double *y, const float *x, double from, size_t n)
{
	float rest[RD] = { 0 };
	for (size_t i = 0; i < n; i += RD) {
		size_t some = n - i < RD ? n - i : RD;
		rd w = r_double(some < RD ? memcpy(rest, x + i, some*sizeof *x) : x + i) - from, e;
		rl beyond = (w < -700) | (w > 700), keep = (w != w) | (w > 700);
		e = r_exp_double((rd)((rl)w & ~beyond));
		e = (rd)((keep & (rl)(w*INFINITY)) | ((rl)e & ~keep & ~beyond));
		memcpy(y + i, &e, some*sizeof *y);
	}
}
static inline rf silu_of(rf x) { return gate(x, x); }
/* x/2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3) */
static inline rf gelu_tanh_of(rf x) { return gate(x, 1.5957691216f*(x + 0.044715f*x*x*x)); }
INLINE void each_times(rf of(rf), float *y, const float *x, const float *by, size_t n)
{
	size_t i = 0;
	for (; i + REG <= n; i += REG) {
		rf a = of(r_floats(x + i));
		if (by) a *= r_floats(by + i);
		r_put(y + i, a);
	}
	if (i < n) {
		rf a = of(r_part(x + i, n - i));
		if (by) a *= r_part(by + i, n - i);
		r_put_part(y + i, a, n - i);
	}
}
static void silu(float *y, const float *x, const float *by, size_t n) { each_times(silu_of, y, x, by, n); }
static void gelu_tanh(float *y, const float *x, const float *by, size_t n) { each_times(gelu_tanh_of, y, x, by, n); }
static void gelu(float *y, const float *from, const float *by, size_t n)
{
	float rest[REG/2] = { 0 };
	for (size_t i = 0; i < n; i += REG/2) {
		size_t some = n - i < REG/2 ? n - i : REG/2;
		rd x = r_double(some < REG/2 ? memcpy(rest, from + i, some*sizeof *y) : from + i);
		rf2 f = __builtin_convertvector(x*r_normal(x), rf2);
		memcpy(y + i, &f, some*sizeof *y);
	}
	if (by) mul(y, by, n);
}
static void softplus(float *y, size_t n) { EACH(n, r_softplus(x)) }
static void tanhv(float *y, size_t n) { EACH(n, r_tanh(x)) }

static float sum_exp(const float *a, size_t n, float m)
{
	rf s[LANE_REGS] = { { 0 } }, base = r_dup(m);
	float l[16], rest[16] = { 0 };
	size_t i = 0;
	for (; i + 16 <= n; i += 16)
		UNROLL for (int p = 0; p < LANE_REGS; p++) s[p] += r_exp(r_floats(a + i + p*REG) - base);
	for (int p = 0; p < LANE_REGS; p++) memcpy(l + p*REG, s + p, sizeof *s);
	for (size_t k = 0; i + k < n; k += REG) {
		size_t some = n - i - k < REG ? n - i - k : REG;
		r_put_part(rest + k, r_exp(r_part(a + i + k, some) - base), some);
	}
	for (size_t k = 0; i < n; i++, k++) l[k] += rest[k];
	return r_tree(l);
}

static void turn(float *a, float *b, const float *c, const float *s, size_t n)
{
	size_t i = 0;
	for (; i + REG <= n; i += REG) {
		rf p = r_floats(a + i), q = r_floats(b + i), x = r_floats(c + i), y = r_floats(s + i);
		r_put(a + i, p*x - q*y);
		r_put(b + i, q*x + p*y);
	}
	for (; i < n; i++) {
		float p = a[i], q = b[i];
		a[i] = p*c[i] - q*s[i];
		b[i] = q*c[i] + p*s[i];
	}
}
/* A register has REG/2 pairs: each number becomes itself times its cosine plus its partner times the sine, which is
 * negated for the first of a pair; that is the same as subtracting. */
static inline void turn_register(float *a, rf cos, rf sin, ri partner, ri minus)
{
	rf x = r_floats(a);
	r_put(a, x*cos + r_pick(x, partner)*(rf)((ri)sin ^ minus));
}
static void turn_pairs(float *a, const float *c, const float *s, size_t n)
{
	ri partner = { 0 }, low = { 0 }, minus = { 0 };
	size_t i = 0;
	for (int p = 0; p < REG; p++) {
		partner[p] = p ^ 1;
		low[p] = p/2;
		minus[p] = p%2 ? 0 : INT32_MIN;
	}
	for (; i + REG <= n; i += REG) {
		rf x = r_floats(c + i), y = r_floats(s + i);
		turn_register(a + 2*i, r_pick(x, low), r_pick(y, low), partner, minus);
		turn_register(a + 2*i + REG, r_pick(x, low + REG/2), r_pick(y, low + REG/2), partner, minus);
	}
	for (; i < n; i++) turn(a + 2*i, a + 2*i + 1, c + i, s + i, 1);
}

static void softmax(float *y, size_t n)
{
	float m = max(y, n), s;
	{ EACH(n, r_exp(x - r_dup(m))) }
	s = sum(y, n);
	{ EACH(n, x/r_dup(s)) }
}

#include "scan_text.h"

const struct vec_table VEC_TABLE = { dot, sum, max, beyond, loss, squares, axpy, scale, scale_mul, add, mul, expv,
	tanhv, softmax, silu, gelu, gelu_tanh, top, sum_exp, turn, turn_pairs, exp_from, softplus, conv,
	channels, head };
