/* SPDX-License-Identifier: MIT
 * general.h - the metadata that do not depend on the architecture: general.* from the model card (README.md),
 * config.json, generation_config.json and a file of the user's.
 *
 * Which card key becomes which GGUF key follows llama.cpp's converter, as facts of the format. Nothing is taken from
 * the folder's name, as the output must not depend on where the folder is. */
#ifndef CONVERT_GENERAL_H
#define CONVERT_GENERAL_H
#include "config.h"

/* What the files do not say of a model. */
struct general_given {
	const char *name;               /* given by the user, or NULL */
	const char *kind;               /* with its size, the name of a model that has none; NULL: its architecture */
	uint64_t n_weights;             /* 0: unknown */
};
/* Sets general.* except file_type. card_error: filled if the card cannot be read as YAML; the card is ignored then. */
enum ggu_status general_to_meta(struct ggu_meta *m, const char *dir, const struct config *c,
	const struct general_given *given, struct ggu_error *card_error, struct ggu_error *err);
/* Overrides keys of m by those of a JSON object. An existing key keeps its type. A new one becomes a string, a bool, a
 * u32 or i64 for a whole number, an f32 for a fraction, or a list of strings; null removes a key. */
enum ggu_status general_override(struct ggu_meta *m, const char *json_file, struct ggu_error *err);
/* "102K", "8.0B": the number of parameters as llama.cpp writes it for a model without experts. */
void general_size_label(uint64_t n_weights, char to[32]);

#endif
