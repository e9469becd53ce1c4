/* SPDX-License-Identifier: MIT
 * imatrix_stats.h - statistics of an importance matrix, by tensor and layer. Programs only.
 *
 * The mean square m[j] = sums/counts of every column j, over all matrices that were seen:
 *   sum, min, max, mean, sd     of the m[j]
 *   active      share of columns with m[j] > 1e-5
 *   entropy     of m[j]/sum, in bits, and as a share of log2 of the number of columns
 *   outliers    share of columns further than one sd from the mean
 *   similarity  cosine of the m[j] with those of the same weight one layer before
 * The quantities are those of llama-imatrix --show-statistics. */
#ifndef TOOLS_IMATRIX_STATS_H
#define TOOLS_IMATRIX_STATS_H
#include "../imatrix/imatrix.h"

/* Prints both tables, and one of covariances if there are any (covariance_stats.h), or JSON: {"datasets","chunks",
 * "chunk_tokens","tensors":[...],"layers":[...],"covariances":[...]}, and the bytes of what is not UTF-8. */
void imatrix_stats_print(const struct imatrix *im, const char *path, bool json);

#endif
