/* SPDX-License-Identifier: MIT
 * pool.c - workers that wait for runs.
 *
 * A run is announced by a new number of `run`; workers take tasks off a common counter. Between runs a
 * worker spins for some microseconds before it sleeps, because the evaluator starts thousands of short
 * runs a second. With more threads than cores spinning only steals time, so there is none then. */
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "internal.h"

enum { SPINS = 4000 };

struct ggu_pool {
	int n, started, spins;
	pthread_mutex_t lock;
	pthread_cond_t go, done;
	atomic_uint run;
	atomic_int busy;                /* workers that have not finished the run */
	atomic_size_t next;
	bool stop;
	size_t n_tasks;
	void (*fn)(void *ctx, size_t task, int worker);
	void *ctx;
	pthread_t thread[];
};
struct start { struct ggu_pool *p; int worker; };

static inline void relax(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

static void work(struct ggu_pool *p, int worker)
{
	size_t i;

	while ((i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->n_tasks)
		p->fn(p->ctx, i, worker);
}

static void *worker_main(void *arg)
{
	struct start s = *(struct start *)arg;
	struct ggu_pool *p = s.p;
	unsigned seen = 0;

	free(arg);
	for (;;) {
		for (int i = 0; i < p->spins && atomic_load_explicit(&p->run, memory_order_acquire) == seen; i++)
			relax();
		if (atomic_load_explicit(&p->run, memory_order_acquire) == seen) {
			pthread_mutex_lock(&p->lock);
			while (atomic_load(&p->run) == seen)
				pthread_cond_wait(&p->go, &p->lock);
			pthread_mutex_unlock(&p->lock);
		}
		seen++;
		if (p->stop)
			return NULL;
		work(p, s.worker);
		if (atomic_fetch_sub(&p->busy, 1) == 1) {
			pthread_mutex_lock(&p->lock);
			pthread_cond_signal(&p->done);
			pthread_mutex_unlock(&p->lock);
		}
	}
}

/* fn, ctx, n_tasks and stop are set; wakes everybody. */
static void announce(struct ggu_pool *p)
{
	atomic_store(&p->next, 0);
	atomic_store(&p->busy, p->started);
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add(&p->run, 1);
	pthread_cond_broadcast(&p->go);
	pthread_mutex_unlock(&p->lock);
}

struct ggu_pool *ggu_pool_new(int n)
{
	struct ggu_pool *p;
	int cpus = ggu_cpu_count();

	if (n <= 0)
		n = cpus;
	p = calloc(1, sizeof *p + (size_t)n*sizeof *p->thread);
	if (!p)
		return NULL;
	p->spins = n <= cpus ? SPINS : 0;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->go, NULL);
	pthread_cond_init(&p->done, NULL);
	/* fewer threads than asked for, if the system gives no more: results do not depend on it */
	for (int i = 1; i < n; i++) {
		struct start *s = malloc(sizeof *s);
		if (!s)
			break;
		*s = (struct start){ p, i };
		if (pthread_create(&p->thread[p->started], NULL, worker_main, s)) {
			free(s);
			break;
		}
		p->started++;
	}
	p->n = p->started + 1;
	return p;
}

int ggu_pool_size(const struct ggu_pool *p) { return p->n; }

void ggu_pool_run(struct ggu_pool *p, size_t n_tasks, void (*fn)(void *ctx, size_t task, int worker), void *ctx)
{
	if (!p->started || n_tasks < 2) {
		for (size_t i = 0; i < n_tasks; i++)
			fn(ctx, i, 0);
		return;
	}
	p->fn = fn;
	p->ctx = ctx;
	p->n_tasks = n_tasks;
	announce(p);
	work(p, 0);
	for (int i = 0; i < p->spins && atomic_load_explicit(&p->busy, memory_order_acquire); i++)
		relax();
	if (atomic_load(&p->busy)) {
		pthread_mutex_lock(&p->lock);
		while (atomic_load(&p->busy))
			pthread_cond_wait(&p->done, &p->lock);
		pthread_mutex_unlock(&p->lock);
	}
}

void ggu_pool_free(struct ggu_pool *p)
{
	if (!p)
		return;
	p->stop = true;
	p->n_tasks = 0;
	announce(p);
	for (int i = 0; i < p->started; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->go);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
