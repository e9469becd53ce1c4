/* SPDX-License-Identifier: MIT
 * habit.h - hints for those who type other programs' options. Programs only. */
#ifndef TOOLS_HABIT_H
#define TOOLS_HABIT_H
#include "opt.h"

enum { HABIT_BYTES = 96 };
/* Writes a hint about arg, if it is an option that the program does not have but llama.cpp's programs do: "; here it is
 * --jobs"; otherwise nothing. True: there is a hint, and arg is a word after a single dash (-ngl), not several
 * letters. */
bool habit_hint(const char *arg, const struct opt *opts, const struct opt_program *p, char hint[HABIT_BYTES]);

#endif
