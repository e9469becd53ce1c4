/* SPDX-License-Identifier: MIT
 * temp_file.h - a file for what a test writes and reads back, for tests with cmocka. The including file removes it. */
#ifndef TESTS_TEMP_FILE_H
#define TESTS_TEMP_FILE_H
#include "scratch.h"

/* Makes a new file, whose path is then in `name`; returns its descriptor. */
static char name[SCRATCH_PATH];
static inline int temp(void)
{
	const int fd = scratch_file(name);
	assert_true(fd >= 0);
	return fd;
}

#endif
