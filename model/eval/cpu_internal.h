/* SPDX-License-Identifier: MIT
 * cpu_internal.h - shared by the files of the processor's backend: cpu.c (products and rows), cpu_attend.c,
 * cpu_experts.c, cpu_scan.c and cpu_pass.c (threads); and by head.c, which makes logits with the same threads. */
#ifndef MODEL_EVAL_CPU_INTERNAL_H
#define MODEL_EVAL_CPU_INTERNAL_H
#include "../../libgguf/pool.h"
#include "../../libgguf/size.h"
#include "../../quant/vec.h"
#include "model_internal.h"

enum { CPU_ROWS = 8 };          /* of a task that is cut by rows */
/* Are some of n rows whole steps of packing (quant_act_pack) in all of these forms? */
static inline bool cpu_whole_steps(unsigned forms, size_t n, size_t some)
{
	for (int f = QUANT_ACT_FLOAT; f <= QUANT_ACT_256; f++)
		if (forms & 1u << f && some%quant_act_step((enum quant_act)f, n)) return false;
	return true;
}
/* Rows of an input of n that a task makes and packs. More would leave a short prompt to few threads. */
static inline size_t cpu_row_share(unsigned forms, size_t n)
{
	size_t share = CPU_ROWS;
	while (!cpu_whole_steps(forms, n, share)) share++;
	return share;
}
static inline float *cpu_at(const struct run *r, size_t buffer) { return work_at(r->w, buffer); }

static inline double cpu_sigmoid(float x) { return 1/(1 + num_exp(-(double)x)); }
/* Moves each of x[n] into -limit..limit. */
static inline void cpu_clip(float *x, size_t n, float limit)
{
	for (size_t i = 0; i < n; i++) x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}
/* y[width] = norm of x[width]; y may be x. o NULL or NORM_NONE: a copy. */
void cpu_norm(const struct norm *o, const float *x, float *y, size_t width);
/* All threads take tasks. A profile, if there is one, records the pass; its multiply-adds may be 0. */
struct pass { const char *name; double macs; enum ggu_take take; };
void cpu_run(const struct work *w, const struct pass *pass, size_t n_tasks,
	void (*fn)(void *ctx, size_t task, int worker), void *ctx);
#define PASS(...) (&(const struct pass){ __VA_ARGS__ })
/* The name of a pass of products (profile.h), cut to the room that it has. */
void cpu_pass_name(char *to, size_t room, const struct product *p, size_t n);

size_t cpu_attend_bytes(const struct attn_shape *s, size_t n_rows, size_t n_pos, size_t n_threads);
void cpu_store(struct run *r, const struct attend *a);
void cpu_attend(struct run *r, const struct attend *a);
size_t cpu_route_bytes(size_t n_experts);               /* of a worker that routes among so many */
void cpu_route(struct run *r, const struct router *o, size_t scores, const struct routes *to);
void cpu_combine(struct run *r, const struct combine *c);
void cpu_conv(struct run *r, const struct conv *c);
void cpu_scan_channels(struct run *r, const struct channel_scan *s);
void cpu_scan_heads(struct run *r, const struct head_scan *s);

#endif
