/* SPDX-License-Identifier: MIT
 * op_ffn.h - what dense feed-forwards, experts and shared experts have in common. */
#ifndef MODEL_EVAL_OP_FFN_H
#define MODEL_EVAL_OP_FFN_H
#include "op.h"

struct ffn {
	struct weight gate, up, gate_up, down;  /* gate_up: rows of gate, then up; gate may be missing */
	int act;                                /* enum activation */
	double limit, alpha, up_add;            /* as struct gate's */
	struct norm down_norm;
	size_t width;                           /* of its inner rows; 0: the width of down */
};
extern const struct field ffn_fields[];
enum ggu_status ffn_build(struct builder *b, const struct yaml_node *at, struct ffn *f, size_t n_mat);
void ffn_measure(const struct ffn *f, double share, struct measure *m);
static inline size_t ffn_width(const struct ffn *f) { return f->down.n_in; }
/* Floats of a row between input and gate, including the result of the gate; the same room serves every matrix. */
static inline size_t ffn_wide(const struct ffn *f)
{
	return f->gate_up.name || f->gate.name ? 2*ffn_width(f) : ffn_width(f);
}
static inline unsigned ffn_forms(const struct ffn *f)
{
	return weight_form(&f->gate) | weight_form(&f->up) | weight_form(&f->gate_up);
}
/* The products of matrix mat from `in` to the rows of `wide` (stride ffn_wide); returns their number, at most 2. */
size_t ffn_products(const struct ffn *f, size_t mat, struct input *in, size_t wide, struct product *p);
/* The input of `down`: n rows, made from those of `wide` in the place of the gate, which is in the cache. */
struct input ffn_gated(const struct ffn *f, size_t n, size_t wide);

#endif
