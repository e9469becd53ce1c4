/* SPDX-License-Identifier: MIT
 * session.c - see session.h. A call is a model_call with one part. */
#include <stdlib.h>
#include "../../libgguf/text.h"
#include "model_internal.h"
#include "session.h"

struct session { struct model *m; struct state *state; struct work *work; size_t n_ctx; };

enum ggu_status session_new(struct session **out, struct model *m, size_t n_ctx, size_t n_batch,
	const struct state_options *o, struct ggu_error *err)
{
	struct session *s;
	enum ggu_status st;
	if (!n_ctx || n_ctx > MODEL_MAX_POS)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"a context of %zu positions is not between 1 and %d", n_ctx, MODEL_MAX_POS);
	s = calloc(1, sizeof *s);
	if (!s) return ggu_no_memory(err);
	s->m = m;
	s->n_ctx = n_ctx;
	if (!n_batch) n_batch = MODEL_BATCH;
	if (n_batch > n_ctx || model_is_whole(m)) n_batch = n_ctx;
	st = state_new(&s->state, m, o, err);
	if (!st) st = work_new(&s->work, m, n_batch, err);
	if (st) session_free(s);
	else *out = s;
	return st;
}

void session_free(struct session *s)
{
	if (!s) return;
	state_free(s->state);
	work_free(s->work);
	free(s);
}

struct state *session_state(struct session *s) { return s->state; }
struct work *session_work(struct session *s) { return s->work; }
void session_reset(struct session *s) { state_reset(s->state); }
size_t session_pos(const struct session *s) { return state_pos(s->state); }

enum ggu_status session_eval(struct session *s, const struct session_eval *e, struct ggu_error *err)
{
	const size_t wanted = e->logits && e->first < e->n ? e->n - e->first : 0;
	struct part part = { s->state, e->ids, e->n, e->n - wanted };
	struct model_call c = { .part = &part, .n_parts = 1, .hidden = e->hidden, .tap = e->tap,
		.tap_ctx = e->tap_ctx };
	enum ggu_status st;
	if (state_pos(s->state) > s->n_ctx || e->n > s->n_ctx - state_pos(s->state))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "more than %zu position%s", s->n_ctx,
			text_s(s->n_ctx));
	if (wanted && !(c.rows = malloc(size_times(wanted, model_n_embd(s->m)*sizeof *c.rows))))
		return ggu_no_memory(err);
	st = model_eval(s->work, &c, err);
	if (!st && wanted) st = model_logits(s->work, c.rows, wanted, e->logits, e->tap, e->tap_ctx, err);
	free(c.rows);
	return st;
}
