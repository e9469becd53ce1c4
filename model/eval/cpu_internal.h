/* SPDX-License-Identifier: MIT
 * cpu_internal.h - shared by the files of the processor's backend: cpu.c (products and rows), cpu_attend.c,
 * cpu_experts.c, cpu_scan.c. */
#ifndef MODEL_EVAL_CPU_INTERNAL_H
#define MODEL_EVAL_CPU_INTERNAL_H
#include "model_internal.h"

enum { CPU_ROWS = 8 };          /* of a task that is cut by rows */
static inline size_t cpu_chunks(size_t n, size_t step) { return (n + step - 1)/step; }
static inline size_t cpu_least(size_t a, size_t b) { return a < b ? a : b; }
static inline float *cpu_at(const struct run *r, size_t buffer) { return work_at(r->w, buffer); }

/* y[width] = norm of x[width]; y may be x. o NULL or NORM_NONE: a copy. */
void cpu_norm(const struct norm *o, const float *x, float *y, size_t width);
void cpu_run(const struct run *r, size_t n_tasks, void (*fn)(void *ctx, size_t task, int worker), void *ctx);

void cpu_attend(struct run *r, const struct attend *a);
void cpu_route(struct run *r, const struct router *o, size_t scores, const struct routes *to);
void cpu_combine(struct run *r, const struct routes *o, size_t n_used, size_t out, size_t shared, size_t shared_gate, size_t y);
void cpu_conv(struct run *r, const struct conv *c);
void cpu_scan1(struct run *r, const struct scan1 *s);
void cpu_scan2(struct run *r, const struct scan2 *s);

#endif
