/* SPDX-License-Identifier: MIT
 * scan.h - what state-space models do along a sequence: the causal convolution and the selective scans of Mamba
 * (Gu and Dao 2023, Dao and Gu 2024).
 *
 * Same contract as vec.h: portable C is the definition. A token's arithmetic, in the order written, each operation
 * rounded, with softplus, exp, silu and dot those of vec.h:
 *
 *   scan_conv       y = bias + w[0]*(row width - 1 before) + ... + w[width - 1]*(row); silu(y)
 *   scan_channels   dt = softplus(dt); for each state h = fma(dt*x, b, h*exp(a*dt)); out = dot(h, c) + d*x
 *   scan_head       dt = softplus(dt + dt_bias); h = fma(dt*x, b, h*exp(dt*a)); out = dot(h, c) + d*x
 *
 * Channels are independent of each other: a caller may cut them as it likes. Rows come in a sequence's order; strides
 * are in floats. */
#ifndef QUANT_SCAN_H
#define QUANT_SCAN_H
#include <stddef.h>

/* Of n channels, in place. past[width - 1][past_stride] are the rows before the first, and become those before the
 * next one; w[n][width], with width from 1 to SCAN_MAX_WIDTH; bias may be NULL. */
enum { SCAN_MAX_WIDTH = 16 };
struct scan_conv {
	float *x, *past;
	const float *w, *bias;
	size_t stride, past_stride, n_rows, n, width;
};
/* n channels, each with states h[n_state] of its own: h[n][n_state], a likewise, d[n]. */
struct scan_channels {
	const float *x, *dt, *b, *c;
	float *out;
	size_t x_stride, dt_stride, bc_stride, out_stride, n_rows;
	const float *a, *d;
	float *h;
	size_t n, n_state;
};
/* n channels that share dt, a number of each row: h[n][n_state]. */
struct scan_head {
	const float *x, *dt, *b, *c;
	float *out;
	size_t stride, out_stride, n_rows;      /* x, dt, b and c are parts of a row */
	float a, d, dt_bias;
	float *h;
	size_t n, n_state;
};
void scan_conv(const struct scan_conv *c);
void scan_channels(const struct scan_channels *s);
void scan_head(const struct scan_head *s);

#endif
