/* SPDX-License-Identifier: MIT
 * enc_text.h - every encoder, one text for all instruction sets; defines the table ENC_TABLE. An instance (enc_ISA.c)
 * first includes one of enc_lane.h's vocabularies.
 *
 * A type is a codec file with its constants, its table of efforts and its packing; types.inc lists them. */
#include "enc.h"
#include "enc_lane.h"
#include "enc_tile.h"
#include "enc_affine.h"
#include "enc_levels.h"
#include "enc_step.h"
#include "enc_blocks.h"
#include "enc_half.h"
#include "enc_quick.h"
#include "enc_grid.h"
#include "enc_exact.h"
#include "enc_feedback.h"
#include "enc_factor.h"

/* 32 codes of five bits: low halves of codes e and e + 16 in a byte of qs, fifth bits in qh. */
static inline void q5_bits(uint8_t *qs, uint8_t *qh, const uint8_t *code)
{
	put_nibbles(qs, code, code + 16);
	put_bits(qh, code, 4, 4);
}

#define QUANT_ENCODER
#include "codec/all.h"
#undef QUANT_ENCODER

const struct enc_table ENC_TABLE = {
	.fn = {
		[GGU_TYPE_F32] = enc_f32, [GGU_TYPE_F16] = enc_f16, [GGU_TYPE_BF16] = enc_bf16,
#define BLOCK(NAME, name, kind, part, has_min) [GGU_TYPE_##NAME] = enc_##name,
#include "types.inc"
#undef BLOCK
	},
	.coder = {
#define BLOCK(NAME, name, kind, part, has_min) [GGU_TYPE_##NAME] = &coder_##name,
#include "types.inc"
#undef BLOCK
	},
	.exact = encode_exactly,
	.feedback = encode_group,
	.factor = { factor_take, factor_corner, factor_solve },
	.solve = solve_rows,
};
