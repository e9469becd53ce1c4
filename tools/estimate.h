/* SPDX-License-Identifier: MIT
 * estimate.h - memory and speed of a model for a context length, from its header alone. Programs only.
 *
 * What is assumed, since a header does not say it:
 *   - every layer of the metadata's block_count attends to all n_ctx tokens (a sliding window would need less), with
 *     K and V kept as F16;
 *   - scratch is that of a batch of 512 tokens in float: residual stream, norm, Q, K, V, attention's output, both
 *     halves of the feed-forward, the scores of one head, and one row of logits;
 *   - a generated token reads every weight once, but one row only of token_embd.weight (all of it if it is also
 *     the output matrix), and of stacked experts the share that is used; and half of the full KV cache;
 *   - reading memory is the limit of generation. */
#ifndef TOOLS_ESTIMATE_H
#define TOOLS_ESTIMATE_H
#include "../libgguf/ggu.h"

struct estimate {
	bool known;                     /* the header has what a context estimate needs; else only weights is set */
	uint64_t n_ctx;
	uint64_t weights;               /* bytes */
	uint64_t kv_cache, scratch;     /* bytes; both in float32, as our programs keep them */
	uint64_t total;
	uint64_t read_per_token;        /* bytes that generating a token reads */
	uint64_t macs_per_token;        /* multiply-adds of the weights for a token */
	double tokens_per_s;            /* at the bandwidth given */
};
/* n_ctx 0: the context the model was trained for, at most 4096. bandwidth: bytes a second. */
void estimate_make(struct estimate *e, const struct ggu_file *f, uint64_t n_ctx, double bandwidth);

#endif
