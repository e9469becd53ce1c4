/* SPDX-License-Identifier: MIT
 * relative.c - see relative.h. The first half of a side's buckets are single distances; the others grow with the
 * logarithm of the distance. */
#include "../../quant/vec.h"
#include "relative.h"

/* In float32, as the models were trained: rounding decides at the edges of buckets. */
static size_t far_bucket(size_t n, size_t near, size_t buckets, size_t distance)
{
	float range = (float)num_log((double)distance/(double)near);
	float x = (float)num_log((double)((float)n/(float)near))/range*(float)(buckets - near);
	size_t b = near + (size_t)x;
	return b < buckets ? b : buckets - 1;
}
size_t relative_bucket(ptrdiff_t away, size_t buckets, size_t distance, bool both_sides)
{
	size_t side = both_sides ? buckets/2 : buckets, near = side/2, n = away < 0 ? (size_t)-away : (size_t)away;
	if (away > 0 && !both_sides) n = 0;
	return (away > 0 && both_sides ? side : 0) + (n < near ? n : far_bucket(n, near, side, distance));
}
void relative_table(const float *bias, size_t n_head, size_t buckets, size_t distance, bool both_sides, float *to)
{
	size_t width = 2*distance + 1;
	for (size_t i = 0; i < width; i++) {
		size_t b = relative_bucket((ptrdiff_t)i - (ptrdiff_t)distance, buckets, distance, both_sides);
		for (size_t h = 0; h < n_head; h++) to[h*width + i] = bias[b*n_head + h];
	}
}
