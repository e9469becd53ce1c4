/* SPDX-License-Identifier: MIT
 * blocks.h - the quantized blocks as they lie in a file, in ggml's layout. Integers little-endian.
 * f16 is an IEEE half as its bits. A codec file (codec/NAME.h) says what the bits of its block mean. A row may lie at
 * any address, so nothing in a block needs alignment. Sizes are checked against qtypes.def below. Q8_1 and Q8_K are
 * left out: they are ggml's packed activations, not types of weights. Source: ggml-common.h of ggml, 2026-08. */
#ifndef QUANT_BLOCKS_H
#define QUANT_BLOCKS_H
#include <stddef.h>
#include <stdint.h>
typedef uint16_t u16 __attribute__((aligned(1)));
typedef u16 f16;

struct q4_0    { f16 d; uint8_t qs[16]; };
struct q4_1    { f16 d, m; uint8_t qs[16]; };
struct q5_0    { f16 d; uint8_t qh[4], qs[16]; };
struct q5_1    { f16 d, m; uint8_t qh[4], qs[16]; };
struct q8_0    { f16 d; int8_t qs[32]; };
struct q2_k    { uint8_t scales[16], qs[64]; f16 d, dmin; };
struct q3_k    { uint8_t hmask[32], qs[64], scales[12]; f16 d; };
struct q4_k    { f16 d, dmin; uint8_t scales[12], qs[128]; };
struct q5_k    { f16 d, dmin; uint8_t scales[12], qh[32], qs[128]; };
struct q6_k    { uint8_t ql[128], qh[64]; int8_t scales[16]; f16 d; };
struct iq2_xxs { f16 d; u16 qs[32]; };
struct iq2_xs  { f16 d; u16 qs[32]; uint8_t scales[8]; };
struct iq2_s   { f16 d; uint8_t qs[64], qh[8], scales[8]; };
struct iq3_xxs { f16 d; uint8_t qs[96]; };
struct iq3_s   { f16 d; uint8_t qs[64], qh[8], signs[32], scales[4]; };
struct iq1_s   { f16 d; uint8_t qs[32]; u16 qh[8]; };
struct iq1_m   { uint8_t qs[32], qh[16], scales[8]; };
struct iq4_nl  { f16 d; uint8_t qs[16]; };
struct iq4_xs  { f16 d; u16 scales_h; uint8_t scales_l[4], qs[128]; };
struct tq1_0   { uint8_t qs[48], qh[4]; f16 d; };
struct tq2_0   { uint8_t qs[64]; f16 d; };
struct mxfp4   { uint8_t e, qs[16]; };
struct nvfp4   { uint8_t d[4], qs[32]; };
struct q1_0    { f16 d; uint8_t qs[16]; };
struct q2_0    { f16 d; uint8_t qs[16]; };

enum {
#define QTYPE(id, NAME, name, weights, bytes, swap, kind) BLOCK_BYTES_##NAME = bytes, BLOCK_WEIGHTS_##NAME = weights,
#include "../libgguf/qtypes.def"
#undef QTYPE
};
#define BLOCK(NAME, name, kind, part, has_min) _Static_assert(sizeof(struct name) == BLOCK_BYTES_##NAME, #name);
#include "types.inc"
#undef BLOCK
#endif
