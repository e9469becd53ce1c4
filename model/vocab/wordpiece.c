/* SPDX-License-Identifier: MIT
 * wordpiece.c - see wordpiece.h. The word is copied behind the mark, so that the beginning of a word with its mark, and
 * the rest without, can be looked up in the same table, longest first. */
#include <stdlib.h>
#include <string.h>
#include "wordpiece.h"

enum { MARK_BYTES = 3, LONGEST = 4096 };        /* the most characters of a word that a file may ask for */
static const char mark[] = "\xe2\x96\x81";

struct wordpiece {
	struct texts *texts;
	int32_t unknown;                        /* -1: words that are not known vanish */
	size_t most;                            /* characters of a word */
	char *word;                             /* the mark, then a word */
};

/* As a special token, or as a word like others. */
static int32_t find_unknown(struct wordpiece *w, const char *text)
{
	size_t n = strlen(text);
	int32_t id = texts_find(w->texts, text, n);
	if (id >= 0 || n > 4*w->most) return id;
	memcpy(w->word + MARK_BYTES, text, n);
	return texts_find(w->texts, w->word, MARK_BYTES + n);
}

enum ggu_status wordpiece_new(struct wordpiece **out, const struct vocab *v, struct ggu_error *err)
{
	struct wordpiece *w = calloc(1, sizeof *w);
	const json_t *m = json_object_get(v->pipeline, "model"), *most = json_object_get(m, "max_input_chars_per_word");
	const char *unknown = vocab_json_str(m, "unk_token");
	*out = w;
	if (w) {
		w->most = json_is_integer(most) && json_integer_value(most) > 0 ?
			(size_t)json_integer_value(most) : 100;
		if (w->most > LONGEST) w->most = LONGEST;
		w->texts = texts_new(v, false);
		w->word = malloc(MARK_BYTES + 4*w->most);
	}
	if (!w || !w->texts || !w->word) {
		wordpiece_free(w);
		return ggu_no_memory(err);
	}
	memcpy(w->word, mark, MARK_BYTES);
	w->unknown = unknown ? find_unknown(w, unknown) : v->special[VOCAB_UNK];
	return GGU_OK;
}

void wordpiece_free(struct wordpiece *w)
{
	if (!w) return;
	texts_free(w->texts);
	free(w->word);
	free(w);
}

/* The longest token that p[*n] begins with, which *n then is; -1: none. */
static int32_t longest(const struct wordpiece *w, const char *p, size_t *n)
{
	for (size_t k = *n; k; k--) {
		int32_t id;
		if (k < *n && ((unsigned char)p[k] & 0xc0) == 0x80) continue;   /* within a character */
		id = texts_find(w->texts, p, k);
		if (id < 0) continue;
		*n = k;
		return id;
	}
	return -1;
}

bool wordpiece_encode(struct wordpiece *w, const char *word, size_t n, struct ids *o)
{
	size_t chars = 0, had = o->n;
	for (size_t i = 0; i < n; i++) chars += ((unsigned char)word[i] & 0xc0) != 0x80;
	if (chars > w->most || n > 4*w->most) return w->unknown < 0 || ids_add(o, w->unknown);
	memcpy(w->word + MARK_BYTES, word, n);
	for (size_t at = 0, end = MARK_BYTES + n, k; at < end; at += k) {
		int32_t id;
		k = end - at;
		id = longest(w, w->word + at, &k);
		/* the mark alone begins nothing, and nothing goes on with a mark */
		if (id < 0 || (at ? k >= MARK_BYTES && !memcmp(w->word + at, mark, MARK_BYTES) : k <= MARK_BYTES)) {
			o->n = had;
			return w->unknown < 0 || ids_add(o, w->unknown);
		}
		if (!ids_add(o, id)) return false;
	}
	return true;
}
