/* SPDX-License-Identifier: MIT
 * limits.h - what one core of this machine can do at most, measured. */
#ifndef TESTS_LIMITS_H
#define TESTS_LIMITS_H

/* GB/s: bytes read from memory; bytes copied within the cache. GMAC/s: products of bytes summed to int32, and fused
 * multiply-adds of float, by the plain dot-product and fma instructions of an instance of quant.h (those that portable C
 * can count on for "c"), on registers alone. 0: not known for the instance. */
struct limits { double read_gb, copy_gb, int8_gmacs, f32_gmacs; };
/* Takes under a second. */
struct limits limits_of(const char *isa);

/* Processor time of this process, in seconds: what a busy machine does to a clock counts less. */
double limits_now(void);
/* seconds of the fastest run within `secs`, one run at least */
#define LIMITS_BEST(best, secs, run) do { \
	best = 1e9; \
	for (double end_ = limits_now() + (secs), t_ = 0; t_ < end_; ) { double s_ = limits_now(); run; t_ = limits_now(); if (t_ - s_ < best) best = t_ - s_; } \
} while (0)

#endif
