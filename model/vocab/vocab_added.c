/* SPDX-License-Identifier: MIT
 * vocab_added.c - the tokens that a folder's small files add: added_tokens_decoder of tokenizer_config.json (rows by
 * id) and added_tokens.json (ids by text), beside added_tokens of tokenizer.json (rows). They usually say the same.
 *
 * A file that gives an id to two texts is refused. Where files differ, the first of tokenizer.json,
 * tokenizer_config.json and added_tokens.json counts, as in transformers, and the difference is reported. What only a
 * small file has is added to tokenizer.json's list, by transformers too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../util/file.h"
#include "vocab_internal.h"

static const char config_file[] = "tokenizer_config.json", added_file[] = "added_tokens.json",
	json_file[] = "tokenizer.json";

/* Appends the row of a token; false: out of memory. */
static bool append(json_t *list, json_t *row, json_int_t id)
{
	return row && !json_object_set_new(row, "id", json_integer(id)) && !json_array_append(list, row);
}

/* added_tokens_decoder as rows that have an id. */
static enum ggu_status read_decoder(struct vocab_files *f, struct ggu_error *err)
{
	json_t *decoder = json_object_get(f->config, "added_tokens_decoder"), *row;
	const char *key;
	if (!decoder) return GGU_OK;
	if (!(f->decoder_rows = json_array())) return ggu_no_memory(err);
	json_object_foreach(decoder, key, row) {
		static const char in[] = "added_tokens_decoder.";
		char *end;
		long long id = strtoll(key, &end, 10);
		json_t *copy;
		bool done;
		if (*end || end == key || id < 0 || id >= VOCAB_MOST)
			return vocab_bad(err, config_file, in, key, "is not an id from 0 to 4194303");
		if (!vocab_json_str(row, "content")) return vocab_bad(err, config_file, in, key, "has no content");
		copy = json_copy(row);
		done = append(f->decoder_rows, copy, id);
		json_decref(copy);
		if (!done) return ggu_no_memory(err);
	}
	return GGU_OK;
}

/* added_tokens.json as rows of tokens that are not normalized. */
static enum ggu_status read_added(struct vocab_files *f, struct ggu_error *err)
{
	json_t *id;
	const char *text;
	if (!f->added) return GGU_OK;
	if (!(f->added_rows = json_array())) return ggu_no_memory(err);
	json_object_foreach(f->added, text, id) {
		json_int_t k = json_is_integer(id) ? json_integer_value(id) : -1;
		json_t *row;
		bool done;
		if (k < 0 || k >= VOCAB_MOST)
			return vocab_bad(err, added_file, "", text, "has no id from 0 to 4194303");
		row = json_pack("{s:s,s:b,s:b}", "content", text, "special", vocab_looks_special(text, strlen(text)),
			"normalized", 0);
		done = append(f->added_rows, row, k);
		json_decref(row);
		if (!done) return ggu_no_memory(err);
	}
	return GGU_OK;
}

static json_int_t id_of(const json_t *row) { return json_integer_value(json_object_get(row, "id")); }

/* Refuses a list with two texts for one id. */
static enum ggu_status refuse_two(const json_t *list, const char *file, struct ggu_error *err)
{
	json_t *texts = json_object(), *row;
	enum ggu_status s = texts ? GGU_OK : ggu_no_memory(err);
	size_t i;
	json_array_foreach((json_t *)list, i, row) {
		const char *text = vocab_json_str(row, "content"), *other;
		char id[24];
		if (s || !text || !json_is_integer(json_object_get(row, "id"))) continue;
		snprintf(id, sizeof id, "%" JSON_INTEGER_FORMAT, id_of(row));
		other = vocab_json_str(json_object_get(texts, id), "content");
		if (!other) json_object_set(texts, id, row);
		else if (strcmp(text, other) != 0)
			s = file_fail(err, GGU_ERR_FORMAT, file, GGU_NO_OFFSET, "", "id %s is both '%.40s' and '%.40s'",
				id, other, text);
	}
	json_decref(texts);
	return s;
}

enum ggu_status vocab_read_added(struct vocab_files *f, struct ggu_error *err)
{
	TRY(read_decoder(f, err));
	TRY(read_added(f, err));
	TRY(refuse_two(json_object_get(f->tokenizer, "added_tokens"), json_file, err));
	TRY(refuse_two(f->decoder_rows, config_file, err));
	return refuse_two(f->added_rows, added_file, err);
}

/* ---- comparing the files ---- */

struct known { const char **text; size_t n; };          /* by id; NULL: no token yet */

static bool know(struct known *k, json_int_t id, const char *text)
{
	size_t n = k->n ? k->n : 1024;
	const char **v;
	while (n <= (size_t)id) n *= 2;
	if (n > k->n) {
		if (!(v = realloc(k->text, n*sizeof *v))) return false;
		for (; k->n < n; k->n++) v[k->n] = NULL;
		k->text = v;
	}
	k->text[id] = text;
	return true;
}
static const char *known(const struct known *k, json_int_t id) { return (size_t)id < k->n ? k->text[id] : NULL; }

/* Enters the tokens of tokenizer.json. Skips what is no id: whoever loads the vocabulary refuses it. */
static enum ggu_status know_json(struct known *k, const json_t *tokenizer, struct ggu_error *err)
{
	json_t *vocab = json_object_get(json_object_get(tokenizer, "model"), "vocab"), *x, *own;
	const char *text, *other;
	size_t i;
	json_object_foreach(vocab, text, x)
		if (json_is_integer(x) && json_integer_value(x) >= 0 && json_integer_value(x) < VOCAB_MOST &&
			!know(k, json_integer_value(x), text)) return ggu_no_memory(err);
	json_array_foreach(vocab, i, x)
		if (i < VOCAB_MOST && !know(k, (json_int_t)i, json_string_value(json_array_get(x, 0))))
			return ggu_no_memory(err);
	json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, x) {
		json_int_t id = vocab_row_id(x);
		text = vocab_json_str(x, "content");
		if (id < 0 || !text) continue;
		other = known(k, id);
		if (other && strcmp(other, text) != 0)
			return file_fail(err, GGU_ERR_FORMAT, json_file, GGU_NO_OFFSET, "added_tokens",
				"'%.40s' has the id %lld, which model.vocab gives to '%.40s'", text, (long long)id,
				other);
		own = json_object_get(vocab, text);
		if (own && json_integer_value(own) != id)
			return file_fail(err, GGU_ERR_FORMAT, json_file, GGU_NO_OFFSET, "added_tokens",
				"'%.40s' has the id %lld, but %lld in model.vocab", text, (long long)id,
				(long long)json_integer_value(own));
		if (!know(k, id, text)) return ggu_no_memory(err);
	}
	return GGU_OK;
}

/* All texts of k as keys; NULL: out of memory. */
static json_t *texts_of(const struct known *k)
{
	json_t *texts = json_object();
	for (size_t i = 0; texts && i < k->n; i++)
		if (k->text[i]) json_object_set_new(texts, k->text[i], json_true());
	return texts;
}

/* The texts of a list of added tokens as keys; NULL: out of memory. */
static json_t *listed_in(const json_t *list)
{
	json_t *texts = json_object(), *row;
	size_t i;
	json_array_foreach((json_t *)list, i, row)
		if (vocab_json_str(row, "content"))
			json_object_set_new(texts, vocab_json_str(row, "content"), json_true());
	return texts;
}

/* Compares a file's rows with what is known, and removes those that differ. The others become known and are added to
 * `to`, unless that is NULL: also pieces of the vocabulary, which are then found before a text is cut into words. */
static enum ggu_status compare(struct vocab_difference *d, struct known *k, json_t **rows, json_t *to,
	struct ggu_error *err)
{
	json_t *texts = NULL, *kept = json_array(), *listed = listed_in(to), *row;
	size_t i;
	enum ggu_status s = kept && listed ? GGU_OK : ggu_no_memory(err);
	json_array_foreach(*rows, i, row) {
		const char *text = vocab_json_str(row, "content"), *other = known(k, id_of(row));
		bool same = other && !strcmp(other, text), added = to && !json_object_get(listed, text);
		if (!other && to && !texts) {
			texts = texts_of(k);
			if (!texts) s = ggu_no_memory(err);
		}
		if (s) break;
		if (!same && (other || json_object_get(texts, text))) {
			if (!d->n++) d->first = (size_t)id_of(row);
			continue;
		}
		if (!know(k, id_of(row), text) || json_array_append(kept, row) || (added && json_array_append(to, row)))
			s = ggu_no_memory(err);
		if (texts) json_object_set_new(texts, text, json_true());
	}
	if (*rows && !s) {
		json_decref(*rows);
		*rows = json_incref(kept);
	}
	json_decref(kept);
	json_decref(listed);
	json_decref(texts);
	return s;
}

enum ggu_status vocab_join_added(struct vocab *v, struct vocab_files *f, bool into_json, struct ggu_error *err)
{
	struct vocab_difference d[] = {
		{ .file = config_file, .than = json_file },
		{ .file = added_file, .than = into_json ? json_file : config_file },
	};
	struct known k = { 0 };
	json_t *list = into_json ? json_object_get(f->tokenizer, "added_tokens") : NULL;
	enum ggu_status s = GGU_OK;
	if (into_json && !json_is_array(list)) {
		list = json_array();
		if (json_object_set_new(f->tokenizer, "added_tokens", list)) return ggu_no_memory(err);
	}
	if (into_json) s = know_json(&k, f->tokenizer, err);
	if (!s) s = compare(d, &k, &f->decoder_rows, list, err);
	/* transformers reads added_tokens.json only where there is no added_tokens_decoder */
	if (!s) s = compare(d + 1, &k, &f->added_rows, f->decoder_rows ? NULL : list, err);
	for (size_t i = 0; !s && i < 2; i++) if (d[i].n) vocab_differs(v, d + i);
	free(k.text);
	return s;
}

enum ggu_status vocab_note_added(struct vocab *v, const json_t *vocab, const json_t *added, struct ggu_error *err)
{
	json_t *only = json_array(), *row;
	size_t i;
	bool ok = only;
	json_array_foreach((json_t *)added, i, row) {
		const char *text = vocab_json_str(row, "content");
		json_t *id = json_object_get(row, "id");
		bool known = json_is_array(vocab) ? id_of(row) < (json_int_t)json_array_size(vocab)
			: text && json_object_get(vocab, text);
		if (ok && json_is_integer(id) && !known) ok = !json_array_append(only, id);
	}
	if (ok && json_array_size(only)) ok = !json_object_set(v->pipeline, "only_added", only);
	json_decref(only);
	return ok ? GGU_OK : ggu_no_memory(err);
}
