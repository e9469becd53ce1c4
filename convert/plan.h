/* SPDX-License-Identifier: MIT
 * plan.h - what becomes of each tensor: the `tensors` part of an architecture, applied to a checkpoint.
 *
 *   NAME: SOURCE                                 a GGUF tensor is a checkpoint tensor
 *   NAME: {from: SOURCE, transform: T, ...}      with one transform or a list of them (view.h)
 *   NAME: {from: [{from:, transform:}, ...]}     parts joined along the slowest axis
 *   NAME: {from: BLOCKS, scales: SCALES, pack: mxfp4}      bytes of two tensors, combined block by block
 *   NAME: {make: EXPR}                           numbers computed from config.json, without a bias
 *   NAME: [ALTERNATIVE, ...]                     the first alternative whose `when` holds and, if `optional: EXPR`
 *                                                holds, whose source the checkpoint has
 *
 * {i} in names runs over the layers, {x} in a source over the experts, or as many as `stack: EXPR` says, which are
 * stacked. A name and its source that end in ".*" stand for ".weight" and, if the checkpoint has one, ".bias"; `bias:
 * EXPR` says whether it must (if not, one that is there is taken, but counted). `when: EXPR` and `type: f32` are
 * optional. `drop` has patterns of checkpoint tensors that are not needed ({n}: the number of layers), each with a
 * condition; `copies` has those that are copies of others (copies.h). `strip` and `endings` have prefixes and endings
 * that names may have, and what the description has instead. Any tensor or part of a tensor that is left over is an
 * error. */
#ifndef CONVERT_PLAN_H
#define CONVERT_PLAN_H
#include "../quant/recode.h"
#include "config.h"
#include "view.h"

struct plan_tensor {
	char *name;
	unsigned n_dims;
	uint64_t ne[4];                 /* ne[0] fastest */
	struct view *part; size_t n_parts;
	bool packed;                    /* part[0] has the codes of blocks, part[1] their scales */
	float *values;                  /* computed ones, else NULL */
	int type;                       /* forced, or -1 */
	/* ggml type of what plan_read returns: the stored one, or F32 if values change */
	uint32_t from;
};
struct plan {
	const struct checkpoint *source;
	struct plan_tensor *v; size_t n;
	size_t n_denied; const char *denied;            /* biases where `bias` says no, and the first, in source */
	/* reading: a strip of the current tensor */
	void *strip, *work, *raw; size_t strip_bytes, work_bytes, raw_bytes;
	const struct view *filled; uint64_t from, to;   /* whose elements are in strip, and which; NULL: none */
	struct codes *codes;                            /* the last strip of codes, or NULL */
};
enum ggu_status plan_new(struct plan *p, struct config *c, const struct checkpoint *source, struct ggu_error *err);
void plan_free(struct plan *p);
void plan_codes_let_go(struct codes *s);           /* of a holder; the last frees it */
/* Reads a piece of a tensor's data (in type `from`), but leaves to plan_finish what codes stand for. One thread. */
enum ggu_status plan_fetch(struct plan *p, struct recode_piece *piece, struct ggu_error *err);
/* Computes what plan_fetch left in piece->later, and frees that, even if it fails. Once for each piece that has such,
 * before plan_free, from any thread. */
enum ggu_status plan_finish(struct recode_piece *piece, struct ggu_error *err);
/* Both: n bytes of tensor i from byte `at` on. One thread. */
enum ggu_status plan_read(struct plan *p, size_t i, uint64_t at, void *to, size_t n, struct ggu_error *err);

#endif
