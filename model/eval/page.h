/* SPDX-License-Identifier: MIT
 * page.h - a model's supply of pages of keys and values, with reference counts, for reuse. Private to model/eval.
 *
 * Pages are cut from slabs that grow with what is in use, so that a long sequence is in large pages of memory. A page
 * that nobody holds waits for the next sequence; slabs are freed with the model. Several threads may take and drop
 * pages, each those of its own states. */
#ifndef MODEL_EVAL_PAGE_H
#define MODEL_EVAL_PAGE_H
#include <pthread.h>
#include <stddef.h>

/* The pages of one size that nobody holds. */
struct shelf { struct shelf *next; struct pages *of; size_t size; struct page *idle; };
/* Each holder counts in refs. */
struct page { struct shelf *home; struct page *next; size_t refs; _Alignas(64) char bytes[]; };
struct slab;
/* A supply of pages. taken: bytes of all slabs */
struct pages { pthread_mutex_t lock; struct shelf *shelf; struct slab *slab; size_t taken; };

void pages_init(struct pages *p);

/* A page of `size` zeros with one holder; NULL: out of memory. */
struct page *page_new(struct pages *p, size_t size);
/* Gives up one hold; the last one makes the page idle. */
void page_drop(struct page *p);
/* The bytes of the last large page of memory that n pages of `size` leave unused. */
double pages_slack(size_t size, double n);
void pages_free(struct pages *p);        /* p must be made anew before it is used again */

#endif
