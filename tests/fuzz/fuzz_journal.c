/* SPDX-License-Identifier: MIT
 * fuzz_journal.c - a file and the journal beside it, which an interrupted gguf-edit left: refused, or the file is as
 * long as it was and is no longer marked, and the journal is gone. The input: a byte of flags, the file's length u8,
 * the file, the journal. Flag 1 marks the file, flag 2 makes the journal's size and checksum right, which chance would
 * not. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "../../libgguf/ggu.h"
#include "../../tools/inplace.h"
#include "fuzz.h"

enum { SIZE_AT = 8, N_AT = 24, HEAD = 32, TAIL = 8, MAX = 4096 };
struct opened { const char *path; int fd; bool undone; };
static void open_it(void *ctx)
{
	struct opened *o = ctx;
	o->fd = inplace_open(o->path, &o->undone);
}

static void put_u64(uint8_t *p, uint64_t v) { for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> 8*i); }
static void make_right(uint8_t *journal, size_t n, size_t file_bytes)
{
	memcpy(journal, "GGUNDO1\n", SIZE_AT);
	put_u64(journal + SIZE_AT, file_bytes);
	put_u64(journal + N_AT, n - HEAD - TAIL);
	put_u64(journal + n - TAIL, XXH3_64bits(journal, n - TAIL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[256], journal[MAX];
	char name[512], *slash;
	struct opened o = { NULL, -1, false };
	struct stat st;
	size_t n, left;
	FILE *f;

	if (size < 2 || size > MAX)
		return 0;
	n = data[1] < size - 2 ? data[1] : size - 2;
	left = size - 2 - n;
	memcpy(file, data + 2, n);
	memcpy(journal, data + 2 + n, left);
	if ((*data & 1) && n >= 4)
		memcpy(file, GGU_EDIT_MAGIC, 4);
	if ((*data & 2) && left >= HEAD + TAIL)
		make_right(journal, left, n);
	o.path = folder_file("m.gguf", file, n);
	slash = strrchr(strcpy(name, o.path), '/');
	strcpy(slash, "/.m.gguf.undo");
	f = fopen(name, "wb");
	must(f && fwrite(journal, 1, left, f) == left && !fclose(f), "the journal cannot be written");
	if (survives(open_it, &o)) {
		must(!fstat(o.fd, &st) && (size_t)st.st_size == n, "the file's length changed");
		must(access(name, F_OK) != 0, "the journal is still there");
		must(pread(o.fd, file, 4, 0) < 4 || memcmp(file, GGU_EDIT_MAGIC, 4) != 0, "the file is still marked");
		close(o.fd);
	}
	unlink(name);
	return 0;
}
