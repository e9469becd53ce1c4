/* SPDX-License-Identifier: MIT
 * tool_argmax.c - `tool_argmax ROW_LENGTH [FIRST_ROW]` reads rows of float32 and prints the index of the largest number
 * of each. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? (size_t)atol(argv[1]) : 0, row = 0, first = argc > 2 ? (size_t)atol(argv[2]) : 0;
	float *x = malloc((n + 1)*sizeof *x);
	if (!n || !x) return 2;
	for (; fread(x, sizeof *x, n, stdin) == n; row++) {
		size_t best = 0;
		for (size_t i = 1; i < n; i++) if (x[i] > x[best]) best = i;
		if (row >= first) printf("%zu\n", best);
	}
	free(x);
	return 0;
}
