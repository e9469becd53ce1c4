/* SPDX-License-Identifier: MIT
 * digits_settle.h - settles the sums of ROWS rows side by side, in the order of the blocks; one text for all widths of
 * registers, after digits_text.h. Lanes are rows. */

INLINE vf add(vf y, vf d, float xd, vi sum) { return v_fma(v_mul(d, v_all(xd)), v_floats(sum), y); }

/* Settles n super-blocks of a token, whose sums begin at p, in y. */
INLINE vf settle256(const struct digit_sums *s, const int32_t *p, size_t n, const struct strip256 *x,
	enum digits_scale scale, float factor, vf y)
{
	for (size_t b = 0; b < n; b++) {
		const int32_t *lanes = p + b*ROWS*8;
		const uint8_t *m = s->m + b*ROWS*16;
		if (scale == DIGITS_HALF) {
			y = add(y, v_mul(v_halves(s->d.half + b*ROWS), v_all(factor)), x[b].d, v_eights(lanes));
			continue;
		}
		const struct two d = v_pairs(v_load(s->d.pair + b*ROWS));
		const struct pair sum = scale == DIGITS_PAIR_16 ? v_q2_k(lanes, m, x + b) :
			(struct pair){ v_eights(lanes), v_minima(m, x[b].first, x[b].second) };
		y = add(y, d.d, x[b].d, sum.d);
		y = add(y, v_negative(d.m), x[b].d, sum.m);
	}
	return y;
}
/* d of a block's rows, and m if there is one; for blocks of 16, that of the second half */
INLINE struct two scales_of_block(const struct digit_sums *s, size_t at, enum digits_scale scale)
{
	switch (scale) {
	case DIGITS_HALF:
	case DIGITS_HALF_2:
	case DIGITS_HALF_4: return (struct two){ .d = v_halves(s->d.half + at) };
	case DIGITS_PAIR: return v_pairs(v_load(s->d.pair + at));
	case DIGITS_EXPONENT: return (struct two){ .d = v_exponent(v_words(s->d.half + at)) };
	default: return v_smalls(s->d.half + at);
	}
}
/* Settles n blocks of 32 in y. */
INLINE vf settle32(const struct digit_sums *s, const int32_t *p, size_t n, const struct strip_run *x,
	enum digits_scale scale, vf y)
{
	const int parts = scale == DIGITS_SMALL ? 2 : 1;
	const size_t share = scale == DIGITS_HALF_4 ? 4 : scale == DIGITS_HALF_2 ? 2 : 1;
	struct two d = { 0 };
	for (size_t b = 0; b < n; x++)
		for (size_t k = 0; k < 8 && b < n; k++, b++, p += parts*ROWS) {
			if (b%share == 0) d = scales_of_block(s, b*ROWS, scale);
			y = add(y, d.d, x->d[k], v_load(p));
			if (parts == 2) y = add(y, d.m, x->d[k], v_load(p + ROWS));
			if (scale == DIGITS_PAIR) y = v_fma(v_mul(d.m, v_all(x->d[k])), v_all(x->all_float[k]), y);
		}
	return y;
}
#if !defined DIGITS_RUNS
#define settle_runs settle32
#endif
static void settle(const struct digits_type *type, enum mul_kind kind, const struct digit_sums *s, const int32_t *sums,
	size_t n, const void *strip, float *to)
{
	const struct digits_type k = *type;
	vf y = v_from(to);
	if (mul_block(kind) == 32) switch (k.scale) {
	case DIGITS_HALF_2: y = settle32(s, sums, n, strip, DIGITS_HALF_2, y); break;
	case DIGITS_HALF_4: y = settle32(s, sums, n, strip, DIGITS_HALF_4, y); break;
	case DIGITS_HALF: y = settle_runs(s, sums, n, strip, DIGITS_HALF, y); break;
	case DIGITS_PAIR: y = settle_runs(s, sums, n, strip, DIGITS_PAIR, y); break;
	case DIGITS_EXPONENT: y = settle_runs(s, sums, n, strip, DIGITS_EXPONENT, y); break;
	default: y = settle_runs(s, sums, n, strip, DIGITS_SMALL, y); break;
	} else switch (k.scale) {
	case DIGITS_PAIR: y = settle256(s, sums, n, strip, DIGITS_PAIR, 1, y); break;
	case DIGITS_PAIR_16: y = settle256(s, sums, n, strip, DIGITS_PAIR_16, 1, y); break;
	default: y = settle256(s, sums, n, strip, DIGITS_HALF, k.factor, y); break;
	}
	v_to(to, y);
}
