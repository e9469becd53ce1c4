/* SPDX-License-Identifier: MIT
 * cpu.c - what this CPU can run, by cpuid or getauxval, and what its operating system keeps when it switches
 * threads. */
#include <unistd.h>
#include "cpu.h"

size_t cpu_l1_bytes(void)
{
#if defined _SC_LEVEL1_DCACHE_SIZE
	long n = sysconf(_SC_LEVEL1_DCACHE_SIZE);
	return n > 0 ? (size_t)n : 0;
#else
	return 0;
#endif
}

#if defined __x86_64__
#include <cpuid.h>
#if defined __linux__
#include <sys/syscall.h>
#endif

/* Bits of XCR0: the registers that the operating system keeps, of SSE and AVX, and also of AVX-512 or of AMX. */
enum { KEEPS_AVX = 0x6, KEEPS_AVX512 = 0xe6, KEEPS_AMX = 0x60000 };
/* Bits of cpuid's leaf 7, edx, and of its subleaf 1, eax, for which older versions of cpuid.h have no names */
enum { AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, AVX_VNNI = 1 << 4 };

static unsigned xcr0(void)
{
	unsigned low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}
static bool has(unsigned word, unsigned bits) { return (word & bits) == bits; }

static bool made_by(unsigned ebx, unsigned ecx, unsigned edx)
{
	unsigned a, b = 0, c = 0, d = 0;
	return __get_cpuid(0, &a, &b, &c, &d) && b == ebx && c == ecx && d == edx;
}
static bool made_by_amd(void) { return made_by(signature_AMD_ebx, signature_AMD_ecx, signature_AMD_edx); }
bool cpu_fetches_pairs(void) { return made_by(signature_INTEL_ebx, signature_INTEL_ecx, signature_INTEL_edx); }

bool cpu_drops_prefetches(void)
{
	enum { ZEN_5 = 26 };
	unsigned a, b, c, d;
	if (!made_by_amd() || !__get_cpuid(1, &a, &b, &c, &d)) return true;
	return (a >> 8 & 15) + (a >> 20 & 255) < ZEN_5;         /* its family */
}

/* Tiles are 8 KB of each thread's state, for which a process must ask Linux once. */
static bool may_use_tiles(void)
{
#if defined __linux__
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
	return !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
#else
	return false;
#endif
}

/* CPU_STAND_INS: `make check-stand-ins` compiles AVX-VNNI's files to the same instructions of AVX-512, and executes
 * AMX's in a signal handler. */
unsigned cpu_features(void)
{
	unsigned a, b, c, d, b7 = 0, c7 = 0, d7 = 0, a71 = 0, os, set = CPU_C;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_OSXSAVE)) return set;
	os = xcr0();
	if (__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) __get_cpuid_count(7, 1, &a71, &b, &d, &d);
	if (!has(os, KEEPS_AVX) || !has(c, bit_FMA | bit_F16C) || !has(b7, bit_AVX2)) return set;
	set |= CPU_AVX2;
	if (has(a71, AVX_VNNI)) set |= CPU_AVXVNNI;
	if (!has(os, KEEPS_AVX512) || !has(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL)) return set;
	set |= CPU_AVX512BW;
	if (!has(c7, bit_AVX512VNNI)) return set;
	set |= CPU_AVX512;
	if (has(c7, bit_AVX512VBMI | bit_GFNI)) set |= CPU_AVX512VBMI;
	if ((set & CPU_AVX512VBMI) && made_by_amd()) set |= CPU_ZEN4;
#ifdef CPU_STAND_INS
	set |= CPU_AVXVNNI | CPU_AMX;
#endif
	if ((set & CPU_AVX512VBMI) && has(os, KEEPS_AMX) && has(d7, AMX_TILE | AMX_INT8) && may_use_tiles())
		set |= CPU_AMX;
	return set;
}
#else
bool cpu_drops_prefetches(void) { return true; }
bool cpu_fetches_pairs(void) { return false; }
#if defined __aarch64__
#if defined __linux__
#include <sys/auxv.h>
unsigned cpu_features(void)
{
	enum { ASIMDDP = 1 << 20, I8MM = 1 << 13 };     /* of AT_HWCAP, and of AT_HWCAP2 */
	unsigned set = CPU_C | CPU_NEON;
	if (!(getauxval(AT_HWCAP) & ASIMDDP)) return set;
	set |= CPU_DOTPROD;
	if (getauxval(AT_HWCAP2) & I8MM) set |= CPU_I8MM;
	return set;
}
#else
unsigned cpu_features(void) { return CPU_C | CPU_NEON; }
#endif
#else
unsigned cpu_features(void) { return CPU_C; }
#endif
#endif
