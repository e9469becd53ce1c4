/* SPDX-License-Identifier: MIT
 * normal_form.c - see normal_form.h. Characters are taken apart, marks sorted by class, and utf8proc composes. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "../../libgguf/try.h"
#include "normal_form.h"

struct points {
	utf8proc_int32_t *p;
	size_t n, room;
};
enum { LONGEST = 32 };          /* no character is taken apart into more, by far */

static enum ggu_status take_apart(const char *t, size_t n, int form, struct points *to, struct ggu_error *err)
{
	int bound = 0;
	for (size_t i = 0; i < n; ) {
		utf8proc_int32_t c, *more;
		i += (size_t)utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		if (to->room - to->n < LONGEST + 1) {
			size_t room = to->room ? to->room + to->room/2 : n - i + 2*LONGEST;
			more = room <= SIZE_MAX/sizeof *more ? realloc(to->p, room*sizeof *more) : NULL;
			if (!more) return ggu_no_memory(err);
			to->p = more;
			to->room = room;
		}
		to->n += (size_t)utf8proc_decompose_char(c, to->p + to->n, LONGEST, (utf8proc_option_t)form, &bound);
	}
	return GGU_OK;
}

static unsigned class_of(utf8proc_int32_t c)
{
	return (unsigned)utf8proc_get_property(c)->combining_class;
}

/* Sorts marks by class; within a class they keep their order. spare has room for n. */
static void sort_marks(utf8proc_int32_t *p, size_t n, utf8proc_int32_t *spare)
{
	size_t at[257] = { 0 };
	for (size_t k = 0; k < n; k++) at[class_of(p[k]) + 1]++;
	for (size_t c = 1; c < 257; c++) at[c] += at[c - 1];
	for (size_t k = 0; k < n; k++) spare[at[class_of(p[k])]++] = p[k];
	memcpy(p, spare, n*sizeof *p);
}

static enum ggu_status sort_all(struct points *a, struct ggu_error *err)
{
	utf8proc_int32_t *spare = NULL;
	for (size_t from = 0, to; from < a->n; from = to) {
		bool sorted = true;
		unsigned last = class_of(a->p[from]), c;
		to = from + 1;
		if (!last) continue;
		for (; to < a->n; to++, last = c) {
			c = class_of(a->p[to]);
			if (!c) break;
			if (c < last) sorted = false;
		}
		if (sorted) continue;
		if (!spare) spare = malloc((a->n - from)*sizeof *spare);
		if (!spare) return ggu_no_memory(err);
		sort_marks(a->p + from, to - from, spare);
	}
	free(spare);
	return GGU_OK;
}

enum ggu_status normal_form(const char *t, size_t n, int form, char **out, size_t *out_n, struct ggu_error *err)
{
	struct points a = { 0 };
	enum ggu_status s = take_apart(t, n, form, &a, err);
	if (!s) s = sort_all(&a, err);
	if (s) {
		free(a.p);
		return s;
	}
	/* in place: a character's UTF-8 takes no more bytes than its code point in a.p */
	*out_n = (size_t)utf8proc_reencode(a.p, (utf8proc_ssize_t)a.n, (utf8proc_option_t)form);
	*out = (char *)a.p;
	return GGU_OK;
}
