/* SPDX-License-Identifier: MIT
 * test_tokenizer.c - vocabularies that are not what they say, and what is unknown.
 * A hostile vocabulary is a folder with one file, tokenizer.json or tokenizer.model, or the metadata of a GGUF; it is
 * refused or it works, and never crashes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../model/vocab/tokenizer.h"
#include "../../model/vocab/vocab_internal.h"
#include "../lib/first_ids.h"
#include "../lib/vocab_bytes.h"

/* Both directions with the vocabulary, whatever it is, which is then freed; 1 if it makes a tokenizer. */
static int works(struct vocab *v)
{
	static const char text[] = "ab a\xff\xc3\xa4 <x> \xf0\x9f\x98\x80\0b  ab";
	struct ggu_error err = { 0 };
	struct tokenizer *t;
	int32_t *ids = NULL;
	size_t n = 0, bytes;
	char *out;
	int made = 0;
	if (!tokenizer_new(&t, v, &err)) {
		made = 1;
		if (!tokenizer_encode(t, text, sizeof text - 1, TOKENIZE_BOS | TOKENIZE_EOS | TOKENIZE_SPECIAL, &ids,
			&n, &err)) {
			for (size_t i = 0; i < n; i++) assert_true(ids[i] >= 0 && (size_t)ids[i] < vocab_count(v));
			for (size_t k = 0, got; k <= n + 1; k++)
				assert_true(first_ids_are(t, text, sizeof text - 1, TOKENIZE_BOS | TOKENIZE_EOS |
					TOKENIZE_SPECIAL, k, ids, n, &got));
			if (!tokenizer_decode(t, ids, n, true, &out, &bytes, &err)) free(out);
		}
		for (int32_t id = -1; (size_t)id + 1 <= vocab_count(v) && id < 100; id++) vocab_is_end(v, id);
		tokenizer_free(t);
	} else assert_int_not_equal(err.code, GGU_OK);
	free(ids);
	vocab_free(v);
	return made;
}

static int survives(const char *json)
{
	struct ggu_error err = { 0 };
	struct vocab *v;
	if (!load(&v, json, &err)) return works(v);
	assert_int_not_equal(err.code, GGU_OK);
	return 0;
}

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xc4\xa0\":3},\"merges\":[\"a b\"]}"

static void hostile(void **state)
{
	static const char *const refused[] = {
		"", "[]", "{", "{}", "7", "{\"model\":7}", "{\"model\":{\"type\":\"BPE\",\"vocab\":[]}}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":9223372036854775807},\"merges\":[]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":\"0\"},\"merges\":[]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0.5},\"merges\":[]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[7]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4194304},\"merges\":[]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\\ud800\":0},\"merges\":[]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"end_of_word_suffix\":\"</w>\"},"
			BYTES "}",
		"{" MODEL ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}",
		"{\"model\":{\"type\":\"WordPiece\",\"vocab\":[\"a\"]}}",
		"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"continuing_subword_prefix\":\"@@\"}}",
		"{" MODEL ",\"added_tokens\":[{\"id\":-5,\"content\":\"x\"}]," BYTES "}",
		"{" MODEL ",\"added_tokens\":[{\"id\":4,\"content\":7}]," BYTES "}",
		"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a\"},"
			"\"behavior\":\"Isolated\",\"invert\":false}}",
	};
	static const char *const odd[] = {
		"{\"model\":{\"type\":\"Unigram\",\"unk_id\":9,\"byte_fallback\":true,\"vocab\":[[\"\",1e300],"
			"[\"\u00e4\",-1e300],[\"<0xff>\",0],[\"ab\",-1]]}}",
		"{" MODEL ",\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}}",
		"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}",
		"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"\":0,\"##\":1,\"##b\":2,\"[UNK]\":3},"
			"\"unk_token\":\"none\",\"max_input_chars_per_word\":1000000000},"
				"\"decoder\":{\"type\":\"WordPiece\",\"cleanup\":true},"
			"\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":false,\"strip_accents\":true},"
				"\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\":0},\"merges\":[\"\",\" \",\"a\",\"a  b\"]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[\"a b\",\"x y\",\"a a\"]},"
			BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":7}," BYTES "}",
		"{" MODEL ",\"added_tokens\":7," BYTES "}",
		"{" MODEL ",\"added_tokens\":[{\"id\":4,\"content\":\"\"}]," BYTES "}",
		"{" MODEL ",\"added_tokens\":[{\"id\":4,\"content\":\"<x>\",\"lstrip\":true,\"rstrip\":true,"
			"\"special\":true}]," BYTES "}",
		"{" MODEL ",\"normalizer\":[],\"pre_tokenizer\":7,\"decoder\":\"x\",\"post_processor\":{\"type\":7}}",
		"{" MODEL ",\"normalizer\":{\"type\":\"NoSuch\"}}",
		"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"x\"}}",
		"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\"},\"content\":\"x\"}}",
		"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\"},"
			"\"behavior\":\"Removed\",\"invert\":true}}",
		"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[7,null,{}]}}",
		"{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"x\",99],"
			"\"sep\":7}}",
		"{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[7,"
			"{\"SpecialToken\":{\"id\":\"x\"}},{\"Sequence\":{}}],"
				"\"special_tokens\":{\"x\":{\"ids\":[1,-1,99,\"a\"]}}}}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof refused/sizeof *refused; i++) {
		if (survives(refused[i])) fail_msg("accepted: %s", refused[i]);
	}
	for (size_t i = 0; i < sizeof odd/sizeof *odd; i++) survives(odd[i]);
}

/* before, then `open` n times, then `shut` as often */
static char *nested(const char *before, const char *open, const char *shut, size_t n, const char *after)
{
	size_t size = strlen(before) + n*(strlen(open) + strlen(shut)) + strlen(after) + 1;
	char *p = malloc(size), *q = p;
	assert_non_null(p);
	q += sprintf(q, "%s", before);
	for (size_t i = 0; i < n; i++) q += sprintf(q, "%s", open);
	for (size_t i = 0; i < n; i++) q += sprintf(q, "%s", shut);
	sprintf(q, "%s", after);
	return p;
}

/* Nesting, lengths and counts that a careless reader would trust. */
static void without_end(void **state)
{
	static const struct { const char *before, *open, *shut, *after; size_t n; int loads; } cases[] = {
		{ "", "[", "]", "", 100000, 0 }, { "{\"model\":", "{\"a\":", "}", "}", 100000, 0 },
		{ "{" MODEL ",\"pre_tokenizer\":", "{\"type\":\"Sequence\",\"pretokenizers\":[", "]}", "}", 15, 1 },
		{ "{" MODEL ",\"pre_tokenizer\":", "{\"type\":\"Sequence\",\"pretokenizers\":[", "]}", "}", 18, 0 },
		{ "{" MODEL ",\"normalizer\":", "{\"type\":\"Sequence\",\"normalizers\":[", "]}", "}", 500, 0 },
		{ "{" MODEL "," BYTES ",\"post_processor\":", "{\"type\":\"Sequence\",\"processors\":[", "]}", "}",
			500, 1 },
		{ "{" MODEL ",\"decoder\":", "{\"type\":\"Sequence\",\"decoders\":[", "]}", "}", 500, 1 },
		{ "{" MODEL ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Lowercase\"}",
			",{\"type\":\"NFC\"}", "", "]}}", 64, 0 },
		{ "{" MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"}",
			",{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "", "]}}", 30, 0 },
		{ "{" MODEL "," BYTES ",\"added_tokens\":[{\"id\":4,\"content\":\"", "a", "", "\"}]}", 4096, 1 },
		{ "{" MODEL "," BYTES ",\"added_tokens\":[{\"id\":4,\"content\":\"", "a", "", "\"}]}", 4097, 0 },
		{ "{" MODEL "," BYTES ",\"added_tokens\":[{\"id\":4,\"content\":\"x\"}",
			",{\"id\":5,\"content\":\"x\",\"single_word\":true}", "", "]}", 20000, 1 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
		char *json = nested(cases[i].before, cases[i].open, cases[i].shut, cases[i].n, cases[i].after);
		if (survives(json) != cases[i].loads) fail_msg("case %zu: %.100s", i, json);
		free(json);
	}
}

/* A pattern that needs memory for every repetition of a group, on more text than compiled patterns have room for; and
 * one that tries all ways, and gives up. */
static void deep_patterns(void **state)
{
	static const char *const patterns[] = { "(?:a|(b))+", "(?:(?:a+)+)+[bc]" };
	static char text[100001];
	(void)state;
	for (int i = 0; i < 2; i++) {
		char json[512];
		struct ggu_error err = { 0 };
		struct vocab *v;
		struct tokenizer *t;
		int32_t *ids = NULL;
		size_t n = 0;
		for (size_t k = 0; k + 1 < sizeof text; k++) text[k] = k%3 || i ? 'a' : 'b';
		snprintf(json, sizeof json,
			"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},"
				"\"behavior\":\"Isolated\"}}", patterns[i]);
		assert_int_equal(load(&v, json, &err), GGU_OK);
		assert_int_equal(tokenizer_new(&t, v, &err), GGU_OK);
		assert_int_equal(tokenizer_encode(t, text, sizeof text - 1, 0, &ids, &n, &err),
			i ? GGU_ERR_FORMAT : GGU_OK);
		tokenizer_free(t);
		vocab_free(v);
		free(ids);
	}
}

/* ---- metadata of a GGUF ---- */

enum { N = 8 };
static struct ggu_meta *spm_meta(void)
{
	static const char *const tokens[N] = { "<unk>", "<s>", "</s>", "\xe2\x96\x81", "a", "b", "ab", "<0x0A>" };
	static const int32_t types[N] = { VOCAB_UNKNOWN, VOCAB_CONTROL, VOCAB_CONTROL, VOCAB_NORMAL, VOCAB_NORMAL,
		VOCAB_NORMAL, VOCAB_NORMAL, VOCAB_BYTE };
	static const float scores[N] = { 0, 0, 0, -3, -1, -2, -3, 0 };
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_str list[N];
	assert_non_null(m);
	for (int i = 0; i < N; i++) list[i] = (struct ggu_str){ tokens[i], strlen(tokens[i]) };
	ggu_meta_set_str(m, "tokenizer.ggml.model", "llama", 5);
	ggu_meta_set_strs(m, "tokenizer.ggml.tokens", list, N);
	ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, scores, N);
	ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, types, N);
	return m;
}

static int meta_works(struct ggu_meta *m)
{
	struct ggu_error err = { 0 };
	struct vocab *v;
	int made = 0;
	if (!vocab_from_meta(&v, m, &err)) made = works(v);
	else assert_int_not_equal(err.code, GGU_OK);
	ggu_meta_free(m);
	return made;
}

static void set_text(struct ggu_meta *m, const char *key, const char *text)
{
	ggu_meta_set_str(m, key, text, strlen(text));
}

static void hostile_numbers(void **state)
{
	static const float odd[N] = { NAN, INFINITY, -INFINITY, NAN, NAN, -NAN, INFINITY, 0 };
	static const int32_t types[N] = { 0, 7, -1, INT32_MIN, INT32_MAX, 5, 6, 4 };
	static const int64_t ids[] = { -1, N, INT32_MAX, INT64_MAX, INT64_MIN };
	static const char *const keys[] = { "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
		"tokenizer.ggml.unknown_token_id" };
	struct ggu_meta *m;
	(void)state;
	assert_int_equal(meta_works(spm_meta()), 1);
	m = spm_meta();
	ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, odd, N);
	assert_int_equal(meta_works(m), 1);
	m = spm_meta();
	ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, types, N);
	assert_int_equal(meta_works(m), 1);
	for (size_t i = 0; i < 15; i++) {
		m = spm_meta();
		ggu_meta_set_int(m, keys[i%3], GGU_I64, ids[i/3]);
		ggu_meta_set_bool(m, "tokenizer.ggml.add_bos_token", true);
		ggu_meta_set_bool(m, "tokenizer.ggml.add_eos_token", true);
		assert_int_equal(meta_works(m), 1);
	}
	m = spm_meta();
	set_text(m, keys[0], "one");
	ggu_meta_set_int(m, "tokenizer.ggml.add_bos_token", GGU_I32, 1);
	assert_int_equal(meta_works(m), 1);
	for (int n = 0; n < 2; n++) {           /* arrays of another length */
		m = spm_meta();
		ggu_meta_set_array(m, n ? "tokenizer.ggml.scores" : "tokenizer.ggml.token_type", n ? GGU_F32 : GGU_I32,
			odd, N - 1);
		assert_int_equal(meta_works(m), 0);
		m = spm_meta();
		set_text(m, n ? "tokenizer.ggml.scores" : "tokenizer.ggml.token_type", "12345678");
		assert_int_equal(meta_works(m), 0);
	}
	m = spm_meta();
	ggu_meta_remove(m, "tokenizer.ggml.scores");
	assert_int_equal(meta_works(m), 0);
	m = spm_meta();
	ggu_meta_set_array(m, "tokenizer.ggml.tokens", GGU_I32, types, N);
	assert_int_equal(meta_works(m), 0);
	m = spm_meta();
	ggu_meta_remove(m, "tokenizer.ggml.tokens");
	assert_int_equal(meta_works(m), 0);
}

static void hostile_texts(void **state)
{
	static char huge[1 << 20];
	static const struct ggu_str bad[N] = { { "", 0 }, { "", 0 }, { "a", 1 }, { "a", 1 }, { huge, sizeof huge },
		{ "\0", 1 }, { "\xff\xc3", 2 }, { "<0xZZ>", 6 } };
	static const struct ggu_str merges[] = { { "", 0 }, { " ", 1 }, { "  ", 2 }, { "a", 1 }, { "x y", 3 },
		{ "a  b", 4 }, { "a a", 3 }, { huge, sizeof huge }, { "a b c", 5 } };
	static const char *const pipelines[] = { "", "{", "[]", "7", "{\"a\":\"\\udc00\"}", "{\"model\":7}",
		"{\"added_tokens\":[7]}" };
	static const char *const odd[] = { "{}", "{\"added_tokens\":{}}",
		"{\"model\":{\"order\":\"scores\",\"user_defined\":[-1,99,\"a\",4,4]}}",
		"{\"model\":{\"unk_token\":\"none\",\"byte_fallback\":true}}" };
	struct ggu_meta *m;
	(void)state;
	memset(huge, 'a', sizeof huge);
	for (int gpt2 = 0; gpt2 < 2; gpt2++) {
		m = spm_meta();
		if (gpt2) set_text(m, "tokenizer.ggml.model", "gpt2");
		ggu_meta_set_strs(m, "tokenizer.ggml.tokens", bad, N);
		ggu_meta_set_strs(m, "tokenizer.ggml.merges", merges, sizeof merges/sizeof *merges);
		assert_int_equal(meta_works(m), 1);
	}
	m = spm_meta();
	ggu_meta_set_strs(m, "tokenizer.ggml.tokens", &(struct ggu_str){ huge, sizeof huge }, 1);
	ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, &(int32_t){ VOCAB_CONTROL }, 1);
	ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, &(float){ 0 }, 1);
	assert_int_equal(meta_works(m), 0);
	for (size_t i = 0; i < sizeof pipelines/sizeof *pipelines + sizeof odd/sizeof *odd; i++) {
		size_t k = sizeof pipelines/sizeof *pipelines;
		m = spm_meta();
		set_text(m, "gguf-utils.tokenizer", i < k ? pipelines[i] : odd[i - k]);
		if (i >= k) assert_int_equal(meta_works(m), 1);
		else if (meta_works(m) && i != 5) fail_msg("accepted: %s", pipelines[i]);
	}
	m = spm_meta();
	set_text(m, "tokenizer.ggml.model", "gpt2");
	set_text(m, "tokenizer.ggml.pre", "no such name");
	assert_int_equal(meta_works(m), 0);
	m = spm_meta();
	set_text(m, "tokenizer.ggml.model", "bert");
	assert_int_equal(meta_works(m), 1);
	m = spm_meta();
	set_text(m, "tokenizer.ggml.model", "rwkv");
	assert_int_equal(meta_works(m), 0);
	m = spm_meta();
	ggu_meta_set_int(m, "tokenizer.ggml.model", GGU_I32, 1);
	assert_int_equal(meta_works(m), 0);
}

/* ---- tokenizer.model ---- */

/* SentencePiece's protobuf: pieces of one letter each, then a trainer_spec that says BPE. With any cut, and with any
 * byte changed, it is refused or works. */
static void hostile_spm(void **state)
{
	static const unsigned char model[] = {
		10, 14, 10, 5, '<', 'u', 'n', 'k', '>', 21, 0, 0, 0, 0, 24, 2,          /* piece, score, type unknown */
		10, 8, 10, 1, 'a', 21, 0, 0, 128, 191,
		10, 10, 10, 1, 'b', 21, 0, 0, 0, 192, 24, 4,
		10, 9, 10, 2, 'a', 'b', 21, 0, 0, 64, 192,
		18, 2, 24, 2,                                                           /* trainer_spec.model_type */
		26, 4, 24, 1, 32, 0,                                                    /* normalizer_spec */
	};
	unsigned char changed[sizeof model];
	struct ggu_error err = { 0 };
	struct vocab *v;
	(void)state;
	assert_int_equal(load_bytes(&v, "tokenizer.model", model, sizeof model, &err), GGU_OK);
	assert_int_equal(vocab_count(v), 4);
	assert_int_equal(works(v), 1);
	memcpy(changed, model, sizeof model);
	memcpy(changed + sizeof model - 4, (const unsigned char[]){ 18, 2, 0, 0 }, 4);       /* precompiled_charsmap */
	assert_int_equal(load_bytes(&v, "tokenizer.model", changed, sizeof changed, &err), GGU_ERR_TRUNCATED);
	assert_string_equal(err.where, "precompiled_charsmap");
	for (size_t n = 0; n < sizeof model; n++) if (!load_bytes(&v, "tokenizer.model", model, n, &err)) works(v);
	for (size_t i = 0; i < sizeof model; i++)
		for (int bit = 0; bit < 8; bit++) {
			memcpy(changed, model, sizeof model);
			changed[i] ^= (unsigned char)(1 << bit);
			if (!load_bytes(&v, "tokenizer.model", changed, sizeof changed, &err)) works(v);
		}
}

/* A later trainer_spec adds to an earlier one. */
static void blanks_behind_words_are_refused(void **state)
{
	unsigned char model[] = {
		10, 14, 10, 5, '<', 'u', 'n', 'k', '>', 21, 0, 0, 0, 0, 24, 2,          /* piece, score, type unknown */
		18, 2, 24, 2,                                                           /* trainer_spec.model_type */
		18, 3, 192, 1, 1,                                       /* ... and its treat_whitespace_as_suffix */
	};
	struct ggu_error err = { 0 };
	struct vocab *v;
	(void)state;
	assert_int_equal(load_bytes(&v, "tokenizer.model", model, sizeof model, &err), GGU_ERR_UNSUPPORTED);
	assert_string_equal(err.where, "trainer_spec.treat_whitespace_as_suffix");
	model[sizeof model - 1] = 0;
	assert_int_equal(load_bytes(&v, "tokenizer.model", model, sizeof model, &err), GGU_OK);
	vocab_free(v);
}

/* What m says, which is freed. The caller frees both, *v last. */
static struct tokenizer *tokenizer_of(struct ggu_meta *m, struct vocab **v)
{
	struct tokenizer *t;
	assert_int_equal(vocab_from_meta(v, m, NULL), GGU_OK);
	ggu_meta_free(m);
	assert_int_equal(tokenizer_new(&t, *v, NULL), GGU_OK);
	return t;
}

/* Adjacent unknown characters become one token, but two if there is a word between them, whether or not it was met
 * before. */
static void known_words_part_unknown_ones(void **state)
{
	static const char text[] = "ab\xc3\xa4\xc3\xa4" "ab\xc3\xa4" "ab\xc3\xa4";
	static const int32_t want[] = { 3, 6, 0, 6, 0, 6, 0 };
	struct ggu_meta *m = spm_meta();
	struct vocab *v;
	struct tokenizer *t;
	(void)state;
	t = tokenizer_of(m, &v);
	for (int round = 0; round < 3; round++) {
		int32_t *ids = NULL;
		size_t n = 0;
		assert_int_equal(tokenizer_encode(t, text, sizeof text - 1, 0, &ids, &n, NULL), GGU_OK);
		assert_int_equal(n, sizeof want/sizeof *want);
		assert_memory_equal(ids, want, sizeof want);
		free(ids);
	}
	tokenizer_free(t);
	vocab_free(v);
}

/* In a vocabulary without a token for the unknown, a byte that is no token is left out before the merges, so that its
 * neighbours meet: as in Hugging Face's tokenizers, where Falcon has no vertical tab. */
static void neighbours_of_what_is_no_token_merge(void **state)
{
	static const struct { const char *text; size_t n; int32_t want[2]; } cases[] = {
		{ "ab", 1, { 2 } }, { "azb", 1, { 2 } }, { "zazzbz", 1, { 2 } },
		{ "zz", 0, { 0 } }, { "bza", 2, { 1, 0 } },
	};
	struct vocab *v;
	struct tokenizer *t;
	(void)state;
	assert_int_equal(load(&v, "{" MODEL "," BYTES "}", NULL), GGU_OK);
	assert_int_equal(tokenizer_new(&t, v, NULL), GGU_OK);
	for (size_t i = 0; i < 2*sizeof cases/sizeof *cases; i++) {
		const char *text = cases[i/2].text;
		int32_t *ids = NULL;
		size_t n = 0;
		assert_int_equal(tokenizer_encode(t, text, strlen(text), 0, &ids, &n, NULL), GGU_OK);
		assert_int_equal(n, cases[i/2].n);
		if (n) assert_memory_equal(ids, cases[i/2].want, n*sizeof *ids);
		free(ids);
	}
	tokenizer_free(t);
	vocab_free(v);
}

/* A text ends with a control token that llama.cpp knows by name, and with <|end|> unless that ends one of the channels
 * of gpt-oss, which the tokens beside it tell. */
static void ends_are_known_by_name(void **state)
{
	static const struct { const char *token[3]; bool ends[3]; } cases[] = {
		{ { "<|eot_id|>", "<|end_of_text|>", "a" }, { true, true, false } },
		{ { "<|end|>", "<|call|>", "a" }, { true, true, false } },
		{ { "<|end|>", "<|call|>", "<|return|>" }, { false, true, true } },
		{ { "<|calls|>", "<|end|>", "<|flush|>" }, { true, false, true } },
	};
	(void)state;
	for (size_t i = 0; i < 2*sizeof cases/sizeof *cases; i++) {
		const bool control = i%2;
		struct ggu_meta *m = ggu_meta_new();
		struct ggu_str token[3];
		struct ggu_error err;
		struct vocab *v;
		int32_t types[3];
		for (int k = 0; k < 3; k++) {
			token[k] = (struct ggu_str){ cases[i/2].token[k], strlen(cases[i/2].token[k]) };
			types[k] = control ? VOCAB_CONTROL : VOCAB_NORMAL;
		}
		set_text(m, "tokenizer.ggml.model", "gpt2");
		set_text(m, "tokenizer.ggml.pre", "gpt-4o");
		ggu_meta_set_strs(m, "tokenizer.ggml.tokens", token, 3);
		ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, types, 3);
		ggu_meta_set_strs(m, "tokenizer.ggml.merges", NULL, 0);
		assert_int_equal(vocab_from_meta(&v, m, &err), GGU_OK);
		for (int k = 0; k < 3; k++) assert_int_equal(vocab_is_end(v, k), control && cases[i/2].ends[k]);
		vocab_free(v);
		ggu_meta_free(m);
	}
}

/* Scores merge a and b first, then c to them. Where the results are of type unused, they become what they were merged
 * from, though b and c would be a token. */
static void unused_tokens_fall_apart(void **state)
{
	enum { MORE = 7 };
	static const char *const tokens[MORE] = { "<unk>", "a", "b", "c", "ab", "bc", "abc" };
	static const float scores[MORE] = { 0, -9, -9, -9, -1, -2, -3 };
	static const struct { int ab, abc; size_t n; int32_t want[6]; } cases[] = {
		{ VOCAB_NORMAL, VOCAB_NORMAL, 2, { 6, 6 } },
		{ VOCAB_NORMAL, VOCAB_UNUSED, 4, { 4, 3, 4, 3 } },
		{ VOCAB_UNUSED, VOCAB_NORMAL, 2, { 6, 6 } },
		{ VOCAB_UNUSED, VOCAB_UNUSED, 6, { 1, 2, 3, 1, 2, 3 } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
		const int32_t types[MORE] = { VOCAB_UNKNOWN, VOCAB_NORMAL, VOCAB_NORMAL, VOCAB_NORMAL, cases[i].ab,
			VOCAB_NORMAL, cases[i].abc };
		struct ggu_meta *m = ggu_meta_new();
		struct ggu_str list[MORE];
		struct vocab *v;
		struct tokenizer *t;
		int32_t *ids = NULL;
		size_t n = 0;
		for (int k = 0; k < MORE; k++) list[k] = (struct ggu_str){ tokens[k], strlen(tokens[k]) };
		set_text(m, "tokenizer.ggml.model", "llama");
		ggu_meta_set_strs(m, "tokenizer.ggml.tokens", list, MORE);
		ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, scores, MORE);
		ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, types, MORE);
		ggu_meta_set_bool(m, "tokenizer.ggml.add_space_prefix", false);
		assert_int_equal(vocab_from_meta(&v, m, NULL), GGU_OK);
		assert_int_equal(tokenizer_new(&t, v, NULL), GGU_OK);
		assert_int_equal(tokenizer_encode(t, "abcabc", 6, 0, &ids, &n, NULL), GGU_OK);
		assert_int_equal(n, cases[i].n);
		assert_memory_equal(ids, cases[i].want, n*sizeof *ids);
		free(ids);
		tokenizer_free(t);
		vocab_free(v);
		ggu_meta_free(m);
	}
}

/* tokenizer.ggml.pre alone: DeepSeek LLM takes the last of several blanks as a part of the word behind them, whichever
 * script with capitals the word is of. A merge of two blanks shows that the second was not with the first. */
static void letters_of_deepseek_llm(void **state)
{
	static const char *const tokens[] = { "\xc4\xa0", "\xc4\xa0\xc4\xa0", "\xc3\xaf", "\xc2\xbc", "\xc2\xa1",
		"\xc3\xa2", "\xc4\xa6", "\xc4\xa4", "\xc3\xb0", "\xc4\xb2", "\xc4\xa2", "z", "\xc2\xa2" };
	static const struct { const char *text; size_t n; int32_t want[6]; } cases[] = {
		{ "  z", 3, { 0, 0, 11 } },
		{ "  \xef\xbc\xa1", 5, { 0, 0, 2, 3, 4 } },             /* full width A */
		{ "  \xe2\x84\x82", 5, { 0, 0, 5, 6, 7 } },             /* double-struck C */
		{ "  \xf0\x90\x90\x80", 6, { 0, 0, 8, 9, 9, 10 } },     /* Deseret */
		{ "  \xe2\x82\xa2", 4, { 1, 5, 7, 12 } },               /* a currency sign is no letter */
	};
	enum { N_TOKENS = sizeof tokens/sizeof *tokens };
	struct ggu_str list[N_TOKENS], merge = { "\xc4\xa0 \xc4\xa0", 5 };
	struct ggu_meta *m = ggu_meta_new();
	struct vocab *v;
	struct tokenizer *t;
	(void)state;
	for (int i = 0; i < N_TOKENS; i++) list[i] = (struct ggu_str){ tokens[i], strlen(tokens[i]) };
	set_text(m, "tokenizer.ggml.model", "gpt2");
	set_text(m, "tokenizer.ggml.pre", "deepseek-llm");
	ggu_meta_set_strs(m, "tokenizer.ggml.tokens", list, N_TOKENS);
	ggu_meta_set_strs(m, "tokenizer.ggml.merges", &merge, 1);
	t = tokenizer_of(m, &v);
	for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
		int32_t *ids = NULL;
		size_t n = 0;
		assert_int_equal(tokenizer_encode(t, cases[i].text, strlen(cases[i].text), 0, &ids, &n, NULL), GGU_OK);
		assert_int_equal(n, cases[i].n);
		assert_memory_equal(ids, cases[i].want, n*sizeof *ids);
		free(ids);
	}
	tokenizer_free(t);
	vocab_free(v);
}

/* The trees of a GGUF file that has only tokenizer.ggml.pre, and whether BOS is added. */
static char *trees_of(const char *pre, bool *bos)
{
	const struct ggu_str token = { "a", 1 };
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_str trees;
	struct vocab *v;
	char *copy;
	set_text(m, "tokenizer.ggml.model", "gpt2");
	set_text(m, "tokenizer.ggml.pre", pre);
	ggu_meta_set_strs(m, "tokenizer.ggml.tokens", &token, 1);
	ggu_meta_set_strs(m, "tokenizer.ggml.merges", NULL, 0);
	if (vocab_from_meta(&v, m, NULL)) fail_msg("%s is refused", pre);
	ggu_meta_free(m);
	m = ggu_meta_new();
	assert_int_equal(vocab_to_meta(v, m, NULL), GGU_OK);
	assert_true(ggu_meta_str(m, "gguf-utils.tokenizer", &trees));
	copy = strndup(trees.p, trees.n);
	*bos = vocab_add_bos(v);
	vocab_free(v);
	ggu_meta_free(m);
	return copy;
}
/* Names that llama.cpp takes for the same */
static void names_of_one_pre_tokenizer(void **state)
{
	static const char *const same[][2] = { { "lfm2", "llama-bpe" }, { "jina-v5-nano", "llama3" },
		{ "solar-open", "hunyuan" }, { "grok-2", "hunyuan" }, { "exaone4", "gpt-2" },
		{ "jina-v2-de", "gpt-2" }, { "jina-v2-es", "gpt-2" }, { "jina-v1-en", "roberta-bpe" },
		{ "jina-v2-code", "roberta-bpe" }, { "llama4", "gpt-4o" }, { "minimax-m2", "gpt-4o" },
		{ "talkie", "gpt-4o" }, { "cohere2moe", "tiny_aya" }, { "hunyuan-dense", "deepseek-v3" } };
	(void)state;
	for (size_t i = 0; i < sizeof same/sizeof *same; i++) {
		bool bos[2];
		char *a = trees_of(same[i][0], bos), *b = trees_of(same[i][1], bos + 1);
		assert_string_equal(a, b);
		assert_int_equal(bos[0], bos[1]);
		free(a);
		free(b);
	}
}

/* Where its types are all that a GGUF file says of its tokens, the unknown token's text is that token, as in llama.cpp.
 * Without special tokens it is characters, which the vocabulary lacks, and these become one. */
static void unknown_token_by_its_text(void **state)
{
	static const int32_t want[4] = { 4, 0, 0, 5 };
	struct ggu_meta *m = spm_meta();
	struct vocab *v;
	struct tokenizer *t;
	(void)state;
	ggu_meta_set_bool(m, "tokenizer.ggml.add_space_prefix", false);
	t = tokenizer_of(m, &v);
	for (int plain = 0; plain < 2; plain++) {
		int32_t *ids = NULL;
		size_t n = 0;
		assert_int_equal(tokenizer_encode(t, "a<unk><unk>b", 12, plain ? 0 : TOKENIZE_SPECIAL, &ids, &n, NULL),
			GGU_OK);
		assert_int_equal(n, 4 - plain);
		assert_memory_equal(ids, want, 2*sizeof *ids);
		assert_memory_equal(ids + 2, want + 2 + plain, (2 - plain)*sizeof *ids);
		free(ids);
	}
	tokenizer_free(t);
	vocab_free(v);
}

#define BAR "\xef\xbd\x9c"     /* U+FF5C */
/* By does_token_look_special of llama.cpp's converter, for an added token that does not say whether it is special. */
static void words_and_brackets_look_special(void **state)
{
	static const char *const special[] = { "<|x|>", "<|>", "<" BAR "x" BAR ">", "<" BAR ">", "<pad>", "<mask>",
		"<2mass>", "[@BOS@]", "<unused7>" };
	static const char *const others[] = { "", "<|", "|>", "<|x", "x|>", "<x>", "<" BAR "x|>", "<|x" BAR ">", "pad",
		"<pad", "[BOS]", "<unused7", "word" };
	(void)state;
	for (size_t i = 0; i < sizeof special/sizeof *special; i++)
		assert_true(vocab_looks_special(special[i], strlen(special[i])));
	for (size_t i = 0; i < sizeof others/sizeof *others; i++)
		assert_false(vocab_looks_special(others[i], strlen(others[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile), cmocka_unit_test(without_end), cmocka_unit_test(deep_patterns),
			cmocka_unit_test(hostile_numbers), cmocka_unit_test(hostile_texts),
		cmocka_unit_test(hostile_spm), cmocka_unit_test(blanks_behind_words_are_refused),
		cmocka_unit_test(known_words_part_unknown_ones),
			cmocka_unit_test(neighbours_of_what_is_no_token_merge),
		cmocka_unit_test(ends_are_known_by_name),
		cmocka_unit_test(unused_tokens_fall_apart),
		cmocka_unit_test(letters_of_deepseek_llm), cmocka_unit_test(names_of_one_pre_tokenizer),
		cmocka_unit_test(unknown_token_by_its_text),
		cmocka_unit_test(words_and_brackets_look_special),
	};
	int bad;
	if (!scratch_folder(dir)) return 1;
	bad = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return bad;
}
