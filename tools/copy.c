/* SPDX-License-Identifier: MIT
 * copy.c - see copy.h. What is between holes goes through copy_file_range, which shares blocks if the file system can,
 * or through a buffer if the kernel refuses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "copy.h"
#include "msg.h"
#include "progress.h"

enum { STEP = 64 << 20, BUFFER = 1 << 20 };

/* How many of the first n bytes the system copied; 0: none, it cannot. */
static uint64_t by_system(int fd, uint64_t at, struct out *to, uint64_t n)
{
#ifdef __linux__
	off_t from = (off_t)at;
	ssize_t k;
	do k = copy_file_range(fd, &from, out_fd(to), NULL, (size_t)n, 0);
	while (k < 0 && errno == EINTR);
	return k > 0 ? (uint64_t)k : 0;
#else
	(void)fd; (void)at; (void)to; (void)n;
	return 0;
#endif
}

static uint64_t by_hand(const char *name, int fd, uint64_t at, struct out *to, uint64_t n)
{
	static unsigned char buf[BUFFER];
	ssize_t k;
	do k = pread(fd, buf, n < BUFFER ? (size_t)n : BUFFER, (off_t)at);
	while (k < 0 && errno == EINTR);
	if (k <= 0) msg_die("%s: %s", name, k ? strerror(errno) : "the file was truncated while it was read");
	out_write(to, buf, (size_t)k);
	return (uint64_t)k;
}

/* How many of the n bytes at `at` are a hole; 0: there is data, or it is unknown. */
static uint64_t hole_at(int fd, uint64_t at, uint64_t n)
{
#ifdef SEEK_DATA
	off_t end = lseek(fd, 0, SEEK_END), data;
	if (end < 0 || (uint64_t)end < at + n) return 0;        /* the file became shorter; reading will report that */
	data = lseek(fd, (off_t)at, SEEK_DATA);
	if (data < 0) return errno == ENXIO ? n : 0;
	return (uint64_t)data - at < n ? (uint64_t)data - at : n;
#else
	(void)fd; (void)at; (void)n;
	return 0;
#endif
}
/* How many of the n bytes at `at`, which is not in a hole, precede the next hole. */
static uint64_t data_at(int fd, uint64_t at, uint64_t n)
{
#ifdef SEEK_HOLE
	off_t hole = lseek(fd, (off_t)at, SEEK_HOLE);
	if (hole > (off_t)at && (uint64_t)hole - at < n) return (uint64_t)hole - at;
#else
	(void)fd; (void)at;
#endif
	return n;
}
bool copy_has_holes(int fd, uint64_t at, uint64_t n)
{
	return n && (hole_at(fd, at, n) || data_at(fd, at, n) < n);
}

void copy_range(const char *name, int fd, uint64_t at, struct out *to, uint64_t to_at, uint64_t n, uint64_t done)
{
	/* up to the boundary of a block first, so that the rest can be shared */
	uint64_t head = to_at % COPY_BLOCK == at % COPY_BLOCK ? (COPY_BLOCK - at % COPY_BLOCK) % COPY_BLOCK : 0;
	while (n) {
		uint64_t k = hole_at(fd, at, n), step = head && head < n ? head : n < STEP ? n : STEP;
		if (!k || !out_skip(to, k)) {
			step = data_at(fd, at, step);
			k = by_system(fd, at, to, step);
			if (!k) k = by_hand(name, fd, at, to, step);
			out_wrote(to, k);
		}
		head -= head < k ? head : k;
		at += k;
		n -= k;
		progress_set(done += k);
	}
}
