/* SPDX-License-Identifier: MIT
 * tool_encode TYPE COLS [SUMS COUNTS] <FLOATS >BLOCKS - encodes rows of float32 with nothing but quant/, so that a
 * machine without the programs' libraries can be asked for their bytes. SUMS and COUNTS: files with the data of a
 * matrix's in_sum2, COLS floats, and counts, one float. */
#include <stdio.h>
#include <stdlib.h>
#include "../../quant/quant.h"

static int die(const char *what)
{
	fprintf(stderr, "tool_encode: %s\n", what);
	return 2;
}
static int read_floats(const char *path, float *to, size_t n)
{
	FILE *f = fopen(path, "rb");
	size_t got = f ? fread(to, sizeof *to, n, f) : 0;
	if (f) fclose(f);
	return got == n;
}

int main(int argc, char **argv)
{
	const struct ggu_type_info *t = argc > 2 ? ggu_type_find(argv[1]) : NULL;
	size_t cols = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, bytes;
	float *x, *imp = NULL, count;
	struct quant_objective usual;
	char *blocks;
	if (!t || !cols || cols % t->block_weights || (argc != 3 && argc != 5))
		return die("usage: TYPE COLS [SUMS COUNTS]");
	bytes = cols/t->block_weights*t->block_bytes;
	x = malloc(cols*sizeof *x);
	blocks = malloc(bytes);
	if (argc == 5) imp = malloc(cols*sizeof *imp);
	if (!x || !blocks || (argc == 5 && !imp)) return die("no memory");
	if (imp && (!read_floats(argv[3], imp, cols) || !read_floats(argv[4], &count, 1)))
		return die("a matrix of another size");
	for (size_t j = 0; imp && j < cols; j++) imp[j] = (float)((double)imp[j]/(double)count);
	usual = quant_objective_default(t->id, true);
	if (imp) quant_weigh(&usual, imp, cols, imp);
	quant_select(NULL, NULL);
	while (fread(x, sizeof *x, cols, stdin) == cols) {
		quant_encode(t->id, NULL, x, imp, 1, cols, QUANT_EFFORT_DEFAULT, blocks);
		if (fwrite(blocks, 1, bytes, stdout) != bytes) return die("cannot write");
	}
	free(x); free(imp); free(blocks);
	return 0;
}
