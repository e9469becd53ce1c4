/* SPDX-License-Identifier: MIT
 * cpu.h - instruction sets as bits, weakest first. */
#ifndef QUANT_CPU_H
#define QUANT_CPU_H
/* CPU_AVX512BW: F, BW, DQ and VL; CPU_AVX512: and VNNI; CPU_AVX512VBMI: and VBMI and GFNI. CPU_I8MM: and dotprod. */
enum { CPU_C = 1, CPU_AVX2 = 2, CPU_AVXVNNI = 4, CPU_AVX512BW = 8, CPU_AVX512 = 16, CPU_AVX512VBMI = 32, CPU_AMX = 64,
	CPU_NEON = 128, CPU_DOTPROD = 256, CPU_I8MM = 512 };
unsigned cpu_features(void);
#endif
