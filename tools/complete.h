/* SPDX-License-Identifier: MIT
 * complete.h - a shell's completion for a program, made from its table of options. Programs only. */
#ifndef TOOLS_COMPLETE_H
#define TOOLS_COMPLETE_H
#include "opt.h"

/* Prints the script that shell, "bash", "zsh" or "fish", reads; false: no such shell. */
bool complete_print(const char *shell, const struct opt *opts, const struct opt_program *p);

#endif
