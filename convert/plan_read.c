/* SPDX-License-Identifier: MIT
 * plan_read.c - the elements of a planned tensor, in order.
 *
 * Plain views are read straight to their destination. Views that are read across their order, or whose values change,
 * pass through a strip of at most STRIP elements, so that even a transpose reads pieces of reasonable size. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../model/util/file.h"
#include "../quant/quant.h"
#include "../quant/vec.h"
#include "plan.h"

enum { STRIP = 1 << 21, STRIP_PLAIN = 1 << 16 };

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
/* Checks that rounding has made no finite element infinite. The strip has n floats, elements `from` and up of part
 * v. */
static enum ggu_status check_range(const struct plan *p, const struct plan_tensor *t, const struct view *v,
	uint64_t from, size_t n, struct ggu_error *err)
{
	const float *x = p->strip;
	const char *raw = p->raw;
	for (size_t i = 0; (i += vec_beyond(x + i, n - i, INFINITY)) < n; i++)
		if (is_finite((uint32_t)v->t->dtype->type, raw + i*v->t->dtype->bytes))
			return file_fail(err, GGU_ERR_RANGE, "", GGU_NO_OFFSET, v->t->name,
				"element %llu of it in %.60s is beyond the range of f32",
				(unsigned long long)(from + i), t->name);
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
		s = check_range(p, t, v, from, (size_t)n, err);
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

enum ggu_status plan_read(struct plan *p, size_t i, uint64_t at, void *to, size_t n, struct ggu_error *err)
{
	const struct plan_tensor *t = p->v + i;
	size_t bytes = ggu_type_info(t->from)->block_bytes;
	uint64_t e = at/bytes, left = n/bytes;
	char *out = to;
	if (t->values) {
		memcpy(to, (const char *)t->values + at, n);
		return GGU_OK;
	}
	if (t->packed) return read_packed(p, t, e, to, left, err);
	for (size_t k = 0; left && k < t->n_parts; k++) {
		const struct view *v = t->part + k;
		uint64_t have = view_count(v);
		if (e >= have) { e -= have; continue; }
		while (left && e < have) {
			uint64_t m = have - e < left ? have - e : left;
			enum ggu_status s = GGU_OK;
			if (straight(t, v)) s = view_read(v, p->source, e, m, out, NULL, err);
			else {
				if (p->tensor != i + 1 || p->part != k || e < p->from || e >= p->to) {
					p->tensor = 0;
					s = fill(p, t, v, e, err);
					if (!s) { p->tensor = i + 1; p->part = k; }
				}
				if (!s && m > p->to - e) m = p->to - e;
				if (!s) memcpy(out, (char *)p->strip + (e - p->from)*bytes, (size_t)m*bytes);
			}
			if (s) return s;
			out += m*bytes;
			e += m;
			left -= m;
		}
		e = 0;
	}
	return left ? ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, t->name, "a read goes past its end") : GGU_OK;
}
