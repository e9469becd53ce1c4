/* SPDX-License-Identifier: MIT
 * imatrix.h - importance matrices: for each weight, the sum of squares of its input columns.
 *
 * An entry is named after the weight ("blk.0.ffn_down.weight") and has n_mat matrices (experts; 1 for dense weights) of
 * n_in columns: sums[mat][col] = sum over tokens of x^2, counts[mat] = tokens seen. Each column is summed in the order
 * of the tokens with twice the digits of a double, so neither batch size nor threads change it, and the sums of parts
 * of a text add up to that of the whole.
 *
 * File forms: GGUF (NAME.in_sum2, NAME.counts, imatrix.*; llama.cpp #9400, #14842) and the old .dat. */
#ifndef IMATRIX_H
#define IMATRIX_H
#include "../libgguf/pool.h"
#include "../quant/input.h"

struct imatrix;
struct imatrix_entry {
	const char *name;
	size_t n_in, n_mat;
	const double *sums;             /* [n_mat][n_in] */
	const double *counts;           /* [n_mat]; whole numbers */
};

struct imatrix *imatrix_new(void);                      /* NULL: out of memory */
void imatrix_free(struct imatrix *im);
size_t imatrix_count(const struct imatrix *im);
const struct imatrix_entry *imatrix_at(const struct imatrix *im, size_t i);             /* sorted by name */
const struct imatrix_entry *imatrix_find(const struct imatrix *im, const char *name);   /* NULL: none */
/* importance[n_in] = sums/counts of matrix `mat`; 1.0 everywhere if its count is 0, and false. */
bool imatrix_importance(const struct imatrix_entry *e, size_t mat, float *importance);
/* The matrix in the form that encoders of whole models take. */
struct ggu_importance imatrix_importances(const struct imatrix *im);

/* Adds the tokens in order. The first call for a weight creates its entry. pool may be NULL; it divides columns.
 * GGU_ERR_FORMAT with the weight's name: a value is not finite, and nothing of the call is kept. Several threads may
 * add to different entries at the same time. */
enum ggu_status imatrix_add(struct imatrix *im, const struct quant_input *in, struct ggu_pool *pool,
	struct ggu_error *err);

/* ---- covariances ---- */

/* The sum of x xT over tokens for the inputs x of one or several weights, in float, for each matrix: packed lower
 * triangles ([0][0], [1][0], [1][1], ...) of blocks of `block` columns on the diagonal, the last one smaller. */
struct imatrix_covariance {
	const char *name;               /* the weight whose inputs they are; others may share them */
	size_t n_in, n_mat, block, n_floats;    /* n_floats: of a matrix */
	const double *counts;           /* [n_mat]: tokens that were used, with their weight */
};
/* As imatrix_add, which is called before it for the same input; a call for the same input as the one before it makes
 * the two weights share one covariance. Sums are made for 256 tokens at a time; fewer are copied and wait. */
enum ggu_status imatrix_add_covariance(struct imatrix *im, const struct quant_input *in, size_t block,
	struct ggu_pool *pool, struct ggu_error *err);
/* Covariances use one of `every` tokens of a window, beginning with the first. It counts root*root times, the first one
 * first_root*first_root times as much. The default is (1, 1, 1). To be called between windows, or, if only root
 * changes, between weights: the window of a weight has the root of its first token. */
void imatrix_sample(struct imatrix *im, size_t every, float root, float first_root);
/* by[n]: the factors of tokens' inputs, rows of n_in floats, in covariances: (m/s)^(1/4), at most ten, where s is a
 * token's sum of squares and m the median one, so that a token counts by its size and not by its square. What a
 * weight's output adds to the residual stream is read after a norm, so its share of the stream counts; and the few
 * tokens on which a model keeps its attention (sinks) may have inputs a thousand times as large. Computed for 256
 * tokens at a time. */
void imatrix_moderate(const float *x, size_t stride, size_t n_in, size_t n, float *by);
/* The end of a window: sums the tokens that are waiting. To be called before anything is read, written or merged. */
enum ggu_status imatrix_flush(struct imatrix *im, struct ggu_pool *pool, struct ggu_error *err);
size_t imatrix_n_covariances(const struct imatrix *im);
bool imatrix_has_covariance(const struct imatrix *im, const char *name, struct imatrix_covariance *of);
/* The mean of x xT of matrix `mat` for the weight `name`, n_floats numbers. GGU_ERR_MISSING: no token was seen. */
enum ggu_status imatrix_covariance(const struct imatrix *im, const char *name, size_t mat, float *mean,
	struct ggu_error *err);

/* ---- the matrix as a whole ---- */

/* Provenance. Only the base name of a dataset is kept, also when files are read, so that no path of anybody's machine
 * is passed on. A name that is there already is not added again. */
enum ggu_status imatrix_add_dataset(struct imatrix *im, const char *name);
size_t imatrix_n_datasets(const struct imatrix *im);
const char *imatrix_dataset(const struct imatrix *im, size_t i);
uint64_t imatrix_chunks(const struct imatrix *im);
void imatrix_set_chunks(struct imatrix *im, uint64_t n_chunks, uint64_t chunk_tokens);
uint64_t imatrix_chunk_tokens(const struct imatrix *im);

/* Adds all of src. Shapes must agree, except that n_mat matrices of n_in columns may be one of n_in*n_mat columns in
 * some of the parts (the old form has nothing else); each of them is then taken to have seen all its tokens. */
enum ggu_status imatrix_merge(struct imatrix *im, const struct imatrix *src, struct ggu_error *err);

/* Does the matrix count windows, not tokens, as files of the old form do? */
bool imatrix_counts_windows(const struct imatrix *im);
/* Multiplies sums and counts. Scaled by the tokens of a window, a matrix that counts windows counts tokens and can be
 * merged with others. */
void imatrix_scale(struct imatrix *im, double by);

/* Either form, distinguished by its first bytes; "-" is standard input. */
enum ggu_status imatrix_read(struct imatrix **im, const char *path, struct ggu_error *err);
enum ggu_status imatrix_write_gguf(const struct imatrix *im, int fd, struct ggu_error *err);
/* As imatrix_write_gguf, with sums in F64: imatrix_read returns exactly this matrix. tag identifies the run that the
 * checkpoint belongs to; imatrix_tag returns the tag of a matrix that was read ("" for other files). */
enum ggu_status imatrix_write_checkpoint(const struct imatrix *im, const char *tag, int fd, struct ggu_error *err);
const char *imatrix_tag(const struct imatrix *im);
/* The size of what imatrix_write_checkpoint would write with this tag; tag NULL: imatrix_write_gguf. */
enum ggu_status imatrix_bytes(const struct imatrix *im, const char *tag, uint64_t *bytes, struct ggu_error *err);
enum ggu_status imatrix_write_dat(const struct imatrix *im, int fd, struct ggu_error *err);

#endif
