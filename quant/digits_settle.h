/* SPDX-License-Identifier: MIT
 * digits_settle.h - sums of ROWS rows side by side, scaled in the order of the blocks; one text for all widths of
 * registers, after digits_text.h. Lanes are rows. */

INLINE vf add(vf y, vf d, float xd, vi sum) { return v_fma(v_mul(d, v_all(xd)), v_floats(sum), y); }

/* n super-blocks of token t onto y */
INLINE vf settle256(const struct digit_sums *s, size_t t, size_t n, const struct strip256 *x, enum digits_scale scale,
	float factor, vf y)
{
	for (size_t b = 0; b < n; b++) {
		vi sum = v_eights(s->s[t] + b*ROWS*8);
		if (scale == DIGITS_HALF) {
			y = add(y, v_mul(v_halves(s->d.half + b*ROWS), v_all(factor)), x[b].d, sum);
			continue;
		}
		struct two d = v_pairs(v_load(s->d.pair + b*ROWS));
		y = add(y, d.d, x[b].d, sum);
		y = add(y, v_negative(d.m), x[b].d, scale == DIGITS_PAIR_16 ? v_minima16(s->m + b*ROWS*16, x[b].sum) :
			v_minima(s->m + b*ROWS*8, x[b].first, x[b].second));
	}
	return y;
}
/* d of a unit's blocks, and m where there is one; of the second halves of blocks of 16 */
INLINE void scales_of_four(const struct digit_sums *s, size_t at, enum digits_scale scale, struct two *to)
{
	vi d[4];
	vf h[4];
	if (scale == DIGITS_HALF) {
		v_turn_halves(s->d.half + at, h);
		UNROLL for (int i = 0; i < 4; i++) to[i].d = h[i];
		return;
	}
	v_turn(s->d.pair + at, d);
	UNROLL for (int i = 0; i < 4; i++)
		switch (scale) {
		case DIGITS_PAIR: to[i] = v_pairs(d[i]); break;
		case DIGITS_EXPONENT: to[i].d = v_exponent(d[i]); break;
		case DIGITS_SMALL: to[i] = (struct two){ v_small(d[i]), v_small(v_right(d[i], 8)) }; break;
		default: to[i].d = (vf)d[i]; break;
		}
}
/* n blocks of 32 of token t onto y */
INLINE vf settle32(const struct digit_sums *s, size_t t, size_t n, const struct strip32 *strip, int part,
	enum digits_scale scale, int bias, vf y)
{
	const size_t half = ROWS*16, unit = part == 16 ? 2*half : half;
	y = v_order(y);
	for (size_t q = 0; q < n; q += 4) {
		const struct strip32 *x = strip + q/4;
		const int32_t *p = s->s[t] + q/4*unit;
		struct two d[4];
		vi first[4], second[4];
		scales_of_four(s, q*ROWS, scale, d);
		v_fours(p, first);
		if (part == 16) v_fours(p + half, second);
		UNROLL for (size_t i = 0; i < 4; i++) {
			const int32_t *sum = x->sum[i], all = sum[0] + sum[1];
			float xd = x->d[i];
			if (q + i >= n) break;
			y = add(y, d[i].d, xd, v_less(first[i], bias*(part == 16 ? sum[0] : all)));
			if (part == 16) y = add(y, d[i].m, xd, v_less(second[i], bias*sum[1]));
			if (scale == DIGITS_PAIR) y = v_fma(v_mul(d[i].m, v_all(xd)), v_all((float)all), y);
		}
	}
	return v_order(y);
}
static void settle(const struct digits_type *type, enum mul_kind kind, const struct digit_sums *s, size_t t, size_t n,
	const void *strip, float *to)
{
	const struct digits_type k = *type;
	vf y = v_from(to);
	if (kind == MUL_16) y = settle32(s, t, n, strip, 16, DIGITS_SMALL, k.bias, y);
	else if (mul_block(kind) == 32) switch (k.scale) {
	case DIGITS_HALF: y = settle32(s, t, n, strip, 32, DIGITS_HALF, k.bias, y); break;
	case DIGITS_PAIR: y = settle32(s, t, n, strip, 32, DIGITS_PAIR, 0, y); break;
	case DIGITS_EXPONENT: y = settle32(s, t, n, strip, 32, DIGITS_EXPONENT, k.bias, y); break;
	default: y = settle32(s, t, n, strip, 32, DIGITS_FLOAT, k.bias, y); break;
	} else switch (k.scale) {
	case DIGITS_PAIR: y = settle256(s, t, n, strip, DIGITS_PAIR, 1, y); break;
	case DIGITS_PAIR_16: y = settle256(s, t, n, strip, DIGITS_PAIR_16, 1, y); break;
	default: y = settle256(s, t, n, strip, DIGITS_HALF, k.factor, y); break;
	}
	v_to(to, y);
}
