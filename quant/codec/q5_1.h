/* SPDX-License-Identifier: MIT
 * q5_1.h - blocks of 32: weight = d*q + m. Byte i of qs: low bits of codes i and i + 16; bit j of qh: bit 4 of code j. */
#ifdef QUANT_DECODER

static inline void q5_1_unpack(const struct q5_1 *b, struct codes32 *c)
{
	c->d = kern_f16_to_f32(b->d);
	c->m = kern_f16_to_f32(b->m);
	for (int i = 0; i < 16; i++) {
		c->q[i] = (int8_t)((b->qs[i] & 15) | (b->qh[i/8] >> i%8 & 1) << 4);
		c->q[i + 16] = (int8_t)(b->qs[i] >> 4 | (b->qh[i/8 + 2] >> i%8 & 1) << 4);
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct affine q5_1 = { .n = 32, .nmax = 31, .start = affine_starts_31 };
static inline void pack_q5_1(struct q5_1 *o, const struct tile *t, const struct fitted *f, int h)
{
	o->d = f16_scale(f->d[h]); o->m = f16_scale(f->m[h]);
	q5_bits(o->qs, o->qh, t->code[h]);
}
ENCODER_QUICK(q5_1, affine_blocks(&q5_1, &q4_1_effort[row], &t, &f),
	false, 31, o->qh, (o[k].d = f16_scale(f.d[k]), o[k].m = f16_scale(f.m[k])))
#endif
