/* SPDX-License-Identifier: MIT
 * replay.c - runs a fuzz target on the files named as arguments, and on each of them cut short in 64 places, without
 * a fuzzer. The bytes lie in a block of their exact size, so that a sanitizer sees a read past the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"

static void once(const uint8_t *p, size_t n)
{
	uint8_t *exact = malloc(n ? n : 1);

	if (!exact)
		abort();
	if (n)
		memcpy(exact, p, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
}

int main(int argc, char **argv)
{
	enum { MAX = 1 << 24, CUTS = 64 };
	uint8_t *p = malloc(MAX);

	for (int i = 1; p && i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t n = f ? fread(p, 1, MAX, f) : 0;
		if (!f) {
			perror(argv[i]);
			return 2;
		}
		fclose(f);
		for (size_t k = 0; k < CUTS; k++)
			once(p, n*k/CUTS);
		once(p, n);
	}
	free(p);
	return p ? 0 : 2;
}
