/* SPDX-License-Identifier: MIT
 * plan_read.c - the elements of a planned tensor, in order.
 *
 * Plain views are read straight to their destination. Views that are read across their order, or whose values change,
 * pass through a strip of at most STRIP elements, so that even a transpose reads pieces of reasonable size.
 *
 * A strip of a coded tensor has CODES bytes of codes and is read as it is stored (coded_fetch). It stays while it is
 * the plan's last one or a piece with elements of it is not finished. Pieces of a tensor that are not finished and have
 * n elements thus hold less than n elements and two strips; an element takes at most RAW bytes, and usually one or
 * half. Strips are large because AWQ stores columns as rows: of each of these a strip of n rows has n/2 bytes, and they
 * are read one by one. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/try.h"
#include "../model/util/file.h"
#include "../quant/quant.h"
#include "../quant/vec.h"
#include "plan.h"

enum { STRIP = 1 << 21, STRIP_PLAIN = 1 << 16, CODES = 4 << 20, UNIT = 1 << 17, RAW = 4 };

static enum ggu_status room(void **p, size_t *have, size_t want, struct ggu_error *err)
{
	void *q;
	if (*have >= want) return GGU_OK;
	q = realloc(*p, want);
	if (!q) return ggu_no_memory(err);
	*p = q;
	*have = want;
	return GGU_OK;
}

static bool is_finite(uint32_t type, const void *raw)
{
	double d;
	float x;
	if (type == GGU_TYPE_F64) return memcpy(&d, raw, sizeof d), isfinite(d);
	quant_decode(type, raw, &x, 1);
	return isfinite(x);
}
/* Elements `from` to from + n - 1 of a part, and where they go */
struct run { const struct plan_tensor *t; const struct view *v; uint64_t from; size_t n; void *to; };
/* Checks that rounding has made no finite element infinite. raw: as stored, x: as floats */
static enum ggu_status check_range(const struct run *r, const void *raw, const float *x, struct ggu_error *err)
{
	const struct source_tensor *t = r->v->t;
	for (size_t i = 0; (i += vec_beyond(x + i, r->n - i, INFINITY)) < r->n; i++)
		if (is_finite((uint32_t)t->dtype->type, (const char *)raw + i*t->dtype->bytes))
			return file_fail(err, GGU_ERR_RANGE, "", GGU_NO_OFFSET, t->name,
				"element %llu of it in %.60s is beyond the range of f32",
				(unsigned long long)(r->from + i), r->t->name);
	return GGU_OK;
}

/* The strip of part v that holds element e. */
static enum ggu_status fill(struct plan *p, const struct plan_tensor *t, const struct view *v, uint64_t e,
	struct ggu_error *err)
{
	uint64_t unit = view_unit(v), total = view_count(v), want = view_crosswise(v) ? STRIP : STRIP_PLAIN, n;
	size_t raw = v->t->dtype->bytes;
	uint32_t type = (uint32_t)v->t->dtype->type;
	bool change = t->from != type || v->n_ops;
	enum ggu_status s;
	uint64_t from = e - e%unit;
	n = want < unit ? unit : want - want%unit;
	if (n > total - from) n = total - from;
	s = room(&p->raw, &p->raw_bytes, (size_t)n*raw, err);
	if (!s) s = room(&p->work, &p->work_bytes, view_work_bytes(v, n), err);
	if (!s) s = view_read(v, p->source, from, n, p->raw, p->work, err);
	if (!s) s = room(&p->strip, &p->strip_bytes, (size_t)n*(change ? sizeof(float) : raw), err);
	if (s) return s;
	if (change) {
		quant_decode(type, p->raw, p->strip, (size_t)n);
		view_operate(v, p->strip, (size_t)n);
		s = check_range(&(struct run){ t, v, from, (size_t)n, p->strip }, p->raw, p->strip, err);
	} else memcpy(p->strip, p->raw, (size_t)n*raw);
	p->from = from;
	p->to = from + n;
	return s;
}

static bool straight(const struct plan_tensor *t, const struct view *v)
{
	return t->from == (uint32_t)v->t->dtype->type && !v->n_ops && !view_crosswise(v) && view_work_bytes(v, 2) == 0;
}

/* Byte j has codes 2j (the low half) and 2j + 1 in the source, j and j + 16 in GGUF. */
static void pack_mxfp4(const uint8_t *codes, uint8_t scale, uint8_t *to)
{
	uint8_t c[32];
	for (int j = 0; j < 16; j++) {
		c[2*j] = codes[j] & 15;
		c[2*j + 1] = codes[j] >> 4;
	}
	to[0] = scale;
	for (int j = 0; j < 16; j++) to[1 + j] = (uint8_t)(c[j] | c[j + 16] << 4);
}

static enum ggu_status read_packed(struct plan *p, const struct plan_tensor *t, uint64_t block, uint8_t *to,
	uint64_t n, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	for (uint64_t m; n && !s; block += m, n -= m) {
		m = n < STRIP_PLAIN ? n : STRIP_PLAIN;
		s = room(&p->raw, &p->raw_bytes, (size_t)m*17, err);
		/* a row of one block leaves gaps between the scales, if every second row is taken */
		for (size_t k = 0; k < 2 && !s; k++)
			s = room(&p->work, &p->work_bytes, view_work_bytes(t->part + k, k ? m : m*16), err);
		if (!s) s = view_read(t->part, p->source, block*16, m*16, p->raw, p->work, err);
		if (!s) s = view_read(t->part + 1, p->source, block, m, (uint8_t *)p->raw + m*16, p->work, err);
		for (uint64_t k = 0; k < m && !s; k++, to += 17)
			pack_mxfp4((uint8_t *)p->raw + k*16, ((uint8_t *)p->raw)[m*16 + k], to);
	}
	return s;
}

/* ---- coded tensors ---- */

/* A strip as it is stored */
struct codes {
	atomic_int holders;
	const struct view *v;
	uint64_t from, to;
	struct coded_raw *raw;
};
/* Elements that are still to be computed */
struct later { struct later *next; struct codes *codes; struct run run; };
void plan_codes_let_go(struct codes *s)
{
	if (!s || atomic_fetch_sub(&s->holders, 1) > 1) return;
	coded_raw_free(s->raw);
	free(s);
}
static void let_go(struct later *l)
{
	for (struct later *next; l; l = next) {
		next = l->next;
		plan_codes_let_go(l->codes);
		free(l);
	}
}
/* Makes the strip with element e of v the plan's. There is none if v is not coded, or can only be computed in large
 * parts, or if a box around the strip has too much else. */
static enum ggu_status find_codes(struct plan *p, const struct view *v, uint64_t e, struct ggu_error *err)
{
	const uint64_t unit = view_unit(v), from = e - e%unit, left = view_count(v) - from;
	uint64_t n;
	struct coded_box box;
	struct codes *s = p->codes;
	enum ggu_status status;
	if (s && s->v == v && e >= s->from && e < s->to) return GGU_OK;
	plan_codes_let_go(s);
	p->codes = NULL;
	if (!v->t->coded || unit > UNIT) return GGU_OK;
	n = CODES*8/v->t->coded->code.bits;
	n = n < left ? n - n%unit : left;
	box = view_box(v, from, n);
	if (coded_raw_bytes(v->t->coded, &box) > n*RAW) return GGU_OK;
	s = malloc(sizeof *s);
	if (!s) return ggu_no_memory(err);
	*s = (struct codes){ .v = v, .from = from, .to = from + n };
	atomic_init(&s->holders, 1);
	status = coded_fetch(p->source, v->t->coded, &box, &s->raw, err);
	if (status) free(s);
	else p->codes = s;
	return status;
}
static enum ggu_status put_off(struct codes *s, const struct run *r, struct recode_piece *piece, struct ggu_error *err)
{
	struct later *l = malloc(sizeof *l);
	if (!l) return ggu_no_memory(err);
	*l = (struct later){ piece->later, s, *r };
	atomic_fetch_add(&s->holders, 1);
	piece->later = l;
	return GGU_OK;
}
static enum ggu_status compute(const struct later *l, struct ggu_error *err)
{
	const struct run *r = &l->run;
	const struct view *v = r->v;
	const uint64_t unit = view_unit(v), before = r->from%unit, n = (before + r->n + unit - 1)/unit*unit;
	const bool direct = n == r->n && !v->n_ops;
	float *x = direct ? r->to : malloc((size_t)n*sizeof *x);
	void *work = malloc(view_work_bytes(v, n) + 1);
	struct coded_reader reader;
	enum ggu_status s = x && work ? GGU_OK : ggu_no_memory(err);
	if (!s) {
		coded_reader_init(&reader, l->codes->raw);
		view_compute(v, &reader, r->from - before, n, x, work);
		if (!direct) memcpy(r->to, x + before, r->n*sizeof *x);
		if (v->n_ops) {
			view_operate(v, r->to, r->n);
			s = check_range(r, x + before, r->to, err);
		}
	}
	free(work);
	if (!direct) free(x);
	return s;
}

/* ---- pieces ---- */

/* Reads the run, or less of it: r->n is what it was. */
static enum ggu_status read_run(struct plan *p, struct run *r, struct recode_piece *piece, struct ggu_error *err)
{
	const size_t bytes = ggu_type_info(r->t->from)->block_bytes;
	TRY(find_codes(p, r->v, r->from, err));
	if (p->codes) {
		if (r->n > p->codes->to - r->from) r->n = (size_t)(p->codes->to - r->from);
		return put_off(p->codes, r, piece, err);
	}
	if (straight(r->t, r->v)) return view_read(r->v, p->source, r->from, r->n, r->to, NULL, err);
	if (p->filled != r->v || r->from < p->from || r->from >= p->to) {
		p->filled = NULL;
		TRY(fill(p, r->t, r->v, r->from, err));
		p->filled = r->v;
	}
	if (r->n > p->to - r->from) r->n = (size_t)(p->to - r->from);
	memcpy(r->to, (char *)p->strip + (r->from - p->from)*bytes, r->n*bytes);
	return GGU_OK;
}
static enum ggu_status read_parts(struct plan *p, struct recode_piece *piece, struct ggu_error *err)
{
	const struct plan_tensor *t = p->v + piece->i;
	const size_t bytes = ggu_type_info(t->from)->block_bytes;
	uint64_t e = piece->at/bytes;
	size_t left = piece->n/bytes;
	char *out = piece->to;
	for (size_t k = 0; left && k < t->n_parts; k++) {
		const uint64_t have = view_count(t->part + k);
		if (e >= have) { e -= have; continue; }
		while (left && e < have) {
			struct run r = { t, t->part + k, e, have - e < left ? (size_t)(have - e) : left, out };
			TRY(read_run(p, &r, piece, err));
			out += r.n*bytes;
			e += r.n;
			left -= r.n;
		}
		e = 0;
	}
	return left ? ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, t->name, "a read goes past its end") : GGU_OK;
}
enum ggu_status plan_fetch(struct plan *p, struct recode_piece *piece, struct ggu_error *err)
{
	const struct plan_tensor *t = p->v + piece->i;
	const size_t bytes = ggu_type_info(t->from)->block_bytes;
	enum ggu_status s;
	piece->later = NULL;
	if (t->values) {
		memcpy(piece->to, (const char *)t->values + piece->at, piece->n);
		return GGU_OK;
	}
	if (t->packed) return read_packed(p, t, piece->at/bytes, piece->to, piece->n/bytes, err);
	s = read_parts(p, piece, err);
	if (s) {
		let_go(piece->later);
		piece->later = NULL;
	}
	return s;
}
enum ggu_status plan_finish(struct recode_piece *piece, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	for (const struct later *l = piece->later; l && !s; l = l->next) s = compute(l, err);
	let_go(piece->later);
	piece->later = NULL;
	return s;
}
enum ggu_status plan_read(struct plan *p, size_t i, uint64_t at, void *to, size_t n, struct ggu_error *err)
{
	struct recode_piece piece = { i, at, to, n, NULL };
	TRY(plan_fetch(p, &piece, err));
	return plan_finish(&piece, err);
}
