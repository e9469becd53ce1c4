/* SPDX-License-Identifier: MIT
 * udiff.c - see udiff.h. What both lists begin and end with is set aside. For the rest, paths of d edits are followed
 * for d = 0, 1, ... until one reaches the end (Myers 1986): reach[k] is the furthest line of a on the diagonal k =
 * line of a - line of b. The reaches of each d are kept, to walk back on. Lists that take more than EDITS_MAX edits
 * are reported as one replaced by the other. */
#include <stdlib.h>
#include <string.h>
#include "msg.h"
#include "udiff.h"

enum { EDITS_MAX = 2000, CONTEXT = 3 };

/* Edits in order: '=', '-' (a line of a), '+' (a line of b). */
struct script { char *op; size_t n; };

static bool same(struct ggu_str x, struct ggu_str y) { return x.n == y.n && !memcmp(x.p, y.p, x.n); }
static void *room(size_t n, size_t size)
{
	return msg_need(calloc(n + 1, size));
}

/* How far a path with d edits gets on diagonal k before it follows lines that are the same. before: the reaches for d -
 * 1, centred. */
static long enter(const long *before, long d, long k)
{
	if (k == -d || (k != d && before[k - 1] < before[k + 1])) return before[k + 1];
	return before[k - 1] + 1;
}

/* reach[d][d + k], up to the least d that reaches the end; *d_end. False: it would take more than EDITS_MAX. */
static bool follow(const struct ggu_str *a, long n, const struct ggu_str *b, long m, long **reach, long *d_end)
{
	for (long d = 0; d <= EDITS_MAX; d++) {
		reach[d] = room((size_t)(2*d + 3), sizeof **reach);
		/* centred, with a place on either side */
		long *now = reach[d] + d + 1, *before = d ? reach[d - 1] + d : NULL;
		for (long k = -d; k <= d; k += 2) {
			long x = d ? enter(before, d, k) : 0;
			while (x < n && x - k < m && same(a[x], b[x - k])) x++;
			now[k] = x;
			if (x < n || x - k < m) continue;
			*d_end = d;
			return true;
		}
	}
	return false;
}

/* The edits of a path, from its end. */
static void walk_back(long **reach, long d, long n, long m, char *op, size_t end)
{
	long x = n, y = m;
	for (; d > 0; d--) {
		const long *before = reach[d - 1] + d;
		long k = x - y, at = enter(before, d, k);
		bool down = k == -d || (k != d && before[k - 1] < before[k + 1]);
		for (; x > at; x--, y--) op[--end] = '=';
		op[--end] = down ? '+' : '-';
		if (down) y--;
		else x--;
	}
	while (end) op[--end] = '=';
}

static struct script script(const struct ggu_str *a, size_t n, const struct ggu_str *b, size_t m)
{
	struct script s = { room(n + m, 1), 0 };
	size_t head = 0, tail = 0, middle;
	long **reach = room(EDITS_MAX + 1, sizeof *reach), d;
	while (head < n && head < m && same(a[head], b[head])) head++;
	while (tail < n - head && tail < m - head && same(a[n - 1 - tail], b[m - 1 - tail])) tail++;
	n -= head + tail;
	m -= head + tail;
	memset(s.op, '=', head);
	if (follow(a + head, (long)n, b + head, (long)m, reach, &d)) {
		middle = (n + m + (size_t)d)/2;         /* a line that stays counts on both sides */
		walk_back(reach, d, (long)n, (long)m, s.op + head, middle);
	} else {
		middle = n + m;
		memset(s.op + head, '-', n);
		memset(s.op + head + n, '+', m);
	}
	memset(s.op + head + middle, '=', tail);
	s.n = head + middle + tail;
	for (size_t i = 0; i <= EDITS_MAX; i++) free(reach[i]);
	free(reach);
	return s;
}

/* A hunk ends before lines that stay, if they are more than twice the context. */
static size_t hunk_end(const struct script *s, size_t from)
{
	size_t last = from;
	for (size_t i = from; i < s->n && i - last <= 2*CONTEXT; i++) if (s->op[i] != '=') last = i;
	return last + 1 + CONTEXT < s->n ? last + 1 + CONTEXT : s->n;
}

static void print_hunk(const struct script *s, size_t from, size_t to, const struct ggu_str *a, size_t x,
	const struct ggu_str *b, size_t y)
{
	size_t n = 0, m = 0;
	for (size_t i = from; i < to; i++) {
		n += s->op[i] != '+';
		m += s->op[i] != '-';
	}
	printf("@@ -%zu,%zu +%zu,%zu @@\n", x + (n > 0), n, y + (m > 0), m);
	for (size_t i = from; i < to; i++) {
		struct ggu_str line = s->op[i] == '+' ? b[y] : a[x];
		char *text = text_mask(line.p, line.n);
		printf("%c%s\n", s->op[i] == '=' ? ' ' : s->op[i], text);
		free(text);
		x += s->op[i] != '+';
		y += s->op[i] != '-';
	}
}

void udiff_print(const struct ggu_str *a, size_t n, const struct ggu_str *b, size_t m)
{
	struct script s = script(a, n, b, m);
	size_t x = 0, y = 0;            /* lines before op i */
	for (size_t i = 0; i < s.n; i++) {
		if (s.op[i] == '=') {
			x++;
			y++;
			continue;
		}
		/* op i is the first edit after lines that stay */
		size_t back = x < CONTEXT || y < CONTEXT ? (x < y ? x : y) : CONTEXT, to = hunk_end(&s, i);
		size_t same_before = 0;
		while (same_before < back && i > same_before && s.op[i - 1 - same_before] == '=') same_before++;
		print_hunk(&s, i - same_before, to, a, x - same_before, b, y - same_before);
		for (; i < to; i++) {
			x += s.op[i] != '+';
			y += s.op[i] != '-';
		}
		i--;
	}
	free(s.op);
}
