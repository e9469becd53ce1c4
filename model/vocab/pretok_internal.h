/* SPDX-License-Identifier: MIT
 * pretok_internal.h - the steps of a normalizer and a pre-tokenizer, and what those who run them share.
 *
 *   pretok_read.c   the trees of tokenizer.json become steps
 *   pretok_pattern.c        their regular expressions become PCRE's
 *   pretok_norm.c   normalizers: a text becomes another
 *   pretok.c        pre-tokenizers: a text becomes pieces; matching */
#ifndef MODEL_VOCAB_PRETOK_INTERNAL_H
#define MODEL_VOCAB_PRETOK_INTERNAL_H
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include "charsmap.h"
#include "pretok.h"

enum { MAX_STEPS = 64 };
enum kind {
	NORM_FORM, NORM_PREPEND, NORM_REPLACE, NORM_LOWER, NORM_STRIP, NORM_SPM, NORM_BERT, NORM_CHARS, NORM_MARKS,
	NORM_NMT, NORM_BYTES,
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
	struct ggu_str *user;           /* SentencePiece's user-defined pieces, in the order of pretok_order */
	size_t n_user;
	pcre2_match_data *match;
	pcre2_match_context *limits;
};

#define PRETOK_MARK "\xe2\x96\x81"      /* U+2581, which SentencePiece has for a blank */

/* Letters and what counts as such (circled ones), marks, digits, underscores: the inside of a class. */
#define PRETOK_WORD "\\p{L}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}" \
	"\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}"

/* A text under construction, ended by a zero. most: bytes it may hold, 0: any number. failed: it is incomplete, since
 * it is full or memory ran out. late: what the text it is made of begins with was dropped. */
struct buf { char *p; size_t n, cap, most; bool failed, full, late; };
void buf_put(struct buf *b, const char *p, size_t n);

/* A text in which matches are looked for. Patterns see only its well-formed stretches, of which [from, to) is the
 * current one. They are checked once here; PCRE would check the whole rest at each match. */
struct subject { const char *t; size_t n, from, to; };
struct match { bool found; size_t at, end; };
/* Finds the next match at or after `from`. If there is none, only m->found is changed. */
enum ggu_status pretok_find(struct pretok *p, const struct step *s, struct subject *u, size_t from, struct match *m,
	struct ggu_error *err);
/* The same, but not an empty match where the last one, which is in *m, ended. from is less than u->n. */
enum ggu_status pretok_next(struct pretok *p, const struct step *s, struct subject *u, size_t from, struct match *m,
	struct ggu_error *err);
/* Appends the letters that byte-level BPE has for the bytes of t[n]. */
void pretok_letters(const char *t, size_t n, struct buf *b);
int pretok_order(const void *a, const void *b);         /* of two struct ggu_str, by their bytes; for qsort */
/* Appends the pattern to `to` in PCRE's spelling. false: a class does not end, or is nested too deep. */
bool pretok_pattern(const char *pattern, struct buf *to);

#endif
