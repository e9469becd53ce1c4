/* SPDX-License-Identifier: MIT
 * imatrix_collect.h - sums what an importance matrix is made of over the windows of a text. Programs only; failures
 * exit 2 with a message.
 *
 * Windows are evaluated from an empty cache. If there are enough of them and enough memory, each thread has windows of
 * its own; otherwise all threads work on the same ones. The sums do not depend on that. */
#ifndef TOOLS_IMATRIX_COLLECT_H
#define TOOLS_IMATRIX_COLLECT_H
#include <stdatomic.h>
#include "../imatrix/imatrix.h"
#include "../libgguf/pool.h"
#include "../model/eval/model.h"
#include "drawn.h"

struct collect {
	struct imatrix *im;             /* what is summed up */
	const char *name;               /* the model's, for messages */
	struct model *model;
	struct ggu_pool *pool;
	size_t ctx, batch;              /* tokens of a window, and of a batch */
	bool process_output;            /* also what the output matrix gets */
	bool covariance;                /* also covariances of inputs */
	size_t block, stride;           /* of covariances: columns of a block; one of so many tokens is used */
	int32_t *ids;                   /* [n_chunks + drawn.n][ctx] */
	uint64_t n_chunks;              /* windows of the text */
	struct drawn drawn;             /* windows of random tokens, after those of the text; only for covariances */
	int32_t start;                  /* what a decoder's sequence begins with */
	_Atomic uint64_t done;          /* windows of the text, which progress shows too */
};
struct collect_teams;
struct collect_teams *collect_teams_new(struct collect *c);
void collect_teams_free(struct collect_teams *t);
/* Evaluates the windows of the text from c->done up to `end`. */
void collect_to(struct collect_teams *t, uint64_t end);
/* Evaluates the random windows. The text must be done. */
void collect_drawn(struct collect *c);

#endif
