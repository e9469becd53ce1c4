/* SPDX-License-Identifier: MIT
 * logits_file.h - the base-logits file of llama-perplexity, read and written some rows at a time.
 *
 *   "_logits_" | i32 n_ctx, n_vocab, n_chunk | i32 tokens[n_chunk*n_ctx] | per window n_ctx-1-n_ctx/2 rows of
 *   2*((n_vocab+1)/2)+4 u16: f32 scale, f32 least, u16 q[n_vocab];  log p = scale*q + least
 * Little-endian on every machine. A row keeps 16 nats below its largest logit. All failures exit 2 with a message. */
#ifndef TOOLS_LOGITS_FILE_H
#define TOOLS_LOGITS_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct logits_file {
	FILE *f;
	const char *name;
	size_t n_ctx, n_vocab, n_chunk, n_rows;
	uint64_t at;                    /* bytes read */
	int32_t *tokens;                /* [n_chunk*n_ctx], read only */
	unsigned char *row;
};
/* false: path cannot be read, or is something else. A pipe is read up to its first window, or, being something else,
 * is an error: its first bytes are gone. */
bool logits_file_open(struct logits_file *l, const char *path);
/* f is written from its start; the caller commits it. */
void logits_file_create(struct logits_file *l, FILE *f, const char *name, size_t n_ctx, size_t n_vocab, size_t n_chunk,
	const int32_t *tokens);
void logits_file_read(struct logits_file *l, size_t n, float *log_p);    /* the next n rows of n_vocab */
/* likewise; any additive constant per row */
void logits_file_write(struct logits_file *l, size_t n, const float *logits);
void logits_file_close(struct logits_file *l);

#endif
