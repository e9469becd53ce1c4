/* SPDX-License-Identifier: MIT
 * enc_text.h - every encoder, compiled once for each instruction set: the includer sets VL and ENC_TABLE.
 *
 * A type is a codec file, which holds its numbers, its row of efforts and its packing, and a line in the
 * table at the end. */
#include "enc.h"
#include "enc_lane.h"
#include "enc_tile.h"
#include "enc_affine.h"
#include "enc_levels.h"
#include "enc_half.h"
#include "enc_grid.h"

/* 32 codes of five bits: low halves of codes e and e + 16 in a byte of qs, fifth bits in qh. */
static inline void q5_bits(uint8_t *qs, uint8_t *qh, const uint8_t *code)
{
	put_nibbles(qs, code, code + 16);
	put_bits(qh, code, 4, 4);
}

#define QUANT_ENCODER
#include "codec/f32.h"
#include "codec/f16.h"
#include "codec/bf16.h"
#include "codec/q8_0.h"
#include "codec/q4_0.h"
#include "codec/q4_1.h"
#include "codec/q5_0.h"
#include "codec/q5_1.h"
#include "codec/q2_k.h"
#include "codec/q3_k.h"
#include "codec/q4_k.h"
#include "codec/q5_k.h"
#include "codec/q6_k.h"
#include "codec/iq1_s.h"
#include "codec/iq1_m.h"
#include "codec/iq2_xxs.h"
#include "codec/iq2_xs.h"
#include "codec/iq2_s.h"
#include "codec/iq3_xxs.h"
#include "codec/iq3_s.h"
#include "codec/iq4_nl.h"
#include "codec/iq4_xs.h"
#include "codec/tq1_0.h"
#include "codec/tq2_0.h"
#include "codec/q1_0.h"
#include "codec/q2_0.h"
#include "codec/mxfp4.h"
#include "codec/nvfp4.h"
#undef QUANT_ENCODER

const struct enc_table ENC_TABLE = { {
	[GGU_TYPE_F32] = enc_f32, [GGU_TYPE_F16] = enc_f16, [GGU_TYPE_BF16] = enc_bf16,
	[GGU_TYPE_Q8_0] = enc_q8_0,
	[GGU_TYPE_Q4_0] = enc_q4_0, [GGU_TYPE_Q4_1] = enc_q4_1,
	[GGU_TYPE_Q5_0] = enc_q5_0, [GGU_TYPE_Q5_1] = enc_q5_1,
	[GGU_TYPE_Q2_K] = enc_q2_k, [GGU_TYPE_Q3_K] = enc_q3_k, [GGU_TYPE_Q4_K] = enc_q4_k,
	[GGU_TYPE_Q5_K] = enc_q5_k, [GGU_TYPE_Q6_K] = enc_q6_k,
	[GGU_TYPE_IQ1_S] = enc_iq1_s,
	[GGU_TYPE_IQ1_M] = enc_iq1_m,
	[GGU_TYPE_IQ2_XXS] = enc_iq2_xxs,
	[GGU_TYPE_IQ2_XS] = enc_iq2_xs,
	[GGU_TYPE_IQ2_S] = enc_iq2_s,
	[GGU_TYPE_IQ3_XXS] = enc_iq3_xxs,
	[GGU_TYPE_IQ3_S] = enc_iq3_s,
	[GGU_TYPE_IQ4_NL] = enc_iq4_nl,
	[GGU_TYPE_IQ4_XS] = enc_iq4_xs,
	[GGU_TYPE_TQ1_0] = enc_tq1_0,
	[GGU_TYPE_TQ2_0] = enc_tq2_0,
	[GGU_TYPE_Q1_0] = enc_q1_0,
	[GGU_TYPE_Q2_0] = enc_q2_0,
	[GGU_TYPE_MXFP4] = enc_mxfp4,
	[GGU_TYPE_NVFP4] = enc_nvfp4,
} };
