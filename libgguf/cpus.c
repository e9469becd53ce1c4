/* SPDX-License-Identifier: MIT
 * cpus.c - how many cores this process may use: the affinity mask, cut by the CPU quota of its
 * control groups (rounded up), version 2 (cpu.max of the group and of each group above it) or
 * version 1 (cpu.cfs_quota_us). Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst. */
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "text.h"

#ifdef __linux__
static bool read_line(const char *path, char *to, int n)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(to, n, f);

	if (f)
		fclose(f);
	return ok;
}

static int cut(int n, long long quota, long long period)
{
	long long k = quota > 0 && period > 0 ? (quota - 1)/period + 1 : n;
	return k < n ? (int)k : n;
}

/* The limit that the group in the folder dir itself has. */
static int group_limit(int n, const char *dir, bool v2)
{
	char path[2*PATH_MAX + 64], line[64];
	long long quota = 0, period = 0;

	snprintf(path, sizeof path, "%s/%s", dir, v2 ? "cpu.max" : "cpu.cfs_quota_us");
	if (!read_line(path, line, sizeof line))
		return n;
	if (v2)
		return sscanf(line, "%lld %lld", &quota, &period) == 2 ? cut(n, quota, period) : n;
	sscanf(line, "%lld", &quota);
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
	if (read_line(path, line, sizeof line))
		sscanf(line, "%lld", &period);
	return cut(n, quota, period);
}

/* Is the CPU among the resources of a group of version 1? ":cpuacct,cpu" lists them in any order. */
static bool has_cpu(const char *list)
{
	for (; list; list = strchr(list + 1, ','))
		if (text_starts(list + 1, "cpu") && (!list[4] || list[4] == ','))
			return true;
	return false;
}

int ggu_cpus_quota(int n, const char *root)
{
	char line[PATH_MAX], dir[2*PATH_MAX];
	FILE *f;

	snprintf(dir, sizeof dir, "%s/proc/self/cgroup", root);
	f = fopen(dir, "re");
	while (f && fgets(line, sizeof line, f)) {      /* "0::/a/b" or "4:cpu,cpuacct:/a/b" */
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		bool v2 = !list[1];
		if (!v2 && !has_cpu(list))
			continue;
		/* inside a container the path may begin above what is mounted, so every group up to the root is
		 * tried */
		const char *mounted = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
		for (;;) {
			char *up = strrchr(path, '/');
			snprintf(dir, sizeof dir, "%s%s%s", root, mounted, up && path[1] ? path : "");
			n = group_limit(n, dir, v2);
			if (!up || !path[0])
				break;
			*up = 0;
		}
	}
	if (f)
		fclose(f);
	return n;
}
#else
int ggu_cpus_quota(int n, const char *root) { (void)root; return n; }
#endif

int ggu_cpu_count(void)
{
	int n = 0;

	n = ggu_cpus_allowed();
	if (n < 1)
		n = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (n < 1)
		n = 1;
	return ggu_cpus_quota(n, "");
}
