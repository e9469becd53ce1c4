/* SPDX-License-Identifier: MIT
 * digits_runs.h - part of digits_text.h in registers of 32 bytes: blocks of 32, eight of a row, a run, at a time. (Four
 * blocks of 64 are eight of 32.)
 *
 * Two blocks are a pair, and have two registers of codes: the first sixteen columns of both blocks, and their second
 * sixteen. These times their columns' digits leave four integers to a block. A run has four such registers; lanes added
 * up across them are its eight sums, those of even blocks before those of odd ones. So they are stored, row by row, and
 * so are the scales, as floats in the order of blocks. Settling transposes both: lanes become rows. */

/* The codes of the pair of blocks at p and q, or of the block of 64 at p */
typedef void pair_fn(const void *p, const void *q, vi *c);

INLINE size_t run_units(struct unit like) { return 8/(size_t)like.blocks; }

INLINE void halves(vi x, vi *c)
{
	c[0] = v_and(x, 15);
	c[1] = v_and(v_right(x, 4), 15);
}
/* The levels that halves of bytes are numbers of */
INLINE void level_halves(vi x, const int8_t *table, int bias, vi *c)
{
	const __m128i t = _mm_add_epi8(x16(table), _mm_set1_epi8((char)bias));
	c[0] = v_level(t, x);
	c[1] = v_level(t, v_right(x, 4));
}
/* Adds fifth bits, those of the blocks at p and q. */
INLINE void fifths(const void *p, const void *q, vi *c)
{
	const vi bits = _mm256_set_m128i(_mm_set1_epi32((int)u32_of(q)), _mm_set1_epi32((int)u32_of(p))),
		from = y_each(_mm_setr_epi32(0, 0, 0x01010101, 0x01010101)),
		bit = _mm256_set1_epi64x((long long)0x8040201008040201);
	UNROLL for (int i = 0; i < 2; i++) {
		const vi some = _mm256_and_si256(_mm256_shuffle_epi8(bits, _mm256_add_epi8(from, y_bytes(2*i))), bit);
		c[i] = _mm256_or_si256(c[i], v_and(_mm256_cmpeq_epi8(some, bit), 16));
	}
}
INLINE vi both(const void *p, const void *q) { return y_two(p, q); }
INLINE void q4_0_pair(const void *p, const void *q, vi *c)
{
	const struct q4_0 *a = p, *b = q;
	halves(both(a->qs, b->qs), c);
}
INLINE void q4_1_pair(const void *p, const void *q, vi *c)
{
	const struct q4_1 *a = p, *b = q;
	halves(both(a->qs, b->qs), c);
}
INLINE void q5_0_pair(const void *p, const void *q, vi *c)
{
	const struct q5_0 *a = p, *b = q;
	halves(both(a->qs, b->qs), c);
	fifths(a->qh, b->qh, c);
}
INLINE void q5_1_pair(const void *p, const void *q, vi *c)
{
	const struct q5_1 *a = p, *b = q;
	halves(both(a->qs, b->qs), c);
	fifths(a->qh, b->qh, c);
}
INLINE void q8_0_pair(const void *p, const void *q, vi *c)
{
	const struct q8_0 *a = p, *b = q;
	UNROLL for (int i = 0; i < 2; i++) c[i] = v_flip(both(a->qs + 16*i, b->qs + 16*i), BIAS_BYTE);
}
INLINE void iq4_nl_pair(const void *p, const void *q, vi *c)
{
	const struct iq4_nl *a = p, *b = q;
	level_halves(both(a->qs, b->qs), iq4_levels, BIAS_BYTE, c);
}
INLINE void mxfp4_pair(const void *p, const void *q, vi *c)
{
	const struct mxfp4 *a = p, *b = q;
	level_halves(both(a->qs, b->qs), fp4_levels, BIAS_FP4, c);
}
/* A block of 64, where a byte has columns that are 8 apart */
INLINE void nvfp4_pair(const void *p, const void *q, vi *c)
{
	const struct nvfp4 *a = p;
	vi n[2];
	(void)q;
	level_halves(y_load(a->qs), fp4_levels, BIAS_FP4, n);
	c[0] = _mm256_unpacklo_epi64(n[0], n[1]);
	c[1] = _mm256_unpackhi_epi64(n[0], n[1]);
}

/* ---- scales, with which n blocks begin, side by side ---- */

/* Two bytes each. Block k's sixteen bytes are taken from so far ahead of it that these are the k-th two of them. */
INLINE __m128i heads2(const char *w, size_t bytes, size_t n)
{
	const size_t step = bytes - 2;
	__m128i a = x16(w);
	if (n > 1) a = _mm_blend_epi16(a, x16(w + step), 2);
	if (n > 2) a = _mm_blend_epi16(a, x16(w + 2*step), 4);
	if (n > 3) a = _mm_blend_epi16(a, x16(w + 3*step), 8);
	if (n > 4) a = _mm_blend_epi16(a, x16(w + 4*step), 16);
	if (n > 5) a = _mm_blend_epi16(a, x16(w + 5*step), 32);
	if (n > 6) a = _mm_blend_epi16(a, x16(w + 6*step), 64);
	if (n > 7) a = _mm_blend_epi16(a, x16(w + 7*step), 128);
	return a;
}
/* Four bytes each of the first four */
INLINE __m128i heads4(const char *w, size_t bytes, size_t n)
{
	const size_t step = bytes - 4;
	__m128i a = x16(w);
	if (n > 1) a = _mm_blend_epi32(a, x16(w + step), 2);
	if (n > 2) a = _mm_blend_epi32(a, x16(w + 2*step), 4);
	if (n > 3) a = _mm_blend_epi32(a, x16(w + 3*step), 8);
	return a;
}
/* One byte each. As a block has 17, the i-th 32 bytes have those of blocks 2i and 2i + 1 in the i-th word of both
 * halves, below and above. */
INLINE __m128i heads1(const char *w, size_t n)
{
	if (n < 8) {
		uint64_t some = 0;
		UNROLL for (size_t k = 0; k < 7; k++)
			if (k < n) some |= (uint64_t)*(const uint8_t *)(w + 17*k) << 8*k;
		return _mm_cvtsi64_si128((long long)some);
	}
	const vi a = _mm256_blend_epi16(y_load(w), y_load(w + 32), 2),
		b = _mm256_blend_epi16(_mm256_blend_epi16(a, y_load(w + 64), 4), y_load(w + 96), 8);
	return _mm_or_si128(_mm_and_si128(_mm256_castsi256_si128(b), _mm_set1_epi16(255)),
		_mm_andnot_si128(_mm_set1_epi16(255), _mm256_extracti128_si256(b, 1)));
}
/* d as floats, and those of second parts; or pairs of d and m as they are */
INLINE struct two scales(const char *w, size_t n, struct unit like)
{
	const size_t bytes = like.bytes;
	if (like.parts == 2) {
		const __m128i a = heads4(w, bytes, n);
		return v_smalls((const void *)&a);
	}
	if (like.scale == 4) {
		const __m128i none = _mm_setzero_si128();
		return (struct two){ .d = (vf)_mm256_set_m128i(n > 4 ? heads4(w + 4*bytes, bytes, n - 4) : none,
			heads4(w, bytes, n)) };
	}
	return (struct two){ .d = like.scale == 2 ? _mm256_cvtph_ps(heads2(w, bytes, n)) :
		v_exponent(_mm256_cvtepu8_epi32(heads1(w, n))) };
}

/* ---- runs ---- */

INLINE vi times(vi a, int n)
{
	vi b = _mm256_set1_epi32(n);
	__asm__("" : "+x"(b));  /* else compilers shift and add */
	return _mm256_mullo_epi32(a, b);
}
/* The sums of a run's i-th parts. c: the codes of its pairs */
INLINE vi run_sum(int pairs, vi (*c)[2], const struct strip_run *x, int i, struct unit like)
{
	const int n = 2/like.parts;
	vi a[4] = { v_none(), v_none(), v_none(), v_none() };
	UNROLL for (int k = 0; k < pairs; k++) a[k] = y_dots(c[k] + i, n, x->high[i][2*k], x->low[i][2*k]);
	const vi sum = four(a[0], a[1], a[2], a[3]);
	if (!like.bias) return sum;
	return _mm256_add_epi32(sum, times(v_load(n == 2 ? x->all : x->sum[i]), -like.bias));
}
/* A run of n blocks, as they are in the file, in so many pairs, the at-th of a chunk. s: where the first token's sums
 * go */
INLINE void run(int n_tokens, int pairs, const char *w, size_t n, const char *strip, size_t strip_stride,
	struct unit like, pair_fn *pair, int32_t *s, struct digit_sums *to, size_t at)
{
	const size_t units = 2/(size_t)like.blocks;
	vi c[4][2];
	UNROLL for (size_t k = 0; k < (size_t)pairs; k++) {
		const char *p = w + k*units*like.bytes;
		pair(p, (k + 1)*units <= n ? p + like.bytes : p, c[k]);
	}
	UNROLL for (int t = 0; t < n_tokens; t++)
		UNROLL for (int i = 0; i < like.parts; i++)
			v_store(s + t*(DIGITS_SUMS/n_tokens) + ((size_t)like.parts*at + (size_t)i)*8,
				run_sum(pairs, c, (const void *)(strip + (size_t)t*strip_stride), i, like));
	const struct two d = scales(w, n, like);
	v_to(to->d.run[0] + 8*at, d.d);
	if (like.parts == 2) v_to(to->d.run[1] + 8*at, d.m);
}
/* Runs of n blocks of one token, row by row: so many whole ones from the first on, or the one after these */
INLINE void runs_by_rows(int pairs, const struct digits_part *part, size_t whole, size_t n, struct unit like,
	pair_fn *pair, int32_t *s, struct digit_sums *to)
{
	const struct digits_part p = *part;
	const size_t units = run_units(like), bytes = (size_t)(2*pairs/like.blocks)*like.bytes,
		first = n < units ? whole : 0, n_runs = n < units ? 1 : whole, done = first*units*like.bytes;
	for (struct walk row = walk_from(&p); row.r < p.n_rows; walk_on(&row, &p)) {
		const char *w = row.w + done, *later = mul_past(row.later.w, done), *soon = mul_past(row.soon.w, done),
			*strip = p.strip + first*sizeof(struct strip_run);
		size_t at = first*ROWS + row.r;
		for (size_t i = 0; i < n_runs; i++, strip += sizeof(struct strip_run), at += ROWS) {
			digits_fetch(later, soon, bytes);
			run(1, pairs, w, n, strip, 0, like, pair, s, to, at);
			w += bytes;
			later += bytes;
			soon += bytes;
		}
	}
}
/* n whole runs of all rows, side by side, so that their digits are read from the first level of cache */
INLINE void runs_side_by_side(int n_tokens, const struct digits_part *part, size_t n, struct unit like, pair_fn *pair,
	struct digit_sums *to)
{
	const struct digits_part p = *part;
	const size_t units = run_units(like), bytes = units*like.bytes;
	const char *near = p.near, *strip = p.strip;
	for (size_t i = 0; i < n; i++, strip += sizeof(struct strip_run)) {
		const char *w = p.w + i*bytes;
		for (size_t r = 0; r < p.n_rows; r++, w += p.w_stride, near += bytes) {
			fetch_lines(near, p.w_stride, bytes, p.fetch);
			run(n_tokens, 4, w, units, strip, p.strip_stride, like, pair, to->s, to, i*ROWS + r);
		}
	}
}
/* What a token has after its last whole run */
typedef void last_fn(const struct digits_part *p, int32_t *s, struct digit_sums *to);
INLINE void last_run(const struct digits_part *p, int32_t *s, struct digit_sums *to, struct unit like, pair_fn *pair)
{
	const size_t units = run_units(like), whole = p->n/units, n = p->n%units;
	switch ((n*(size_t)like.blocks + 1)/2) {
	case 1: runs_by_rows(1, p, whole, n, like, pair, s, to); break;
	case 2: runs_by_rows(2, p, whole, n, like, pair, s, to); break;
	case 3: runs_by_rows(3, p, whole, n, like, pair, s, to); break;
	default: runs_by_rows(4, p, whole, n, like, pair, s, to); break;
	}
}
/* Runs of one token, with digits of so many in the first level of cache, are processed row by row, in the order of
 * memory. */
enum { RUNS_BY_ROWS = 24 };
INLINE void runs(int n_tokens, const struct digits_part *p, struct digit_sums *to, struct unit like, pair_fn *pair,
	last_fn *last)
{
	const size_t units = run_units(like), n = p->n/units;
	if (n && n_tokens == 1 && !like.side_by_side && n <= RUNS_BY_ROWS)
		runs_by_rows(4, p, n, units, like, pair, to->s, to);
	else runs_side_by_side(n_tokens, p, n, like, pair, to);
	struct digits_part one = *p;
	if (p->n%units) for (int t = 0; t < n_tokens; t++, one.strip += p->strip_stride)
		last(&one, to->s + t*(DIGITS_SUMS/n_tokens), to);
}

/* ---- settling ---- */

/* Turns a row's four integers into a lane of each of four registers, for eight rows. */
INLINE void columns(const int32_t *p, size_t stride, vi *to)
{
	vi a[4];
	UNROLL for (size_t r = 0; r < 4; r++)
		a[r] = y_two((const char *)(p + r*stride), (const char *)(p + (r + 4)*stride));
	y_transpose(a, to);
}
/* The same of a row's four floats times those at x. */
INLINE void scaled_columns(const float *p, const float *x, vf *to)
{
	const vf by = _mm256_broadcast_ps((const void *)x);
	vi a[4], b[4];
	UNROLL for (size_t r = 0; r < 4; r++)
		a[r] = (vi)v_mul((vf)y_two((const char *)(p + 8*r), (const char *)(p + 8*(r + 4))), by);
	y_transpose(a, b);
	UNROLL for (size_t i = 0; i < 4; i++) to[i] = (vf)b[i];
}
/* Settles n blocks of a run. p: its sums; d: its scales, and those of second parts */
INLINE vf settle_run(const int32_t *p, const float *d, const float *second, size_t n, const struct strip_run *x,
	enum digits_scale scale, vf y)
{
	const size_t parts = scale == DIGITS_SMALL ? 2 : 1;
	vi sum[2][8];
	UNROLL for (size_t i = 0; i < parts; i++)
		UNROLL for (size_t h = 0; h < 2; h++) columns(p + 8*i + 4*h, 8*parts, sum[i] + 4*h);
	UNROLL for (size_t h = 0; h < 2; h++) {
		vi pairs[4];
		vf u[4], v[4];
		if (4*h >= n) return y;
		if (scale == DIGITS_PAIR) columns((const int32_t *)d + 4*h, 8, pairs);
		else scaled_columns(d + 4*h, x->d + 4*h, u);
		if (parts == 2) scaled_columns(second + 4*h, x->d + 4*h, v);
		UNROLL for (size_t i = 0; i < 4; i++) {
			const size_t k = 4*h + i, at = digits_place(k);
			if (k >= n) return y;
			if (scale == DIGITS_PAIR) {
				const struct two s = v_pairs(pairs[i]);
				const vf by = v_all(x->d[k]);
				y = v_fma(v_mul(s.d, by), v_floats(sum[0][at]), y);
				y = v_fma(v_mul(s.m, by), v_all(x->all_float[k]), y);
			} else {
				y = v_fma(u[i], v_floats(sum[0][at]), y);
				if (parts == 2) y = v_fma(v[i], v_floats(sum[1][at]), y);
			}
		}
	}
	return y;
}
/* Settles n blocks of 32 in y. */
INLINE vf settle_runs(const struct digit_sums *s, const int32_t *p, size_t n, const struct strip_run *x,
	enum digits_scale scale, vf y)
{
	const size_t parts = scale == DIGITS_SMALL ? 2 : 1, step = 8*ROWS;
	const float *d = s->d.run[0], *second = s->d.run[1];
	for (; n >= 8; n -= 8, p += parts*step, d += step, second += step, x++)
		y = settle_run(p, d, second, 8, x, scale, y);
	return n ? settle_run(p, d, second, n, x, scale, y) : y;
}
