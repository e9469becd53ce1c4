/* SPDX-License-Identifier: MIT
 * replay.c - runs a fuzz target on the files named as arguments, and on each of them cut short in 64 places, without
 * a fuzzer; if the target has its own way to change an input, on 32 others that are made of each file. With -e in front
 * of them, only on whole files, each of which must be evaluated (fuzz.h). The bytes lie in a block of their exact size,
 * so that a sanitizer sees a read past the end. */
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

/* in place of a target's own, and of the fuzzer's */
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t most, unsigned seed)
{
	(void)p; (void)n; (void)most; (void)seed;
	return 0;
}
size_t LLVMFuzzerMutate(uint8_t *p, size_t n, size_t most)
{
	(void)p; (void)most;
	return n;
}

static void changed(const uint8_t *p, size_t n, unsigned seed)
{
	size_t most = 2*n + (1 << 16);
	uint8_t *other = malloc(most);

	if (!other)
		abort();
	memcpy(other, p, n);
	n = LLVMFuzzerCustomMutator(other, n, most, seed);
	if (n)
		once(other, n);
	free(other);
}

/* Exits with 1 if an input is not evaluated, and says which. */
static int each_evaluated(char **files, uint8_t *p, size_t most)
{
	int status = 0;

	for (; *files; files++) {
		FILE *f = fopen(*files, "rb");
		size_t n = f ? fread(p, 1, most, f) : 0, before = fuzz_evaluated;
		if (f)
			fclose(f);
		once(p, n);
		if (fuzz_evaluated > before)
			continue;
		printf("%s is not evaluated\n", *files);
		status = 1;
	}
	return status;
}

int main(int argc, char **argv)
{
	enum { MAX = 1 << 24, CUTS = 64, CHANGES = 32 };
	uint8_t *p = malloc(MAX);

	if (p && argc > 1 && !strcmp(argv[1], "-e")) {
		int status = each_evaluated(argv + 2, p, MAX);
		free(p);
		return status;
	}
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
		for (unsigned k = 0; k < CHANGES; k++)
			changed(p, n, k);
	}
	free(p);
	return p ? 0 : 2;
}
