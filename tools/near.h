/* SPDX-License-Identifier: MIT
 * near.h - guesses which name was meant by one that does not exist. Programs only. */
#ifndef TOOLS_NEAR_H
#define TOOLS_NEAR_H
#include <stddef.h>

/* Begins as { .asked = name }. best: the nearest of the names that were tried; NULL if none is near, or two are equally
 * near. */
struct near { const char *asked, *best; size_t slips; };
void near_try(struct near *n, const char *name);
enum { NEAR_BYTES = 96 };                /* a longer name is cut */
/* Writes "; did you mean NAME?", with `before` in front of the name, to hint; "" if there is no best. Returns hint. */
const char *near_hint(const struct near *n, const char *before, char hint[NEAR_BYTES]);

#endif
