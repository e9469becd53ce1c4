/* SPDX-License-Identifier: MIT
 * kv_diff.c - see kv_diff.h. Long strings and arrays are shown as diff -u would show their lines or items (udiff.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kv_diff.h"
#include "kv_json.h"
#include "kv_text.h"
#include "msg.h"
#include "udiff.h"

static bool same_item(const struct ggu_kv *a, const struct ggu_kv *b, size_t i);
bool kv_same(const struct ggu_kv *a, const struct ggu_kv *b)
{
	if (ggu_kv_type(a) != ggu_kv_type(b) || ggu_kv_item_type(a) != ggu_kv_item_type(b) ||
		ggu_kv_n(a) != ggu_kv_n(b))
		return false;
	for (size_t i = 0; i < ggu_kv_n(a); i++) if (!same_item(a, b, i)) return false;
	return true;
}
/* Items of one type. Numbers are compared by their bytes: as doubles, some NaNs would become others. */
static bool same_item(const struct ggu_kv *a, const struct ggu_kv *b, size_t i)
{
	const size_t width = ggu_kv_type_bytes(ggu_kv_item_type(a));
	struct ggu_str s, t;
	if (ggu_kv_item_type(a) == GGU_ARRAY) return kv_same(ggu_kv_sub(a, i), ggu_kv_sub(b, i));
	if (ggu_kv_str(a, i, &s)) return ggu_kv_str(b, i, &t) && s.n == t.n && !memcmp(s.p, t.p, s.n);
	return !memcmp((const char *)ggu_kv_data(a) + i*width, (const char *)ggu_kv_data(b) + i*width, width);
}

char *kv_side_text(const struct ggu_kv *kv, const struct ggu_kv *other)
{
	enum { SHOWN = 48 };
	struct ggu_str x, y;
	char *v, *s;
	size_t at = 0, room;
	if (!kv) return msg_need(strdup("absent"));
	v = kv_text(kv, SHOWN);
	room = strlen(v) + 96;
	s = msg_need(malloc(room));
	snprintf(s, room, "%s (%s)", v, kv_type_text(kv));
	if (other && ggu_kv_type(kv) == GGU_ARRAY && ggu_kv_type(other) == GGU_ARRAY &&
		ggu_kv_item_type(kv) == ggu_kv_item_type(other)) {
		while (at < ggu_kv_n(kv) && at < ggu_kv_n(other) && same_item(kv, other, at)) at++;
		snprintf(s, room, "%s (%s of %zu, from item %zu on)", v, kv_type_text(kv), ggu_kv_n(kv), at);
	} else if (other && ggu_kv_type(kv) == GGU_STRING && ggu_kv_type(other) == GGU_STRING
		&& ggu_kv_str(kv, 0, &x) && ggu_kv_str(other, 0, &y)) {
		while (at < x.n && at < y.n && x.p[at] == y.p[at]) at++;
		if (at >= SHOWN) snprintf(s, room, "%s (%s, from byte %zu on)", v, kv_type_text(kv), at);
	}
	free(v);
	return s;
}

/* A copy that the caller frees. The bytes may contain NUL. */
static char *copy_of(const char *p, size_t n)
{
	char *copy = msg_need(malloc(n + 1));
	memcpy(copy, p, n);
	return copy;
}
/* The lines of a string, or the items of an array; *n of them, each in its own memory. */
static struct ggu_str *lines_of(const struct ggu_kv *kv, size_t *n)
{
	struct ggu_str text = { "", 0 }, *line;
	*n = ggu_kv_n(kv);
	if (ggu_kv_type(kv) == GGU_STRING) {
		ggu_kv_str(kv, 0, &text);
		*n = text.n > 0;
		for (size_t i = 0; i + 1 < text.n; i++) *n += text.p[i] == '\n';
	}
	line = msg_need(calloc(*n + 1, sizeof *line));
	for (size_t i = 0; i < *n; i++) {
		const char *end;
		char *copy;
		if (ggu_kv_type(kv) == GGU_ARRAY) {
			if (ggu_kv_str(kv, i, &line[i])) copy = copy_of(line[i].p, line[i].n);
			else copy = kv_item_text(kv, i);
			if (ggu_kv_item_type(kv) != GGU_STRING) line[i].n = strlen(copy);
			line[i].p = copy;
			continue;
		}
		end = memchr(text.p, '\n', text.n);
		line[i].n = end ? (size_t)(end - text.p) : text.n;
		line[i].p = copy_of(text.p, line[i].n);
		text.p += line[i].n + (end != NULL);
		text.n -= line[i].n + (end != NULL);
	}
	return line;
}
static void free_lines(struct ggu_str *line, size_t n)
{
	for (size_t i = 0; i < n; i++) free((char *)(uintptr_t)line[i].p);
	free(line);
}
void kv_print_unified(const struct ggu_kv *a, const struct ggu_kv *b)
{
	struct ggu_str *x, *y;
	size_t n, m;
	if (ggu_kv_type(a) != ggu_kv_type(b) || ggu_kv_item_type(a) != ggu_kv_item_type(b)) return;
	if (ggu_kv_type(a) != GGU_STRING && ggu_kv_type(a) != GGU_ARRAY) return;
	x = lines_of(a, &n);
	y = lines_of(b, &m);
	udiff_print(x, n, y, m);
	free_lines(x, n);
	free_lines(y, m);
}
