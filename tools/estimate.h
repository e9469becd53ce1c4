/* SPDX-License-Identifier: MIT
 * estimate.h - memory and speed of a model for a context length. Programs only.
 *
 * If the model can be opened for evaluation, the numbers come from the plan that evaluation itself follows
 * (model_cost): keys and values in blocks of 64 positions, those of the window if a layer has one, scratch memory for
 * batches of 512 tokens (of an encoder, for the whole text), weights that are read. Otherwise they come from the
 * header, with these assumptions:
 *   - every layer of the metadata's block_count attends to all n_ctx tokens (a sliding window would need less);
 *   - scratch memory is that of a batch of 512 tokens in float: residual stream, norm, Q, K, V, attention's output,
 *     both halves of the feed-forward, the scores of one head, and one row of logits;
 *   - a generated token reads every weight once, but only one row of token_embd.weight (all of it if it is also the
 *     output matrix), and of stacked experts the share that is used.
 *
 * A model with an encoder has n_ctx tokens in the encoder and n_ctx in the decoder, which gets one at a time; a token
 * of a prompt is one of the encoder's, and a generated token reads the decoder's weights and all that is kept of the
 * encoder. In both cases a token reads what a token in the middle of the context sees, and reading memory limits
 * generation. The total is what is in memory while gguf-run runs: weights (of token_embd.weight, what lies around the
 * tokens' rows), cache, scratch memory, and ESTIMATE_BASE; of an encoder's scratch memory and what the decoder has
 * later, whichever is more. */
#ifndef TOOLS_ESTIMATE_H
#define TOOLS_ESTIMATE_H
#include "../model/eval/model.h"

/* The bytes of a program with its libraries; a vocabulary takes ESTIMATE_PER_TOKEN more for each of its tokens. */
enum { ESTIMATE_BASE = 11 << 19, ESTIMATE_PER_TOKEN = 155 };

struct estimate {
	bool known;                     /* the header has what a context estimate needs; else only weights is set */
	uint64_t n_ctx;
	uint64_t weights;               /* bytes */
	uint64_t kv_cache, scratch;     /* bytes */
	uint64_t total;
	uint64_t read_per_token;        /* bytes that generating a token reads */
	uint64_t macs_per_token;        /* multiply-adds of the weights for a token */
	double tokens_per_s;            /* at the bandwidth given */
};
/* n_ctx as estimate_ctx gives it; bandwidth: bytes a second; cost: for that context, or NULL. */
struct estimate_options {
	uint64_t n_ctx;
	double bandwidth;
	struct state_options cache;
	const struct model_cost *cost;
};
void estimate_make(struct estimate *e, const struct ggu_file *f, const struct estimate_options *o);
/* wanted; or if that is 0, the context the model was trained for, at most 4096. */
uint64_t estimate_ctx(const struct ggu_file *f, uint64_t wanted);

#endif
