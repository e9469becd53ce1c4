/* SPDX-License-Identifier: MIT
 * file.c - the accessors of an open GGUF, which only look up what read.c has filled in; and closing it. */
#include <stdlib.h>
#include "internal.h"

void ggu_close(struct ggu_file *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->n_shards; i++)
		ggu_shard_close(&f->shard[i]);
	pthread_mutex_destroy(f->lock);
	free(f->lock);
	ggu_meta_free(f->meta);
	ggu_table_free(&f->table);
	free(f->order);
	free(f->shard);
	free(f);
}

uint32_t ggu_file_version(const struct ggu_file *f) { return f->shard->version; }
uint32_t ggu_file_n_sources(const struct ggu_file *f) { return f->n_shards; }
const struct ggu_meta *ggu_file_meta(const struct ggu_file *f) { return f->meta; }
size_t ggu_file_n_tensors(const struct ggu_file *f) { return f->table.n; }

bool ggu_file_seekable(const struct ggu_file *f)
{
	bool all = true;

	for (uint32_t i = 0; i < f->n_shards; i++)
		all &= f->shard[i].seekable;
	return all;
}

bool ggu_file_is_cut(const struct ggu_file *f)
{
	bool any = false;

	for (uint32_t i = 0; i < f->n_shards; i++)
		any |= f->shard[i].cut;
	return any;
}

bool ggu_file_big_endian(const struct ggu_file *f, uint32_t i) { return i < f->n_shards && f->shard[i].big; }
uint32_t ggu_file_alignment(const struct ggu_file *f, uint32_t i)
{
	return i < f->n_shards ? f->shard[i].alignment : 0;
}
uint64_t ggu_file_data_offset(const struct ggu_file *f, uint32_t i)
{
	return i < f->n_shards ? f->shard[i].data_offset : 0;
}
uint64_t ggu_file_header_bytes(const struct ggu_file *f, uint32_t i)
{
	return i < f->n_shards ? f->shard[i].header_bytes : 0;
}
uint64_t ggu_file_bytes(const struct ggu_file *f, uint32_t i) { return i < f->n_shards ? f->shard[i].size : 0; }
const char *ggu_file_source_name(const struct ggu_file *f, uint32_t i)
{
	return i < f->n_shards && f->shard[i].name ? f->shard[i].name : "";
}

uint64_t ggu_file_data_end(const struct ggu_file *f, uint32_t i)
{
	uint64_t end = ggu_file_data_offset(f, i);

	for (size_t k = 0; k < f->table.n; k++) {
		const struct ggu_tensor *t = &f->table.t[k];
		uint64_t last = t->offset < INT64_MAX - t->bytes ?
			ggu_file_data_offset(f, i) + t->offset + t->bytes : UINT64_MAX;
		if (t->source == i && t->bytes && last > end)
			end = last;
	}
	return end;
}

const struct ggu_tensor *ggu_file_tensor(const struct ggu_file *f, size_t i)
{
	return i < f->table.n ? &f->table.t[i] : NULL;
}
const struct ggu_tensor *ggu_file_find(const struct ggu_file *f, const char *name)
{
	return ggu_file_tensor(f, ggu_table_find(&f->table, name));
}
const struct ggu_tensor *ggu_file_in_data_order(const struct ggu_file *f, size_t i)
{
	return i < f->table.n ? &f->table.t[f->order[i]] : NULL;
}
