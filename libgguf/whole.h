/* SPDX-License-Identifier: MIT
 * whole.h - reads bytes that come once and in order (from a file, a pipe, an archive) into memory, and writes all that
 * there are. Not installed.
 *
 * It reads nothing beyond what was requested, and memory grows with what has arrived, not with what was requested: a
 * file that claims to be large costs nothing. */
#ifndef GGU_WHOLE_H
#define GGU_WHOLE_H
#include "ggu.h"

struct whole {
	/* Reads up to n of the next bytes, *got of them; 0 is the end, after which it is not called again. */
	enum ggu_status (*more)(void *ctx, void *to, size_t n, size_t *got, struct ggu_error *err);
	void *ctx;
	char *p;                /* the bytes and a NUL, to be freed by the caller; NULL before the first call */
	size_t n;
	size_t room;            /* for bytes at p */
	bool ended;
};
/* Reads more bytes to p, until there are n or no more come. */
enum ggu_status whole_want(struct whole *w, size_t n, struct ggu_error *err);
/* Reads all bytes, at most `most`; GGU_ERR_RANGE if there are more. */
enum ggu_status whole_all(struct whole *w, size_t most, struct ggu_error *err);
/* A `more` for the descriptor *(int *)ctx. */
enum ggu_status whole_of_fd(void *ctx, void *to, size_t n, size_t *got, struct ggu_error *err);

/* Writes all n bytes, or fails with errno: goes on after signals, and waits for a descriptor that does not block. */
bool whole_write(int fd, const void *p, size_t n);
bool whole_write_at(int fd, const void *p, size_t n, uint64_t at);      /* as pwrite does */

#endif
