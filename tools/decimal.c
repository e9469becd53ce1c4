/* SPDX-License-Identifier: MIT
 * decimal.c - see decimal.h. The C library converts what was found to be a number. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "decimal.h"

static size_t digits(const char *s) { return strspn(s, "0123456789"); }

bool decimal_whole(const char **at, uint64_t *v)
{
	const size_t n = digits(*at);
	if (!n) return false;
	errno = 0;
	*v = strtoull(*at, NULL, 10);
	*at += n;
	return !errno;
}

bool decimal_real(const char **at, double *v)
{
	const char *end = *at + digits(*at);
	char *stop;
	if (*end == '.') end += 1 + digits(end + 1);
	if (end - *at < 1 + (**at == '.')) return false;
	if (*end == 'e' || *end == 'E') {
		const char *power = end + 1 + (end[1] == '-' || end[1] == '+');
		if (digits(power)) end = power + digits(power);
	}
	*v = strtod(*at, &stop);
	*at = end;
	return stop == end && isfinite(*v);
}
