/* SPDX-License-Identifier: MIT
 * page.c - see page.h. A slab is as large as all before it together, up to a limit, and is cut into pages as they are
 * needed. Pages that come back wait on the shelf of their size. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../../libgguf/size.h"
#include "page.h"

enum { LARGE = 2 << 20, FIRST = 8*LARGE, SLAB_MAX = 32*LARGE };         /* LARGE: a large page of memory */
/* left: pages from `fresh` on; those of a slab are touched in order, so that touched memory is contiguous */
struct slab { struct slab *next; size_t page_bytes, left; char *fresh; _Alignas(64) char bytes[]; };

static size_t taken_by(size_t size) { return size_up(sizeof(struct page) + size, 64); }
static bool is_big(size_t page_bytes) { return page_bytes >= LARGE/8; }

/* The next slab has room for as many bytes as there are already. So most of a slab is in use, and memory that was not
 * touched costs nothing. With less than a large page of memory at first, these positions would stay in small pages,
 * and attention to them would be slow for good. */
static struct slab *slab_new(struct pages *p, size_t page_bytes)
{
	size_t most = p->taken < SLAB_MAX ? p->taken : SLAB_MAX, bytes;
	bool big = is_big(page_bytes), large;
	void *at;
	struct slab *s;
	if (big) most = size_most(most, FIRST);
	bytes = sizeof *s + size_most(most/page_bytes, 1)*page_bytes;
	large = big || bytes >= FIRST;
	if (large) bytes = size_up(bytes, LARGE);
	if (posix_memalign(&at, large ? LARGE : 64, bytes)) return NULL;
#ifdef MADV_HUGEPAGE
	if (large) madvise(at, bytes, MADV_HUGEPAGE);
#endif
	s = at;
	*s = (struct slab){ p->slab, page_bytes, (bytes - sizeof *s)/page_bytes, s->bytes };
	p->slab = s;
	p->taken += bytes;
	return s;
}

/* The shelf of this size; NULL: out of memory. A model has one, or a few. */
static struct shelf *shelf_of(struct pages *p, size_t size)
{
	struct shelf *s = p->shelf;
	while (s && s->size != size) s = s->next;
	if (s) return s;
	s = malloc(sizeof *s);
	if (!s) return NULL;
	*s = (struct shelf){ p->shelf, p, size, NULL };
	p->shelf = s;
	return s;
}
static struct page *fresh_page(struct pages *p, size_t size)
{
	size_t bytes = taken_by(size);
	struct slab *s = p->slab;
	while (s && (s->page_bytes != bytes || !s->left)) s = s->next;
	if (!s) s = slab_new(p, bytes);
	if (!s) return NULL;
	s->left--;
	s->fresh += bytes;
	return (void *)(s->fresh - bytes);
}

void pages_init(struct pages *p)
{
	*p = (struct pages){ 0 };
	pthread_mutex_init(&p->lock, NULL);
}

struct page *page_new(struct pages *p, size_t size)
{
	struct shelf *home;
	struct page *new;
	pthread_mutex_lock(&p->lock);
	home = shelf_of(p, size);
	new = home ? home->idle : NULL;
	if (new) home->idle = new->next;
	else if (home) new = fresh_page(p, size);
	pthread_mutex_unlock(&p->lock);
	if (!new) return NULL;
	*new = (struct page){ .home = home, .refs = 1 };
	memset(new->bytes, 0, size);
	return new;
}
/* Small pages are in large pages of memory once FIRST bytes are taken, which is at twice that size at the latest. */
double pages_slack(size_t size, double n)
{
	double bytes = (double)taken_by(size)*n;
	return is_big(taken_by(size)) || bytes >= 2.0*FIRST ? ceil(bytes/LARGE)*LARGE - bytes : 0;
}
void page_drop(struct page *p)
{
	struct shelf *home = p->home;
	if (--p->refs) return;
	pthread_mutex_lock(&home->of->lock);
	p->next = home->idle;
	home->idle = p;
	pthread_mutex_unlock(&home->of->lock);
}
void pages_free(struct pages *p)
{
	while (p->shelf) {
		struct shelf *s = p->shelf;
		p->shelf = s->next;
		free(s);
	}
	while (p->slab) {
		struct slab *s = p->slab;
		p->slab = s->next;
		free(s);
	}
	p->taken = 0;
	pthread_mutex_destroy(&p->lock);
}
