/* SPDX-License-Identifier: MIT
 * tool_kill.c - `tool_kill T COMMAND...` runs a command, kills it after T microseconds with SIGKILL, and exits as a
 * shell would report it. T 0: lets it run, and prints how many microseconds it took. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec*1000000L + t.tv_nsec/1000;
}

int main(int argc, char **argv)
{
	long begin = now(), after = argc > 2 ? atol(argv[1]) : 0;
	pid_t child = argc > 2 ? fork() : -1;
	int status;
	if (!child) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (child < 0) return 2;
	if (after) {
		nanosleep(&(struct timespec){ after/1000000, after%1000000*1000 }, NULL);
		kill(child, SIGKILL);
	}
	if (waitpid(child, &status, 0) != child) return 2;
	if (!after) printf("%ld\n", now() - begin);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
