/* SPDX-License-Identifier: MIT
 * teams.h - shares out the windows of a text among threads.
 *
 * A team evaluates a group of windows side by side. With enough windows and memory each thread is a team of its own,
 * which waits for no other; what they cannot share out evenly goes to a last team, which has all threads. Otherwise
 * that one evaluates everything.
 *
 * The caller owns the teams; they are only counted here. Groups begin in order, but may end in any, and which team gets
 * which is not determined: results belong where their window says, or are taken in turns (turns.h). */
#ifndef TOOLS_TEAMS_H
#define TOOLS_TEAMS_H
#include <stdatomic.h>
#include "../libgguf/pool.h"

/* Why a team failed; path: of the model or the file, for the message. */
struct teams_error { const char *path; struct ggu_error err; };
struct teams {
	struct ggu_pool *pool;
	size_t n;                       /* teams 0..n - 1 have a thread each, team n all of them; of teams_apart */
	size_t side;                    /* windows of a group; the last one of team n may have fewer */
	/* Evaluates windows first..first + n - 1. Teams of one thread are called at the same time. NULL: done; else why
	 * not, which must last as long as the run. A team that has failed is not called again. */
	const struct teams_error *(*evaluate)(void *ctx, size_t team, uint64_t first, size_t n);
	void *ctx;
	_Atomic uint64_t *done;         /* counts the windows that are done; progress shows it */
};
/* How many teams of one thread there are: as many as the pool has threads. 0: there are fewer groups than threads, or
 * the teams would need more than 1 GiB altogether. bytes: what each needs besides the weights */
size_t teams_apart(const struct ggu_pool *pool, uint64_t groups, double bytes);
/* How many groups of so many windows go to them. They are the first ones. */
uint64_t teams_groups(const struct teams *t, uint64_t windows);
/* Evaluates windows first..end - 1; team n begins when the others are done. Returns NULL, or what went wrong with the
 * first group that failed, whichever thread had it. */
const struct teams_error *teams_run(const struct teams *t, uint64_t first, uint64_t end);

#endif
