/* SPDX-License-Identifier: MIT
 * copy.h - bytes from file to file by the shortest way. Programs only. */
#ifndef TOOLS_COPY_H
#define TOOLS_COPY_H
#include <stdint.h>
#include "out.h"

/* Bytes [at, at + n) of fd go to `to`, of which `to_at` bytes are written. Where the system can, it copies by itself,
 * and on file systems that share blocks it copies nothing, if at and to_at are equal modulo COPY_BLOCK. Exits 2 with a
 * message naming `name`. Tells the progress, from `done` on. */
enum { COPY_BLOCK = 4096 };
void copy_range(const char *name, int fd, uint64_t at, struct out *to, uint64_t to_at, uint64_t n, uint64_t done);

#endif
