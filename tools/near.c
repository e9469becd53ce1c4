/* SPDX-License-Identifier: MIT
 * near.c - see near.h. Names are compared by their letters and digits alone, in lower case, so that "q4km" is Q4_K_M. A
 * slip is a character that is missing, added, replaced or swapped with the next; one in four is forgiven. Source:
 * optimal string alignment, Boytsov, "Indexing methods for approximate dictionary searching", 2011. */
#include <ctype.h>
#include <stdio.h>
#include "../libgguf/size.h"
#include "near.h"

enum { MOST = 40 };

static size_t folded(const char *s, char to[MOST])
{
	size_t n = 0;
	for (; *s && n < MOST; s++) if (isalnum((unsigned char)*s)) to[n++] = (char)tolower((unsigned char)*s);
	return n;
}

/* d[i][k]: slips between the first i characters of a and the first k of b. */
static size_t slips(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t d[MOST + 1][MOST + 1];
	for (size_t i = 0; i <= n_a; i++)
		for (size_t k = 0; k <= n_b; k++) {
			if (!i || !k) {
				d[i][k] = i + k;
				continue;
			}
			d[i][k] = size_least(d[i - 1][k - 1] + (a[i - 1] != b[k - 1]),
				size_least(d[i - 1][k], d[i][k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				d[i][k] = size_least(d[i][k], d[i - 2][k - 2] + 1);
		}
	return d[n_a][n_b];
}

void near_try(struct near *n, const char *name)
{
	char a[MOST], b[MOST];
	size_t n_a = folded(n->asked, a), n_b = folded(name, b), s;
	if (n_a == MOST || n_b == MOST) return;
	s = slips(a, n_a, b, n_b);
	if (s > n_a/4 || (n->slips && s + 1 > n->slips)) return;
	n->best = n->slips == s + 1 ? NULL : name;
	n->slips = s + 1;
}

const char *near_hint(const struct near *n, const char *before, char hint[NEAR_BYTES])
{
	*hint = 0;
	if (n->best) snprintf(hint, NEAR_BYTES, "; did you mean %s%s?", before, n->best);
	return hint;
}
