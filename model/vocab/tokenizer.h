/* SPDX-License-Identifier: MIT
 * tokenizer.h - text to ids and back. Text is bytes; what is not UTF-8 is handled as the page gguf-tokenize(1) says.
 * A tokenizer may be used from one thread at a time. */
#ifndef MODEL_VOCAB_TOKENIZER_H
#define MODEL_VOCAB_TOKENIZER_H
#include "vocab.h"

struct tokenizer;
/* v must outlive it. */
enum ggu_status tokenizer_new(struct tokenizer **out, const struct vocab *v, struct ggu_error *err);
void tokenizer_free(struct tokenizer *t);

enum { TOKENIZE_BOS = 1, TOKENIZE_EOS = 2,      /* add where the vocabulary says so (add_bos_token ...) */
	TOKENIZE_SPECIAL = 4 };                 /* special-token strings in the text become their tokens */
/* Appends to *ids, which has *n ids: a list that ggu_grow made, or NULL. The caller frees it, after an error too. */
enum ggu_status tokenizer_encode(struct tokenizer *t, const char *text, size_t n_bytes, unsigned flags,
	int32_t **ids, size_t *n, struct ggu_error *err);
/* Appends only the first of these ids: at least `most`, or all if there are fewer. most 0: all. */
enum ggu_status tokenizer_encode_first(struct tokenizer *t, const char *text, size_t n_bytes, unsigned flags,
	size_t most, int32_t **ids, size_t *n, struct ggu_error *err);
/* Decodes ids, each in the context of the others. *text is malloc'ed, *n_bytes long. Special tokens are kept as their
 * text if `special`. */
enum ggu_status tokenizer_decode(struct tokenizer *t, const int32_t *ids, size_t n, bool special, char **text,
	size_t *n_bytes, struct ggu_error *err);
/* Streaming: the bytes that id adds to the text so far (whole UTF-8 characters only; a rest is kept). *text is valid
 * until the next call. An id that is not in the vocabulary adds nothing. t must outlive d. */
struct detokenizer;
enum ggu_status detokenizer_new(struct detokenizer **d, struct tokenizer *t, struct ggu_error *err);
enum ggu_status detokenizer_add(struct detokenizer *d, int32_t id, const char **text, size_t *n_bytes,
	struct ggu_error *err);
void detokenizer_end(struct detokenizer *d, const char **text, size_t *n_bytes);        /* what is left, as it is */
void detokenizer_free(struct detokenizer *d);

const char *tokenizer_unicode_version(void);    /* of the tables, "15.0.0 (classes 14.0.0)" */

#endif
