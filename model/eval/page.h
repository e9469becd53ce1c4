/* SPDX-License-Identifier: MIT
 * page.h - pages of keys and values, counted and used again. Private to model/eval.
 *
 * Pages are cut from slabs that grow with what is in use, so that a long sequence lies in large pages of memory. A page
 * that nobody has any more waits for the next sequence; slabs are given back with the model. */
#ifndef MODEL_EVAL_PAGE_H
#define MODEL_EVAL_PAGE_H
#include <stddef.h>

/* Those of one size that nobody has. */
struct shelf { struct shelf *next; size_t size; struct page *idle; };
/* One more holder of a page raises refs. */
struct page { struct shelf *home; struct page *next; size_t refs; _Alignas(64) char bytes[]; };
struct slab;
struct pages { struct shelf *shelf; struct slab *slab; size_t taken; }; /* zeros: none yet; taken: bytes of all slabs */

/* `size` zeros with one holder; NULL: out of memory. */
struct page *page_new(struct pages *p, size_t size);
/* The last who lets go of it makes it idle. */
void page_drop(struct page *p);
/* n pages of `size` lie in large pages of memory, which come whole: bytes of the last one that are none of theirs. */
double pages_slack(size_t size, double n);
void pages_free(struct pages *p);

#endif
