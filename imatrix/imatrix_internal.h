/* SPDX-License-Identifier: MIT
 * imatrix_internal.h - what imatrix.c and covariance.c (memory), imatrix_gguf.c and imatrix_dat.c (forms of files) and
 * imatrix_file.c (which of them) share. */
#ifndef IMATRIX_INTERNAL_H
#define IMATRIX_INTERNAL_H
#include "../libgguf/index.h"
#include "../libgguf/pool.h"
#include "../libgguf/whole.h"
#include "../quant/gram.h"
#include "imatrix.h"

struct entry {
	struct imatrix_entry pub;
	char *name;
	uint64_t at;                    /* byte of the name in its file */
	double *sums, *counts;          /* what pub points at */
	/* [n_mat][n_in]: what rounding took from the sums, less than half their last digit */
	double *rest;
	struct covariance *cov;         /* NULL: none; perhaps that of another entry */
};
/* Tokens that are not summed yet: x[n][n_in], with room for cap. seen: of the window, taken or not. root: as
 * imatrix_sample had it when the window began. */
struct waiting { float *x; size_t n, cap, seen; bool begins; float root; };
/* The sum of x xT of the inputs of one weight, after which it is named, or of several. */
struct covariance {
	char *name;
	size_t n_in, n_mat, block;
	float *sums;                    /* [n_mat][covariance_floats], or NULL: in tensor of the matrix's file */
	double *counts;                 /* [n_mat] */
	const struct ggu_tensor *tensor;
	struct waiting *waiting;        /* [n_mat], or NULL */
};
struct covariance_call { struct covariance *of; size_t n_in, n_tokens, n_mat, mat; uint64_t hash; };
struct imatrix {
	struct entry **v;               /* [n], sorted by name */
	size_t n;
	char **datasets;
	size_t n_datasets;
	struct ggu_index dataset_index;
	uint64_t chunks, chunk_tokens;
	char *tag;                      /* NULL: none */
	struct covariance **cov;        /* [n_cov] */
	size_t n_cov;
	size_t every;                   /* imatrix_sample; 0 is 1 */
	float root, first_root;
	struct gram_room room;
	struct covariance_call before;  /* the call of imatrix_add_covariance before this */
	struct ggu_file *file;          /* of covariances that are read when they are wanted; NULL: none */
	char *bytes;                    /* what file is in, if that is memory */
};
/* The entry of that name, made if there is none; its shape must be this one. */
enum ggu_status imatrix_entry(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out,
	struct ggu_error *err);
/* A new one at the end of v. For many of them: putting each in its place would take the square of their number.
 * Nothing is found from then on, until imatrix_settle sorts v; that gives the second of two of one name, or NULL. */
enum ggu_status imatrix_append(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out,
	struct ggu_error *err);
const struct entry *imatrix_settle(struct imatrix *im);
struct entry *imatrix_entry_find(const struct imatrix *im, const char *name);           /* NULL: none */
/* *sum + *rest += x to twice the digits of double, so that sums of parts add up to the sum of the whole whatever the
 * parts were. Source: Knuth, TAOCP 2, 4.2.2, theorem B; Dekker 1971. */
static inline void imatrix_sum(double *sum, double *rest, double x)
{
	double s = *sum + x, b = s - *sum, e = (*sum - (s - b)) + (x - b) + *rest;
	*sum = s + e;
	*rest = e - (*sum - s);
}

/* Of a matrix, SIZE_MAX if they are too many to be counted. */
size_t covariance_floats(size_t n_in, size_t block);
/* Without sums if `empty`: they are in a file. */
enum ggu_status covariance_new(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, size_t block,
	bool empty, struct covariance **out, struct ggu_error *err);
void covariance_free(struct covariance *c);
struct covariance *covariance_find(const struct imatrix *im, const char *name);
/* Adds those of src, whose entries im has already. */
enum ggu_status covariance_merge(struct imatrix *im, const struct imatrix *src, struct ggu_error *err);

/* All of a file into an empty matrix. f is im->file: covariances stay there until they are wanted. */
enum ggu_status imatrix_read_gguf(struct imatrix *im, struct ggu_file *f, struct ggu_error *err);
/* GGU_ERR_TYPE if f says that it is something else. */
enum ggu_status imatrix_check_type(const struct ggu_file *f, struct ggu_error *err);
/* The old form from w, of which four bytes at most were read, and which has `bytes` in all, or UINT64_MAX. */
enum ggu_status imatrix_read_dat(struct imatrix *im, struct whole *w, uint64_t bytes, struct ggu_error *err);

#endif
