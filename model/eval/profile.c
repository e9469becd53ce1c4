/* SPDX-License-Identifier: MIT
 * profile.c - see profile.h; and the one place where the processor's backend starts its threads. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "../../libgguf/pool.h"
#include "../../libgguf/text.h"
#include "cpu_internal.h"
#include "profile.h"

void work_profile(struct work *w, struct profile *p) { w->profile = p; }

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec*1e-9;
}

static struct profile_row *row_of(struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++) if (!strcmp(p->row[i].name, name)) return p->row + i;
	if (p->n == PROFILE_ROWS) return p->row + p->n - 1;
	snprintf(p->row[p->n].name, sizeof p->row->name, "%s", name);
	return p->row + p->n++;
}

void cpu_run(const struct work *w, const struct pass *pass, size_t n_tasks,
	void (*fn)(void *ctx, size_t task, int worker), void *ctx)
{
	const struct ggu_phase phase = { fn, ctx, n_tasks, pass->take };
	struct profile_row *row;
	double from;
	if (!w->profile) {
		ggu_pool_phases(w->pool, &phase, 1);
		return;
	}
	from = now();
	ggu_pool_phases(w->pool, &phase, 1);
	row = row_of(w->profile, pass->name);
	row->secs += now() - from;
	row->macs += pass->macs;
	row->n_passes++;
}

static bool is_earlier(const struct product *p, size_t i)
{
	for (size_t k = 0; k < i; k++) if (p[k].w == p[i].w) return true;
	return false;
}
/* The names of the tensors, each once, without "blk.N." and ".weight", as many as fit. */
void pass_name(char *to, size_t room, const struct product *p, size_t n)
{
	size_t at = 0;
	*to = 0;
	for (size_t i = 0; i < n && at + 1 < room; i++) {
		const char *name = p[i].w->name, *dot = text_starts(name, "blk.") ? strchr(name + 4, '.') : NULL, *end;
		if (is_earlier(p, i)) continue;         /* another expert of it */
		if (dot) name = dot + 1;
		end = strstr(name, ".weight");
		at += (size_t)snprintf(to + at, room - at, "%s%.*s", at ? " " : "",
			(int)(end ? (size_t)(end - name) : strlen(name)), name);
	}
}
