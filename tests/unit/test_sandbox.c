/* SPDX-License-Identifier: MIT
 * test_sandbox.c - inside the sandbox only the named folders are open. Each test is a child process. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../tools/msg.h"
#include "../../tools/sandbox.h"
#include "../lib/scratch.h"

static char in[SCRATCH_PATH], out[SCRATCH_PATH], to[SCRATCH_PATH];
static char in_file[SCRATCH_FILE], out_file[SCRATCH_FILE], new_file[SCRATCH_FILE];

static int setup(void **state)
{
	(void)state;
	if (!scratch_folder(in) || !scratch_folder(out) || !scratch_folder(to)) return -1;
	snprintf(in_file, sizeof in_file, "%s/a", in);
	snprintf(out_file, sizeof out_file, "%s/b", out);
	snprintf(new_file, sizeof new_file, "%s/c", in);
	return close(open(in_file, O_CREAT | O_WRONLY, 0600));
}
static int teardown(void **state)
{
	(void)state;
	unlink(in_file); unlink(out_file); unlink(new_file);
	return rmdir(in) | rmdir(out) | rmdir(to);
}

static int opens(const char *name, int flags)
{
	int fd = open(name, flags, 0600);
	if (fd >= 0) close(fd);
	return fd >= 0;
}

/* Runs `what` in a child, whose answer is a set of bits. */
static int in_child(int (*what)(void))
{
	int status;
	pid_t pid = fork();
	if (!pid) _exit(what());
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int inside(const char *const *inputs, int n)
{
	int ok = 0;
	sandbox_enter(inputs, n, out_file);
	if (opens(in_file, O_RDONLY)) ok |= 1;
	if (opens(out_file, O_CREAT | O_WRONLY)) ok |= 2;
	if (!opens("/etc/passwd", O_RDONLY)) ok |= 4;
	if (!opens(new_file, O_CREAT | O_WRONLY)) ok |= 8;
	return ok;
}
static int one(void) { return inside((const char *[]){ in_file }, 1); }
static int added(void)
{
	sandbox_inputs((const char *[]){ NULL, in_file }, 2);
	return inside(NULL, 0);
}
static int off(void)
{
	sandbox_off = true;
	return one();
}

/* Two outputs, one of them a link to a file in another folder that does not exist yet. */
static int outputs(void)
{
	char link[SCRATCH_FILE], file[SCRATCH_FILE], third[SCRATCH_FILE];
	int ok = 0;
	snprintf(link, sizeof link, "%s/link", out);
	snprintf(file, sizeof file, "%s/file", to);
	snprintf(third, sizeof third, "%s/third", in);
	if (symlink(file, link)) return 0;
	sandbox_output(link);
	sandbox_output(NULL);
	sandbox_enter(NULL, 0, third);
	if (opens(file, O_CREAT | O_WRONLY)) ok |= 1;
	if (opens(third, O_CREAT | O_WRONLY)) ok |= 2;
	if (!opens(out_file, O_CREAT | O_WRONLY)) ok |= 4;
	unlink(file); unlink(third);
	return ok;
}
/* The kernel lets a process restrict itself sixteen times. What is tested is the message with -v when it refuses. */
static int too_often(void)
{
	char name[SCRATCH_PATH];
	FILE *t = fdopen(scratch_file(name), "w+");
	unlink(name);
	char text[100] = "";
	msg_program = "test";
	msg_verbose = true;
	if (!t || dup2(fileno(t), 2) < 0) return 0;
	for (int i = 0; i < 20; i++) sandbox_enter(NULL, 0, NULL);
	return pread(2, text, sizeof text - 1, 0) > 0 && !strncmp(text, "test: no sandbox: ", 18);
}

static void several_outputs_are_open(void **state)
{
	char link[SCRATCH_FILE];
	int got = in_child(outputs);
	(void)state;
	snprintf(link, sizeof link, "%s/link", out);
	unlink(link);
	unlink(out_file);
	assert_int_equal(got & 3, 3);
	if (in_child(one) & 12) assert_int_equal(got, 7);
}
static void absence_is_told(void **state)
{
	(void)state;
	assert_int_equal(in_child(too_often), 1);
}
static void what_is_needed_stays_open(void **state)
{
	(void)state;
	assert_int_equal(in_child(one) & 3, 3);
}
static void the_rest_is_closed(void **state)
{
	int got = in_child(one);
	(void)state;
	if (!(got & 12)) return;       /* no Landlock here */
	assert_int_equal(got, 15);
}
static void added_inputs_are_as_the_others(void **state)
{
	(void)state;
	assert_int_equal(in_child(added), in_child(one));
}
static void no_sandbox_is_obeyed(void **state)
{
	(void)state;
	assert_int_equal(in_child(off), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_needed_stays_open),
		cmocka_unit_test(the_rest_is_closed),
		cmocka_unit_test(added_inputs_are_as_the_others),
		cmocka_unit_test(no_sandbox_is_obeyed),
		cmocka_unit_test(several_outputs_are_open),
		cmocka_unit_test(absence_is_told),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
