/* SPDX-License-Identifier: MIT
 * tokenizer_text.c - from ids to text: of a whole list, and one id at a time. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "tokenizer_internal.h"

/* A token's text before it becomes bytes. For an added token that is matched in normalized text, this is its normalized
 * form, with what the normalizer put in front; for one that the vocabulary has no text for, the text in the list of
 * added tokens. */
static struct ggu_str token_text(const struct tokenizer *t, int32_t id)
{
	const struct added *a;
	if (t->byte_level || id < 0 || (size_t)id >= t->v->n || !t->added_at[id]) return vocab_token(t->v, id);
	a = t->added + t->added_at[id] - 1;
	return a->normalized || vocab_token_type(t->v, id) == VOCAB_UNUSED ? (struct ggu_str){ a->text.p, a->text.n }
		: vocab_token(t->v, id);
}

static bool has_bytes(const struct tokenizer *t)
{
	return t->pieces ? unigram_has_bytes(t->pieces) : t->bpe && t->bpe->byte_fallback;
}

/* The bytes of one token into to[], which has room for its text. first: of those with text. */
static size_t token_bytes(const struct tokenizer *t, int32_t id, bool first, char *to)
{
	struct ggu_str s = token_text(t, id);
	enum vocab_token_type type = vocab_token_type(t->v, id);
	size_t n = 0;
	if (t->byte_level && type == VOCAB_NORMAL && !t->added_at[id]) {
		for (size_t i = 0; i < s.n; ) {
			utf8proc_int32_t c;
			size_t len = tokenizer_char(s.p + i, s.n - i, &c);
			int b = pretok_byte_of((uint32_t)c);
			if (b >= 0) to[n++] = (char)b;
			else { memcpy(to + n, s.p + i, len); n += len; }
			i += len;
		}
		return n;
	}
	if (s.n == 6 && text_begins(s.p, s.n, "<0x") && s.p[5] == '>' && has_bytes(t)) {
		char hex[3] = { s.p[3], s.p[4], 0 }, *end;
		long b = strtol(hex, &end, 16);
		if (end == hex + 2) { *to = (char)b; return 1; }
	}
	for (size_t i = 0; i < s.n; ) {
		if (!t->byte_level && text_begins(s.p + i, s.n - i, "\xe2\x96\x81")) {
			if (!first || !t->drop_marks) to[n++] = ' ';
			i += 3;
		} else to[n++] = s.p[i++];
	}
	return n;
}

/* A token of a WordPiece vocabulary: a word, as which an added token counts, gets a blank in front, and what goes on
 * with one loses its ##; the first token is as it is. If the decoder of tokenizer.json tidies up, there is no blank
 * before what closes a sentence and before contractions. */
static size_t word_bytes(const struct tokenizer *t, int32_t id, bool started, char *to)
{
	static const char *const close[] = { ".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re" };
	struct ggu_str s = wordpiece_text(t->words, id);
	bool on;
	size_t n = 0;
	if (!s.n) s = token_text(t, id);
	on = text_begins(s.p, s.n, "##");
	if (started && on) s = (struct ggu_str){ s.p + 2, s.n - 2 };
	for (size_t k = 0; t->tidy && started && !on && k < sizeof close/sizeof *close; k++)
		on = text_begins(s.p, s.n, close[k]);
	if (started && !on) to[n++] = ' ';
	if (s.n) memcpy(to + n, s.p, s.n);
	return n + s.n;
}

/* The bytes of the next token of a sequence. *started: a token with text came before; without one, a blank at the front
 * may be dropped. */
static size_t next_bytes(const struct tokenizer *t, int32_t id, bool *started, char *to)
{
	bool word = t->words && id >= 0 && (size_t)id < t->v->n;
	size_t n = word ? word_bytes(t, id, *started, to) : token_bytes(t, id, !*started, to);
	if (n && !word && !*started && t->strip_start && *to == ' ') memmove(to, to + 1, --n);
	*started |= n || (token_text(t, id).n > 0 && !t->strip_on);
	return n;
}

struct detokenizer { struct tokenizer *t; char *buf; size_t n, cap, sent; bool started; };

enum ggu_status detokenizer_new(struct detokenizer **d, struct tokenizer *t, struct ggu_error *err)
{
	struct detokenizer *x = calloc(1, sizeof *x);
	if (!x) return ggu_no_memory(err);
	x->t = t;
	*d = x;
	return GGU_OK;
}
void detokenizer_free(struct detokenizer *d)
{
	if (!d) return;
	free(d->buf);
	free(d);
}

/* Bytes at the end that begin a character which is not complete yet. */
static size_t unfinished(const char *p, size_t n)
{
	for (size_t k = 1; k <= 3 && k <= n; k++) {
		unsigned char c = (unsigned char)p[n - k];
		if ((c & 0xc0) == 0x80) continue;
		return (c >= 0xf0 && k < 4) || (c >= 0xe0 && k < 3) || (c >= 0xc0 && k < 2) ? k : 0;
	}
	return 0;
}

static bool reserve(struct detokenizer *d, size_t n)
{
	if (d->sent) {
		memmove(d->buf, d->buf + d->sent, d->n - d->sent);
		d->n -= d->sent;
		d->sent = 0;
	}
	if (d->cap - d->n < n) {
		char *p = realloc(d->buf, d->n + 2*n + 64);
		if (!p) return false;
		d->buf = p;
		d->cap = d->n + 2*n + 64;
	}
	return true;
}

enum ggu_status detokenizer_add(struct detokenizer *d, int32_t id, const char **text, size_t *n_bytes,
	struct ggu_error *err)
{
	if (!reserve(d, token_text(d->t, id).n + 2)) return ggu_no_memory(err);
	d->n += next_bytes(d->t, id, &d->started, d->buf + d->n);
	*text = d->buf;
	*n_bytes = d->sent = d->n - unfinished(d->buf, d->n);
	return GGU_OK;
}

void detokenizer_end(struct detokenizer *d, const char **text, size_t *n_bytes)
{
	*text = d->buf ? d->buf + d->sent : "";
	*n_bytes = d->n - d->sent;
	d->sent = d->n;
}

enum ggu_status tokenizer_decode(struct tokenizer *t, const int32_t *ids, size_t n, bool special, char **text,
	size_t *n_bytes, struct ggu_error *err)
{
	size_t bytes = 0, at = 0;
	char *out;
	bool started = false;
	for (size_t i = 0; i < n; i++) {
		if (ids[i] < 0 || (size_t)ids[i] >= t->v->n)
			return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
				"token %d is not in the vocabulary of %zu", (int)ids[i], t->v->n);
		bytes += token_text(t, ids[i]).n + 2;
	}
	out = malloc(bytes + 1);
	if (!out) return ggu_no_memory(err);
	for (size_t i = 0; i < n; i++)
		if (special || vocab_token_type(t->v, ids[i]) != VOCAB_CONTROL)
			at += next_bytes(t, ids[i], &started, out + at);
	out[at] = 0;
	*text = out;
	*n_bytes = at;
	return GGU_OK;
}
