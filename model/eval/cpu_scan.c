/* SPDX-License-Identifier: MIT
 * cpu_scan.c - recurrences on the processor: causal convolution and selective scans. A sequence's tokens come in order,
 * its channels are independent: threads take channels of sequences, and no cut can change a bit. */
#include "cpu_internal.h"

enum { CHANNELS = 64 };

/* A task is CHANNELS of the n channels of one sequence; sequences follow one another. */
struct shares { struct run *r; const void *what; size_t n; };
struct share { const struct segment *seg; size_t from, n; };
static struct share share_of(const struct shares *o, size_t task)
{
	size_t shares = size_parts(o->n, CHANNELS), from = task%shares*CHANNELS;
	return (struct share){ o->r->seg + task/shares, from, size_least(CHANNELS, o->n - from) };
}
static void run_shares(struct run *r, const char *name, void (*task)(void *, size_t, int), const void *what, size_t n)
{
	cpu_run(r->w, PASS(name), r->n_seg*size_parts(n, CHANNELS), task, &(struct shares){ r, what, n });
}

static void conv_task(void *ctx, size_t task, int worker)
{
	const struct shares *o = ctx;
	const struct conv *c = o->what;
	struct share b = share_of(o, task);
	(void)worker;
	scan_conv(&(struct scan_conv){ .x = cpu_at(o->r, c->x) + b.seg->t0*c->stride + b.from,
		.past = b.seg->state->recurrent + c->kept + b.from,
		.w = c->w + b.from*c->width, .bias = c->bias ? c->bias + b.from : NULL,
		.stride = c->stride, .past_stride = c->n, .n_rows = b.seg->n, .n = b.n, .width = c->width });
}
void cpu_conv(struct run *r, const struct conv *c) { run_shares(r, "convolution", conv_task, c, c->n); }

static void channels_task(void *ctx, size_t task, int worker)
{
	const struct shares *o = ctx;
	const struct channel_scan *s = o->what;
	struct share b = share_of(o, task);
	size_t t = b.seg->t0, state = b.from*s->n_state;
	(void)worker;
	scan_channels(&(struct scan_channels){ .x = cpu_at(o->r, s->x) + t*s->x_stride + b.from,
		.dt = cpu_at(o->r, s->dt) + t*s->n + b.from,
		.b = cpu_at(o->r, s->b) + t*s->bc_stride, .c = cpu_at(o->r, s->c) + t*s->bc_stride,
		.out = cpu_at(o->r, s->out) + t*s->n + b.from,
		.x_stride = s->x_stride, .dt_stride = s->n, .bc_stride = s->bc_stride, .out_stride = s->n,
		.n_rows = b.seg->n, .a = s->a + state, .d = s->d + b.from,
		.h = b.seg->state->recurrent + s->kept + state, .n = b.n, .n_state = s->n_state });
}
void cpu_scan_channels(struct run *r, const struct channel_scan *s) { run_shares(r, "scan", channels_task, s, s->n); }

struct head_scans { struct run *r; const struct head_scan *s; };
static void heads_task(void *ctx, size_t task, int worker)
{
	const struct head_scans *o = ctx;
	const struct head_scan *s = o->s;
	const struct segment *seg = o->r->seg + task/s->n_head;
	size_t head = task%s->n_head, group = head/(s->n_head/s->n_groups), row = seg->t0*s->stride;
	(void)worker;
	scan_head(&(struct scan_head){ .x = cpu_at(o->r, s->x) + row + head*s->dim,
		.dt = cpu_at(o->r, s->dt) + row + head,
		.b = cpu_at(o->r, s->b) + row + group*s->n_state, .c = cpu_at(o->r, s->c) + row + group*s->n_state,
		.out = cpu_at(o->r, s->out) + (seg->t0*s->n_head + head)*s->dim,
		.stride = s->stride, .out_stride = s->n_head*s->dim, .n_rows = seg->n,
		.a = s->a[head], .d = s->d[head], .dt_bias = s->dt_bias[head],
		.h = seg->state->recurrent + s->kept + head*s->dim*s->n_state, .n = s->dim, .n_state = s->n_state });
}
void cpu_scan_heads(struct run *r, const struct head_scan *s)
{
	cpu_run(r->w, PASS("scan"), r->n_seg*s->n_head, heads_task, &(struct head_scans){ r, s });
}
