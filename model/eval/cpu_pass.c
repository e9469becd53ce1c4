/* SPDX-License-Identifier: MIT
 * cpu_pass.c - passes of the processor's threads over their tasks: the one place where they start. A profile, if there
 * is one, is told of each pass. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "../../libgguf/pool.h"
#include "../../libgguf/text.h"
#include "cpu_internal.h"
#include "profile.h"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec*1e-9;
}

void cpu_run(const struct work *w, const struct pass *pass, size_t n_tasks,
	void (*fn)(void *ctx, size_t task, int worker), void *ctx)
{
	const struct ggu_phase phase = { fn, ctx, n_tasks, pass->take };
	const double from = w->profile ? now() : 0;
	ggu_pool_phases(w->pool, &phase, 1);
	if (w->profile) profile_add(w->profile, pass->name, now() - from, pass->macs);
}

static bool is_earlier(const struct product *p, size_t i)
{
	for (size_t k = 0; k < i; k++) if (p[k].w == p[i].w) return true;
	return false;
}
/* The names of the tensors, each once, without "blk.N." and ".weight", as many as fit. */
void cpu_pass_name(char *to, size_t room, const struct product *p, size_t n)
{
	size_t at = 0;
	*to = 0;
	for (size_t i = 0; i < n && at + 1 < room; i++) {
		const char *name = p[i].w->name, *dot = text_starts(name, "blk.") ? strchr(name + 4, '.') : NULL, *end;
		if (p[i].y == NO_BUFFER || is_earlier(p, i)) continue;  /* not computed, or another expert of it */
		if (dot) name = dot + 1;
		end = strstr(name, ".weight");
		at += (size_t)snprintf(to + at, room - at, "%s%.*s", at ? " " : "",
			(int)(end ? (size_t)(end - name) : strlen(name)), name);
	}
}
