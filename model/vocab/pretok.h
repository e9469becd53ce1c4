/* SPDX-License-Identifier: MIT
 * pretok.h - normalizer and pre-tokenizer trees of tokenizer.json as lists of steps. Private to model/. */
#ifndef MODEL_VOCAB_PRETOK_H
#define MODEL_VOCAB_PRETOK_H
#include "vocab_internal.h"

/* malloc'ed bytes; late: a normalizer has dropped what the text began with */
struct text { char *p; size_t n; bool late; };

/* GPT-2's pattern, which is built into the step ByteLevel */
#define PRETOK_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

struct pretok;
/* Made from the normalizer and pre_tokenizer of v's pipeline, and its charsmap, which must outlive it.
 * GGU_ERR_UNSUPPORTED names an unknown kind of step. */
enum ggu_status pretok_new(struct pretok **out, const struct vocab *v, struct ggu_error *err);
void pretok_free(struct pretok *p);
/* The normalized form of text[n]. The caller frees out->p. */
enum ggu_status pretok_normalize(struct pretok *p, const char *text, size_t n, struct text *out, struct ggu_error *err);
/* Calls each(ctx, piece, n) for the pre-tokens of a normalized text, in order; first: it is at the start of the
 * input. */
typedef enum ggu_status pretok_each(void *ctx, const char *piece, size_t n);
enum ggu_status pretok_split(struct pretok *p, const char *text, size_t n, bool first, pretok_each *each, void *ctx,
	struct ggu_error *err);
bool pretok_is_byte_level(const struct pretok *p);
bool pretok_adds_space(const struct pretok *p);         /* a blank or its mark in front of the text */
bool pretok_trims(const struct pretok *p);              /* SentencePiece's removal of blanks */
bool pretok_is_space(int32_t c);                        /* White_Space of Unicode */
/* The byte that a character of byte-level BPE stands for; -1: none. */
int pretok_byte_of(uint32_t c);

#endif
