/* SPDX-License-Identifier: MIT
 * tool_turn.c - `tool_turn FILE` writes the same model to standard output, told the other way round: metadata and
 * tensors from the last to the first, and the integers of the architecture's keys in 64 bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../libgguf/ggu.h"

static void must(enum ggu_status s, const struct ggu_error *err)
{
	if (s == GGU_OK) return;
	fprintf(stderr, "tool_turn: %s: %s\n", err->where, err->what);
	exit(2);
}

static struct ggu_meta *turned(const struct ggu_meta *from)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_str arch = { "", 0 };
	struct ggu_error err = { .where = "metadata", .what = "cannot be set" };
	ggu_meta_str(from, "general.architecture", &arch);
	for (size_t i = ggu_meta_count(from); m && i-- > 0;) {
		const struct ggu_kv *kv = ggu_meta_at(from, i);
		const struct ggu_str key = ggu_kv_key(kv);
		uint64_t v;
		if (ggu_kv_type(kv) == GGU_U32 && key.n > arch.n && !memcmp(key.p, arch.p, arch.n)
			&& key.p[arch.n] == '.' && ggu_kv_uint(kv, 0, &v))
			must(ggu_meta_set_uint(m, key.p, GGU_U64, v), &err);
		else must(ggu_meta_set_kv(m, kv), &err);
	}
	return m;
}

int main(int argc, char **argv)
{
	struct ggu_file *f;
	struct ggu_writer *w;
	struct ggu_meta *m;
	struct ggu_error err;
	if (argc != 2) {
		fprintf(stderr, "usage: tool_turn FILE\n");
		return 2;
	}
	must(ggu_open(&f, argv[1], &err), &err);
	m = turned(ggu_file_meta(f));
	if (!m) return 2;
	must(ggu_writer_new(&w, m, &err), &err);
	for (size_t i = ggu_file_n_tensors(f); i-- > 0;) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		must(ggu_writer_add(w, t->name, t->n_dims, t->ne, t->type, &err), &err);
	}
	must(ggu_writer_begin(w, STDOUT_FILENO, &err), &err);
	for (size_t i = ggu_file_n_tensors(f); i-- > 0;) {
		const void *data;
		must(ggu_map(f, ggu_file_tensor(f, i), &data, &err), &err);
		must(ggu_writer_data(w, data, ggu_file_tensor(f, i)->bytes, &err), &err);
	}
	must(ggu_writer_end(w, &err), &err);
	ggu_writer_free(w);
	ggu_meta_free(m);
	ggu_close(f);
	return 0;
}
