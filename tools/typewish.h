/* SPDX-License-Identifier: MIT
 * typewish.h - types for tensors by pattern: --tensor-type REGEX=TYPE. Programs only; all failures exit 2 with a
 * message. */
#ifndef TOOLS_TYPEWISH_H
#define TOOLS_TYPEWISH_H
#include "../libgguf/ggu.h"
#include "opt.h"

struct typewish;
struct typewish *typewish_new(const struct opt_list *wishes);
/* For struct recipe_options: the type of the first pattern that matches the name, in any case, or RECIPE_KEEP. */
uint32_t typewish_find(void *wishes, const char *name);
/* Warns of patterns that matched nothing. */
void typewish_report(const struct typewish *w);
void typewish_free(struct typewish *w);

#endif
