/* SPDX-License-Identifier: MIT
 * enc_avx512.c - the encoders with AVX-512: enc_text.h with sixteen lanes. */
#if defined __x86_64__
#include "enc_lane_avx512.h"
#define ENC_TABLE quant_enc_avx512
#include "enc_text.h"
#else
typedef int enc_none;
#endif
