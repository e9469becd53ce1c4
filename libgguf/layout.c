/* SPDX-License-Identifier: MIT
 * layout.c - checks where the data of a shard's tensors is: the alignment, the end of the file, and overlaps. Gaps
 * between tensors are allowed, as in the specification; overlaps are not. */
#include <stdlib.h>
#include "internal.h"
#include "text.h"

static uint64_t offset_field(const struct ggu_tensor *t)
{
	return t->entry + 8 + t->name_bytes + 4 + 8*(uint64_t)t->n_dims + 4;
}

struct by_offset { uint64_t offset, bytes; size_t i; };
static int compare(const void *a, const void *b)
{
	const struct by_offset *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

/* room: bytes of the data section. */
static enum ggu_status one(const struct ggu_tensor *t, uint32_t alignment, uint64_t room, const struct ggu_leniency *l,
	struct ggu_error *err)
{
	if (t->offset & (alignment - 1))
		TRY(ggu_tolerate(l,
			ggu_rule(err, GGU_RULE_OFFSET, ggu_fail(err, GGU_ERR_FORMAT, offset_field(t), t->name,
			"offset %llu is not a multiple of the alignment %u", (unsigned long long)t->offset,
				alignment)), err));
	/* bytes and room are below 2^63, so neither difference can wrap around */
	if (t->bytes > room || t->offset > room - t->bytes)
		TRY(ggu_tolerate(l,
			ggu_rule(err, GGU_RULE_DATA, ggu_fail(err, GGU_ERR_TRUNCATED, offset_field(t), t->name,
			"%llu byte%s of data at offset %llu extend%s past the end of the file",
				(unsigned long long)t->bytes, text_s(t->bytes),
				(unsigned long long)t->offset, t->bytes == 1 ? "s" : "")), err));
	return GGU_OK;
}

enum ggu_status ggu_layout_order(const struct ggu_tensor *t, size_t n, size_t *order, const struct ggu_leniency *l,
	struct ggu_error *err)
{
	struct by_offset *o = malloc((n + 1)*sizeof *o);
	enum ggu_status status = GGU_OK;
	const struct ggu_tensor *last = NULL;
	uint64_t end = 0;

	if (!o)
		return ggu_no_memory(err);
	for (size_t i = 0; i < n; i++)
		o[i] = (struct by_offset){ t[i].offset, t[i].bytes, i };
	if (n)
		qsort(o, n, sizeof *o, compare);
	for (size_t k = 0; k < n && status == GGU_OK; k++) {
		const struct ggu_tensor *x = &t[o[k].i];
		order[k] = o[k].i;
		if (!x->bytes || x->offset > UINT64_MAX - x->bytes)
			continue;
		if (x->offset < end)
			status = ggu_tolerate(l,
				ggu_rule(err, GGU_RULE_OVERLAP, ggu_fail(err, GGU_ERR_FORMAT, offset_field(x), x->name,
				"data overlaps that of '%.60s'", last->name)), err);
		if (x->offset + x->bytes > end) {
			end = x->offset + x->bytes;
			last = x;
		}
	}
	free(o);
	return status;
}

enum ggu_status ggu_layout_check(struct ggu_file *f, const struct ggu_shard *s, size_t first,
	const struct ggu_leniency *l, struct ggu_error *err)
{
	bool anywhere = s->size == UINT64_MAX || f->options.flags & GGU_OPEN_HEADER;
	uint64_t room = anywhere ? INT64_MAX : s->data_offset < s->size ? s->size - s->data_offset : 0;
	size_t n = f->table.n, *order = realloc(f->order, (n + 1)*sizeof *order);

	if (!order)
		return ggu_no_memory(err);
	f->order = order;
	if (first == n)
		return GGU_OK;
	for (size_t i = first; i < n; i++)
		TRY(one(&f->table.t[i], s->alignment, room, l, err));
	TRY(ggu_layout_order(f->table.t + first, n - first, order + first, l, err));
	for (size_t i = first; i < n; i++)
		order[i] += first;
	return GGU_OK;
}
