/* SPDX-License-Identifier: MIT
 * tool_peak.c - runs a program and writes the most memory that was resident meanwhile, in bytes, to file descriptor
 * 3: `tool_peak PROGRAM [ARGUMENT...] 3>peak`. Exits as the program did. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage use;
	int status;
	/* vfork: the memory of a copy of this process would count as the program's */
	pid_t child = argc > 1 ? vfork() : -1;
	if (!child) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &use) != child) return 2;
#ifdef __APPLE__
	dprintf(3, "%ld\n", use.ru_maxrss);
#else
	dprintf(3, "%ld\n", use.ru_maxrss*1024);
#endif
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
