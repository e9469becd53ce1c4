/* SPDX-License-Identifier: MIT
 * vocab_meta.c - a vocabulary as tokenizer.* keys, out and in. If a file lacks gguf-utils.tokenizer, the pipeline is
 * made from tokenizer.ggml.model and tokenizer.ggml.pre (vocab_pre.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vocab_internal.h"

/* by enum vocab_special */
static const char *const adds[] = { "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", NULL,
	"tokenizer.ggml.add_sep_token" };

#define LOWERCASE "tokenizer.ggml.normalizer.lowercase"
#define REMOVE_EXTRA "tokenizer.ggml.remove_extra_whitespaces"
#define CHARSMAP "tokenizer.ggml.precompiled_charsmap"

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
	if (!s && v->remove_extra >= 0) s = ggu_meta_set_bool(m, REMOVE_EXTRA, v->remove_extra);
	if (!s && v->charsmap.n) s = ggu_meta_set_array(m, CHARSMAP, GGU_U8, v->charsmap.p, v->charsmap.n);
	if (!s && v->lowercase >= 0) s = ggu_meta_set_bool(m, LOWERCASE, v->lowercase);
	if (!s) s = put_str(m, "gguf-utils.tokenizer", text);
	if (!s && v->own_merges) s = ggu_meta_set_strs(m, "gguf-utils.merges", v->merges, v->n_merges);
	free(text);
	if (s == GGU_ERR_NOMEM) return ggu_no_memory(err);
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
	if (!*list) return ggu_no_memory(err);
	for (size_t i = 0; i < *n; i++) {
		struct ggu_str s = { "", 0 };
		ggu_kv_str(kv, i, &s);
		(*list)[i] = vocab_copy(v, s.p, s.n);
		if (!(*list)[i].p) return ggu_no_memory(err);
	}
	return GGU_OK;
}

static enum ggu_status get_numbers(struct vocab *v, const struct ggu_meta *m, struct ggu_error *err)
{
	const struct ggu_kv *types = ggu_meta_find(m, "tokenizer.ggml.token_type");
	const struct ggu_kv *scores = ggu_meta_find(m, "tokenizer.ggml.scores");
	v->types = vocab_alloc(v, v->n*sizeof *v->types);
	if (scores) v->scores = vocab_alloc(v, v->n*sizeof *v->scores);
	if (!v->types || (scores && !v->scores))
		return ggu_no_memory(err);
	if (types && ggu_kv_n(types) != v->n)
		return bad(err, types, "tokenizer.ggml.token_type", "does not have as many items as there are tokens");
	if (scores && ggu_kv_n(scores) != v->n)
		return bad(err, scores, "tokenizer.ggml.scores", "does not have as many items as there are tokens");
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

/* A list of u8, as llama.cpp writes it, or of i8, as other programs do. */
static enum ggu_status get_charsmap(struct vocab *v, const struct ggu_meta *m, struct ggu_error *err)
{
	const struct ggu_kv *kv = ggu_meta_find(m, CHARSMAP);
	size_t n = kv ? ggu_kv_n(kv) : 0;
	unsigned char *bytes;
	enum ggu_status s;
	if (!kv) return GGU_OK;
	if (ggu_kv_type(kv) != GGU_ARRAY || (ggu_kv_item_type(kv) != GGU_U8 && ggu_kv_item_type(kv) != GGU_I8))
		return bad(err, kv, CHARSMAP, "is not a list of bytes");
	if (!(bytes = malloc(n + 1))) return ggu_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		int64_t x = 0;
		ggu_kv_int(kv, i, &x);
		bytes[i] = (unsigned char)(x & 255);
	}
	s = n ? vocab_set_charsmap(v, bytes, n, NULL, err) : GGU_OK;
	free(bytes);
	return s;
}

/* SentencePiece's pipeline from tokenizer.ggml.*: user-defined tokens first, a blank in front unless the keys say
 * no. */
static void spm_pipeline(struct vocab *v)
{
	struct vocab_spm_rules r = { v->add_space_prefix != 0, v->remove_extra > 0, true, !strcmp(v->model, "llama") };
	json_object_set_new(v->pipeline, "added_tokens", vocab_added_by_type(v));
	vocab_spm_pipeline(v, &r);
}

/* BERT's pipeline from tokenizer.ggml.*: [CLS] and [SEP] are around each text, as in llama.cpp, with its ids unless the
 * file has others. It may call the former BOS. */
static void bert_pipeline(struct vocab *v, const struct ggu_meta *m)
{
	int64_t cls = 101, sep = 102;
	bool lowercase = true;
	ggu_meta_bool(m, LOWERCASE, &lowercase);
	ggu_meta_int(m, "tokenizer.ggml.cls_token_id", &cls);
	if (v->special[VOCAB_BOS] >= 0) cls = v->special[VOCAB_BOS];
	if (v->special[VOCAB_SEP] >= 0) sep = v->special[VOCAB_SEP];
	vocab_bert_pipeline(v, lowercase);
	vocab_bert_around(v, cls, sep);
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
		bert_pipeline(v, m);
		return GGU_OK;
	}
	ggu_meta_str(m, "tokenizer.ggml.pre", &pre);
	if (strcmp(v->model, "llama") && strcmp(v->model, "t5")) return vocab_pipeline_from_pre(v, pre.p, err);
	spm_pipeline(v);
	return GGU_OK;
}

/* The kind as static text, NULL: unknown. */
static const char *kind(const char *name)
{
	static const char *const kinds[] = { "llama", "gpt2", "bert", "t5" };
	for (size_t i = 0; i < sizeof kinds/sizeof *kinds; i++) if (!strcmp(kinds[i], name)) return kinds[i];
	return NULL;
}

static enum ggu_status from_meta(struct vocab *v, const struct ggu_meta *m, struct ggu_error *err)
{
	struct ggu_str model;
	bool b;
	if (!ggu_meta_str(m, "tokenizer.ggml.model", &model))
		return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "tokenizer.ggml.model",
			"is missing: the file has no vocabulary");
	v->model = kind(model.p);
	if (!v->model)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "tokenizer.ggml.model",
			"tokenizers of kind '%.40s' are not supported (llama, gpt2, bert and t5 are)", model.p);
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
	if (ggu_meta_bool(m, REMOVE_EXTRA, &b)) v->remove_extra = b;
	TRY(get_charsmap(v, m, err));
	return get_pipeline(v, m, err);
}

enum ggu_status vocab_from_meta(struct vocab **out, const struct ggu_meta *m, struct ggu_error *err)
{
	struct vocab *v = vocab_new();
	enum ggu_status s = v ? from_meta(v, m, err) : ggu_no_memory(err);
	if (s) vocab_free(v);
	else *out = v;
	return s;
}

/* Unless the file says otherwise, a SentencePiece vocabulary puts BOS in front, as in llama.cpp, and of the others
 * those with some pre-tokenizers (vocab_pipeline_from_pre). */
bool vocab_add_bos(const struct vocab *v)
{
	return v->add[VOCAB_BOS] >= 0 ? v->add[VOCAB_BOS] : !strcmp(v->model, "llama") && vocab_bos(v) >= 0;
}
/* Unless the file says otherwise, T5's vocabulary puts EOS at the end, and others do not. */
bool vocab_add_eos(const struct vocab *v)
{
	return v->add[VOCAB_EOS] >= 0 ? v->add[VOCAB_EOS] : !strcmp(v->model, "t5") && vocab_eos(v) >= 0;
}
