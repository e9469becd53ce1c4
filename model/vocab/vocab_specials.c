/* SPDX-License-Identifier: MIT
 * vocab_specials.c - special tokens, and what is added around a text: from the small files of a checkpoint folder, in
 * the order in which llama.cpp's converter consults them (facts of its gguf-py, 2026-08).
 *
 * added_tokens.json and tokenizer_config.json's added_tokens_decoder retype tokens of a SentencePiece vocabulary.
 * A special token is known by its text in tokenizer_config.json if tokenizer.json lists that text, else by its id in
 * config.json. The template of tokenizer.json's post-processor says whether BOS, EOS and a separator are added. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "../util/file.h"
#include "vocab_internal.h"

static const char space_mark[] = "\xe2\x96\x81";        /* U+2581 */

static enum ggu_status set_token(struct vocab *v, size_t id, const char *text, int32_t type, struct ggu_error *err)
{
	size_t n = strlen(text), k = 0;
	char *plain = malloc(n + 1);
	if (!plain) return ggu_no_memory(err);
	for (size_t i = 0; i < n; ) {
		if (type == VOCAB_USER_DEFINED && text_starts(text + i, space_mark)) {
			plain[k++] = ' ';
			i += strlen(space_mark);
		}
		else plain[k++] = text[i++];
	}
	v->tokens[id] = vocab_copy(v, plain, k);
	free(plain);
	if (!v->tokens[id].p) return ggu_no_memory(err);
	v->types[id] = type;
	if (v->scores) v->scores[id] = -1000;
	return GGU_OK;
}

/* Drops user-defined pieces that got another text: they were placeholders of SentencePiece. */
static void forget_pieces(struct vocab *v, const bool *other)
{
	json_t *model = json_object_get(v->pipeline, "model"), *user = json_object_get(model, "user_defined"), *kept,
		*id;
	size_t i;
	if (!user) return;
	kept = json_array();
	if (!kept) return;
	json_array_foreach(user, i, id)
		if (!other[json_integer_value(id)]) json_array_append(kept, id);
	json_object_set_new(model, "user_defined", kept);
}

/* Takes the tokens of added_tokens_decoder, and adds their rows to list; other[id]: its text was another one. */
static enum ggu_status retype_decoder(struct vocab *v, json_t *rows, json_t *list, bool *other, struct ggu_error *err)
{
	json_t *row;
	size_t i;
	json_array_foreach(rows, i, row) {
		const char *text = vocab_json_str(row, "content");
		json_int_t id = json_integer_value(json_object_get(row, "id"));
		bool special = vocab_json_true(row, "special");
		if ((size_t)id >= v->n) continue;
		if (v->tokens[id].n != strlen(text) || memcmp(v->tokens[id].p, text, v->tokens[id].n)) other[id] = true;
		TRY(set_token(v, (size_t)id, text, special || vocab_looks_special(text, strlen(text)) ? VOCAB_CONTROL :
			VOCAB_USER_DEFINED, err));
		json_array_append(list, row);
	}
	return GGU_OK;
}

/* Notes a token that there is no room for, unless it is counted already. */
static void leave_out(struct vocab *v, json_t *seen, json_int_t id, const char *file)
{
	char number[24];
	if (id < 0 || (uint64_t)id < v->n + v->n_left_out) return;
	snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, id);
	json_object_set_new(seen, number, json_true());
	if (!v->left_out_file) v->left_out_file = file;
}
static enum ggu_status count_left_out(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	json_t *seen = json_object(), *row;
	size_t i;
	if (!seen) return ggu_no_memory(err);
	json_array_foreach(json_object_get(f->tokenizer, "added_tokens"), i, row)
		leave_out(v, seen, json_integer_value(json_object_get(row, "id")), "tokenizer.json");
	json_array_foreach(f->added_rows, i, row)
		leave_out(v, seen, json_integer_value(json_object_get(row, "id")), "added_tokens.json");
	json_array_foreach(f->decoder_rows, i, row)
		leave_out(v, seen, json_integer_value(json_object_get(row, "id")), "tokenizer_config.json");
	v->n_left_out += json_object_size(seen);
	json_decref(seen);
	return GGU_OK;
}

/* Takes the tokens that the small files add to a SentencePiece vocabulary. The pipeline's added tokens are those of
 * tokenizer.json; without that file, of added_tokens_decoder; without both, all control and user-defined tokens. */
static enum ggu_status retype(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	json_t *list = json_array(), *row;
	bool *other = calloc(v->n + 1, sizeof *other);
	enum ggu_status s = list && other ? GGU_OK : ggu_no_memory(err);
	size_t i;
	json_array_foreach(f->added_rows, i, row) {
		json_int_t id = json_integer_value(json_object_get(row, "id"));
		if (!s && (size_t)id < v->n)
			s = set_token(v, (size_t)id, vocab_json_str(row, "content"), VOCAB_USER_DEFINED, err);
	}
	if (!s) s = retype_decoder(v, f->decoder_rows, list, other, err);
	if (!s) forget_pieces(v, other);
	free(other);
	if (!f->decoder_rows) {
		json_decref(list);
		list = vocab_added_by_type(v);
	}
	if (s || f->tokenizer) json_decref(list);
	else json_object_set_new(v->pipeline, "added_tokens", list);
	return s;
}

json_t *vocab_added_by_type(const struct vocab *v)
{
	json_t *list = json_array();
	for (size_t i = 0; list && i < v->n; i++) {
		bool special = v->types[i] == VOCAB_CONTROL || v->types[i] == VOCAB_UNKNOWN;
		if (special || v->types[i] == VOCAB_USER_DEFINED)
			json_array_append_new(list, json_pack("{s:I,s:s%,s:b,s:b}", "id", (json_int_t)i, "content",
				v->tokens[i].p, v->tokens[i].n, "special", special, "normalized", 0));
	}
	return list;
}

/* The text of an entry that is a string or an object with content. */
static const char *entry_text(const json_t *e)
{
	return json_is_string(e) ? json_string_value(e) : vocab_json_str(e, "content");
}

static int64_t added_id(const struct vocab_files *f, const char *text)
{
	size_t i;
	json_t *row;
	json_array_foreach(json_object_get(f->tokenizer, "added_tokens"), i, row) {
		const char *s = vocab_json_str(row, "content");
		if (s && !strcmp(s, text)) return json_integer_value(json_object_get(row, "id"));
	}
	return -1;
}

/* The special texts of a folder. They are those of tokenizer_config.json, until the post-processor says otherwise. */
struct texts {
	const char *of[VOCAB_N_SPECIAL], *cls;
	bool config;                    /* there is a tokenizer_config.json: without one no text becomes an id */
};

static const char *special_id_of(const json_t *step)
{
	return vocab_json_str(json_object_get(step, "SpecialToken"), "id");
}
static bool same(const char *a, const char *b) { return a && b && !strcmp(a, b); }
static bool is_sequence(const json_t *step, const char *name)
{
	return same(vocab_json_str(json_object_get(step, "Sequence"), "id"), name);
}

/* Reads what is put around a single text. If the last token is not the configuration's EOS, it becomes EOS, and the old
 * EOS the end of a turn, or of a message if there is one of a turn. */
static void read_single(struct vocab *v, const json_t *single, struct texts *t, const char **first, const char **last)
{
	size_t n = json_array_size(single);
	*first = n > 1 ? special_id_of(json_array_get(single, 0)) : NULL;
	*last = n > 1 ? special_id_of(json_array_get(single, n - 1)) : NULL;
	if (*first) {
		if (!t->config || (!t->of[VOCAB_BOS] && !t->cls)) t->of[VOCAB_BOS] = *first;
		vocab_set_add(v, VOCAB_BOS, same(*first, t->of[VOCAB_BOS]) || same(*first, t->cls));
	}
	if (*last) {
		if (t->config && !same(*last, t->of[VOCAB_EOS]))
			t->of[t->of[VOCAB_EOT] ? VOCAB_EOM : VOCAB_EOT] = t->of[VOCAB_EOS];
		t->of[VOCAB_EOS] = *last;
		vocab_set_add(v, VOCAB_EOS, true);
	}
}

/* Reads the one or two tokens between a pair of texts. If a single text ends with a token, the first of them is that
 * end. SEP or EOS among the others is a separator. */
static void read_pair(struct vocab *v, const json_t *pair, struct texts *t, const char *first, const char *last)
{
	size_t from = 0, to = json_array_size(pair);
	const char *id[2];
	bool sep = false;
	if (to && same(special_id_of(json_array_get(pair, 0)), first)) from++;
	if (to > from && same(special_id_of(json_array_get(pair, to - 1)), last)) to--;
	if (to < from + 3 || !is_sequence(json_array_get(pair, from), "A") ||
		!is_sequence(json_array_get(pair, to - 1), "B"))
		return;
	id[0] = last ? NULL : special_id_of(json_array_get(pair, from + 1));
	id[1] = to == from + 4 ? special_id_of(json_array_get(pair, from + 2)) : NULL;
	for (int k = 0; k < 2; k++) sep |= same(id[k], t->of[VOCAB_SEP]) || same(id[k], t->of[VOCAB_EOS]);
	vocab_set_add(v, VOCAB_SEP, sep);
	if (sep && !t->of[VOCAB_SEP]) t->of[VOCAB_SEP] = t->of[VOCAB_EOS];
}

static void read_post_processor(struct vocab *v, const json_t *p, struct texts *t)
{
	const char *type = vocab_json_str(p, "type"), *first, *last;
	size_t i;
	json_t *step;
	if (same(type, "Sequence")) {           /* one level, so that nesting is no danger */
		json_array_foreach(json_object_get(p, "processors"), i, step)
			if (!same(vocab_json_str(step, "type"), "Sequence")) read_post_processor(v, step, t);
	} else if (same(type, "TemplateProcessing")) {
		read_single(v, json_object_get(p, "single"), t, &first, &last);
		read_pair(v, json_object_get(p, "pair"), t, first, last);
	} else if (same(type, "RobertaProcessing")) {
		for (int k = 0; k <= VOCAB_SEP; k++) if (k != VOCAB_UNK) vocab_set_add(v, (enum vocab_special)k, true);
		if (!t->cls) t->cls = json_string_value(json_array_get(json_object_get(p, "cls"), 0));
		if (!t->of[VOCAB_SEP])
			t->of[VOCAB_SEP] = json_string_value(json_array_get(json_object_get(p, "sep"), 0));
	}
}

/* Does a post-processor put a token in front of a single text, or behind it? */
static bool adds_at(const json_t *p, bool behind, int depth)
{
	const char *type = vocab_json_str(p, "type");
	const json_t *single = json_object_get(p, "single");
	size_t n = json_array_size(single), i;
	json_t *step;
	if (!type || depth > 16) return false;
	if (same(type, "RobertaProcessing") || same(type, "BertProcessing")) return true;
	json_array_foreach(json_object_get(p, "processors"), i, step) if (adds_at(step, behind, depth + 1)) return true;
	return n && special_id_of(json_array_get(single, behind ? n - 1 : 0));
}

void vocab_deny_around(struct vocab *v, const struct vocab_files *f)
{
	static const char *const general[] = { "PreTrainedTokenizerFast", "TokenizersBackend" };
	const char *class = vocab_json_str(f->config, "tokenizer_class");
	bool unigram = same(v->model, "t5");
	enum vocab_special which = unigram ? VOCAB_EOS : VOCAB_BOS;
	if (!f->tokenizer || v->add[which] >= 0) return;
	if (!unigram && !same(v->model, "llama") && !vocab_pre_adds_bos(v->pre)) return;
	if (class && !same(class, general[0]) && !same(class, general[1])) return;
	if (!adds_at(json_object_get(f->tokenizer, "post_processor"), unigram, 0)) vocab_set_add(v, which, false);
}

/* The id of a special token in config.json: at the root, else in the text part; of a list of end tokens the first. */
static const json_t *config_id(const struct vocab_files *f, const char *key)
{
	const json_t *id = json_object_get(f->model_config, key);
	if (!id || json_is_null(id)) id = json_object_get(file_text_part(f->model_config), key);
	return json_is_array(id) ? json_array_get(id, 0) : id;
}

enum ggu_status vocab_load_specials(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	const json_t *c = f->config;
	struct texts t = { .cls = entry_text(json_object_get(c, "cls_token")), .config = c };
	char key[32];
	if (v->has_scores) {
		TRY(count_left_out(v, f, err));
		TRY(retype(v, f, err));
	}
	for (int i = 0; i <= VOCAB_MASK; i++) {
		snprintf(key, sizeof key, "%s_token", vocab_special_names[i].name);
		t.of[i] = entry_text(json_object_get(c, key));
	}
	if (f->tokenizer) {
		if (!t.of[VOCAB_BOS]) t.of[VOCAB_BOS] = t.cls;
		if (!t.of[VOCAB_EOS]) t.of[VOCAB_EOS] = t.of[VOCAB_SEP];
		read_post_processor(v, json_object_get(f->tokenizer, "post_processor"), &t);
	}
	for (int i = 0; i < VOCAB_N_SPECIAL; i++) {
		const json_t *add;
		snprintf(key, sizeof key, "add_%s_token", vocab_special_names[i].name);
		add = json_object_get(c, key);
		if (json_is_boolean(add) && i <= VOCAB_SEP && i != VOCAB_UNK)
			vocab_set_add(v, (enum vocab_special)i, json_is_true(add));
		if (c && t.of[i]) vocab_set_special(v, (enum vocab_special)i, added_id(f, t.of[i]));
	}
	for (int i = 0; i <= VOCAB_MASK; i++) {
		const json_t *id;
		snprintf(key, sizeof key, "%s_token_id", vocab_special_names[i].name);
		id = config_id(f, key);
		if (json_is_integer(id)) vocab_set_special(v, (enum vocab_special)i, json_integer_value(id));
	}
	return vocab_load_templates(v, f, err);
}
