/* SPDX-License-Identifier: MIT
 * kerntest.h - what the kernel tests share: TAP, random numbers, buffers between guard pages, hostile inputs.
 *
 * No test library, so that these tests run wherever a compiler does. A seed is drawn and printed; TEST_SEED or
 * the program's argument sets it. With TEST_STOP set a program ends at the first test that fails. A touched guard page
 * names the test and the seed. */
#ifndef TESTS_KERNTEST_H
#define TESTS_KERNTEST_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include "../../libgguf/ggu.h"

/* ---- TAP ---- */

void kt_begin(int argc, char **argv);
/* Names the current test, for kt_result and for a touched guard page. Format as in printf. */
void kt_name(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fails the current test, which keeps its first failure; returns false. */
bool kt_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool kt_failed(void);
void kt_result(void);                   /* prints the TAP line of the current test */
int kt_end(void);                       /* prints the plan; returns the program's exit status */

/* ---- numbers ---- */

void kt_reseed(uint64_t seed);          /* for what must not vary from run to run */
uint32_t kt_random(void);
size_t kt_below(size_t n);              /* 0 to n - 1 */
float kt_uniform(void);                 /* -1 to 1 */
float kt_bell(void);                    /* the sum of four in -1/2 to 1/2; no libm, so the same everywhere */
/* Are the bits equal, where any NaN equals any NaN? `at`, if not NULL: the first difference. */
bool kt_same(const float *a, const float *b, size_t n, size_t *at);

/* ---- buffers: between guard pages, at either end, by chance; exit 2 without memory ---- */

void *kt_buffer(size_t n);
void kt_free(void *p, size_t n);        /* fails the test if something was written beside it */

/* ---- inputs ---- */

enum kt_blocks { KT_RANDOM, KT_FF, KT_00, KT_80, KT_7F, KT_08, KT_TOP, KT_LONGEST, KT_WILD, KT_BLOCKS };
extern const char *const kt_blocks_name[KT_BLOCKS];
/* Blocks: random bytes with sane scales; all bytes the same except for the scales; KT_TOP: each byte one of 00, 7f, 80
 * and ff; KT_LONGEST: the sum of |scale*code| as large as a search finds it; KT_WILD: random bytes, with scales that
 * are zero, negative, subnormal, infinite or NaN. */
void kt_fill_blocks(const struct ggu_type_info *t, uint8_t *w, size_t n_blocks, enum kt_blocks kind);

enum kt_floats { KT_MIXED, KT_PLUS, KT_MINUS, KT_SIGNS, KT_OUTLIERS, KT_ZERO, KT_SUBNORMAL, KT_HAIR, KT_HUGE,
	KT_STRANGE, KT_FLOATS };
extern const char *const kt_floats_name[KT_FLOATS];
/* Activations or weights: of many magnitudes; one number, its negative, or both at random; one in 97 a thousand times
 * larger; zeros of both signs; subnormal; around 2^-96, below which packing gives 0; up to the largest float;
 * infinities and NaN. */
void kt_fill_floats(float *x, size_t n, enum kt_floats kind);

#endif
