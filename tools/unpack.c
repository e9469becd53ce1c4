/* SPDX-License-Identifier: MIT
 * unpack.c - see unpack.h. The first two bytes tell whether a file is gzipped; if not, it passes through as it is. */
#include <limits.h>
#include <string.h>
#include "../libgguf/try.h"
#include "../libgguf/whole.h"
#include "unpack.h"

enum { GZIP_ONLY = 16 };                /* for inflateInit2, added to the size of the window */
enum { MAGIC_MOST = 10 };               /* bytes that tell what a file is */

void unpack_begin(struct unpack *u, int fd)
{
	u->fd = fd;
	u->state = UNPACK_BEGIN;
	u->ended = false;
	u->at = 0;
	u->z = (z_stream){ 0 };
	u->z.next_in = u->in;
}
void unpack_end(struct unpack *u)
{
	inflateEnd(&u->z);
}

static uint64_t place(const struct unpack *u) { return u->at - u->z.avail_in; }
/* Reads at least n bytes of input, unless it ends before. */
static enum ggu_status fill(struct unpack *u, size_t n, struct ggu_error *err)
{
	if (u->z.avail_in >= n || u->ended) return GGU_OK;
	memmove(u->in, u->z.next_in, u->z.avail_in);
	u->z.next_in = u->in;
	while (u->z.avail_in < n && !u->ended) {
		size_t got;
		enum ggu_status s = whole_of_fd(&u->fd, u->in + u->z.avail_in, sizeof u->in - u->z.avail_in, &got, err);
		if (s) return s;
		u->z.avail_in += (unsigned)got;
		u->at += got;
		u->ended = !got;
	}
	return GGU_OK;
}
static bool is_gzip(const struct unpack *u)
{
	return u->z.avail_in >= 2 && u->z.next_in[0] == 0x1f && u->z.next_in[1] == 0x8b;
}

/* What people have beside texts, and whose bytes would pass for a text in an odd language. */
static const struct { const char *magic; unsigned n; const char *what; } strange[] = {
	{ "\xfd" "7zXZ", 6, "an xz file" },
	{ "\x28\xb5\x2f\xfd", 4, "a zstd file" },
	{ "BZh91AY&SY", MAGIC_MOST, "a bzip2 file" },
	{ "PK\3\4", 4, "a zip archive" },
	{ "PAR1\x15", 5, "a Parquet file" },
	{ "GGUF\3\0\0\0", 8, "a GGUF file" },
};
static enum ggu_status refuse_strange(const struct unpack *u, struct ggu_error *err)
{
	for (size_t i = 0; i < sizeof strange/sizeof *strange; i++)
		if (u->z.avail_in >= strange[i].n && !memcmp(u->z.next_in, strange[i].magic, strange[i].n))
			return ggu_fail(err, GGU_ERR_FORMAT, 0, "", "is %s, neither a text nor a gzipped one",
				strange[i].what);
	return GGU_OK;
}

static enum ggu_status begin(struct unpack *u, struct ggu_error *err)
{
	TRY(refuse_strange(u, err));
	u->state = is_gzip(u) ? UNPACK_STREAM : UNPACK_PLAIN;
	return u->state == UNPACK_PLAIN || inflateInit2(&u->z, MAX_WBITS + GZIP_ONLY) == Z_OK ? GGU_OK :
		ggu_no_memory(err);
}
/* After a stream there is another one, or the end, maybe after zeros. */
static enum ggu_status go_on(struct unpack *u, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	if (is_gzip(u)) {
		u->state = UNPACK_STREAM;
		return inflateReset(&u->z) == Z_OK ? GGU_OK : ggu_no_memory(err);
	}
	while (!s && u->z.avail_in && !*u->z.next_in) {
		u->z.next_in++;
		u->z.avail_in--;
		s = fill(u, 1, err);
	}
	return s || !u->z.avail_in ? s : ggu_fail(err, GGU_ERR_FORMAT, place(u), "",
		"unexpected data after the gzip stream");
}
static enum ggu_status inflate_some(struct unpack *u, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	int code;
	u->z.next_out = to;
	u->z.avail_out = n < UINT_MAX ? (unsigned)n : UINT_MAX;
	code = inflate(&u->z, Z_NO_FLUSH);
	*got = (size_t)(u->z.next_out - (unsigned char *)to);
	if (code == Z_STREAM_END) u->state = UNPACK_BETWEEN;
	else if (code == Z_MEM_ERROR) return ggu_no_memory(err);
	else if (code != Z_OK && code != Z_BUF_ERROR)
		return ggu_fail(err, GGU_ERR_FORMAT, place(u), "", "gzip: %s", u->z.msg ? u->z.msg : "malformed");
	else if (!*got && !u->z.avail_in && u->ended)
		return ggu_fail(err, GGU_ERR_TRUNCATED, place(u), "", "the gzip stream is truncated");
	return GGU_OK;
}

enum ggu_status unpack_more(void *ctx, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	struct unpack *u = ctx;
	enum ggu_status s = GGU_OK;
	for (*got = 0; !s && !*got;) {
		if ((s = fill(u, u->state == UNPACK_BEGIN ? MAGIC_MOST : u->state == UNPACK_BETWEEN ? 2 : 1, err)))
			break;
		if (!u->z.avail_in && u->ended && u->state != UNPACK_STREAM) break;
		if (u->state == UNPACK_BEGIN) s = begin(u, err);
		else if (u->state == UNPACK_BETWEEN) s = go_on(u, err);
		else if (u->state == UNPACK_STREAM) s = inflate_some(u, to, n, got, err);
		else {
			*got = n < u->z.avail_in ? n : u->z.avail_in;
			memcpy(to, u->z.next_in, *got);
			u->z.next_in += *got;
			u->z.avail_in -= (unsigned)*got;
		}
	}
	return s;
}
