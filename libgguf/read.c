/* SPDX-License-Identifier: MIT
 * read.c - opens a GGUF and checks its whole header.
 *
 * One cursor reads the header front to back: fixed part, key/value pairs, table. Then layout.c checks where the
 * tensors' data is. Opening ends at the first defect, unless the caller asked for all of them: then a pair or tensor
 * with a defect of its own is left out, and reading ends where the header cannot be understood any further. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "size.h"
#include "text.h"

enum ggu_status ggu_tolerate(const struct ggu_leniency *l, enum ggu_status status, struct ggu_error *err)
{
	if (status == GGU_OK || !l->defect || err->rule == GGU_RULE_NONE)
		return status;
	err->source = l->shard;
	if (*l->name)
		ggu_error_file(err, l->name);
	l->defect(l->ctx, err);
	return GGU_OK;
}

struct ggu_leniency ggu_file_leniency(const struct ggu_file *f, uint32_t shard)
{
	/* the caller knows the name of a single file */
	const char *name = f->n_shards > 1 && f->shard[shard].name ? f->shard[shard].name : "";

	return (struct ggu_leniency){ f->options.defect, f->options.defect_ctx, shard, name };
}

/* The error for a file of another kind, and a pointer by its name: it is what people have most often. */
static enum ggu_status no_gguf(struct ggu_cursor *c, const uint8_t magic[4])
{
	char rest[sizeof TEXT_LFS - 1 - 4];
	enum ggu_status s;

	if (!memcmp(magic, TEXT_LFS, 4) && ggu_cursor_bytes(c, rest, sizeof rest) == GGU_OK
		&& text_is(rest, sizeof rest, &TEXT_LFS[4]))
		s = ggu_fail(c->err, GGU_ERR_FORMAT, 0, "", TEXT_LFS_MEANS);
	else
		s = ggu_fail(c->err, GGU_ERR_FORMAT, 0, "", "not a GGUF file: the magic is %02x %02x %02x %02x",
			magic[0], magic[1], magic[2], magic[3]);
	return ggu_rule(c->err, GGU_RULE_MAGIC, s);
}

static enum ggu_status magic_and_version(struct ggu_cursor *c)
{
	struct ggu_shard *s = c->s;
	uint8_t magic[4];

	TRY(ggu_cursor_bytes(c, magic, 4));
	if (text_is(magic, sizeof magic, GGU_EDIT_MAGIC))
		return ggu_rule(c->err, GGU_RULE_MAGIC, ggu_fail(c->err, GGU_ERR_STATE, 0, "",
			"is being edited in place, or the edit was interrupted; if so, 'gguf-edit -I' restores the "
			"old header"));
	if (!text_is(magic, sizeof magic, "GGUF"))
		return no_gguf(c, magic);
	TRY(ggu_cursor_u32(c, &s->version));
	/* the format has no mark of its byte order; but a small version in the upper half is one that was swapped */
	if (s->version && !(s->version & 0xffff)) {
		s->big = true;
		ggu_swap_items(&s->version, 1, 4);
	}
	if (s->version != 2 && s->version != 3)
		return ggu_rule(c->err, GGU_RULE_VERSION, ggu_fail(c->err, GGU_ERR_UNSUPPORTED, 4, "",
			"version %u is not supported, only 2 and 3 are", s->version));
	return GGU_OK;
}

/* at: where the number n is; least: bytes that one item takes */
static enum ggu_status count(struct ggu_cursor *c, uint64_t at, uint64_t n, uint64_t left, unsigned least,
	const char *what)
{
	if (n <= left/least && n <= UINT32_MAX/2)
		return GGU_OK;
	return ggu_tolerate(c->lenient, ggu_rule(c->err, GGU_RULE_COUNT,
		ggu_fail(c->err, GGU_ERR_TRUNCATED, at, "", "%llu %s%s past the end of the file",
			(unsigned long long)n, what, n == 1 ? " extends" : "s extend")),
			c->err);
}

static enum ggu_status counts(struct ggu_cursor *c, uint64_t *n_tensors, uint64_t *n_kv)
{
	TRY(ggu_cursor_u64(c, n_tensors));
	TRY(ggu_cursor_u64(c, n_kv));
	/* a pair: length, one byte, type, one byte; a tensor: length, one byte, dimensions, type, offset */
	TRY(count(c, 8, *n_tensors, ggu_cursor_left(c), 25, "tensor"));
	return count(c, 16, *n_kv, ggu_cursor_left(c), 14, "key/value pair");
}

static enum ggu_status alignment(struct ggu_shard *s, const struct ggu_meta *m, const struct ggu_leniency *l,
	struct ggu_error *err)
{
	const struct ggu_kv *kv = ggu_meta_find(m, "general.alignment");
	enum ggu_status status = GGU_OK;
	uint64_t v = GGU_ALIGN_DEFAULT, at;

	if (kv) {
		at = kv->offset + 8 + kv->key.n;        /* its type, then its value */
		if (kv->type != GGU_U32)
			status = ggu_fail(err, GGU_ERR_TYPE, at, kv->key.p, "is %s, not u32",
				ggu_kv_type_name(kv->type));
		else if (ggu_kv_uint(kv, 0, &v) && !ggu_align_ok(v))
			status = ggu_fail(err, GGU_ERR_FORMAT, at + 4, kv->key.p,
				"alignment %llu is not a power of two from %d to %d",
				(unsigned long long)v, GGU_ALIGN_MIN, GGU_ALIGN_MAX);
	}
	s->alignment = status == GGU_OK ? (uint32_t)v : GGU_ALIGN_DEFAULT;
	return status == GGU_OK ? status : ggu_tolerate(l, ggu_rule(err, GGU_RULE_ALIGNMENT, status), err);
}

/* Reads from after the version up to the data. */
static enum ggu_status body(struct ggu_file *f, struct ggu_cursor *c, struct ggu_meta *m)
{
	uint64_t n_tensors, n_kv;

	TRY(counts(c, &n_tensors, &n_kv));
	for (uint64_t k = 0; k < n_kv; k++)
		TRY(ggu_kv_read(c, m));
	TRY(alignment(c->s, m, c->lenient, c->err));
	for (uint64_t k = 0; k < n_tensors; k++)
		TRY(ggu_table_read(c, &f->table, (uint32_t)(c->s - f->shard)));
	c->s->header_bytes = c->at;
	c->s->data_offset = size_aligned(c->at, c->s->alignment);
	return GGU_OK;
}

static void ignore(void *ctx, const struct ggu_error *err) { (void)ctx; (void)err; }

static enum ggu_status header(struct ggu_file *f, struct ggu_shard *s, struct ggu_meta *m, struct ggu_error *err)
{
	struct ggu_leniency lenient = ggu_file_leniency(f, (uint32_t)(s - f->shard));
	static const struct ggu_leniency silent = { .defect = ignore, .name = "" };
	size_t first = f->table.n;
	struct ggu_cursor c;
	enum ggu_status status;

	ggu_cursor_init(&c, s, &lenient, err);
	TRY(magic_and_version(&c));
	status = body(f, &c, m);
	s->cut = status != GGU_OK;
	TRY(ggu_tolerate(&lenient, status, err));
	ggu_cursor_done(&c);
	if (s->cut) {
		s->header_bytes = s->data_offset = c.at;
		s->alignment = s->alignment ? s->alignment : GGU_ALIGN_DEFAULT;
	}
	status = ggu_layout_check(f, s, first, s->cut ? &silent : &lenient, err);
	if (s->seekable) {              /* pread from here on */
		free(s->buf);
		s->buf = NULL;
	}
	return status;
}

enum ggu_status ggu_header_read(struct ggu_file *f, uint32_t i, struct ggu_meta **meta, struct ggu_error *err)
{
	struct ggu_meta *m = ggu_meta_new();
	enum ggu_status status;

	if (!m)
		return ggu_no_memory(err);
	status = header(f, &f->shard[i], m, err);
	if (status == GGU_OK) {
		*meta = m;
		return GGU_OK;
	}
	ggu_meta_free(m);
	if (err) {
		err->source = i;
		if (i)
			ggu_error_file(err, f->shard[i].name);
	}
	return status;
}

/* A file with one shard, which is still to be filled in. */
static struct ggu_file *file_new(const struct ggu_open_options *options, struct ggu_error *err)
{
	struct ggu_file *f = calloc(1, sizeof *f);

	if (f) {
		f->shard = calloc(1, sizeof *f->shard);
		f->lock = malloc(sizeof *f->lock);
	}
	if (!f || !f->shard || !f->lock) {
		if (f) {
			free(f->shard);
			free(f->lock);
		}
		free(f);
		ggu_no_memory(err);
		return NULL;
	}
	f->n_shards = 1;
	f->shard->fd = -1;
	if (options)
		f->options = *options;
	pthread_mutex_init(f->lock, NULL);
	return f;
}

/* Reads the shard that was named. If it is not the first of several, its defects are not reported here: all shards are
 * read in order later, this one again. If it stands alone, they are reported here. */
static enum ggu_status first_header(struct ggu_file *f, const char *path, struct ggu_error *err)
{
	void (*defect)(void *ctx, const struct ggu_error *err) = f->options.defect;
	bool again = defect && path && !f->options.base && f->shard->seekable &&
		!(f->options.flags & GGU_OPEN_ALONE) && ggu_shards_begin_elsewhere(path);

	if (!again)
		return ggu_header_read(f, 0, &f->meta, err);
	f->options.defect = ignore;
	TRY(ggu_header_read(f, 0, &f->meta, err));
	f->options.defect = defect;
	if (ggu_shards_are_named(f->meta))
		return GGU_OK;
	ggu_meta_free(f->meta);
	f->meta = NULL;
	ggu_table_free(&f->table);
	return ggu_header_read(f, 0, &f->meta, err);
}

static enum ggu_status finish(struct ggu_file **to, struct ggu_file *f, enum ggu_status status, const char *path,
	struct ggu_error *err)
{
	struct ggu_error own;           /* what is shown to a defect callback must be in memory of its own */

	if (!err)
		err = &own;
	if (status == GGU_OK)
		status = first_header(f, path, err);
	if (status == GGU_OK && !(f->options.flags & GGU_OPEN_ALONE))
		status = ggu_shards_open(f, f->options.base ? NULL : path, err);
	if (status == GGU_OK)
		*to = f;
	else
		ggu_close(f);
	return status;
}

enum ggu_status ggu_open(struct ggu_file **to, const char *path, struct ggu_error *err)
{
	return ggu_open_path(to, path, NULL, err);
}

enum ggu_status ggu_open_path(struct ggu_file **to, const char *path, const struct ggu_open_options *options,
	struct ggu_error *err)
{
	struct ggu_file *f = file_new(options, err);

	if (!f)
		return GGU_ERR_NOMEM;
	return finish(to, f, ggu_shard_of_path(f->shard, path, f->options.base, err),
		strcmp(path, "-") ? path : NULL, err);
}

enum ggu_status ggu_open_fd(struct ggu_file **to, int fd, const struct ggu_open_options *options, struct ggu_error *err)
{
	struct ggu_file *f = file_new(options, err);

	return f ? finish(to, f, ggu_shard_of_fd(f->shard, fd, f->options.base, err), NULL, err) : GGU_ERR_NOMEM;
}

enum ggu_status ggu_open_memory(struct ggu_file **to, const void *bytes, size_t n,
	const struct ggu_open_options *options, struct ggu_error *err)
{
	struct ggu_file *f = file_new(options, err);

	if (!f)
		return GGU_ERR_NOMEM;
	ggu_shard_of_memory(f->shard, bytes, n, f->options.base);
	return finish(to, f, GGU_OK, NULL, err);
}

enum ggu_status ggu_open_source(struct ggu_file **to, const struct ggu_source *source,
	const struct ggu_open_options *options, struct ggu_error *err)
{
	struct ggu_file *f = file_new(options, err);

	if (!f)
		return GGU_ERR_NOMEM;
	ggu_shard_of_source(f->shard, source, f->options.base);
	return finish(to, f, GGU_OK, NULL, err);
}
