/* SPDX-License-Identifier: MIT
 * tool_library.c - uses most of libggu on IN and writes OUT, for faults that are injected from outside: exit 0, or
 * exit 2 with the error on standard error; whatever fails, no more than that. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../quant/ggu_quant.h"

static struct ggu_error err;
static void ignore(void *ctx, const struct ggu_error *e) { (void)ctx; (void)e; }

static enum ggu_status metadata(const struct ggu_file *f, struct ggu_meta **to)
{
	const struct ggu_kv *items[2];
	struct ggu_meta *m;
	enum ggu_status s = ggu_meta_copy(&m, ggu_file_meta(f));

	if (s)
		return ggu_fail(&err, s, GGU_NO_OFFSET, "", "metadata is not copied");
	s = ggu_meta_set_array(m, "a", GGU_U8, "\1\2", 2);
	for (int i = 0; !s && i < 2; i++)
		items[i] = ggu_meta_find(m, "a");
	if (!s)
		s = ggu_meta_set_arrays(m, "b", items, 2);
	if (!s)
		s = ggu_meta_rename(m, "a", "c");
	if (s) {
		ggu_meta_free(m);
		return ggu_fail(&err, s, GGU_NO_OFFSET, "", "metadata is not set");
	}
	*to = m;
	return GGU_OK;
}

/* Adds tensors with gaps between them, and writes their data in parts. */
static enum ggu_status copy(const struct ggu_file *f, const struct ggu_meta *m, const struct ggu_sink *to)
{
	struct ggu_writer *w = NULL;
	struct ggu_walk *walk = NULL;
	struct ggu_part part;
	enum ggu_status s = ggu_writer_new(&w, m, &err);
	uint64_t at = 0;

	for (size_t i = 0; !s && i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *t = ggu_file_in_data_order(f, i);
		s = ggu_writer_add_at(w, t->name, t->n_dims, t->ne, t->type, at, &err);
		at += (t->bytes + 4095)/4096*4096;
	}
	if (!s)
		s = ggu_walk_new(&walk, f, 4096, &err);
	if (!s)
		s = ggu_writer_begin_sink(w, to, &err);
	for (size_t i = 0; !s && i < ggu_file_n_tensors(f); i++) {
		ggu_walk_to(walk, ggu_file_in_data_order(f, i));
		while (!(s = ggu_walk_next(walk, &part, &err)) && part.n_bytes &&
			!(s = ggu_writer_data(w, part.bytes, part.n_bytes, &err)))
			;
	}
	if (!s)
		s = ggu_writer_end(w, &err);
	ggu_walk_free(walk);
	ggu_writer_free(w);
	return s;
}

static enum ggu_status run(const char *in, int out)
{
	const struct ggu_open_options lenient = { .flags = GGU_OPEN_ALONE, .defect = ignore };
	const struct ggu_quantize_options quantize = { .n_threads = 2 };
	struct ggu_memory bytes = { 0 };
	struct ggu_sink memory = ggu_sink_memory(&bytes), file = ggu_sink_fd(&out);
	struct ggu_file *f = NULL, *again = NULL;
	struct ggu_meta *m = NULL;
	enum ggu_status s = ggu_open_path(&f, in, &lenient, &err);

	if (!s)
		s = metadata(f, &m);
	if (!s)
		s = copy(f, m, &memory);
	if (!s)
		s = ggu_open_memory(&again, bytes.p, bytes.n, NULL, &err);
	if (!s)
		s = ggu_quantize(again, "Q8_0", &quantize, &file, &err);
	ggu_close(again);
	ggu_close(f);
	ggu_meta_free(m);
	free(bytes.p);
	return s;
}

int main(int argc, char **argv)
{
	int out = argc == 3 ? open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;

	if (out < 0)
		return 9;
	if (!run(argv[1], out))
		return 0;
	fprintf(stderr, "%s: %s %s\n", ggu_status_name(err.code), err.where, err.what);
	unlink(argv[2]);
	return err.code && *err.what ? 2 : 8;
}
