/* SPDX-License-Identifier: MIT
 * enc.h - private to quant/: the tables of encoders, one for each instruction set.
 *
 * enc_text.h is the one text; enc_c.c, enc_avx2.c and enc_avx512.c compile it with 4, 8 and 16 lanes. All of them write
 * the same bytes. */
#ifndef QUANT_ENC_H
#define QUANT_ENC_H
#include "../libgguf/types.h"
#include "quant.h"

/* How hard to search, and what to minimise: prior and lift of struct quant_objective. */
struct how { int row; float prior, lift; };     /* row: of a type's table of efforts, effort - 1 */
/* As quant_encode, for one type. */
typedef void enc_fn(void *dst, const float *x, const float *weights, size_t rows, size_t cols, const struct how *how);

/* Error feedback: a group of columns of up to sixteen rows; see enc_feedback.h. */
enum { FEEDBACK_ROWS = 16, FEEDBACK_PANEL = 8, FEEDBACK_GROUP = 256, FEEDBACK_WORK = 90 << 10 };
struct feedback_group {
	int rows, cols;                 /* cols: whole blocks */
	const float *x;                 /* [rows], stride floats apart */
	const float *target;            /* [rows][FEEDBACK_GROUP]: what earlier groups add to x */
	float *rest;                    /* out, [rows], stride floats apart: x - decoded */
	size_t stride;
	const float *weight;            /* [cols]: the weights of errors, for the search */
	const float *panels[FEEDBACK_GROUP/FEEDBACK_PANEL];
	void *dst;                      /* of the first row's first block; rows dst_stride bytes apart */
	size_t dst_stride;
	void *work;                     /* FEEDBACK_WORK bytes, aligned for the widest registers */
};
struct coder;                           /* of enc_tile.h, each table its own */
/* Encodes a unit of weights that are on the type's lattice, with a negative d if `negated`. The result must be decoded
 * and compared. */
enum exact_result { EXACT_NO_LATTICE, EXACT_NOT_FOUND, EXACT_FOUND };
typedef enum exact_result exact_fn(const struct coder *c, const float *x, bool negated, void *block);
typedef void feedback_fn(const struct coder *c, const struct how *how, const struct feedback_group *g);
/* Parts of the factorisation (enc_factor.h), which is done in panels of FACTOR_PANEL columns; the first `done` columns
 * of rows a[n_rows][] are final. take: a[i][at + c] -= sum of a[i][p]*panel[p][c] in order of p < done. corner: factors
 * the square at the diagonal; false: it is not positive. solve: factors the rows below it. */
enum { FACTOR_PANEL = 64 };
/* The corner: transposed without its diagonal, and the diagonal. */
struct factor_corner { float upper[FACTOR_PANEL][FACTOR_PANEL], root[FACTOR_PANEL]; };
struct factor_table {
	void (*take)(float *a, size_t stride, size_t n_rows, size_t done, const float *panel);
	bool (*corner)(float *a, size_t stride, size_t n_rows, size_t done, struct factor_corner *to);
	void (*solve)(float *a, size_t stride, size_t n_rows, size_t done, const struct factor_corner *under);
};
/* v (A D AT)^-1 in place for SOLVE_LANES rows as lanes, v[n][SOLVE_LANES], with feedback.c's factor and diagonal. */
enum { SOLVE_LANES = 16 };
typedef void solve_fn(const float *factor, const float *diagonal, size_t n, size_t block, double *v);

struct enc_table {
	enc_fn *fn[GGU_TYPE_COUNT];     /* by type; NULL: not encoded */
	const struct coder *coder[GGU_TYPE_COUNT];      /* NULL: no feedback */
	exact_fn *exact;
	feedback_fn *feedback;
	struct factor_table factor;
	solve_fn *solve;
};

#define SET(name, NAME, CPU, codes, row, panel_32, panel_256, floats, enc, vec, attn, gram) \
	extern const struct enc_table quant_enc_##enc;
#include "sets.inc"
#undef SET
/* Encodes again, without error, the blocks of weights that are on the type's lattice; returns their number. dst NULL:
 * only counts them. */
size_t enc_exact_blocks(uint32_t type, const float *x, size_t n_blocks, void *dst);
/* The table in use; quant_select sets it. */
extern const struct enc_table *quant_enc_table;

#endif
