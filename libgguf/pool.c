/* SPDX-License-Identifier: MIT
 * pool.c - threads that take the tasks of phases.
 *
 * A phase ends when its tasks are done, not when every thread has noticed: a thread that has lost its core delays the
 * others only if it is in the middle of a task. Tasks are divided into shares, one for each thread or one for all. What
 * is left of a share is stored in a word, in a cache line of its own, together with the number of the phase:
 *
 *   | phase, 28 bits | for its owner alone, 1 bit | tasks left, 35 bits |
 *
 * A thread takes a task by decrementing this word, if it still has the value that the thread has read. So a thread
 * cannot take a task of another phase than it thinks. From then on until the task is done, the phase cannot end, and
 * its description does not change. The thread that finishes the last task prepares the next phase and advances the
 * turn.
 *
 * A thread that finds no task waits for the turn to advance. It spins for up to 100 microseconds and then sleeps,
 * because an evaluator comes to thousands of such waits a second but must not burn a core while it waits for a user.
 * If it spins for long it yields its core in between, as the thread that it waits for may need it. With more threads
 * than cores spinning only steals time, so threads sleep at once. Waking costs nothing unless a thread sleeps. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "internal.h"

/* LOOK: how long a thread looks before it sleeps; ALONE: before it begins to yield its core; LOOKS: between two
 * readings of the clock; LINE: two cache lines, as they are fetched in pairs */
enum { LOOK_NS = 100000, ALONE_NS = 20000, LOOKS = 32, LINE = 128 };

#define LEFT ((UINT64_C(1) << 35) - 1)
#define OWNERS (UINT64_C(1) << 35)
#define PHASE (UINT64_C(1) << 36)

struct share { _Alignas(LINE) _Atomic uint64_t left; };
struct ggu_pool {
	int n, n_started, n_nodes;
	bool looks, pin;
	atomic_bool stop;
	struct ggu_cpu *cpu;            /* of each thread */
	struct share *share;
	pthread_t *thread;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct ggu_cpu_mask *before;    /* where the caller was allowed to run before it was given a place */
	/* written by the thread that prepares a phase, read by those that have a task of it */
	const struct ggu_phase *phase, *end;
	size_t n_tasks;
	uint64_t n_phases;              /* so far */
	_Alignas(LINE) atomic_uint turn;
	atomic_int sleepers;
	atomic_bool over;               /* the current run */
	_Alignas(LINE) atomic_size_t n_done;
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

/* Waits until the turn is no longer `seen`. */
static void wait_for(struct ggu_pool *p, unsigned seen)
{
	if (p->looks)
		for (int64_t end = 0, now = 0; now <= end; now = now_ns()) {
			for (int i = 0; i < LOOKS; i++, relax())
				if (atomic_load_explicit(&p->turn, memory_order_acquire) != seen)
					return;
			if (!end)
				end = now_ns() + LOOK_NS;
			else if (now > end - LOOK_NS + ALONE_NS)
				sched_yield();
		}
	pthread_mutex_lock(&p->lock);
	/* either move() sees a sleeper, or this thread sees the new turn */
	atomic_fetch_add(&p->sleepers, 1);
	while (atomic_load(&p->turn) == seen)
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

/* ---- phases ---- */

/* The tasks of share s: they are contiguous, and shares differ by at most one task. */
struct stretch { size_t from, n; };
static struct stretch stretch_of(const struct ggu_pool *p, int s)
{
	size_t n = (size_t)p->n, share = (size_t)s, each = p->n_tasks/n, more = p->n_tasks%n;

	if (p->phase->take == GGU_TAKE_ANY)
		return (struct stretch){ 0, s ? 0 : p->n_tasks };
	return (struct stretch){ share*each + (share < more ? share : more), each + (share < more) };
}

/* Prepares the first phase from p->phase on that has tasks, or the end of the run. */
static void lay_out(struct ggu_pool *p)
{
	while (p->phase < p->end && !p->phase->n_tasks)
		p->phase++;
	/* release: a thread that sees this even before the turn moves also sees what the tasks did */
	if (p->phase == p->end)
		atomic_store_explicit(&p->over, true, memory_order_release);
	else {
		uint64_t word = ++p->n_phases*PHASE | (p->phase->take == GGU_TAKE_OWN ? OWNERS : 0);
		p->n_tasks = p->phase->n_tasks;
		atomic_store_explicit(&p->n_done, 0, memory_order_relaxed);
		/* the first share has tasks, and until it is set the phase cannot end */
		for (int s = p->n; s-- > 0;)
			atomic_store_explicit(&p->share[s].left, word | stretch_of(p, s).n, memory_order_release);
	}
	move(p);
}

/* Does tasks of share s, as long as there are any and this is still the phase; returns how many. */
static size_t take(struct ggu_pool *p, uint64_t number, int s, int worker)
{
	_Atomic uint64_t *left = &p->share[s].left;
	uint64_t word = atomic_load_explicit(left, memory_order_acquire);
	size_t n = 0;

	while (word/PHASE == number && word & LEFT && (s == worker || !(word & OWNERS))) {
		if (!atomic_compare_exchange_weak_explicit(left, &word, word - 1, memory_order_acq_rel,
			memory_order_acquire))
			continue;
		struct stretch t = stretch_of(p, s);
		p->phase->fn(p->phase->ctx, t.from + t.n - (size_t)(word & LEFT), worker);
		n++;
		word = atomic_load_explicit(left, memory_order_acquire);
	}
	return n;
}

/* Does the worker's own tasks, then those of its node, then those of others. Each helper begins with another thread. */
static void work(struct ggu_pool *p, int worker)
{
	uint64_t number = atomic_load_explicit(&p->share[worker].left, memory_order_acquire)/PHASE;
	size_t n = take(p, number, worker, worker), n_tasks;

	for (int far = 0; far < (p->n_nodes > 1 ? 2 : 1); far++)
		for (int i = 1; i < p->n; i++) {
			int s = (worker + i)%p->n;
			if ((p->cpu[s].node != p->cpu[worker].node) == far)
				n += take(p, number, s, worker);
		}
	if (!n)
		return;
	n_tasks = p->n_tasks;
	if (atomic_fetch_add_explicit(&p->n_done, n, memory_order_acq_rel) + n == n_tasks) {
		p->phase++;
		lay_out(p);
	}
}

void ggu_pool_phases(struct ggu_pool *p, const struct ggu_phase *phase, size_t n)
{
	unsigned seen;

	if (!p || !p->n_started || (n == 1 && phase->n_tasks < 2)) {
		for (size_t k = 0; k < n; k++)
			for (size_t i = 0; i < phase[k].n_tasks; i++)
				phase[k].fn(phase[k].ctx, i, 0);
		return;
	}
	p->phase = phase;
	p->end = phase + n;
	atomic_store_explicit(&p->over, false, memory_order_relaxed);
	lay_out(p);
	for (;;) {
		seen = atomic_load_explicit(&p->turn, memory_order_acquire);
		if (atomic_load_explicit(&p->over, memory_order_acquire))
			return;
		work(p, 0);
		if (atomic_load_explicit(&p->turn, memory_order_acquire) == seen)
			wait_for(p, seen);
	}
}

void ggu_pool_run(struct ggu_pool *p, size_t n_tasks, void (*fn)(void *ctx, size_t task, int worker), void *ctx)
{
	ggu_pool_phases(p, &(struct ggu_phase){ fn, ctx, n_tasks, GGU_TAKE_ANY }, 1);
}

/* ---- threads ---- */

/* Restricts the thread to a core of its own, or, if there are several nodes, to the cores of its node. */
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
	unsigned seen = 0;

	free(arg);
	wait_for(p, seen);              /* until all are started */
	settle(p, s.worker);
	for (;;) {
		seen = atomic_load_explicit(&p->turn, memory_order_acquire);
		if (atomic_load_explicit(&p->stop, memory_order_relaxed))
			return NULL;
		work(p, s.worker);
		wait_for(p, seen);
	}
}

/* Starts n threads, or fewer if the system gives no more: results do not depend on the number. */
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

/* The places of the n threads: the first n of the list, in order of their nodes. If there are fewer cores, threads
 * share them. */
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
	free(p->share);
	free(p);
}

static struct ggu_pool *make(int n)
{
	struct ggu_pool *p = zero_lines(sizeof *p);

	if (!p)
		return NULL;
	p->cpu = calloc((size_t)n, sizeof *p->cpu);
	p->thread = calloc((size_t)n, sizeof *p->thread);
	p->share = zero_lines((size_t)n*sizeof *p->share);
	if (!p->cpu || !p->thread || !p->share) {
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
	if (p->pin || p->n_nodes > 1) {
		p->before = ggu_cpus_save();
		settle(p, 0);
	}
	move(p);
	return p;
}

struct ggu_pool *ggu_pool_new(int n)
{
	return ggu_pool_open(&(struct ggu_pool_options){ .n_threads = n });
}

int ggu_pool_size(const struct ggu_pool *p) { return p ? p->n : 1; }
int ggu_pool_node(const struct ggu_pool *p, int worker) { return p ? p->cpu[worker].node : 0; }

void ggu_pool_free(struct ggu_pool *p)
{
	if (!p)
		return;
	atomic_store(&p->stop, true);
	move(p);
	for (int i = 0; i < p->n_started; i++)
		pthread_join(p->thread[i], NULL);
	if (p->before)
		ggu_cpus_restore(p->before);
	pthread_cond_destroy(&p->moved);
	pthread_mutex_destroy(&p->lock);
	unmake(p);
}
