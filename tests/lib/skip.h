/* SPDX-License-Identifier: MIT
 * skip.h - tests of cmocka that cannot run here. Its own skip() prints "not ok N # SKIP", which prove takes for a
 * failure. */
#ifndef TESTS_LIB_SKIP_H
#define TESTS_LIB_SKIP_H
#include <stdbool.h>
#include <stdio.h>

/* if (cannot_run(no_room, "there is no room")) return; */
static inline bool cannot_run(bool cannot, const char *why)
{
	if (cannot) printf("# skipped: %s\n", why);
	return cannot;
}

#endif
