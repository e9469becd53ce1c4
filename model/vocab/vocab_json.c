/* SPDX-License-Identifier: MIT
 * vocab_json.c - tokenizer.json, and vocab.json with merges.txt.
 *
 * Where tokenizer.model has filled the vocabulary already, only the pipeline and the merges are taken: ids of a text
 * follow tokenizer.json, the GGUF's tokens and scores follow tokenizer.model, as in llama.cpp's converter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "../util/file.h"
#include "vocab_internal.h"

/* Ids by text and rows of added tokens; and where they are, for messages. */
struct tables { const json_t *vocab, *added; const char *vocab_file, *vocab_where, *added_file; };

/* Size of a vocabulary: what config.json says, but at least room for every id that occurs. */
static enum ggu_status n_tokens(const struct tables *t, const struct vocab_hints *h, size_t *n, struct ggu_error *err)
{
	static const char out_of_range[] = "an id is not a number from 0 to 4194303";
	_Static_assert(VOCAB_MOST == 4194304, "as the message says");
	int64_t most = -1;
	const char *key;
	json_t *id, *row;
	size_t i;
	json_object_foreach((json_t *)t->vocab, key, id) {
		if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= VOCAB_MOST)
			return vocab_bad(err, t->vocab_file, t->vocab_where, "", out_of_range);
		most = json_integer_value(id) > most ? json_integer_value(id) : most;
	}
	json_array_foreach(t->added, i, row) {
		int64_t a = vocab_row_id(row);
		if (a < 0)
			return file_fail(err, GGU_ERR_FORMAT, t->added_file, GGU_NO_OFFSET, "added_tokens",
				"row %zu has no id from 0 to 4194303", i);
		most = a > most ? a : most;
	}
	*n = (size_t)(most + 1);
	if (h && h->n_vocab > 0 && (size_t)h->n_vocab > *n) *n = (size_t)h->n_vocab;
	return GGU_OK;
}

static enum ggu_status fill(struct vocab *v, const struct tables *t, struct ggu_error *err)
{
	const char *key;
	size_t len, i;
	json_t *id, *row;
	json_object_keylen_foreach((json_t *)t->vocab, key, len, id) {
		size_t k = (size_t)json_integer_value(id);
		v->tokens[k] = vocab_copy(v, key, len);
		if (!v->tokens[k].p) return ggu_no_memory(err);
		v->types[k] = VOCAB_NORMAL;
	}
	json_array_foreach(t->added, i, row) {
		const json_t *text = json_object_get(row, "content");
		size_t k = (size_t)json_integer_value(json_object_get(row, "id"));
		bool special = vocab_json_true(row, "special") ||
			(json_is_string(text)
			&& vocab_looks_special(json_string_value(text), json_string_length(text)));
		if (!json_is_string(text))
			return vocab_bad(err, t->added_file, "added_tokens", "", "a token has no content");
		v->tokens[k] = vocab_copy(v, json_string_value(text), json_string_length(text));
		if (!v->tokens[k].p) return ggu_no_memory(err);
		v->types[k] = special ? VOCAB_CONTROL : VOCAB_USER_DEFINED;
	}
	return GGU_OK;
}

/* Reads "a b" or ["a", "b"]; a blank inside a part of a pair becomes U+0120, as in llama.cpp's converter. */
static enum ggu_status one_merge(struct vocab *v, const json_t *m, struct ggu_str *to, struct ggu_error *err)
{
	const json_t *a = json_array_get(m, 0), *b = json_array_get(m, 1);
	struct ggu_str s;
	char *p;
	size_t n = 0;
	if (json_is_string(m)) {
		*to = vocab_copy(v, json_string_value(m), json_string_length(m));
		return to->p ? GGU_OK : ggu_no_memory(err);
	}
	if (!json_is_string(a) || !json_is_string(b))
		return vocab_bad(err, "tokenizer.json", "model.merges", "",
			"a merge is neither text nor a pair of texts");
	p = vocab_alloc(v, 2*(json_string_length(a) + json_string_length(b)) + 2);
	if (!p) return ggu_no_memory(err);
	for (int k = 0; k < 2; k++) {
		s = (struct ggu_str){ json_string_value(k ? b : a), json_string_length(k ? b : a) };
		if (k) p[n++] = ' ';
		for (size_t i = 0; i < s.n; i++)
			if (s.p[i] == ' ') { p[n++] = '\xc4'; p[n++] = '\xa0'; }
			else p[n++] = s.p[i];
	}
	p[n] = 0;
	*to = (struct ggu_str){ p, n };
	return GGU_OK;
}

static enum ggu_status read_merges(struct vocab *v, const json_t *list, struct ggu_error *err)
{
	size_t i;
	json_t *m;
	v->merges = vocab_alloc(v, json_array_size(list)*sizeof *v->merges + 1);
	if (!v->merges) return ggu_no_memory(err);
	json_array_foreach(list, i, m) TRY(one_merge(v, m, v->merges + v->n_merges++, err));
	return GGU_OK;
}

enum ggu_status vocab_take_pipeline(struct vocab *v, const json_t *t, json_t *model, struct ggu_error *err)
{
	static const char *const trees[] = { "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
		"decoder" };
	json_object_clear(v->pipeline);
	for (size_t i = 0; i < sizeof trees/sizeof *trees; i++) {
		json_t *x = json_object_get(t, trees[i]);
		if (x && !json_is_null(x)) json_object_set_new(v->pipeline, trees[i], json_deep_copy(x));
	}
	json_object_set_new(v->pipeline, "model", model);
	TRY(vocab_note_added(v, json_object_get(json_object_get(t, "model"), "vocab"),
		json_object_get(t, "added_tokens"), err));
	return vocab_take_tables(v, json_object_get(v->pipeline, "normalizer"), 0, err);
}

/* Takes the trees as they are, and the model without its tables. */
static enum ggu_status take_pipeline(struct vocab *v, const json_t *t, struct ggu_error *err)
{
	static const char *const flags[] = { "unk_token", "fuse_unk", "byte_fallback", "ignore_merges" };
	json_t *model = json_pack("{s:s,s:s}", "type", "BPE", "order", "merges"), *from = json_object_get(t, "model");
	for (size_t i = 0; i < sizeof flags/sizeof *flags; i++) {
		json_t *x = json_object_get(from, flags[i]);
		if (x && !json_is_null(x)) json_object_set(model, flags[i], x);
	}
	return vocab_take_pipeline(v, t, model, err);
}

enum ggu_status vocab_load_json(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	const json_t *model = json_object_get(f->tokenizer, "model");
	const struct tables tables = { json_object_get(model, "vocab"), json_object_get(f->tokenizer, "added_tokens"),
		"tokenizer.json", "model.vocab", "tokenizer.json" };
	bool llama = !strcmp(v->model, "llama"), filled = v->n > 0;
	size_t n;
	/* CLIP's BPE marks where words begin or end; ours does not */
	for (size_t i = 0; i < 2 && strcmp(v->model, "bert"); i++) {
		const char *mark = vocab_json_str(model, i ? "end_of_word_suffix" : "continuing_subword_prefix");
		if (mark && *mark)
			return file_fail(err, GGU_ERR_UNSUPPORTED, "tokenizer.json", GGU_NO_OFFSET, "model",
				"prefixes and suffixes of subwords are not supported");
	}
	if (!json_is_object(tables.vocab))
		return vocab_bad(err, tables.vocab_file, tables.vocab_where, "", "is not an object");
	TRY(n_tokens(&tables, f->hints, &n, err));
	if (!filled) {
		TRY(vocab_size(v, n, llama, -1000, err));
		TRY(fill(v, &tables, err));
		for (size_t i = 0; llama && i < n; i++) {       /* pieces of a SentencePiece vocabulary in disguise */
			const struct ggu_str *t = v->tokens + i;
			if (v->types[i] == VOCAB_NORMAL && t->n == 6 && text_begins(t->p, t->n, "<0x")
				&& t->p[5] == '>')
				v->types[i] = VOCAB_BYTE;
		}
	}
	TRY(read_merges(v, json_object_get(model, "merges"), err));
	v->write_merges = !llama;
	v->own_merges = llama;
	return take_pipeline(v, f->tokenizer, err);
}

/* ---- vocab.json and merges.txt ---- */

static enum ggu_status split_merges(struct vocab *v, const char *text, size_t n, struct ggu_error *err)
{
	size_t lines = 0;
	for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
	v->merges = vocab_alloc(v, (lines + 1)*sizeof *v->merges);
	if (!v->merges) return ggu_no_memory(err);
	for (size_t from = 0, line = 0; from < n; line++) {
		const char *end = memchr(text + from, '\n', n - from);
		size_t to = end ? (size_t)(end - text) : n, len = to - from;
		while (len && text[from + len - 1] == '\r') len--;
		if (len && !(line == 0 && text_begins(text + from, len, "#version"))) {
			v->merges[v->n_merges] = vocab_copy(v, text + from, len);
			if (!v->merges[v->n_merges++].p) return ggu_no_memory(err);
		}
		from = to + 1;
	}
	return GGU_OK;
}

static void add_row(json_t *added, json_t *id, const char *text)
{
	json_array_append_new(added, json_pack("{s:O,s:s,s:b,s:b}", "id", id, "content", text, "special",
		vocab_looks_special(text, strlen(text)), "normalized", 0));
}

/* Added tokens of a folder without tokenizer.json: tokenizer_config.json's added_tokens_decoder (rows by id), then what
 * only added_tokens.json (ids by text) has. If there are none, the one that the classes of such folders (GPT-2's,
 * Qwen's) take for granted. */
static void small_files_added(const struct vocab_files *f, const json_t *vocab, json_t *added)
{
	static const char usual[] = "<|endoftext|>";
	json_t *decoder = json_object_get(f->config, "added_tokens_decoder"), *row;
	size_t i;
	json_array_extend(added, f->decoder_rows);
	json_array_foreach(f->added_rows, i, row) {
		char number[24];
		snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
			json_integer_value(json_object_get(row, "id")));
		if (!json_object_get(decoder, number)) json_array_append(added, row);
	}
	if (!json_array_size(added) && json_object_get(vocab, usual))
		add_row(added, json_object_get(vocab, usual), usual);
}

enum ggu_status vocab_load_merges_txt(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	json_t *vocab = NULL, *added = json_array();
	struct tables tables = { .added = added, .vocab_file = "vocab.json", .vocab_where = "",
		.added_file = json_object_get(f->config, "added_tokens_decoder") ? "tokenizer_config.json" :
		"added_tokens.json" };
	char *text = NULL;
	size_t bytes, n;
	enum ggu_status s = added ? vocab_read_json(f->dir, "vocab.json", &vocab, err) : ggu_no_memory(err);
	if (!s) s = vocab ? file_slurp(f->dir, "merges.txt", FILE_TEXT_MAX, &text, &bytes, err) : GGU_ERR_MISSING;
	if (!s) small_files_added(f, vocab, added);
	tables.vocab = vocab;
	if (!s) s = n_tokens(&tables, f->hints, &n, err);
	if (!s) s = vocab_size(v, n, false, 0, err);
	if (!s) s = fill(v, &tables, err);
	if (!s) s = split_merges(v, text, bytes, err);
	if (!s) s = vocab_note_added(v, vocab, added, err);
	if (!s) {
		v->write_merges = true;
		json_object_set(v->pipeline, "added_tokens", added);
		json_object_set_new(v->pipeline, "pre_tokenizer", json_pack("{s:s,s:b,s:b}", "type", "ByteLevel",
			"add_prefix_space", 0, "use_regex", 1));
		json_object_set_new(v->pipeline, "decoder", json_pack("{s:s}", "type", "ByteLevel"));
		json_object_set_new(v->pipeline, "model", json_pack("{s:s,s:s}", "type", "BPE", "order", "merges"));
	}
	json_decref(vocab);
	json_decref(added);
	free(text);
	return s;
}
