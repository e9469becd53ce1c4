/* SPDX-License-Identifier: MIT
 * pretok.c - see pretok.h.
 *
 * A pre-tokenizer step takes the list of pieces and makes the next: it splits by a regular expression, or rewrites
 * (bytes to letters, blanks to marks). Named splitters (Digits, Punctuation, ...) are regular expressions too.
 * Malformed UTF-8 matches nothing and is passed through. Matching is bounded: a pattern from a file cannot hang us. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "../../libgguf/text.h"
#include "charsmap.h"
#include "pretok.h"

enum { MAX_STEPS = 64, MAX_DEPTH = 16 };
enum kind {
	NORM_FORM, NORM_PREPEND, NORM_REPLACE, NORM_LOWER, NORM_STRIP, NORM_SPM, NORM_BERT, NORM_CHARS,
	PRE_SPLIT, PRE_BYTES, PRE_SPACE, PRE_MARK                                       /* pre-tokenizers */
};
enum behavior { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };
enum { FIRST_ONLY = 1, ALWAYS = 2 };
struct step {
	enum kind kind;
	int form;                       /* utf8proc options */
	const char *text, *with;        /* prepended; put in place; borrowed from the pipeline */
	pcre2_code *re;
	enum behavior behavior;
	bool invert, left, right, remove_extra, escape, chars;
	bool clean, ideographs, accents, lower;         /* of BertNormalizer */
	int prefix;                     /* 0, FIRST_ONLY, ALWAYS */
};
struct pretok {
	struct step norm[MAX_STEPS], pre[MAX_STEPS];
	size_t n_norm, n_pre;
	struct charsmap chars;          /* of the steps that use one */
	const struct ggu_str *charsmap; /* its bytes, empty: none */
	pcre2_match_data *match;
	pcre2_match_context *limits;
};

static const char mark[] = "\xe2\x96\x81";      /* U+2581 */

static enum ggu_status no_memory(struct ggu_error *err)
{
	return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
}

/* ---- reading the trees ---- */

/* Oniguruma's classes may hold classes, PCRE's may not: [a[bc]] becomes [abc] in to[]. false: one of them is negated.
 * */
static bool flatten(const char *p, char *to)
{
	int depth = 0;
	for (; *p; p++) {
		if (*p == '\\' && p[1]) *to++ = *p++;
		else if (*p == '[' && depth && (p[1] == ':' || p[1] == '^')) {
			if (p[1] == '^') return false;
			while (*p && *p != ']') *to++ = *p++;
		} else if (*p == '[' && depth++) continue;
		else if (*p == ']' && depth && --depth) continue;
		else if (*p == '[') {
			if (p[1] == '^') *to++ = *p++;
			if (p[1] == ']') *to++ = *p++;          /* a bracket that is meant */
		}
		if (*p) *to++ = *p;
		else break;
	}
	*to = 0;
	return true;
}

static enum ggu_status compile(struct step *s, const char *pattern, bool literal, struct ggu_error *err)
{
	int code;
	PCRE2_SIZE at;
	char *flat = NULL;
	if (!literal) {
		flat = malloc(strlen(pattern) + 1);
		if (!flat) return no_memory(err);
		if (flatten(pattern, flat)) pattern = flat;
	}
	s->re = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP),
		&code, &at, NULL);
	free(flat);
	if (!s->re) {
		char why[80] = "";
		pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "pattern", "%s, at byte %zu of it", why,
			(size_t)at);
	}
	pcre2_jit_compile(s->re, PCRE2_JIT_COMPLETE);
	return GGU_OK;
}

static enum ggu_status pattern_of(struct step *s, const json_t *o, struct ggu_error *err)
{
	const json_t *p = json_object_get(o, "pattern");
	const char *re = vocab_json_str(p, "Regex"), *text = vocab_json_str(p, "String");
	if (!re && !text) return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "pattern", "expected Regex or String");
	return compile(s, re ? re : text, !re, err);
}

static enum ggu_status behavior_of(const json_t *o, enum behavior *to, struct ggu_error *err)
{
	static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
		"Contiguous" };
	const char *name = vocab_json_str(o, "behavior");
	int i = 0;
	*to = ISOLATED;
	if (!name) return GGU_OK;
	while (i < 5 && strcmp(names[i], name)) i++;
	if (i == 5)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "pre_tokenizer",
			"behavior '%.40s' is not supported", name);
	*to = (enum behavior)i;
	return GGU_OK;
}

/* JSON booleans whose absence means true */
static bool unless_false(const json_t *o, const char *key) { return !json_is_false(json_object_get(o, key)); }

/* One more step of either list; NULL: there are too many, which is GGU_ERR_FORMAT. */
static struct step *new_step(struct pretok *p, bool norm, enum kind kind, struct ggu_error *err)
{
	size_t *n = norm ? &p->n_norm : &p->n_pre;
	struct step *s = (norm ? p->norm : p->pre) + *n;
	if (*n == MAX_STEPS) {
		ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, norm ? "normalizer" : "pre_tokenizer",
			"more than %d steps", MAX_STEPS);
		return NULL;
	}
	++*n;
	*s = (struct step){ .kind = kind };
	return s;
}

static enum ggu_status read_chars(struct pretok *p, struct ggu_error *err)
{
	if (!p->charsmap->n)
		return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "precompiled_charsmap", "is missing");
	return charsmap_read(&p->chars, p->charsmap->p, p->charsmap->n, err);
}

static enum ggu_status read_norm(struct pretok *p, const json_t *o, const char *type, struct ggu_error *err)
{
	static const struct { const char *name; enum kind kind; int form; } kinds[] = {
		{ "NFC", NORM_FORM, UTF8PROC_COMPOSE }, { "NFKC", NORM_FORM, UTF8PROC_COMPOSE | UTF8PROC_COMPAT },
		{ "NFD", NORM_FORM, UTF8PROC_DECOMPOSE }, { "NFKD", NORM_FORM, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT },
		{ "Prepend", NORM_PREPEND, 0 }, { "Replace", NORM_REPLACE, 0 }, { "Lowercase", NORM_LOWER, 0 },
		{ "Strip", NORM_STRIP, 0 }, { "SentencePiece", NORM_SPM, 0 }, { "BertNormalizer", NORM_BERT, 0 },
		{ "Precompiled", NORM_CHARS, 0 },
	};
	struct step *s;
	size_t k = 0;
	while (k < sizeof kinds/sizeof *kinds && strcmp(kinds[k].name, type)) k++;
	if (k == sizeof kinds/sizeof *kinds)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "normalizer",
			"normalizer '%.40s' is not supported", type);
	s = new_step(p, true, kinds[k].kind, err);
	if (!s) return GGU_ERR_FORMAT;
	switch (s->kind) {
	case NORM_FORM: s->form = kinds[k].form | UTF8PROC_STABLE; break;
	case NORM_PREPEND:
		s->text = vocab_json_str(o, "prepend");
		if (!s->text) return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "normalizer.prepend", "is missing");
		break;
	case NORM_REPLACE:
		s->with = vocab_json_str(o, "content");
		if (!s->with) s->with = "";
		return pattern_of(s, o, err);
	case NORM_STRIP:
		s->left = unless_false(o, "strip_left");
		s->right = unless_false(o, "strip_right");
		break;
	case NORM_SPM:
		s->prefix = vocab_json_true(o, "add_dummy_prefix") ? ALWAYS : 0;
		s->remove_extra = vocab_json_true(o, "remove_extra_whitespaces");
		s->escape = unless_false(o, "escape_whitespaces");
		s->chars = vocab_json_true(o, "charsmap");
		return s->chars ? read_chars(p, err) : GGU_OK;
	case NORM_CHARS: return read_chars(p, err);
	case NORM_BERT:
		s->clean = unless_false(o, "clean_text");
		s->ideographs = unless_false(o, "handle_chinese_chars");
		s->lower = unless_false(o, "lowercase");
		s->accents = json_is_boolean(json_object_get(o, "strip_accents")) ? vocab_json_true(o,
			"strip_accents") : s->lower;
		break;
	default: break;
	}
	return GGU_OK;
}

static enum ggu_status add_split(struct pretok *p, const char *pattern, bool literal, enum behavior behavior,
	struct ggu_error *err)
{
	struct step *s = new_step(p, false, PRE_SPLIT, err);
	if (!s) return GGU_ERR_FORMAT;
	s->behavior = behavior;
	return compile(s, pattern, literal, err);
}

static enum ggu_status add_metaspace(struct pretok *p, const json_t *o, struct ggu_error *err)
{
	const char *scheme = vocab_json_str(o, "prepend_scheme");
	struct step *s = new_step(p, false, PRE_MARK, err);
	if (!s) return GGU_ERR_FORMAT;
	if (scheme) s->prefix = !strcmp(scheme, "always") ? ALWAYS : !strcmp(scheme, "first") ? FIRST_ONLY : 0;
	else s->prefix = unless_false(o, "add_prefix_space") ? ALWAYS : 0;
	return unless_false(o, "split") ? add_split(p, mark, true, MERGED_WITH_NEXT, err) : GGU_OK;
}

static enum ggu_status add_byte_level(struct pretok *p, const json_t *o, struct ggu_error *err)
{
	if (vocab_json_true(o, "add_prefix_space") && !new_step(p, false, PRE_SPACE, err)) return GGU_ERR_FORMAT;
	if (unless_false(o, "use_regex")) TRY(add_split(p, PRETOK_GPT2, false, ISOLATED, err));
	return new_step(p, false, PRE_BYTES, err) ? GGU_OK : GGU_ERR_FORMAT;
}

/* White space of Unicode: PCRE's has U+180E besides. */
#define SPACES "[^\\S\\x{180e}]+"

static enum ggu_status read_pre(struct pretok *p, const json_t *o, const char *type, struct ggu_error *err)
{
	enum behavior behavior;
	struct step *s;
	TRY(behavior_of(o, &behavior, err));
	if (!strcmp(type, "Metaspace")) return add_metaspace(p, o, err);
	if (!strcmp(type, "ByteLevel")) return add_byte_level(p, o, err);
	if (!strcmp(type, "Digits"))
		return add_split(p, "\\p{N}", false, vocab_json_true(o, "individual_digits") ? ISOLATED : CONTIGUOUS,
			err);
	if (!strcmp(type, "Punctuation")) return add_split(p, "[\\p{P}$+<=>^`|~]", false, behavior, err);
	if (!strcmp(type, "BertPreTokenizer")) {
		TRY(add_split(p, SPACES, false, REMOVED, err));
		return add_split(p, "[\\p{P}$+<=>^`|~]", false, ISOLATED, err);
	}
	if (!strcmp(type, "WhitespaceSplit")) return add_split(p, SPACES, false, REMOVED, err);
	if (!strcmp(type, "Whitespace")) {
		TRY(add_split(p, "\\w+|[^\\w\\s]+", false, REMOVED, err));
		p->pre[p->n_pre - 1].invert = true;
		return GGU_OK;
	}
	if (strcmp(type, "Split"))
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "pre_tokenizer",
			"pre-tokenizer '%.40s' is not supported", type);
	s = new_step(p, false, PRE_SPLIT, err);
	if (!s) return GGU_ERR_FORMAT;
	s->behavior = behavior;
	s->invert = vocab_json_true(o, "invert");
	return pattern_of(s, o, err);
}

static enum ggu_status read_tree(struct pretok *p, const json_t *o, bool norm, int depth, struct ggu_error *err)
{
	const char *type = vocab_json_str(o, "type"), *where = norm ? "normalizer" : "pre_tokenizer";
	if (!o || json_is_null(o)) return GGU_OK;
	if (!type || depth > MAX_DEPTH)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, where,
			"expected an object with a type, nested at most %d deep", MAX_DEPTH);
	if (!strcmp(type, "Sequence")) {
		size_t i;
		json_t *row;
		json_array_foreach(json_object_get(o, norm ? "normalizers" : "pretokenizers"), i, row) TRY(read_tree(p,
			row, norm, depth + 1, err));
		return GGU_OK;
	}
	return norm ? read_norm(p, o, type, err) : read_pre(p, o, type, err);
}

enum ggu_status pretok_new(struct pretok **out, const struct vocab *v, struct ggu_error *err)
{
	struct pretok *p = calloc(1, sizeof *p);
	enum ggu_status s;
	if (!p) return no_memory(err);
	p->charsmap = &v->charsmap;
	p->match = pcre2_match_data_create(1, NULL);
	p->limits = pcre2_match_context_create(NULL);
	s = p->match && p->limits ? read_tree(p, json_object_get(v->pipeline, "normalizer"), true, 0, err) :
		no_memory(err);
	if (!s) s = read_tree(p, json_object_get(v->pipeline, "pre_tokenizer"), false, 0, err);
	if (s) {
		pretok_free(p);
		return s;
	}
	pcre2_set_match_limit(p->limits, 10000000);
	*out = p;
	return GGU_OK;
}

void pretok_free(struct pretok *p)
{
	if (!p) return;
	for (size_t i = 0; i < p->n_norm; i++) pcre2_code_free(p->norm[i].re);
	for (size_t i = 0; i < p->n_pre; i++) pcre2_code_free(p->pre[i].re);
	pcre2_match_data_free(p->match);
	pcre2_match_context_free(p->limits);
	free(p);
}

bool pretok_is_byte_level(const struct pretok *p)
{
	for (size_t i = 0; i < p->n_pre; i++) if (p->pre[i].kind == PRE_BYTES) return true;
	return false;
}
bool pretok_adds_space(const struct pretok *p)
{
	for (size_t i = 0; i < p->n_pre; i++) if (p->pre[i].prefix || p->pre[i].kind == PRE_SPACE) return true;
	for (size_t i = 0; i < p->n_norm; i++) if (p->norm[i].prefix || p->norm[i].kind == NORM_PREPEND) return true;
	return false;
}

/* ---- building texts ---- */

struct buf { char *p; size_t n, cap, most; bool failed; };     /* most: bytes it may hold, 0: any number */
static void put(struct buf *b, const char *p, size_t n)
{
	if (b->failed || (b->most && n > b->most - b->n)) {
		b->failed = true;
		return;
	}
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

/* A text in which matches are looked for. Patterns see its well-formed stretches, [from, to) being the one in hand:
 * checked once, since PCRE would check all that follows at each match. */
struct subject { const char *t; size_t n, from, to; };

/* The stretch that holds the character at `at`, or the next one; false: there is none. */
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

/* The next match at or after `from`; false: none. */
static enum ggu_status find(struct pretok *p, const struct step *s, struct subject *u, size_t from, size_t *at,
	size_t *end, bool *found, struct ggu_error *err)
{
	PCRE2_SIZE *o = pcre2_get_ovector_pointer(p->match);
	int r = PCRE2_ERROR_NOMATCH;
	for (; r == PCRE2_ERROR_NOMATCH && stretch_at(u, from); from = u->to) {
		PCRE2_SPTR t = (PCRE2_SPTR)u->t + u->from;
		size_t start = from > u->from ? from - u->from : 0, n = u->to - u->from;
		r = pcre2_match(s->re, t, n, start, PCRE2_NO_UTF_CHECK, p->match, p->limits);
		if (r == PCRE2_ERROR_JIT_STACKLIMIT)    /* the interpreter's memory grows */
			r = pcre2_match(s->re, t, n, start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, p->match, p->limits);
	}
	*found = r >= 0;
	if (r >= 0) {
		*at = u->from + o[0];
		*end = u->from + o[1];
	}
	if (r >= 0 || r == PCRE2_ERROR_NOMATCH) return GGU_OK;
	return ggu_fail(err, r == PCRE2_ERROR_NOMEMORY ? GGU_ERR_NOMEM : GGU_ERR_FORMAT, GGU_NO_OFFSET, "pattern",
		"a pattern of the tokenizer gave up on the text (code %d)", r);
}

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

static enum ggu_status replace_all(struct pretok *p, const struct step *s, const char *t, size_t n, struct buf *b,
	struct ggu_error *err)
{
	struct subject u = { t, n, 0, 0 };
	size_t from = 0, at = 0, end = 0;
	bool found = true;
	while (from <= n) {
		TRY(find(p, s, &u, from, &at, &end, &found, err));
		if (!found || end == at) break;
		put(b, t + from, at - from);
		put(b, s->with, strlen(s->with));
		if (b->failed) break;
		from = end;
	}
	put(b, t + from, n - from);
	return GGU_OK;
}

/* What the table has instead of p[n], a character, unless it has nothing; what is no character becomes U+FFFD. */
static void put_char(const struct charsmap *m, const char *p, size_t n, bool well_formed, struct buf *b)
{
	struct ggu_str to = { p, n };
	if (!charsmap_find(m, p, n, true, &to) && !well_formed) to = (struct ggu_str){ "\xef\xbf\xbd", 3 };
	put(b, to.p, to.n);
}

/* SentencePiece's own way: the longest key of the table, again and again. */
static void longest_chars(const struct charsmap *m, const char *t, size_t n, struct buf *b)
{
	for (size_t i = 0, len; i < n; i += len) {
		utf8proc_int32_t c;
		utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		struct ggu_str to;
		if ((len = charsmap_find(m, t + i, n - i, false, &to))) {
			put(b, to.p, to.n);
			continue;
		}
		len = k > 0 ? (size_t)k : 1;
		put(b, k > 0 ? t + i : "\xef\xbf\xbd", k > 0 ? len : 3);
	}
}

/* That of tokenizer.json: a grapheme of less than six bytes as a whole, by the shortest key that it begins with;
 * where there is none, and in longer ones, each of its characters so. */
enum { WHOLE = 5 };
static void grapheme_chars(const struct charsmap *m, const char *t, size_t n, struct buf *b)
{
	struct ggu_str to;
	if (n <= WHOLE && charsmap_find(m, t, n, true, &to)) put(b, to.p, to.n);
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

/* SentencePiece: blanks collapsed and trimmed if asked, one in front, all become U+2581. Every byte that belongs to
 * no well-formed character becomes U+FFFD. */
static void spm(const struct step *s, const char *t, size_t n, struct buf *b)
{
	bool space = true;      /* the last character was a blank, or there was none yet */
	size_t start, from = b->n;
	if (s->remove_extra) while (n && *t == ' ') { t++; n--; }
	if (s->remove_extra) while (n && t[n - 1] == ' ') n--;
	if (!n) return;
	if (s->prefix) put(b, s->escape ? mark : " ", s->escape ? 3 : 1);
	start = b->n;
	for (size_t i = 0; i < n; ) {
		utf8proc_int32_t c;
		utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		if (len <= 0) { put(b, "\xef\xbf\xbd", 3); i++; space = false; continue; }
		if (c == ' ') {
			if (!(s->remove_extra && space && b->n > start))
				put(b, s->escape ? mark : " ", s->escape ? 3 : 1);
			space = true;
		} else {
			put(b, t + i, (size_t)len);
			space = false;
		}
		i += (size_t)len;
	}
	if (!s->remove_extra || !s->escape || b->failed) return;
	/* marks that stood in the text, too */
	while (b->n >= from + 3 && !memcmp(b->p + b->n - 3, mark, 3)) b->n -= 3;
}

static enum ggu_status normal_form(const struct step *s, const char *t, size_t n, struct buf *b, struct ggu_error *err)
{
	for (size_t i = 0; i < n; ) {           /* stretches of well-formed text; what is not passes through */
		size_t j = i;
		utf8proc_int32_t c;
		utf8proc_ssize_t len = 0;
		utf8proc_uint8_t *out;
		while (j < n && (len = utf8proc_iterate((const utf8proc_uint8_t *)t + j, (utf8proc_ssize_t)(n - j),
			&c)) > 0)
			j += (size_t)len;
		if (j > i) {
			len = utf8proc_map((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(j - i), &out,
				(utf8proc_option_t)s->form);
			if (len < 0) return no_memory(err);
			put(b, (const char *)out, (size_t)len);
			free(out);
		}
		if (j < n) put(b, t + j++, 1);
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
		if (len <= 0) { put(b, t + i++, 1); continue; }
		put(b, (const char *)out, (size_t)utf8proc_encode_char(utf8proc_tolower(c), out));
		i += (size_t)len;
	}
}

/* Blocks of ideographs that BERT takes for words of their own. */
static bool is_ideograph(int32_t c)
{
	static const struct { int32_t from, to; } blocks[] = { { 0x3400, 0x4dbf }, { 0x4e00, 0x9fff }, { 0xf900,
		0xfaff }, { 0x20000, 0x2a6df },
		{ 0x2a700, 0x2b73f }, { 0x2b740, 0x2b81f }, { 0x2b920, 0x2ceaf }, { 0x2f800, 0x2fa1f } };
	for (size_t i = 0; i < sizeof blocks/sizeof *blocks; i++)
		if (c >= blocks[i].from && c <= blocks[i].to) return true;
	return false;
}

/* BERT: without control characters, blanks around ideographs; then without accents, then in lower case. */
static void bert_clean(const struct step *s, const char *t, size_t n, struct buf *b)
{
	for (size_t i = 0, len; i < n; i += len) {
		utf8proc_int32_t c;
		utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		int category = k > 0 ? utf8proc_category(c) : UTF8PROC_CATEGORY_CN;
		bool space = k > 0 && (c == '\t' || c == '\n' || c == '\r' || pretok_is_space(c));
		len = k > 0 ? (size_t)k : 1;
		if (s->clean && (k <= 0 || c == 0xfffd || c == 0)) continue;
		if (s->clean && !(c == '\t' || c == '\n' || c == '\r') &&
			(category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
				category == UTF8PROC_CATEGORY_CO)) continue;
		if (s->clean && space) put(b, " ", 1);
		else if (s->ideographs && k > 0 && is_ideograph(c)) {
			put(b, " ", 1);
			put(b, t + i, len);
			put(b, " ", 1);
		} else put(b, t + i, len);
	}
}

static void drop_accents(const char *t, size_t n, struct buf *b)
{
	for (size_t i = 0, len; i < n; i += len) {
		utf8proc_int32_t c;
		utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)t + i, (utf8proc_ssize_t)(n - i), &c);
		len = k > 0 ? (size_t)k : 1;
		if (k <= 0 || utf8proc_category(c) != UTF8PROC_CATEGORY_MN) put(b, t + i, len);
	}
}

static enum ggu_status bert(const struct step *s, const char *t, size_t n, struct buf *b, struct ggu_error *err)
{
	static const struct step nfd = { .form = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE };
	struct buf a = { .most = b->most }, d = { .most = b->most };
	enum ggu_status st = GGU_OK;
	put(&a, "", 0);
	bert_clean(s, t, n, &a);
	if (s->accents && !a.failed) {
		put(&d, "", 0);
		st = normal_form(&nfd, a.p, a.n, &d, err);
		a.n = 0;
		if (!st && !d.failed) drop_accents(d.p, d.n, &a);
	}
	if (a.failed || d.failed) b->failed = true;
	else if (!st && s->lower) lower(a.p, a.n, b);
	else if (!st) put(b, a.p, a.n);
	free(a.p);
	free(d.p);
	return st;
}

static void spm_step(const struct pretok *p, const struct step *s, const char *t, size_t n, struct buf *b)
{
	struct buf mapped = { .most = b->most };
	if (!s->chars) spm(s, t, n, b);
	else {
		put(&mapped, "", 0);
		longest_chars(&p->chars, t, n, &mapped);
		if (!mapped.failed) spm(s, mapped.p, mapped.n, b);
		b->failed |= mapped.failed;
		free(mapped.p);
	}
}

static enum ggu_status normalize_step(struct pretok *p, const struct step *s, const char *t, size_t n, struct buf *b,
	struct ggu_error *err)
{
	size_t len;
	switch (s->kind) {
	case NORM_FORM: return normal_form(s, t, n, b, err);
	case NORM_PREPEND: if (n) put(b, s->text, strlen(s->text)); put(b, t, n); break;
	case NORM_REPLACE: return replace_all(p, s, t, n, b, err);
	case NORM_LOWER: lower(t, n, b); break;
	case NORM_BERT: return bert(s, t, n, b, err);
	case NORM_CHARS: chars(&p->chars, t, n, b); break;
	case NORM_STRIP:
		while (s->left && n && is_space(t, n, &len)) { t += len; n -= len; }
		for (size_t k = n; s->right && k; ) {
			do k--; while (k && (t[k] & 0xc0) == 0x80);
			if (!is_space(t + k, n - k, &len)) break;
			n = k;
		}
		put(b, t, n);
		break;
	default: spm_step(p, s, t, n, b); break;
	}
	return GGU_OK;
}

/* Steps that double a text, one after the other, would fill any memory: so there is a bound, which no normal form of
 * Unicode comes near (one character of 3 bytes becomes 33). */
enum { GROWTH = 64, GROWTH_BYTES = 1 << 16 };

enum ggu_status pretok_normalize(struct pretok *p, const char *text, size_t n, struct text *out, struct ggu_error *err)
{
	struct buf b = { 0 };
	put(&b, text, n);
	for (size_t i = 0; i < p->n_norm; i++) {
		struct buf next = { .most = n < SIZE_MAX/(2*GROWTH) ? GROWTH*n + GROWTH_BYTES : SIZE_MAX };
		enum ggu_status s;
		put(&next, "", 0);
		s = normalize_step(p, p->norm + i, b.p, b.n, &next, err);
		if (!s && next.failed)
			s = ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "normalizer",
				"makes more than %zu bytes of %zu, or there is no memory", next.most, n);
		if (b.failed) s = no_memory(err);
		free(b.p);
		b = next;
		if (s) { free(b.p); return s; }
	}
	if (b.failed) { free(b.p); return no_memory(err); }
	*out = (struct text){ b.p, b.n };
	return GGU_OK;
}

/* ---- pre-tokens ---- */

/* Byte-level BPE writes the bytes that are no visible Latin-1 characters as U+0100 upwards, in order (GPT-2). */
static const struct { int from, to; } hidden[] = { { 0, 32 }, { 127, 160 }, { 173, 173 } };
enum { N_HIDDEN = sizeof hidden/sizeof *hidden };
static int letter_of(int byte)
{
	int letter = 256;
	for (int i = 0; i < N_HIDDEN; letter += hidden[i].to + 1 - hidden[i].from, i++)
		if (byte >= hidden[i].from && byte <= hidden[i].to) return letter + byte - hidden[i].from;
	return byte;
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

struct walk { struct pretok *p; bool first; pretok_each *each; void *ctx; struct ggu_error *err; };
static enum ggu_status walk(struct walk *w, size_t step, const char *t, size_t n);

static enum ggu_status piece(struct walk *w, size_t step, const char *t, size_t from, size_t to)
{
	return to > from ? walk(w, step + 1, t + from, to - from) : GGU_OK;
}

/* Matches and the stretches between them, joined as the behavior says. */
static enum ggu_status split(struct walk *w, size_t step, const char *t, size_t n)
{
	const struct step *s = w->p->pre + step;
	size_t from = 0, start = 0, at = n, end = n;    /* start: of what waits to be given out */
	struct subject u = { t, n, 0, 0 };
	bool found = true, run = false;
	while (from < n) {
		size_t look = from;
		do {
			TRY(find(w->p, s, &u, look, &at, &end, &found, w->err));
			for (look = end + 1; look < n && ((unsigned char)t[look] & 0xc0) == 0x80;) look++;
		} while (found && end == at && look <= n);      /* empty matches split nothing */
		if (!found || end == at) at = end = n;
		if (s->invert) {        /* what lies between the matches counts as the match */
			if (at > from && s->behavior != REMOVED) TRY(piece(w, step, t, from, at));
			TRY(piece(w, step, t, at, end));
			from = end;
			continue;
		}
		switch (s->behavior) {
		case REMOVED: TRY(piece(w, step, t, from, at)); break;
		case ISOLATED: TRY(piece(w, step, t, from, at)); TRY(piece(w, step, t, at, end)); break;
		case MERGED_WITH_PREVIOUS: TRY(piece(w, step, t, from, end)); break;
		case MERGED_WITH_NEXT: TRY(piece(w, step, t, start, at)); start = at; break;
		case CONTIGUOUS:
			if (run && at > from) { TRY(piece(w, step, t, start, from)); start = from; run = false; }
			if (!run) { TRY(piece(w, step, t, from, at)); start = at; run = true; }
			break;
		}
		from = end;
	}
	if (s->behavior == MERGED_WITH_NEXT || (s->behavior == CONTIGUOUS && run)) TRY(piece(w, step, t, start, n));
	return GGU_OK;
}

static enum ggu_status rewrite(struct walk *w, size_t step, const char *t, size_t n)
{
	const struct step *s = w->p->pre + step;
	struct buf b = { 0 };
	enum ggu_status st;
	bool prefix = s->prefix == ALWAYS || (s->prefix == FIRST_ONLY && w->first);
	put(&b, "", 0);
	if (s->kind == PRE_BYTES)
		for (size_t i = 0; i < n; i++) {
			int c = letter_of((unsigned char)t[i]);
			char two[2] = { (char)(0xc0 | c >> 6), (char)(0x80 | (c & 63)) }, one = (char)c;
			put(&b, c < 128 ? &one : two, c < 128 ? 1 : 2);
		}
	else if (s->kind == PRE_SPACE) {
		if (*t != ' ') put(&b, " ", 1);
		put(&b, t, n);
	} else {
		if (prefix && *t != ' ' && !text_begins(t, n, mark)) put(&b, mark, 3);
		for (size_t i = 0; i < n; i++) put(&b, t[i] == ' ' ? mark : t + i, t[i] == ' ' ? 3 : 1);
	}
	st = b.failed ? no_memory(w->err) : piece(w, step, b.p, 0, b.n);
	free(b.p);
	return st;
}

static enum ggu_status walk(struct walk *w, size_t step, const char *t, size_t n)
{
	if (step == w->p->n_pre) return w->each(w->ctx, t, n);
	return w->p->pre[step].kind == PRE_SPLIT ? split(w, step, t, n) : rewrite(w, step, t, n);
}

enum ggu_status pretok_split(struct pretok *p, const char *text, size_t n, bool first, pretok_each *each, void *ctx,
	struct ggu_error *err)
{
	struct walk w = { p, first, each, ctx, err };
	return n ? walk(&w, 0, text, n) : GGU_OK;
}
