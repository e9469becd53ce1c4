/* SPDX-License-Identifier: MIT
 * tokenizer_internal.h - the inside of a tokenizer: tokenizer.c makes one and goes from text to ids, tokenizer_text.c
 * back. */
#ifndef MODEL_VOCAB_TOKENIZER_INTERNAL_H
#define MODEL_VOCAB_TOKENIZER_INTERNAL_H
#include <utf8proc.h>
#include "bpe.h"
#include "pretok.h"
#include "tokenizer.h"
#include "unigram.h"
#include "wordpiece.h"

struct added { struct text text; int32_t id; bool special, normalized, lstrip, rstrip, single_word; };
struct tokenizer {
	const struct vocab *v;
	/* one of these */
	struct bpe *bpe;
	struct wordpiece *words;
	struct unigram *pieces;
	struct pretok *pre;
	struct added *added;            /* [n_added], in order of their texts */
	size_t n_added;
	size_t first[257];              /* added[first[b]] .. begin with byte b */
	uint32_t *added_at;             /* [v->n] the token's position in added, + 1; 0: not there */
	struct ids before, after;       /* put around a text: BOS, EOS and their kin */
	bool byte_level;                /* decoding */
	bool strip_start, drop_marks;   /* of the first token: a blank in front, all U+2581 */
	bool strip_on;                  /* a token that was but a blank is not the first */
	bool tidy;                      /* decoding words: no blank before "." and the like */
};

/* The bytes of the first character of p[n], n > 0; a byte that begins no character counts as one, U+FFFD. */
static inline size_t tokenizer_char(const char *p, size_t n, utf8proc_int32_t *c)
{
	utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)p, (utf8proc_ssize_t)n, c);
	if (len <= 0) *c = 0xfffd;
	return len > 0 ? (size_t)len : 1;
}

#endif
