/* SPDX-License-Identifier: MIT
 * slow_decode.h - blocks to numbers, one weight at a time, from the description of the format. */
#ifndef TESTS_SLOW_DECODE_H
#define TESTS_SLOW_DECODE_H
#include <stddef.h>
#include <stdint.h>

/* Weight i of a row of `type` (ggml's id), rounded as the format says: each operation to float.
 * Returns 0 if the type is not known here. */
int slow_decode(uint32_t type, const uint8_t *row, size_t i, float *weight);

#endif
