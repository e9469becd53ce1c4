/* SPDX-License-Identifier: MIT
 * factors.h - the factors that error feedback wants for a model's weights, made while the weights before them are
 * encoded. */
#ifndef QUANT_FACTORS_H
#define QUANT_FACTORS_H
#include "remake.h"

struct factors;
/* For the tensors of r, whose covariance is not NULL, by so many threads. GGU_ERR_NOMEM. */
enum ggu_status factors_new(struct factors **f, const struct remake *r, int n_threads, struct ggu_error *err);
/* That of matrix `mat` of tensor i, for the caller to free, or NULL: its rows have no feedback. Asked for in order of
 * tensors and matrices; some may be passed over. */
enum ggu_status factors_get(struct factors *f, size_t i, size_t mat, struct quant_feedback **q, struct ggu_error *err);
void factors_free(struct factors *f);

#endif
