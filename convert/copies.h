/* SPDX-License-Identifier: MIT
 * copies.h - pairs of tensors, one a copy of the other, of which a checkpoint has both or either: `copies` of a
 * description.
 *
 *   COPY: {of: ORIGINAL, when: EXPR}     if EXPR holds or is absent, COPY has the values of ORIGINAL
 *
 * If the checkpoint has both, the copy is dropped; if it has one, that one serves as the other. If the two differ, they
 * are not copies, whatever config.json says: transformers 5 keeps both then, and so does the plan. Without `when`, two
 * that differ are refused. */
#ifndef CONVERT_COPIES_H
#define CONVERT_COPIES_H
#include "checkpoint.h"
#include "config.h"

/* Finds a tensor by its name in the description: under that name, with a prefix of `strip`, with one of the
 * `endings` instead of its own, or as its copy. */
const struct source_tensor *copies_find(struct config *c, const struct checkpoint *source, const char *name);
/* Is the checkpoint's tensor of this name, without a prefix, a copy? */
enum ggu_status copies_has(struct config *c, const char *name, bool *yes, struct ggu_error *err);
/* Compares copies with their originals. If one differs, warns; from then on tie_word_embeddings is false and `untied`
 * true in expressions, so that what was checked before must be checked again. */
enum ggu_status copies_compare(struct config *c, const struct checkpoint *source,
	void (*warn)(void *ctx, const struct ggu_error *what), void *ctx, struct ggu_error *err);

#endif
