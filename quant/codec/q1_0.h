/* SPDX-License-Identifier: MIT
 * q1_0.h - blocks of 128: weight = d or -d.
 *
 *   qs        bit i%8 of byte i/8: set if weight i is d */
#ifdef QUANT_DECODER

static inline void q1_0_unpack(const struct q1_0 *b, struct codes32 *c)
{
	for (int p = 0; p < 4; p++) {
		c[p].d = f_half(b->d);
		c[p].m = 0;
		b_store(c[p].q, b_minus(b_mask(u32_of(b->qs + 4*p)) & 2, 1));
	}
}
#endif
#ifdef QUANT_ENCODER

/* The best d has a closed form, the weighted mean of |x|, so effort makes no difference. */
static inline void q1_0_tile(struct tile *t, struct fitted *f)
{
	_Alignas(64) float wx[LANES], ws[LANES];
	float a = 0, b = 0;
	for (int o = 0; o < LANES; o += REG) {
		rf s = r_dup(0), n = s;
		for (int e = 0; e < 8; e++) {
			rf x = r_floats(&t->x[e][o]), w = r_floats(&t->w[e][o]);
			s += w*r_abs(x); n += w;
			put_codes(&t->q[e][o], r_int(1 - ri_one(r_lt(x, r_dup(0)))));
		}
		r_put(wx + o, s); r_put(ws + o, n);
	}
	for (int l = 0; l < LANES; l++) { a += wx[l]; b += ws[l]; }
	f->d[0] = a/b*t->scale[0];
	tile_codes(t, 8);
}
static void pack_q1_0(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q1_0 *o = block;
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]);
	for (int l = 0; l < LANES; l++) put_bits(o->qs + l, t->code[l], 1, 0);
}
static void scales_q1_0(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset)
{
	const float d = f16_near(f->d[lane/c->per]);
	*step = 2*d;
	*offset = -d;
}
ENCODER(q1_0, 8, 16, q1_0_tile(t, f),
	.levels = &(const struct levels){ .lo = 0, .hi = 1 }, .scales = scales_q1_0)
#endif
