/* SPDX-License-Identifier: MIT
 * test_pool.c - the pool: every task once, phases in order, shares where they belong; cores and nodes read from
 * made-up trees of /sys. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../libgguf/pool.h"
#include "../lib/scratch.h"
#include "../lib/skip.h"

static const enum ggu_take takes[] = { GGU_TAKE_ANY, GGU_TAKE_OWN, GGU_TAKE_NEAR };

static void count_one(void *ctx, size_t task, int worker)
{
	(void)worker;
	((unsigned char *)ctx)[task]++;
}

static void every_task_once(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 8, 9, 100, 1000 };
	(void)state;
	for (int threads = 0; threads <= 19; threads += threads < 4 ? 1 : 5) {
		struct ggu_pool *p = threads ? ggu_pool_new(threads) : NULL;
		assert_int_equal(ggu_pool_size(p), threads ? threads : 1);
		for (size_t k = 0; k < 3; k++)
			for (size_t i = 0; i < sizeof sizes/sizeof *sizes; i++) {
				unsigned char seen[1000] = { 0 };
				struct ggu_phase phase = { count_one, seen, sizes[i], takes[k] };
				for (int run = 0; run < 20; run++) ggu_pool_phases(p, &phase, 1);
				for (size_t t = 0; t < sizeof seen; t++)
					assert_int_equal(seen[t], t < sizes[i] ? 20 : 0);
			}
		ggu_pool_free(p);
	}
}

/* Task i of phase k adds its two neighbours of phase k - 1, which is wrong if one of them is not done. */
enum { WIDTH = 37, DEPTH = 50 };
struct steps { uint32_t at[DEPTH + 1][WIDTH]; };
struct step { struct steps *s; size_t k; };
static uint32_t next(const uint32_t *x, size_t i) { return x[i] + 3*x[(i + 1)%WIDTH] + 1; }
static void add_neighbours(void *ctx, size_t task, int worker)
{
	const struct step *s = ctx;
	(void)worker;
	s->s->at[s->k + 1][task] = next(s->s->at[s->k], task);
}
static void phases_wait_for_each_other(void **state)
{
	static struct steps s;
	struct step step[DEPTH];
	struct ggu_phase phase[DEPTH];
	uint32_t expect[2][WIDTH];
	(void)state;
	for (int threads = 1; threads <= 4; threads++) {
		struct ggu_pool *p = ggu_pool_new(threads);
		for (int run = 0; run < 40; run++) {
			memset(&s, 0, sizeof s);
			for (size_t k = 0; k < DEPTH; k++) {
				step[k] = (struct step){ &s, k };
				phase[k] = (struct ggu_phase){ add_neighbours, step + k, WIDTH,
					takes[(k + (size_t)run)%3] };
			}
			ggu_pool_phases(p, phase, DEPTH - (size_t)run%3);
			memset(expect, 0, sizeof expect);
			for (size_t k = 0; k < DEPTH - (size_t)run%3; k++)
				for (size_t i = 0; i < WIDTH; i++) expect[~k & 1][i] = next(expect[k & 1], i);
			assert_memory_equal(s.at[DEPTH - run%3], expect[(DEPTH - run%3) & 1], sizeof *expect);
		}
		ggu_pool_free(p);
	}
}

struct later { struct ggu_phase *phase; atomic_int seen; };
static void decide(void *ctx, size_t task, int worker)
{
	struct later *l = ctx;
	(void)worker;
	if (!task) l->phase[1].n_tasks = 77;
}
static void count_seen(void *ctx, size_t task, int worker)
{
	(void)task, (void)worker;
	atomic_fetch_add(&((struct later *)ctx)->seen, 1);
}
static void a_task_may_set_the_tasks_of_a_later_phase(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 3; threads++) {
		struct ggu_pool *p = ggu_pool_new(threads);
		struct later l = { .seen = 0 };
		struct ggu_phase phase[2] = { { decide, &l, 5, GGU_TAKE_ANY }, { count_seen, &l, 0, GGU_TAKE_NEAR } };
		l.phase = phase;
		ggu_pool_phases(p, phase, 2);
		assert_int_equal(l.seen, 77);
		ggu_pool_free(p);
	}
}

static void phases_without_tasks_are_passed_over(void **state)
{
	static const size_t n[] = { 0, 5, 0, 0, 7, 0 };
	enum { N = sizeof n/sizeof *n };
	(void)state;
	for (int threads = 1; threads <= 3; threads++) {
		struct ggu_pool *p = ggu_pool_new(threads);
		unsigned char seen[N][8] = { { 0 } };
		struct ggu_phase phase[N];
		for (size_t k = 0; k < N; k++) phase[k] = (struct ggu_phase){ count_one, seen[k], n[k], takes[k%3] };
		ggu_pool_phases(p, phase, N);
		for (size_t k = 0; k < N; k++)
			for (size_t t = 0; t < sizeof *seen; t++) assert_int_equal(seen[k][t], t < n[k]);
		ggu_pool_phases(p, phase + 2, 2);
		ggu_pool_free(p);
	}
}

/* ---- places ---- */

/* A folder with files given as "path\0text\0...\0", each below devices/system. */
static void make_tree(char *dir, const char *const (*file)[2])
{
	char path[512];
	assert_true(scratch_folder(dir));
	for (; (*file)[0]; file++) {
		FILE *f;
		snprintf(path, sizeof path, "%s/devices/system/%s", dir, (*file)[0]);
		for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
			*p = 0;
			mkdir(path, 0777);
			*p = '/';
		}
		f = fopen(path, "w");
		assert_non_null(f);
		fputs((*file)[1], f);
		fclose(f);
	}
}
static void remove_tree(const char *dir)
{
	char command[SCRATCH_FILE];
	snprintf(command, sizeof command, "rm -r '%s'", dir);
	assert_int_equal(system(command), 0);
}

#define SIBLINGS(n, list) { "cpu/cpu" #n "/topology/thread_siblings_list", list "\n" }
#define CAPACITY(n, c) { "cpu/cpu" #n "/cpu_capacity", #c "\n" }
#define FREQUENCY(n, f) { "cpu/cpu" #n "/cpufreq/cpuinfo_max_freq", #f "\n" }

/* Two sockets of two cores with two threads each; node 1 has memory but no cores. */
static const char *const two_sockets[][2] = {
	{ "cpu/online", "0-7\n" }, { "node/online", "0-2\n" },
	{ "node/node0/cpulist", "0-1,4-5\n" }, { "node/node1/cpulist", "\n" }, { "node/node2/cpulist", "2-3,6-7\n" },
	SIBLINGS(0, "0,4"), SIBLINGS(1, "1,5"), SIBLINGS(2, "2,6"), SIBLINGS(3, "3,7"),
	SIBLINGS(4, "0,4"), SIBLINGS(5, "1,5"), SIBLINGS(6, "2,6"), SIBLINGS(7, "3,7"),
	{ NULL, NULL }
};
/* Slow cores have the lower numbers; 1 is off; 4 and 5 are one fast core. */
static const char *const fast_and_slow[][2] = {
	{ "cpu/online", "0,2-5\n" },
	CAPACITY(0, 500), CAPACITY(2, 500), CAPACITY(3, 1024), CAPACITY(4, 1024), CAPACITY(5, 1024),
	FREQUENCY(3, 5000000), FREQUENCY(4, 5200000), FREQUENCY(5, 5200000),
	SIBLINGS(4, "4-5"), SIBLINGS(5, "4-5"),
	{ NULL, NULL }
};

static void assert_order(const char *const (*tree)[2], const int (*expect)[3], int n)
{
	char dir[SCRATCH_PATH];
	struct ggu_cpu list[16];
	make_tree(dir, tree);
	assert_int_equal(ggu_cpus(list, 16, dir), n);
	for (int i = 0; i < n; i++) {
		assert_int_equal(list[i].id, expect[i][0]);
		assert_int_equal(list[i].node, expect[i][1]);
		assert_int_equal(list[i].sibling, expect[i][2]);
	}
	assert_int_equal(ggu_cpus(list, 3, dir), 3);
	remove_tree(dir);
}
static void physical_cores_of_all_nodes_come_first(void **state)
{
	const int expect[][3] = {
		{ 0, 0, 0 }, { 2, 1, 0 }, { 1, 0, 0 }, { 3, 1, 0 }, { 4, 0, 1 }, { 6, 1, 1 }, { 5, 0, 1 }, { 7, 1, 1 }
	};
	(void)state;
	assert_order(two_sockets, expect, 8);
}
static void fast_cores_come_first(void **state)
{
	const int expect[][3] = { { 4, 0, 0 }, { 3, 0, 0 }, { 0, 0, 0 }, { 2, 0, 0 }, { 5, 0, 1 } };
	(void)state;
	assert_order(fast_and_slow, expect, 5);
}
static void quotas_of_all_groups_count(void **state)
{
	static const struct { const char *groups, *dir; int n; } rows[] = {
		{ "0::/a/b\n", "/a", 3 }, { "0::/a/b\n", "", 3 }, { "0::/a/b\n", "/c", 16 }, { "0::/\n", "", 3 },
		{ "4:cpu:/x\n", "/cpu/x", 2 }, { "5:memory:/\n4:cpu,cpuacct:/x\n", "/cpu/x", 2 },
		{ "4:cpuacct,cpu:/x\n", "/cpu/x", 2 }, { "4:cpuset,cpu,cpuacct:/x\n", "/cpu", 2 },
		{ "4:cpuset:/x\n3:cpuacct:/x\n2:name=cpu:/x\n", "/cpu/x", 16 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) {
		char dir[SCRATCH_PATH], root[SCRATCH_FILE], file[3][SCRATCH_FILE + 64];
		const char *const tree[][2] = {
			{ "proc/self/cgroup", rows[i].groups }, { file[0], "250000 100000\n" },
			{ file[1], "150000\n" }, { file[2], "100000\n" }, { NULL, NULL }
		};
		snprintf(file[0], sizeof *file, "sys/fs/cgroup%s/cpu.max", rows[i].dir);
		snprintf(file[1], sizeof *file, "sys/fs/cgroup%s/cpu.cfs_quota_us", rows[i].dir);
		snprintf(file[2], sizeof *file, "sys/fs/cgroup%s/cpu.cfs_period_us", rows[i].dir);
		make_tree(dir, tree);
		snprintf(root, sizeof root, "%s/devices/system", dir);
		assert_int_equal(ggu_cpus_quota(16, root), rows[i].n);
		assert_int_equal(ggu_cpus_quota(1, root), 1);
		remove_tree(dir);
	}
}
static void no_tree_no_cores(void **state)
{
	struct ggu_cpu list[4];
	(void)state;
	assert_int_equal(ggu_cpus(list, 4, "/nowhere"), 0);
}
static void own_cores_are_as_many_as_counted(void **state)
{
	struct ggu_cpu list[4096];
	int n = ggu_cpus(list, 4096, NULL);
	(void)state;
	if (cannot_run(!n, "the cores of this machine are not known")) return;
	assert_int_equal(n, ggu_cpu_count());
}

/* Who took a task, and what it had taken before. */
enum { TASKS = 64 };
struct taken { atomic_int by[TASKS]; struct ggu_pool *p; atomic_int last_node[8]; atomic_bool back; };
static void note(void *ctx, size_t task, int worker)
{
	struct taken *t = ctx;
	int home = ggu_pool_node(t->p, worker), owner = ggu_pool_node(t->p, (int)(task/(TASKS/4)));
	atomic_store(&t->by[task], worker);
	if (atomic_load(&t->last_node[worker]) != home && owner == home) atomic_store(&t->back, true);
	atomic_store(&t->last_node[worker], owner);
	if (worker == 3) usleep(2000);          /* leaves work to the others */
}
static struct ggu_pool *on_two_sockets(int threads)
{
	char dir[SCRATCH_PATH];
	struct ggu_cpu list[8];
	make_tree(dir, two_sockets);
	struct ggu_pool_options o = { threads, list, ggu_cpus(list, 8, dir), false };
	remove_tree(dir);
	return ggu_pool_open(&o);
}
static void workers_are_in_order_of_nodes(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 11; threads++) {
		struct ggu_pool *p = on_two_sockets(threads);
		int far = 0;
		for (int i = 0; i < threads; i++) {
			if (i) assert_true(ggu_pool_node(p, i) >= ggu_pool_node(p, i - 1));
			far += ggu_pool_node(p, i);
		}
		assert_int_equal(far, threads/2);       /* half of them on the second node */
		ggu_pool_free(p);
	}
}
static void own_tasks_stay_with_their_worker(void **state)
{
	struct ggu_pool *p = on_two_sockets(4);
	struct taken t = { .p = p };
	struct ggu_phase phase = { note, &t, TASKS, GGU_TAKE_OWN };
	(void)state;
	ggu_pool_phases(p, &phase, 1);
	for (int i = 0; i < TASKS; i++) assert_int_equal(t.by[i], i/(TASKS/4));
	ggu_pool_free(p);
}
static void near_tasks_come_before_far_ones(void **state)
{
	struct ggu_pool *p = on_two_sockets(4);
	(void)state;
	for (int run = 0; run < 20; run++) {
		struct taken t = { .p = p };
		struct ggu_phase phase = { note, &t, TASKS, GGU_TAKE_NEAR };
		int helped = 0;
		for (int i = 0; i < 4; i++) t.last_node[i] = ggu_pool_node(p, i);
		ggu_pool_phases(p, &phase, 1);
		assert_false(t.back);
		for (int i = 3*TASKS/4; i < TASKS; i++) helped += t.by[i] != 3;
		assert_true(helped > 0);
	}
	ggu_pool_free(p);
}

/* The two threads whose home is the second node wait there until one from the first has helped, at most some
 * seconds. */
static void wait_for_help(void *ctx, size_t task, int worker)
{
	struct taken *t = ctx;
	if (ggu_pool_node(t->p, (int)(task/(TASKS/4))) == 0) return;
	if (ggu_pool_node(t->p, worker) == 0) atomic_store(&t->back, true);
	while (!atomic_load(&t->back) && atomic_fetch_add(&t->by[0], 1) < 4000) usleep(1000);
}
static void far_tasks_are_taken_when_there_are_no_others(void **state)
{
	struct ggu_pool *p = on_two_sockets(4);
	struct taken t = { .p = p };
	struct ggu_phase phase = { wait_for_help, &t, TASKS, GGU_TAKE_NEAR };
	(void)state;
	ggu_pool_phases(p, &phase, 1);
	assert_true(t.back);
	ggu_pool_free(p);
}

static void pinned_threads_stay_and_the_caller_is_let_go(void **state)
{
	struct ggu_cpu list[64];
	int before = ggu_cpu_count(), n = ggu_cpus(list, 64, NULL);
	struct ggu_pool *p = ggu_pool_open(&(struct ggu_pool_options){ 0, list, n, true });
	(void)state;
	if (n) assert_int_equal(ggu_cpu_count(), 1);    /* the caller's own mask */
	ggu_pool_free(p);
	assert_int_equal(ggu_cpu_count(), before);
}

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec*1e-9;
}
static void an_idle_pool_takes_no_time(void **state)
{
	struct ggu_pool *p = ggu_pool_new(2);
	unsigned char seen[100] = { 0 };
	double from;
	(void)state;
	ggu_pool_run(p, sizeof seen, count_one, seen);
	from = cpu_seconds();
	usleep(300000);
	assert_true(cpu_seconds() - from < 0.01);
	ggu_pool_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_task_once), cmocka_unit_test(phases_wait_for_each_other),
		cmocka_unit_test(a_task_may_set_the_tasks_of_a_later_phase),
		cmocka_unit_test(phases_without_tasks_are_passed_over),
		cmocka_unit_test(physical_cores_of_all_nodes_come_first), cmocka_unit_test(fast_cores_come_first),
		cmocka_unit_test(quotas_of_all_groups_count),
		cmocka_unit_test(no_tree_no_cores), cmocka_unit_test(own_cores_are_as_many_as_counted),
		cmocka_unit_test(workers_are_in_order_of_nodes), cmocka_unit_test(own_tasks_stay_with_their_worker),
		cmocka_unit_test(near_tasks_come_before_far_ones),
		cmocka_unit_test(far_tasks_are_taken_when_there_are_no_others),
		cmocka_unit_test(pinned_threads_stay_and_the_caller_is_let_go),
		cmocka_unit_test(an_idle_pool_takes_no_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
