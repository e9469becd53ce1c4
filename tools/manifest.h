/* SPDX-License-Identifier: MIT
 * manifest.h - lists of digests as gguf-hash and llama-gguf-hash write them. Programs only.
 *
 *   sha256    7dd641b3...  model.gguf:blk.0.attn_q.weight
 *   sha256    15be52c4...  model.gguf
 *
 * A line is algorithm, digest and name, with blanks between, at most two of them before the name. A name is that of a
 * file, or of a file and a tensor with a colon between: a file's name is what has a line of its own, else what ends in
 * the first ".gguf:". As with sha256sum(1), a line that begins with a backslash has a name in which \n, \r and \\ stand
 * for a line feed, a carriage return and a backslash. Other lines are passed over with a warning. */
#ifndef TOOLS_MANIFEST_H
#define TOOLS_MANIFEST_H
#include "digest.h"

struct manifest_entry {
	enum digest_kind kind;
	const char *digest;             /* lower case */
	const char *file;
	const char *tensor;             /* NULL: of the whole file */
	bool seen;                      /* the caller's */
};
struct manifest { char *text; struct manifest_entry *entry; size_t n; };
/* Reads all of it, "-" from standard input; exits 2 with a message. Entries are sorted by file, tensor, kind. */
struct manifest *manifest_read(const char *path);
void manifest_free(struct manifest *m);
/* The entries of one file: *n of them from the one returned on. The file is found by its name, or else by the part of
 * both names after the last slash. NULL: none. */
struct manifest_entry *manifest_file(struct manifest *m, const char *file, size_t *n);
/* Of those, the ones of a tensor (NULL: the whole), *n_found of them, as a line may be there twice; NULL: none. */
struct manifest_entry *manifest_find(struct manifest_entry *of_file, size_t n, const char *tensor, enum digest_kind k,
	size_t *n_found);
/* A digest's line on standard output: escaped, and masked for a terminal. tensor may be NULL. */
void manifest_print(enum digest_kind k, const char *digest, const char *file, const char *tensor);
/* Only the name of such a line, followed by `what`: "m.gguf:output.weight: OK". */
void manifest_print_name(const char *file, const char *tensor, const char *what);

#endif
