/* SPDX-License-Identifier: MIT
 * fuzz_logits.c - saved logits, read whole as gguf-perplexity does: refused, or as many rows as the header says follow,
 * each of which is refused or holds log probabilities. The same through a pipe is read or refused alike. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../tools/logits_file.h"
#include "fuzz.h"

enum { MOST = 1 << 14 };                /* bytes that a pipe holds, whatever the system */
struct opened { FILE *f; struct logits_file l; bool yes; };
static void open_it(void *ctx)
{
	struct opened *o = ctx;
	o->yes = logits_file_read_head(&o->l, o->f, "logits");
}

/* The number of rows before the first that cannot be read. */
static uint64_t read_rows(struct logits_file *l)
{
	const uint64_t all = (uint64_t)l->n_chunk*l->n_rows;
	unsigned char *row = malloc(logits_file_row_bytes(l));
	float *log_p = malloc(l->n_vocab*sizeof *log_p);
	struct ggu_error err = { 0 };
	uint64_t i = 0;

	must(row && log_p, "no memory");
	for (; i < all && logits_file_read(l, i, 1, row, &err) == GGU_OK; i++) {
		logits_file_decode(l, row, log_p);
		for (size_t k = 0; k < l->n_vocab; k++)
			must(!(log_p[k] > 0.01F), "a log probability above 0");
	}
	must(i == all || (err.code != GGU_OK && *err.what), "refused without a reason");
	free(row);
	free(log_p);
	return i;
}

/* Reads a stream, which has a buffer of ours: what is allocated in a call that does not survive is gone. UINT64_MAX:
 * refused. */
static uint64_t read_it(FILE *f, bool in_order)
{
	static char buf[BUFSIZ];
	struct opened o = { .f = f };
	uint64_t n = UINT64_MAX;

	must(f && !setvbuf(f, buf, _IOFBF, sizeof buf), "no stream");
	if (survives(open_it, &o) && o.yes) {
		must(!o.l.in_order == !in_order, "a file is not taken for one");
		must(o.l.n_ctx >= 4 && o.l.n_rows == o.l.n_ctx - 1 - o.l.n_ctx/2, "a window without rows");
		must(o.l.tokens && o.l.row && o.l.n_vocab && o.l.n_chunk, "nothing was read");
		n = read_rows(&o.l);
		logits_file_close(&o.l);
	} else fclose(f);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd[2];
	uint64_t n, piped;

	n = read_it(fopen(folder_file("logits", data, size), "rb"), false);
	if (size > MOST)
		return 0;
	must(!pipe(fd) && write(fd[1], data, size) == (ssize_t)size && !close(fd[1]), "no pipe");
	piped = read_it(fdopen(fd[0], "rb"), true);
	/* of a file that is too short or too long, a pipe has rows */
	must(n == UINT64_MAX || piped == n, "a pipe differs from a file");
	return 0;
}
