/* SPDX-License-Identifier: MIT
 * tool_boxes.c - read coded weights by boxes of random places and sizes, and compare with reading each as a whole.
 *
 *   tool_boxes DIR SEED
 *
 * Prints how many weights were read and in how many of them boxes gave the same. coded.t compares the whole with floats
 * that another program computed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../convert/coded.h"

enum { BOXES = 100 };
static uint64_t state;
static uint64_t any(uint64_t n)
{
	state = state*6364136223846793005u + 1442695040888963407u;
	return (state >> 33)%n;
}
/* A part of 0..all - 1, which is small, all, or anything */
static void cut(uint64_t all, uint64_t *first, uint64_t *n)
{
	const uint64_t most = any(3) && all > 20 ? 20 : all;
	*n = any(8) ? 1 + any(most) : all;
	*first = any(all - *n + 1);
}
static bool box_is_same(const struct checkpoint *c, const struct source_tensor *t, const float *whole)
{
	const struct coded *k = t->coded;
	struct coded_box b;
	struct coded_raw *raw = NULL;
	struct coded_reader r;
	bool same = true;
	cut(t->n_weights/k->columns, &b.line, &b.n_lines);
	cut(k->columns, &b.column, &b.n_columns);
	if (coded_fetch(c, k, &b, &raw, NULL)) return false;
	coded_reader_init(&r, raw);
	for (uint64_t i = 0; i < 2*b.n_lines; i++) {
		const uint64_t line = b.line + (i < b.n_lines ? i : any(b.n_lines)), skip = any(b.n_columns);
		const uint64_t at = line*k->columns + b.column + skip;
		const size_t n = 1 + (size_t)any(b.n_columns - skip);
		float *got = malloc(n*sizeof *got);
		if (!got) return false;
		coded_compute(&r, at, got, n);
		same &= !memcmp(got, whole + at, n*sizeof *got);
		free(got);
	}
	coded_raw_free(raw);
	return same;
}

int main(int argc, char **argv)
{
	struct checkpoint *c;
	struct config config = { 0 };
	char path[1000];
	unsigned n = 0, same = 0;
	if (argc != 3) return 2;
	state = strtoull(argv[2], NULL, 10);
	snprintf(path, sizeof path, "%s/config.json", argv[1]);
	config.text = config.root = json_load_file(path, 0, NULL);
	if (!config.root || checkpoint_open(&c, argv[1], NULL) || coded_open(c, &config, NULL)) return 2;
	for (size_t i = 0; i < checkpoint_count(c); i++) {
		const struct source_tensor *t = checkpoint_at(c, i);
		float *whole = t->coded ? malloc((size_t)t->bytes) : NULL;
		bool is = true;
		if (!whole) continue;
		if (checkpoint_read(c, t, 0, whole, (size_t)t->n_weights, NULL)) return 2;
		for (int k = 0; k < BOXES; k++) is &= box_is_same(c, t, whole);
		same += is;
		n++;
		free(whole);
	}
	printf("%u %u\n", n, same);
	checkpoint_close(c);
	json_decref(config.root);
	return 0;
}
