/* SPDX-License-Identifier: MIT
 * whole.h - bytes that come once and in order (of a file, a pipe, an archive) and are wanted in memory. Not installed.
 *
 * Nothing is read beyond what was asked for, and memory grows with what came, not with what was asked for: a claim of a
 * file about its size costs nothing. */
#ifndef GGU_WHOLE_H
#define GGU_WHOLE_H
#include "ggu.h"

struct whole {
	/* Some of the next n bytes, *got; 0 is the end, after which it is not called again. */
	enum ggu_status (*more)(void *ctx, void *to, size_t n, size_t *got, struct ggu_error *err);
	void *ctx;
	char *p;                /* the bytes, and a NUL after them; to be freed. NULL before the first call */
	size_t n;
	size_t room;            /* for bytes at p */
	bool ended;
};
/* More bytes to p, until there are n, or all that come. */
enum ggu_status whole_want(struct whole *w, size_t n, struct ggu_error *err);
/* All that come, at most `most`: GGU_ERR_RANGE if there are more. */
enum ggu_status whole_all(struct whole *w, size_t most, struct ggu_error *err);
/* For more: of a descriptor, *(int *)ctx. */
enum ggu_status whole_of_fd(void *ctx, void *to, size_t n, size_t *got, struct ggu_error *err);

#endif
