/* SPDX-License-Identifier: MIT
 * logits_file.h - the base-logits file of llama-perplexity, read and written some rows at a time.
 *
 *   "_logits_" | i32 n_ctx, n_vocab, n_chunk | i32 tokens[n_chunk*n_ctx] | per window n_ctx-1-n_ctx/2 rows of
 *   2*((n_vocab+1)/2)+4 u16: f32 scale, f32 least, u16 q[n_vocab];  log p = scale*q + least
 * Little-endian on every machine. A row keeps 16 nats below its largest logit. Functions without a status exit 2 with a
 * message if they fail. */
#ifndef TOOLS_LOGITS_FILE_H
#define TOOLS_LOGITS_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "../libgguf/ggu.h"

struct logits_file {
	FILE *f;
	const char *name;
	size_t n_ctx, n_vocab, n_chunk, n_rows;         /* n_rows: of a window */
	uint64_t at;                    /* bytes of the header that were read */
	uint64_t first;                 /* the byte of the first row */
	bool in_order;                  /* as in a pipe: rows have to come one after the other */
	int32_t *tokens;                /* [n_chunk*n_ctx]; NULL if the file is written */
	unsigned char *row;             /* row 0 as it is in the file, which tells models apart; NULL as tokens */
};
/* false: path ("-": standard input) cannot be read, or is something else. A pipe is read up to its first window; one
 * that is something else is an error, as its first bytes are gone. */
bool logits_file_open(struct logits_file *l, const char *path);
/* The same for an open stream, which is the caller's if it is something else. */
bool logits_file_read_head(struct logits_file *l, FILE *f, const char *name);
/* f is written from its start; the caller commits it. */
void logits_file_create(struct logits_file *l, FILE *f, const char *name, size_t n_ctx, size_t n_vocab, size_t n_chunk,
	const int32_t *tokens);
void logits_file_close(struct logits_file *l);
/* Reads what is left of a pipe, so that the program which writes it does not die of SIGPIPE. */
void logits_file_rest(struct logits_file *l);
uint64_t logits_file_bytes(const struct logits_file *l);        /* of the whole file */

/* Rows as they are in the file, rows[n][row_bytes], numbered from 0 over all windows. Several threads may use the
 * functions below at once, unless in_order; then `from` must follow the row before. GGU_ERR_IO; when reading also
 * GGU_ERR_TRUNCATED, and GGU_ERR_FORMAT for a row that holds no log probabilities, both with the byte. */
size_t logits_file_row_bytes(const struct logits_file *l);
enum ggu_status logits_file_read(struct logits_file *l, uint64_t from, size_t n, unsigned char *rows,
	struct ggu_error *err);
enum ggu_status logits_file_write(struct logits_file *l, uint64_t from, size_t n, const unsigned char *rows,
	struct ggu_error *err);
void logits_file_decode(const struct logits_file *l, const unsigned char *row, float *log_p);   /* log_p[n_vocab] */
/* log_sum: of exp over all logits */
void logits_file_encode(const struct logits_file *l, const float *logits, double log_sum, unsigned char *row);

#endif
