/* SPDX-License-Identifier: MIT
 * habit.h - what fingers type that learnt other programs' options. Programs only. */
#ifndef TOOLS_HABIT_H
#define TOOLS_HABIT_H
#include "opt.h"

enum { HABIT_BYTES = 96 };
/* To hint, what to say of arg where the program does not have that option but llama.cpp's programs do: "; here it is
 * --jobs"; or nothing. True: there is a hint, and arg is a word behind a single dash (-ngl), no bundle of letters. */
bool habit_hint(const char *arg, const struct opt *opts, const struct opt_program *p, char hint[HABIT_BYTES]);

#endif
