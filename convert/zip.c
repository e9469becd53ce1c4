/* SPDX-License-Identifier: MIT
 * zip.c - the directory of a zip archive and where its members' data is; see zip.h.
 *
 * The end record is in the last 64 KiB, followed by a comment. If one of its fields is all ones, the value is in the
 * 64-bit record named by a locator just before the end record. Likewise, extra field 1 of a directory entry has the
 * 64-bit values of those fields that are all ones, in a fixed order. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "../libgguf/span.h"
#include "../model/util/file.h"
#include "zip.h"

enum { END_BYTES = 22, MAX_COMMENT = 65535, LOCATOR_BYTES = 20, END64_BYTES = 56, ENTRY_BYTES = 46, LOCAL_BYTES = 30 };
enum { MAX_DIRECTORY = 256 << 20, MAX_NAME = 4096 };
enum { END_MARK = 0x06054b50, END64_MARK = 0x06064b50, LOCATOR_MARK = 0x07064b50, ENTRY_MARK = 0x02014b50,
	LOCAL_MARK = 0x04034b50 };
enum { FLAG_ENCRYPTED = 1 };

struct zip {
	int fd;
	const char *file;
	uint64_t bytes;
	struct zip_member *v; size_t n;
	char *names;                    /* of all members, each with a NUL */
};
struct directory { uint64_t n, bytes, offset; };

static uint32_t u16_at(const unsigned char *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t u32_at(const unsigned char *p) { return u16_at(p) | u16_at(p + 2) << 16; }
static uint64_t u64_at(const unsigned char *p) { return u32_at(p) | (uint64_t)u32_at(p + 4) << 32; }

static enum ggu_status broken(const struct zip *z, uint64_t at, const char *what, struct ggu_error *err)
{
	return file_fail(err, GGU_ERR_FORMAT, z->file, at, "", "%s", what);
}

/* ---- the end ---- */

/* Where the end record is in the file, and its bytes. */
static enum ggu_status find_end(const struct zip *z, uint64_t *at, unsigned char end[END_BYTES], struct ggu_error *err)
{
	size_t n = z->bytes < END_BYTES + MAX_COMMENT ? (size_t)z->bytes : END_BYTES + MAX_COMMENT;
	uint64_t base = z->bytes - n;
	unsigned char *tail = malloc(n + 1);
	enum ggu_status s = tail ? file_read_at(z->fd, z->file, base, tail, n, err) : ggu_no_memory(err);
	size_t i = n < END_BYTES ? 0 : n - END_BYTES + 1;
	bool found = false;
	while (!s && !found && i > 0) {
		i--;
		found = u32_at(tail + i) == END_MARK && u16_at(tail + i + 20) == n - i - END_BYTES;
	}
	if (!s && !found)
		s = broken(z, base,
			"no end of a zip archive: the file is truncated or was not written by torch.save", err);
	if (!s) {
		*at = base + i;
		memcpy(end, tail + i, END_BYTES);
	}
	free(tail);
	return s;
}

static enum ggu_status read_end64(const struct zip *z, uint64_t end_at, struct directory *d, struct ggu_error *err)
{
	unsigned char locator[LOCATOR_BYTES], end[END64_BYTES];
	uint64_t at;
	enum ggu_status s;
	if (end_at < LOCATOR_BYTES) return broken(z, end_at, "no 64-bit end of the zip archive", err);
	s = file_read_at(z->fd, z->file, end_at - LOCATOR_BYTES, locator, sizeof locator, err);
	if (s) return s;
	if (u32_at(locator) != LOCATOR_MARK)
		return broken(z, end_at - LOCATOR_BYTES, "no 64-bit end of the zip archive", err);
	at = u64_at(locator + 8);
	if (at > end_at || end_at - at < END64_BYTES)
		return broken(z, end_at - LOCATOR_BYTES, "the 64-bit end is outside the file", err);
	s = file_read_at(z->fd, z->file, at, end, sizeof end, err);
	if (s) return s;
	if (u32_at(end) != END64_MARK) return broken(z, at, "no 64-bit end of the zip archive", err);
	*d = (struct directory){ u64_at(end + 32), u64_at(end + 40), u64_at(end + 48) };
	return GGU_OK;
}

static enum ggu_status read_end(const struct zip *z, struct directory *d, struct ggu_error *err)
{
	unsigned char end[END_BYTES];
	uint64_t at;
	enum ggu_status s = find_end(z, &at, end, err);
	if (s) return s;
	if (u16_at(end + 4) != u16_at(end + 6)) return broken(z, at, "a zip archive in several parts", err);
	*d = (struct directory){ u16_at(end + 10), u32_at(end + 12), u32_at(end + 16) };
	if (d->n == UINT16_MAX || d->bytes == UINT32_MAX || d->offset == UINT32_MAX) s = read_end64(z, at, d, err);
	if (s) return s;
	if (d->offset > at || d->bytes > at - d->offset)
		return broken(z, at, "the zip directory is outside the file", err);
	if (d->bytes > MAX_DIRECTORY)
		return file_fail(err, GGU_ERR_RANGE, z->file, at, "", "a zip directory of more than %d bytes",
			MAX_DIRECTORY);
	if (d->n > d->bytes/ENTRY_BYTES) return broken(z, at, "more members than the zip directory has room for", err);
	return GGU_OK;
}

/* ---- the directory ---- */

/* Takes from the entry's extra field the 64-bit values of those fields that are all ones. */
static bool widen(struct span extra, uint64_t *bytes, uint64_t *packed, uint64_t *header)
{
	uint64_t *want[] = { bytes, packed, header };
	struct span head, body;
	while (span_take(&extra, 4, &head)) {
		if (!span_take(&extra, u16_at(head.p + 2), &body)) return false;
		if (u16_at(head.p) != 1) continue;
		for (int i = 0; i < 3; i++) {
			struct span b;
			if (*want[i] != UINT32_MAX) continue;
			if (!span_take(&body, 8, &b)) return false;
			*want[i] = u64_at(b.p);
		}
		return true;
	}
	return *bytes != UINT32_MAX && *packed != UINT32_MAX && *header != UINT32_MAX;
}

/* Reads one entry; its name goes to *names, which advances. */
static enum ggu_status read_entry(const struct zip *z, struct span *d, struct zip_member *m, char **names,
	struct ggu_error *err)
{
	uint64_t at = d->at, bytes, packed, header;
	struct span e, name, extra, comment;
	if (!span_take(d, ENTRY_BYTES, &e) || u32_at(e.p) != ENTRY_MARK)
		return broken(z, at, "not an entry of a zip directory", err);
	if (!span_take(d, u16_at(e.p + 28), &name) || !span_take(d, u16_at(e.p + 30), &extra)
		|| !span_take(d, u16_at(e.p + 32), &comment))
		return broken(z, at, "an entry extends past the end of the zip directory", err);
	if (!name.n || name.n > MAX_NAME || memchr(name.p, 0, name.n))
		return broken(z, at, "a member has an invalid name", err);
	packed = u32_at(e.p + 20);
	bytes = u32_at(e.p + 24);
	header = u32_at(e.p + 42);
	if (!widen(extra, &bytes, &packed, &header)) return broken(z, at, "an entry lacks its 64-bit sizes", err);
	memcpy(*names, name.p, name.n);
	(*names)[name.n] = 0;
	*m = (struct zip_member){ *names, bytes, header, u32_at(e.p + 16) };
	*names += name.n + 1;
	if (u16_at(e.p + 8) & FLAG_ENCRYPTED)
		return file_fail(err, GGU_ERR_UNSUPPORTED, z->file, at, m->name, "is encrypted");
	if (u16_at(e.p + 10) || packed != bytes)
		return file_fail(err, GGU_ERR_UNSUPPORTED, z->file, at, m->name, "is compressed");
	return GGU_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct zip_member *)a)->name, ((const struct zip_member *)b)->name);
}

static enum ggu_status read_directory(struct zip *z, const struct directory *d, struct ggu_error *err)
{
	unsigned char *text = malloc((size_t)d->bytes + 1);
	struct span left = { text, (size_t)d->bytes, d->offset };
	char *names = malloc((size_t)d->bytes + 1);
	enum ggu_status s = GGU_OK;
	z->names = names;
	z->v = calloc((size_t)d->n + 1, sizeof *z->v);
	if (!text || !names || !z->v) s = ggu_no_memory(err);
	if (!s) s = file_read_at(z->fd, z->file, d->offset, text, (size_t)d->bytes, err);
	for (; !s && z->n < d->n; z->n++) s = read_entry(z, &left, z->v + z->n, &names, err);
	free(text);
	if (s) return s;
	if (z->n > 1) qsort(z->v, z->n, sizeof *z->v, by_name);
	for (size_t i = 1; i < z->n; i++)
		if (!by_name(z->v + i - 1, z->v + i))
			return file_fail(err, GGU_ERR_FORMAT, z->file, d->offset, z->v[i].name,
				"is in the archive twice");
	return GGU_OK;
}

enum ggu_status zip_open(struct zip **out, int fd, const char *file, uint64_t bytes, struct ggu_error *err)
{
	struct zip *z = calloc(1, sizeof *z);
	struct directory d = { 0 };
	enum ggu_status s;
	if (!z) return ggu_no_memory(err);
	z->fd = fd;
	z->file = file;
	z->bytes = bytes;
	s = read_end(z, &d, err);
	if (!s) s = read_directory(z, &d, err);
	if (s) zip_close(z);
	else *out = z;
	return s;
}

void zip_close(struct zip *z)
{
	if (!z) return;
	free(z->v);
	free(z->names);
	free(z);
}

/* ---- members ---- */

size_t zip_count(const struct zip *z) { return z->n; }
const struct zip_member *zip_at(const struct zip *z, size_t i) { return z->v + i; }
const struct zip_member *zip_find(const struct zip *z, const char *name)
{
	return z->n ? bsearch(&(struct zip_member){ .name = name }, z->v, z->n, sizeof *z->v, by_name) : NULL;
}

enum ggu_status zip_data(const struct zip *z, const struct zip_member *m, uint64_t *offset, struct ggu_error *err)
{
	unsigned char h[LOCAL_BYTES], name[MAX_NAME];
	size_t n = strlen(m->name);
	uint64_t at;
	enum ggu_status s;
	if (m->header > z->bytes) return broken(z, m->header, "a member is outside the file", err);
	s = file_read_at(z->fd, z->file, m->header, h, sizeof h, err);
	if (s) return s;
	if (u32_at(h) != LOCAL_MARK || u16_at(h + 26) != n)
		return file_fail(err, GGU_ERR_FORMAT, z->file, m->header, m->name,
			"is not where the zip directory says");
	s = file_read_at(z->fd, z->file, m->header + LOCAL_BYTES, name, n, err);
	if (s) return s;
	if (memcmp(name, m->name, n))
		return file_fail(err, GGU_ERR_FORMAT, z->file, m->header, m->name,
			"is not where the zip directory says");
	at = m->header + LOCAL_BYTES + n + u16_at(h + 28);
	if (at > z->bytes || m->bytes > z->bytes - at)
		return file_fail(err, GGU_ERR_TRUNCATED, z->file, at, m->name, "extends past the end of the file");
	*offset = at;
	return GGU_OK;
}

enum ggu_status zip_slurp(const struct zip *z, const struct zip_member *m, size_t max, unsigned char **data,
	struct ggu_error *err)
{
	uint64_t at;
	unsigned char *p;
	enum ggu_status s = zip_data(z, m, &at, err);
	if (s) return s;
	if (m->bytes > max) return file_fail(err, GGU_ERR_RANGE, z->file, at, m->name, "is longer than %zu bytes", max);
	p = malloc((size_t)m->bytes + 1);
	if (!p) return ggu_no_memory(err);
	s = file_read_at(z->fd, z->file, at, p, (size_t)m->bytes, err);
	if (!s && crc32(0, p, (uInt)m->bytes) != m->crc)
		s = file_fail(err, GGU_ERR_FORMAT, z->file, at, m->name, "is damaged: its CRC-32 does not match");
	if (s) free(p);
	else *data = p;
	return s;
}
