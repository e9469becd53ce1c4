/* SPDX-License-Identifier: MIT
 * cpu.h - which instruction sets this CPU has, as bits of sets.inc. */
#ifndef QUANT_CPU_H
#define QUANT_CPU_H
#include <stdbool.h>
#include <stddef.h>

#define SET(name, NAME, ...) CPU_NUMBER_##NAME,
enum {
#include "sets.inc"
};
#undef SET
#define SET(name, NAME, ...) CPU_##NAME = 1 << CPU_NUMBER_##NAME,
enum {
#include "sets.inc"
};
#undef SET

unsigned cpu_features(void);

/* Does a core drop a prefetch while it has as many lines in flight as it can? Zen 4 does, so repeating the prefetch
 * helps; Zen 5 does not, and repeating it costs time. For others this is unknown, and the answer is true. */
bool cpu_drops_prefetches(void);
/* Does a core bring both lines of a pair, 128 bytes, into L2 if one is wanted? Intel's do. */
bool cpu_fetches_pairs(void);
size_t cpu_l1_bytes(void);              /* of a core's L1 data cache; 0: not known */

#endif
