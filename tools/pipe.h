/* SPDX-License-Identifier: MIT
 * pipe.h - what is left of an input that comes through a pipe. Programs only. */
#ifndef TOOLS_PIPE_H
#define TOOLS_PIPE_H
#include "../libgguf/ggu.h"

/* Reads a pipe to its end, so that the program which writes it does not die of SIGPIPE; the last tensor's data
 * is asked for on the way, and a stream that ends before it exits 2 with a message. Nothing to do for a file. */
void pipe_drain(struct ggu_file *f, const char *name);

#endif
