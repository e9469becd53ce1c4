/* SPDX-License-Identifier: MIT
 * tool_folder.c - `tool_folder DIR <TEXT` writes the files of a text that is a folder (tests/lib/folder.h). */
#include <stdlib.h>
#include "../lib/folder.h"

int main(int argc, char **argv)
{
	enum { MAX = 1 << 20 };
	char name[FOLDER_FILES][FOLDER_NAME];
	uint8_t *text = malloc(MAX);
	size_t n = text ? fread(text, 1, MAX, stdin) : 0;
	bool ok = argc == 2 && n && folder_unpack(argv[1], text, n, name) != SIZE_MAX;
	free(text);
	return !ok;
}
