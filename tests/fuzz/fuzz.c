/* SPDX-License-Identifier: MIT
 * fuzz.c - see fuzz.h. All inputs of a process share one scratch folder, which is emptied before each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "../lib/folder.h"
#include "fuzz.h"

static char folder[256], names[FOLDER_FILES][FOLDER_NAME], path[sizeof folder + FOLDER_NAME];
static size_t n_names;
size_t fuzz_evaluated;

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

const char *folder_file(const char *name, const uint8_t *data, size_t n)
{
	make_folder();
	empty_folder();
	snprintf(names[n_names++], FOLDER_NAME, "%s", name);
	must(folder_write(path_of(name), data, n), "a scratch file cannot be written");
	return path_of(name);
}

const char *folder_of(const uint8_t *data, size_t n)
{
	make_folder();
	empty_folder();
	n_names = folder_unpack(folder, data, n, names);
	must(n_names != SIZE_MAX, "a scratch file cannot be written");
	return folder;
}
