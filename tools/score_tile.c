/* SPDX-License-Identifier: MIT
 * score_tile.c - see score_tile.h. A file of logits has log p, so its rows need no sum; below -16 they say nothing, and
 * such tokens are left out of the divergence. */
#include "../model/eval/model.h"
#include "../quant/vec.h"
#include "score_tile.h"

/* The divergence of a position's log q = x - lx from log p = y - ly, p and q within 1e-11 of themselves. lx and ly come
 * from sums of floats. An error of theirs would be one of the divergence, and is more than that of two models which are
 * nearly the same. The sum of q - p, which would be 0 without it, takes it away. Saved logits are coarser, and their p
 * do not add up to 1. */
static double divergence(const struct score_tile *w, const float *x, double lx, const float *y, double ly)
{
	enum { PIECE = 256 };
	double p[PIECE], q[PIECE];
	double d = 0;
	for (size_t n, at = 0; at < w->n_vocab; at += n) {
		n = w->n_vocab - at < PIECE ? w->n_vocab - at : PIECE;
		vec_exp_from(p, y + at, ly, n);
		if (!w->from) vec_exp_from(q, x + at, lx, n);
		for (size_t i = 0; i < n; i++) {
			const double lp = y[at + i] - ly;
			if (w->from && lp <= -16) continue;
			d += p[i]*(lp - (x[at + i] - lx));
			if (!w->from) d += q[i] - p[i];
		}
	}
	return d;
}
static void compare(const struct score_tile *w, size_t t, const float *x, const struct model_score *a)
{
	float *y = w->base + t*w->n_vocab;
	struct model_score b;
	double ly;
	if (w->from) logits_file_decode(w->from, w->row_from + t*logits_file_row_bytes(w->from), y);
	b = model_score_row(y, w->n_vocab, w->next[t]);
	ly = w->from ? 0 : b.log_sum;
	w->score[t].base_nll = ly - b.logit;
	w->score[t].kld = divergence(w, x, a->log_sum, y, ly);
	w->score[t].same_top = a->top == b.top;
}
void score_tile_row(void *tile, size_t t, int worker)
{
	const struct score_tile *w = tile;
	const float *x = w->logits + t*w->n_vocab;
	const struct model_score a = model_score_row(x, w->n_vocab, w->next[t]);
	(void)worker;
	w->score[t] = (struct score){ .nll = a.log_sum - a.logit };
	if (w->to) logits_file_encode(w->to, x, a.log_sum, w->row_to + t*logits_file_row_bytes(w->to));
	if (w->base) compare(w, t, x, &a);
}
