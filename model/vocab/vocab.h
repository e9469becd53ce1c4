/* SPDX-License-Identifier: MIT
 * vocab.h - a vocabulary with everything that tokenizing needs, from a checkpoint folder or from a GGUF's metadata.
 *
 * What tokenizer.ggml.* cannot express (normalizer and pre-tokenizer trees, flags of added tokens, post-processor) is
 * in the key gguf-utils.tokenizer, compact JSON without the vocabulary. */
#ifndef MODEL_VOCAB_VOCAB_H
#define MODEL_VOCAB_VOCAB_H
#include "../../libgguf/ggu.h"

enum vocab_token_type {         /* tokenizer.ggml.token_type */
	VOCAB_NORMAL = 1, VOCAB_UNKNOWN, VOCAB_CONTROL, VOCAB_USER_DEFINED, VOCAB_UNUSED, VOCAB_BYTE
};
enum vocab_special {            /* rows of vocab_special_names */
	VOCAB_BOS, VOCAB_EOS, VOCAB_UNK, VOCAB_SEP, VOCAB_PAD, VOCAB_MASK, VOCAB_EOT, VOCAB_EOM, VOCAB_N_SPECIAL
};
struct vocab_special_name { const char *name, *key; };  /* "sep", "tokenizer.ggml.seperator_token_id" */
extern const struct vocab_special_name vocab_special_names[VOCAB_N_SPECIAL];
struct vocab;
/* What the folder's own files do not say about the tokenizer; 0 and NULL: nothing more. */
struct vocab_hints {
	/* rows of the embedding; those that the tokenizer has no token for get "[PAD<id>]". -1: unknown */
	int64_t n_vocab;
	const char *pre;                        /* tokenizer.ggml.pre, if several names are possible; a known one */
	int add_space_prefix, add_bos;          /* 1: yes, -1: no */
	bool config_prefix;                     /* add_prefix_space of tokenizer_config.json is add_space_prefix */
	/* special tokens that the files leave open: by text, which need not be there, or by id */
	struct { int64_t id; const char *text; } special[VOCAB_N_SPECIAL];
};
/* Reads the folder's tokenizer.json, tokenizer.model or spiece.model, vocab.json with merges.txt, vocab.txt,
 * tokenizer_config.json, added_tokens.json, chat_template.jinja and .json, additional_chat_templates/, and the ids of
 * special tokens in config.json. Which file has priority follows llama.cpp's converter. GGU_ERR_UNSUPPORTED: a
 * tokenizer of another kind. err names the file. The caller frees *v. */
enum ggu_status vocab_from_dir(struct vocab **v, const char *dir, const struct vocab_hints *h, struct ggu_error *err);
extern const char *const vocab_file_names[];    /* of those files; NULL ends them */
bool vocab_pre_is_known(const char *pre);       /* is it a tokenizer.ggml.pre that llama.cpp has? */
/* Copies what it needs from m. Ids out of range are ignored; arrays of the wrong kind or length are refused. */
enum ggu_status vocab_from_meta(struct vocab **v, const struct ggu_meta *m, struct ggu_error *err);
/* Appends every tokenizer.* key that llama.cpp's converter writes, and gguf-utils.tokenizer. */
enum ggu_status vocab_to_meta(const struct vocab *v, struct ggu_meta *m, struct ggu_error *err);
void vocab_free(struct vocab *v);

size_t vocab_count(const struct vocab *v);
/* How many tokens of the folder have ids that n_vocab leaves no room for; *file: the file that most of them are in. */
size_t vocab_left_out(const struct vocab *v, const char **file);
/* Ids for which one file of the folder has other tokens than another, whose tokens count. */
struct vocab_difference { const char *file, *than; size_t n, first; };  /* n of them, and the first; static texts */
size_t vocab_differences(const struct vocab *v, const struct vocab_difference **d);
struct ggu_str vocab_token(const struct vocab *v, int32_t id);          /* as stored; empty if out of range */
enum vocab_token_type vocab_token_type(const struct vocab *v, int32_t id);
/* -1: none */
int32_t vocab_bos(const struct vocab *v);
int32_t vocab_eos(const struct vocab *v);
/* eos, eot, eom and the like: generation stops */
bool vocab_is_end(const struct vocab *v, int32_t id);
bool vocab_add_bos(const struct vocab *v);
bool vocab_add_eos(const struct vocab *v);

#endif
