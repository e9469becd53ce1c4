/* SPDX-License-Identifier: MIT
 * model.h - evaluate a model: token ids in, logits out.
 *
 * Shapes are written slowest index first: logits[n_tokens][n_vocab]. Results do not depend on the number of
 * threads, on how a sequence is cut into batches, or on the instruction set (quant.h, vec.h). */
#ifndef MODEL_EVAL_MODEL_H
#define MODEL_EVAL_MODEL_H
#include "../arch/arch.h"
#include "../vocab/vocab.h"

struct model;           /* weights, mapped read-only, and the layers' plan; usable by many sessions */
struct model_options {
	const char *arch_file;          /* extra architecture description, or NULL */
	struct ggu_pool *pool;          /* required; shared by all sessions, one eval at a time */
};
/* path must be seekable. GGU_ERR_UNSUPPORTED: an unknown architecture (the message names the known ones), or a model of a
 * known one that its description cannot do; GGU_ERR_MISSING, _FORMAT, _RANGE: metadata or tensors make no sense as one. */
enum ggu_status model_open(struct model **m, const char *path, const struct model_options *o, struct ggu_error *err);
void model_close(struct model *m);
const struct ggu_file *model_file(const struct model *m);
size_t model_n_vocab(const struct model *m);
size_t model_n_embd(const struct model *m);
size_t model_n_layer(const struct model *m);
size_t model_n_ctx_train(const struct model *m);

struct session;         /* one sequence: KV cache and scratch */
/* n_ctx: most positions, 1 to 2^24 or GGU_ERR_RANGE; n_batch: most tokens computed at once (0: a default). The model
 * outlives the session, which takes n_ctx*n_kv*head_dim*8 bytes for each attention, as they are touched. */
enum ggu_status session_new(struct session **s, struct model *m, size_t n_ctx, size_t n_batch, struct ggu_error *err);
void session_free(struct session *s);
void session_reset(struct session *s);                  /* back to position 0 */
size_t session_pos(const struct session *s);

/* The input of a weight multiplication: x[n_tokens][n_in], rows stride floats apart, tokens in order.
 * weight: the GGUF tensor's name; mat of n_mat: the expert. Called from the thread that called session_eval. */
typedef enum ggu_status model_tap(void *ctx, const char *weight, size_t n_mat, size_t mat, size_t n_in,
	const float *x, size_t stride, size_t n_tokens);
struct session_eval {
	const int32_t *ids; size_t n;   /* appended at session_pos */
	/* logits[n - first][n_vocab] of tokens first..n-1, or NULL for none */
	float *logits; size_t first;
	/* hidden[n_layer+1][n][n_embd], the residual stream: row 0 enters block 0, row i leaves block i-1; or NULL */
	float *hidden;
	model_tap *tap; void *tap_ctx;  /* or NULL */
};
/* GGU_ERR_RANGE: an id outside the vocabulary, or more positions than n_ctx; nothing has happened then. After another
 * error, which only tap can cause, session_reset comes before the next call. Not thread-safe: the model's pool is one. */
enum ggu_status session_eval(struct session *s, const struct session_eval *e, struct ggu_error *err);

#endif
