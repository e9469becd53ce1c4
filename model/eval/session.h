/* SPDX-License-Identifier: MIT
 * session.h - one sequence and its work, for programs that evaluate a single sequence. */
#ifndef MODEL_EVAL_SESSION_H
#define MODEL_EVAL_SESSION_H
#include "model.h"

struct session;
/* n_ctx: the most positions, from 1 to MODEL_MAX_POS, otherwise GGU_ERR_RANGE; n_batch as for work_new, options as for
 * state_new. */
enum ggu_status session_new(struct session **out, struct model *m, size_t n_ctx, size_t n_batch,
	const struct state_options *o, struct ggu_error *err);
void session_free(struct session *s);
struct state *session_state(struct session *s);
struct work *session_work(struct session *s);
void session_reset(struct session *s);                  /* back to position 0 */
size_t session_pos(const struct session *s);

struct session_eval {
	const int32_t *ids; size_t n;   /* appended at session_pos */
	float *logits; size_t first;    /* logits[n - first][n_logits] of tokens first..n-1, or NULL for none */
	float *hidden;                  /* as model_call's */
	model_tap *tap; void *tap_ctx;  /* or NULL */
};
/* As model_eval; GGU_ERR_RANGE also for more positions than n_ctx. */
enum ggu_status session_eval(struct session *s, const struct session_eval *e, struct ggu_error *err);

#endif
