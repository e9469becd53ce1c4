/* SPDX-License-Identifier: MIT
 * cpu.h - instruction sets as bits, weakest first. */
#ifndef QUANT_CPU_H
#define QUANT_CPU_H
enum { CPU_C = 1, CPU_AVX2 = 2, CPU_AVXVNNI = 4, CPU_AVX512 = 8, CPU_NEON = 16, CPU_DOTPROD = 32, CPU_I8MM = 64 };
unsigned cpu_features(void);
#endif
