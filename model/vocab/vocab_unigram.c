/* SPDX-License-Identifier: MIT
 * vocab_unigram.c - vocabularies of scored pieces: SentencePiece's pipeline, and tokenizer.json of kind Unigram, whose
 * normalizer has its table in base64. The pipeline has it in vocab.charsmap. */
#include <stdlib.h>
#include <string.h>
#include "../util/file.h"
#include "charsmap.h"
#include "vocab_internal.h"

static const char json_file[] = "tokenizer.json";

void vocab_spm_pipeline(struct vocab *v, const struct vocab_spm_rules *r)
{
	json_t *normalizer = json_pack("{s:s,s:b,s:b,s:b}", "type", "SentencePiece",
		"add_dummy_prefix", r->dummy_prefix, "remove_extra_whitespaces", r->remove_extra,
		"escape_whitespaces", r->escape), *model;
	if (v->charsmap.n) json_object_set_new(normalizer, "charsmap", json_true());
	if (!strcmp(v->model, "llama")) model = json_pack("{s:s,s:s}", "type", "BPE", "order", "scores");
	else model = json_pack("{s:s}", "type", "Unigram");
	json_object_set_new(model, "byte_fallback", json_boolean(r->byte_fallback));
	for (size_t id = 0; !strcmp(v->model, "t5") && id < v->n; id++)
		if (v->types[id] == VOCAB_UNKNOWN) {
			json_object_set_new(model, "unk_id", json_integer((json_int_t)id));
			break;
		}
	json_object_set_new(v->pipeline, "normalizer", normalizer);
	json_object_set_new(v->pipeline, "model", model);
}

/* ---- the table of a normalizer ---- */

enum ggu_status vocab_set_charsmap(struct vocab *v, const void *bytes, size_t n, const char *file,
	struct ggu_error *err)
{
	struct charsmap m;
	struct ggu_str had = v->charsmap;
	enum ggu_status s = charsmap_read(&m, bytes, n, err);
	if (s) {
		ggu_error_file(err, file);
		return s;
	}
	if (had.n && (had.n != n || memcmp(had.p, bytes, n)))
		return file_fail(err, GGU_ERR_UNSUPPORTED, file, GGU_NO_OFFSET, "precompiled_charsmap",
			"differs from another one in this vocabulary");
	if (!had.n) v->charsmap = vocab_copy(v, bytes, n);
	return v->charsmap.p ? GGU_OK : ggu_no_memory(err);
}

/* Decodes base64 to *n bytes. to has room for three bytes for every four letters. false: not base64. */
static bool from_base64(const char *p, size_t n_letters, unsigned char *to, size_t *n)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0;
	*n = 0;
	if (n_letters%4) return false;
	for (size_t i = 0; i < n_letters; i++) {
		const char *at = p[i] ? strchr(letters, p[i]) : NULL;
		bool end = i + 2 >= n_letters;          /* where padding may stand */
		if (!at && (!end || p[i] != '=' || (i + 2 == n_letters && p[i + 1] != '='))) return false;
		bits = bits << 6 | (at ? (uint32_t)(at - letters) : 0);
		if (i%4 < 3) continue;
		for (int k = 16; k >= 0; k -= 8) to[(*n)++] = (unsigned char)(bits >> k);
	}
	for (size_t k = 1; k <= 2 && k < n_letters && p[n_letters - k] == '='; k++) --*n;
	return true;
}

static enum ggu_status take_table(struct vocab *v, json_t *normalizer, struct ggu_error *err)
{
	const json_t *text = json_object_get(normalizer, "precompiled_charsmap");
	size_t letters = json_string_length(text), n;
	unsigned char *bytes;
	enum ggu_status s;
	if (!json_is_string(text))
		return file_fail(err, GGU_ERR_FORMAT, json_file, GGU_NO_OFFSET, "precompiled_charsmap", "is missing");
	if (!(bytes = malloc(letters/4*3 + 1))) return ggu_no_memory(err);
	if (from_base64(json_string_value(text), letters, bytes, &n))
		s = vocab_set_charsmap(v, bytes, n, json_file, err);
	else s = file_fail(err, GGU_ERR_FORMAT, json_file, GGU_NO_OFFSET, "precompiled_charsmap", "is not base64");
	free(bytes);
	if (!s) json_object_del(normalizer, "precompiled_charsmap");
	return s;
}

enum { MAX_DEPTH = 16 };                /* as pretok_read.c has it */
enum ggu_status vocab_take_tables(struct vocab *v, json_t *normalizer, int depth, struct ggu_error *err)
{
	const char *type = vocab_json_str(normalizer, "type");
	json_t *one;
	size_t i;
	if (!type || depth > MAX_DEPTH) return GGU_OK;
	if (!strcmp(type, "Precompiled")) return take_table(v, normalizer, err);
	if (!strcmp(type, "Sequence"))
		json_array_foreach(json_object_get(normalizer, "normalizers"), i, one)
			TRY(vocab_take_tables(v, one, depth + 1, err));
	return GGU_OK;
}

/* ---- tokenizer.json ---- */

static enum ggu_status bad(struct ggu_error *err, const char *where, const char *what, size_t i)
{
	return file_fail(err, GGU_ERR_FORMAT, json_file, GGU_NO_OFFSET, where, "row %zu %s", i, what);
}

static enum ggu_status fill_pieces(struct vocab *v, const json_t *list, bool bytes, struct ggu_error *err)
{
	size_t i;
	json_t *row;
	json_array_foreach(list, i, row) {
		const json_t *text = json_array_get(row, 0), *score = json_array_get(row, 1);
		if (!json_is_string(text) || !json_is_number(score))
			return bad(err, "model.vocab", "is not a piece and its score", i);
		v->tokens[i] = vocab_copy(v, json_string_value(text), json_string_length(text));
		if (!v->tokens[i].p) return ggu_no_memory(err);
		v->types[i] = bytes && vocab_byte_of(v->tokens[i]) >= 0 ? VOCAB_BYTE : VOCAB_NORMAL;
		v->scores[i] = (float)json_number_value(score);
	}
	return GGU_OK;
}
static enum ggu_status fill_added(struct vocab *v, const json_t *list, struct ggu_error *err)
{
	size_t i;
	json_t *row;
	json_array_foreach(list, i, row) {
		const json_t *text = json_object_get(row, "content");
		json_int_t id = json_integer_value(json_object_get(row, "id"));
		if (!json_is_string(text) || (uint64_t)id >= v->n) return bad(err, "added_tokens", "has no content", i);
		v->tokens[id] = vocab_copy(v, json_string_value(text), json_string_length(text));
		if (!v->tokens[id].p) return ggu_no_memory(err);
		v->types[id] = vocab_json_true(row, "special") ? VOCAB_CONTROL : VOCAB_USER_DEFINED;
	}
	return GGU_OK;
}

/* Size of the vocabulary: room for all pieces, all ids of added tokens, and the rows that the caller knows of. */
static enum ggu_status count(const json_t *pieces, const json_t *added, const struct vocab_hints *h, size_t *n,
	struct ggu_error *err)
{
	size_t i;
	json_t *row;
	*n = json_array_size(pieces);
	json_array_foreach(added, i, row) {
		json_int_t id = vocab_row_id(row);
		if (id < 0) return bad(err, "added_tokens", "has no id from 0 to 4194303", i);
		if ((size_t)id >= *n) *n = (size_t)id + 1;
	}
	if (h && h->n_vocab > 0 && (size_t)h->n_vocab > *n) *n = (size_t)h->n_vocab;
	return GGU_OK;
}

enum ggu_status vocab_load_unigram(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	static const char *const kept[] = { "unk_id", "byte_fallback" };
	const json_t *from = json_object_get(f->tokenizer, "model"), *pieces = json_object_get(from, "vocab"),
		*added = json_object_get(f->tokenizer, "added_tokens");
	json_t *model = json_pack("{s:s,s:b}", "type", "Unigram", "all_tokens", 1);
	int64_t unk = json_is_integer(json_object_get(from, "unk_id")) ?
		json_integer_value(json_object_get(from, "unk_id")) : -1;
	size_t n;
	if (!json_is_array(pieces)) {
		json_decref(model);
		return file_fail(err, GGU_ERR_FORMAT, json_file, GGU_NO_OFFSET, "model.vocab", "is not a list");
	}
	for (size_t i = 0; i < 2; i++)
		if (json_object_get(from, kept[i])) json_object_set(model, kept[i], json_object_get(from, kept[i]));
	TRY(vocab_take_pipeline(v, f->tokenizer, model, err));
	if (v->n) return GGU_OK;                /* tokens and scores are those of SentencePiece's file */
	TRY(count(pieces, added, f->hints, &n, err));
	TRY(vocab_size(v, n, true, -10000, err));
	TRY(fill_pieces(v, pieces, vocab_json_true(from, "byte_fallback"), err));
	TRY(fill_added(v, added, err));
	if (unk >= 0 && (size_t)unk < v->n) v->types[unk] = VOCAB_UNKNOWN;
	v->model = "t5";
	v->pre = "default";
	return GGU_OK;
}
