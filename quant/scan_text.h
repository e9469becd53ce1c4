/* SPDX-License-Identifier: MIT
 * scan_text.h - the functions of scan.h, in the words of vec_text.h, which includes this.
 *
 * Lanes are states, so that sums are those of dot. A sum ends with four steps that leave ever fewer lanes with
 * something to do, so sixteen of them end together. */
enum { TILE = 16, BLOCK = 64 };  /* sums that end together, of rows or channels; channels of a convolution */

static inline t16 t_mul(t16 a, t16 b) { EACH_REGISTER a.r[i] *= b.r[i]; return a; }
static inline t16 t_exp(t16 a) { EACH_REGISTER a.r[i] = r_exp(a.r[i]); return a; }
/* Loads the first n of sixteen numbers. n is sixteen, except for the last ones of a row. */
INLINE t16 t_some(const float *p, size_t n)
{
	float l[16] = { 0 };
	return t_load(n < 16 ? memcpy(l, p, n*sizeof *l) : p);
}
/* Stores the first n of sixteen; returns them, with zeros for the others, which may have met an infinity. */
INLINE t16 t_put_some(float *p, t16 a, size_t n)
{
	float l[16];
	if (n >= 16) {
		t_store(p, a);
		return a;
	}
	t_store(l, a);
	memcpy(p, l, n*sizeof *l);
	return t_some(p, n);
}

/* out[i] = the tree over s[i] */
static inline void trees(float *out, const t16 *s)
{
	UNROLL for (int i = 0; i < TILE; i += REG) {
		rf a[REG];
		UNROLL for (int j = 0; j < REG; j++) {
			t16 x = s[i + j];
			for (int h = LANE_REGS/2; h; h /= 2) for (int p = 0; p < h; p++) x.r[p] += x.r[p + h];
			a[j] = x.r[0];
		}
		r_put(out + i, r_trees(a));
	}
}
static inline void end_sums(float *out, t16 *s, size_t n)
{
	if (n < TILE/4) for (size_t i = 0; i < n; i++) {
		float l[16];
		t_store(l, s[i]);
		out[i] = r_tree(l);
	} else {
		for (size_t i = n; i < TILE; i++) s[i] = t_dup(0);
		trees(out, s);
	}
}

/* ---- convolution ---- */

/* A row, where those before the first and the new ones are counted together */
static inline float *conv_row(const struct scan_conv *c, size_t i)
{
	size_t before = c->width - 1;
	return i < before ? c->past + i*c->past_stride : c->x + (i - before)*c->stride;
}
static void conv_block(const struct scan_conv *c, size_t from, size_t n)
{
	float w[SCAN_MAX_WIDTH][BLOCK], bias[BLOCK] = { 0 }, next[SCAN_MAX_WIDTH][BLOCK];
	const float *row[SCAN_MAX_WIDTH];
	size_t width = c->width;
	for (size_t i = 0; i < n; i++) for (size_t k = 0; k < width; k++) w[k][i] = c->w[(from + i)*width + k];
	if (c->bias) memcpy(bias, c->bias + from, n*sizeof *bias);
	for (size_t k = 0; k + 1 < width; k++) memcpy(next[k], conv_row(c, c->n_rows + k) + from, n*sizeof **next);
	for (size_t t = c->n_rows; t--;) {      /* from the last one back: those before it are still as they were */
		size_t i = 0;
		float *y = c->x + t*c->stride + from, rest[REG];
		for (size_t k = 0; k < width; k++) row[k] = conv_row(c, t + k) + from;
		for (; i + REG <= n; i += REG) {
			rf sum = r_floats(bias + i);
			for (size_t k = 0; k < width; k++) sum += r_floats(w[k] + i)*r_floats(row[k] + i);
			r_put(y + i, gate(sum, sum));
		}
		if (i == n) continue;
		memcpy(rest, bias + i, sizeof rest);
		for (size_t j = 0; j < n - i; j++)
			for (size_t k = 0; k < width; k++) rest[j] += w[k][i + j]*row[k][i + j];
		silu(rest, rest, NULL, n - i);
		memcpy(y + i, rest, (n - i)*sizeof *y);
	}
	for (size_t k = 0; k + 1 < width; k++) memcpy(c->past + k*c->past_stride + from, next[k], n*sizeof **next);
}
static void conv(const struct scan_conv *c)
{
	for (size_t i = 0; i < c->n; i += BLOCK) conv_block(c, i, c->n - i < BLOCK ? c->n - i : BLOCK);
}

/* ---- Mamba-1 ---- */

/* A row of a channel: the step for `some` of its states, then for all of them */
INLINE t16 channel_step(t16 sum, float *h, const float *a, const float *b, const float *c, t16 dt, t16 by,
	size_t some)
{
	t16 now = t_mul(t_some(h, some), t_exp(t_mul(t_some(a, some), dt)));
	now = t_fma(by, t_some(b, some), now);
	return t_fma(t_put_some(h, now, some), t_some(c, some), sum);
}
INLINE t16 channel(float *h, const float *a, const float *b, const float *c, float dt, float x, size_t n)
{
	t16 sum = t_dup(0), step = t_dup(dt), by = t_dup(dt*x);
	size_t k = 0;
	for (; k + 16 <= n; k += 16) sum = channel_step(sum, h + k, a + k, b + k, c + k, step, by, 16);
	return k < n ? channel_step(sum, h + k, a + k, b + k, c + k, step, by, n - k) : sum;
}
/* Up to TILE rows from t0 on, of n channels from `from` on */
static void channels_tile(const struct scan_channels *s, size_t t0, size_t n_rows, size_t from, size_t n)
{
	float dt[TILE][TILE] = { { 0 } }, end[TILE];
	t16 sums[TILE];
	for (size_t j = 0; j < n_rows; j++) t_store(dt[j], t_some(s->dt + (t0 + j)*s->dt_stride + from, n));
	softplus(dt[0], n_rows*TILE);
	for (size_t j = 0; j < n_rows; j++) {
		const float *x = s->x + (t0 + j)*s->x_stride + from;
		const float *b = s->b + (t0 + j)*s->bc_stride, *c = s->c + (t0 + j)*s->bc_stride;
		float *out = s->out + (t0 + j)*s->out_stride + from;
		for (size_t i = 0; i < n; i++) {
			size_t states = (from + i)*s->n_state;
			sums[i] = channel(s->h + states, s->a + states, b, c, dt[j][i], x[i], s->n_state);
		}
		end_sums(end, sums, n);
		for (size_t i = 0; i < n; i++) out[i] = end[i] + s->d[from + i]*x[i];
	}
}
static size_t tile_of(size_t n, size_t from) { return n - from < TILE ? n - from : TILE; }
static void channels(const struct scan_channels *s)
{
	for (size_t i = 0; i < s->n; i += TILE)
		for (size_t t = 0; t < s->n_rows; t += TILE)
			channels_tile(s, t, tile_of(s->n_rows, t), i, tile_of(s->n, i));
}

/* ---- Mamba-2 ---- */

/* Up to TILE rows from t0 on; two channels at a time read b and c once. */
struct head_rows { size_t t0, n; float dt[TILE], fade[TILE]; };

struct head_sums { t16 fade, by[2], sum[2]; };

INLINE void head_step(struct head_sums *o, float *h, size_t apart, const float *b, const float *c, size_t n,
	size_t some)
{
	t16 bk = t_some(b, some), ck = t_some(c, some);
	UNROLL for (size_t p = 0; p < n; p++) {
		t16 now = t_fma(o->by[p], bk, t_mul(t_some(h + p*apart, some), o->fade));
		o->sum[p] = t_fma(t_put_some(h + p*apart, now, some), ck, o->sum[p]);
	}
}
INLINE void head_channels(const struct scan_head *s, const struct head_rows *r, size_t at, size_t n,
	t16 (*sums)[TILE])
{
	size_t states = s->n_state, n_rows = r->n;
	float *h = s->h + at*states;
	for (size_t j = 0; j < n_rows; j++) {
		size_t row = (r->t0 + j)*s->stride, k = 0;
		const float *b = s->b + row, *c = s->c + row;
		struct head_sums o = { .fade = t_dup(r->fade[j]) };
		for (size_t p = 0; p < n; p++) {
			o.by[p] = t_dup(r->dt[j]*s->x[row + at + p]);
			o.sum[p] = t_dup(0);
		}
		for (; k + 16 <= states; k += 16) head_step(&o, h + k, states, b + k, c + k, n, 16);
		if (k < states) head_step(&o, h + k, states, b + k, c + k, n, states - k);
		for (size_t p = 0; p < n; p++) sums[p][j] = o.sum[p];
	}
}
/* Results are put side by side first: in rows that are a whole number of pages apart, they would all fall on the same
 * lines of a cache. If there is only one row, states come from memory, which a core reads ahead if they are used in
 * their order. */
static void head_tile(const struct scan_head *s, const struct head_rows *r, size_t from, size_t n)
{
	float end[TILE], tile[TILE][TILE];
	t16 sums[2][TILE];
	for (size_t i = 0, some; i < n; i += some) {
		some = r->n > 1 && n - i > 1 ? 2 : 1;
		if (some == 2) head_channels(s, r, from + i, 2, sums);
		else head_channels(s, r, from + i, 1, sums);
		for (size_t p = 0; p < some; p++) {
			end_sums(end, sums[p], r->n);
			for (size_t j = 0; j < r->n; j++) tile[j][i + p] = end[j];
		}
	}
	for (size_t j = 0; j < r->n; j++) {
		const float *x = s->x + (r->t0 + j)*s->stride + from;
		float *out = s->out + (r->t0 + j)*s->out_stride + from;
		for (size_t i = 0; i < n; i++) out[i] = tile[j][i] + s->d*x[i];
	}
}
static void head(const struct scan_head *s)
{
	for (size_t t = 0; t < s->n_rows; t += TILE) {
		struct head_rows r = { .t0 = t, .n = tile_of(s->n_rows, t) };
		for (size_t j = 0; j < r.n; j++) r.dt[j] = s->dt[(t + j)*s->stride] + s->dt_bias;
		softplus(r.dt, r.n);
		for (size_t j = 0; j < r.n; j++) r.fade[j] = r.dt[j]*s->a;
		expv(r.fade, r.n);
		for (size_t i = 0; i < s->n; i += TILE) head_tile(s, &r, i, tile_of(s->n, i));
	}
}
