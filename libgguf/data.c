/* SPDX-License-Identifier: MIT
 * data.c - the bytes of tensors: read, swapped to little-endian, walked over in parts, or mapped. A walk is a tensor
 * and a position in it; each step reads the next part into the same buffer. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "internal.h"
#include "text.h"

static enum ggu_status failed(const struct ggu_file *f, const struct ggu_tensor *t, struct ggu_error *err,
	enum ggu_status status)
{
	if (err) {
		err->source = t->source;
		snprintf(err->where, sizeof err->where, "%s", t->name);
		if (t->source)
			ggu_error_file(err, f->shard[t->source].name);
	}
	return status;
}

static enum ggu_status ends_at(const struct ggu_shard *s, const struct ggu_tensor *t, uint64_t end,
	struct ggu_error *err)
{
	const uint64_t n = s->data_offset + t->offset + t->bytes - end;
	return ggu_fail(err, GGU_ERR_TRUNCATED, end, "", "the file is truncated: %llu byte%s missing",
		(unsigned long long)n, n == 1 ? " is" : "s are");
}

static enum ggu_status from_file(const struct ggu_shard *s, const struct ggu_tensor *t, uint64_t at, void *to,
	size_t n, struct ggu_error *err)
{
	size_t got;

	TRY(ggu_shard_pread(s, at, to, n, &got, err));
	return got < n ? ends_at(s, t, at + got, err) : GGU_OK;
}

/* Reads a pipe up to the tensor even if n is 0: also an empty tensor must not be past the pipe's end. One at offset 0
 * may be: a file without data may end before the padding that follows its header. */
static enum ggu_status from_pipe(const struct ggu_file *f, struct ggu_shard *s, const struct ggu_tensor *t,
	uint64_t at, void *to, size_t n, struct ggu_error *err)
{
	enum ggu_status status = GGU_OK;
	size_t got = n;

	pthread_mutex_lock(f->lock);
	if (n || at > s->buf_at)
		status = ggu_shard_read(s, at, to, n, &got, err);
	if (status == GGU_OK && (got < n || (s->buf_at < at && at > s->data_offset)))
		status = ends_at(s, t, s->buf_at, err);
	pthread_mutex_unlock(f->lock);
	return status;
}

/* Did the header say where the data is? If defects are tolerated, the offset of a tensor may be anything. */
static enum ggu_status placed(const struct ggu_shard *s, const struct ggu_tensor *t, struct ggu_error *err)
{
	const uint64_t room = INT64_MAX - s->data_offset;

	if (s->cut)
		return ggu_fail(err, GGU_ERR_TRUNCATED, GGU_NO_OFFSET, "",
			"the header is truncated: the start of the data is unknown");
	if (t->bytes > room || t->offset > room - t->bytes)
		return ggu_fail(err, GGU_ERR_TRUNCATED, GGU_NO_OFFSET, "", "the data is beyond the end of the file");
	return GGU_OK;
}

static enum ggu_status bytes(const struct ggu_file *f, const struct ggu_tensor *t, uint64_t from, void *to, size_t n,
	struct ggu_error *err)
{
	struct ggu_shard *s = &f->shard[t->source];
	const struct ggu_type_info *info = ggu_type_info(t->type);
	uint64_t at = s->data_offset + t->offset + from;

	if (from > t->bytes || n > t->bytes - from)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"%zu byte%s at offset %llu %s outside the tensor", n, text_s(n), (unsigned long long)from,
			n == 1 ? "is" : "are");
	if (s->big && (from % info->block_bytes || n % info->block_bytes))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"big-endian data can only be read in whole blocks");
	TRY(placed(s, t, err));
	TRY(s->seekable ? from_file(s, t, at, to, n, err) : from_pipe(f, s, t, at, to, n, err));
	if (s->big)
		ggu_swap_blocks(to, n/info->block_bytes, info);
	return GGU_OK;
}

enum ggu_status ggu_read(const struct ggu_file *f, const struct ggu_tensor *t, uint64_t from, void *to, size_t n,
	struct ggu_error *err)
{
	enum ggu_status status = bytes(f, t, from, to, n, err);

	return status == GGU_OK ? status : failed(f, t, err, status);
}

/* Asks for large pages: a loop over the file is then 3 to 10 % faster, and the first reading has fewer faults. */
void ggu_huge_pages(void *p, size_t n)
{
#ifdef MADV_HUGEPAGE
	madvise(p, n, MADV_HUGEPAGE);
#else
	(void)p, (void)n;
#endif
}

static enum ggu_status map(struct ggu_file *f, struct ggu_shard *s, struct ggu_error *err)
{
	void *p;

	pthread_mutex_lock(f->lock);
	p = (void *)(uintptr_t)s->map;
	pthread_mutex_unlock(f->lock);
	if (p)
		return GGU_OK;
	if (!s->seekable || s->big || s->source.pread)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "%s cannot be mapped",
			s->big ? "big-endian data" : s->seekable ? "a source of the caller's" : "a pipe");
	if (s->memory)
		return GGU_OK;
	pthread_mutex_lock(f->lock);
	errno = ENOMEM;                 /* for a file larger than the address space */
	if (!s->map && s->size <= SIZE_MAX - s->base) {
		p = mmap(NULL, (size_t)(s->base + s->size), PROT_READ, MAP_SHARED, s->fd, 0);
		if (p != MAP_FAILED) {
			ggu_huge_pages(p, (size_t)(s->base + s->size));
			s->map = p;
		}
	}
	p = (void *)(uintptr_t)s->map;
	pthread_mutex_unlock(f->lock);
	return p ? GGU_OK : ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "mmap");
}

enum ggu_status ggu_map(struct ggu_file *f, const struct ggu_tensor *t, const void **p, struct ggu_error *err)
{
	struct ggu_shard *s = &f->shard[t->source];
	uint64_t at = s->data_offset + t->offset;
	enum ggu_status status = placed(s, t, err);

	if (status == GGU_OK)
		status = map(f, s, err);
	if (status == GGU_OK && (at > s->size || t->bytes > s->size - at))
		status = ends_at(s, t, s->size, err);
	if (status != GGU_OK)
		return failed(f, t, err, status);
	*p = t->bytes ? (s->map ? s->map + s->base : s->memory) + at : (const void *)"";
	return GGU_OK;
}

/* ---- parts ---- */

struct ggu_walk {
	const struct ggu_file *f;
	const struct ggu_tensor *t;     /* or NULL */
	size_t part_weights;
	uint64_t at;                    /* byte of it */
	unsigned char *buf;
	size_t buf_bytes;
};

enum ggu_status ggu_walk_new(struct ggu_walk **to, const struct ggu_file *f, size_t part_weights, struct ggu_error *err)
{
	struct ggu_walk *w;

	if (!part_weights || part_weights % 256 || part_weights > SIZE_MAX/16)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "parts of %zu weight%s are not possible",
			part_weights, text_s(part_weights));
	w = calloc(1, sizeof *w);
	if (!w)
		return ggu_no_memory(err);
	w->f = f;
	w->part_weights = part_weights;
	*to = w;
	return GGU_OK;
}

void ggu_walk_to(struct ggu_walk *w, const struct ggu_tensor *t)
{
	w->t = t;
	w->at = 0;
}

enum ggu_status ggu_walk_next(struct ggu_walk *w, struct ggu_part *part, struct ggu_error *err)
{
	const struct ggu_tensor *t = w->t;
	const struct ggu_type_info *info = t ? ggu_type_info(t->type) : NULL;
	size_t n = info ? w->part_weights/info->block_weights*info->block_bytes : 0;

	if (!t || w->at == t->bytes) {
		*part = (struct ggu_part){ 0 };
		return GGU_OK;
	}
	if (w->buf_bytes < n) {
		free(w->buf);
		w->buf_bytes = 0;
		w->buf = malloc(n);
		if (!w->buf)
			return failed(w->f, t, err, ggu_no_memory(err));
		w->buf_bytes = n;
	}
	if (n > t->bytes - w->at)
		n = (size_t)(t->bytes - w->at);
	TRY(ggu_read(w->f, t, w->at, w->buf, n, err));
	*part = (struct ggu_part){ .bytes = w->buf, .n_bytes = n, .n_weights = n/info->block_bytes*info->block_weights,
		.at_byte = w->at, .at_weight = w->at/info->block_bytes*info->block_weights };
	w->at += n;
	return GGU_OK;
}

void ggu_walk_free(struct ggu_walk *w)
{
	if (w)
		free(w->buf);
	free(w);
}
