/* SPDX-License-Identifier: MIT
 * cpu_scan.c - recurrences on the processor: causal convolution and selective scans. A sequence's tokens come in order,
 * its channels are independent: threads take channels of sequences, and no cut can change a bit. */
#include <string.h>
#include "../../quant/vec.h"
#include "cpu_internal.h"

enum { CHANNELS = 32 };

static float softplus(float x) { return x > 20 ? x : (float)num_log(1 + num_exp(x)); }

/* ---- convolution ---- */

struct convs { struct run *r; const struct conv *c; };

static void conv_channels(const struct conv *c, float *rows, size_t n_rows, float *past, size_t from, size_t n)
{
	float seen[CONV_MAX_WIDTH][CHANNELS];
	size_t last = c->width - 1;
	for (size_t k = 0; k < last; k++) memcpy(seen[k], past + k*c->n + from, n*sizeof(float));
	for (size_t t = 0; t < n_rows; t++) {
		float *x = rows + t*c->stride + from;
		memcpy(seen[last], x, n*sizeof *x);
		for (size_t i = 0; i < n; i++) {
			const float *w = c->w + (from + i)*c->width;
			float sum = c->bias ? c->bias[from + i] : 0;
			for (size_t k = 0; k < c->width; k++) sum += w[k]*seen[k][i];
			x[i] = sum;
		}
		vec_silu(x, n);
		memmove(seen[0], seen[1], last*sizeof seen[0]);
	}
	for (size_t k = 0; k < last; k++) memcpy(past + k*c->n + from, seen[k], n*sizeof(float));
}

static void conv_task(void *ctx, size_t task, int worker)
{
	const struct convs *o = ctx;
	size_t blocks = size_parts(o->c->n, CHANNELS), from = task%blocks*CHANNELS;
	const struct segment *s = o->r->seg + task/blocks;
	(void)worker;
	conv_channels(o->c, cpu_at(o->r, o->c->x) + s->t0*o->c->stride, s->n, s->state->fixed + o->c->fixed, from,
		size_least(CHANNELS, o->c->n - from));
}
void cpu_conv(struct run *r, const struct conv *c)
{
	cpu_run(r->w, PASS("convolution"), r->n_seg*size_parts(c->n, CHANNELS), conv_task, &(struct convs){ r, c });
}

/* ---- Mamba-1 ---- */

struct scans1 { struct run *r; const struct scan1 *s; };

/* One token of one channel; returns h.C + d*x. */
static float channel1(const struct scan1 *s, size_t i, float x, float dt, const float *b, const float *c, float *h)
{
	float decay[SCAN_MAX_STATE];
	memcpy(decay, s->a + i*s->n_state, s->n_state*sizeof *decay);
	vec_scale(decay, dt, s->n_state);
	vec_exp(decay, s->n_state);
	vec_mul(h, decay, s->n_state);
	vec_axpy(h, dt*x, b, s->n_state);
	return vec_dot(h, c, s->n_state) + s->d[i]*x;
}
static void scan1_task(void *ctx, size_t task, int worker)
{
	const struct scans1 *o = ctx;
	const struct scan1 *s = o->s;
	struct run *r = o->r;
	size_t blocks = size_parts(s->n, CHANNELS), from = task%blocks*CHANNELS, to = size_least(from + CHANNELS, s->n);
	const struct segment *seg = r->seg + task/blocks;
	float *h = seg->state->fixed + s->fixed;
	(void)worker;
	for (size_t t = seg->t0; t < seg->t0 + seg->n; t++) {
		const float *x = cpu_at(r, s->x) + t*s->x_stride, *dt = cpu_at(r, s->dt) + t*s->n;
		const float *b = cpu_at(r, s->b) + t*s->bc_stride, *c = cpu_at(r, s->c) + t*s->bc_stride;
		float *out = cpu_at(r, s->out) + t*s->n;
		for (size_t i = from; i < to; i++)
			out[i] = channel1(s, i, x[i], softplus(dt[i]), b, c, h + i*s->n_state);
	}
}
void cpu_scan1(struct run *r, const struct scan1 *s)
{
	cpu_run(r->w, PASS("scan"), r->n_seg*size_parts(s->n, CHANNELS), scan1_task, &(struct scans1){ r, s });
}

/* ---- Mamba-2 ---- */

struct scans2 { struct run *r; const struct scan2 *s; };

static void scan2_task(void *ctx, size_t task, int worker)
{
	const struct scans2 *o = ctx;
	const struct scan2 *s = o->s;
	struct run *r = o->r;
	const struct segment *seg = r->seg + task/s->n_head;
	size_t head = task%s->n_head, group = head/(s->n_head/s->n_groups), n = s->n_state;
	float *state = seg->state->fixed + s->fixed + head*s->dim*n;
	(void)worker;
	for (size_t t = seg->t0; t < seg->t0 + seg->n; t++) {
		const float *x = cpu_at(r, s->x) + t*s->stride + head*s->dim,
			*b = cpu_at(r, s->b) + t*s->stride + group*n;
		const float *c = cpu_at(r, s->c) + t*s->stride + group*n;
		float *out = cpu_at(r, s->out) + t*s->n_head*s->dim + head*s->dim;
		float dt = softplus(cpu_at(r, s->dt)[t*s->stride + head] + s->dt_bias[head]), decay = dt*s->a[head];
		vec_exp(&decay, 1);
		for (size_t i = 0; i < s->dim; i++) {
			float *h = state + i*n;
			vec_scale(h, decay, n);
			vec_axpy(h, dt*x[i], b, n);
			out[i] = vec_dot(h, c, n) + s->d[head]*x[i];
		}
	}
}
void cpu_scan2(struct run *r, const struct scan2 *s)
{
	cpu_run(r->w, PASS("scan"), r->n_seg*s->n_head, scan2_task, &(struct scans2){ r, s });
}
