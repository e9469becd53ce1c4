/* SPDX-License-Identifier: MIT
 * encode.c - takes the sources of a decoder's sequences through the encoder. Its stack is evaluated like any other, in
 * a work of its own, on the states that sequences have as their sources. At its end, eval.c makes what the decoder's
 * branches keep of the rows. The work has room for all rows of the longest source, as much as the decoder's keys and
 * values may need after it, so it goes first. */
#include <stdlib.h>
#include "../../libgguf/size.h"
#include "../../libgguf/try.h"
#include "model_internal.h"

static enum ggu_status check(const struct part *part, size_t n_parts, struct ggu_error *err)
{
	for (size_t i = 0; i < n_parts; i++) {
		if (part[i].state->pos)
			return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "",
				"the sequence has already begun: its source must come first");
		if (!part[i].n)
			return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "there are no tokens for the encoder");
	}
	return GGU_OK;
}

/* A work whose batch has room for the longest source. */
static enum ggu_status make_room(struct work **source, const struct work *w, const struct part *part, size_t n_parts,
	struct ggu_error *err)
{
	size_t n = w->n_batch;
	for (size_t i = 0; i < n_parts; i++) n = size_most(n, part[i].n);
	if (n > MODEL_MAX_POS)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "more than %d positions", MODEL_MAX_POS);
	return work_source(source, w, n, err);
}

enum ggu_status model_encode(struct work *w, const struct part *part, size_t n_parts, model_tap *tap, void *tap_ctx,
	struct ggu_error *err)
{
	struct part *own;
	struct work *source;
	enum ggu_status s;
	if (!w->g->source)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "the model has no encoder");
	TRY(check(part, n_parts, err));
	TRY(make_room(&source, w, part, n_parts, err));
	own = malloc((n_parts + 1)*sizeof *own);
	if (!own) {
		work_free(source);
		return ggu_no_memory(err);
	}
	for (size_t i = 0; i < n_parts; i++) {
		own[i] = (struct part){ part[i].state->source, part[i].ids, part[i].n, part[i].n };
		state_reset(own[i].state);
	}
	s = model_eval(source,
		&(struct model_call){ .part = own, .n_parts = n_parts, .tap = tap, .tap_ctx = tap_ctx }, err);
	for (size_t i = 0; i < n_parts && s; i++) state_reset(own[i].state);
	work_free(source);
	free(own);
	return s;
}
