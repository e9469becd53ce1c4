/* SPDX-License-Identifier: MIT
 * progress.c - see progress.h. The line is redrawn at most four times a second. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "msg.h"
#include "progress.h"

static struct {
	pthread_mutex_t lock;
	struct progress of;
	double start, seen, drawn;      /* seen: of the last progress_set */
	uint64_t done;                  /* the most so far, as threads may come in another order */
	bool on;
	volatile sig_atomic_t shown;
	struct sigaction before;
} p = { .lock = PTHREAD_MUTEX_INITIALIZER };
static volatile sig_atomic_t continued;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9*(double)t.tv_nsec;
}

/* ---- the line ---- */

static void amount_text(char to[64], const struct progress *o, uint64_t done)
{
	if (!strcmp(o->unit, "B")) snprintf(to, 64, "%s", msg_bytes(done));
	else snprintf(to, 64, "%" PRIu64, done);
}
/* "59:59" or "100:00:00" */
static void time_text(char to[32], double seconds)
{
	uint64_t s = seconds < 1e9 ? (uint64_t)(seconds + 0.5) : 1000000000;
	if (s < 3600) snprintf(to, 32, "%" PRIu64 ":%02u", s/60, (unsigned)(s%60));
	else snprintf(to, 32, "%" PRIu64 ":%02u:%02u", s/3600, (unsigned)(s/60%60), (unsigned)(s%60));
}

void progress_line(char to[PROGRESS_LINE], const struct progress *o, uint64_t done, double spent, size_t columns)
{
	char amount[64], total[64], part[32] = "", left[48] = "", time[32];
	const char *unit = strcmp(o->unit, "B") ? o->unit : "", *blank = *unit ? " " : "";
	amount_text(amount, o, done);
	if (!o->total) {
		snprintf(to, PROGRESS_LINE, "%s: %s%s%s", o->what, amount, blank, unit);
		if (text_width(to) > columns) snprintf(to, PROGRESS_LINE, "%s", amount);
		return;
	}
	amount_text(total, o, o->total);
	snprintf(part, sizeof part, "%.0f %%", done >= o->total ? 99.0 : 99.0*(double)done/(double)o->total);
	if (done && done < o->total && spent > 8) {
		time_text(time, spent*(double)(o->total - done)/(double)done);
		snprintf(left, sizeof left, ", %s left", time);
	}
	snprintf(to, PROGRESS_LINE, "%s: %s of %s%s%s, %s%s", o->what, amount, total, blank, unit, part, left);
	if (text_width(to) > columns) snprintf(to, PROGRESS_LINE, "%s: %s%s", o->what, part, left);
	if (text_width(to) > columns) snprintf(to, PROGRESS_LINE, "%s%s", part, left);
	if (text_width(to) > columns) snprintf(to, PROGRESS_LINE, "%s", part);
}

static size_t columns(void)
{
	struct winsize w;
	return !ioctl(2, TIOCGWINSZ, &w) && w.ws_col > 1 ? w.ws_col - 1u : 79;
}

/* In the background the terminal belongs to others, and writing to it may stop the process. A terminal that does not
 * control the process has no foreground. */
static bool foreground(void)
{
	pid_t group = tcgetpgrp(2);
	return group < 0 || group == getpgrp();
}

static void clear(void)
{
	if (p.shown && foreground()) fputs("\r\033[K", stderr);
	p.shown = false;
}

/* ---- the clock ---- */

static void on_continue(int signal)
{
	(void)signal;
	continued = 1;
}

void progress_begin(const char *what, uint64_t total, const char *unit)
{
	struct sigaction a = { .sa_handler = on_continue, .sa_flags = SA_RESTART };
	pthread_mutex_lock(&p.lock);
	p.of = (struct progress){ what, unit, total };
	p.start = p.seen = p.drawn = now();
	p.done = 0;
	p.on = !msg_quiet && isatty(2) && msg_escapes();
	continued = 0;
	if (p.on) sigaction(SIGCONT, &a, &p.before);
	pthread_mutex_unlock(&p.lock);
}

void progress_set(uint64_t done)
{
	double t;
	if (!p.on) return;
	t = now();
	pthread_mutex_lock(&p.lock);
	if (continued) {                /* the process was stopped for most of the time since the last call */
		continued = 0;
		p.start += t - p.seen;
		p.drawn = 0;
		p.shown = false;        /* the shell has gone on below the line */
	}
	p.seen = t;
	if (done > p.done) p.done = done;
	if (p.on && t - p.start > 1 && t - p.drawn > 0.25 && foreground()) {
		char line[PROGRESS_LINE];
		progress_line(line, &p.of, p.done, t - p.start, columns());
		fprintf(stderr, "\r%s\033[K", line);
		fflush(stderr);
		p.drawn = t;
		p.shown = true;
	}
	pthread_mutex_unlock(&p.lock);
}

void progress_hide(void)
{
	pthread_mutex_lock(&p.lock);
	clear();
	pthread_mutex_unlock(&p.lock);
}

void progress_wipe(void)
{
	if (p.shown && foreground()) (void)!write(2, "\r\033[K", 4);
	p.shown = false;
}

void progress_make_way(void)
{
	if (p.on && isatty(1)) progress_hide();
}

void progress_end(void)
{
	pthread_mutex_lock(&p.lock);
	clear();
	if (p.on) sigaction(SIGCONT, &p.before, NULL);
	p.on = false;
	pthread_mutex_unlock(&p.lock);
}
