/* SPDX-License-Identifier: MIT
 * copies.h - tensors that a checkpoint may have twice, once or the other way round: `copies` of a description.
 *
 *   COPY: {of: ORIGINAL, when: EXPR}     where EXPR holds or is absent, COPY has the values of ORIGINAL
 *
 * Of two, the copy is dropped; of one, it stands for the other. Two that differ are no copies, whatever config.json
 * says: transformers 5 keeps both then, and so does the plan. Without `when` they are refused. */
#ifndef CONVERT_COPIES_H
#define CONVERT_COPIES_H
#include "checkpoint.h"
#include "config.h"

/* A tensor by its name in the description: as it is, with one of the prefixes of `strip`, or as its copy. */
const struct source_tensor *copies_find(struct config *c, const struct checkpoint *source, const char *name);
/* Whether the checkpoint's tensor of this name, without a prefix, is a copy. */
enum ggu_status copies_has(struct config *c, const char *name, bool *yes, struct ggu_error *err);
/* Compares copies with their originals. Where one differs, warns, and tie_word_embeddings is false and `untied` true in
 * expressions from here on: what was checked before is to be checked again. */
enum ggu_status copies_compare(struct config *c, const struct checkpoint *source,
	void (*warn)(void *ctx, const struct ggu_error *what), void *ctx, struct ggu_error *err);

#endif
