/* SPDX-License-Identifier: MIT
 * cpu.h - which instruction sets this CPU has, as bits of sets.inc. */
#ifndef QUANT_CPU_H
#define QUANT_CPU_H

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

#endif
