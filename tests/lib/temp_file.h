/* SPDX-License-Identifier: MIT
 * temp_file.h - a file for what a test writes and reads back, for tests with cmocka. The including file removes it. */
#ifndef TESTS_TEMP_FILE_H
#define TESTS_TEMP_FILE_H
#include <stdlib.h>
#include <string.h>

/* Makes a new file, whose path is then in `name`; returns its descriptor. */
static char name[] = "/tmp/test_file.XXXXXX";
static inline int temp(void)
{
	int fd;
	strcpy(name + sizeof name - 7, "XXXXXX");
	fd = mkstemp(name);
	assert_true(fd >= 0);
	return fd;
}

#endif
