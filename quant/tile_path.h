/* SPDX-License-Identifier: MIT
 * tile_path.h - the path of a strip's floats through the runs of a tile. The first run takes zeros, or what acc has
 * from the chunk before; each leaves its results in acc for the next; the last may store them in the rows of results
 * themselves (struct results of mul.h). */

/* What a run reads and writes */
struct leg {
	const float *from;              /* OUTPUTS floats from one token to the next */
	float *to;
	size_t stride;                  /* of `to` */
};
/* from: of the next run; acc, to: where all runs but the last, and the last one, store. */
struct path {
	const float *from;
	float *acc, *to;
	size_t stride;                  /* of `to` */
};
INLINE struct path path_of(const struct results *y, size_t strip, size_t tokens)
{
	static const _Alignas(64) float zero[TILE_TOKENS*OUTPUTS];
	const bool whole = strip < y->whole;
	float *acc = y->acc + strip*tokens*OUTPUTS;
	return (struct path){ y->begin ? zero : acc, acc, whole ? y->to + strip*tokens*y->stride : acc,
		whole ? y->stride : OUTPUTS };
}
/* The leg of the next run, after which the path goes on from acc. */
INLINE struct leg next_leg(struct path *p, bool last)
{
	const struct leg leg = { p->from, last ? p->to : p->acc, last ? p->stride : OUTPUTS };
	p->from = p->acc;
	return leg;
}
/* Blocks of 16, and the mins of super-blocks, need a second run. */
INLINE bool two_runs(enum mul_kind kind) { return kind == MUL_16 || kind == MUL_256_MIN; }
