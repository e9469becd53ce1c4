/* SPDX-License-Identifier: MIT
 * pretok.c - see pretok.h; and what pretok_internal.h declares for all steps.
 *
 * A pre-tokenizer step takes the list of pieces and makes the next: it splits by a regular expression, or rewrites
 * (bytes to letters, blanks to marks). Malformed UTF-8 matches nothing and is passed through. Matching is bounded: a
 * pattern from a file cannot hang us. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "../../libgguf/text.h"
#include "pretok_internal.h"

void buf_put(struct buf *b, const char *p, size_t n)
{
	if (!b->failed && b->most && n > b->most - b->n) b->failed = b->full = true;
	if (b->failed) return;
	if (b->cap - b->n < n + 1) {
		size_t cap = (b->n + n + 1)*3/2 + 32;
		char *more = realloc(b->p, cap);
		if (!more) { b->failed = true; return; }
		b->p = more;
		b->cap = cap;
	}
	if (n) memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = 0;
}

/* Makes [from, to) the stretch that holds the character at `at`, or the next one. false: there is none. */
static bool stretch_at(struct subject *u, size_t at)
{
	utf8proc_int32_t c;
	utf8proc_ssize_t len = 0;
	if (at >= u->from && at < u->to) return true;
	while (at < u->n && (len = utf8proc_iterate((const utf8proc_uint8_t *)u->t + at, (utf8proc_ssize_t)(u->n - at),
		&c)) <= 0)
		at++;
	u->from = at;
	for (; at < u->n && len > 0; len = at < u->n ? utf8proc_iterate((const utf8proc_uint8_t *)u->t + at,
		(utf8proc_ssize_t)(u->n - at), &c) : 0)
		at += (size_t)len;
	u->to = at;
	return u->from < u->to;
}

enum ggu_status pretok_find(struct pretok *p, const struct step *s, struct subject *u, size_t from, struct match *m,
	struct ggu_error *err)
{
	PCRE2_SIZE *o = pcre2_get_ovector_pointer(p->match);
	int r = PCRE2_ERROR_NOMATCH;
	bool at_end = from == u->to && u->to > u->from;         /* where there may be an empty match */
	for (; r == PCRE2_ERROR_NOMATCH && (at_end || stretch_at(u, from)); from = u->to, at_end = false) {
		PCRE2_SPTR t = (PCRE2_SPTR)u->t + u->from;
		size_t start = from > u->from ? from - u->from : 0, n = u->to - u->from;
		r = pcre2_match(s->re, t, n, start, PCRE2_NO_UTF_CHECK, p->match, p->limits);
		if (r == PCRE2_ERROR_JIT_STACKLIMIT)    /* the interpreter can get more memory */
			r = pcre2_match(s->re, t, n, start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, p->match, p->limits);
	}
	m->found = r >= 0;
	if (r >= 0) {
		m->at = u->from + o[0];
		m->end = u->from + o[1];
	}
	if (r >= 0 || r == PCRE2_ERROR_NOMATCH) return GGU_OK;
	if (r == PCRE2_ERROR_NOMEMORY) return ggu_no_memory(err);       /* the interpreter allocates */
	return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "pattern",
		"a pattern of the tokenizer gave up on the text (code %d)", r);
}

enum ggu_status pretok_next(struct pretok *p, const struct step *s, struct subject *u, size_t from, struct match *m,
	struct ggu_error *err)
{
	const struct match last = *m;
	TRY(pretok_find(p, s, u, from, m, err));
	if (!m->found || !last.found || m->at < m->end || m->end != last.end) return GGU_OK;
	do from++; while (from < u->n && ((unsigned char)u->t[from] & 0xc0) == 0x80);
	return pretok_find(p, s, u, from, m, err);
}

/* ---- pre-tokens ---- */

/* Byte-level BPE writes bytes that are not visible Latin-1 characters as U+0100 and up, in order (GPT-2). */
static const struct { int from, to; } hidden[] = { { 0, 32 }, { 127, 160 }, { 173, 173 } };
enum { N_HIDDEN = sizeof hidden/sizeof *hidden };
static int letter_of(int byte)
{
	int letter = 256;
	for (int i = 0; i < N_HIDDEN; letter += hidden[i].to + 1 - hidden[i].from, i++)
		if (byte >= hidden[i].from && byte <= hidden[i].to) return letter + byte - hidden[i].from;
	return byte;
}
void pretok_letters(const char *t, size_t n, struct buf *b)
{
	for (size_t i = 0; i < n; i++) {
		int c = letter_of((unsigned char)t[i]);
		char two[2] = { (char)(0xc0 | c >> 6), (char)(0x80 | (c & 63)) }, one = (char)c;
		buf_put(b, c < 128 ? &one : two, c < 128 ? 1 : 2);
	}
}
int pretok_byte_of(uint32_t c)
{
	uint32_t letter = 256;
	if (c < letter) return letter_of((int)c) == (int)c ? (int)c : -1;
	for (int i = 0; i < N_HIDDEN; i++) {
		uint32_t n = (uint32_t)(hidden[i].to + 1 - hidden[i].from);
		if (c - letter < n) return hidden[i].from + (int)(c - letter);
		letter += n;
	}
	return -1;
}

struct walk { struct pretok *p; pretok_each *each; void *ctx; struct ggu_error *err; };
/* first: the piece is at the start of the input */
static enum ggu_status walk(struct walk *w, size_t step, const char *t, size_t n, bool first);

static enum ggu_status piece(struct walk *w, size_t step, const char *t, size_t from, size_t to, bool first)
{
	return to > from ? walk(w, step + 1, t + from, to - from, first && !from) : GGU_OK;
}

/* t[start..end) has not been given out yet, since the next span may join it. match: its last span is a match. first: t
 * is at the start of the input. */
struct held { size_t start, end; bool match, first; };

static enum ggu_status give(struct walk *w, size_t step, const char *t, const struct held *h)
{
	bool removed = h->match && w->p->pre[step].behavior == REMOVED;
	return removed ? GGU_OK : piece(w, step, t, h->start, h->end, h->first);
}

/* Takes the next span, a match or what lies between two. It joins what is held if the behavior says so. */
static enum ggu_status span(struct walk *w, size_t step, const char *t, struct held *h, size_t from, size_t to,
	bool match)
{
	bool joins = false;
	switch (w->p->pre[step].behavior) {
	case REMOVED: case ISOLATED: break;
	case MERGED_WITH_PREVIOUS: joins = match && !h->match; break;
	case MERGED_WITH_NEXT: joins = !match && h->match; break;
	case CONTIGUOUS: joins = match == h->match; break;
	}
	if (!joins) {
		TRY(give(w, step, t, h));
		h->start = from;
	}
	h->end = to;
	h->match = match;
	return GGU_OK;
}

/* Splits at matches; they and the stretches between them are joined as the behavior says. If inverted, the stretches
 * count as matches. An empty match, as of (?=x), is a place to split at. */
static enum ggu_status split(struct walk *w, size_t step, const char *t, size_t n, bool first)
{
	const struct step *s = w->p->pre + step;
	size_t from = 0;
	struct subject u = { t, n, 0, 0 };
	struct held h = { 0, 0, false, first };
	struct match m = { false, 0, 0 };
	while (from < n) {
		size_t at;
		TRY(pretok_next(w->p, s, &u, from, &m, w->err));
		at = m.found ? m.at : n;
		if (at > from) TRY(span(w, step, t, &h, from, at, s->invert));
		if (!m.found) break;
		TRY(span(w, step, t, &h, at, m.end, !s->invert));
		from = m.end;
	}
	return give(w, step, t, &h);
}

static enum ggu_status rewrite(struct walk *w, size_t step, const char *t, size_t n, bool first)
{
	const struct step *s = w->p->pre + step;
	struct buf b = { 0 };
	enum ggu_status st;
	bool prefix = s->prefix == ALWAYS || (s->prefix == FIRST_ONLY && first);
	buf_put(&b, "", 0);
	if (s->kind == PRE_BYTES) pretok_letters(t, n, &b);
	else if (s->kind == PRE_SPACE) {
		if (*t != ' ') buf_put(&b, " ", 1);
		buf_put(&b, t, n);
	} else {
		if (prefix && *t != ' ' && !text_begins(t, n, PRETOK_MARK)) buf_put(&b, PRETOK_MARK, 3);
		for (size_t i = 0; i < n; i++) buf_put(&b, t[i] == ' ' ? PRETOK_MARK : t + i, t[i] == ' ' ? 3 : 1);
	}
	st = b.failed ? ggu_no_memory(w->err) : piece(w, step, b.p, 0, b.n, first);
	free(b.p);
	return st;
}

static enum ggu_status walk(struct walk *w, size_t step, const char *t, size_t n, bool first)
{
	if (step == w->p->n_pre) return w->each(w->ctx, t, n);
	return w->p->pre[step].kind == PRE_SPLIT ? split(w, step, t, n, first) : rewrite(w, step, t, n, first);
}

enum ggu_status pretok_split(struct pretok *p, const char *text, size_t n, bool first, pretok_each *each, void *ctx,
	struct ggu_error *err)
{
	struct walk w = { p, each, ctx, err };
	return n ? walk(&w, 0, text, n, first) : GGU_OK;
}
