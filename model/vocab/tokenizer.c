/* SPDX-License-Identifier: MIT
 * tokenizer.c - text to ids: added tokens are cut out, the stretches between them normalized, pre-tokenized and
 * merged (bpe.h), looked up (wordpiece.h) or weighed (unigram.h). tokenizer_text.c goes the other way.
 *
 * Added tokens are matched leftmost, longest first: those with normalized: false in the raw text, the others in the
 * normalized stretches, by the normalized form of their own text. What does not count is matched too, and passed over:
 * special ones without TOKENIZE_SPECIAL, and those that should stand alone and do not. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "../../libgguf/text.h"
#include "tokenizer_internal.h"

/* ---- added tokens ---- */

/* The longest added token. At each byte of a text, up to so many bytes are looked at. */
enum { MAX_ADDED_BYTES = 4096 };

static bool same_kind(const struct added *x, const struct added *y)
{
	return x->special == y->special && x->normalized == y->normalized && x->single_word == y->single_word;
}

static int by_text(const void *a, const void *b)
{
	const struct added *x = a, *y = b;
	int c = memcmp(x->text.p, y->text.p, x->text.n < y->text.n ? x->text.n : y->text.n);
	if (c) return c;
	if (x->text.n != y->text.n) return x->text.n < y->text.n ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Sorts by text; of equal texts that are matched alike, only the first id stays. */
static void sort_added(struct tokenizer *t)
{
	size_t k = 0, n = t->n_added, from = 0;
	qsort(t->added, n, sizeof *t->added, by_text);
	for (size_t i = 0; i < n; i++) {
		struct added *a = t->added + i;
		size_t j = from;
		if (k && (a->text.n != t->added[k - 1].text.n || memcmp(a->text.p, t->added[k - 1].text.p, a->text.n)))
			j = from = k;
		while (j < k && !same_kind(a, t->added + j)) j++;
		if (j < k) free(a->text.p);
		else t->added[k++] = *a;
	}
	t->n_added = k;
	for (size_t i = 0; i < k; i++) t->added_at[t->added[i].id] = (uint32_t)i + 1;
	k = 0;
	for (int b = 0; b <= 256; b++) {
		while (k < t->n_added && (unsigned char)t->added[k].text.p[0] < b) k++;
		t->first[b] = b == 256 ? t->n_added : k;
	}
}

static enum ggu_status add(struct tokenizer *t, const char *text, size_t n, const json_t *row, int64_t id,
	struct ggu_error *err)
{
	struct added *a = t->added + t->n_added;
	if (!n || id < 0 || (uint64_t)id >= t->v->n) return GGU_OK;
	*a = (struct added){ .id = (int32_t)id, .special = vocab_json_true(row, "special"),
		.normalized = vocab_json_true(row, "normalized"),
		.lstrip = vocab_json_true(row, "lstrip"), .rstrip = vocab_json_true(row, "rstrip"),
		.single_word = vocab_json_true(row, "single_word") };
	if (a->normalized) TRY(pretok_normalize(t->pre, text, n, &a->text, err));
	else {
		a->text.p = malloc(n + 1);
		if (!a->text.p) return ggu_no_memory(err);
		memcpy(a->text.p, text, n);
		a->text.n = n;
	}
	if (!a->text.n) {
		free(a->text.p);
		return GGU_OK;
	}
	t->n_added++;
	if (a->text.n <= MAX_ADDED_BYTES) return GGU_OK;
	return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "added_tokens",
		"token %lld has %zu bytes; at most %d are supported", (long long)id, a->text.n,
		MAX_ADDED_BYTES);
}

static enum ggu_status read_added(struct tokenizer *t, struct ggu_error *err)
{
	const json_t *list = json_object_get(t->v->pipeline, "added_tokens"),
		*user = json_object_get(json_object_get(t->v->pipeline, "model"), "user_defined");
	size_t i;
	json_t *row;
	t->added = calloc(json_array_size(list) + json_array_size(user) + 1, sizeof *t->added);
	t->added_at = calloc(t->v->n + 1, sizeof *t->added_at);
	if (!t->added || !t->added_at) return ggu_no_memory(err);
	json_array_foreach(list, i, row) {
		const json_t *text = json_object_get(row, "content"), *id = json_object_get(row, "id");
		if (!json_is_string(text) || !json_is_integer(id))
			return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "added_tokens",
				"row %zu lacks content or id", i);
		TRY(add(t, json_string_value(text), json_string_length(text), row, json_integer_value(id), err));
	}
	/* SentencePiece's: as they are, in normalized text; to its unigram model they are pieces like others */
	if (t->pieces) user = NULL;
	json_array_foreach(user, i, row) {
		int64_t id = json_is_integer(row) ? json_integer_value(row) : -1;
		if (id < 0 || (uint64_t)id >= t->v->n) continue;
		TRY(add(t, t->v->tokens[id].p, t->v->tokens[id].n, NULL, id, err));
		if (t->n_added && t->added[t->n_added - 1].id == id) t->added[t->n_added - 1].normalized = true;
	}
	sort_added(t);
	return GGU_OK;
}

/* The characters of PRETOK_WORD, and joiners. */
static bool is_word(utf8proc_int32_t c)
{
	int k = utf8proc_category(c);
	return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC
		|| c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149)
		|| (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}
static size_t last_char(const char *p, size_t at, utf8proc_int32_t *c)
{
	size_t k = at;
	do k--; while (k && (p[k] & 0xc0) == 0x80);
	tokenizer_char(p + k, at - k, c);
	return k;
}

/* A text that is searched for added tokens: is it raw or normalized? */
struct look { const char *p; size_t n; bool normalized; };

static bool stands_alone(const struct look *l, size_t at, size_t end)
{
	utf8proc_int32_t before = ' ', after = ' ';
	if (at) last_char(l->p, at, &before);
	if (end < l->n) tokenizer_char(l->p + end, l->n - end, &after);
	return !is_word(before) && !is_word(after);
}

/* The first of added[lo..hi), all longer than d bytes and equal up to there, whose byte d is at least c. */
static size_t from_byte(const struct tokenizer *t, size_t lo, size_t hi, size_t d, int c)
{
	while (lo < hi) {
		size_t mid = lo + (hi - lo)/2;
		if ((unsigned char)t->added[mid].text.p[d] < c) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

/* The longest added token that begins at `at`, or NULL. The range of those that agree with the text is narrowed byte by
 * byte. */
static const struct added *match(const struct tokenizer *t, const struct look *l, size_t at)
{
	const unsigned char *p = (const unsigned char *)l->p + at;
	size_t n = l->n - at, lo = t->first[*p], hi = t->first[*p + 1];
	const struct added *best = NULL;
	for (size_t d = 1; lo < hi; d++) {
		bool found = false;
		for (; lo < hi && t->added[lo].text.n == d; lo++)
			if (!found && t->added[lo].normalized == l->normalized) { best = t->added + lo; found = true; }
		if (lo == hi || d == n) break;
		lo = from_byte(t, lo, hi, d, p[d]);
		hi = from_byte(t, lo, hi, d, p[d] + 1);
	}
	return best;
}

/* ---- encoding ---- */

/* enough: there are as many ids as are wanted; the status that ends the walk is then no error. */
struct encoding { struct tokenizer *t; struct ids out; unsigned flags; bool enough; struct ggu_error *err; };

static enum ggu_status encode_piece(void *ctx, const char *piece, size_t n)
{
	struct encoding *e = ctx;
	const struct tokenizer *t = e->t;
	bool ok = t->words ? wordpiece_encode(t->words, piece, n, &e->out)
		: t->pieces ? unigram_encode(t->pieces, piece, n, &e->out) : bpe_encode(t->bpe, piece, n, &e->out);
	if (!ok) return ggu_no_memory(e->err);
	e->enough = ids_enough(&e->out);
	return e->enough ? GGU_ERR_RANGE : GGU_OK;
}

typedef enum ggu_status stretch(struct encoding *e, const char *p, size_t n, bool first);

static bool counts(const struct encoding *e, const struct added *a, const struct look *l, size_t at, size_t end)
{
	if (a->special && !(e->flags & TOKENIZE_SPECIAL)) return false;
	return !a->single_word || stands_alone(l, at, end);
}

static size_t before_blanks(const struct look *l, size_t from, size_t at)
{
	utf8proc_int32_t c;
	for (size_t k; at > from; at = k) {
		k = last_char(l->p, at, &c);
		if (k < from || !pretok_is_space(c)) break;
	}
	return at;
}
static size_t after_blanks(const struct look *l, size_t at)
{
	utf8proc_int32_t c;
	for (size_t len; at < l->n; at += len) {
		len = tokenizer_char(l->p + at, l->n - at, &c);
		if (!pretok_is_space(c)) break;
	}
	return at;
}

/* Cuts added tokens out of p[n] and passes the stretches between them to `rest`. Blanks that a token with rstrip takes
 * are searched for the next token all the same, as in Hugging Face's tokenizers: the rest then goes on behind that one,
 * blanks included. blanks: the end of the last such run. */
static enum ggu_status cut(struct encoding *e, const char *p, size_t n, bool first, bool normalized, stretch *rest)
{
	const struct look l = { p, n, normalized };
	size_t from = 0, blanks = 0;
	for (size_t at = 0, next; at < n; at = next) {
		const struct added *a = match(e->t, &l, at);
		size_t left = at, end;
		next = end = a ? at + a->text.n : at + 1;
		if (!a || !counts(e, a, &l, at, end)) continue;
		if (a->lstrip) left = at > from ? before_blanks(&l, from, at) : from;
		if (a->rstrip) end = blanks = end < blanks ? blanks : after_blanks(&l, end);
		if (left > from) TRY(rest(e, p + from, left - from, first && !from));
		if (left < end && !ids_add(&e->out, a->id)) return ggu_no_memory(e->err);
		from = end;
	}
	return from < n ? rest(e, p + from, n - from, first && !from) : GGU_OK;
}

static enum ggu_status encode_normalized(struct encoding *e, const char *p, size_t n, bool first)
{
	return pretok_split(e->t->pre, p, n, first, encode_piece, e, e->err);
}

static enum ggu_status encode_raw(struct encoding *e, const char *p, size_t n, bool first)
{
	struct text t;
	enum ggu_status s = pretok_normalize(e->t->pre, p, n, &t, e->err);
	if (s) return s;
	s = cut(e, t.p, t.n, first && !t.late, true, encode_normalized);
	free(t.p);
	return s;
}

static bool ids_append(struct ids *to, const struct ids *from)
{
	for (size_t i = 0; i < from->n; i++) if (!ids_add(to, from->v[i])) return false;
	return true;
}

enum ggu_status tokenizer_encode(struct tokenizer *t, const char *text, size_t n_bytes, unsigned flags,
	int32_t **ids, size_t *n, struct ggu_error *err)
{
	return tokenizer_encode_first(t, text, n_bytes, flags, 0, ids, n, err);
}

enum ggu_status tokenizer_encode_first(struct tokenizer *t, const char *text, size_t n_bytes, unsigned flags,
	size_t most, int32_t **ids, size_t *n, struct ggu_error *err)
{
	struct encoding e = { t, { *ids, *n, most ? *n + most : 0 }, flags, false, err };
	enum ggu_status s = GGU_OK;
	if ((flags & TOKENIZE_BOS) && !ids_append(&e.out, &t->before)) s = ggu_no_memory(err);
	if (!s && n_bytes) s = cut(&e, text, n_bytes, true, false, encode_raw);
	if (e.enough) s = GGU_OK;
	else if (!s && (flags & TOKENIZE_EOS) && !ids_append(&e.out, &t->after)) s = ggu_no_memory(err);
	*ids = e.out.v;
	*n = e.out.n;
	return s;
}

/* ---- construction ---- */

static bool add_around(const struct tokenizer *t, struct ids *to, const json_t *id)
{
	json_int_t k = json_is_integer(id) ? json_integer_value(id) : -1;
	return k < 0 || (uint64_t)k >= t->v->n || ids_add(to, (int32_t)k);
}

/* Reads what the post-processor puts around a single text. A template names special tokens, each a list of ids;
 * Roberta's and BERT's have a pair of text and id for the front (cls) and one for the end (sep). */
static bool read_around(struct tokenizer *t, const json_t *p, int depth)
{
	const char *type = vocab_json_str(p, "type"), *name;
	struct ids *to = &t->before;
	size_t i, k;
	json_t *step, *id;
	if (!type || depth > 16) return true;
	if (!strcmp(type, "RobertaProcessing") || !strcmp(type, "BertProcessing"))
		return add_around(t, &t->before, json_array_get(json_object_get(p, "cls"), 1))
			&& add_around(t, &t->after, json_array_get(json_object_get(p, "sep"), 1));
	json_array_foreach(json_object_get(p, "processors"), i, step) if (!read_around(t, step,
		depth + 1)) return false;
	json_array_foreach(json_object_get(p, "single"), i, step) {
		name = vocab_json_str(json_object_get(step, "SpecialToken"), "id");
		if (!name) to = &t->after;
		else
			json_array_foreach(json_object_get(json_object_get(json_object_get(p, "special_tokens"), name),
				"ids"), k, id)
			if (!add_around(t, to, id)) return false;
	}
	return true;
}

static void drop(struct ids *l, int32_t id)
{
	size_t k = 0;
	for (size_t i = 0; i < l->n; i++) if (l->v[i] != id) l->v[k++] = l->v[i];
	l->n = k;
}

/* Takes the post-processor's tokens, without BOS or EOS if the vocabulary says that it is not added. If that leaves
 * none on a side, adds BOS or EOS there if the vocabulary says that it is. */
static enum ggu_status find_around(struct tokenizer *t, struct ggu_error *err)
{
	const struct vocab *v = t->v;
	if (!read_around(t, json_object_get(v->pipeline, "post_processor"), 0)) return ggu_no_memory(err);
	if (!v->add[VOCAB_BOS]) drop(&t->before, vocab_bos(v));
	if (!v->add[VOCAB_EOS]) drop(&t->after, vocab_eos(v));
	if (!t->before.n && vocab_add_bos(v) && vocab_bos(v) >= 0 && !ids_add(&t->before, vocab_bos(v)))
		return ggu_no_memory(err);
	if (!t->after.n && vocab_add_eos(v) && vocab_eos(v) >= 0 && !ids_add(&t->after, vocab_eos(v)))
		return ggu_no_memory(err);
	return GGU_OK;
}

/* Reads what the decoder does at the front of a text: Strip takes a blank off it, Metaspace all marks of the first
 * token. */
static void read_start(struct tokenizer *t, const json_t *d, int depth)
{
	const char *type = vocab_json_str(d, "type"), *scheme = vocab_json_str(d, "prepend_scheme");
	size_t i;
	json_t *row;
	if (!type || depth > 16) return;
	if (!strcmp(type, "Strip")) t->strip_start |= json_integer_value(json_object_get(d, "start")) > 0;
	if (!strcmp(type, "Metaspace"))
		t->drop_marks |= scheme ? strcmp(scheme, "never") != 0
			: !json_is_false(json_object_get(d, "add_prefix_space"));
	json_array_foreach(json_object_get(d, "decoders"), i, row) read_start(t, row, depth + 1);
}

enum ggu_status tokenizer_new(struct tokenizer **out, const struct vocab *v, struct ggu_error *err)
{
	struct tokenizer *t = calloc(1, sizeof *t);
	const json_t *decoder = json_object_get(v->pipeline, "decoder");
	const char *kind = vocab_json_str(json_object_get(v->pipeline, "model"), "type");
	enum ggu_status s;
	bool *own = NULL, plain;
	if (!t) return ggu_no_memory(err);
	t->v = v;
	s = pretok_new(&t->pre, v, err);
	if (!s) own = vocab_own(v);
	if (!s && !own) s = ggu_no_memory(err);
	if (!s)
		s = kind && !strcmp(kind, "WordPiece") ? wordpiece_new(&t->words, v, own, err)
			: kind && !strcmp(kind, "Unigram") ? unigram_new(&t->pieces, v, own, err)
			: bpe_new(&t->bpe, v, own, err);
	free(own);
	if (!s) s = read_added(t, err);
	if (!s) s = find_around(t, err);
	if (s) {
		tokenizer_free(t);
		return s;
	}
	t->byte_level = pretok_is_byte_level(t->pre) ||
		(vocab_json_str(decoder, "type") && !strcmp(vocab_json_str(decoder, "type"), "ByteLevel"));
	t->tidy = vocab_json_true(decoder, "cleanup");
	plain = (!decoder || json_is_null(decoder)) && !t->byte_level;
	t->strip_on = plain && pretok_trims(t->pre);
	t->strip_start = t->words || t->strip_on || (plain && pretok_adds_space(t->pre));
	read_start(t, decoder, 0);
	*out = t;
	return GGU_OK;
}

void tokenizer_free(struct tokenizer *t)
{
	if (!t) return;
	for (size_t i = 0; i < t->n_added; i++) free(t->added[i].text.p);
	free(t->added);
	free(t->added_at);
	free(t->before.v);
	free(t->after.v);
	bpe_free(t->bpe);
	wordpiece_free(t->words);
	unigram_free(t->pieces);
	pretok_free(t->pre);
	free(t);
}
