/* SPDX-License-Identifier: MIT
 * enc_c.c - the encoders in portable C, the definition: enc_text.h with four lanes, which every compiler can map to
 * SSE2 or NEON or take apart. */
#include "enc_lane_c.h"
#define ENC_TABLE quant_enc_c
#include "enc_text.h"
