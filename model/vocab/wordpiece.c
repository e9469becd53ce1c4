/* SPDX-License-Identifier: MIT
 * wordpiece.c - see wordpiece.h. The word is copied, so that ## can be put before the part that is left, over what has
 * been covered, to look it up. Tokens are looked up longest first, by their texts in vocab.txt. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "wordpiece.h"

enum { MARK_BYTES = 3, ON_BYTES = 2, LONGEST = 4096 };  /* the most characters of a word that a file may ask for */
static const char mark[] = "\xe2\x96\x81", on[] = "##";

struct wordpiece {
	struct ggu_str *text;                   /* as vocab.txt spells them; empty for tokens that are no words */
	char *bytes;                            /* holds the texts that begin with ## */
	struct texts *texts;
	int32_t unknown;                        /* -1: unknown words vanish */
	size_t most;                            /* characters of a word */
	char *word;                             /* room for ##, then a word */
};

/* Gives the token its text with ## in front, written at `to`; returns the end of that. */
static char *goes_on(struct ggu_str *text, struct ggu_str token, char *to)
{
	memcpy(to, on, ON_BYTES);
	memcpy(to + ON_BYTES, token.p, token.n);
	*text = (struct ggu_str){ to, ON_BYTES + token.n };
	return to + text->n;
}

/* From a GGUF's spelling, which marks where words begin, to that of vocab.txt, which marks where they go on. */
static bool spell(struct wordpiece *w, const struct vocab *v, const bool *own)
{
	size_t n = 1, i;
	json_t *k;
	char *to;
	for (size_t id = 0; id < v->n; id++) n += v->tokens[id].n + ON_BYTES;
	w->text = calloc(v->n + 1, sizeof *w->text);
	to = w->bytes = malloc(n);
	if (!w->text || !to) return false;
	json_array_foreach(json_object_get(json_object_get(v->pipeline, "model"), "continuing"), i, k) {
		json_int_t id = json_is_integer(k) ? json_integer_value(k) : -1;
		if (id < 0 || (uint64_t)id >= v->n || !own[id] || w->text[id].n) continue;
		to = goes_on(w->text + id, v->tokens[id], to);
	}
	for (size_t id = 0; id < v->n; id++) {
		struct ggu_str t = v->tokens[id];
		if (v->types[id] == VOCAB_UNUSED || !own[id] || w->text[id].n) continue;
		if (v->types[id] != VOCAB_NORMAL) w->text[id] = t;
		else if (text_begins(t.p, t.n, mark))
			w->text[id] = (struct ggu_str){ t.p + MARK_BYTES, t.n - MARK_BYTES };
		else to = goes_on(w->text + id, t, to);
	}
	return true;
}

enum ggu_status wordpiece_new(struct wordpiece **out, const struct vocab *v, const bool *own, struct ggu_error *err)
{
	struct wordpiece *w = calloc(1, sizeof *w);
	const json_t *m = json_object_get(v->pipeline, "model"), *most = json_object_get(m, "max_input_chars_per_word");
	const char *unknown = vocab_json_str(m, "unk_token");
	if (w) {
		w->most = json_is_integer(most) && json_integer_value(most) > 0 ?
			(size_t)json_integer_value(most) : 100;
		if (w->most > LONGEST) w->most = LONGEST;
		if (spell(w, v, own)) w->texts = texts_of(w->text, v->n);
		w->word = malloc(ON_BYTES + 4*w->most);
	}
	if (!w || !w->texts || !w->word) {
		wordpiece_free(w);
		return ggu_no_memory(err);
	}
	w->unknown = unknown ? texts_find(w->texts, unknown, strlen(unknown)) : v->special[VOCAB_UNK];
	if (w->unknown < 0 && unknown) w->unknown = vocab_find(v, unknown);
	*out = w;
	return GGU_OK;
}

void wordpiece_free(struct wordpiece *w)
{
	if (!w) return;
	texts_free(w->texts);
	free(w->text);
	free(w->bytes);
	free(w->word);
	free(w);
}

struct ggu_str wordpiece_text(const struct wordpiece *w, int32_t id) { return w->text[id]; }

/* The longest token of more than `least` bytes that p[*n] begins with; *n becomes its length. -1: none. */
static int32_t longest(const struct wordpiece *w, const char *p, size_t least, size_t *n)
{
	for (size_t k = *n; k > least; k--) {
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
	memcpy(w->word + ON_BYTES, word, n);
	for (size_t at = 0, k; at < n; at += k) {
		size_t extra = at ? ON_BYTES : 0;
		char *from = w->word + ON_BYTES + at - extra;
		int32_t id;
		memcpy(from, on, extra);
		k = n - at + extra;
		id = longest(w, from, extra, &k);
		if (id < 0) {
			o->n = had;
			return w->unknown < 0 || ids_add(o, w->unknown);
		}
		if (!ids_add(o, id)) return false;
		k -= extra;
	}
	return true;
}
