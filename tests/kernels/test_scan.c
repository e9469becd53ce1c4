/* SPDX-License-Identifier: MIT
 * test_scan.c - the convolution and the scans of quant/scan.h on every instruction set, against the arithmetic that the
 * header states, one number at a time. Rows lie apart, buffers between guard pages, numbers are of all kinds; channels,
 * states and rows do and do not fill whole registers, and a sequence in two calls has the bits of one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/quant.h"
#include "../../quant/scan.h"
#include "../../quant/vec.h"
#include "../lib/kerntest.h"
#include "../lib/slow.h"

static float *floats(size_t n, enum kt_floats kind)
{
	float *p = kt_buffer(4*n);
	kt_fill_floats(p, n, kind);
	return p;
}
static float *copy(const float *x, size_t n) { return memcpy(kt_buffer(4*n), x, 4*n); }
static void expect(const char *what, const float *got, const float *want, size_t n)
{
	size_t at;
	if (!kt_same(got, want, n, &at)) kt_fail("%s: element %zu is %a, not %a", what, at, got[at], want[at]);
}
static float of(void (*function)(float *, size_t), float x) { function(&x, 1); return x; }
static void silu(float *x, size_t n) { vec_silu(x, x, NULL, n); }

/* The memory of a call: inputs, outputs, and the expected outputs. */
struct memory { float *p[12], *want[3]; size_t n[12], n_p; };
static float *more(struct memory *m, size_t n, enum kt_floats kind)
{
	m->n[m->n_p] = n;
	return m->p[m->n_p++] = floats(n, kind);
}
static void drop(struct memory *m) { while (m->n_p--) kt_free(m->p[m->n_p], 4*m->n[m->n_p]); }

static void slow_conv(const struct scan_conv *c)
{
	size_t before = c->width - 1;
	float *rows = malloc(4*(before + c->n_rows + 1)), *past;
	for (size_t i = 0; i < c->n; i++) {
		for (size_t t = 0; t < before; t++) rows[t] = c->past[t*c->past_stride + i];
		for (size_t t = 0; t < c->n_rows; t++) rows[before + t] = c->x[t*c->stride + i];
		for (size_t t = 0; t < c->n_rows; t++) {
			float sum = c->bias ? c->bias[i] : 0;
			for (size_t k = 0; k < c->width; k++) sum += c->w[i*c->width + k]*rows[t + k];
			c->x[t*c->stride + i] = of(silu, sum);
		}
		past = rows + c->n_rows;
		for (size_t t = 0; t < before; t++) c->past[t*c->past_stride + i] = past[t];
	}
	free(rows);
}
static void check_conv(size_t n, size_t n_rows, size_t width, enum kt_floats kind)
{
	struct memory m = { .n_p = 0 };
	size_t stride = n + kt_below(20), past = n + kt_below(20);
	struct scan_conv c = { more(&m, n_rows*stride + n, kind), more(&m, width*past, kind),
		more(&m, n*width, KT_MIXED), kt_below(2) ? more(&m, n, kind) : NULL, stride, past, n_rows, n, width };
	struct scan_conv slow = c;
	slow.x = copy(c.x, m.n[0]);
	slow.past = copy(c.past, m.n[1]);
	slow_conv(&slow);
	c.n_rows = kt_below(n_rows + 1);
	scan_conv(&c);
	c.x += c.n_rows*stride;
	c.n_rows = n_rows - c.n_rows;
	scan_conv(&c);
	expect("convolution", m.p[0], slow.x, m.n[0]);
	expect("rows before", m.p[1], slow.past, m.n[1]);
	kt_free(slow.x, 4*m.n[0]);
	kt_free(slow.past, 4*m.n[1]);
	drop(&m);
}

/* A channel's step: states h, decay of each. */
static float slow_step(float *h, const float *fade, size_t n, float by, const float *b, const float *c, float d,
	float x)
{
	for (size_t k = 0; k < n; k++) {
		float faded = h[k]*fade[k];
		h[k] = fmaf(by, b[k], faded);
	}
	by = d*x;
	return slow_float_product(h, c, n) + by;
}
static void slow_channels(const struct scan_channels *s)
{
	float *fade = malloc(4*s->n_state);
	for (size_t t = 0; t < s->n_rows; t++)
		for (size_t i = 0; i < s->n; i++) {
			float dt = of(vec_softplus, s->dt[t*s->dt_stride + i]), x = s->x[t*s->x_stride + i];
			for (size_t k = 0; k < s->n_state; k++) fade[k] = of(vec_exp, s->a[i*s->n_state + k]*dt);
			s->out[t*s->out_stride + i] = slow_step(s->h + i*s->n_state, fade, s->n_state, dt*x,
				s->b + t*s->bc_stride, s->c + t*s->bc_stride, s->d[i], x);
		}
	free(fade);
}
static void check_channels(size_t n, size_t n_rows, size_t n_state, enum kt_floats kind)
{
	struct memory m = { .n_p = 0 };
	struct scan_channels s = { .n_rows = n_rows, .n = n, .n_state = n_state, .x_stride = n + kt_below(9),
		.dt_stride = n + kt_below(9), .bc_stride = n_state + kt_below(9), .out_stride = n + kt_below(9) }, slow;
	s.out = more(&m, n_rows*s.out_stride, KT_ZERO);
	s.h = more(&m, n*n_state, kind);
	s.x = more(&m, n_rows*s.x_stride, kind);
	s.dt = more(&m, n_rows*s.dt_stride, kind);
	s.b = more(&m, n_rows*s.bc_stride, KT_MIXED);
	s.c = more(&m, n_rows*s.bc_stride, KT_MIXED);
	s.a = more(&m, n*n_state, KT_MINUS);
	s.d = more(&m, n, KT_MIXED);
	slow = s;
	slow.out = copy(s.out, m.n[0]);
	slow.h = copy(s.h, m.n[1]);
	slow_channels(&slow);
	s.n_rows = kt_below(n_rows + 1);
	scan_channels(&s);
	s.x += s.n_rows*s.x_stride; s.dt += s.n_rows*s.dt_stride; s.out += s.n_rows*s.out_stride;
	s.b += s.n_rows*s.bc_stride; s.c += s.n_rows*s.bc_stride;
	s.n_rows = n_rows - s.n_rows;
	scan_channels(&s);
	expect("channels", m.p[0], slow.out, m.n[0]);
	expect("their states", m.p[1], slow.h, m.n[1]);
	kt_free(slow.out, 4*m.n[0]);
	kt_free(slow.h, 4*m.n[1]);
	drop(&m);
}

static void slow_head(const struct scan_head *s)
{
	float *fades = malloc(4*s->n_state);
	for (size_t t = 0; t < s->n_rows; t++) {
		size_t row = t*s->stride;
		float dt = of(vec_softplus, s->dt[row] + s->dt_bias), fade = of(vec_exp, dt*s->a);
		for (size_t k = 0; k < s->n_state; k++) fades[k] = fade;
		for (size_t i = 0; i < s->n; i++)
			s->out[t*s->out_stride + i] = slow_step(s->h + i*s->n_state, fades, s->n_state,
				dt*s->x[row + i], s->b + row, s->c + row, s->d, s->x[row + i]);
	}
	free(fades);
}
static void check_head(size_t n, size_t n_rows, size_t n_state, enum kt_floats kind)
{
	struct memory m = { .n_p = 0 };
	struct scan_head s = { .n_rows = n_rows, .n = n, .n_state = n_state, .stride = n + 2*n_state + 1 + kt_below(9),
		.out_stride = n + kt_below(9), .a = -kt_uniform()*kt_uniform(), .d = kt_uniform(),
		.dt_bias = kt_uniform() }, slow;
	float *all;
	s.out = more(&m, n_rows*s.out_stride, KT_ZERO);
	s.h = more(&m, n*n_state, kind);
	s.x = all = more(&m, n_rows*s.stride, kind);
	s.b = all + n;
	s.c = s.b + n_state;
	s.dt = s.c + n_state;
	slow = s;
	slow.out = copy(s.out, m.n[0]);
	slow.h = copy(s.h, m.n[1]);
	slow_head(&slow);
	s.n_rows = kt_below(n_rows + 1);
	scan_head(&s);
	s.x += s.n_rows*s.stride; s.b += s.n_rows*s.stride; s.c += s.n_rows*s.stride; s.dt += s.n_rows*s.stride;
	s.out += s.n_rows*s.out_stride;
	s.n_rows = n_rows - s.n_rows;
	scan_head(&s);
	expect("head", m.p[0], slow.out, m.n[0]);
	expect("its states", m.p[1], slow.h, m.n[1]);
	kt_free(slow.out, 4*m.n[0]);
	kt_free(slow.h, 4*m.n[1]);
	drop(&m);
}

static void check_isa(const char *isa)
{
	static const size_t states[] = { 1, 7, 16, 24, 64, 128 }, rows[] = { 0, 1, 2, 3, 5, 16, 17, 40 };
	quant_select(isa, NULL);
	kt_name("%s: convolutions have the bits of their order", isa);
	for (size_t width = 1; width <= SCAN_MAX_WIDTH; width++)
		for (int k = 0; k < 30; k++)
			check_conv(1 + kt_below(k%2 ? 40 : 150), kt_below(2*width + 3), width,
				(enum kt_floats)(k%KT_FLOATS));
	kt_result();
	kt_name("%s: scans of channels and of heads have the bits of their order", isa);
	for (size_t i = 0; i < sizeof states/sizeof *states; i++)
		for (size_t j = 0; j < sizeof rows/sizeof *rows; j++)
			for (int kind = 0; kind < KT_FLOATS; kind++) {
				check_channels(1 + kt_below(40), rows[j], states[i], kind);
				check_head(1 + kt_below(40), rows[j], states[i], kind);
			}
	kt_result();
}

int main(int argc, char **argv)
{
	kt_begin(argc, argv);
	for (const char *const *isa = quant_available(); *isa; isa++) check_isa(*isa);
	return kt_end();
}
