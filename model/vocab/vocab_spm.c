/* SPDX-License-Identifier: MIT
 * vocab_spm.c - tokenizer.model: SentencePiece's protobuf, read through a cursor.
 *
 * Fields used, of sentencepiece_model.proto: ModelProto 1 pieces {1 piece, 2 score, 3 type}, 2 trainer_spec
 * {3 model_type, 24 treat_whitespace_as_suffix, 35 byte_fallback}, 3 normalizer_spec {2 precompiled_charsmap,
 * 3 add_dummy_prefix, 4 remove_extra_whitespaces, 5 escape_whitespaces}. Unknown fields are passed over. */
#include <stdlib.h>
#include "../../libgguf/span.h"
#include "../util/file.h"
#include "vocab_internal.h"

enum { MODEL_UNIGRAM = 1, MODEL_BPE, PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_USER_DEFINED, PIECE_UNUSED,
	PIECE_BYTE };
struct field { unsigned number, wire; uint64_t v; struct span bytes; };

static bool varint(struct span *s, uint64_t *v)
{
	uint8_t b;
	*v = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		if (!span_u8(s, &b)) return false;
		*v |= (uint64_t)(b & 127) << shift;
		if (b < 128) return true;
	}
	return false;
}

static bool next_field(struct span *s, struct field *f)
{
	uint64_t tag, n;
	if (!varint(s, &tag)) return false;
	f->number = (unsigned)(tag >> 3);
	f->wire = tag & 7;
	switch (f->wire) {
	case 0: return varint(s, &f->v);
	case 1: return span_take(s, 8, &f->bytes);
	case 2: return varint(s, &n) && n <= s->n && span_take(s, (size_t)n, &f->bytes);
	case 5: return span_take(s, 4, &f->bytes);
	default: return false;
	}
}

static enum ggu_status bad(struct ggu_error *err, const char *file, uint64_t at, const char *what)
{
	return file_fail(err, GGU_ERR_FORMAT, file, at, "", "%s", what);
}

struct spec {
	uint64_t model_type;
	bool suffix;            /* blanks belong to the word before them */
	struct vocab_spm_rules rules;
	struct span charsmap;
	size_t n_pieces;
};

static bool read_specs(struct span s, struct spec *o, uint64_t *at)
{
	*o = (struct spec){ .model_type = MODEL_UNIGRAM, .rules = { true, true, true, false } };
	while (s.n) {
		struct field f, g;
		*at = s.at;
		if (!next_field(&s, &f)) return false;
		if (f.wire != 2) continue;
		o->n_pieces += f.number == 1;
		for (struct span in = f.bytes; (f.number == 2 || f.number == 3) && in.n; ) {
			*at = in.at;
			if (!next_field(&in, &g)) return false;
			if (f.number == 3 && g.number == 2 && g.wire == 2) o->charsmap = g.bytes;
			if (g.wire) continue;
			if (f.number == 2 && g.number == 3) o->model_type = g.v;
			if (f.number == 2 && g.number == 24) o->suffix = g.v;
			if (f.number == 2 && g.number == 35) o->rules.byte_fallback = g.v;
			if (f.number == 3 && g.number == 3) o->rules.dummy_prefix = g.v;
			if (f.number == 3 && g.number == 4) o->rules.remove_extra = g.v;
			if (f.number == 3 && g.number == 5) o->rules.escape = g.v;
		}
	}
	return true;
}

static enum ggu_status read_piece(struct vocab *v, size_t id, struct span in, const char *file, json_t *user,
	struct ggu_error *err)
{
	static const int32_t types[] = { 0, VOCAB_NORMAL, VOCAB_UNKNOWN, VOCAB_CONTROL, VOCAB_NORMAL, VOCAB_UNUSED,
		VOCAB_BYTE };
	struct span text = { NULL, 0, in.at };
	uint64_t type = PIECE_NORMAL, at = in.at;
	float score = 0;
	while (in.n) {
		struct field f;
		if (!next_field(&in, &f)) return bad(err, file, in.at, "a piece is truncated");
		if (f.number == 1 && f.wire == 2) text = f.bytes;
		if (f.number == 2 && f.wire == 5) span_f32(&f.bytes, &score);
		if (f.number == 3 && f.wire == 0) type = f.v;
	}
	if (type < PIECE_NORMAL || type > PIECE_BYTE) return bad(err, file, at, "a piece has an unknown type");
	if (id >= v->n) return GGU_OK;
	v->tokens[id] = vocab_copy(v, text.p ? (const char *)text.p : "", text.n);
	if (!v->tokens[id].p) return ggu_no_memory(err);
	v->scores[id] = score;
	v->types[id] = types[type];
	if (type == PIECE_USER_DEFINED) json_array_append_new(user, json_integer((json_int_t)id));
	return GGU_OK;
}

/* with_added: how many tokens there are if no config.json says so: the pieces, and what the other files add. */
static size_t with(size_t n, json_int_t id)
{
	return id >= 0 && id < VOCAB_MOST && (size_t)id >= n ? (size_t)id + 1 : n;
}
static size_t with_added(const struct vocab_files *f, size_t n)
{
	const char *key;
	size_t i;
	json_t *row;
	json_array_foreach(json_object_get(f->tokenizer, "added_tokens"), i, row)
		n = with(n, json_integer_value(json_object_get(row, "id")));
	json_object_foreach(f->added, key, row) n = with(n, json_integer_value(row));
	json_object_foreach(json_object_get(f->config, "added_tokens_decoder"), key, row)
		n = with(n, strtol(key, NULL, 10));
	return n;
}

enum ggu_status vocab_load_spm(struct vocab *v, const char *bytes, size_t n, const char *file,
	const struct vocab_files *f, struct ggu_error *err)
{
	struct span all = { (const unsigned char *)bytes, n, 0 };
	struct spec o;
	uint64_t at = 0;
	size_t id = 0, n_vocab;
	json_t *user = json_array();
	enum ggu_status s = GGU_OK;
	if (!user) return ggu_no_memory(err);
	if (!read_specs(all, &o, &at) || !o.n_pieces) s = bad(err, file, at, "is not a SentencePiece model");
	else if (o.model_type != MODEL_BPE && o.model_type != MODEL_UNIGRAM)
		s = file_fail(err, GGU_ERR_UNSUPPORTED, file, GGU_NO_OFFSET, "trainer_spec.model_type",
			"only unigram and BPE are supported, not kind %llu", (unsigned long long)o.model_type);
	else if (o.suffix)
		s = file_fail(err, GGU_ERR_UNSUPPORTED, file, GGU_NO_OFFSET, "trainer_spec.treat_whitespace_as_suffix",
			"is not supported: blanks would have to belong to the word before them");
	n_vocab = f->hints && f->hints->n_vocab > 0 ? (size_t)f->hints->n_vocab : s ? 0 : with_added(f, o.n_pieces);
	if (!s && o.n_pieces > n_vocab) {
		v->n_left_out = o.n_pieces - n_vocab;
		v->left_out_file = file;
	}
	if (!s) s = vocab_size(v, n_vocab, true, -10000, err);
	while (!s && all.n) {
		struct field p;
		next_field(&all, &p);           /* read_specs has been through here */
		if (p.number == 1 && p.wire == 2) s = read_piece(v, id++, p.bytes, file, user, err);
	}
	if (!s && o.charsmap.n) s = vocab_set_charsmap(v, o.charsmap.p, o.charsmap.n, file, err);
	if (s) {
		json_decref(user);
		return s;
	}
	v->model = o.model_type == MODEL_BPE ? "llama" : "t5";
	if (o.model_type == MODEL_UNIGRAM) {
		v->add_space_prefix = o.rules.dummy_prefix;
		v->remove_extra = o.rules.remove_extra;
	}
	vocab_spm_pipeline(v, &o.rules);
	json_object_set_new(json_object_get(v->pipeline, "model"), "user_defined", user);
	return GGU_OK;
}
