/* SPDX-License-Identifier: MIT
 * q5_1.h - blocks of 32: weight = d*q + m, with q of 5 bits.
 *
 *   qs        byte i: the lower four bits of code i in the low half, of code i + 16 in the high half
 *   qh        bit j: the fifth bit of code j */
#ifdef QUANT_DECODER

static inline void q5_1_unpack(const struct q5_1 *b, struct codes32 *c)
{
	c->d = f_half(b->d);
	c->m = f_half(b->m);
	b_store(c->q, b_nibbles(b->qs) | (b_mask(u32_of(b->qh)) & 16));
}
#endif
#ifdef QUANT_ENCODER

static const struct affine affine_q5_1 = { .n = 32, .nmax = 31, .start = affine_starts_31 };
static void pack_q5_1(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q5_1 *o = block;
	o->d = f16_scale(f->d[h]); o->m = f16_scale(f->m[h]);
	q5_bits(o->qs, o->qh, t->code[h]);
}
static const struct quick quick_q5_1 = { .bytes = sizeof(struct q5_1), .centred = false, .top = 31,
	.qs = offsetof(struct q5_1, qs), .qh = offsetof(struct q5_1, qh) };
ENCODER_QUICK(q5_1, affine_blocks(&affine_q5_1, &q4_1_effort[how->row], t, f),
	.exact = true, .affine = &affine_q5_1, .levels = &(const struct levels){ .lo = 0, .hi = 31 },
	.scales = scales_block_min)
#endif
