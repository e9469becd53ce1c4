/* SPDX-License-Identifier: MIT
 * tool_torch.c - write the tensors of a checkpoint folder as torch.save would: a zip archive with a pickle.
 *
 *   tool_torch [-n KEY] [-6] [-c] [-g] [-o EXTRA] DIR FROM TO >pytorch_model.bin
 *
 * Tensors FROM..TO-1 of the folder, in order of their names, each with a storage of its own; a storage is named by its
 * number. -n: inside a dict, under KEY, beside other values. -6: sizes and places in the zip's 64-bit fields. -c: each
 * lies column by column, as a transpose does. -g: each is every second column of a larger one.
 * -o: EXTRA, bytes as hexadecimal digits, stands in the pickle before its last opcode. What torch 2 writes, in
 * protocol 2, was taken from the disassembly of such files. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "../../convert/checkpoint.h"

struct bytes { unsigned char *p; size_t n, cap; };
static void put(struct bytes *b, const void *p, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = 2*(b->n + n);
		b->p = realloc(b->p, b->cap);
		if (!b->p) exit(2);
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
}
static void put_le(struct bytes *b, uint64_t v, int n)
{
	for (int i = 0; i < n; i++) put(b, &(unsigned char){ (unsigned char)(i < 8 ? v >> 8*i : 0) }, 1);
}
static void put_text(struct bytes *b, const char *s) { put(b, s, strlen(s)); }

/* ---- the pickle ---- */

static void str(struct bytes *b, const char *s)
{
	put_text(b, "X");
	put_le(b, strlen(s), 4);
	put_text(b, s);
}
static void integer(struct bytes *b, uint64_t v)
{
	if (v < 256) { put_text(b, "K"); put_le(b, v, 1); }
	else if (v < 65536) { put_text(b, "M"); put_le(b, v, 2); }
	else if (v < 0x80000000) { put_text(b, "J"); put_le(b, v, 4); }
	else { put(b, "\x8a\x06", 2); put_le(b, v, 6); }
}
static const char *class_of(const char *dtype)
{
	static const char *const names[][2] = { { "F64", "Double" }, { "F32", "Float" }, { "F16", "Half" },
		{ "BF16", "BFloat16" },
		{ "I64", "Long" }, { "I32", "Int" }, { "I16", "Short" }, { "I8", "Char" }, { "U8", "Byte" },
		{ "BOOL", "Bool" } };
	for (size_t i = 0; i < sizeof names/sizeof *names; i++) if (!strcmp(names[i][0], dtype)) return names[i][1];
	fprintf(stderr, "tool_torch: no storage for %s\n", dtype);
	exit(2);
}
static void dims(struct bytes *b, const uint64_t *v, unsigned n)
{
	if (n > 3) put_text(b, "(");
	for (unsigned i = 0; i < n; i++) integer(b, v[i]);
	put(b, n > 3 ? "t" : n == 3 ? "\x87" : n == 2 ? "\x86" : n == 1 ? "\x85" : ")", 1);
}
static bool by_columns, gaps;
struct layout { uint64_t stride[SOURCE_MAX_DIMS], offset, n; };
static struct layout layout(const struct source_tensor *t)
{
	struct layout l = { .offset = gaps ? 3 : 0, .n = gaps ? 2 : 1 };
	for (unsigned i = 0; i < t->n_dims; i++) {
		unsigned d = by_columns ? i : t->n_dims - 1 - i;
		l.stride[d] = l.n;
		l.n *= t->shape[d];
	}
	l.n += l.offset;
	return l;
}
/* The storage of a tensor's elements, given row by row. */
static unsigned char *arrange(const struct source_tensor *t, const struct layout *l, const unsigned char *rows)
{
	const size_t width = t->dtype->bytes;
	unsigned char *to = calloc(l->n + 1, width);
	for (uint64_t e = 0; to && e < t->n_weights; e++) {
		uint64_t at = l->offset, left = e;
		for (unsigned d = t->n_dims; d-- > 0; left /= t->shape[d]) at += left % t->shape[d]*l->stride[d];
		memcpy(to + at*width, rows + e*width, width);
	}
	return to;
}
static void tensor(struct bytes *b, const struct source_tensor *t, size_t key)
{
	const struct layout l = layout(t);
	char text[64];
	str(b, t->name);
	put_text(b, "ctorch._utils\n_rebuild_tensor_v2\n((");
	str(b, "storage");
	snprintf(text, sizeof text, "ctorch\n%sStorage\n", class_of(t->dtype->name));
	put_text(b, text);
	snprintf(text, sizeof text, "%zu", key);
	str(b, text);
	str(b, "cpu");
	integer(b, l.n);
	put_text(b, "tQK");
	put_le(b, l.offset, 1);
	dims(b, t->shape, t->n_dims);
	dims(b, l.stride, t->n_dims);
	put_text(b, "\x89""ccollections\nOrderedDict\n)RtR");
}
static void pickle(struct bytes *b, const struct checkpoint *c, size_t from, size_t to, const char *nest,
	const char *extra)
{
	put_text(b, "\x80\x02");
	if (nest) {
		put_text(b, "}(");
		str(b, "epoch");
		integer(b, 3);
		str(b, nest);
	}
	put_text(b, "ccollections\nOrderedDict\n)Rq");
	put_le(b, 0, 1);
	put_text(b, "(");
	for (size_t i = from; i < to; i++) tensor(b, checkpoint_at(c, i), i);
	put_text(b, "u}");
	str(b, "_metadata");
	put_text(b, "h");
	put_le(b, 0, 1);
	put_text(b, "sb");
	if (nest) put_text(b, "u");
	for (; extra && extra[0] && extra[1]; extra += 2) {
		unsigned v;
		sscanf(extra, "%2x", &v);
		put_le(b, v, 1);
	}
	put_text(b, ".");
}

/* ---- the archive: members with data aligned to 64 bytes, then the directory ---- */

static struct bytes file, directory;
static unsigned members;
static bool wide;

static void member(const char *name, const void *data, size_t n)
{
	uint64_t at = file.n, pad = (64 - (at + 30 + strlen(name) + 4)%64)%64;
	uint32_t crc = (uint32_t)crc32(0, data, (uInt)n);
	put_le(&file, 0x04034b50, 4);
	put_le(&file, 0, 2);
	put_le(&file, 0x808, 2);
	put_le(&file, 0, 2);
	put_le(&file, 0, 4);
	put_le(&file, crc, 4); put_le(&file, n, 4); put_le(&file, n, 4);
	put_le(&file, strlen(name), 2); put_le(&file, pad + 4, 2); put_text(&file, name);
	put_text(&file, "FB"); put_le(&file, pad, 2);
	for (uint64_t i = 0; i < pad; i++) put_text(&file, "Z");
	put(&file, data, n);
	put_le(&directory, 0x02014b50, 4);
	put_le(&directory, 0, 4);
	put_le(&directory, 0x808, 2);
	put_le(&directory, 0, 2);
	put_le(&directory, 0, 4);
	put_le(&directory, crc, 4);
	put_le(&directory, wide ? UINT32_MAX : n, 4);
	put_le(&directory, wide ? UINT32_MAX : n, 4);
	put_le(&directory, strlen(name), 2);
	put_le(&directory, wide ? 28 : 0, 2);
	put_le(&directory, 0, 10);
	put_le(&directory, wide ? UINT32_MAX : at, 4);
	put_text(&directory, name);
	if (wide) { put_le(&directory, 1, 2); put_le(&directory, 24, 2); put_le(&directory, n, 8); put_le(&directory,
		n, 8); put_le(&directory, at, 8); }
	members++;
}
static void end(void)
{
	uint64_t at = file.n, n = directory.n;
	put(&file, directory.p, directory.n);
	if (wide) {
		uint64_t end64 = file.n;
		put_le(&file, 0x06064b50, 4);
		put_le(&file, 44, 8);
		put_le(&file, 0, 12);
		put_le(&file, members, 8);
		put_le(&file, members, 8);
		put_le(&file, n, 8); put_le(&file, at, 8);
		put_le(&file, 0x07064b50, 4); put_le(&file, 0, 4); put_le(&file, end64, 8); put_le(&file, 1, 4);
	}
	put_le(&file, 0x06054b50, 4);
	put_le(&file, 0, 4);
	put_le(&file, wide ? 65535 : members, 2);
	put_le(&file, wide ? 65535 : members, 2);
	put_le(&file, wide ? UINT32_MAX : n, 4); put_le(&file, wide ? UINT32_MAX : at, 4); put_le(&file, 0, 2);
}

int main(int argc, char **argv)
{
	const char *nest = NULL, *extra = NULL;
	struct checkpoint *c;
	struct ggu_error err;
	struct bytes text = { 0 };
	size_t from, to;
	int opt;
	while ((opt = getopt(argc, argv, "n:o:6cg")) != -1) {
		if (opt == 'n') nest = optarg;
		if (opt == 'o') extra = optarg;
		if (opt == '6') wide = true;
		if (opt == 'c') by_columns = true;
		if (opt == 'g') gaps = true;
	}
	if (argc - optind != 3 || checkpoint_open(&c, argv[optind], &err)) return 2;
	from = strtoul(argv[optind + 1], NULL, 10);
	to = strtoul(argv[optind + 2], NULL, 10);
	if (to > checkpoint_count(c)) to = checkpoint_count(c);
	pickle(&text, c, from, to, nest, extra);
	member("archive/data.pkl", text.p, text.n);
	member("archive/byteorder", "little", 6);
	for (size_t i = from; i < to; i++) {
		const struct source_tensor *t = checkpoint_at(c, i);
		const struct layout l = layout(t);
		char name[64];
		unsigned char *data = malloc((size_t)t->bytes + 1), *storage;
		if (!data || checkpoint_read(c, t, 0, data, (size_t)t->n_weights, &err)) return 2;
		storage = arrange(t, &l, data);
		if (!storage) return 2;
		snprintf(name, sizeof name, "archive/data/%zu", i);
		member(name, storage, (size_t)l.n*t->dtype->bytes);
		free(data);
		free(storage);
	}
	end();
	checkpoint_close(c);
	fwrite(file.p, 1, file.n, stdout);
	free(text.p); free(file.p); free(directory.p);
	return fflush(stdout) ? 2 : 0;
}
