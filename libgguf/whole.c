/* SPDX-License-Identifier: MIT
 * whole.c - see whole.h. The buffer doubles when it is full; a read never asks for more than was requested. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "internal.h"
#include "whole.h"

enum { FIRST = 1 << 16, CALL_BYTES = 1 << 30 };

enum ggu_status whole_of_fd(void *ctx, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	ssize_t r = ggu_read_some(*(int *)ctx, to, n);

	if (r < 0)
		return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "read");
	*got = (size_t)r;
	return GGU_OK;
}

/* Room for more bytes than there are, and a NUL. */
static bool grow(struct whole *w)
{
	size_t room = w->room ? 2*w->room : FIRST;
	char *p;

	if (w->n < w->room)
		return true;
	p = room > w->room && room < SIZE_MAX ? realloc(w->p, room + 1) : NULL;
	if (!p)
		return false;
	w->p = p;
	w->room = room;
	return true;
}

enum ggu_status whole_want(struct whole *w, size_t n, struct ggu_error *err)
{
	if (!w->p && !grow(w))
		return ggu_no_memory(err);
	while (w->n < n && !w->ended) {
		size_t got = 0, left = n - w->n;
		if (!grow(w))
			return ggu_no_memory(err);
		if (left > w->room - w->n)
			left = w->room - w->n;
		TRY(w->more(w->ctx, w->p + w->n, left, &got, err));
		w->n += got;
		w->ended = !got;
	}
	w->p[w->n] = 0;
	return GGU_OK;
}

enum ggu_status whole_all(struct whole *w, size_t most, struct ggu_error *err)
{
	TRY(whole_want(w, most < SIZE_MAX ? most + 1 : most, err));
	if (w->n > most)
		return ggu_fail(err, GGU_ERR_RANGE, most, "", "longer than %zu bytes", most);
	return GGU_OK;
}

bool whole_write(int fd, const void *p, size_t n)
{
	for (const char *b = p; n;) {
		ssize_t r = write(fd, b, n < CALL_BYTES ? n : CALL_BYTES);
		if (r < 0 && errno != EINTR && !ggu_wait(fd, POLLOUT))
			return false;
		if (r > 0) {
			b += r;
			n -= (size_t)r;
		}
	}
	return true;
}

bool whole_write_at(int fd, const void *p, size_t n, uint64_t at)
{
	for (const char *b = p; n;) {
		ssize_t r = pwrite(fd, b, n < CALL_BYTES ? n : CALL_BYTES, (off_t)at);
		if (r < 0 && errno != EINTR)
			return false;
		if (r > 0) {
			b += r;
			at += (size_t)r;
			n -= (size_t)r;
		}
	}
	return true;
}
