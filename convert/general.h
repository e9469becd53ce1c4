/* SPDX-License-Identifier: MIT
 * general.h - the metadata of a model that its architecture does not decide: general.* from the model card
 * (README.md), config.json, generation_config.json and a file of the user's.
 *
 * Which card key becomes which GGUF key follows llama.cpp's converter, as facts of the format. Nothing is taken from
 * the folder's name: the bytes must not depend on where the folder lies. */
#ifndef CONVERT_GENERAL_H
#define CONVERT_GENERAL_H
#include "config.h"

/* general.* but file_type. name: what the user says, or NULL. n_weights: of the model. card_error: filled if the card
 * cannot be read as YAML; it is left out then. */
enum ggu_status general_to_meta(struct ggu_meta *m, const char *dir, const struct config *c, const char *name,
	uint64_t n_weights, struct ggu_error *card_error, struct ggu_error *err);
/* The keys of a JSON object over those of m: a key that is there keeps its type; else strings, booleans, whole numbers
 * as u32 or i64, fractions as f32, lists of strings; null removes. */
enum ggu_status general_override(struct ggu_meta *m, const char *json_file, struct ggu_error *err);
/* "102K", "8.0B", "8x7B": parameters as llama.cpp words them. */
void general_size_label(uint64_t n_weights, char to[32]);

#endif
