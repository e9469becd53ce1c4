/* SPDX-License-Identifier: MIT
 * copy.h - copies bytes from file to file in the cheapest way. Programs only. */
#ifndef TOOLS_COPY_H
#define TOOLS_COPY_H
#include <stdbool.h>
#include <stdint.h>
#include "out.h"

/* Copies bytes [at, at + n) of fd to `to`, which has `to_at` bytes so far. If possible the kernel copies, and on file
 * systems that share blocks it copies nothing if at and to_at are equal modulo COPY_BLOCK. Holes of a sparse file stay
 * holes if `to` is a new file. Exits 2 with a message naming `name`. Reports progress, from `done` on. */
enum { COPY_BLOCK = 4096 };
void copy_range(const char *name, int fd, uint64_t at, struct out *to, uint64_t to_at, uint64_t n, uint64_t done);
/* Are some of these bytes a hole? Then the copy takes less room than n. */
bool copy_has_holes(int fd, uint64_t at, uint64_t n);

#endif
