/* SPDX-License-Identifier: MIT
 * vocab_meta.c - a vocabulary as tokenizer.* keys, out and in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vocab_impl.h"

/* by enum vocab_special */
static const char *const adds[] = { "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", NULL,
	"tokenizer.ggml.add_sep_token" };

#define LOWERCASE "tokenizer.ggml.normalizer.lowercase"

/* ---- out ---- */

static enum ggu_status put_str(struct ggu_meta *m, const char *key, const char *s)
{
	return ggu_meta_set_str(m, key, s, strlen(s));
}

#define CHAT_TEMPLATE "tokenizer.chat_template"
static enum ggu_status put_templates(const struct vocab *v, struct ggu_meta *m)
{
	struct ggu_str *names = calloc(v->n_templates + 1, sizeof *names);
	size_t n = 0;
	enum ggu_status s = names ? GGU_OK : GGU_ERR_NOMEM;
	for (size_t i = 0; i < v->n_templates && !s; i++) {
		const struct vocab_template *t = v->templates + i;
		char key[256] = CHAT_TEMPLATE;
		if (t->name) {
			snprintf(key, sizeof key, CHAT_TEMPLATE ".%s", t->name);
			for (char *c = key + sizeof CHAT_TEMPLATE; *c; c++)
				if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' &&
					*c <= '9') || *c == '_'))
					*c = '_';
			names[n++] = (struct ggu_str){ t->name, strlen(t->name) };
		}
		s = put_str(m, key, t->text);
	}
	if (!s && n) s = ggu_meta_set_strs(m, "tokenizer.chat_templates", names, n);
	free(names);
	return s;
}

static enum ggu_status put_specials(const struct vocab *v, struct ggu_meta *m)
{
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < v->n_special_order && !s; i++)
		s = ggu_meta_set_uint(m, vocab_special_names[v->special_order[i]].key, GGU_U32,
			(uint64_t)v->special[v->special_order[i]]);
	for (size_t i = 0; i < v->n_add_order && !s; i++)
		s = ggu_meta_set_bool(m, adds[v->add_order[i]], v->add[v->add_order[i]]);
	return s;
}

enum ggu_status vocab_to_meta(const struct vocab *v, struct ggu_meta *m, struct ggu_error *err)
{
	char *text = json_dumps(v->pipeline, JSON_COMPACT | JSON_SORT_KEYS);
	enum ggu_status s = text ? put_str(m, "tokenizer.ggml.model", v->model) : GGU_ERR_NOMEM;
	if (!s && v->pre) s = put_str(m, "tokenizer.ggml.pre", v->pre);
	if (!s) s = ggu_meta_set_strs(m, "tokenizer.ggml.tokens", v->tokens, v->n);
	if (!s && v->has_scores) s = ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, v->scores, v->n);
	if (!s) s = ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, v->types, v->n);
	if (!s && v->write_merges) s = ggu_meta_set_strs(m, "tokenizer.ggml.merges", v->merges, v->n_merges);
	if (!s) s = put_specials(v, m);
	if (!s) s = put_templates(v, m);
	if (!s && v->add_space_prefix >= 0)
		s = ggu_meta_set_bool(m, "tokenizer.ggml.add_space_prefix", v->add_space_prefix);
	if (!s && v->lowercase >= 0) s = ggu_meta_set_bool(m, LOWERCASE, v->lowercase);
	if (!s) s = put_str(m, "gguf-utils.tokenizer", text);
	if (!s && v->own_merges) s = ggu_meta_set_strs(m, "gguf-utils.merges", v->merges, v->n_merges);
	free(text);
	return s ? ggu_fail(err, s, GGU_NO_OFFSET, "tokenizer", "cannot be written") : GGU_OK;
}

/* ---- in ---- */

static enum ggu_status bad(struct ggu_error *err, const struct ggu_kv *kv, const char *key, const char *what)
{
	return ggu_fail(err, GGU_ERR_FORMAT, kv ? ggu_kv_offset(kv) : GGU_NO_OFFSET, key, "%s", what);
}

static enum ggu_status get_strs(struct vocab *v, const struct ggu_meta *m, const char *key, struct ggu_str **list,
	size_t *n, struct ggu_error *err)
{
	const struct ggu_kv *kv = ggu_meta_find(m, key);
	*n = 0;
	if (!kv) return GGU_OK;
	if (ggu_kv_type(kv) != GGU_ARRAY || ggu_kv_item_type(kv) != GGU_STRING)
		return bad(err, kv, key, "is not a list of strings");
	*n = ggu_kv_n(kv);
	*list = vocab_alloc(v, *n*sizeof **list + 1);
	if (!*list) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	for (size_t i = 0; i < *n; i++) {
		struct ggu_str s = { "", 0 };
		ggu_kv_str(kv, i, &s);
		(*list)[i] = vocab_copy(v, s.p, s.n);
		if (!(*list)[i].p) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	}
	return GGU_OK;
}

static enum ggu_status get_numbers(struct vocab *v, const struct ggu_meta *m, struct ggu_error *err)
{
	const struct ggu_kv *types = ggu_meta_find(m, "tokenizer.ggml.token_type"), *scores = ggu_meta_find(m,
		"tokenizer.ggml.scores");
	v->types = vocab_alloc(v, v->n*sizeof *v->types);
	if (scores) v->scores = vocab_alloc(v, v->n*sizeof *v->scores);
	if (!v->types || (scores && !v->scores))
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	if (types && ggu_kv_n(types) != v->n)
		return bad(err, types, "tokenizer.ggml.token_type", "has another length than the tokens");
	if (scores && ggu_kv_n(scores) != v->n)
		return bad(err, scores, "tokenizer.ggml.scores", "has another length than the tokens");
	for (size_t i = 0; i < v->n; i++) {
		int64_t t = VOCAB_NORMAL;
		double x = 0;
		if (types && !ggu_kv_int(types, i, &t))
			return bad(err, types, "tokenizer.ggml.token_type", "is not a list of numbers");
		if (scores && !ggu_kv_float(scores, i, &x))
			return bad(err, scores, "tokenizer.ggml.scores", "is not a list of numbers");
		v->types[i] = t < VOCAB_NORMAL || t > VOCAB_BYTE ? VOCAB_NORMAL : (int32_t)t;
		if (scores) v->scores[i] = (float)x;
	}
	v->has_scores = scores;
	return GGU_OK;
}

/* SentencePiece as tokenizer.ggml.* says it: user-defined tokens first, a blank in front unless told otherwise. */
static void spm_pipeline(struct vocab *v, bool prefix)
{
	json_object_set_new(v->pipeline, "added_tokens", vocab_added_by_type(v));
	json_object_set_new(v->pipeline, "normalizer", json_pack("{s:s,s:b,s:b,s:b}", "type", "SentencePiece",
		"add_dummy_prefix", prefix,
		"remove_extra_whitespaces", 0, "escape_whitespaces", 1));
	json_object_set_new(v->pipeline, "model", json_pack("{s:s,s:s,s:b}", "type", "BPE", "order", "scores",
		"byte_fallback", 1));
}

static enum ggu_status get_pipeline(struct vocab *v, const struct ggu_meta *m, struct ggu_error *err)
{
	struct ggu_str text, pre = { "default", 7 };
	json_error_t je;
	if (ggu_meta_str(m, "gguf-utils.tokenizer", &text)) {
		json_decref(v->pipeline);
		v->pipeline = json_loadb(text.p, text.n, JSON_ALLOW_NUL, &je);
		if (v->pipeline && json_is_object(v->pipeline)) return GGU_OK;
		if (!v->pipeline) v->pipeline = json_object();
		return bad(err, ggu_meta_find(m, "gguf-utils.tokenizer"), "gguf-utils.tokenizer",
			"is not a JSON object");
	}
	if (!strcmp(v->model, "bert")) {
		bool lowercase = true;
		ggu_meta_bool(m, LOWERCASE, &lowercase);
		vocab_bert_pipeline(v, lowercase);
		return GGU_OK;
	}
	ggu_meta_str(m, "tokenizer.ggml.pre", &pre);
	if (strcmp(v->model, "llama")) return vocab_pipeline_from_pre(v, pre.p, err);
	spm_pipeline(v, v->add_space_prefix != 0);
	return GGU_OK;
}

static enum ggu_status from_meta(struct vocab *v, const struct ggu_meta *m, struct ggu_error *err)
{
	struct ggu_str model;
	bool b;
	if (!ggu_meta_str(m, "tokenizer.ggml.model", &model))
		return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "tokenizer.ggml.model",
			"is missing: no vocabulary in this file");
	v->model = !strcmp(model.p, "llama") ? "llama" : !strcmp(model.p, "gpt2") ? "gpt2" : !strcmp(model.p, "bert") ?
		"bert" : NULL;
	if (!v->model)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "tokenizer.ggml.model",
			"tokenizers of kind '%.40s' are not supported (llama, gpt2 and bert are)", model.p);
	TRY(get_strs(v, m, "tokenizer.ggml.tokens", &v->tokens, &v->n, err));
	if (!v->n) return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "tokenizer.ggml.tokens", "is missing or empty");
	if (v->n > INT32_MAX/2)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "tokenizer.ggml.tokens", "%zu tokens are too many",
			v->n);
	TRY(get_numbers(v, m, err));
	TRY(get_strs(v, m, ggu_meta_find(m, "gguf-utils.merges") ? "gguf-utils.merges" : "tokenizer.ggml.merges",
		&v->merges, &v->n_merges, err));
	for (int i = 0; i < VOCAB_N_SPECIAL; i++) {
		int64_t id;
		if (ggu_meta_int(m, vocab_special_names[i].key, &id)) vocab_set_special(v, (enum vocab_special)i, id);
	}
	for (int i = 0; i <= VOCAB_SEP; i++)
		if (adds[i] && ggu_meta_bool(m, adds[i], &b)) vocab_set_add(v, (enum vocab_special)i, b);
	if (ggu_meta_bool(m, "tokenizer.ggml.add_space_prefix", &b)) v->add_space_prefix = b;
	return get_pipeline(v, m, err);
}

enum ggu_status vocab_from_meta(struct vocab **out, const struct ggu_meta *m, struct ggu_error *err)
{
	struct vocab *v = vocab_new();
	enum ggu_status s = v ? from_meta(v, m, err) : ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	if (s) vocab_free(v);
	else *out = v;
	return s;
}

/* A SentencePiece vocabulary that does not say puts BOS in front, as llama.cpp does; a BPE one does not. */
bool vocab_add_bos(const struct vocab *v)
{
	return v->add[VOCAB_BOS] >= 0 ? v->add[VOCAB_BOS] : !strcmp(v->model, "llama") && vocab_bos(v) >= 0;
}
bool vocab_add_eos(const struct vocab *v) { return v->add[VOCAB_EOS] > 0; }
