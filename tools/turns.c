/* SPDX-License-Identifier: MIT
 * turns.c - see turns.h. Each window counts its turns. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include "turns.h"

struct turns {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	size_t failed;                  /* the first window that has failed; SIZE_MAX: none */
	size_t taken[];                 /* turns of each window; SIZE_MAX: all */
};

struct turns *turns_new(size_t n)
{
	struct turns *t = NULL;
	if (n < (SIZE_MAX - sizeof *t)/sizeof *t->taken) t = calloc(1, sizeof *t + n*sizeof *t->taken);
	if (!t) return NULL;
	t->failed = SIZE_MAX;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->moved, NULL);
	return t;
}

void turns_free(struct turns *t)
{
	if (!t) return;
	pthread_cond_destroy(&t->moved);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

bool turns_wait(struct turns *t, size_t window)
{
	bool may;
	pthread_mutex_lock(&t->lock);
	while (t->failed >= window && window && t->taken[window - 1] <= t->taken[window])
		pthread_cond_wait(&t->moved, &t->lock);
	may = t->failed >= window;
	pthread_mutex_unlock(&t->lock);
	return may;
}

static void change(struct turns *t, size_t *what, size_t to)
{
	pthread_mutex_lock(&t->lock);
	*what = to;
	pthread_cond_broadcast(&t->moved);
	pthread_mutex_unlock(&t->lock);
}
void turns_next(struct turns *t, size_t window) { change(t, t->taken + window, t->taken[window] + 1); }
void turns_end(struct turns *t, size_t window) { change(t, t->taken + window, SIZE_MAX); }
void turns_fail(struct turns *t, size_t window)
{
	pthread_mutex_lock(&t->lock);
	if (window < t->failed) t->failed = window;
	pthread_cond_broadcast(&t->moved);
	pthread_mutex_unlock(&t->lock);
}
