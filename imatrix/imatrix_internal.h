/* SPDX-License-Identifier: MIT
 * imatrix_internal.h - what imatrix.c (memory) and imatrix_file.c (files) share. */
#ifndef IMATRIX_INTERNAL_H
#define IMATRIX_INTERNAL_H
#include "imatrix.h"

struct entry {
	struct imatrix_entry pub;
	char *name;
	double *sums, *counts;          /* what pub points at */
};
struct imatrix {
	struct entry **v;               /* [n], sorted by name */
	size_t n;
	char **datasets;
	size_t n_datasets;
	uint64_t chunks, chunk_tokens;
	char *tag;                      /* NULL: none */
};
/* The entry of that name, made if there is none; its shape must be this one. */
enum ggu_status imatrix_entry(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out, struct ggu_error *err);

#endif
