/* SPDX-License-Identifier: MIT
 * near.h - guesses which name was meant if there is none of the name given. Programs only. */
#ifndef TOOLS_NEAR_H
#define TOOLS_NEAR_H
#include <stddef.h>

/* Begins as { .asked = name }. best: the nearest of the names that were tried; NULL if none is near, or two are equally
 * near. */
struct near { const char *asked, *best; size_t slips; };
void near_try(struct near *n, const char *name);
enum { NEAR_BYTES = 96 };                /* a longer name is cut */
/* "; did you mean NAME?", with what stands before the name; "" if there is none. */
const char *near_hint(const struct near *n, const char *before, char hint[NEAR_BYTES]);

#endif
