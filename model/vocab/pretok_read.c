/* SPDX-License-Identifier: MIT
 * pretok_read.c - the normalizer and pre-tokenizer trees of a tokenizer.json become steps. Named splitters (Digits,
 * Punctuation, ...) become regular expressions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "pretok_internal.h"

enum { MAX_DEPTH = 16 };

static pcre2_code *compile_text(const char *pattern, bool literal, int *code, PCRE2_SIZE *at)
{
	/* ^ and $ match at lines */
	uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
	return pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), options, code, at, NULL);
}
static enum ggu_status compile(struct step *s, const char *pattern, bool literal, struct ggu_error *err)
{
	struct buf own = { 0 };
	int code;
	PCRE2_SIZE at;
	bool ends = literal || pretok_pattern(pattern, &own);
	if (!literal && ends && !own.failed) s->re = compile_text(own.p, false, &code, &at);
	free(own.p);
	if (own.failed) return ggu_no_memory(err);
	/* a wrong pattern as it was written, so that the message gives a byte of it */
	if (!s->re) s->re = compile_text(pattern, literal, &code, &at);
	if (s->re && !ends)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "pattern",
			"a class does not end, or is nested too deeply, or braces are followed by + or ? in a way that "
			"is not supported");
	if (!s->re) {
		char why[100] = "";
		/* PCRE's own message says that it has no \u at all */
		if (code == PCRE2_ERROR_UNSUPPORTED_ESCAPE_SEQUENCE) strcpy(why,
			"an escape that is not supported; \\u wants a character as four hexadecimal digits");
		else pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "pattern", "%s, at byte %zu of the pattern", why,
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

/* Adds a step to one of the lists. NULL: there are too many; the status is GGU_ERR_FORMAT. */
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
		{ "Precompiled", NORM_CHARS, 0 }, { "StripAccents", NORM_MARKS, 0 }, { "Nmt", NORM_NMT, 0 },
		{ "ByteLevel", NORM_BYTES, 0 },
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
		s->accents = json_is_boolean(json_object_get(o, "strip_accents"))
			? vocab_json_true(o, "strip_accents") : s->lower;
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
	const char *scheme = vocab_json_str(o, "prepend_scheme"), *mark = vocab_json_str(o, "replacement");
	struct step *s;
	if (mark && strcmp(mark, PRETOK_MARK))
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "pre_tokenizer",
			"Metaspace: replacement '%.40s' is not supported, only " PRETOK_MARK, mark);
	s = new_step(p, false, PRE_MARK, err);
	if (!s) return GGU_ERR_FORMAT;
	if (scheme) s->prefix = !strcmp(scheme, "always") ? ALWAYS : !strcmp(scheme, "first") ? FIRST_ONLY : 0;
	else s->prefix = unless_false(o, "add_prefix_space") ? ALWAYS : 0;
	return unless_false(o, "split") ? add_split(p, PRETOK_MARK, true, MERGED_WITH_NEXT, err) : GGU_OK;
}

/* Pieces of so many characters. */
static enum ggu_status add_lengths(struct pretok *p, const json_t *o, struct ggu_error *err)
{
	const json_t *length = json_object_get(o, "length");
	const json_int_t n = length ? json_integer_value(length) : 5;
	char pattern[32];
	if (n < 1 || n > 65535)         /* PCRE counts no further */
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "pre_tokenizer",
			"FixedLength: the length is not a number from 1 to 65535");
	snprintf(pattern, sizeof pattern, "(?m).{1,%d}", (int)n);
	return add_split(p, pattern, false, ISOLATED, err);
}

static enum ggu_status add_delimiter(struct pretok *p, const json_t *o, struct ggu_error *err)
{
	const char *delimiter = vocab_json_str(o, "delimiter");
	if (!delimiter || !*delimiter)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "pre_tokenizer.delimiter", "is missing");
	return add_split(p, delimiter, true, REMOVED, err);
}

static enum ggu_status add_byte_level(struct pretok *p, const json_t *o, struct ggu_error *err)
{
	if (vocab_json_true(o, "add_prefix_space") && !new_step(p, false, PRE_SPACE, err)) return GGU_ERR_FORMAT;
	if (unless_false(o, "use_regex")) TRY(add_split(p, PRETOK_GPT2, false, ISOLATED, err));
	return new_step(p, false, PRE_BYTES, err) ? GGU_OK : GGU_ERR_FORMAT;
}

/* For the splitter Whitespace, which transformers runs on another engine, joiners belong to words too. */
#define JOINED PRETOK_WORD "\\x{200c}\\x{200d}"

static enum ggu_status read_pre(struct pretok *p, const json_t *o, const char *type, struct ggu_error *err)
{
	enum behavior behavior;
	struct step *s;
	TRY(behavior_of(o, &behavior, err));
	if (!strcmp(type, "Metaspace")) return add_metaspace(p, o, err);
	if (!strcmp(type, "ByteLevel")) return add_byte_level(p, o, err);
	if (!strcmp(type, "Digits"))
		return add_split(p, "\\p{N}", false,
			vocab_json_true(o, "individual_digits") ? ISOLATED : CONTIGUOUS, err);
	if (!strcmp(type, "Punctuation")) return add_split(p, "[\\p{P}$+<=>^`|~]", false, behavior, err);
	if (!strcmp(type, "BertPreTokenizer")) {
		TRY(add_split(p, "\\s+", false, REMOVED, err));
		return add_split(p, "[\\p{P}$+<=>^`|~]", false, ISOLATED, err);
	}
	if (!strcmp(type, "WhitespaceSplit")) return add_split(p, "\\s+", false, REMOVED, err);
	if (!strcmp(type, "Whitespace")) {
		TRY(add_split(p, "[" JOINED "]+|[^" JOINED "\\s]+", false, REMOVED, err));
		p->pre[p->n_pre - 1].invert = true;
		return GGU_OK;
	}
	if (!strcmp(type, "CharDelimiterSplit")) return add_delimiter(p, o, err);
	if (!strcmp(type, "FixedLength")) return add_lengths(p, o, err);
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

static enum ggu_status read_user(struct pretok *p, const struct vocab *v, struct ggu_error *err)
{
	const json_t *list = json_object_get(json_object_get(v->pipeline, "model"), "user_defined");
	size_t i;
	json_t *row;
	if (!json_array_size(list)) return GGU_OK;
	p->user = calloc(json_array_size(list), sizeof *p->user);
	if (!p->user) return ggu_no_memory(err);
	json_array_foreach(list, i, row) {
		json_int_t id = json_is_integer(row) ? json_integer_value(row) : -1;
		if (id >= 0 && (uint64_t)id < v->n && v->tokens[id].n) p->user[p->n_user++] = v->tokens[id];
	}
	qsort(p->user, p->n_user, sizeof *p->user, pretok_order);
	return GGU_OK;
}

enum ggu_status pretok_new(struct pretok **out, const struct vocab *v, struct ggu_error *err)
{
	struct pretok *p = calloc(1, sizeof *p);
	enum ggu_status s;
	if (!p) return ggu_no_memory(err);
	p->charsmap = &v->charsmap;
	p->match = pcre2_match_data_create(1, NULL);
	p->limits = pcre2_match_context_create(NULL);
	s = p->match && p->limits ? read_tree(p, json_object_get(v->pipeline, "normalizer"), true, 0, err) :
		ggu_no_memory(err);
	if (!s) s = read_tree(p, json_object_get(v->pipeline, "pre_tokenizer"), false, 0, err);
	if (!s) s = read_user(p, v, err);
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
	free(p->user);
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
bool pretok_trims(const struct pretok *p)
{
	for (size_t i = 0; i < p->n_norm; i++) if (p->norm[i].remove_extra) return true;
	return false;
}
