/* SPDX-License-Identifier: MIT
 * fuzz_gguf.c - any bytes as a GGUF: refused, or read, written, read and written again, with nothing lost and the
 * second copy equal to the first; and read with every defect reported, the first of which is what was refused. For
 * libFuzzer (make fuzz) and replay.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../libgguf/ggu.h"
#include "fuzz.h"

struct copy { uint8_t *p; size_t n; };

static void write_data(struct ggu_writer *w, struct ggu_file *f, const struct ggu_tensor *t)
{
	uint8_t *p = malloc(t->bytes + 1);

	must(p && ggu_read(f, t, 0, p, t->bytes, NULL) == GGU_OK, "data inside the file cannot be read");
	must(ggu_writer_data(w, p, t->bytes, NULL) == GGU_OK, "data cannot be written");
	free(p);
}

static struct copy write_again(struct ggu_file *f)
{
	FILE *to = tmpfile();
	struct ggu_writer *w;
	struct copy c;
	size_t n = ggu_file_n_tensors(f);

	must(to && ggu_writer_new(&w, ggu_file_meta(f), NULL) == GGU_OK, "metadata that was read cannot be written");
	for (size_t i = 0; i < n; i++) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		must(ggu_writer_add(w, t->name, t->n_dims, t->ne, t->type, NULL) == GGU_OK,
			"a tensor that was read cannot be written");
	}
	c.n = (size_t)ggu_writer_file_bytes(w);
	must(ggu_writer_begin(w, fileno(to), NULL) == GGU_OK, "the header cannot be written");
	for (size_t i = 0; i < n; i++)
		write_data(w, f, ggu_file_tensor(f, i));
	must(ggu_writer_end(w, NULL) == GGU_OK, "the writer wants more data");
	ggu_writer_free(w);
	c.p = malloc(c.n + 1);
	must(c.p && pread(fileno(to), c.p, c.n + 1, 0) == (ssize_t)c.n, "the file's size is not what the writer said");
	fclose(to);
	return c;
}

static void same_value(const struct ggu_kv *a, const struct ggu_kv *b)
{
	size_t n = ggu_kv_n(a), width = ggu_kv_type_bytes(ggu_kv_item_type(a));

	must(ggu_kv_type(a) == ggu_kv_type(b) && ggu_kv_item_type(a) == ggu_kv_item_type(b) && n == ggu_kv_n(b),
		"a type changed");
	if (width) {
		must(!n || !memcmp(ggu_kv_data(a), ggu_kv_data(b), n*width), "a number changed");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct ggu_str s, t;
		if (ggu_kv_item_type(a) == GGU_ARRAY)
			same_value(ggu_kv_sub(a, i), ggu_kv_sub(b, i));
		else
			must(ggu_kv_str(a, i, &s) && ggu_kv_str(b, i, &t) && s.n == t.n && !memcmp(s.p, t.p, s.n),
				"a string changed");
	}
}

static void same_file(struct ggu_file *a, struct ggu_file *b)
{
	const struct ggu_meta *m = ggu_file_meta(a), *k = ggu_file_meta(b);

	must(ggu_meta_count(m) == ggu_meta_count(k) && ggu_file_n_tensors(a) == ggu_file_n_tensors(b),
		"a count changed");
	for (size_t i = 0; i < ggu_meta_count(m); i++) {
		const struct ggu_kv *kv = ggu_meta_at(m, i);
		must(ggu_meta_find(m, ggu_kv_key(kv).p) == kv, "a key is not found");
		must(!strcmp(ggu_kv_key(kv).p, ggu_kv_key(ggu_meta_at(k, i)).p), "a key changed");
		same_value(kv, ggu_meta_at(k, i));
	}
	for (size_t i = 0; i < ggu_file_n_tensors(a); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(a, i), *u = ggu_file_tensor(b, i);
		must(ggu_file_find(a, t->name) == t, "a tensor is not found");
		must(!strcmp(t->name, u->name) && t->type == u->type && t->n_dims == u->n_dims &&
			t->bytes == u->bytes && !memcmp(t->ne, u->ne, sizeof t->ne), "a tensor changed");
	}
}

/* ---- defects reported instead of refused ---- */

struct defects { size_t n; struct ggu_error first; };
static void note(void *ctx, const struct ggu_error *err)
{
	struct defects *d = ctx;

	must(err->code != GGU_OK && err->rule != GGU_RULE_NONE && *err->what, "a defect without a reason");
	if (!d->n++)
		d->first = *err;
}

/* Asks everything that can be asked of a file with defects. */
static void look_around(struct ggu_file *f)
{
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *t = ggu_file_in_data_order(f, i);
		unsigned char byte[300];
		const void *p;
		size_t n = ggu_type_info(t->type)->block_bytes;
		must(ggu_file_find(f, ggu_file_tensor(f, i)->name) == ggu_file_tensor(f, i), "a tensor is not found");
		if (!t->bytes)
			continue;
		if (ggu_map(f, t, &p, NULL) == GGU_OK)
			memcpy(byte, (const unsigned char *)p + t->bytes - n, n);
		ggu_read(f, t, t->bytes - n, byte, n, NULL);
	}
	ggu_file_data_end(f, 0);
}

/* refused: what is wrong with the bytes, or NULL. It must be the first defect; for a header alone, less is required. */
static void lenient(const uint8_t *data, size_t size, const struct ggu_error *refused)
{
	struct defects d = { 0 };
	struct ggu_open_options o = { .defect = note, .defect_ctx = &d };
	struct ggu_file *f;
	struct ggu_error err;

	if (ggu_open_memory(&f, data, size, &o, &err) == GGU_OK) {
		must(!d.n == !refused, "defects and refusal disagree");
		must(!refused || (d.first.code == refused->code && d.first.rule == refused->rule &&
			d.first.offset == refused->offset), "the first defect is not what is refused");
		must(ggu_file_is_cut(f) || refused || !d.n, "cut without a defect");
		look_around(f);
		ggu_close(f);
	} else {
		must(refused && err.code == refused->code && err.offset == refused->offset,
			"refused for another reason");
	}
	o = (struct ggu_open_options){ .flags = GGU_OPEN_HEADER | GGU_OPEN_ALONE };
	if (ggu_open_memory(&f, data, size, &o, &err) == GGU_OK) {
		look_around(f);
		ggu_close(f);
	} else {
		must(refused != NULL, "a header that is right with its data is wrong without");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ggu_file *f, *again;
	struct ggu_error err;
	struct copy c, d;

	if (ggu_open_memory(&f, data, size, NULL, &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		lenient(data, size, &err);
		return 0;
	}
	lenient(data, size, NULL);
	c = write_again(f);
	must(ggu_open_memory(&again, c.p, c.n, NULL, NULL) == GGU_OK, "what was written cannot be read");
	same_file(f, again);
	d = write_again(again);
	must(c.n == d.n && !memcmp(c.p, d.p, c.n), "the second copy differs from the first");
	ggu_close(f);
	ggu_close(again);
	free(c.p);
	free(d.p);
	return 0;
}
