/* SPDX-License-Identifier: MIT
 * imatrix_internal.h - what imatrix.c (memory) and imatrix_file.c (files) share. */
#ifndef IMATRIX_INTERNAL_H
#define IMATRIX_INTERNAL_H
#include "../libgguf/index.h"
#include "imatrix.h"

struct entry {
	struct imatrix_entry pub;
	char *name;
	uint64_t at;                    /* byte of the name in its file */
	double *sums, *counts;          /* what pub points at */
};
struct imatrix {
	struct entry **v;               /* [n], sorted by name */
	size_t n, cap;
	char **datasets;
	size_t n_datasets, cap_datasets;
	struct ggu_index dataset_index;
	uint64_t chunks, chunk_tokens;
	char *tag;                      /* NULL: none */
};
/* The entry of that name, made if there is none; its shape must be this one. */
enum ggu_status imatrix_entry(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out, struct ggu_error *err);
/* A new one at the end of v. For many of them: putting each in its place would take the square of their number. Nothing is
 * found from then on, until imatrix_settle sorts v; that gives the second of two of one name, or NULL. */
enum ggu_status imatrix_append(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out, struct ggu_error *err);
const struct entry *imatrix_settle(struct imatrix *im);

#endif
