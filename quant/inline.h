/* SPDX-License-Identifier: MIT
 * inline.h - private to quant/: how the texts that instances share are compiled for constants.
 *
 * A function of such a text takes a kind, a form or a number of rows, tokens or registers, and is compiled once for
 * each that it is called with: it is inlined, and its loops are unrolled, so that the arrays over which they go become
 * registers. Compilers would not do so on their own with functions and loops of this size. The searches of the encoders
 * take up to 40 percent less time where the lengths of their loops and their clamps are constants of a type. */
#ifndef QUANT_INLINE_H
#define QUANT_INLINE_H
#define INLINE static inline __attribute__((always_inline))
/* Before a loop whose number of rounds is a constant, at most 64 */
#define UNROLL _Pragma("GCC unroll 64")
/* Before a loop of about twenty instructions whose number of rounds is not known, but usually large: two rounds at a
 * time, for cores that share their front end with another thread */
#define TWICE _Pragma("GCC unroll 2")
#endif
