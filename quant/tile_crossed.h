/* SPDX-License-Identifier: MIT
 * tile_crossed.h - the part of tile.h for cores that can do more additions than multiplications.
 *
 * Four columns, two lines of pairs, are crossed: two products instead of four (S. Winograd, 1968):
 *
 *     (w0 + x2)(w2 + x0) + (w1 + x3)(w3 + x1)  =  w0x0 + w1x1 + w2x2 + w3x3  +  (w0w2 + w1w3)  +  (x0x2 + x1x3)
 *
 * The surplus is the own sum of the weights and the own sum of the activations. It is computed once for each output of
 * a panel's block, and for each token of a strip's block when that is packed; a run begins with both, negated. The sums
 * of two are at most 4096 + 2032; everything else is exact modulo 2^32, in which the result fits. CROSSED of each 4
 * fours are crossed and the others are not, which keeps all of a core busy. In addition to what tile.h needs, an
 * instance gives
 *   i_plus(u, v)                u + v, pairs of int16
 *   i_minus(a, b)               a - b, sums */
#include "tile_own.h"

INLINE void cross(int tokens, const char *w, const char *x, vi s[][VECTORS])
{
	vw u[2][VECTORS];
	UNROLL for (int r = 0; r < 2*VECTORS; r++) u[r/VECTORS][r%VECTORS] = i_load(w + 4*LANES*r);
	UNROLL for (int t = 0; t < tokens; t++) {
		vw first = i_spread(x + 4*t), second = i_spread(x + 4*tokens + 4*t);
		UNROLL for (int r = 0; r < VECTORS; r++)
			s[t][r] = i_madd(s[t][r], i_plus(u[0][r], second), i_plus(u[1][r], first));
	}
}
/* The k-th four of a run */
INLINE void four(int k, bool crossed, int tokens, const char *w, const char *x, vi s[][VECTORS])
{
	if (crossed && k%4 < CROSSED) {
		cross(tokens, w, x, s);
		return;
	}
	step(tokens, w, x, s);
	step(tokens, w + 4*OUTPUTS, x + 4*tokens, s);
}
