/* SPDX-License-Identifier: MIT
 * imatrix_internal.h - what imatrix.c and covariance.c (memory), imatrix_gguf.c and imatrix_dat.c (file forms) and
 * imatrix_file.c (which form) share. */
#ifndef IMATRIX_INTERNAL_H
#define IMATRIX_INTERNAL_H
#include <pthread.h>
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
	/* [n_mat][n_in]: rounding errors of the sums, less than half their last digit */
	double *rest;
	struct covariance *cov;         /* NULL: none; may be shared with other entries */
};
/* Tokens that are not summed yet: x[n][n_in], with room for cap. seen: tokens of the window, used or not. root: that of
 * imatrix_sample when the window began. */
struct waiting { float *x; size_t n, cap, seen; bool begins; float root; };
/* The sum of x xT of the inputs of one or several weights, named after the first. */
struct covariance {
	char *name;
	size_t n_in, n_mat, block;
	float *sums;                    /* [n_mat][covariance_floats]; NULL: they are in `tensor` of the file */
	double *counts;                 /* [n_mat] */
	const struct ggu_tensor *tensor;
	struct waiting *waiting;        /* [n_mat], or NULL */
};
struct covariance_call { struct covariance *of; size_t n_in, n_tokens, n_mat, mat; uint64_t hash; };
struct imatrix {
	pthread_mutex_t lock;           /* of v and n in imatrix_add */
	struct entry **v;               /* [n], sorted by name */
	size_t n;
	char **datasets;
	size_t n_datasets;
	struct ggu_index dataset_index;
	uint64_t chunks, chunk_tokens;
	bool counts_windows;
	char *tag;                      /* NULL: none */
	struct covariance **cov;        /* [n_cov] */
	size_t n_cov;
	size_t every;                   /* imatrix_sample; 0 is 1 */
	float root, first_root;
	struct gram_room room;
	struct covariance_call before;  /* the previous call of imatrix_add_covariance */
	struct ggu_file *file;          /* has covariances that are read when needed; NULL: none */
	char *bytes;                    /* the contents of file, if it is in memory */
};
/* Finds or creates the entry of that name; it must have this shape. */
enum ggu_status imatrix_entry(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out,
	struct ggu_error *err);
/* Creates one at the end of v, for when there are many: inserting each at its place would take quadratic time. Nothing
 * can be found until imatrix_settle sorts v; that returns the second of two entries with the same name, or NULL. */
enum ggu_status imatrix_append(struct imatrix *im, const char *name, size_t n_in, size_t n_mat, struct entry **out,
	struct ggu_error *err);
const struct entry *imatrix_settle(struct imatrix *im);
struct entry *imatrix_entry_find(const struct imatrix *im, const char *name);           /* NULL: none */
/* Does the weight have such a matrix? */
enum ggu_status imatrix_check_input(const struct quant_input *in, struct ggu_error *err);
/* *sum + *rest += x with twice the digits of a double, so that the sums of parts add up to the sum of the whole
 * whatever the parts are. Source: Knuth, TAOCP 2, 4.2.2, theorem B; Dekker 1971. */
static inline void imatrix_sum(double *sum, double *rest, double x)
{
	double s = *sum + x, b = s - *sum, e = (*sum - (s - b)) + (x - b) + *rest;
	*sum = s + e;
	*rest = e - (*sum - s);
}

/* The floats of a matrix; SIZE_MAX: too many to be counted. */
size_t covariance_floats(size_t n_in, size_t block);
/* of: its name, n_in, n_mat and block. empty: no memory for sums, which are in a file. */
enum ggu_status covariance_new(struct imatrix *im, const struct imatrix_covariance *of, bool empty,
	struct covariance **out, struct ggu_error *err);
void covariance_free(struct covariance *c);
struct covariance *covariance_find(const struct imatrix *im, const char *name);
/* Adds the covariances of src, whose entries im already has. */
enum ggu_status covariance_merge(struct imatrix *im, const struct imatrix *src, struct ggu_error *err);

/* Reads a file into an empty matrix. f is im->file: covariances stay there until they are needed. */
enum ggu_status imatrix_read_gguf(struct imatrix *im, struct ggu_file *f, struct ggu_error *err);
/* GGU_ERR_TYPE if f says that it is something else. */
enum ggu_status imatrix_check_type(const struct ggu_file *f, struct ggu_error *err);
/* Reads the old form from w, of which at most four bytes were read. bytes: its size; UINT64_MAX: unknown. */
enum ggu_status imatrix_read_dat(struct imatrix *im, struct whole *w, uint64_t bytes, struct ggu_error *err);

#endif
