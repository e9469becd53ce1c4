/* SPDX-License-Identifier: MIT
 * fuzz.c - see fuzz.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fuzz.h"

enum { MAX_FILES = 16, MAX_NAME = 64 };

static char folder[256], names[MAX_FILES][MAX_NAME], path[sizeof folder + MAX_NAME];
static size_t n_names;

void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

static const char *path_of(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

const char *folder_path(size_t i) { return i < n_names ? path_of(names[i]) : NULL; }

static void empty_folder(void)
{
	while (n_names)
		unlink(path_of(names[--n_names]));
}

static void remove_folder(void)
{
	empty_folder();
	rmdir(folder);
}

static void make_folder(void)
{
	const char *tmp = getenv("TMPDIR");

	if (*folder)
		return;
	snprintf(folder, sizeof folder, "%s/gguf-fuzz.XXXXXX", tmp ? tmp : "/tmp");
	must(mkdtemp(folder), "no scratch folder");
	atexit(remove_folder);
}

static void write_file(const char *name, const uint8_t *data, size_t n)
{
	size_t end = strlen(name), header = n;
	FILE *f = fopen(path_of(name), "wb");

	must(f, "no scratch file");
	if (end > 12 && !strcmp(name + end - 12, ".safetensors") && n && *data == '{') {
		while (data[header - 1] != '}' && header > 1)
			header--;
		for (int i = 0; i < 8; i++)
			putc((int)((uint64_t)header >> 8*i & 255), f);
	}
	must(fwrite(data, 1, n, f) == n && !fclose(f), "a scratch file cannot be written");
}

const char *folder_file(const char *name, const uint8_t *data, size_t n)
{
	make_folder();
	empty_folder();
	snprintf(names[n_names++], MAX_NAME, "%s", name);
	write_file(name, data, n);
	return path_of(name);
}

/* Position of the next "--- " that begins a line, from `at` on; n if there is none. */
static size_t next_mark(const uint8_t *data, size_t n, size_t at)
{
	for (; at + 4 <= n; at++)
		if (!memcmp(data + at, "--- ", 4) && (!at || data[at - 1] == '\n'))
			return at;
	return n;
}

const char *folder_of(const uint8_t *data, size_t n)
{
	make_folder();
	empty_folder();
	for (size_t at = next_mark(data, n, 0); at < n && n_names < MAX_FILES; ) {
		const uint8_t *name = data + at + 4, *end = memchr(name, '\n', n - at - 4);
		size_t from = end ? (size_t)(end + 1 - data) : n, len = end ? (size_t)(end - name) : n - at - 4;

		at = next_mark(data, n, from);
		if (len && len < MAX_NAME && *name != '.' && !memchr(name, '/', len) && !memchr(name, 0, len)) {
			size_t to = at < n && at > from ? at - 1 : at;
			memcpy(names[n_names], name, len);
			names[n_names][len] = 0;
			write_file(names[n_names++], data + from, to - from);
		}
	}
	return folder;
}
