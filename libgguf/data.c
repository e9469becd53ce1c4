/* SPDX-License-Identifier: MIT
 * data.c - the bytes of tensors: read, swapped to little-endian, or mapped. */
#include <sys/mman.h>
#include "internal.h"

static enum ggu_status failed(const struct ggu_file *f, const struct ggu_tensor *t, struct ggu_error *err, enum ggu_status status)
{
	if (err) {
		err->source = t->source;
		snprintf(err->where, sizeof err->where, "%s", t->name);
		if (t->source)
			snprintf(err->file, sizeof err->file, "%s", f->source[t->source].name);
	}
	return status;
}

static enum ggu_status ends_at(const struct ggu_source *s, const struct ggu_tensor *t, uint64_t end, struct ggu_error *err)
{
	return ggu_fail(err, GGU_ERR_TRUNCATED, end, "", "the file ends %llu bytes too early",
	                (unsigned long long)(s->data_offset + t->offset + t->bytes - end));
}

static enum ggu_status bytes(struct ggu_file *f, const struct ggu_tensor *t, uint64_t from, void *to, size_t n, struct ggu_error *err)
{
	struct ggu_source *s = &f->source[t->source];
	const struct ggu_type_info *info = ggu_type_info(t->type);
	uint64_t at = s->data_offset + t->offset + from;
	size_t got;

	if (from > t->bytes || n > t->bytes - from)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "%zu bytes from %llu are outside the tensor", n, (unsigned long long)from);
	if (s->big && (from % info->block_bytes || n % info->block_bytes))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "big-endian data is read in whole blocks");
	if (!n && (s->seekable || at <= s->buf_at))
		return GGU_OK;                  /* else a pipe is read up to there: even no bytes must lie inside it */
	GGU_TRY(s->seekable ? ggu_source_pread(s, at, to, n, &got, err) : ggu_source_read(s, at, to, n, &got, err));
	if (got < n || (!s->seekable && s->buf_at < at))
		return ends_at(s, t, s->seekable ? at + got : s->buf_at, err);  /* of a pipe, all is read now */
	if (s->big)
		ggu_swap_blocks(to, n/info->block_bytes, info);
	return GGU_OK;
}

enum ggu_status ggu_read(struct ggu_file *f, const struct ggu_tensor *t, uint64_t from, void *to, size_t n, struct ggu_error *err)
{
	enum ggu_status status = bytes(f, t, from, to, n, err);

	return status == GGU_OK ? status : failed(f, t, err, status);
}

static enum ggu_status map(struct ggu_file *f, struct ggu_source *s, struct ggu_error *err)
{
	void *p = MAP_FAILED;

	if (!s->seekable || s->big)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "%s cannot be mapped", s->big ? "big-endian data" : "a pipe");
	if (s->memory)
		return GGU_OK;
	pthread_mutex_lock(&f->lock);
	if (!s->map && s->size <= SIZE_MAX) {
		p = mmap(NULL, (size_t)s->size, PROT_READ, MAP_SHARED, s->fd, 0);
		if (p != MAP_FAILED)
			s->map = p;
	}
	p = (void *)(uintptr_t)s->map;
	pthread_mutex_unlock(&f->lock);
	return p ? GGU_OK : ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "mmap");
}

enum ggu_status ggu_map(struct ggu_file *f, const struct ggu_tensor *t, const void **p, struct ggu_error *err)
{
	struct ggu_source *s = &f->source[t->source];
	enum ggu_status status = map(f, s, err);

	if (status != GGU_OK)
		return failed(f, t, err, status);
	*p = t->bytes ? (s->memory ? s->memory : s->map) + s->data_offset + t->offset : (const void *)"";
	return GGU_OK;
}
