/* SPDX-License-Identifier: MIT
 * zeros.h - memory that is filled as soon as it is taken. Not installed. */
#ifndef GGU_ZEROS_H
#define GGU_ZEROS_H
#include <stddef.h>

/* n times `bytes` zeros for free(), in large pages if they are many: with small pages, the kernel takes a fifth of the
 * time in which a matrix of megabytes is filled. NULL: out of memory. */
void *ggu_zeros(size_t n, size_t bytes);

#endif
