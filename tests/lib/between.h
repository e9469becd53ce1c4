/* SPDX-License-Identifier: MIT
 * between.h - assert_between does what cmocka's assert_in_range does: cmocka 2 deprecates that name, and cmocka 1 lacks
 * those that replace it. */
#ifndef TESTS_BETWEEN_H
#define TESTS_BETWEEN_H
#include <stdint.h>
#include <cmocka.h>

#define assert_between(x, low, high) \
	do { \
		intmax_t is_ = (intmax_t)(x), low_ = (intmax_t)(low), high_ = (intmax_t)(high); \
		if (is_ < low_ || is_ > high_) \
			fail_msg("%s is %jd, not within %jd-%jd", #x, is_, low_, high_); \
	} while (0)
#endif
