/* SPDX-License-Identifier: MIT
 * vocab_internal.h - what a vocabulary is made of. Private to model/vocab.
 *
 * Tokens, scores, types and merges are as in a GGUF. How text becomes tokens is one JSON object, the pipeline, whatever
 * the source was; it is also the value of the key gguf-utils.tokenizer:
 *
 *   { "added_tokens": [...], "normalizer": {...}, "pre_tokenizer": {...}, "post_processor": {...}, "decoder": {...},
 *     "model": { "type": "BPE", "unk_token", "fuse_unk", "byte_fallback", "ignore_merges", "order" }, or
 *              { "type": "WordPiece", "unk_token", "max_input_chars_per_word" }, or
 *              { "type": "Unigram", "unk_id", "byte_fallback" } }
 *
 * as in tokenizer.json, without vocabulary and merges, and with these additions:
 *   model.order                "merges" (rank of the pair) or "scores" (score of the joined token)
 *   model.user_defined         ids that are cut out of the normalized text first (SentencePiece)
 *   model.continuing           of WordPiece: ids of pieces that continue a word although they begin with U+2581
 *   model.all_tokens           of Unigram: control tokens are pieces of a text like others (tokenizer.json)
 *   only_added                 ids of added tokens that model.vocab lacks: the model never makes them of a text
 *   normalizer SentencePiece   add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, charsmap
 * vocab.charsmap is the table of a normalizer Precompiled, and of SentencePiece's if that says charsmap. */
#ifndef MODEL_VOCAB_VOCAB_INTERNAL_H
#define MODEL_VOCAB_VOCAB_INTERNAL_H
#include <jansson.h>
#include "../../libgguf/arena.h"
#include "../../libgguf/try.h"
#include "vocab.h"

/* A folder's files name ids, not bytes, so a limit has to be set: 16 times the largest vocabulary known. */
enum { VOCAB_MOST = 1 << 22 };

struct vocab_template { char *name; char *text; };      /* name NULL: the default one; else fit for a key */

struct vocab {
	size_t n;
	struct ggu_str *tokens;         /* [n] */
	float *scores;                  /* [n] or NULL */
	int32_t *types;                 /* [n] enum vocab_token_type */
	struct ggu_str *merges;         /* [n_merges], "left right" */
	size_t n_merges;
	const char *model;              /* tokenizer.ggml.model: static text */
	const char *pre;                /* tokenizer.ggml.pre or NULL: not freed */
	int32_t special[VOCAB_N_SPECIAL];       /* -1: none */
	uint8_t special_order[VOCAB_N_SPECIAL]; /* order of writing, n_special_order of them */
	size_t n_special_order;
	int add[VOCAB_SEP + 1];         /* add_bos_token, add_eos_token, (unk unused), add_sep_token: 1, 0, -1 unsaid */
	uint8_t add_order[4];
	size_t n_add_order;
	int add_space_prefix;           /* 1, 0, -1 not written */
	int remove_extra;               /* extra blanks are removed: 1, 0, -1 not written */
	struct ggu_str charsmap;        /* charsmap.h; empty: none */
	int lowercase;                  /* of a WordPiece vocabulary: 1, 0, -1 not written */
	bool has_scores, write_merges;  /* which arrays the GGUF gets */
	/* merges that llama.cpp's form drops but the ids depend on: gguf-utils.merges */
	bool own_merges;
	size_t n_left_out;              /* tokens that there is no room for */
	const char *left_out_file;      /* static text */
	struct vocab_difference differences[2];         /* [n_differences]; there are three files for an id */
	size_t n_differences;
	struct vocab_template *templates;
	size_t n_templates;
	json_t *pipeline;               /* never NULL once built */
	struct ggu_arena arena;
};

/* Zeroed memory that lives as long as the vocabulary; NULL: out of memory. */
void *vocab_alloc(struct vocab *v, size_t bytes);
/* A copy of p[n] in the arena, NUL-terminated; p NULL on failure. */
struct ggu_str vocab_copy(struct vocab *v, const char *p, size_t n);
struct vocab *vocab_new(void);
/* Room for n tokens, all "[PAD<id>]" of type unused. */
enum ggu_status vocab_size(struct vocab *v, size_t n, bool scores, float score, struct ggu_error *err);
void vocab_differs(struct vocab *v, const struct vocab_difference *d);
/* the first call wins, bad ids are dropped */
void vocab_set_special(struct vocab *v, enum vocab_special which, int64_t id);
void vocab_set_add(struct vocab *v, enum vocab_special which, bool on);         /* the last call wins */

/* A checkpoint folder's files. */
struct vocab_files {
	const char *dir;
	const struct vocab_hints *hints;
	/* tokenizer.json, tokenizer_config.json, added_tokens.json, config.json; NULL: absent */
	json_t *tokenizer, *config, *added, *model_config;
	json_t *decoder_rows, *added_rows;      /* those of config's added_tokens_decoder and of added, as a list */
};
/* Fills the lists. Refuses rows without an id or a text, and a file that gives an id to two texts. */
enum ggu_status vocab_read_added(struct vocab_files *f, struct ggu_error *err);
/* Compares what the files say of an id, and removes rows that do not count from the lists. into_json: tokenizer.json
 * counts most, and what it lacks is added to its list. */
enum ggu_status vocab_join_added(struct vocab *v, struct vocab_files *f, bool into_json, struct ggu_error *err);
/* Sets only_added of the pipeline, from model.vocab, an object or a list, and the list of added tokens. */
enum ggu_status vocab_note_added(struct vocab *v, const json_t *vocab, const json_t *added, struct ggu_error *err);
/* Fails: what is at `in` and `key`, one after the other, in a file is not as it should be. */
enum ggu_status vocab_bad(struct ggu_error *err, const char *file, const char *in, const char *key, const char *what);
/* *j NULL: absent */
enum ggu_status vocab_read_json(const char *dir, const char *name, json_t **j, struct ggu_error *err);

enum ggu_status vocab_load_spm(struct vocab *v, const char *bytes, size_t n, const char *file,
	const struct vocab_files *f, struct ggu_error *err);
enum ggu_status vocab_load_json(struct vocab *v, const struct vocab_files *f, struct ggu_error *err);
/* tokenizer.json of kind Unigram. */
enum ggu_status vocab_load_unigram(struct vocab *v, const struct vocab_files *f, struct ggu_error *err);
/* How SentencePiece normalizes, and what it does with unknown characters. */
struct vocab_spm_rules { bool dummy_prefix, remove_extra, escape, byte_fallback; };
/* Sets normalizer and model of the pipeline of a vocabulary of kind "llama" or "t5". */
void vocab_spm_pipeline(struct vocab *v, const struct vocab_spm_rules *r);
/* Checks and copies a normalizer's table; a second one must be the same. file: for messages. */
enum ggu_status vocab_set_charsmap(struct vocab *v, const void *bytes, size_t n, const char *file,
	struct ggu_error *err);
enum ggu_status vocab_load_merges_txt(struct vocab *v, const struct vocab_files *f, struct ggu_error *err);
/* WordPiece: tokenizer.json of that kind, or vocab.txt (GGU_ERR_MISSING: there is none). */
enum ggu_status vocab_load_wordpiece(struct vocab *v, const struct vocab_files *f, struct ggu_error *err);
/* Sets the pipeline of a WordPiece vocabulary to BERT's. */
void vocab_bert_pipeline(struct vocab *v, bool lowercase);
/* ... and what it has around a text. */
void vocab_bert_around(struct vocab *v, int64_t cls, int64_t sep);
/* Makes the pipeline of a tokenizer.json's trees and of `model`, which is taken over; then vocab_take_tables. */
enum ggu_status vocab_take_pipeline(struct vocab *v, const json_t *t, json_t *model, struct ggu_error *err);
/* Moves the normalizer's table, in base64 there, from the pipeline to charsmap. */
enum ggu_status vocab_take_tables(struct vocab *v, json_t *normalizer, int depth, struct ggu_error *err);
enum ggu_status vocab_load_templates(struct vocab *v, const struct vocab_files *f, struct ggu_error *err);
/* Special tokens, add_*_token and chat templates as llama.cpp's converter finds them. */
enum ggu_status vocab_load_specials(struct vocab *v, const struct vocab_files *f, struct ggu_error *err);
/* Denies what readers take for granted: EOS with SentencePiece's unigrams, BOS with its BPE and with some
 * pre-tokenizers. With a tokenizer.json, transformers adds only what its post-processor says, unless a class of its own
 * knows better. */
void vocab_deny_around(struct vocab *v, const struct vocab_files *f);
/* The list of the unknown token and all control tokens, as special ones, and of all user-defined tokens. NULL: out of
 * memory. */
json_t *vocab_added_by_type(const struct vocab *v);
/* 10 for the token "<0x0A>"; -1: not a token of that form. */
int vocab_byte_of(struct ggu_str token);
bool vocab_looks_special(const char *text, size_t n);

/* For each id, whether the model itself knows it, and not only the list of added tokens. malloc'ed; NULL: out of
 * memory. */
bool *vocab_own(const struct vocab *v);
int32_t vocab_find(const struct vocab *v, const char *text);    /* the first token of that text; -1: none */

/* Finds tokenizer.ggml.pre of a folder: by the hash of the test string's ids, else by the shape of the pre-tokenizer;
 * if the shape has several names, `prefer` if it is among them, and of WordPiece without a known hash always. NULL:
 * unknown. The name is static, or `prefer` itself. */
enum ggu_status vocab_find_pre(const struct vocab *v, const char *prefer, const char **name, struct ggu_error *err);
/* For a folder that names no pre-tokenizer (vocab.json with merges.txt): takes the one with which the test string has a
 * known hash; if there is none, Qwen 2's if tokenizer_config.json names its class, else GPT-2's. */
enum ggu_status vocab_guess_pre(struct vocab *v, const struct vocab_files *f, struct ggu_error *err);
/* Makes the pipeline of a BPE vocabulary from tokenizer.ggml.pre, for a GGUF that has none. */
enum ggu_status vocab_pipeline_from_pre(struct vocab *v, const char *pre, struct ggu_error *err);
/* Does llama.cpp put BOS in front of a text if a file with this name, maybe NULL, does not say? */
bool vocab_pre_adds_bos(const char *pre);

static inline const char *vocab_json_str(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}
static inline bool vocab_json_true(const json_t *o, const char *key) { return json_is_true(json_object_get(o, key)); }
/* The id of a row of added tokens; -1: it has none from 0 to VOCAB_MOST - 1. */
static inline json_int_t vocab_row_id(const json_t *row)
{
	const json_t *id = json_object_get(row, "id");
	const json_int_t k = json_is_integer(id) ? json_integer_value(id) : -1;
	return k >= 0 && k < VOCAB_MOST ? k : -1;
}

#endif
