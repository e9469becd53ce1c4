/* SPDX-License-Identifier: MIT
 * vocab_pre.c - tokenizer.ggml.pre: the name that llama.cpp has for a pre-tokenizer, found and understood.
 *
 * Found by the hash of the ids of its test string (pre_hashes.def); else by the shape of the pre-tokenizer: the first
 * name in the table below whose patterns are those of tokenizer.json. A tokenizer found by neither gets no name; our
 * own programs do not need one, since gguf-utils.tokenizer carries the trees.
 *
 * Understood: the table gives the patterns for a GGUF that has only the name. Facts of llama-vocab.cpp, 2026-11, in the
 * tokenizers' own regular expressions. */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "pre_hashes.def"
#include "pretok.h"
#include "tokenizer.h"
#include "vocab_internal.h"

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CL100K_TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" CL100K_TAIL
#define QWEN2 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" CL100K_TAIL
#define GPT2 PRETOK_GPT2
#define PUNCTUATION "[\\p{P}$+<=>^~|`]+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BLOOM " ?[^(\\s|[.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x81\xe0\xa5\xa4\xdb\x94\xd8\x8c])]+"
#define O200K_TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define TEKKEN "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*|\\p{N}" O200K_TAIL
#define O200K_WORDS "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" CONTRACTIONS \
	"?|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" CONTRACTIONS "?"
#define O200K O200K_WORDS "|\\p{N}{1,3}" O200K_TAIL
#define DEEPSEEK3 "\\p{N}{1,3}", \
	"[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+", \
	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" \
	" ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"

enum { MAX_SPLITS = 6 };
/* BOS: in front of a text, if a file does not say whether */
enum { IGNORE_MERGES = 1, NFC = 2, BOS = 4 };
/* In order of search. Splits are isolated; NULL ends them. "stablelm" is what files of 2024 call stablelm2. */
static const struct shape { const char *name, *split[MAX_SPLITS]; unsigned flags; } shapes[] = {
	{ "llama-bpe", { LLAMA3 }, IGNORE_MERGES | BOS },
	{ "llama3", { LLAMA3 }, IGNORE_MERGES | BOS },
	{ "llama-v3", { LLAMA3 }, IGNORE_MERGES | BOS },
	{ "dbrx", { LLAMA3 } },
	{ "smaug-bpe", { LLAMA3 } },
	{ "falcon3", { LLAMA3 }, IGNORE_MERGES | BOS },
	{ "pixtral", { LLAMA3 }, IGNORE_MERGES | BOS },
	{ "midm-2.0", { LLAMA3 }, IGNORE_MERGES | BOS },
	{ "lfm2", { LLAMA3 }, IGNORE_MERGES | BOS },
	{ "jina-v5-nano", { LLAMA3 }, IGNORE_MERGES | BOS },
	{ "chatglm-bpe", { LLAMA3 } },
	{ "glm4", { LLAMA3 } },
	{ "qwen2", { QWEN2 }, NFC },
	{ "stablelm2", { QWEN2 }, NFC },
	{ "stablelm", { QWEN2 }, NFC },
	{ "deepseek-r1-qwen", { QWEN2 }, NFC },
	{ "hunyuan", { QWEN2 } },
	{ "megrez", { QWEN2 } },
	{ "solar-open", { QWEN2 } },
	{ "grok-2", { QWEN2 } },
	{ "kormo", { QWEN2 } },
	{ "f2llmv2", { QWEN2 }, NFC },
	{ "seed-coder", {
		CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+"
			"|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
	} },
	{ "minicpm5", {
		"\\p{N}{1,3}",
		CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+" CL100K_TAIL
	}, IGNORE_MERGES },
	{ "ufakzeka", { "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" CL100K_TAIL } },
	{ "gpt-2", { GPT2 } },
	{ "phi-2", { GPT2 } },
	{ "mpt", { GPT2 } },
	{ "olmo", { GPT2 } },
	{ "jais", { GPT2 } },
	{ "gigachat", { GPT2 } },
	{ "a.x-4.0", { GPT2 } },
	{ "mellum", { GPT2 } },
	{ "trillion", { GPT2 } },
	{ "granite-docling", { GPT2 } },
	{ "roberta-bpe", { GPT2 } },
	{ "jina-v1-en", { GPT2 } },
	{ "jina-v2-code", { GPT2 } },
	{ "jina-v2-de", { GPT2 } },
	{ "jina-v2-es", { GPT2 } },
	{ "exaone4", { GPT2 } },
	{ "gpt-neox", { GPT2 }, NFC },
	{ "modern-bert", { GPT2 }, NFC },
	{ "default", { GPT2 } },
	{ "tekken", { TEKKEN }, IGNORE_MERGES | BOS },
	{ "gpt-4o", { O200K } },
	{ "kanana2", { O200K } },
	{ "llama4", { O200K } },
	{ "minimax-m2", { O200K } },
	{ "talkie", { O200K } },
	{ "tiny_aya", { "\\d{1,3}(?=(?:\\d{3})*\\b)", O200K } },
	{ "cohere2moe", { "\\d{1,3}(?=(?:\\d{3})*\\b)", O200K } },
	{ "youtu", {
		"[\xea\xb0\x80-\xed\x9e\xa3\xe3\x84\xb1-\xe3\x86\x8e]+|"
			"[\xef\xbc\x81\xe2\x80\xa6\xe2\x80\x9c\xe2\x80\x9d\xe2\x80\x98\xe2\x80\x99\xe2\x80\x94"
			"\xef\xbc\x9a\xef\xbc\x9b\xef\xbc\x8c\xe3\x80\x81-\xe3\x80\xbf\xef\xb8\xb0-\xef\xb9\x8f]+|"
			"[\xe3\x84\x85-\xe3\x84\xaf]+|"
			"[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+",
		O200K_WORDS "|\\p{N}" O200K_TAIL
	}, IGNORE_MERGES },
	{ "starcoder", { "\\p{N}", GPT2 } },
	{ "refact", { "\\p{N}", GPT2 } },
	{ "command-r", { "\\p{N}", GPT2 } },
	{ "smollm", { "\\p{N}", GPT2 } },
	{ "codeshell", { "\\p{N}", GPT2 } },
	{ "exaone", { "\\p{N}", GPT2 } },
	{ "minerva-7b", { "\\p{N}", GPT2 } },
	{ "mellum2", { "\\p{N}", GPT2 } },
	{ "falcon", { PUNCTUATION, GPT2, "[0-9][0-9][0-9]" } },
	{ "falcon-h1", { PUNCTUATION, GPT2, "[0-9]" }, BOS },
	{ "bloom", { BLOOM } },
	{ "poro-chat", { BLOOM } },
	{ "gpt3-finnish", { BLOOM } },
	{ "viking", { BLOOM, "\\p{N}" } },
	{ "deepseek-llm", {
		"[\r\n]",
		"\\s?[A-Za-z\xc2\xb5\xc3\x80-\xc3\x96\xc3\x98-\xc3\xb6\xc3\xb8-\xc6\xba\xc6\xbc-\xc6\xbf"
			"\xc7\x84-\xca\x93\xca\x95-\xca\xaf\xcd\xb0-\xcd\xb3\xcd\xb6\xcd\xb7\xcd\xbb-\xcd\xbd\xcd\xbf"
			"\xce\x86\xce\x88-\xce\x8a\xce\x8c\xce\x8e-\xce\xa1\xce\xa3-\xcf\xb5\xcf\xb7-\xd2\x81\xd2\x8a"
			"-\xd4\xaf\xd4\xb1-\xd5\x96\xe1\x82\xa0-\xe1\x83\x85\xe1\x8e\xa0-\xe1\x8f\xb5\xe1\x8f\xb8-"
			"\xe1\x8f\xbd\xe1\xb2\x90-\xe1\xb2\xba\xe1\xb2\xbd-\xe1\xb2\xbf\xe1\xb4\x80-\xe1\xb4\xab"
			"\xe1\xb5\xab-\xe1\xb5\xb7\xe1\xb5\xb9-\xe1\xb6\x9a\xe1\xb8\x80-\xe1\xbc\x95\xe1\xbc\x98-"
			"\xe1\xbc\x9d\xe1\xbc\xa0-\xe1\xbd\x85\xe1\xbd\x88-\xe1\xbd\x8d\xe1\xbd\x90-\xe1\xbd\x97"
			"\xe1\xbd\x99\xe1\xbd\x9b\xe1\xbd\x9d\xe1\xbd\x9f-\xe1\xbd\xbd\xe1\xbe\x80-\xe1\xbe\xb4"
			"\xe1\xbe\xb6-\xe1\xbe\xbc\xe1\xbe\xbe\xe1\xbf\x82-\xe1\xbf\x84\xe1\xbf\x86-\xe1\xbf\x8c"
			"\xe1\xbf\x90-\xe1\xbf\x93\xe1\xbf\x96-\xe1\xbf\x9b\xe1\xbf\xa0-\xe1\xbf\xac\xe1\xbf\xb2-"
			"\xe1\xbf\xb4\xe1\xbf\xb6-\xe1\xbf\xbc"
			"\xe2\x84\x82\xe2\x84\x87\xe2\x84\x8a-\xe2\x84\x93\xe2\x84\x95\xe2\x84\x99-\xe2\x84\x9d"
			"\xe2\x84\xa4\xe2\x84\xa6\xe2\x84\xa8\xe2\x84\xaa-\xe2\x84\xad\xe2\x84\xaf-\xe2\x84\xb4"
			"\xe2\x84\xb9\xe2\x84\xbc-\xe2\x84\xbf\xe2\x85\x85-\xe2\x85\x89\xe2\x85\x8e\xe2\x86\x83"
			"\xe2\x86\x84\xe2\xb0\x80-\xe2\xb1\xbb\xe2\xb1\xbe-\xe2\xb3\xa4\xe2\xb3\xab-\xe2\xb3\xae"
			"\xe2\xb3\xb2\xe2\xb3\xb3\xea\x99\x80-\xea\x99\xad\xea\x9a\x80-\xea\x9a\x9b\xea\x9c\xa2-"
			"\xea\x9d\xaf\xea\x9d\xb1-\xea\x9e\x87\xea\x9e\x8b-\xea\x9e\x8e\xea\xad\xb0-\xea\xae\xbf"
			"\xef\xac\x80-\xef\xac\x86\xef\xac\x93-\xef\xac\x97\xef\xbc\xa1-\xef\xbc\xba\xef\xbd\x81-"
			"\xef\xbd\x9a\xf0\x90\x90\x80-\xf0\x90\x91\x8f\xf0\x90\x92\xb0-\xf0\x90\x93\x93"
			"\xf0\x90\x93\x98-\xf0\x90\x93\xbb\xf0\x90\xb2\x80-\xf0\x90\xb2\xb2\xf0\x90\xb3\x80-"
			"\xf0\x90\xb3\xb2\xf0\x91\xa2\xa0-\xf0\x91\xa3\x9f\xf0\x9e\xa4\x80-\xf0\x9e\xa5\x83]+",
		"\\s?[!-/:-~\xef\xbc\x81-\xef\xbc\x8f\xef\xbc\x9a-\xef\xbd\x9e\xe2\x80\x98-\xe2\x80\x9f"
			"\xe3\x80\x80-\xe3\x80\x82]+",
		"\\s+$",
		"[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+",
		"\\p{N}+"
	} },
	{ "deepseek-coder", {
		"[\r\n]",
		"\\s?\\p{L}+",
		"\\s?\\p{P}+",
		"[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+",
		"\\p{N}"
	} },
	{ "deepseek-v3", { DEEPSEEK3 } },
	{ "joyai-llm", { DEEPSEEK3 } },
	{ "hunyuan-dense", { DEEPSEEK3 } },
};
enum { N_SHAPES = sizeof shapes/sizeof *shapes };

/* ---- by hash ---- */

static const struct { const char *hash, *name; } known[] = {
#define PRE_HASH(hash, name) { hash, name },
#include "pre_hashes.def"
#undef PRE_HASH
};
enum { N_KNOWN = sizeof known/sizeof *known };

static enum ggu_status by_hash(const struct vocab *v, const char **name, struct ggu_error *err)
{
	struct tokenizer *t;
	int32_t *ids = NULL;
	size_t n = 0;
	struct sha256_ctx sha;
	uint8_t digest[SHA256_DIGEST_SIZE];
	char hex[2*SHA256_DIGEST_SIZE + 1], number[16];
	enum ggu_status s = tokenizer_new(&t, v, err);
	if (s) return s;
	s = tokenizer_encode(t, PRE_TEST_STRING, sizeof PRE_TEST_STRING - 1,
		TOKENIZE_BOS | TOKENIZE_EOS | TOKENIZE_SPECIAL, &ids, &n, err);
	tokenizer_free(t);
	sha256_init(&sha);
	sha256_update(&sha, 1, (const uint8_t *)"[");
	for (size_t i = 0; i < n; i++)
		sha256_update(&sha, (size_t)snprintf(number, sizeof number, "%s%d", i ? ", " : "", (int)ids[i]),
			(const uint8_t *)number);
	sha256_update(&sha, 1, (const uint8_t *)"]");
	sha256_digest(&sha, sizeof digest, digest);
	for (size_t i = 0; i < sizeof digest; i++) snprintf(hex + 2*i, 3, "%02x", digest[i]);
	for (size_t i = 0; i < N_KNOWN; i++) if (!strcmp(known[i].hash, hex)) *name = known[i].name;
	free(ids);
	return s;
}

/* ---- by shape ---- */

static bool same_text(const char *a, const char *b) { return a && b && !strcmp(a, b); }

/* The pre-tokenizer's patterns, in order; false if a step has no pattern. (A step that cuts runs of digits is skipped:
 * it comes after ByteLevel, and the patterns before it have cut the same runs.) */
static bool patterns(const json_t *o, const char **list, size_t *n, size_t most, int depth)
{
	const char *type = vocab_json_str(o, "type"), *p = vocab_json_str(json_object_get(o, "pattern"), "Regex");
	size_t i;
	json_t *row;
	bool ok = true;
	if (!type || depth > 8) return false;
	if (!strcmp(type, "Sequence")) {
		json_array_foreach(json_object_get(o, "pretokenizers"), i, row)
			ok = ok && patterns(row, list, n, most, depth + 1);
		return ok;
	}
	if (!strcmp(type, "ByteLevel")) p = json_is_false(json_object_get(o, "use_regex")) ? "" : GPT2;
	else if (!strcmp(type, "Digits")) p = vocab_json_true(o, "individual_digits") ? "\\p{N}" : "";
	else if (!strcmp(type, "Punctuation") && same_text(vocab_json_str(o, "behavior"), "Contiguous"))
		p = PUNCTUATION;
	else if (strcmp(type, "Split")) return false;
	if (!p || *n == most) return false;
	if (*p) list[(*n)++] = p;
	return true;
}

static const char *by_shape(const struct vocab *v, const char *prefer)
{
	const char *list[8], *found = NULL;
	size_t n = 0;
	unsigned ignore = vocab_json_true(json_object_get(v->pipeline, "model"), "ignore_merges") ? IGNORE_MERGES : 0;
	if (!patterns(json_object_get(v->pipeline, "pre_tokenizer"), list, &n, 8, 0)) return NULL;
	for (int strict = 1; strict >= 0 && !found; strict--)
		for (size_t i = 0; i < N_SHAPES; i++) {
			size_t k = 0;
			while (k < n && k < MAX_SPLITS && shapes[i].split[k] && !strcmp(shapes[i].split[k], list[k]))
				k++;
			if (k < n || (k < MAX_SPLITS && shapes[i].split[k]) ||
				(strict && (shapes[i].flags & IGNORE_MERGES) != ignore))
				continue;
			if (!found || (prefer && !strcmp(prefer, shapes[i].name))) found = shapes[i].name;
		}
	return found;
}

enum ggu_status vocab_find_pre(const struct vocab *v, const char *prefer, const char **name, struct ggu_error *err)
{
	*name = NULL;
	TRY(by_hash(v, name, err));
	if (!*name) *name = strcmp(v->model, "bert") ? by_shape(v, prefer) : prefer;
	return GGU_OK;
}

/* ---- understood ---- */

/* Sets the pipeline to the trees of a shape; added tokens stay. */
static void take_shape(struct vocab *v, const struct shape *s)
{
	json_t *steps = json_array();
	for (size_t i = 0; i < MAX_SPLITS && s->split[i]; i++)
		json_array_append_new(steps, json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern", "Regex",
			s->split[i], "behavior", "Isolated", "invert", 0));
	json_array_append_new(steps, json_pack("{s:s,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0,
		"use_regex", 0));
	json_object_set_new(v->pipeline, "pre_tokenizer",
		json_pack("{s:s,s:o}", "type", "Sequence", "pretokenizers", steps));
	if (s->flags & NFC) json_object_set_new(v->pipeline, "normalizer", json_pack("{s:s}", "type", "NFC"));
	else json_object_del(v->pipeline, "normalizer");
	json_object_set_new(v->pipeline, "decoder", json_pack("{s:s}", "type", "ByteLevel"));
	json_object_set_new(v->pipeline, "model", json_pack("{s:s,s:s,s:b}", "type", "BPE", "order", "merges",
		"ignore_merges", !!(s->flags & IGNORE_MERGES)));
}

static const struct shape *shape_named(const char *name)
{
	for (size_t i = 0; i < N_SHAPES; i++) if (!strcmp(shapes[i].name, name)) return shapes + i;
	return NULL;
}

/* Is shape i the same as an earlier one with another name? */
static bool was_before(size_t i)
{
	const struct shape *s = shapes + i;
	for (size_t k = 0; k < i; k++) {
		size_t n = 0;
		while (n < MAX_SPLITS && same_text(s->split[n], shapes[k].split[n])) n++;
		if ((n == MAX_SPLITS || (!s->split[n] && !shapes[k].split[n])) &&
			!((s->flags ^ shapes[k].flags) & (IGNORE_MERGES | NFC)))
			return true;
	}
	return false;
}

enum ggu_status vocab_guess_pre(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	const char *class = vocab_json_str(f->config, "tokenizer_class");
	for (size_t i = 0; i < N_SHAPES; i++) {
		const char *name = NULL;
		if (was_before(i)) continue;
		take_shape(v, shapes + i);
		TRY(by_hash(v, &name, err));
		if (name && shape_named(name) && !strcmp(shape_named(name)->split[0], shapes[i].split[0]))
			return GGU_OK;
	}
	/* of the classes that need no tokenizer.json, Qwen2's alone has patterns of its own */
	take_shape(v, shape_named(class && text_starts(class, "Qwen2Tokenizer") ? "qwen2" : "gpt-2"));
	return GGU_OK;
}

bool vocab_pre_is_known(const char *pre)
{
	size_t i = 0;
	while (i < N_KNOWN && strcmp(known[i].name, pre) != 0) i++;
	return i < N_KNOWN || shape_named(pre);
}

bool vocab_pre_adds_bos(const char *pre)
{
	const struct shape *s = pre ? shape_named(pre) : NULL;
	return s && s->flags & BOS;
}

enum ggu_status vocab_pipeline_from_pre(struct vocab *v, const char *pre, struct ggu_error *err)
{
	const struct shape *s = shape_named(pre);
	if (!s)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "tokenizer.ggml.pre",
			"pre-tokenizer '%.60s' is not supported", pre);
	json_object_set_new(v->pipeline, "added_tokens", vocab_added_by_type(v));
	take_shape(v, s);
	if (vocab_pre_adds_bos(pre) && v->add[VOCAB_BOS] < 0) v->add[VOCAB_BOS] = 1;
	return GGU_OK;
}
