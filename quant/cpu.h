/* SPDX-License-Identifier: MIT
 * cpu.h - instruction sets as bits, weakest first. */
#ifndef QUANT_CPU_H
#define QUANT_CPU_H
/* CPU_AVX512BW: F, BW, DQ and VL; CPU_AVX512: and VNNI; CPU_AVX512VBMI: and VBMI and GFNI. CPU_ZEN4:
 * these on a core of AMD, where registers have more places to be added than to be multiplied. CPU_I8MM: and dotprod. */
enum { CPU_C = 1, CPU_AVX2 = 2, CPU_AVXVNNI = 4, CPU_AVX512BW = 8, CPU_AVX512 = 16, CPU_AVX512VBMI = 32, CPU_ZEN4 = 64,
	CPU_AMX = 128, CPU_NEON = 256, CPU_DOTPROD = 512, CPU_I8MM = 1024 };
unsigned cpu_features(void);
#endif
