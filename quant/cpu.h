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

/* Does a core forget a request for memory (prefetch) while it has as many lines under way as it can? Zen 4 does, so
 * that asking again pays; Zen 5 does not, and is the slower for it. Of others it is not known, and true is said. */
bool cpu_forgets(void);
size_t cpu_first_cache(void);           /* bytes of a core's first cache of data; 0: not known */

#endif
