/* SPDX-License-Identifier: MIT
 * enc.h - inside of quant/: the tables of encoders, one for each instruction set.
 *
 * enc_text.h is the one text; enc_c.c, enc_avx2.c and enc_avx512.c compile it at 4, 8 and 16 lanes.
 * All of them write the same bytes. */
#ifndef QUANT_ENC_H
#define QUANT_ENC_H
#include "quant.h"

/* How hard, and what is minimised: prior and lift of struct quant_objective. */
struct how { int row; float prior, lift; };     /* row: of a type's table of efforts, effort - 1 */
/* As quant_encode, for one type. */
typedef void enc_fn(void *dst, const float *x, const float *weights, size_t rows, size_t cols, const struct how *how);
struct enc_table { enc_fn *fn[GGU_TYPE_COUNT]; };       /* by type; NULL: not encoded */

extern const struct enc_table quant_enc_c;
#if defined __x86_64__
extern const struct enc_table quant_enc_avx2, quant_enc_avx512;
#endif
/* The table in use; quant_select sets it. */
extern const struct enc_table *quant_enc_table;

#endif
