/* SPDX-License-Identifier: MIT
 * test_progress.c - the line of progress: its words by width, and the line on a terminal of twenty columns that a child
 * process writes to. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../../tools/progress.h"

static void line_is(const struct progress *p, uint64_t done, double spent, size_t columns, const char *want)
{
	char got[PROGRESS_LINE];
	progress_line(got, p, done, spent, columns);
	assert_string_equal(got, want);
	assert_true(strlen(got) <= columns || columns < 5);
}

static void fits_any_width(void **state)
{
	const struct progress p = { "quantizing", "tensors", 200 };
	(void)state;
	line_is(&p, 50, 2, 79, "quantizing: 50 of 200 tensors, 25 %");
	line_is(&p, 50, 9, 79, "quantizing: 50 of 200 tensors, 25 %, 0:27 left");
	line_is(&p, 50, 9, 30, "quantizing: 25 %, 0:27 left");
	line_is(&p, 50, 9, 19, "25 %, 0:27 left");
	line_is(&p, 50, 9, 10, "25 %");
}
static void knows_hours(void **state)
{
	const struct progress p = { "x", "B", 1000 };
	(void)state;
	line_is(&p, 500, 3599, 15, "50 %");
	line_is(&p, 500, 3599, 16, "50 %, 59:59 left");
	line_is(&p, 500, 3600, 19, "50 %, 1:00:00 left");
	line_is(&p, 500, 360000, 22, "50 %, 100:00:00 left");
}
static void says_what_is_done_of_the_unknown(void **state)
{
	const struct progress p = { "reading", "tokens", 0 };
	(void)state;
	line_is(&p, 12345, 100, 79, "reading: 12345 tokens");
	line_is(&p, 12345, 100, 12, "12345");
}

static void nap(double s)
{
	struct timespec t = { (time_t)s, (long)((s - (double)(time_t)s)*1e9) };
	while (nanosleep(&t, &t)) continue;
}

/* Runs work(tty) in a child with stderr on a new terminal of twenty columns; returns the other end. term NULL: TERM is
 * not set. */
static int on_terminal(pid_t *child, const char *term, void (*work)(void))
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), tty;
	assert_true(master >= 0 && !grantpt(master) && !unlockpt(master));
	tty = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(tty >= 0);
	ioctl(tty, TIOCSWINSZ, &(struct winsize){ .ws_row = 24, .ws_col = 20 });
	*child = fork();
	if (!*child) {
		dup2(tty, 2);
		if (term) setenv("TERM", term, 1);
		else unsetenv("TERM");
		work();
		_exit(0);
	}
	close(tty);
	return master;
}
static void ten_steps(void)
{
	progress_begin("quantizing", 10, "tensors");
	for (unsigned i = 1; i < 6; i++) {
		progress_set(i);
		nap(0.3);
	}
	progress_set(5);
	progress_end();
}
static size_t read_all(int fd, char *to, size_t room)
{
	size_t n = 0;
	ssize_t got;
	while (n + 1 < room && (got = read(fd, to + n, room - 1 - n)) > 0) n += (size_t)got;
	to[n] = 0;
	return n;
}

/* What work shows on such a terminal; returns how it ended. */
static int shown(const char *term, void (*work)(void), char text[4096])
{
	int status;
	pid_t child;
	int fd = on_terminal(&child, term, work);
	read_all(fd, text, 4096);
	close(fd);
	waitpid(child, &status, 0);
	return status;
}

static void a_narrow_terminal(void **state)
{
	char text[4096];
	(void)state;
	shown("xterm", ten_steps, text);
	assert_non_null(strstr(text, "quantizing: 50 %\033[K"));
	assert_null(strstr(text, "tensors"));
	assert_non_null(strstr(text, "\r\033[K"));
}
/* Threads report in another order than they count. */
static void late_report(void)
{
	progress_begin("x", 10, "B");
	nap(1.2);
	progress_set(6);
	nap(0.3);
	progress_set(5);
	progress_end();
}
static void a_late_report_takes_nothing_back(void **state)
{
	char text[4096];
	const char *first;
	(void)state;
	shown("xterm", late_report, text);
	first = strstr(text, "59 %");
	assert_non_null(first);
	assert_non_null(strstr(first + 1, "59 %"));
	assert_null(strstr(text, "50 %"));
}
static void a_dumb_terminal_gets_nothing(void **state)
{
	char text[4096];
	(void)state;
	shown("dumb", ten_steps, text);
	assert_string_equal(text, "");
	shown("", ten_steps, text);
	assert_string_equal(text, "");
	shown(NULL, ten_steps, text);
	assert_string_equal(text, "");
}

/* Data on the same terminal: the line is cleared before it, and not printed after it. */
static void line_of_data(void)
{
	dup2(2, 1);
	progress_begin("x", 2, "B");
	nap(1.2);
	progress_set(1);
	progress_make_way();
	printf("data\n");
	fflush(stdout);
	progress_end();
}
static void data_has_lines_of_its_own(void **state)
{
	char text[4096];
	(void)state;
	shown("xterm", line_of_data, text);
	assert_string_equal(text, "\rx: 1 B of 2 B, 50 %\033[K\r\033[Kdata\r\n");
}

/* A handler of a signal that ends the process. */
static void last_words(int signal)
{
	(void)signal;
	progress_wipe();
	_exit(write(2, "gone\n", 5) != 5);
}
static void dying_work(void)
{
	signal(SIGBUS, last_words);
	progress_begin("x", 2, "B");
	nap(1.2);
	progress_set(1);
	raise(SIGBUS);
}
static void so_do_last_words(void **state)
{
	char text[4096];
	(void)state;
	shown("xterm", dying_work, text);
	assert_string_equal(text, "\rx: 1 B of 2 B, 50 %\033[K\r\033[Kgone\r\n");
}

/* A shell that owns the terminal, and a job of its own in the background. */
static void background_job(void)
{
	pid_t job;
	if (setsid() < 0 || ioctl(2, TIOCSCTTY, 0)) _exit(1);
	job = fork();
	if (!job) {
		setpgid(0, 0);
		ten_steps();
		_exit(0);
	}
	waitpid(job, NULL, 0);
}
static void the_background_draws_nothing(void **state)
{
	char text[4096];
	(void)state;
	assert_int_equal(shown("xterm", background_job, text), 0);
	assert_string_equal(text, "");
}

/* Works for more than a second, is stopped for eight, and works a little more: too early to show the time left. */
static void stopped_work(void)
{
	progress_begin("x", 2, "B");
	nap(1.2);
	progress_set(1);
	raise(SIGSTOP);
	progress_set(1);
	nap(0.3);
	progress_set(1);
	progress_end();
}
static void stopped_time_does_not_count(void **state)
{
	char text[4096];
	int status;
	pid_t child;
	int fd = on_terminal(&child, "xterm", stopped_work);
	(void)state;
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	nap(8);         /* as long as the line waits before it shows the time left */
	kill(child, SIGCONT);
	read_all(fd, text, sizeof text);
	close(fd);
	waitpid(child, NULL, 0);
	assert_non_null(strstr(text, "50 %"));
	assert_null(strstr(text, "left"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits_any_width), cmocka_unit_test(knows_hours),
			cmocka_unit_test(says_what_is_done_of_the_unknown),
		cmocka_unit_test(a_narrow_terminal), cmocka_unit_test(a_late_report_takes_nothing_back),
		cmocka_unit_test(a_dumb_terminal_gets_nothing),
		cmocka_unit_test(data_has_lines_of_its_own), cmocka_unit_test(so_do_last_words),
		cmocka_unit_test(the_background_draws_nothing),
		cmocka_unit_test(stopped_time_does_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
