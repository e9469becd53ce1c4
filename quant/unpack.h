/* SPDX-License-Identifier: MIT
 * unpack.h - every type's unpacking under one signature, for texts that are written once for all types. An instance
 * first includes bytes_c.h, bytes_avx2.h or bytes_neon.h. */
#ifndef QUANT_UNPACK_H
#define QUANT_UNPACK_H
#include "inline.h"
#include "kern.h"
#include "mul.h"
#include "grids.h"
#define QUANT_DECODER
#include "codec/all.h"

/* A block's parts of 32, or a super-block. The texts' inline functions take these as constants and are compiled for
 * each type. */
typedef void unpack32_fn(const void *block, struct codes32 *c);
typedef void unpack256_fn(const void *block, struct codes256 *c);
#define BLOCK(NAME, name, kind, part, has_min) \
static inline void unpack_##name(const void *b, struct codes##kind *c) { name##_unpack(b, c); }
#include "types.inc"
#undef BLOCK
#endif
