/* SPDX-License-Identifier: MIT
 * topology.c - which cores there are, how they differ and which memory is near them; and restricting threads to some.
 *
 * Linux reports it in files below /sys/devices/system:
 *   cpu/online                               "0-3,6"
 *   cpu/cpuN/topology/thread_siblings_list   the threads of one physical core
 *   cpu/cpuN/cpu_capacity                    1024 for the fastest; if there are cores of several kinds
 *   cpu/cpuN/cpufreq/cpuinfo_max_freq        kHz
 *   node/online, node/nodeM/cpulist          memory nodes with their cores
 * What is missing there counts as equal for all cores. Source: Documentation/ABI/stable/sysfs-devices-system-cpu,
 * sysfs-devices-node and testing/sysfs-devices-system-cpu of Linux. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#ifdef __linux__
enum { MASK_CPUS = 1 << 16, LIST_BYTES = 1 << 16 };
struct ggu_cpu_mask { cpu_set_t set[MASK_CPUS/CPU_SETSIZE]; };

static bool in(const struct ggu_cpu_mask *m, int id)
{
	return id >= 0 && id < MASK_CPUS && CPU_ISSET_S((size_t)id, sizeof *m, m->set);
}

/* "0-3,6": false if there is no such file. */
static bool read_list(struct ggu_cpu_mask *m, const char *sysfs, const char *file, int n)
{
	char path[PATH_MAX], name[64], *text = calloc(1, LIST_BYTES), *p = text;
	FILE *f;

	memset(m, 0, sizeof *m);
	snprintf(name, sizeof name, file, n);
	snprintf(path, sizeof path, "%s/devices/system/%s", sysfs, name);
	f = text ? fopen(path, "re") : NULL;
	if (f) {
		text[fread(text, 1, LIST_BYTES - 1, f)] = 0;
		fclose(f);
	}
	while (f && *p >= '0' && *p <= '9') {
		unsigned long from = strtoul(p, &p, 10), to = *p == '-' ? strtoul(p + 1, &p, 10) : from;
		for (; from <= to && from < MASK_CPUS; from++)
			CPU_SET_S((size_t)from, sizeof *m, m->set);
		p += *p == ',';
	}
	free(text);
	return f;
}

static uint64_t read_number(const char *sysfs, const char *file, int n)
{
	char path[PATH_MAX], name[64];
	unsigned long long v = 0;
	FILE *f;

	snprintf(name, sizeof name, file, n);
	snprintf(path, sizeof path, "%s/devices/system/%s", sysfs, name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &v) != 1)
		v = 0;
	if (f)
		fclose(f);
	return v;
}

struct found { struct ggu_cpu c; int rank; };   /* rank: among the cores of its node */

static int by_kind(const struct ggu_cpu *a, const struct ggu_cpu *b)
{
	if (a->sibling != b->sibling)
		return a->sibling - b->sibling;
	return a->speed > b->speed ? -1 : a->speed < b->speed;
}
static int in_node(const void *x, const void *y)
{
	const struct found *a = x, *b = y;
	int kind = by_kind(&a->c, &b->c);

	return a->c.node != b->c.node ? a->c.node - b->c.node : kind ? kind : a->c.id - b->c.id;
}
static int in_turn(const void *x, const void *y)
{
	const struct found *a = x, *b = y;
	int kind = by_kind(&a->c, &b->c);

	return kind ? kind : a->rank != b->rank ? a->rank - b->rank : a->c.node - b->c.node;
}

static void find_nodes(struct found *at, int n, const char *sysfs, struct ggu_cpu_mask *nodes, struct ggu_cpu_mask *m)
{
	int n_nodes = 0;

	if (!read_list(nodes, sysfs, "node/online", 0))
		return;
	for (int id = 0; id < MASK_CPUS; id++) {
		bool any = false;
		if (!in(nodes, id) || !read_list(m, sysfs, "node/node%d/cpulist", id))
			continue;
		for (int i = 0; i < n; i++)
			if (in(m, at[i].c.id)) {
				at[i].c.node = n_nodes;
				any = true;
			}
		n_nodes += any;
	}
}

/* The cores of m with what is known about each; returns their number. m is consumed. */
static int find(struct found *at, int max, const char *sysfs, struct ggu_cpu_mask *m)
{
	struct ggu_cpu_mask *siblings = malloc(sizeof *siblings);
	int n = 0;

	for (int id = 0; siblings && id < MASK_CPUS && n < max; id++) {
		struct ggu_cpu c = { .id = id };
		if (!in(m, id))
			continue;
		read_list(siblings, sysfs, "cpu/cpu%d/topology/thread_siblings_list", id);
		for (int k = 0; k < n; k++)
			c.sibling += in(siblings, at[k].c.id);
		c.speed = read_number(sysfs, "cpu/cpu%d/cpu_capacity", id) << 32;
		c.speed |= (uint32_t)read_number(sysfs, "cpu/cpu%d/cpufreq/cpuinfo_max_freq", id);
		at[n++].c = c;
	}
	if (siblings)
		find_nodes(at, n, sysfs, siblings, m);
	free(siblings);
	return n;
}

int ggu_cpus(struct ggu_cpu *list, int max, const char *sysfs)
{
	enum { MOST = 4096 };
	struct found *at = calloc(MOST, sizeof *at);
	struct ggu_cpu_mask *m = sysfs ? malloc(sizeof *m) : ggu_cpus_save();
	int n = 0, most = sysfs ? max : ggu_cpu_count();

	if (at && m && (!sysfs || read_list(m, sysfs, "cpu/online", 0)))
		n = find(at, MOST, sysfs ? sysfs : "/sys", m);
	if (n) {
		qsort(at, (size_t)n, sizeof *at, in_node);
		for (int i = 0; i < n; i++)
			at[i].rank = i && at[i].c.node == at[i - 1].c.node ? at[i - 1].rank + 1 : 0;
		qsort(at, (size_t)n, sizeof *at, in_turn);
	}
	if (n > max)
		n = max;
	if (n > most)                   /* of the quota */
		n = most;
	for (int i = 0; i < n; i++)
		list[i] = at[i].c;
	free(at);
	free(m);
	return n;
}

void ggu_cpus_bind(const struct ggu_cpu *cpu, int n)
{
	struct ggu_cpu_mask m;

	memset(&m, 0, sizeof m);
	for (int i = 0; i < n; i++)
		if (cpu[i].id >= 0 && cpu[i].id < MASK_CPUS)
			CPU_SET_S((size_t)cpu[i].id, sizeof m, m.set);
	sched_setaffinity(0, sizeof m, m.set);
}

struct ggu_cpu_mask *ggu_cpus_save(void)
{
	struct ggu_cpu_mask *m = calloc(1, sizeof *m);

	if (m && sched_getaffinity(0, sizeof *m, m->set)) {
		free(m);
		return NULL;
	}
	return m;
}

int ggu_cpus_allowed(void)
{
	struct ggu_cpu_mask *m = ggu_cpus_save();
	int n = m ? CPU_COUNT_S(sizeof *m, m->set) : 0;

	free(m);
	return n;
}

void ggu_cpus_restore(struct ggu_cpu_mask *m)
{
	sched_setaffinity(0, sizeof *m, m->set);
	free(m);
}
#else
int ggu_cpus(struct ggu_cpu *list, int max, const char *sysfs) { (void)list; (void)max; (void)sysfs; return 0; }
void ggu_cpus_bind(const struct ggu_cpu *cpu, int n) { (void)cpu; (void)n; }
struct ggu_cpu_mask *ggu_cpus_save(void) { return NULL; }
int ggu_cpus_allowed(void) { return 0; }
void ggu_cpus_restore(struct ggu_cpu_mask *m) { (void)m; }
#endif
