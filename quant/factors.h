/* SPDX-License-Identifier: MIT
 * factors.h - the factors that error feedback needs for a model's weights, computed while earlier weights are
 * encoded. */
#ifndef QUANT_FACTORS_H
#define QUANT_FACTORS_H
#include "remake.h"

struct factors;
/* For the tensors of r, whose covariance is not NULL, with n_threads threads. GGU_ERR_NOMEM. */
enum ggu_status factors_new(struct factors **f, const struct remake *r, int n_threads, struct ggu_error *err);
/* The factor of matrix `mat` of tensor i, for the caller to free, or NULL: its rows have no feedback. To be called in
 * the order of tensors and matrices; some may be skipped. */
enum ggu_status factors_get(struct factors *f, size_t i, size_t mat, struct quant_feedback **q, struct ggu_error *err);
void factors_free(struct factors *f);

#endif
