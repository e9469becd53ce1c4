/* SPDX-License-Identifier: MIT
 * folder.h - a text that is a folder. A line "--- NAME" begins a file; its bytes go up to the line break before the
 * next such line. A file NAME.safetensors that begins with a brace gets the length of its header, which ends at the
 * last brace, in front; so texts can be written by hand, and any bytes are still possible. */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FOLDER_FILES = 16, FOLDER_NAME = 64 };

static bool folder_write(const char *path, const uint8_t *data, size_t n)
{
	size_t end = strlen(path), header = n, tail = strlen(".safetensors");
	FILE *f = fopen(path, "wb");

	if (!f)
		return false;
	if (end > tail && !strcmp(path + end - tail, ".safetensors") && n && *data == '{') {
		while (data[header - 1] != '}' && header > 1)
			header--;
		for (int i = 0; i < 8; i++)
			putc((int)((uint64_t)header >> 8*i & 255), f);
	}
	return (fwrite(data, 1, n, f) == n) & !fclose(f);
}

/* The position of the next "--- " at the beginning of a line, from `at` on; n if there is none. */
static size_t folder_mark(const uint8_t *data, size_t n, size_t at)
{
	for (; at + 4 <= n; at++)
		if (!memcmp(data + at, "--- ", 4) && (!at || data[at - 1] == '\n'))
			return at;
	return n;
}

/* Writes the files, at most FOLDER_FILES, into the folder, and their names to name[]. Returns how many, or SIZE_MAX if
 * one cannot be written. */
static size_t folder_unpack(const char *folder, const uint8_t *data, size_t n, char name[FOLDER_FILES][FOLDER_NAME])
{
	size_t files = 0;

	for (size_t at = folder_mark(data, n, 0); at < n && files < FOLDER_FILES; ) {
		const uint8_t *is = data + at + 4, *end = memchr(is, '\n', n - at - 4);
		size_t from = end ? (size_t)(end + 1 - data) : n, len = end ? (size_t)(end - is) : n - at - 4;
		char path[512];

		at = folder_mark(data, n, from);
		if (!len || len >= FOLDER_NAME || *is == '.' || memchr(is, '/', len) || memchr(is, 0, len))
			continue;
		memcpy(name[files], is, len);
		name[files][len] = 0;
		snprintf(path, sizeof path, "%s/%s", folder, name[files++]);
		if (!folder_write(path, data + from, (at < n && at > from ? at - 1 : at) - from))
			return SIZE_MAX;
	}
	return files;
}

#endif
