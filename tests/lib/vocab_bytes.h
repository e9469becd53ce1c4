/* SPDX-License-Identifier: MIT
 * vocab_bytes.h - the vocabulary of a folder with one file, for tests. The including file makes `dir` with
 * scratch_folder and removes it at the end. */
#ifndef TESTS_VOCAB_BYTES_H
#define TESTS_VOCAB_BYTES_H
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../../model/vocab/vocab.h"
#include "scratch.h"

/* how a tokenizer.json says that its characters stand for bytes */
#define BYTES "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}," \
	"\"decoder\":{\"type\":\"ByteLevel\"}"

static char dir[SCRATCH_PATH];

static inline enum ggu_status load_bytes(struct vocab **v, const char *name, const void *p, size_t n,
	struct ggu_error *err)
{
	struct vocab_hints h = { .n_vocab = -1 };
	char path[SCRATCH_FILE];
	enum ggu_status s;
	FILE *f;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
	*v = NULL;
	s = vocab_from_dir(v, dir, &h, err);
	unlink(path);
	return s;
}
static inline enum ggu_status load(struct vocab **v, const char *json, struct ggu_error *err)
{
	return load_bytes(v, "tokenizer.json", json, strlen(json), err);
}

#endif
