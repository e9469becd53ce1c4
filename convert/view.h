/* SPDX-License-Identifier: MIT
 * view.h - a checkpoint tensor in another order, without moving a byte.
 *
 * Every rearrangement that a conversion needs is a strided view: dimensions, slowest first, each with a stride in the
 * source. Splitting a dimension, swapping two, taking a range, joining them again and transposing only change these
 * numbers; the output has the elements of the view in order. After that, values may change element by element
 * (view_op). The transforms of architecture files, whose arguments are expressions, are:
 *
 *   permute(h)              rows of h heads from halves (rotate-half) to interleaved pairs
 *   reshape(a, b, ...)      dimensions split, or adjacent ones joined: the elements stay in order; one may be -1
 *   swap(a, b)  transpose   exchange two axes, counted from 0, or from the end by negative numbers; the last two
 *   linear                  transpose, except for codes that are [out][in] whatever the model's own weights are
 *   take(axis, from, n)     a range of one axis
 *   squeeze                 remove dimensions of 1
 *   add(x)  mul(x)  exp     in float32
 *
 * After permute, or a reshape that joins dimensions that are not adjacent, axes can no longer be addressed. */
#ifndef CONVERT_VIEW_H
#define CONVERT_VIEW_H
#include "checkpoint.h"
#include "coded.h"

enum { VIEW_MAX_DIMS = 10, VIEW_MAX_OPS = 4 };
struct view_op { char op; float x; };           /* '+', '*', 'e' */
struct view {
	const struct source_tensor *t;
	unsigned n;
	uint64_t dim[VIEW_MAX_DIMS], stride[VIEW_MAX_DIMS], offset;     /* in elements */
	unsigned n_shape; uint64_t shape[VIEW_MAX_DIMS];       /* of the output */
	/* shape joins what strides cannot: only reshape and element operations may follow */
	bool joined;
	struct view_op op[VIEW_MAX_OPS];
	unsigned n_ops;
};
void view_of(struct view *v, const struct source_tensor *t);
uint64_t view_count(const struct view *v);
/* NULL, or what is wrong with the arguments. */
const char *view_apply(struct view *v, const char *name, const double *arg, size_t n_args);
/* Merges adjacent dimensions. To be called once, after the last transform; dims are lost. */
void view_coalesce(struct view *v);
/* The unit of reads: if a view is read across its order, ranges should be multiples of this many elements. */
uint64_t view_unit(const struct view *v);
bool view_crosswise(const struct view *v);
/* Reads raw elements [from, from+n) of a coalesced view into to[]. work: view_work_bytes. */
size_t view_work_bytes(const struct view *v, uint64_t n);
enum ggu_status view_read(const struct view *v, const struct checkpoint *c, uint64_t from, uint64_t n, void *to,
	void *work, struct ggu_error *err);
/* Of a coded tensor: the box of all elements that such a read needs, and the same read from what that holds. */
struct coded_box view_box(const struct view *v, uint64_t from, uint64_t n);
void view_compute(const struct view *v, struct coded_reader *r, uint64_t from, uint64_t n, void *to, void *work);
void view_operate(const struct view *v, float *x, size_t n);

#endif
