/* SPDX-License-Identifier: MIT
 * scratch.h - new files and folders for what a test writes, in $TMPDIR or /tmp. The test removes them. */
#ifndef TESTS_LIB_SCRATCH_H
#define TESTS_LIB_SCRATCH_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* room for a path, and for that of a file in a folder */
enum { SCRATCH_PATH = 256, SCRATCH_FILE = SCRATCH_PATH + 64 };

static inline char *scratch_name(char path[SCRATCH_PATH])
{
	const char *tmp = getenv("TMPDIR");
	snprintf(path, SCRATCH_PATH, "%s/gguf-test.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return path;
}
/* They leave the path in `path`. */
static inline bool scratch_folder(char path[SCRATCH_PATH]) { return mkdtemp(scratch_name(path)) != NULL; }
static inline int scratch_file(char path[SCRATCH_PATH]) { return mkstemp(scratch_name(path)); }

#endif
