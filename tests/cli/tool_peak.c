/* SPDX-License-Identifier: MIT
 * tool_peak.c - runs a program and writes the most memory that was resident meanwhile, in bytes, to file descriptor
 * 3: `tool_peak PROGRAM [ARGUMENT...] 3>peak`. Exits as the program did.
 *
 * Linux counts resident pages of three kinds (of files, anonymous, shared) on each CPU for itself, and adds them up
 * when they are max(32, 2*CPUs) (lib/percpu_counter.c; before 6.2 after 64 faults of a thread, which is less). So the
 * program gets two CPUs, however many there are: with up to 16 in all its peak is then told to 768 KiB. */
#ifdef __linux__
#include <sched.h>
#endif
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_CPUS 2

static void few_cpus(void)
{
#ifdef __linux__
	cpu_set_t have, few;
	CPU_ZERO(&few);
	/* on a machine with more CPUs than a set holds the program keeps them all */
	if (sched_getaffinity(0, sizeof have, &have)) return;
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&few) < MOST_CPUS; i++)
		if (CPU_ISSET(i, &have)) CPU_SET(i, &few);
	sched_setaffinity(0, sizeof few, &few);
#endif
}

int main(int argc, char **argv)
{
	struct rusage use;
	int status;
	few_cpus();
	/* vfork: the memory of a copy of this process would count as the program's */
	pid_t child = argc > 1 ? vfork() : -1;
	if (!child) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &use) != child) return 2;
#ifdef __APPLE__
	long peak = use.ru_maxrss;
#else
	long peak = use.ru_maxrss*1024;
#endif
	dprintf(3, "%ld\n", peak);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
