/* SPDX-License-Identifier: MIT
 * belt.c - see belt.h. Items are numbered; item i is in slot i mod n. Every thread of the pool runs `serve` until
 * nothing is left to take. Items still waiting then are put by the thread that is at the putting station. */
#include <pthread.h>
#include <stdlib.h>
#include "belt.h"

struct belt {
	const struct ggu_belt *at;
	void *ctx;
	pthread_mutex_t lock;
	pthread_cond_t station, room;   /* the taking station is free; there are free slots */
	size_t n_slots, taken, put;     /* items so far */
	bool taking, putting;           /* somebody is at that station */
	bool ended, stopped;            /* no more is taken; no more is put */
	bool *worked;                   /* [n_slots] */
};

/* With the lock held: puts what is ready. If another thread is putting, it will find this item too. */
static void put_ready(struct belt *b)
{
	if (b->putting) return;
	b->putting = true;
	while (b->put < b->taken && b->worked[b->put % b->n_slots]) {
		size_t slot = b->put % b->n_slots;
		bool ok = !b->stopped;
		if (ok) {
			pthread_mutex_unlock(&b->lock);
			ok = b->at->put(b->ctx, slot);
			pthread_mutex_lock(&b->lock);
		}
		if (!ok) b->stopped = b->ended = true;
		b->worked[slot] = false;
		b->put++;
		/* If putting takes longest, a thread that is woken for one slot soon falls asleep again, and often
		 * takes the core of the thread that puts. So one is woken when most slots are free, and another if that
		 * is not enough. */
		if (b->taken - b->put <= b->n_slots/4) pthread_cond_signal(&b->room);
	}
	b->putting = false;
}
static void serve(void *ctx, size_t task, int worker)
{
	struct belt *b = ctx;
	(void)task;
	pthread_mutex_lock(&b->lock);
	for (;;) {
		size_t slot;
		bool more;
		while (!b->ended && (b->taking || b->taken - b->put == b->n_slots))
			pthread_cond_wait(b->taking ? &b->station : &b->room, &b->lock);
		if (b->ended) break;
		slot = b->taken % b->n_slots;
		b->taking = true;
		pthread_mutex_unlock(&b->lock);
		more = b->at->take(b->ctx, slot);
		pthread_mutex_lock(&b->lock);
		b->taking = false;
		if (!more) {
			b->ended = true;
			break;
		}
		b->taken++;
		pthread_cond_signal(&b->station);
		pthread_mutex_unlock(&b->lock);
		b->at->work(b->ctx, slot, worker);
		pthread_mutex_lock(&b->lock);
		b->worked[slot] = true;
		put_ready(b);
	}
	pthread_cond_broadcast(&b->station);
	pthread_cond_broadcast(&b->room);
	pthread_mutex_unlock(&b->lock);
}

size_t ggu_belt_slots(const struct ggu_pool *pool)
{
	/* one for each thread to work on; the others are for items that wait for one whose thread has lost its core */
	size_t n = (size_t)ggu_pool_size(pool);
	return n == 1 ? 1 : 4*n + 16;
}
enum ggu_status ggu_belt_run(struct ggu_pool *pool, size_t n_slots, const struct ggu_belt *at, void *ctx)
{
	struct belt b = { .at = at, .ctx = ctx, .n_slots = n_slots, .worked = calloc(n_slots, sizeof *b.worked) };
	if (!b.worked) return GGU_ERR_NOMEM;
	pthread_mutex_init(&b.lock, NULL);
	pthread_cond_init(&b.station, NULL);
	pthread_cond_init(&b.room, NULL);
	ggu_pool_run(pool, (size_t)ggu_pool_size(pool), serve, &b);
	pthread_cond_destroy(&b.station);
	pthread_cond_destroy(&b.room);
	pthread_mutex_destroy(&b.lock);
	free(b.worked);
	return GGU_OK;
}
