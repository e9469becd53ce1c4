/* SPDX-License-Identifier: MIT
 * tile_crossed.h - the part of tile.h for cores that can add more than they can multiply.
 *
 * Four columns, two lines of pairs, are two products instead of four (S. Winograd, 1968):
 *
 *     (w0 + x2)(w2 + x0) + (w1 + x3)(w3 + x1)  =  w0x0 + w1x1 + w2x2 + w3x3  +  (w0w2 + w1w3)  +  (x0x2 + x1x3)
 *
 * What is too much is the weights' own and the activations' own. It is summed once for each output of a panel's block,
 * and for each token of a strip's, when that is packed; a run begins with both, negated. The sums of two are at most
 * 4096 + 2032; everything else is exact modulo 2^32, in which the result fits. CROSSED of each 4 fours are multiplied
 * so, the others as they are, which keeps all of a core busy. Beside what tile.h asks for an instance gives
 *   i_plus(u, v)                u + v, pairs of int16
 *   i_less(a, b)                a - b, sums */
enum { OWN = MUL_CHUNK/32*OUTPUTS };
#define OWN_OF_STRIP own_of_strip

ALWAYS void start(int tokens, const int32_t *own, const char *x, vi s[][VECTORS])
{
	UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int r = 0; r < VECTORS; r++)
		s[t][r] = own ? i_less(i_load(own + LANES*r), i_spread(x + 4*t)) : i_zero();
}
ALWAYS void cross(int tokens, const char *w, const char *x, vi s[][VECTORS])
{
	vw u[2][VECTORS];
	UNROLL for (int r = 0; r < 2*VECTORS; r++) u[r/VECTORS][r%VECTORS] = i_load(w + 4*LANES*r);
	UNROLL for (int t = 0; t < tokens; t++) {
		vw first = i_spread(x + 4*t), second = i_spread(x + 4*tokens + 4*t);
		UNROLL for (int r = 0; r < VECTORS; r++)
			s[t][r] = i_madd(s[t][r], i_plus(u[0][r], second), i_plus(u[1][r], first));
	}
}
/* The k-th of a run */
ALWAYS void four(int k, bool crossed, int tokens, const char *w, const char *x, vi s[][VECTORS])
{
	if (crossed && k%4 < CROSSED) {
		cross(tokens, w, x, s);
		return;
	}
	step(tokens, w, x, s);
	step(tokens, w + 4*OUTPUTS, x + 4*tokens, s);
}
/* What lines add by themselves, `line` bytes from one to the next, in n fours. */
ALWAYS vi own_of(const char *p, size_t line, size_t n)
{
	vi a = i_zero();
	for (size_t k = 0; k < n; k++, p += 2*line) if (k%4 < CROSSED) a = i_madd(a, i_load(p), i_load(p + line));
	return a;
}
ALWAYS void own_of_panel(size_t n_blocks, const char *panel, enum mul_kind kind, int32_t *own)
{
	for (size_t b = 0; b < n_blocks; b++, panel += mul_panel_bytes(kind, OUTPUTS))
		for (int r = 0; r < VECTORS; r++, own += LANES) {
			vi a = i_less(i_zero(), own_of(panel + 4*LANES*r, 4*OUTPUTS, mul_block(kind)/4));
			memcpy(own, &a, sizeof a);
		}
}
/* A register has as many lanes as a line tokens, or more; what is read behind the last line is the strip's, too. */
static void own_of_strip(size_t block, size_t tokens, const char *strip, int32_t *to)
{
	vi a = own_of(strip, 4*tokens, block/4);
	memcpy(to, &a, 4*tokens);
}
