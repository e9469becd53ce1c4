/* SPDX-License-Identifier: MIT
 * logits_file.c - see logits_file.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../quant/vec.h"
#include "logits_file.h"
#include "msg.h"

static const char magic[8] = { '_', 'l', 'o', 'g', 'i', 't', 's', '_' };
static size_t row_items(const struct logits_file *l) { return 2*((l->n_vocab + 1)/2) + 4; }

static void get(struct logits_file *l, void *to, size_t n)
{
	if (fread(to, 1, n, l->f) != n) msg_die("%s: byte %ld: the file ends inside its logits", l->name, ftell(l->f));
}
static void put(struct logits_file *l, const void *from, size_t n)
{
	if (fwrite(from, 1, n, l->f) != n) msg_die("%s: %s", l->name, strerror(errno));
}
static void finish_sizes(struct logits_file *l)
{
	l->n_rows = l->n_ctx - 1 - l->n_ctx/2;
	l->row = malloc(row_items(l)*sizeof *l->row);
	if (!l->row) msg_die("out of memory");
}

bool logits_file_is(const char *path)
{
	char head[8] = { 0 };
	FILE *f = fopen(path, "rb");
	bool is = f && fread(head, 1, 8, f) == 8 && !memcmp(head, magic, 8);
	if (f) fclose(f);
	return is;
}

void logits_file_open(struct logits_file *l, const char *path)
{
	int32_t head[3];
	char start[8];
	uint64_t want, size;
	*l = (struct logits_file){ .f = fopen(path, "rb"), .name = path };
	if (!l->f) msg_die("%s: %s", path, strerror(errno));
	get(l, start, 8);
	get(l, head, sizeof head);
	if (memcmp(start, magic, 8)) msg_die("%s: byte 0: is no file of logits", path);
	if (head[0] < 4 || head[1] < 1 || head[2] < 1 || head[0] > 1 << 24 || head[1] > 1 << 24) msg_die("%s: byte 8: %d positions, %d tokens, %d windows", path, head[0], head[1], head[2]);
	l->n_ctx = (size_t)head[0];
	l->n_vocab = (size_t)head[1];
	l->n_chunk = (size_t)head[2];
	finish_sizes(l);
	if (fseek(l->f, 0, SEEK_END)) msg_die("%s: %s", path, strerror(errno));
	size = (uint64_t)ftell(l->f);
	/* a window is below 2^49 bytes, so only the product with their number can wrap */
	if (__builtin_mul_overflow((uint64_t)l->n_chunk, 4*(uint64_t)l->n_ctx + (uint64_t)l->n_rows*row_items(l)*2, &want) || want > INT64_MAX) want = INT64_MAX;
	want += 20;
	if (size < want) msg_die("%s: byte %llu: the file ends, but its header promises %llu bytes", path, (unsigned long long)size, (unsigned long long)want);
	fseek(l->f, 20, SEEK_SET);
	l->tokens = malloc(l->n_chunk*l->n_ctx*sizeof *l->tokens);
	if (!l->tokens) msg_die("out of memory");
	get(l, l->tokens, l->n_chunk*l->n_ctx*sizeof *l->tokens);
}

void logits_file_create(struct logits_file *l, FILE *f, const char *name, size_t n_ctx, size_t n_vocab, size_t n_chunk, const int32_t *tokens)
{
	int32_t head[3] = { (int32_t)n_ctx, (int32_t)n_vocab, (int32_t)n_chunk };
	*l = (struct logits_file){ .f = f, .name = name, .n_ctx = n_ctx, .n_vocab = n_vocab, .n_chunk = n_chunk };
	finish_sizes(l);
	put(l, magic, 8);
	put(l, head, sizeof head);
	put(l, tokens, n_chunk*n_ctx*sizeof *tokens);
}

void logits_file_read(struct logits_file *l, float *log_p)
{
	for (size_t r = 0; r < l->n_rows; r++) {
		float scale, least;
		get(l, l->row, row_items(l)*sizeof *l->row);
		memcpy(&scale, l->row, 4);
		memcpy(&least, l->row + 2, 4);
		for (size_t i = 0; i < l->n_vocab; i++) log_p[r*l->n_vocab + i] = scale*(float)l->row[4 + i] + least;
	}
}

void logits_file_write(struct logits_file *l, const float *logits)
{
	for (size_t r = 0; r < l->n_rows; r++) {
		const float *x = logits + r*l->n_vocab;
		float top = vec_max(x, l->n_vocab), low = top, scale, least;
		double sum = 0;
		for (size_t i = 0; i < l->n_vocab; i++) {
			low = x[i] < low ? x[i] : low;
			sum += num_exp((double)x[i] - top);
		}
		low = low < top - 16 ? top - 16 : low;
		scale = (top - low)/65535;
		least = (float)((double)low - top - num_log(sum));
		memset(l->row, 0, row_items(l)*sizeof *l->row);
		memcpy(l->row, &scale, 4);
		memcpy(l->row + 2, &least, 4);
		for (size_t i = 0; i < l->n_vocab && scale > 0; i++) l->row[4 + i] = x[i] > low ? (uint16_t)rintf((x[i] - low)/scale) : 0;
		put(l, l->row, row_items(l)*sizeof *l->row);
	}
}

void logits_file_close(struct logits_file *l)
{
	free(l->tokens);
	free(l->row);
	if (l->tokens) fclose(l->f);            /* one that was written is its output's */
	l->tokens = NULL;
	l->row = NULL;
}
