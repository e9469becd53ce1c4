/* SPDX-License-Identifier: MIT
 * pool.c - threads that take the tasks of phases.
 *
 * One number counts up, the turn: it moves when the caller starts a run and when the last thread has come to the
 * end of a phase. A thread that waits for a turn looks at it for some microseconds and then sleeps, because an
 * evaluator comes to thousands of such ends in a second but must not burn a core while it waits for a user. With
 * more threads than cores looking only steals time, so they sleep at once. Nobody pays for waking unless
 * somebody sleeps.
 *
 *   turn   t          t+1               t+2               t+3
 *   caller | set, move | tasks, arrive   | tasks, arrive   | return
 *   others | wait      | tasks, arrive   | tasks, arrive   | wait
 *
 * Arrivals are counted in groups of 8 and then by groups, so that many threads do not queue for one cache line.
 * Tasks lie in shares, one for each thread or one for all; a share is a counter in a cache line of its own. There
 * are two such sets: while one phase counts in one, each thread that arrives clears its own of the other, which
 * nobody reads any more. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "internal.h"

enum { LOOK_NS = 100000, LOOKS = 32, GROUP = 8, LINE = 128 };   /* LINE: two lines, as they are fetched in pairs */

struct seat {                           /* what a thread writes often */
	_Alignas(LINE) atomic_size_t taken[2];  /* tasks of its share, in even and odd phases */
	atomic_int left;                        /* of a group, in its first seat: who has not arrived */
};
struct ggu_pool {
	int n, n_started, n_nodes;
	bool looks, stop, pin;
	const struct ggu_phase *phase;
	size_t n_phases;
	unsigned at, n_done;            /* the turn when nothing runs; phases there have been */
	struct ggu_cpu *cpu;            /* of each thread */
	struct seat *seat;
	pthread_t *thread;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct ggu_cpu_mask *before;    /* where the caller might run before it was given a place */
	_Alignas(LINE) atomic_uint turn;
	atomic_int sleepers;
	_Alignas(LINE) atomic_int groups_left;
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

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec*1000000000 + t.tv_nsec;
}

/* ---- turns ---- */

static bool reached(struct ggu_pool *p, unsigned turn)
{
	return (int)(atomic_load_explicit(&p->turn, memory_order_acquire) - turn) >= 0;
}

static void wait_for(struct ggu_pool *p, unsigned turn)
{
	if (p->looks)
		for (int64_t end = 0, now = 0; now <= end; now = now_ns()) {
			for (int i = 0; i < LOOKS; i++, relax())
				if (reached(p, turn))
					return;
			if (!end)
				end = now_ns() + LOOK_NS;
		}
	pthread_mutex_lock(&p->lock);
	/* either move() sees a sleeper, or this thread sees the new turn */
	atomic_fetch_add(&p->sleepers, 1);
	while ((int)(atomic_load(&p->turn) - turn) < 0)
		pthread_cond_wait(&p->moved, &p->lock);
	atomic_fetch_sub(&p->sleepers, 1);
	pthread_mutex_unlock(&p->lock);
}

static void move(struct ggu_pool *p)
{
	atomic_fetch_add(&p->turn, 1);
	if (!atomic_load(&p->sleepers))
		return;
	pthread_mutex_lock(&p->lock);
	pthread_cond_broadcast(&p->moved);
	pthread_mutex_unlock(&p->lock);
}

static int group_size(const struct ggu_pool *p, int first) { return p->n - first < GROUP ? p->n - first : GROUP; }
static int n_groups(const struct ggu_pool *p) { return (p->n + GROUP - 1)/GROUP; }

/* The last one sets the counters anew, which nobody touches before the turn moves, and moves it. */
static void arrive(struct ggu_pool *p, int worker)
{
	int first = worker/GROUP*GROUP;

	if (atomic_fetch_sub_explicit(&p->seat[first].left, 1, memory_order_acq_rel) != 1)
		return;
	atomic_store_explicit(&p->seat[first].left, group_size(p, first), memory_order_relaxed);
	if (atomic_fetch_sub_explicit(&p->groups_left, 1, memory_order_acq_rel) != 1)
		return;
	atomic_store_explicit(&p->groups_left, n_groups(p), memory_order_relaxed);
	move(p);
}

/* ---- tasks ---- */

/* What is left of share s of `of`: its tasks lie together, shares differ by one task at most. */
static void take(struct ggu_pool *p, const struct ggu_phase *phase, size_t n_tasks, int parity,
                 int s, int of, int worker)
{
	atomic_size_t *taken = &p->seat[s].taken[parity];
	size_t each = n_tasks/(size_t)of, more = n_tasks%(size_t)of, share = (size_t)s, i;
	size_t from = share*each + (share < more ? share : more), n = each + (share < more);

	if (atomic_load_explicit(taken, memory_order_relaxed) >= n)
		return;
	while ((i = atomic_fetch_add_explicit(taken, 1, memory_order_relaxed)) < n)
		phase->fn(phase->ctx, from + i, worker);
}

static void take_all(struct ggu_pool *p, const struct ggu_phase *phase, int parity, int worker)
{
	size_t n_tasks = phase->n_tasks;

	if (phase->take == GGU_TAKE_ANY) {
		take(p, phase, n_tasks, parity, 0, 1, worker);
		return;
	}
	take(p, phase, n_tasks, parity, worker, p->n, worker);
	if (phase->take == GGU_TAKE_OWN)
		return;
	/* help those of the same node, then the others; each helper begins with another thread */
	for (int far = 0; far < (p->n_nodes > 1 ? 2 : 1); far++)
		for (int i = 1; i < p->n; i++) {
			int s = (worker + i)%p->n;
			if ((p->cpu[s].node != p->cpu[worker].node) == far)
				take(p, phase, n_tasks, parity, s, p->n, worker);
		}
}

/* All phases, the first in turn `at`. The caller waits for the end of the last one, others for the next run. */
static void work(struct ggu_pool *p, int worker, unsigned at)
{
	const struct ggu_phase *phase = p->phase;
	size_t n = p->n_phases;
	unsigned set = p->n_done;

	for (size_t k = 0; k < n; k++, set++) {
		take_all(p, phase + k, set & 1, worker);
		atomic_store_explicit(&p->seat[worker].taken[~set & 1], 0, memory_order_relaxed);
		arrive(p, worker);
		if (k + 1 < n || !worker)
			wait_for(p, at + 1 + (unsigned)k);
	}
}

void ggu_pool_phases(struct ggu_pool *p, const struct ggu_phase *phase, size_t n)
{
	if (!p->n_started || (n == 1 && phase->n_tasks < 2)) {
		for (size_t k = 0; k < n; k++)
			for (size_t i = 0; i < phase[k].n_tasks; i++)
				phase[k].fn(phase[k].ctx, i, 0);
		return;
	}
	if (!n)
		return;
	p->phase = phase;
	p->n_phases = n;
	move(p);
	work(p, 0, p->at + 1);
	p->at += 1 + (unsigned)n;
	p->n_done += (unsigned)n;
}

void ggu_pool_run(struct ggu_pool *p, size_t n_tasks, void (*fn)(void *ctx, size_t task, int worker), void *ctx)
{
	ggu_pool_phases(p, &(struct ggu_phase){ fn, ctx, n_tasks, GGU_TAKE_ANY }, 1);
}

/* ---- threads ---- */

/* A core of its own, or else, where there are several nodes, those of the node. */
static void settle(const struct ggu_pool *p, int worker)
{
	if (p->pin)
		ggu_cpus_bind(p->cpu + worker, 1);
	else if (p->n_nodes > 1) {
		int first = worker, end = worker;
		while (first && p->cpu[first - 1].node == p->cpu[worker].node)
			first--;
		while (end < p->n && p->cpu[end].node == p->cpu[worker].node)
			end++;
		ggu_cpus_bind(p->cpu + first, end - first);
	}
}

static void *worker_main(void *arg)
{
	struct start s = *(struct start *)arg;
	struct ggu_pool *p = s.p;
	unsigned at = 0;

	free(arg);
	wait_for(p, ++at);              /* until all are started */
	settle(p, s.worker);
	for (;;) {
		wait_for(p, ++at);
		if (p->stop)
			return NULL;
		size_t n = p->n_phases;
		work(p, s.worker, at);
		at += (unsigned)n;
	}
}

/* Fewer threads than asked for, if the system gives no more: results do not depend on it. */
static void start(struct ggu_pool *p, int n)
{
	while (p->n_started + 1 < n) {
		struct start *s = malloc(sizeof *s);
		if (!s)
			return;
		*s = (struct start){ p, p->n_started + 1 };
		if (pthread_create(&p->thread[p->n_started], NULL, worker_main, s)) {
			free(s);
			return;
		}
		p->n_started++;
	}
}

/* Places of the n threads: the first n of the list, in order of their nodes; several to a core if there are fewer. */
static void place(struct ggu_pool *p, const struct ggu_cpu *list, int n_list)
{
	int n = 0, used = p->n < n_list ? p->n : n_list;

	for (int i = 0; !used && i < p->n; i++)
		p->cpu[i] = (struct ggu_cpu){ .id = -1 };
	for (int node = 0; n < p->n && used; node++) {
		int before = n;
		for (int i = 0; i < p->n; i++)
			if (list[i%used].node == node)
				p->cpu[n++] = list[i%used];
		p->n_nodes += n > before;
	}
}

static void *zero_lines(size_t bytes)
{
	void *p;

	return posix_memalign(&p, LINE, bytes) ? NULL : memset(p, 0, bytes);
}

static void unmake(struct ggu_pool *p)
{
	free(p->cpu);
	free(p->thread);
	free(p->seat);
	free(p);
}

static struct ggu_pool *make(int n)
{
	struct ggu_pool *p = zero_lines(sizeof *p);

	if (!p)
		return NULL;
	p->cpu = calloc((size_t)n, sizeof *p->cpu);
	p->thread = calloc((size_t)n, sizeof *p->thread);
	p->seat = zero_lines((size_t)n*sizeof *p->seat);
	if (!p->cpu || !p->thread || !p->seat) {
		unmake(p);
		return NULL;
	}
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->moved, NULL);
	return p;
}

struct ggu_pool *ggu_pool_open(const struct ggu_pool_options *o)
{
	int cpus = o->n_cpus ? o->n_cpus : ggu_cpu_count(), n = o->n_threads > 0 ? o->n_threads : cpus;
	struct ggu_pool *p = make(n);

	if (!p)
		return NULL;
	p->looks = n <= cpus;
	start(p, n);
	p->n = p->n_started + 1;
	place(p, o->cpus, o->n_cpus);
	p->pin = o->pin && o->n_cpus;
	for (int i = 0; i < p->n; i += GROUP)
		atomic_init(&p->seat[i].left, group_size(p, i));
	atomic_init(&p->groups_left, n_groups(p));
	if (p->pin || p->n_nodes > 1) {
		p->before = ggu_cpus_save();
		settle(p, 0);
	}
	move(p);
	p->at = 1;
	return p;
}

struct ggu_pool *ggu_pool_new(int n)
{
	return ggu_pool_open(&(struct ggu_pool_options){ .n_threads = n });
}

int ggu_pool_size(const struct ggu_pool *p) { return p->n; }
int ggu_pool_node(const struct ggu_pool *p, int worker) { return p->cpu[worker].node; }

void ggu_pool_free(struct ggu_pool *p)
{
	if (!p)
		return;
	p->stop = true;
	move(p);
	for (int i = 0; i < p->n_started; i++)
		pthread_join(p->thread[i], NULL);
	if (p->before)
		ggu_cpus_restore(p->before);
	pthread_cond_destroy(&p->moved);
	pthread_mutex_destroy(&p->lock);
	unmake(p);
}
