/* SPDX-License-Identifier: MIT
 * model.h - evaluate a model: token ids in, logits out.
 *
 *   model   weights, mapped read-only, and the layers' plan
 *   work    scratch of a model for a batch of rows
 *   state   one sequence: what the model keeps of its past, and of what its encoder was given
 *
 * A call takes parts of one or many sequences; their tokens go through the layers side by side, a batch at a time.
 * Shapes are written slowest index first: logits[n_tokens][n_vocab]. Results do not depend on the number of
 * threads, on how sequences are cut into calls and batches, on their neighbours, or on the instruction set (quant.h,
 * attn.h, vec.h). session.h has one sequence with its work in one object, for programs that need no more. */
#ifndef MODEL_EVAL_MODEL_H
#define MODEL_EVAL_MODEL_H
#include "../../libgguf/pool.h"
#include "../arch/arch.h"
#include "../vocab/vocab.h"

/* ---- model ---- */

struct model;
struct model_options {
	const char *arch_file;          /* extra architecture description, or NULL */
	struct ggu_pool *pool;          /* required; shared by all works, one call at a time */
	struct ggu_file *file;          /* not NULL: the open file to use instead of path; model_open takes it over */
	unsigned hold;                  /* of weights in memory: GGU_HOLD_* */
};
/* path must be seekable. GGU_ERR_UNSUPPORTED: an unknown architecture (the message names the known ones), or a model of
 * a known one that its description cannot do; GGU_ERR_MISSING, _FORMAT, _RANGE: metadata or tensors make no sense as
 * one. */
enum ggu_status model_open(struct model **out, const char *path, const struct model_options *o, struct ggu_error *err);
/* Do metadata and tensors [n] make a model of architecture a? Of these names, shapes and types count; no data is looked
 * at. Errors as above; GGU_ERR_UNSUPPORTED too where a description does not say how to evaluate it. */
enum ggu_status model_check(const struct arch *a, const struct ggu_meta *meta, const struct ggu_tensor *t, size_t n,
	struct ggu_error *err);
void model_close(struct model *m);
const struct ggu_file *model_file(const struct model *m);
struct ggu_pool *model_pool(const struct model *m);
size_t model_n_vocab(const struct model *m);
size_t model_n_embd(const struct model *m);
size_t model_n_layer(const struct model *m);
/* Steps of all layers together: attention and feed-forward, mostly, by turns. */
size_t model_n_steps(const struct model *m);
/* From now on the weights of tensor `name` are these, [n_mat][n_out][n_in], which are the caller's; NULL: again those
 * of the file. For a tensor of floats; a lookup of embeddings sees it, too. Bias stays. No call is at work. */
void model_set_weights(struct model *m, const char *name, const float *weights);
/* false: an encoder, which gives rows of n_embd and no logits */
bool model_has_head(const struct model *m);
/* tokens see the whole sequence: it comes in one call and one batch */
bool model_is_whole(const struct model *m);
/* Logits are a decoder's, whose sequences begin with model_encode. */
bool model_has_encoder(const struct model *m);
int32_t model_start(const struct model *m);             /* the token that such a sequence begins with; -1: not said */

/* ---- state ---- */

/* Keys and values lie in blocks of positions that states share after a fork. In layers with a window those that no
 * later token sees are let go of. What recurrent layers keep is of one size. The states of a model are used by one
 * thread at a time. */
struct state;
struct state_options { uint32_t k_type, v_type; };      /* of the cache: F32 (0), F16, BF16, I16, Q8_0, Q5_1, Q4_0 */
/* o NULL: F32. The model outlives the state. GGU_ERR_UNSUPPORTED: a type that the model's heads are no multiple for. */
enum ggu_status state_new(struct state **out, struct model *m, const struct state_options *o, struct ggu_error *err);
void state_free(struct state *s);
void state_reset(struct state *s);                      /* back to position 0, nothing encoded */
size_t state_pos(const struct state *s);
const int32_t *state_ids(const struct state *s);        /* [state_pos]: its tokens */
/* Of its keys and values, those that it shares too, and of what recurrent layers keep; without snapshots. */
size_t state_bytes(const struct state *s);
/* A state at the same position that goes its own way from there. */
enum ggu_status state_fork(struct state **out, const struct state *from, struct ggu_error *err);
/* Forgets all but the first n positions; what was encoded stays. Recurrent layers only go back to 0 or a snapshot:
 * GGU_ERR_STATE elsewhere. Where keys that a window wants again were let go of, which 64 positions back they are not,
 * nor at a snapshot, the next call computes the sequence anew. */
enum ggu_status state_truncate(struct state *s, size_t n, struct ggu_error *err);
/* Keeps what recurrent layers and those with a window have now, to come back to; it goes when the state is cut shorter
 * than that. */
enum ggu_status state_snapshot(struct state *s, struct ggu_error *err);
/* As bytes, to be read by this program on this kind of machine. Snapshots are left out. For keeping what prompts were
 * made into, by state_ids: no program here does so yet. */
size_t state_save_bytes(const struct state *s);
void state_save(const struct state *s, void *to);
/* Replaces what s has. GGU_ERR_FORMAT, _TRUNCATED: these are no bytes of a state of such a model and such types; s is
 * as before then. */
enum ggu_status state_load(struct state *s, const void *bytes, size_t n, struct ggu_error *err);

/* ---- evaluation ---- */

struct work;
/* n_batch: most rows computed at once, 0: a default (512). The model outlives the work. */
enum ggu_status work_new(struct work **out, struct model *m, size_t n_batch, struct ggu_error *err);
void work_free(struct work *w);
size_t work_bytes(const struct work *w);

/* What evaluating takes, from the plan of the layers alone; nothing is computed or set aside. */
struct model_cost {
	/* multiply-adds with weights: of a token's layers; of these, those that a token whose row nobody wants does not
	 * take; of a row of logits */
	double macs, wanted_macs, head_macs;
	double weight_bytes, head_bytes;        /* of the weights that these read */
	/* of a state: the most that it has on its way to n_ctx positions, in batches; what of that the token halfway
	 * there reads; with n_ctx tokens for its encoder, if there is one */
	double state_bytes, seen_bytes;
	double slack_bytes;             /* resident beside state_bytes: memory comes in large pages (page.h) */
	double work_bytes;              /* of a work, where tokens see up to n_ctx positions */
	double source_macs, source_weight_bytes;        /* of an encoder: for each of its tokens */
};
/* As for state_new, work_new and a pool of `threads`. */
enum ggu_status model_cost(struct model_cost *cost, struct model *m, const struct state_options *o, size_t n_batch,
	size_t n_ctx, size_t threads, struct ggu_error *err);

/* The input of a weight multiplication: x[n_tokens][n_in], rows stride floats apart, tokens of a sequence in order.
 * weight: the GGUF tensor's name; mat of n_mat: which of its matrices, as experts are; a matrix that no token meets is
 * not told. Called from the thread that called model_eval. */
typedef enum ggu_status model_tap(void *ctx, const char *weight, size_t n_mat, size_t mat, size_t n_in,
	const float *x, size_t stride, size_t n_tokens);

/* ids[n] come next in state. Wanted are the rows of tokens from `first` on. A state stands in one part of a call. */
struct part { struct state *state; const int32_t *ids; size_t n, first; };
struct model_call {
	const struct part *part; size_t n_parts;
	/* rows[wanted][n_embd] of all parts in order, behind the last norm: input of model_logits; or NULL for none */
	float *rows;
	/* hidden[n_layer+1][n][n_embd] over all tokens n, the residual stream: entry 0 enters block 0, entry i leaves
	 * block i-1; or NULL */
	float *hidden;
	model_tap *tap; void *tap_ctx;  /* or NULL */
	/* A stretch of the layers instead of all: steps from .. to - 1 (model_n_steps), to 0 being the embeddings.
	 * stream[n][n_embd] over all tokens enters the first and is replaced by what leaves the last. Parts are whole
	 * sequences, whatever their states had; hidden is not filled. NULL: all steps. */
	float *stream;
	size_t from, to;
};
/* The sequences' sources: ids[n] of the parts, whole, through the encoder. Each state is at position 0, and what it had
 * encoded before is gone. The work grows to what the longest wants. GGU_ERR_UNSUPPORTED: the model has no encoder. */
enum ggu_status model_encode(struct work *w, const struct part *part, size_t n_parts, model_tap *tap, void *tap_ctx,
	struct ggu_error *err);
/* What a tap returns, if it is not GGU_OK, ends the call. GGU_ERR_RANGE: an id outside the vocabulary, more positions
 * than the model knows or than 2^24, or a whole sequence that is no batch; nothing has happened then.
 * GGU_ERR_STATE: nothing was encoded where the model has an encoder.
 * GGU_ERR_UNSUPPORTED: a stretch of a model whose layers share keys or that has an encoder. After another error
 * state_reset comes before the next call. */
enum ggu_status model_eval(struct work *w, const struct model_call *c, struct ggu_error *err);
/* logits[n][n_vocab] of rows[n][n_embd]. tap may be NULL; with logits NULL it alone is served. */
enum ggu_status model_logits(struct work *w, const float *rows, size_t n, float *logits, model_tap *tap, void *tap_ctx,
	struct ggu_error *err);
/* The same without the logits: for each row the log of the sum of their exp, that of the token next[n], and the
 * largest one's id. Of a token outside the vocabulary, -1 where none follows, the logit is 0. */
struct model_score { double log_sum, logit; int32_t top; };
enum ggu_status model_scores(struct work *w, const float *rows, size_t n, const int32_t *next,
	struct model_score *score, struct ggu_error *err);
/* That of a row of logits: the same bits. */
struct model_score model_score_row(const float *logits, size_t n_vocab, int32_t next);

#endif
