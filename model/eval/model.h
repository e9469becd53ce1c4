/* SPDX-License-Identifier: MIT
 * model.h - evaluate a model: token ids in, logits out.
 *
 *   model   the weights, mapped read-only, and the plan of the layers
 *   work    the scratch memory for a batch of rows
 *   state   one sequence: what the model keeps of its past, and of the input of its encoder
 *
 * A call evaluates parts of one or many sequences; their tokens go through the layers side by side, a batch at a time.
 * Shapes are written slowest index first: logits[n_tokens][n_logits]. Results do not depend on the number of threads,
 * on how sequences are cut into calls and batches, on the other sequences of a call, or on the instruction set
 * (quant.h, attn.h, vec.h). session.h combines one sequence and its work, for programs that need no more. */
#ifndef MODEL_EVAL_MODEL_H
#define MODEL_EVAL_MODEL_H
#include "../../libgguf/pool.h"
#include "../../quant/input.h"
#include "../arch/arch.h"
#include "../vocab/vocab.h"

/* ---- model ---- */

struct model;
struct model_options {
	const char *const *arch_files; size_t n_arch_files;     /* extra descriptions of architectures */
	struct ggu_pool *pool;          /* of its works, one call at a time; NULL: one thread */
	struct ggu_file *file;          /* not NULL: an open file to use instead of path; model_open takes ownership */
	bool lent;                      /* ... or not: whoever opened the file closes it, after the model */
	unsigned hold;                  /* how to keep weights in memory: GGU_HOLD_* */
};
/* path must be seekable. GGU_ERR_UNSUPPORTED: an unknown architecture (the message names the known ones), or a model of
 * a known one that its description does not support. GGU_ERR_MISSING, _FORMAT, _RANGE: the metadata or tensors are not
 * those of such a model. */
enum ggu_status model_open(struct model **out, const char *path, const struct model_options *o, struct ggu_error *err);
/* Checks whether metadata and tensors [n] make a model of architecture a. Only names, shapes and types of tensors
 * count; no data is read. Errors are those above; GGU_ERR_UNSUPPORTED also if the description does not say how to
 * evaluate it. */
enum ggu_status model_check(const struct arch *a, const struct ggu_meta *meta, const struct ggu_tensor *t, size_t n,
	struct ggu_error *err);
void model_close(struct model *m);
const struct ggu_file *model_file(const struct model *m);
/* A number that the description, the metadata of the architecture, and the names, shapes, types and beginnings of the
 * tensors decide, whatever their order: models with the same one are taken for the same. */
uint64_t model_id(const struct model *m);
struct ggu_pool *model_pool(const struct model *m);
size_t model_n_vocab(const struct model *m);           /* ids that a sequence may have are below it */
/* The logits of a row, mostly as many. Ids beyond them can be read, but not follow. 0: there is no head */
size_t model_n_logits(const struct model *m);
size_t model_n_embd(const struct model *m);
size_t model_n_layer(const struct model *m);
/* The most positions that a sequence of any model may have, and of this one: fewer, if it has learned fewer. */
enum { MODEL_MAX_POS = 1 << 24 };
size_t model_n_positions(const struct model *m);
/* Steps of all layers together, mostly attention and feed-forward in turn. */
size_t model_n_steps(const struct model *m);
/* Replaces the weights of tensor `name`, which must be of floats, by weights[n_mat][n_out][n_in], which stay the
 * caller's; NULL: uses those of the file again. Lookups of embeddings use them too; the bias stays. No call may be
 * running. */
void model_set_weights(struct model *m, const char *name, const float *weights);
/* false: an encoder, whose output is rows of n_embd and no logits */
bool model_has_head(const struct model *m);
/* true: tokens see the whole sequence, which must come in one call and one batch */
bool model_is_whole(const struct model *m);
/* true: the logits are those of a decoder, and sequences begin with model_encode */
bool model_has_encoder(const struct model *m);
/* true: whatever the tokens, sequences of the same length give a tap the inputs of the same weights in the same order,
 * each once. false: a weight has several matrices, among which tokens may choose, or is used more than once */
bool model_is_even(const struct model *m);
int32_t model_start(const struct model *m);             /* the decoder's first token; -1: the model names none */

/* ---- state ---- */

/* Keys and values are stored in pages of positions, which states share after a fork. Layers with a window free those
 * that no later token sees. Recurrent layers keep an amount that does not grow. A state and its forks may be used by
 * one thread at a time. */
struct state;
struct state_options { uint32_t k_type, v_type; };      /* of the cache: F32 (0), F16, BF16, I16, Q8_0, Q5_1, Q4_0 */
/* o NULL: F32. The model must outlive the state. GGU_ERR_UNSUPPORTED: the size of the model's heads is not a multiple
 * of the type's block. */
enum ggu_status state_new(struct state **out, struct model *m, const struct state_options *o, struct ggu_error *err);
void state_free(struct state *s);
void state_reset(struct state *s);                      /* back to position 0, nothing encoded */
size_t state_pos(const struct state *s);
const int32_t *state_ids(const struct state *s);        /* [state_pos]: its tokens */
/* Bytes of its keys and values, including shared ones, and of what recurrent layers keep; without snapshots. */
size_t state_bytes(const struct state *s);
/* A new state at the same position, independent of the old one from there on, whose snapshots it does not have. */
enum ggu_status state_fork(struct state **out, const struct state *from, struct ggu_error *err);
/* Forgets all but the first n positions; what was encoded stays. With recurrent layers n must be 0 or a snapshot's
 * position: GGU_ERR_STATE otherwise. If a layer with a window has freed keys that it needs again, the next call
 * computes the sequence anew; up to 64 positions back, and at a snapshot, it has not. */
enum ggu_status state_truncate(struct state *s, size_t n, struct ggu_error *err);
/* Keeps the current contents of recurrent layers and of those with a window, so that state_truncate can return to this
 * position. Cutting the state shorter than that drops the snapshot. A call with a stream drops all of them, and so does
 * one that computes the sequence anew: if it takes it past the first context of a rope with two sets of divisors, or
 * back, or if, after a cut, it needs keys that a window has freed. */
enum ggu_status state_snapshot(struct state *s, struct ggu_error *err);
/* A state as bytes, for this program on this kind of machine; snapshots are not saved. Meant for keeping processed
 * prompts, found by state_ids; no program does so yet. */
size_t state_save_bytes(const struct state *s);
void state_save(const struct state *s, void *to);
/* Replaces the contents of s. GGU_ERR_FORMAT, _TRUNCATED: the bytes are not those of a state of this model with these
 * types, or another version wrote them; s is unchanged then. GGU_ERR_NOMEM: s is reset. Two models are one if their
 * model_id is the same. */
enum ggu_status state_load(struct state *s, const void *bytes, size_t n, struct ggu_error *err);

/* ---- evaluation ---- */

struct work;
/* n_batch: the most rows computed at once; 0: MODEL_BATCH. The model must outlive the work. */
enum { MODEL_BATCH = 512 };
enum ggu_status work_new(struct work **out, struct model *m, size_t n_batch, struct ggu_error *err);
/* The same with another pool than the model's; NULL: one thread. Works with pools of their own may be used at the same
 * time, each by one thread, with other states. */
enum ggu_status work_new_for(struct work **out, struct model *m, struct ggu_pool *pool, size_t n_batch,
	struct ggu_error *err);
void work_free(struct work *w);
size_t work_bytes(const struct work *w);

/* The cost of evaluating, worked out from the plan of the layers, without the memory for it. */
struct model_cost {
	/* multiply-adds with weights: of the layers for a token; those of them that a token with an unwanted row does
	 * not need; of a row of logits */
	double macs, wanted_macs, head_macs;
	double weight_bytes, head_bytes;        /* of the weights read by the layers, and by a row of logits */
	/* of a state: the most that it takes on its way to n_ctx positions, in batches; how much of that the token
	 * halfway there reads. If there is an encoder, it has n_ctx tokens */
	double state_bytes, seen_bytes;
	double slack_bytes;             /* resident besides state_bytes: the rest of large pages (page.h) */
	double made_bytes;              /* of weights that are made from tensors when the model is opened */
	double work_bytes;              /* of a work whose tokens see up to n_ctx positions, and of its encoder's */
	double idle_bytes;              /* of those, what calls that want one row do not touch */
	/* what is not resident at the same time, if weights are mapped: the work of an encoder, or the weights
	 * (but those of the head) and the state of the decoder, which begins when that has been freed; whichever is
	 * less */
	double apart_bytes;
	double source_macs;             /* of an encoder, for each of its tokens */
};
/* For a state with options o, a work of n_batch and a pool of n_threads. */
enum ggu_status model_cost(struct model_cost *cost, struct model *m, const struct state_options *o, size_t n_batch,
	size_t n_ctx, size_t n_threads, struct ggu_error *err);

/* Receives the input of a product, which is gone after the call. A matrix that no token uses is not reported. Called
 * from the thread that called model_eval. */
typedef enum ggu_status model_tap(void *ctx, const struct quant_input *in);

/* ids[n] continue the sequence of state. The rows of tokens from `first` on are wanted. A state may be in only one part
 * of a call. */
struct part { struct state *state; const int32_t *ids; size_t n, first; };
struct model_call {
	const struct part *part; size_t n_parts;
	/* rows[wanted][n_embd] of all parts in order, after the last norm: input of model_logits; NULL: none */
	float *rows;
	/* hidden[n_layer+1][n][n_embd] over all tokens n, the residual stream: entry 0 enters block 0, entry i leaves
	 * block i-1; NULL: none */
	float *hidden;
	model_tap *tap; void *tap_ctx;  /* or NULL */
	/* Some of the layers instead of all: steps from .. to - 1 (model_n_steps); with to 0, only the embeddings.
	 * stream[n][n_embd] over all tokens enters the first step and is replaced by what leaves the last. Parts are
	 * whole sequences, whatever their states had; hidden is not filled. NULL: all steps. */
	float *stream;
	size_t from, to;
};
/* Encodes the sources of sequences: the whole ids[n] of each part. Each state must be at position 0; what it had
 * encoded before is replaced. The memory that the longest source needs is freed at the end. GGU_ERR_UNSUPPORTED: the
 * model has no encoder. */
enum ggu_status model_encode(struct work *w, const struct part *part, size_t n_parts, model_tap *tap, void *tap_ctx,
	struct ggu_error *err);
/* If a tap returns anything but GGU_OK, the call ends with it. GGU_ERR_RANGE: an id outside the vocabulary, more
 * positions than the model or any may have, or a whole sequence that does not fit a batch; nothing was changed then.
 * GGU_ERR_STATE: the model has an encoder, and nothing was encoded. GGU_ERR_UNSUPPORTED: some of the layers of a model
 * whose layers share keys or that has an encoder. After any other error, state_reset must come before the next call. */
enum ggu_status model_eval(struct work *w, const struct model_call *c, struct ggu_error *err);
/* logits[n][n_logits] of rows[n][n_embd]. tap may be NULL; if logits is NULL, only the tap is called. */
enum ggu_status model_logits(struct work *w, const float *rows, size_t n, float *logits, model_tap *tap, void *tap_ctx,
	struct ggu_error *err);
/* The same without storing the logits. For each row: the log of the sum of exp over all logits, the logit of token
 * next[n], and the id of the largest logit. If next has none (-1: no token follows), logit is 0. */
struct model_score { double log_sum, logit; int32_t top; };
enum ggu_status model_scores(struct work *w, const float *rows, size_t n, const int32_t *next,
	struct model_score *score, struct ggu_error *err);
/* The score of a row of logits, with the same bits. */
struct model_score model_score_row(const float *logits, size_t n, int32_t next);

#endif
