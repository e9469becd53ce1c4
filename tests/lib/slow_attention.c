/* SPDX-License-Identifier: MIT
 * slow_attention.c - see slow_attention.h. It goes through splits and tiles as the contract says, one number at a
 * time. */
#include <math.h>
#include <stdlib.h>
#include "../../quant/vec.h"
#include "slow_attention.h"

static float e(float x)
{
	if (x < -87) return 0;
	vec_exp(&x, 1);
	return x;
}
static bool sees(const struct attn *a, size_t pos, size_t p)
{
	switch (a->mask) {
	case ATTN_NONE: return true;
	case ATTN_CAUSAL: return p <= pos;
	case ATTN_WINDOW: return p <= pos && (!a->window || p + a->window > pos);
	case ATTN_CHUNK: return p <= pos && (!a->window || p/a->window == pos/a->window);
	default: return p <= pos + a->window/2 && pos <= p + a->window/2;
	}
}
size_t slow_range(const struct attn *a, size_t n_pos, size_t pos, size_t *to)
{
	size_t from = 0;
	while (from < n_pos && !sees(a, pos, from)) from++;
	for (*to = from; *to < n_pos && sees(a, pos, *to); ++*to) ;
	return from;
}

static double bias_of(const struct attn *a, size_t head, size_t pos, size_t p)
{
	long d = (long)p - (long)pos, reach = (long)a->reach;
	if (a->bias_kind == ATTN_ALIBI) return -(double)a->bias[head]*(double)labs(d);
	if (a->bias_kind == ATTN_RELATIVE) return (double)a->bias[(long)head*(2*reach + 1) + reach + (d < -reach
		? -reach : d > reach ? reach : d)];
	return 0;
}
enum { WIDEST = 1024, SHARE = 128 };    /* SHARE: how many numbers of I16 share a scale */

static size_t share_of(uint32_t type) { return type == GGU_TYPE_I16 ? SHARE : 32; }
static float greatest_of(uint32_t type) { return type == GGU_TYPE_I16 ? 4095 : 2032; }
static float scale_of(const float *x, size_t n)
{
	float most = 0;
	for (size_t i = 0; i < n; i++) {
		if (!(fabsf(x[i]) < INFINITY)) return NAN;
		if (fabsf(x[i]) > most) most = fabsf(x[i]);
	}
	return most < 0x1p-96f ? 0 : most/greatest_of(GGU_TYPE_I16);
}
void slow_integers(const float *x, size_t n, struct slow_weight *w)
{
	for (size_t i = 0; i < n; i++) {
		size_t first = i/SHARE*SHARE;
		float d = scale_of(x + first, n - first < SHARE ? n - first : SHARE);
		w[i] = (struct slow_weight){ .d = (double)d, .scale = 1, .code = d > 0 ? (int)rintf(x[i]*(1/d)) : 0 };
	}
}
static void pack(uint32_t type, const float *q, size_t n, struct slow_act *act)
{
	struct slow_weight w[WIDEST];
	if (type != GGU_TYPE_I16) {
		slow_pack(type, q, n, act);
		return;
	}
	slow_integers(q, n, w);
	for (size_t i = 0; i < n; i++) act[i] = (struct slow_act){ (float)w[i].d, w[i].code };
}
static float integer_product(const struct slow_weight *k, size_t n, const struct slow_act *q)
{
	float s = 0;
	for (size_t i = 0, end; i < n; i = end) {
		int64_t sum = 0;
		end = i + SHARE < n ? i + SHARE : n;
		for (size_t j = i; j < end; j++) sum += (int64_t)k[j].code*q[j].q;
		s = fmaf((float)k[i].d*q[i].d, (float)sum, s);
	}
	return s;
}
/* A query, also as integers if it meets blocks. */
struct query { const struct attn *a; const float *q; struct slow_act act[WIDEST]; size_t head, pos; };

static float product(const struct query *x, const struct slow_past *past, size_t p)
{
	int64_t widest = 0;
	size_t n = x->a->shape.k_dim;
	float s = 0;
	if (!past->k_codes) {
		for (size_t i = 0; i < n; i++) s = fmaf(x->q[i], past->k[p*past->k_stride + i], s);
		return s;
	}
	if (x->a->shape.k_type == GGU_TYPE_I16)
		return integer_product(past->k_codes + p*past->k_stride, n, x->act);
	return slow_product(x->a->shape.k_type, past->k_codes + p*past->k_stride, n, x->act, &widest);
}
static float score(const struct query *x, const struct slow_past *past, size_t p)
{
	const struct attn *a = x->a;
	float s = product(x, past, p)*a->scale;
	if (a->softcap > 0) {
		s /= a->softcap;
		vec_tanh(&s, 1);
		s *= a->softcap;
	}
	if (a->bias_kind == ATTN_ALIBI)
		return fmaf(-a->bias[x->head], (float)labs((long)p - (long)x->pos), s);
	return a->bias_kind ? s + (float)bias_of(a, x->head, x->pos, p) : s;
}

static bool has_minima(uint32_t type) { return type == GGU_TYPE_Q5_1; }
struct sums { float m, l, a[WIDEST], minima[WIDEST/32][16]; };

/* Adds the weighted values of positions from..end - 1 of a tile. */
static void add_values(const struct attn *a, const struct slow_past *past, size_t from, size_t end, const float *w,
	struct sums *x)
{
	for (size_t p = from; p < end; p++)
		for (size_t j = 0; j < a->shape.v_dim; j++)
			x->a[j] = fmaf(w[p - from], past->v[p*past->v_stride + j], x->a[j]);
}
/* The same for codes: weights times the scales of a block become integers. */
static void add_codes(const struct attn *a, const struct slow_past *past, size_t from, size_t end, const float *w,
	struct sums *x)
{
	for (size_t j = 0, share = share_of(a->shape.v_type); j < a->shape.v_dim; j += share) {
		const struct slow_weight *v = past->v_codes + from*past->v_stride + j;
		float u[ATTN_BLOCK], most = 0, d;
		for (size_t p = 0; p < end - from; p++) {
			u[p] = w[p]*(float)v[p*past->v_stride].d;
			if (!(fabsf(u[p]) <= most)) most = fabsf(u[p]);
			if (u[p] != u[p]) most = NAN;
			if (most != most) break;
			if (has_minima(a->shape.v_type))
				x->minima[j/32][(from + p)%16] = fmaf(w[p], -(float)v[p*past->v_stride].m,
					x->minima[j/32][(from + p)%16]);
		}
		d = !(most < INFINITY) ? NAN : most < 0x1p-96f ? 0 : most/greatest_of(a->shape.v_type);
		for (size_t i = 0; i < share && j + i < a->shape.v_dim; i++) {
			int64_t sum = 0;
			for (size_t p = 0; p < end - from && d > 0; p++)
				sum += (int64_t)rintf(u[p]*(1/d))*v[p*past->v_stride + i].code;
			x->a[j + i] = fmaf(d, (float)sum, x->a[j + i]);
		}
	}
}
/* The part of a split that is seen: from..to - 1. */
static void split(const struct query *q, const struct slow_past *past, size_t from, size_t to, struct sums *x)
{
	const struct attn *a = q->a;
	float lane[16] = { 0 }, w[ATTN_BLOCK];
	*x = (struct sums){ .m = -INFINITY };
	for (size_t p = from, end; p < to; p = end) {
		float m = x->m, base, f, sum[16] = { 0 };
		end = (p/ATTN_BLOCK + 1)*ATTN_BLOCK < to ? (p/ATTN_BLOCK + 1)*ATTN_BLOCK : to;
		for (size_t i = p; i < end; i++) {
			w[i - p] = score(q, past, i);
			if (w[i - p] > m) m = w[i - p];
		}
		base = m == -INFINITY ? 0 : m;
		f = e(x->m - base);
		for (size_t i = p; i < end; i++) sum[i%16] += w[i - p] = e(w[i - p] - base);
		for (size_t i = 0; i < 16; i++) lane[i] = fmaf(lane[i], f, sum[i]);
		for (size_t j = 0; j < a->shape.v_dim; j++) x->a[j] *= f;
		for (size_t b = 0; b < WIDEST/32; b++) for (size_t l = 0; l < 16; l++) x->minima[b][l] *= f;
		(past->v_codes ? add_codes : add_values)(a, past, p, end, w, x);
		x->m = m;
	}
	x->l = slow_tree(lane);
	if (past->v_codes && has_minima(a->shape.v_type))
		for (size_t b = 0; b < a->shape.v_dim/32; b++) {
			float all = slow_tree(x->minima[b]);
			for (size_t j = 0; j < 32; j++) x->a[b*32 + j] += all;
		}
}
void slow_attention(const struct attn *a, const float *q, size_t head, size_t pos, size_t from, size_t to,
	const struct slow_past *past, float *out)
{
	static struct sums all, x;
	static struct query query;
	float m, f, g;
	query.a = a;
	query.q = q;
	query.head = head;
	query.pos = pos;
	if (past->k_codes) pack(a->shape.k_type, q, a->shape.k_dim, query.act);
	all.l = 0;
	for (size_t p = from, end; p < to; p = end) {
		end = (p/ATTN_SPLIT + 1)*ATTN_SPLIT < to ? (p/ATTN_SPLIT + 1)*ATTN_SPLIT : to;
		split(&query, past, p, end, &x);
		if (x.l == 0) continue;
		if (all.l == 0) {
			all = x;
			continue;
		}
		m = x.m > all.m ? x.m : all.m;
		f = e(all.m - m);
		g = e(x.m - m);
		all.m = m;
		all.l = fmaf(x.l, g, all.l*f);
		for (size_t j = 0; j < a->shape.v_dim; j++) all.a[j] = fmaf(x.a[j], g, all.a[j]*f);
	}
	if (a->sink && all.l != 0) {
		m = a->sink[head] > all.m ? a->sink[head] : all.m;
		f = e(all.m - m);
		all.l = all.l*f + e(a->sink[head] - m);
		for (size_t j = 0; j < a->shape.v_dim; j++) all.a[j] *= f;
	}
	for (size_t j = 0; j < a->shape.v_dim; j++) out[j] = all.l == 0 ? 0 : all.a[j]*(1/all.l);
}

/* Half a step of the integers that the weights s[p - from]/sum become, for each position of a tile that is seen. */
static void rounding(const struct attn_shape *shape, const struct slow_past *past, size_t from, size_t to,
	const double *s, double sum, double *slack)
{
	for (size_t j = 0; j < shape->v_dim; j++) {
		slack[j] = 0;
		for (size_t p = from, end; p < to && past->v_codes; p = end) {
			double most = 0, codes = 0;
			end = (p/ATTN_BLOCK + 1)*ATTN_BLOCK < to ? (p/ATTN_BLOCK + 1)*ATTN_BLOCK : to;
			for (size_t i = p; i < end; i++) {
				const struct slow_weight *v = past->v_codes + i*past->v_stride + j;
				most = fmax(most, fabs(s[i - from]/sum*v->d));
				codes += abs(v->code);
			}
			slack[j] += most/(double)greatest_of(shape->v_type)*0.5*codes;
		}
	}
}
void exact_attention(const struct attn *a, const float *q, size_t head, size_t pos, size_t from, size_t to,
	const struct slow_past *past, double *out, double *slack)
{
	static struct slow_act act[WIDEST];
	double *s = malloc((to - from + 1)*sizeof *s), top = a->sink ? (double)a->sink[head] : -INFINITY, sum = 0;
	if (past->k_codes) pack(a->shape.k_type, q, a->shape.k_dim, act);
	for (size_t j = 0; j < a->shape.v_dim; j++) out[j] = 0;
	for (size_t p = from; p < to; p++) {
		double x = 0;
		for (size_t i = 0; i < a->shape.k_dim; i++)
			x += (past->k_codes ? (double)act[i].d*act[i].q : (double)q[i])
				*(double)past->k[p*past->k_stride + i];
		x *= (double)a->scale;
		if (a->softcap > 0) x = (double)a->softcap*tanh(x/(double)a->softcap);
		s[p - from] = x += bias_of(a, head, pos, p);
		top = fmax(top, x);
	}
	if (a->sink) sum = exp((double)a->sink[head] - top);
	for (size_t p = from; p < to; p++) sum += s[p - from] = exp(s[p - from] - top);
	for (size_t p = from; p < to; p++)
		for (size_t j = 0; j < a->shape.v_dim; j++)
			out[j] += s[p - from]/sum*(double)past->v[p*past->v_stride + j];
	rounding(&a->shape, past, from, to, s, sum, slack);
	free(s);
}
