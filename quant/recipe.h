/* SPDX-License-Identifier: MIT
 * recipe.h - chooses the type of each tensor: the named mixtures ("file types") of llama-quantize.
 *
 * A recipe considers the list of tensors and a few numbers of the model, never an architecture's layers; the exceptions
 * that llama.cpp makes by the name of the architecture are one table in recipe.c. Source of the rules: llama-quant.cpp
 * of llama.cpp, 2026-08, as facts of the format. */
#ifndef QUANT_RECIPE_H
#define QUANT_RECIPE_H
#include "../libgguf/ggu.h"

struct recipe;
const struct recipe *recipe_find(const char *name);     /* "Q4_K_M", any case; "Q4_K" means _M; NULL: none */
const struct recipe *recipe_at(size_t i);               /* all of them, NULL after the last */
const char *recipe_name(const struct recipe *r);
const char *recipe_summary(const struct recipe *r);     /* "4.89 bpw on Llama 8B, ..." of our own words and numbers */
uint32_t recipe_file_type(const struct recipe *r);      /* general.file_type, or RECIPE_KEEP for COPY */
/* the type of most weights; RECIPE_KEEP for COPY */
uint32_t recipe_type(const struct recipe *r);
#define RECIPE_KEEP UINT32_MAX

struct recipe_options {
	bool pure;              /* use the type that the recipe is named after, or that of most weights, for all */
	int output_type, token_embd_type;               /* ggml id or -1 */
	/* the type for a tensor, or RECIPE_KEEP; or NULL */
	uint32_t (*override)(void *ctx, const char *name);
	void *override_ctx;
	bool leave_output;
	bool have_importance;
	bool need_nothing;      /* for a plan: do not refuse types that need an importance matrix */
};
enum recipe_reason {                                    /* why a tensor got its type */
	RECIPE_RULE, RECIPE_OVERRIDE, RECIPE_FALLBACK,  /* the row does not fit the block */
	RECIPE_LEFT_ALONE,                              /* not a weight that is quantized */
	RECIPE_PUBLISHED        /* in MXFP4 or NVFP4, in which models are published, and no smaller by the rule */
};
struct recipe_choice { uint32_t type, wanted; enum recipe_reason reason; };

/* true for embedding and output, which may have any type without a matrix: no matrix has the embedding, which is looked
 * up, not multiplied, and many have no output. */
bool recipe_needs_no_importance(const char *name);

/* Sets choice[i] for tensor i of n, in the given order; keys of the model are read from meta (general.architecture,
 * block_count, head counts, expert count). With the tensor's name, GGU_ERR_MISSING: the type needs an importance matrix
 * and have_importance is false; GGU_ERR_UNSUPPORTED: the caller's type does not exist or does not fit the tensor's
 * rows. GGU_ERR_NOMEM. choice is set only if all is well. */
enum ggu_status recipe_choose(const struct recipe *r, const struct recipe_options *o, const struct ggu_meta *meta,
	const struct ggu_tensor *const *tensors, size_t n, struct recipe_choice *choice, struct ggu_error *err);

#endif
