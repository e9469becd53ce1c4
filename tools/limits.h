/* SPDX-License-Identifier: MIT
 * limits.h - measures the limits of this machine, for gguf-bench and for the benchmark of kernels. */
#ifndef TOOLS_LIMITS_H
#define TOOLS_LIMITS_H
#include <stdbool.h>
#include "../libgguf/pool.h"

/* For all threads of a pool together. GB/s: bytes read from memory, each thread its own stretch in a plain loop; bytes
 * copied within each core's cache. GMAC/s: products of 16 bits and of 8 summed to int32, and fused multiply-adds of
 * float, by the plain dot-product and fma instructions of a set of quant.h (for "c", those that portable C can count
 * on), with operands in registers; for "amx" also int8 products of its tiles. 0: there is none, or it is unknown. */
struct limits { double read_gb, copy_gb, int16_gmacs, int8_gmacs, f32_gmacs, amx_gmacs; };
/* Takes about a second. */
struct limits limits_of(const char *isa, struct ggu_pool *pool);
/* For one thread and for all cores that the process may use; returns the pool of the latter, for the caller to free. */
struct ggu_pool *limits_of_one_and_all(const char *isa, struct limits *one, struct limits *all);
/* int16_gmacs, or f32_gmacs, of one core by its processor time, from a loop of less than a millisecond: to be run next
 * to what it is compared with, since clocks and neighbours change. */
double limits_products(const char *isa, bool f32);

/* The loop of read_gb, a pass at a time, to be run next to what it is compared with: cores that do not share a path to
 * memory read far more together than those that do, and systems move threads, and hypervisors whole machines. NULL: out
 * of memory. */
struct limits_reader *limits_reader_new(const char *isa, struct ggu_pool *pool);
double limits_reader_gb(struct limits_reader *r);       /* 0 of NULL */
void limits_reader_free(struct limits_reader *r);

/* Processor time of this process, in seconds, which depends less on a busy machine than the clock. */
double limits_cpu_now(void);
double limits_now(void);                /* by the clock */
/* seconds of the fastest run within `secs` by the clock now(), one run at least. The clock of a virtual machine's
 * processor time can stand still for a run, which does not count then. */
#define LIMITS_BEST_BY(now, best, secs, run) do { \
	best = 1e9; \
	for (double end_ = now() + (secs), t_ = 0; t_ < end_; ) { \
		double s_ = now(); \
		run; \
		t_ = now(); \
		if (t_ > s_ && t_ - s_ < best) best = t_ - s_; \
	} \
} while (0)
#define LIMITS_BEST(best, secs, run) LIMITS_BEST_BY(limits_cpu_now, best, secs, run)

#endif
