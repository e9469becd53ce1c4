/* SPDX-License-Identifier: MIT
 * vocab_wordpiece.c - WordPiece vocabularies: vocab.txt, a token in each line, and tokenizer.json of that kind.
 *
 * A GGUF has the tokens as llama.cpp's converter writes them: "##ing", which goes on with a word, is "ing"; "the",
 * which begins one, has U+2581 in front; special tokens stay. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "../util/file.h"
#include "vocab_internal.h"

/* The special tokens of a folder that has only vocab.txt. */
static const char *const usual[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
enum { N_USUAL = sizeof usual/sizeof *usual, UNK = 1, CLS, SEP };

static bool is_usual(const char *p, size_t n)
{
	for (size_t i = 0; i < N_USUAL; i++) if (text_is(p, n, usual[i])) return true;
	return false;
}

/* Sets the token of an id, in a GGUF's spelling. continuing: the list of ids whose spelling does not say so. */
static enum ggu_status set_word(struct vocab *v, size_t id, const char *p, size_t n, bool special, json_t *continuing,
	struct ggu_error *err)
{
	static const char mark[] = "\xe2\x96\x81";
	bool on = !special && n > 2 && text_begins(p, n, "##");
	char *to = vocab_alloc(v, n + 4);
	size_t k = 0;
	if (!to) return ggu_no_memory(err);
	if (!special && !on) memcpy(to, mark, k = 3);
	if (on && text_begins(p + 2, n - 2, mark) && json_array_append_new(continuing, json_integer((json_int_t)id)))
		return ggu_no_memory(err);
	memcpy(to + k, p + 2*on, n - 2*on);
	to[k + n - 2*on] = 0;
	v->tokens[id] = (struct ggu_str){ to, k + n - 2*on };
	v->types[id] = special ? VOCAB_CONTROL : VOCAB_NORMAL;
	return GGU_OK;
}

static void set_continuing(json_t *model, json_t *list)
{
	if (json_array_size(list)) json_object_set(model, "continuing", list);
	json_decref(list);
}

void vocab_bert_pipeline(struct vocab *v, bool lowercase)
{
	int32_t unk = v->special[VOCAB_UNK];
	json_object_set_new(v->pipeline, "added_tokens", vocab_added_by_type(v));
	json_object_set_new(v->pipeline, "normalizer", json_pack("{s:s,s:b,s:b,s:n,s:b}", "type", "BertNormalizer",
		"clean_text", 1, "handle_chinese_chars", 1,
		"strip_accents", "lowercase", lowercase));
	json_object_set_new(v->pipeline, "pre_tokenizer", json_pack("{s:s}", "type", "BertPreTokenizer"));
	json_object_set_new(v->pipeline, "decoder", json_pack("{s:s,s:s,s:b}", "type", "WordPiece", "prefix", "##",
		"cleanup", 1));
	json_object_set_new(v->pipeline, "model", json_pack("{s:s,s:s%,s:i}", "type", "WordPiece", "unk_token",
		unk >= 0 ? v->tokens[unk].p : usual[UNK], unk >= 0 ? v->tokens[unk].n : strlen(usual[UNK]),
			"max_input_chars_per_word", 100));
}

void vocab_bert_around(struct vocab *v, int64_t cls, int64_t sep)
{
	json_object_set_new(v->pipeline, "post_processor", json_pack("{s:s,s:[s,I],s:[s,I]}", "type", "BertProcessing",
		"sep", usual[SEP], (json_int_t)sep, "cls", usual[CLS], (json_int_t)cls));
}

static enum ggu_status from_lines(struct vocab *v, const struct vocab_files *f, const char *text, size_t n,
	json_t *continuing, struct ggu_error *err)
{
	const json_t *lower = json_object_get(f->config, "do_lower_case");
	size_t lines = 0, id = 0, around[N_USUAL] = { 0 };
	for (const char *p = text, *end = text + n; p < end; lines++) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		p = line ? line + 1 : end;
	}
	if (!lines) return file_fail(err, GGU_ERR_FORMAT, "vocab.txt", 0, "", "is empty");
	TRY(vocab_size(v, f->hints && f->hints->n_vocab > (int64_t)lines ? (size_t)f->hints->n_vocab : lines,
		false, 0, err));
	for (size_t from = 0; from < n; id++) {
		const char *end = memchr(text + from, '\n', n - from);
		size_t to = end ? (size_t)(end - text) : n, len = to - from;
		while (len && text[from + len - 1] == '\r') len--;
		for (size_t k = 0; k < N_USUAL; k++)
			if (text_is(text + from, len, usual[k])) around[k] = id;
		TRY(set_word(v, id, text + from, len, is_usual(text + from, len), continuing, err));
		from = to + 1;
	}
	vocab_bert_pipeline(v, !json_is_false(lower));
	if (json_is_false(lower)) v->lowercase = 0;
	vocab_bert_around(v, (int64_t)around[CLS], (int64_t)around[SEP]);
	return GGU_OK;
}

static enum ggu_status from_json(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	const json_t *model = json_object_get(f->tokenizer, "model"),
		*lower = json_object_get(json_object_get(f->tokenizer, "normalizer"), "lowercase");
	const char *prefix = vocab_json_str(model, "continuing_subword_prefix");
	json_t *copy, *list;
	enum ggu_status s = GGU_OK;
	if (prefix && strcmp(prefix, "##"))
		return file_fail(err, GGU_ERR_UNSUPPORTED, "tokenizer.json", GGU_NO_OFFSET, "model",
			"only ## is supported as the continuing_subword_prefix");
	v->write_merges = v->own_merges = false;
	if (!(list = json_array())) return ggu_no_memory(err);
	for (size_t i = 0; i < v->n && !s; i++)
		if (v->types[i] == VOCAB_NORMAL) s = set_word(v, i, v->tokens[i].p, v->tokens[i].n, false, list, err);
	copy = json_pack("{s:s}", "type", "WordPiece");
	set_continuing(copy, list);
	if (s) {
		json_decref(copy);
		return s;
	}
	json_object_set(copy, "unk_token", json_object_get(model, "unk_token"));
	json_object_set(copy, "max_input_chars_per_word", json_object_get(model, "max_input_chars_per_word"));
	if (json_is_boolean(lower)) v->lowercase = json_is_true(lower);
	return vocab_take_pipeline(v, f->tokenizer, copy, err);
}

enum ggu_status vocab_load_wordpiece(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	char *text;
	size_t n;
	json_t *list;
	enum ggu_status s;
	if (f->tokenizer) {
		v->model = "bert";
		TRY(vocab_load_json(v, f, err));
		return from_json(v, f, err);
	}
	s = file_slurp(f->dir, "vocab.txt", 64 << 20, &text, &n, err);
	if (s) return s;
	v->model = "bert";
	if (!(list = json_array())) s = ggu_no_memory(err);
	else s = from_lines(v, f, text, n, list, err);
	set_continuing(json_object_get(v->pipeline, "model"), list);
	free(text);
	return s;
}
