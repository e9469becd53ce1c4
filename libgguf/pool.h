/* SPDX-License-Identifier: MIT
 * pool.h - threads: the cores there are, a pool of workers, tensors in its memory. Not installed. */
#ifndef GGU_POOL_H
#define GGU_POOL_H
#include "ggu.h"

/* A core that this process may use. */
struct ggu_cpu {
	int id;                 /* the system's number */
	int node;               /* of memory, from 0 without gaps */
	int sibling;            /* 0: the first thread of its physical core; 1: the second, ... */
	uint64_t speed;         /* beside that of the others; 0: not known */
};
/* Cores by affinity and cgroup quota, at least 1. */
int ggu_cpu_count(void);
/* Lists up to max of them in the order in which threads should take them: one thread for each physical core first,
 * fast cores before slow ones, the nodes in turn. Returns their number, 0 where the system does not tell. sysfs: NULL,
 * or a tree to read instead of /sys, whose online cores are listed whatever this process may use. */
int ggu_cpus(struct ggu_cpu *list, int max, const char *sysfs);

/* A pool of workers. run calls fn(ctx, task, worker) once for every task 0..n_tasks-1, on at most
 * ggu_pool_size threads, the caller's among them, and returns when all are done. Which worker gets
 * which task is not determined: results must not depend on it. One run at a time, from the thread that
 * opened the pool. A pool that is NULL has one worker, the caller: ggu_pool_size, _node, _run and _phases take it. */
struct ggu_pool;
struct ggu_pool_options {
	int n_threads;                  /* 0: as many as cores */
	const struct ggu_cpu *cpus;     /* by ggu_cpus: threads stay on their node if there are several; or NULL */
	int n_cpus;
	bool pin;                       /* each thread, the caller until ggu_pool_free, stays on one core of cpus */
};
struct ggu_pool *ggu_pool_open(const struct ggu_pool_options *o);       /* NULL: out of memory */
struct ggu_pool *ggu_pool_new(int n_threads);                           /* with nothing but n_threads */
int ggu_pool_size(const struct ggu_pool *p);
int ggu_pool_node(const struct ggu_pool *p, int worker);        /* workers are numbered in order of their nodes */
void ggu_pool_run(struct ggu_pool *p, size_t n_tasks, void (*fn)(void *ctx, size_t task, int worker), void *ctx);
void ggu_pool_free(struct ggu_pool *p);

/* Who takes a task. ANY: in their order, whoever is free. OWN: each worker an equal stretch of them, always the same
 * one, so that what a task reads stays in its worker's memory. NEAR: its own stretch, then what is left of others',
 * those of its node first. */
enum ggu_take { GGU_TAKE_ANY, GGU_TAKE_OWN, GGU_TAKE_NEAR };
struct ggu_phase {
	void (*fn)(void *ctx, size_t task, int worker);
	void *ctx;
	size_t n_tasks;                 /* read when the phase begins: a task of an earlier one may set it */
	enum ggu_take take;
};
/* Runs phase after phase; each begins when all tasks of the one before are done, whichever threads did them. This costs
 * less than runs one by one, about a cache miss for each phase. */
void ggu_pool_phases(struct ggu_pool *p, const struct ggu_phase *phase, size_t n);

/* Makes ready what ggu_map gives out, before its first call. COPY: tensors are read into memory of their own, in
 * large pages where the system has such, instead of being mapped; big-endian files and the caller's sources may be
 * held so too. LOCK: they stay in memory; GGU_ERR_IO where the system does not grant that much of it. Where pool's
 * workers have several nodes, each has its stretch of every tensor on its own. pool may be NULL. */
enum { GGU_HOLD_COPY = 1, GGU_HOLD_LOCK = 2 };
enum ggu_status ggu_hold(struct ggu_file *f, unsigned flags, struct ggu_pool *pool, struct ggu_error *err);

#endif
