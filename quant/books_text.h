/* SPDX-License-Identifier: MIT
 * books_text.h - rows of types with code books and of ternary types times digits, for all widths of registers; defines
 * the table BOOKS_TABLE, whose sums BOOKS_DIGITS settles. An instance first includes books_256.h or books_512.h, which
 * have
 *   struct planes           a block's codes and scales, or what they are made from
 *   struct arranged         a token's activations, in the order of columns that suits the codes
 *   name_prepare(w, stride, n, to)  makes struct prepared for n rows' blocks: their words, or what these are found by
 *   PLANES(name)(block, from)       for one of the types below; called later, so that neither has to wait long
 *   ARRANGE(order)(strip, bias, t)  makes the activations for it; order: of columns, one of those in books_512.h
 *   name_sums(n, c, t, to, step)    leaves eight lanes that add up to a block's sum for each of n tokens, which begin
 *                                   `step` apart */
#include "kern.h"

typedef void prepare_fn(const char *w, size_t stride, size_t n, struct prepared *to);
typedef struct planes planes_fn(const void *block, const struct prepared *from);
typedef void arrange_fn(const struct strip256 *x, int bias, struct arranged *t);
typedef void sums_fn(int n, const struct planes *c, const struct arranged *t, int32_t *to, size_t step);
struct book {
	size_t bytes;
	int bias;
	size_t at_d;
	uint16_t (*half_of)(const void *);      /* d, if it is stored in pieces; or NULL */
	int by_rows;                    /* rows one after another */
};

INLINE uint16_t iq1_m_half(const void *block)
{
	uint64_t s;
	memcpy(&s, (const char *)block + offsetof(struct iq1_m, scales), sizeof s);
	return kern_iq1_m_d(s);
}
/* A row's block, `from` of it, the activations x */
INLINE void book_block(int n_tokens, const char *w, const struct prepared *from, const struct arranged *x,
	struct digit_sums *to, size_t at, struct book like, planes_fn *unpack, sums_fn *sums)
{
	const struct planes c = unpack(w, from);
	sums(n_tokens, &c, x, to->s + 8*at, (size_t)(DIGITS_SUMS/n_tokens));
	if (like.half_of) to->d.half[at] = like.half_of(w);
	else memcpy(to->d.half + at, w + like.at_d, 2);
}
INLINE void arrange_all(int n_tokens, const char *strip, size_t stride, int bias, arrange_fn *arrange,
	struct arranged *x)
{
	for (int t = 0; t < n_tokens; t++) arrange((const void *)(strip + (size_t)t*stride), bias, x + t);
}
INLINE void books_by_rows(int n_tokens, const struct digits_part *part, struct digit_sums *to, struct book like,
	arrange_fn *arrange, prepare_fn *prepare, planes_fn *unpack, sums_fn *sums)
{
	const struct digits_part p = *part;
	struct arranged x[DIGITS_SUPERS];
	struct prepared some[DIGITS_SUPERS];
	for (size_t b = 0; b < p.n; b++)
		arrange_all(n_tokens, p.strip + b*sizeof(struct strip256), p.strip_stride, like.bias, arrange,
			x + b*n_tokens);
	for (struct walk at = walk_from(&p); at.r < p.n_rows; walk_on(&at, &p)) {
		const char *w = at.w, *later = at.later.w, *soon = at.soon.w;
		prepare(w, like.bytes, p.n, some);
		for (size_t b = 0; b < p.n; b++) {
			digits_fetch(later, soon, like.bytes);
			book_block(n_tokens, w, some + b, x + b*n_tokens, to, b*ROWS + at.r, like, unpack, sums);
			w += like.bytes;
			later += like.bytes;
			soon += like.bytes;
		}
	}
}
/* Later rows are prefetched into L1 if they fit there with everything else. Otherwise they go to L2, and two blocks
 * before they are used from there to L1. */
enum { NEAR_BYTES = 9 << 10 };
INLINE void fetch_block(const char *later, const char *soon, size_t bytes, int far)
{
	for (size_t i = 0; i < bytes; i += 64) {
		if (far) {
			__builtin_prefetch(later + i, 0, 2);
			__builtin_prefetch(soon + i, 0, 3);
		} else __builtin_prefetch(later + i, 0, 3);
	}
}
INLINE void books_by_blocks(int n_tokens, const struct digits_part *p, struct digit_sums *to, struct book like,
	arrange_fn *arrange, prepare_fn *prepare, planes_fn *unpack, sums_fn *sums)
{
	const int far = p->w_stride*ROWS > NEAR_BYTES;
	for (size_t b = 0; b < p->n; b++) {
		const char *w = p->w + b*like.bytes, *strip = p->strip + b*sizeof(struct strip256),
			*next = p->near + DIGITS_NEARER*p->w_stride + b*like.bytes*ROWS;
		struct arranged x[DIGITS_TOKENS];
		struct prepared some[ROWS];
		arrange_all(n_tokens, strip, p->strip_stride, like.bias, arrange, x);
		prepare(w, p->w_stride, p->n_rows, some);
		for (size_t r = 0, at = b*ROWS; r < p->n_rows; r++, at++, w += p->w_stride, next += like.bytes) {
			fetch_block(next, w + 2*like.bytes, like.bytes, far);
			book_block(n_tokens, w, some + r, x, to, at, like, unpack, sums);
		}
	}
}

/* Functions for 1, 2 and 4 tokens */
#define BOOKS(name, n, order, ...) \
static void name##_##n(const struct digits_part *p, struct digit_sums *to) \
{ \
	const struct book like = { sizeof(struct name), __VA_ARGS__ }; \
	if (like.by_rows) books_by_rows(n, p, to, like, ARRANGE(order), name##_prepare, PLANES(name), name##_sums); \
	else books_by_blocks(n, p, to, like, ARRANGE(order), name##_prepare, PLANES(name), name##_sums); \
}
#define BOOK(name, ...) BOOKS(name, 1, __VA_ARGS__) BOOKS(name, 2, __VA_ARGS__) BOOKS(name, 4, __VA_ARGS__)
#define D_OF(name) offsetof(struct name, d), NULL
BOOK(iq2_xxs, sixteens, SIGNED, D_OF(iq2_xxs))
BOOK(iq2_xs, sixteens, SIGNED, D_OF(iq2_xs))
BOOK(iq2_s, sixteens, SIGNED, D_OF(iq2_s))
BOOK(iq3_xxs, sixteens, SIGNED, D_OF(iq3_xxs))
BOOK(iq3_s, sixteens, SIGNED, D_OF(iq3_s))
BOOK(iq1_s, deltas, 9, D_OF(iq1_s))
BOOK(iq1_m, sixteens, 9, 0, iq1_m_half)
BOOK(tq1_0, tq1_0, 1, D_OF(tq1_0), TERNARY_BY_ROWS)
BOOK(tq2_0, tq2_0, 1, D_OF(tq2_0), TERNARY_BY_ROWS)

#define OF(name) { name##_1, name##_2, name##_4 }
static void settle(const struct digits_type *type, enum mul_kind kind, const struct digit_sums *s, const int32_t *sums,
	size_t n, const void *strip, float *y)
{
	BOOKS_DIGITS.settle(type, kind, s, sums, n, strip, y);
}
const struct digits_table BOOKS_TABLE = { ROWS, SUPERS, READS, settle, {
	[GGU_TYPE_IQ1_S] = { OF(iq1_s), DIGITS_HALF, 0.125f },
	[GGU_TYPE_IQ1_M] = { OF(iq1_m), DIGITS_HALF, 0.125f },
	[GGU_TYPE_IQ2_XXS] = { OF(iq2_xxs), DIGITS_HALF, 0.125f },
	[GGU_TYPE_IQ2_XS] = { OF(iq2_xs), DIGITS_HALF, 0.125f },
	[GGU_TYPE_IQ2_S] = { OF(iq2_s), DIGITS_HALF, 0.125f },
	[GGU_TYPE_IQ3_XXS] = { OF(iq3_xxs), DIGITS_HALF, 0.25f },
	[GGU_TYPE_IQ3_S] = { OF(iq3_s), DIGITS_HALF, 1 },
	[GGU_TYPE_TQ1_0] = { OF(tq1_0), DIGITS_HALF, 1, .supers = SUPERS_TQ1_0 },
	[GGU_TYPE_TQ2_0] = { OF(tq2_0), DIGITS_HALF, 1, .supers = SUPERS_TQ2_0 },
} };
