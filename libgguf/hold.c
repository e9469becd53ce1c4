/* SPDX-License-Identifier: MIT
 * hold.c - the bytes of all tensors in memory, before ggu_map is called.
 *
 * A copy is in memory of the file's size, at the file's offsets, so that all other code can treat it as a mapping. Each
 * worker itself reads its stretch of every tensor: with several memory nodes, the system then places the stretch near
 * the worker, which later takes the same stretch of a product's tasks (GGU_TAKE_OWN, _NEAR). Of a mapping, which is the
 * system's file cache, the stretches are only touched, and only if there are several nodes; what was in the cache
 * before stays where it is. */
#include <stdlib.h>
#include <sys/mman.h>
#include "internal.h"
#include "pool.h"

struct hold {
	struct ggu_file *f;
	size_t n_workers, n_tensors;
	bool copy;
	struct ggu_error first;         /* code GGU_OK: no error yet */
};

/* The bytes of a worker's stretch of t, in whole blocks. */
static void stretch(const struct hold *h, const struct ggu_tensor *t, size_t worker, uint64_t *from, size_t *n)
{
	uint64_t block = ggu_type_info(t->type)->block_bytes, blocks = t->bytes/block;
	uint64_t each = blocks/h->n_workers, more = blocks%h->n_workers;

	*from = block*(worker*each + (worker < more ? worker : more));
	*n = (size_t)(block*(each + (worker < more)));
}

/* Every worker goes through all tensors: its tasks follow one another. */
static void fetch(void *ctx, size_t task, int worker)
{
	struct hold *h = ctx;
	const struct ggu_tensor *t = ggu_file_tensor(h->f, task%h->n_tensors);
	const struct ggu_shard *s = h->f->shard + t->source;
	uint8_t *to = (uint8_t *)(uintptr_t)s->map + s->base + s->data_offset + t->offset;
	struct ggu_error err;
	uint64_t from;
	size_t n;

	(void)worker;
	stretch(h, t, task/h->n_tensors, &from, &n);
	if (!h->copy) {
		for (size_t i = 0; i < n; i += 4096)
			(void)*(volatile const uint8_t *)(to + from + i);
	} else if (n && ggu_read(h->f, t, from, to + from, n, &err)) {
		pthread_mutex_lock(h->f->lock);
		if (!h->first.code)
			h->first = err;
		pthread_mutex_unlock(h->f->lock);
	}
}

static enum ggu_status room(struct ggu_shard *s, struct ggu_error *err)
{
	uint64_t n = s->base + s->size;
	void *p = MAP_FAILED;

	if (!s->seekable)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "a pipe cannot be held in memory");
	if (s->size == UINT64_MAX)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "",
			"a source of unknown size cannot be held in memory");
	if (n <= SIZE_MAX)
		p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "not enough memory for %llu bytes of tensors",
			(unsigned long long)n);
	ggu_huge_pages(p, (size_t)n);
	s->map = p;
	return GGU_OK;
}

static enum ggu_status map_all(struct ggu_file *f, struct ggu_error *err)
{
	const void *p;

	for (size_t i = 0; i < ggu_file_n_tensors(f); i++)
		TRY(ggu_map(f, ggu_file_tensor(f, i), &p, err));
	return GGU_OK;
}

static enum ggu_status lock_all(struct ggu_file *f, struct ggu_error *err)
{
	for (uint32_t i = 0; i < f->n_shards; i++) {
		const struct ggu_shard *s = f->shard + i;
		const void *p = s->map ? s->map : s->memory;
		if (p && mlock(p, (size_t)(s->map ? s->base + s->size : s->size)))
			return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "cannot lock it in memory");
	}
	return GGU_OK;
}

enum ggu_status ggu_hold(struct ggu_file *f, unsigned flags, struct ggu_pool *pool, struct ggu_error *err)
{
	size_t workers = (size_t)ggu_pool_size(pool);
	struct hold h = { .f = f, .n_workers = workers, .n_tensors = ggu_file_n_tensors(f),
		.copy = flags & GGU_HOLD_COPY };
	const struct ggu_phase phase = { fetch, &h, workers*h.n_tensors, GGU_TAKE_OWN };
	bool several = ggu_pool_node(pool, (int)workers - 1) != ggu_pool_node(pool, 0);

	for (uint32_t i = 0; i < f->n_shards && h.copy; i++) {
		if (f->shard[i].map)
			return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "it is already mapped");
		TRY(room(f->shard + i, err));
	}
	TRY(map_all(f, err));
	if (h.copy || (several && !f->shard->memory))
		ggu_pool_phases(pool, &phase, 1);
	if (h.first.code) {
		if (err)
			*err = h.first;
		return h.first.code;
	}
	return flags & GGU_HOLD_LOCK ? lock_all(f, err) : GGU_OK;
}
