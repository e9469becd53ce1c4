/* SPDX-License-Identifier: MIT
 * zeros.h - memory that is written all over at once. Not installed. */
#ifndef GGU_ZEROS_H
#define GGU_ZEROS_H
#include <stddef.h>

/* n times `bytes` zeros for free(), where they are many in large pages: with small ones a fifth of the time in which a
 * matrix of megabytes is filled goes to the kernel. NULL: out of memory. */
void *ggu_zeros(size_t n, size_t bytes);

#endif
