/* SPDX-License-Identifier: MIT
 * progress.c - see progress.h. The line is redrawn at most four times a second. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "msg.h"
#include "progress.h"

static struct {
	pthread_mutex_t lock;
	const char *what, *unit;
	uint64_t total;
	double start, drawn;
	bool on, shown;
} p = { .lock = PTHREAD_MUTEX_INITIALIZER };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9*(double)t.tv_nsec;
}

static void clear(void)
{
	if (p.shown) fputs("\r\033[K", stderr);
	p.shown = false;
}

void progress_begin(const char *what, uint64_t total, const char *unit)
{
	pthread_mutex_lock(&p.lock);
	p.what = what;
	p.unit = unit;
	p.total = total;
	p.start = p.drawn = now();
	p.on = !msg_quiet && isatty(2);
	pthread_mutex_unlock(&p.lock);
}

static void draw(uint64_t done, double t)
{
	bool bytes = !strcmp(p.unit, "B");
	double spent = t - p.start;
	fprintf(stderr, "\r%s: ", p.what);
	if (bytes) fprintf(stderr, "%s", msg_bytes(done));
	else fprintf(stderr, "%" PRIu64, done);
	if (p.total) {
		if (bytes) fprintf(stderr, " of %s", msg_bytes(p.total));
		else fprintf(stderr, " of %" PRIu64 " %s", p.total, p.unit);
		fprintf(stderr, ", %.0f %%", done >= p.total ? 99.0 : 99.0*(double)done/(double)p.total);
	} else if (!bytes) fprintf(stderr, " %s", p.unit);
	if (p.total && done && done < p.total && spent > 8) {
		unsigned left = (unsigned)(spent*(double)(p.total - done)/(double)done + 0.5);
		fprintf(stderr, ", %u:%02u left", left/60, left%60);
	}
	fputs("\033[K", stderr);
	fflush(stderr);
}

void progress_set(uint64_t done)
{
	double t;
	if (!p.on) return;
	t = now();
	pthread_mutex_lock(&p.lock);
	if (p.on && t - p.start > 1 && t - p.drawn > 0.25) {
		draw(done, t);
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

void progress_end(void)
{
	pthread_mutex_lock(&p.lock);
	clear();
	p.on = false;
	pthread_mutex_unlock(&p.lock);
}
