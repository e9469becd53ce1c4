/* SPDX-License-Identifier: MIT
 * pipe.h - inputs and outputs that are pipes. Programs only. */
#ifndef TOOLS_PIPE_H
#define TOOLS_PIPE_H
#include "../libgguf/ggu.h"

/* Asks the system for a larger buffer, if fd is a pipe and the system can do that: the two programs then take turns
 * less often. */
void pipe_widen(int fd);
/* Call it before a model is read from `name`: standard input, "-", is refused if it is a terminal, widened if it is a
 * pipe. */
void pipe_input(const char *name);
/* Dies if standard input is more than one of these names, of which some may be NULL: "`what` cannot both be standard
 * input". */
void pipe_once(const char *const *names, int n, const char *what);
/* Reads a pipe to its end, so that the program which writes it does not die of SIGPIPE; the last tensor's data
 * is asked for on the way, and a stream that ends before it exits 2 with a message. Nothing to do for a file. */
void pipe_drain(struct ggu_file *f, const char *name);
/* The same, but returns what is wrong. */
enum ggu_status pipe_rest(struct ggu_file *f, const char *name, struct ggu_error *err);

#endif
