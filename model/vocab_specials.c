/* SPDX-License-Identifier: MIT
 * vocab_specials.c - special tokens, what is added around a text, chat templates: from the small files of a
 * checkpoint folder, in the order in which llama.cpp's converter consults them (facts of its gguf-py, 2026-08).
 *
 * added_tokens.json and tokenizer_config.json's added_tokens_decoder retype tokens of a SentencePiece vocabulary.
 * A special token is known by its text in tokenizer_config.json if tokenizer.json lists that text, else by its id in
 * config.json. The template of tokenizer.json's post-processor says whether BOS, EOS and a separator are added. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vocab_impl.h"

static const char space_mark[] = "\xe2\x96\x81";        /* U+2581 */

static enum ggu_status set_token(struct vocab *v, size_t id, const char *text, int32_t type, struct ggu_error *err)
{
	size_t n = strlen(text), k = 0;
	char *plain = malloc(n + 1);
	if (!plain) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	for (size_t i = 0; i < n; ) {
		if (type == VOCAB_USER_DEFINED && !strncmp(text + i, space_mark, 3)) { plain[k++] = ' '; i += 3; }
		else plain[k++] = text[i++];
	}
	v->tokens[id] = vocab_copy(v, plain, k);
	free(plain);
	if (!v->tokens[id].p) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	v->types[id] = type;
	if (v->scores) v->scores[id] = -1000;
	return GGU_OK;
}

/* A user-defined piece that got another text is SentencePiece's placeholder no more. */
static void forget_piece(struct vocab *v, json_int_t id)
{
	json_t *user = json_object_get(json_object_get(v->pipeline, "model"), "user_defined");
	for (size_t i = 0; i < json_array_size(user); i++)
		if (json_integer_value(json_array_get(user, i)) == id) {
			json_array_remove(user, i);
			return;
		}
}

/* Tokens that the small files add to a SentencePiece vocabulary; they join the pipeline's added_tokens unless
 * tokenizer.json has its own list. */
static enum ggu_status retype(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	json_t *list = json_array(), *decoder = json_object_get(f->config, "added_tokens_decoder"), *row;
	const char *key;
	if (!list) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	json_object_foreach(f->added, key, row) {
		json_int_t id = json_is_integer(row) ? json_integer_value(row) : -1;
		if (id >= 0 && (size_t)id < v->n) {
			TRY(set_token(v, (size_t)id, key, VOCAB_USER_DEFINED, err));
			if (!decoder) json_array_append_new(list, json_pack("{s:I,s:s,s:b,s:b}", "id", id, "content", key, "special", 0, "normalized", 0));
		}
	}
	json_object_foreach(decoder, key, row) {
		const char *text = vocab_json_str(row, "content");
		char *end;
		long id = strtol(key, &end, 10);
		bool special = vocab_json_true(row, "special");
		json_t *copy;
		if (*end || id < 0 || (size_t)id >= v->n || !text) continue;
		if (v->tokens[id].n != strlen(text) || memcmp(v->tokens[id].p, text, v->tokens[id].n)) forget_piece(v, id);
		TRY(set_token(v, (size_t)id, text, special || vocab_looks_special(text, strlen(text)) ? VOCAB_CONTROL : VOCAB_USER_DEFINED, err));
		copy = json_copy(row);
		json_object_set_new(copy, "id", json_integer(id));
		json_array_append_new(list, copy);
	}
	if (f->tokenizer) json_decref(list);
	else json_object_set_new(v->pipeline, "added_tokens", list);
	return GGU_OK;
}

/* The text of an entry that is a string or an object with content. */
static const char *entry_text(const json_t *e) { return json_is_string(e) ? json_string_value(e) : vocab_json_str(e, "content"); }

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

static const char *special_id_of(const json_t *step) { return vocab_json_str(json_object_get(step, "SpecialToken"), "id"); }

/* {"single": [...], "pair": [...]} */
static void read_template(struct vocab *v, const json_t *p, const char *bos, const char *eos)
{
	const json_t *single = json_object_get(p, "single"), *pair = json_object_get(p, "pair");
	size_t n = json_array_size(single), m = json_array_size(pair), a = 0;
	const char *first = n ? special_id_of(json_array_get(single, 0)) : NULL, *last = n > 1 ? special_id_of(json_array_get(single, n - 1)) : NULL;
	if (first && bos && !strcmp(first, bos)) vocab_set_add(v, VOCAB_BOS, true);
	if (last && eos && !strcmp(last, eos)) vocab_set_add(v, VOCAB_EOS, true);
	while (a < m && special_id_of(json_array_get(pair, a))) a++;
	if (m > a + 1) vocab_set_add(v, VOCAB_SEP, special_id_of(json_array_get(pair, a + 1)) != NULL && a + 2 < m && !(bos && !strcmp(special_id_of(json_array_get(pair, a + 1)), bos)));
}

static void read_post_processor(struct vocab *v, const json_t *p, const char *bos, const char *eos)
{
	const char *type = vocab_json_str(p, "type");
	size_t i;
	json_t *step;
	if (!type) return;
	if (!strcmp(type, "TemplateProcessing")) read_template(v, p, bos, eos);
	else if (!strcmp(type, "Sequence")) json_array_foreach(json_object_get(p, "processors"), i, step) read_post_processor(v, step, bos, eos);
	else if (!strcmp(type, "RobertaProcessing") || !strcmp(type, "BertProcessing")) {
		vocab_set_add(v, VOCAB_BOS, true);
		vocab_set_add(v, VOCAB_EOS, true);
		vocab_set_add(v, VOCAB_SEP, true);
	}
}

static enum ggu_status add_template(struct vocab *v, const char *name, const char *text, struct ggu_error *err)
{
	struct vocab_template *t = vocab_alloc(v, (v->n_templates + 1)*sizeof *t);
	struct ggu_str a = { NULL, 0 }, b = vocab_copy(v, text, strlen(text));
	if (name) a = vocab_copy(v, name, strlen(name));
	if (!t || !b.p || (name && !a.p)) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	if (v->n_templates) memcpy(t, v->templates, v->n_templates*sizeof *t);
	t[v->n_templates++] = (struct vocab_template){ (char *)a.p, (char *)b.p };
	v->templates = t;
	return GGU_OK;
}

/* chat_template.jinja, else chat_template.json, else tokenizer_config.json: a text, or a list of named ones. */
static enum ggu_status read_templates(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	json_t *own = NULL, *c, *row;
	char *text;
	size_t n, i;
	enum ggu_status s = vocab_read_file(f->dir, "chat_template.jinja", 16 << 20, &text, &n, err);
	if (!s) {
		s = add_template(v, NULL, text, err);
		free(text);
		return s;
	}
	if (s != GGU_ERR_MISSING) return s;
	TRY(vocab_read_json(f->dir, "chat_template.json", &own, err));
	c = json_object_get(own ? own : f->config, "chat_template");
	s = GGU_OK;
	if (json_is_string(c)) s = add_template(v, NULL, json_string_value(c), err);
	json_array_foreach(c, i, row) {
		const char *name = vocab_json_str(row, "name"), *t = vocab_json_str(row, "template");
		if (!s && name && t) s = add_template(v, strcmp(name, "default") ? name : NULL, t, err);
	}
	json_decref(own);
	return s;
}

enum ggu_status vocab_load_specials(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	const json_t *c = f->config, *model = json_object_get(f->model_config, "text_config");
	const char *text[VOCAB_N_SPECIAL];
	char key[32];
	if (v->has_scores) TRY(retype(v, f, err));
	if (!model) model = f->model_config;
	for (int i = 0; i <= VOCAB_MASK; i++) {
		snprintf(key, sizeof key, "%s_token", vocab_special_names[i].name);
		text[i] = entry_text(json_object_get(c, key));
	}
	read_post_processor(v, json_object_get(f->tokenizer, "post_processor"), text[VOCAB_BOS], text[VOCAB_EOS]);
	for (int i = 0; i <= VOCAB_MASK; i++) {
		const json_t *add;
		snprintf(key, sizeof key, "add_%s_token", vocab_special_names[i].name);
		add = json_object_get(c, key);
		if (json_is_boolean(add) && i <= VOCAB_SEP && i != VOCAB_UNK) vocab_set_add(v, (enum vocab_special)i, json_is_true(add));
		if (text[i]) vocab_set_special(v, (enum vocab_special)i, added_id(f, text[i]));
	}
	for (int i = 0; i <= VOCAB_MASK; i++) {
		const json_t *id;
		snprintf(key, sizeof key, "%s_token_id", vocab_special_names[i].name);
		id = json_object_get(model, key);
		if (json_is_integer(id)) vocab_set_special(v, (enum vocab_special)i, json_integer_value(id));
	}
	/* a list of end tokens says no more than its first to llama.cpp; so does ours where nothing else names one */
	if (v->special[VOCAB_EOS] < 0 && f->hints && f->hints->n_eos) vocab_set_special(v, VOCAB_EOS, f->hints->eos_ids[0]);
	if (v->special[VOCAB_BOS] < 0 && f->hints) vocab_set_special(v, VOCAB_BOS, f->hints->bos_id);
	return read_templates(v, f, err);
}
