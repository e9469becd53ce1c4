/* SPDX-License-Identifier: MIT
 * pretok_norm.c - normalizers: each step of the list rewrites the text that the step before made. Malformed UTF-8 is
 * passed through. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "../../libgguf/text.h"
#include "../../libgguf/try.h"
#include "normal_form.h"
#include "pretok_internal.h"

bool pretok_is_space(int32_t c)
{
	return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0x2028 || c == 0x2029 ||
		utf8proc_category(c) == UTF8PROC_CATEGORY_ZS;
}

static bool is_space(const char *p, size_t n, size_t *len)
{
	utf8proc_int32_t c;
	utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)p, (utf8proc_ssize_t)n, &c);
	*len = k > 0 ? (size_t)k : 1;
	return k > 0 && pretok_is_space(c);
}

static void drop(struct buf *b) { b->late |= !b->n; }

static size_t char_bytes(const char *p, size_t n)
{
	size_t k = 0;
	if (n) do k++; while (k < n && (p[k] & 0xc0) == 0x80);
	return k;
}

/* What replaces several characters stands where the last of them was, and what is replaced by nothing is dropped. */
static enum ggu_status replace_all(struct pretok *p, const struct step *s, const char *t, size_t n, struct buf *b,
	struct ggu_error *err)
{
	struct subject u = { t, n, 0, 0 };
	struct match m = { false, 0, 0 };
	size_t from = 0;
	while (from < n && !b->failed) {
		TRY(pretok_next(p, s, &u, from, &m, err));
		if (!m.found) break;
		buf_put(b, t + from, m.at - from);
		if (m.end > m.at + char_bytes(t + m.at, m.end - m.at)) drop(b);
		buf_put(b, s->with, strlen(s->with));
		if (m.end > m.at) drop(b);
		from = m.end;
	}
	buf_put(b, t + from, n - from);
	return GGU_OK;
}

/* Writes what the table has for the character p[n], or else the character itself; for bytes that are no character,
 * U+FFFD. */
static void put_char(const struct charsmap *m, const char *p, size_t n, bool well_formed, struct buf *b)
{
	struct ggu_str to = { p, n };
	if (!charsmap_find(m, p, n, true, &to) && !well_formed) to = (struct ggu_str){ "\xef\xbf\xbd", 3 };
	buf_put(b, to.p, to.n);
}

/* The way of tokenizer.json: a grapheme of less than six bytes is replaced as a whole, by the shortest key that it
 * begins with; if there is none, and in longer graphemes, each character is replaced in this way. */
enum { WHOLE = 5 };
static void grapheme_chars(const struct charsmap *m, const char *t, size_t n, struct buf *b)
{
	struct ggu_str to;
	if (n <= WHOLE && charsmap_find(m, t, n, true, &to)) buf_put(b, to.p, to.n);
	else
		for (size_t i = 0, len; i < n; i += len) {
			utf8proc_int32_t c;
			utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)t + i,
				(utf8proc_ssize_t)(n - i), &c);
			len = k > 0 ? (size_t)k : 1;
			put_char(m, t + i, len, k > 0, b);
		}
}
static void chars(const struct charsmap *m, const char *t, size_t n, struct buf *b)
{
	utf8proc_int32_t c, before = 0, state = 0;
	size_t from = 0;
	for (size_t i = 0, len; i < n; i += len) {
		utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		len = k > 0 ? (size_t)k : 1;
		if (k <= 0) c = 0xfffd;
		if (i && utf8proc_grapheme_break_stateful(before, c, &state)) {
			grapheme_chars(m, t + from, i - from, b);
			from = i;
		}
		before = c;
	}
	if (from < n) grapheme_chars(m, t + from, n - from, b);
}

int pretok_order(const void *a, const void *b)
{
	const struct ggu_str *x = a, *y = b;
	int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
	return c ? c : (x->n > y->n) - (x->n < y->n);
}
/* The length of the longest user-defined piece that t[n] begins with; 0: none. If the last one that is not behind the
 * text is not its beginning, that piece is at most as long as what this one and the text have in common. */
static size_t user_piece(const struct pretok *p, const char *t, size_t n)
{
	size_t end = p->n_user, same = n;
	while (end && same) {
		const struct ggu_str text = { t, same };
		const struct ggu_str *last;
		size_t from = 0;
		while (from < end) {
			size_t mid = from + (end - from)/2;
			if (pretok_order(p->user + mid, &text) <= 0) from = mid + 1;
			else end = mid;
		}
		if (!end) return 0;
		last = p->user + end - 1;
		for (same = 0; same < last->n && last->p[same] == t[same]; same++) ;
		if (same == last->n) return same;
	}
	return 0;
}

/* What a text begins with, as SentencePiece reads it: a user-defined piece, which stays as it is; else the longest key
 * of the table, replaced; else a character. A byte that belongs to no well-formed character becomes U+FFFD. Returns
 * its length. */
static size_t spm_prefix(const struct pretok *p, const struct step *s, const char *t, size_t n, struct ggu_str *to)
{
	utf8proc_int32_t c;
	utf8proc_ssize_t k;
	size_t len = user_piece(p, t, n);
	*to = (struct ggu_str){ t, len };
	if (!len && s->chars) len = charsmap_find(&p->chars, t, n, false, to);
	if (len) return len;
	k = utf8proc_iterate((const utf8proc_uint8_t *)t, (utf8proc_ssize_t)n, &c);
	*to = k > 0 ? (struct ggu_str){ t, (size_t)k } : (struct ggu_str){ "\xef\xbf\xbd", 3 };
	return k > 0 ? (size_t)k : 1;
}

/* SentencePiece's normalizer: trims and collapses blanks, puts one in front and makes them U+2581, each if the step
 * says so. */
static void spm(const struct pretok *p, const struct step *s, const char *t, size_t n, struct buf *b)
{
	const struct ggu_str blank = s->escape ? (struct ggu_str){ PRETOK_MARK, 3 } : (struct ggu_str){ " ", 1 };
	bool space = s->remove_extra;           /* blanks are passed over */
	struct ggu_str to;
	size_t len;
	for (; s->remove_extra && n; t += len, n -= len) {
		len = spm_prefix(p, s, t, n, &to);
		if (to.n != 1 || *to.p != ' ') break;
	}
	if (!n) return;
	if (s->prefix) buf_put(b, blank.p, blank.n);
	for (; n; t += len, n -= len) {
		len = spm_prefix(p, s, t, n, &to);
		for (; space && to.n && *to.p == ' '; to.n--) to.p++;
		if (!to.n) continue;
		space = s->remove_extra && to.p[to.n - 1] == ' ';
		for (size_t i = 0; i < to.n; i++)
			if (to.p[i] == ' ') buf_put(b, blank.p, blank.n);
			else buf_put(b, to.p + i, 1);
	}
	/* also trims marks that were in the text */
	while (s->remove_extra && !b->failed && text_ends(b->p, b->n, blank.p)) b->n -= blank.n;
}

static enum ggu_status form_step(const struct step *s, const char *t, size_t n, struct buf *b, struct ggu_error *err)
{
	for (size_t i = 0; i < n; ) {           /* stretches of well-formed text; other bytes pass through */
		size_t j = i;
		utf8proc_int32_t c;
		utf8proc_ssize_t len = 0;
		while (j < n && (len = utf8proc_iterate((const utf8proc_uint8_t *)t + j, (utf8proc_ssize_t)(n - j),
			&c)) > 0)
			j += (size_t)len;
		if (j > i) {
			char *out;
			size_t out_n;
			TRY(normal_form(t + i, j - i, s->form, &out, &out_n, err));
			buf_put(b, out, out_n);
			free(out);
		}
		if (j < n) buf_put(b, t + j++, 1);
		i = j;
	}
	return GGU_OK;
}

static void lower(const char *t, size_t n, struct buf *b)
{
	for (size_t i = 0; i < n; ) {
		utf8proc_int32_t c;
		utf8proc_uint8_t out[4];
		utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		if (len <= 0) { buf_put(b, t + i++, 1); continue; }
		/* the one character whose lower case is two: i and a combining dot above */
		if (c == 0x130) buf_put(b, "i\xcc\x87", 3);
		else buf_put(b, (const char *)out, (size_t)utf8proc_encode_char(utf8proc_tolower(c), out));
		i += (size_t)len;
	}
}

/* Blocks of ideographs, each of which is a word to BERT. */
static bool is_ideograph(int32_t c)
{
	static const struct { int32_t from, to; } blocks[] = { { 0x3400, 0x4dbf }, { 0x4e00, 0x9fff },
		{ 0xf900, 0xfaff }, { 0x20000, 0x2a6df },
		{ 0x2a700, 0x2b73f }, { 0x2b740, 0x2b81f }, { 0x2b920, 0x2ceaf }, { 0x2f800, 0x2fa1f } };
	for (size_t i = 0; i < sizeof blocks/sizeof *blocks; i++)
		if (c >= blocks[i].from && c <= blocks[i].to) return true;
	return false;
}

/* BERT's first step: drops control characters and puts blanks around ideographs. */
static void bert_clean(const struct step *s, const char *t, size_t n, struct buf *b)
{
	for (size_t i = 0, len; i < n; i += len) {
		utf8proc_int32_t c;
		utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		int category = k > 0 ? utf8proc_category(c) : UTF8PROC_CATEGORY_CN;
		bool space = k > 0 && (c == '\t' || c == '\n' || c == '\r' || pretok_is_space(c));
		len = k > 0 ? (size_t)k : 1;
		if (s->clean && (k <= 0 || c == 0xfffd || c == 0)) drop(b);
		else if (s->clean && !(c == '\t' || c == '\n' || c == '\r')
			&& (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF
			|| category == UTF8PROC_CATEGORY_CO)) drop(b);
		else if (s->clean && space) buf_put(b, " ", 1);
		else if (s->ideographs && k > 0 && is_ideograph(c)) {
			buf_put(b, " ", 1);
			buf_put(b, t + i, len);
			buf_put(b, " ", 1);
		} else buf_put(b, t + i, len);
	}
}

static bool is_mark(int category, bool all)
{
	return category == UTF8PROC_CATEGORY_MN ||
		(all && (category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME));
}
/* Drops marks: all, or those that take no room, which are BERT's accents. */
static void drop_marks(const char *t, size_t n, bool all, struct buf *b)
{
	for (size_t i = 0, len; i < n; i += len) {
		utf8proc_int32_t c;
		utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		len = k > 0 ? (size_t)k : 1;
		if (k > 0 && is_mark(utf8proc_category(c), all)) drop(b);
		else buf_put(b, t + i, len);
	}
}

/* What old translation models have for control characters: some are dropped, some are blanks. */
static void nmt(const char *t, size_t n, struct buf *b)
{
	for (size_t i = 0, len; i < n; i += len) {
		utf8proc_int32_t c;
		utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		len = k > 0 ? (size_t)k : 1;
		if (k <= 0) c = -1;
		if (c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 || (c >= 0x200b && c <= 0x200f)
			|| c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd)
			buf_put(b, " ", 1);
		else if ((c >= 1 && c < ' ') || c == 0x7f || c == 0x8f || c == 0x9f) drop(b);
		else buf_put(b, t + i, len);
	}
}

static enum ggu_status bert(const struct step *s, const char *t, size_t n, struct buf *b, struct ggu_error *err)
{
	static const struct step nfd = { .form = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE };
	struct buf a = { .most = b->most }, d = { .most = b->most };
	enum ggu_status st = GGU_OK;
	buf_put(&a, "", 0);
	bert_clean(s, t, n, &a);
	if (s->accents && !a.failed) {
		buf_put(&d, "", 0);
		st = form_step(&nfd, a.p, a.n, &d, err);
		a.n = 0;
		if (!st && !d.failed) drop_marks(d.p, d.n, false, &a);
	}
	b->full |= a.full || d.full;
	b->late = a.late;
	if (a.failed || d.failed) b->failed = true;
	else if (!st && s->lower) lower(a.p, a.n, b);
	else if (!st) buf_put(b, a.p, a.n);
	free(a.p);
	free(d.p);
	return st;
}

static enum ggu_status normalize_step(struct pretok *p, const struct step *s, const char *t, size_t n, struct buf *b,
	struct ggu_error *err)
{
	size_t len;
	switch (s->kind) {
	case NORM_FORM: return form_step(s, t, n, b, err);
	case NORM_PREPEND: if (n) buf_put(b, s->text, strlen(s->text)); buf_put(b, t, n); break;
	case NORM_REPLACE: return replace_all(p, s, t, n, b, err);
	case NORM_LOWER: lower(t, n, b); break;
	case NORM_BERT: return bert(s, t, n, b, err);
	case NORM_CHARS: chars(&p->chars, t, n, b); break;
	case NORM_MARKS: drop_marks(t, n, true, b); break;
	case NORM_NMT: nmt(t, n, b); break;
	case NORM_BYTES: pretok_letters(t, n, b); break;
	case NORM_STRIP:
		for (; s->left && n && is_space(t, n, &len); t += len, n -= len) drop(b);
		for (size_t k = n; s->right && k; ) {
			do k--; while (k && (t[k] & 0xc0) == 0x80);
			if (!is_space(t + k, n - k, &len)) break;
			n = k;
		}
		buf_put(b, t, n);
		break;
	default: spm(p, s, t, n, b); break;
	}
	return GGU_OK;
}

/* Some steps that each double a text would fill any memory. So the result is bounded, far above what normal forms of
 * Unicode need (one character of 3 bytes becomes 33). */
enum { GROWTH = 64, GROWTH_BYTES = 1 << 16 };

enum ggu_status pretok_normalize(struct pretok *p, const char *text, size_t n, struct text *out, struct ggu_error *err)
{
	struct buf b = { 0 };
	buf_put(&b, text, n);
	for (size_t i = 0; i < p->n_norm; i++) {
		struct buf next = { .most = n < SIZE_MAX/(2*GROWTH) ? GROWTH*n + GROWTH_BYTES : SIZE_MAX };
		enum ggu_status s;
		buf_put(&next, "", 0);
		s = normalize_step(p, p->norm + i, b.p, b.n, &next, err);
		next.late |= b.late;
		if (!s && next.full)
			s = ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "normalizer",
				"makes more than %zu bytes of %zu", next.most, n);
		if (b.failed || (!s && next.failed)) s = ggu_no_memory(err);
		free(b.p);
		b = next;
		if (s) { free(b.p); return s; }
	}
	if (b.failed) { free(b.p); return ggu_no_memory(err); }
	*out = (struct text){ b.p, b.n, b.late };
	return GGU_OK;
}
