/* SPDX-License-Identifier: MIT
 * covariance_stats.h - what a matrix's covariances are like. Programs only. */
#ifndef TOOLS_COVARIANCE_STATS_H
#define TOOLS_COVARIANCE_STATS_H
#include "../imatrix/imatrix.h"

/* Of a covariance H; of several matrices (experts), of that which most tokens were seen of.
 *   directions  (trace)^2 / sum of squares: of equal size, so many would be as uneven as these
 *   top         the largest eigenvalue's share of the trace
 *   condition   of H + damping, 0.1 of the mean diagonal: what it is at most */
struct covariance_stats { struct imatrix_covariance of; double tokens, bytes, directions, top, condition; };

/* That which is named after the weight `name`. False: there is none. Dies, with a message that begins with path, if it
 * cannot be read. */
bool covariance_stats(const struct imatrix *im, const char *path, const char *name, struct covariance_stats *s);

#endif
