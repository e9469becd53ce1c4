/* SPDX-License-Identifier: MIT
 * normal_form.h - Unicode's normal forms, in time that grows with the text: utf8proc_map sorts marks by swapping
 * neighbours, which takes half an hour for a letter with a million of them. */
#ifndef MODEL_VOCAB_NORMAL_FORM_H
#define MODEL_VOCAB_NORMAL_FORM_H
#include <stddef.h>
#include "../../libgguf/ggu.h"

/* What utf8proc_map makes of t[n], which is well-formed UTF-8, with `form`: UTF8PROC_STABLE and UTF8PROC_COMPOSE or
 * UTF8PROC_DECOMPOSE, with or without UTF8PROC_COMPAT. The caller frees *out. */
enum ggu_status normal_form(const char *t, size_t n, int form, char **out, size_t *out_n, struct ggu_error *err);

#endif
