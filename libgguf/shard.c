/* SPDX-License-Identifier: MIT
 * shard.c - one file of a GGUF, wherever its bytes come from: a descriptor, memory, the caller's functions, a pipe.
 *
 * All positions count from the shard's base, the byte of the source where the GGUF begins. ggu_shard_pread reads
 * seekable sources, from any thread. ggu_shard_read reads pipes, only forward, beginning with what was read ahead of
 * the header. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"
#include "text.h"

enum { CALL_BYTES = 1 << 30 };

bool ggu_wait(int fd, int events)
{
	struct pollfd p = { .fd = fd, .events = (short)events };

	return (errno == EAGAIN || errno == EWOULDBLOCK) && (poll(&p, 1, -1) >= 0 || errno == EINTR);
}

ssize_t ggu_read_some(int fd, void *to, size_t n)
{
	ssize_t r;

	do
		r = read(fd, to, n < CALL_BYTES ? n : CALL_BYTES);
	while (r < 0 && (errno == EINTR || ggu_wait(fd, POLLIN)));
	return r;
}

/* Reads byte `at` of a file that can seek, in the form of struct ggu_source. */
static enum ggu_status fd_pread(int fd, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	ssize_t r;

	do
		r = pread(fd, to, n < CALL_BYTES ? n : CALL_BYTES, (off_t)at);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "read");
	*got = (size_t)r;
	return GGU_OK;
}

enum ggu_status ggu_shard_pread(const struct ggu_shard *s, uint64_t at, void *to, size_t n, size_t *got,
	struct ggu_error *err)
{
	const struct ggu_source *from = &s->source;
	uint64_t left = at < s->size ? s->size - at : 0;
	size_t k = 0, more = 1;

	if (s->memory) {
		*got = n < left ? n : (size_t)left;
		if (*got)
			memcpy(to, s->memory + at, *got);
		return GGU_OK;
	}
	if (at > INT64_MAX - s->base)
		n = 0;
	while (k < n && more) {
		uint64_t next = s->base + at + k;
		more = 0;
		TRY(from->pread ? from->pread(from->ctx, next, (char *)to + k, n - k, &more, err)
			: fd_pread(s->fd, next, (char *)to + k, n - k, &more, err));
		if (more > n - k)
			return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "",
				"the source returned more bytes than requested");
		k += more;
	}
	*got = k;
	return GGU_OK;
}

enum ggu_status ggu_shard_fill(struct ggu_shard *s, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	ssize_t r;

	if (s->seekable)
		return ggu_shard_pread(s, at, to, n, got, err);
	r = ggu_read_some(s->fd, to, n);
	if (r < 0)
		return ggu_fail(err, GGU_ERR_IO, at, "", "read");
	*got = (size_t)r;
	return GGU_OK;
}

/* Skips bytes of a pipe up to byte `at`, or to its end if that comes first. */
static enum ggu_status skip_to(struct ggu_shard *s, uint64_t at, struct ggu_error *err)
{
	while (at > s->buf_at) {
		size_t skip;
		if (!s->buf_n) {
			TRY(ggu_shard_fill(s, s->buf_at, s->buf, GGU_BUF_BYTES, &s->buf_n, err));
			if (!s->buf_n)
				return GGU_OK;
			memmove(s->buf + GGU_BUF_BYTES - s->buf_n, s->buf, s->buf_n);
		}
		skip = at - s->buf_at < s->buf_n ? (size_t)(at - s->buf_at) : s->buf_n;
		s->buf_at += skip;
		s->buf_n -= skip;
	}
	return GGU_OK;
}

enum ggu_status ggu_shard_read(struct ggu_shard *s, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	size_t k, more = 1;

	if (at < s->buf_at)
		return ggu_fail(err, GGU_ERR_STATE, at, "", "a pipe can be read only once, in file order");
	*got = 0;
	TRY(skip_to(s, at, err));
	if (s->buf_at < at)
		return GGU_OK;
	k = n < s->buf_n ? n : s->buf_n;
	if (k) {
		memcpy(to, s->buf + GGU_BUF_BYTES - s->buf_n, k);
		s->buf_n -= k;
		s->buf_at += k;
	}
	while (k < n && more) {
		TRY(ggu_shard_fill(s, at + k, (char *)to + k, n - k, &more, err));
		k += more;
		s->buf_at += more;
	}
	*got = k;
	return GGU_OK;
}

/* Skips the bytes of a pipe before the base. */
static enum ggu_status drop_base(struct ggu_shard *s, struct ggu_error *err)
{
	char rest[4096];

	for (uint64_t left = s->base; left;) {
		size_t got;
		TRY(ggu_shard_fill(s, 0, rest, left < sizeof rest ? (size_t)left : sizeof rest, &got, err));
		if (!got)
			break;
		left -= got;
	}
	return GGU_OK;
}

enum ggu_status ggu_shard_of_fd(struct ggu_shard *s, int fd, uint64_t base, struct ggu_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "fstat");
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "open");
	}
	s->fd = fd;
	s->base = base;
	s->seekable = S_ISREG(st.st_mode);
	s->size = !s->seekable ? UINT64_MAX : (uint64_t)st.st_size > base ? (uint64_t)st.st_size - base : 0;
	return s->seekable ? GGU_OK : drop_base(s, err);
}

enum ggu_status ggu_shard_of_path(struct ggu_shard *s, const char *path, uint64_t base, struct ggu_error *err)
{
	bool in = !strcmp(path, "-");
	int fd = in ? 0 : open(path, O_RDONLY | O_CLOEXEC);
	off_t at = in ? lseek(0, 0, SEEK_CUR) : 0;

	if (fd < 0)
		return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "open");
	s->fd = fd;
	s->own_fd = !in;
	s->name = strdup(in ? TEXT_STDIN : path);
	if (!s->name)
		return ggu_no_memory(err);
	return ggu_shard_of_fd(s, fd, base + (at > 0 ? (uint64_t)at : 0), err);
}

void ggu_shard_of_memory(struct ggu_shard *s, const void *bytes, size_t n, uint64_t base)
{
	if (base > n)
		base = n;
	s->memory = n ? (const uint8_t *)bytes + base : (const uint8_t *)"";
	s->size = n - base;
	s->seekable = true;
}

void ggu_shard_of_source(struct ggu_shard *s, const struct ggu_source *from, uint64_t base)
{
	s->source = *from;
	s->base = base;
	s->size = from->bytes == UINT64_MAX ? UINT64_MAX : from->bytes > base ? from->bytes - base : 0;
	s->seekable = true;
}

void ggu_shard_close(struct ggu_shard *s)
{
	if (s->map)
		munmap((void *)(uintptr_t)s->map, (size_t)(s->base + s->size));
	if (s->own_fd && s->fd >= 0)
		close(s->fd);
	free(s->buf);
	free(s->name);
	*s = (struct ggu_shard){ .fd = -1 };
}
