/* SPDX-License-Identifier: MIT
 * pool.h - threads: the available cores, a pool of workers, and tensors in the workers' memory. Not installed. */
#ifndef GGU_POOL_H
#define GGU_POOL_H
#include "ggu.h"

/* A core that this process may use. */
struct ggu_cpu {
	int id;                 /* the system's number */
	int node;               /* its memory node, numbered from 0 without gaps */
	int sibling;            /* 0: the first thread of its physical core; 1: the second, ... */
	uint64_t speed;         /* relative to the other cores; 0: unknown */
};
/* The number of cores by affinity and cgroup quota, at least 1. */
int ggu_cpu_count(void);
/* n, or as many as the quotas of this process's control groups allow. root: "", or a tree to read instead of /. */
int ggu_cpus_quota(int n, const char *root);
/* Lists up to max of them in the order in which threads should use them: one thread of each physical core first, fast
 * cores before slow ones, alternating between nodes. Returns their number, 0 if the system does not report them. sysfs:
 * NULL, or a tree to read instead of /sys, whose online cores are all listed, even if this process may not use them. */
int ggu_cpus(struct ggu_cpu *list, int max, const char *sysfs);

/* A pool of workers. ggu_pool_run calls fn(ctx, task, worker) once for every task 0..n_tasks-1, on at most
 * ggu_pool_size threads, one of them the caller's, and returns when all are done. Which worker gets which task is not
 * determined, so results must not depend on it. Only one run at a time, from the thread that opened the pool. NULL is a
 * pool of one worker, the caller: ggu_pool_size, _node, _run and _phases accept it. */
struct ggu_pool;
struct ggu_pool_options {
	int n_threads;                  /* 0: the number of cores */
	const struct ggu_cpu *cpus;     /* from ggu_cpus: if there are several nodes, threads stay on theirs; or NULL */
	int n_cpus;
	bool pin;                       /* each thread stays on one core of cpus, the caller until ggu_pool_free */
};
struct ggu_pool *ggu_pool_open(const struct ggu_pool_options *o);       /* NULL: out of memory */
struct ggu_pool *ggu_pool_new(int n_threads);                           /* no other options */
int ggu_pool_size(const struct ggu_pool *p);
int ggu_pool_node(const struct ggu_pool *p, int worker);        /* workers are numbered in order of their nodes */
void ggu_pool_run(struct ggu_pool *p, size_t n_tasks, void (*fn)(void *ctx, size_t task, int worker), void *ctx);
void ggu_pool_free(struct ggu_pool *p);

/* Which worker takes a task. ANY: any that is free, in order. OWN: each worker takes an equal stretch, always the same
 * one, so that what a task reads stays in its worker's memory. NEAR: each worker takes its own stretch and then what is
 * left of other stretches, beginning with those of its node. */
enum ggu_take { GGU_TAKE_ANY, GGU_TAKE_OWN, GGU_TAKE_NEAR };
struct ggu_phase {
	void (*fn)(void *ctx, size_t task, int worker);
	void *ctx;
	size_t n_tasks;                 /* read when the phase begins: a task of an earlier phase may set it */
	enum ggu_take take;
};
/* Runs the phases one after the other. Each begins when all tasks of the previous one are done, whichever threads did
 * them. This costs less than separate runs, about one cache miss for each phase. */
void ggu_pool_phases(struct ggu_pool *p, const struct ggu_phase *phase, size_t n);

/* Prepares the memory that ggu_map returns, before its first call. COPY: tensors are read into memory of their own, in
 * large pages if the system has them, instead of being mapped; this also works for big-endian files and the caller's
 * sources, if their size is known. LOCK: they stay in memory; GGU_ERR_IO if the system does not allow that much. If the
 * workers of the pool are on several nodes, each gets its stretch of every tensor on its own node. pool may be NULL. */
enum { GGU_HOLD_COPY = 1, GGU_HOLD_LOCK = 2 };
enum ggu_status ggu_hold(struct ggu_file *f, unsigned flags, struct ggu_pool *pool, struct ggu_error *err);

#endif
