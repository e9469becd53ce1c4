/* SPDX-License-Identifier: MIT
 * act.h - activations as the weights of a block type meet them: int8, two formats.
 *
 *   types of blocks up to 128     struct x32:  x = d * q,          d = amax/127 of each 32 elements
 *   types of super-blocks of 256  struct x256: x = d * xs[j] * q,  xs 1..16 for each 32 elements,
 *                                 d = amax/(127*16) of the 256, xs = ceil(16 * amax of the 32 / amax)
 *
 * q is -127..127, never -128. The sub-scales let the sum over a super-block, sum of sc[j]*xs[j]*(sum of code*q),
 * stay an exact int32: the worst, Q6_K, is 128*16*(16*32*127)*16 = 2130706432 < 2^31. sc*xs and q*xs fit int16.
 * An infinite or NaN x makes d NaN, and so the products. An amax below 2^-96 counts as zero. */
#ifndef QUANT_ACT_H
#define QUANT_ACT_H
#include <stdint.h>

struct x32  { float d; int32_t sum; int8_t q[32]; };                            /* sum of q */
struct x256 { float d; uint8_t xs[8]; int16_t sum[16]; int8_t q[256]; };        /* sum: xs times the sum of 16 q */

#endif
