/* SPDX-License-Identifier: MIT
 * number.c - see number.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "number.h"

char *number_text(char to[NUMBER_TEXT], double v, bool is_float)
{
	int digits = 1;
	if (!isfinite(v)) {
		snprintf(to, NUMBER_TEXT, "%s", isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity");
		return to;
	}
	if (v == floor(v) && fabs(v) < 1e15) {
		snprintf(to, NUMBER_TEXT, "%.0f", v);
		return to;
	}
	do snprintf(to, NUMBER_TEXT, "%.*g", digits, v);
	while ((is_float ? strtof(to, NULL) != (float)v : strtod(to, NULL) != v) && digits++ < 17);
	return to;
}
