/* SPDX-License-Identifier: MIT
 * covariance_stats.h - statistics of a matrix's covariances. Programs only. */
#ifndef TOOLS_COVARIANCE_STATS_H
#define TOOLS_COVARIANCE_STATS_H
#include "../imatrix/imatrix.h"

/* Statistics of a covariance H; for several matrices (experts), of the one with the most tokens.
 *   directions  (trace)^2 / sum of squares: so many directions of equal size would be as uneven as these
 *   top         the largest eigenvalue's share of the trace
 *   condition   an upper bound for H + damping, 0.1 of the mean diagonal */
struct covariance_stats { struct imatrix_covariance of; double tokens, bytes, directions, top, condition; };

/* Computes them for the covariance named after the weight `name`. False: there is none. Dies, with a message that
 * begins with path, if it cannot be read. */
bool covariance_stats(const struct imatrix *im, const char *path, const char *name, struct covariance_stats *s);

#endif
