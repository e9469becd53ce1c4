/* SPDX-License-Identifier: MIT
 * tool_pool.c - the cost of threads waiting for each other: an empty phase of the pool, alone and as one of
 * many, beside a pool of a mutex and condition variables. `tool_pool [THREADS]`, by default as many as there are
 * cores and every power of two below. Microseconds by the clock, the median of some batches. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../../libgguf/pool.h"

enum { RUNS = 1000, BATCHES = 15, PHASES = 100 };

/* ---- the plain pool ---- */

struct plain {
	pthread_mutex_t lock;
	pthread_cond_t go, done;
	unsigned run;
	int n, busy;
	bool stop;
	pthread_t thread[1024];
};
static void *plain_main(void *arg)
{
	struct plain *p = arg;
	unsigned seen = 0;
	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (p->run == seen) pthread_cond_wait(&p->go, &p->lock);
		seen = p->run;
		if (p->stop) break;
		if (!--p->busy) pthread_cond_signal(&p->done);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}
static void plain_run(struct plain *p)
{
	pthread_mutex_lock(&p->lock);
	p->busy = p->n - 1;
	p->run++;
	pthread_cond_broadcast(&p->go);
	while (p->busy && !p->stop) pthread_cond_wait(&p->done, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

/* ---- measuring ---- */

static void nothing(void *ctx, size_t task, int worker) { (void)ctx, (void)task, (void)worker; }
static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec*1e6 + (double)t.tv_nsec*1e-3;
}
static int by_value(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : 1; }
static double median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
	return v[n/2];
}

static void measure(int n)
{
	static struct ggu_phase phase[PHASES];
	struct plain plain = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, .n = n };
	struct ggu_pool *p = ggu_pool_new(n);
	double single[BATCHES], many[BATCHES], slow[BATCHES];
	if (!p || ggu_pool_size(p) != n) { fprintf(stderr, "tool_pool: cannot start %d threads\n", n); exit(2); }
	for (int i = 1; i < n; i++) pthread_create(plain.thread + i, NULL, plain_main, &plain);
	for (int i = 0; i < PHASES; i++) phase[i] = (struct ggu_phase){ nothing, NULL, (size_t)n, GGU_TAKE_OWN };
	for (int b = 0; b < BATCHES; b++) {
		double t = now_us();
		for (int i = 0; i < RUNS; i++) ggu_pool_phases(p, phase, 1);
		single[b] = (now_us() - t)/RUNS;
		t = now_us();
		for (int i = 0; i < RUNS/PHASES; i++) ggu_pool_phases(p, phase, PHASES);
		many[b] = (now_us() - t)/RUNS;
		t = now_us();
		for (int i = 0; i < RUNS; i++) plain_run(&plain);
		slow[b] = (now_us() - t)/RUNS;
	}
	printf("%7d  %8.2f  %8.2f  %8.2f\n", n, median(single, BATCHES), median(many, BATCHES), median(slow, BATCHES));
	plain.stop = true;
	plain_run(&plain);
	for (int i = 1; i < n; i++) pthread_join(plain.thread[i], NULL);
	ggu_pool_free(p);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, cpus = ggu_cpu_count();
	if (n < 0 || n > 1024) { fprintf(stderr, "tool_pool: 1 to 1024 threads\n"); return 2; }
	printf("%7s  %8s  %8s  %8s\n", "threads", "run", "phase", "plain");
	if (n) measure(n);
	else for (int i = 1; i <= cpus; i = i < cpus && 2*i > cpus ? cpus : 2*i) measure(i);
	return 0;
}
