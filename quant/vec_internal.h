/* SPDX-License-Identifier: MIT
 * vec_internal.h - the table of vector functions and scans, one for each instruction set. */
#ifndef QUANT_VEC_INTERNAL_H
#define QUANT_VEC_INTERNAL_H
#include "scan.h"
#include "vec.h"

struct vec_table {
	float (*dot)(const float *, const float *, size_t);
	float (*sum)(const float *, size_t), (*max)(const float *, size_t);
	size_t (*beyond)(const float *, size_t, float);
	void (*loss)(const float *, const float *, const float *, size_t, double *, double *);
	void (*squares)(double *, double *, const float *, size_t, size_t, size_t);
	void (*axpy)(float *, float, const float *, size_t);
	void (*scale)(float *, float, size_t);
	void (*scale_mul)(float *, const float *, float, const float *, size_t);
	void (*add)(float *, const float *, size_t), (*mul)(float *, const float *, size_t);
	void (*exp)(float *, size_t), (*tanh)(float *, size_t), (*softmax)(float *, size_t);
	void (*silu)(float *, const float *, const float *, size_t);
	void (*gelu)(float *, const float *, const float *, size_t);
	void (*gelu_tanh)(float *, const float *, const float *, size_t);
	size_t (*top)(const float *, size_t);
	float (*sum_exp)(const float *, size_t, float);
	void (*turn)(float *, float *, const float *, const float *, size_t);
	void (*turn_pairs)(float *, const float *, const float *, size_t);
	void (*exp_from)(double *, const float *, double, size_t);
	void (*softplus)(float *, size_t);
	void (*scan_conv)(const struct scan_conv *), (*scan_channels)(const struct scan_channels *);
	void (*scan_head)(const struct scan_head *);
};
#define SET(name, NAME, CPU, codes, row, panel_32, panel_256, floats, enc, vec, attn, gram) \
	extern const struct vec_table quant_vec_##vec;
#include "sets.inc"
#undef SET
/* The table in use; quant_select sets it. */
extern const struct vec_table *quant_vec_table;

#endif
