/* SPDX-License-Identifier: MIT
 * enc_avx2.c - the encoders with AVX2: enc_text.h with eight lanes. */
#if defined __x86_64__
#include "enc_lane_avx2.h"
#define ENC_TABLE quant_enc_avx2
#include "enc_text.h"
#else
typedef int enc_none;
#endif
