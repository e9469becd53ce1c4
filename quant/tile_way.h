/* SPDX-License-Identifier: MIT
 * tile_way.h - where a tile's floats are before a run and where they go: from zeros to acc at first, then from acc to
 * acc, and at the end maybe to the rows of results (struct results of mul.h). */
struct way {
	const float *from;              /* OUTPUTS floats from one token to the next */
	float *to;
	size_t stride;                  /* of `to` */
};
struct path {
	const float *from;
	float *acc, *to;
	size_t stride;
};
INLINE struct path path_of(const struct results *y, size_t strip, size_t tokens)
{
	static const _Alignas(64) float zero[TILE_TOKENS*OUTPUTS];
	const bool whole = strip < y->whole;
	float *acc = y->acc + strip*tokens*OUTPUTS;
	return (struct path){ y->begin ? zero : acc, acc, whole ? y->to + strip*tokens*y->stride : acc,
		whole ? y->stride : OUTPUTS };
}
/* The way of the next run, or of the last one */
INLINE struct way way_of(struct path *p, bool last)
{
	const struct way w = { p->from, last ? p->to : p->acc, last ? p->stride : OUTPUTS };
	p->from = p->acc;
	return w;
}
/* Blocks of 16, and the mins of super-blocks, need a second run. */
INLINE bool two_runs(enum mul_kind kind) { return kind == MUL_16 || kind == MUL_256_MIN; }
