/* SPDX-License-Identifier: MIT
 * test_tokenizer.c - vocabularies that are not what they say, decoding round trips, and the streaming detokenizer.
 * Each hostile vocabulary is a folder with one file, tokenizer.json; it is refused or it works, and never crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../model/tokenizer.h"

static char dir[] = "/tmp/gguf-test-vocab.XXXXXX";
static char path[64];

static enum ggu_status load(struct vocab **v, const char *json, struct ggu_error *err)
{
	struct vocab_hints h = { .n_vocab = -1 };
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(json, f);
	fclose(f);
	*v = NULL;
	return vocab_from_dir(v, dir, &h, err);
}

/* Both ways with whatever the vocabulary is; 1 if it loads. */
static int survives(const char *json)
{
	static const char text[] = "ab a\xff\xc3\xa4 <x> \xf0\x9f\x98\x80\0b";
	struct ggu_error err = { 0 };
	struct vocab *v;
	struct tokenizer *t;
	int32_t *ids = NULL;
	size_t n = 0, cap = 0, bytes;
	char *out;
	int loads = 0;
	if (load(&v, json, &err)) {
		assert_int_not_equal(err.code, GGU_OK);
		return 0;
	}
	if (!tokenizer_new(&t, v, &err)) {
		loads = 1;
		if (!tokenizer_encode(t, text, sizeof text - 1, TOKENIZE_BOS | TOKENIZE_EOS | TOKENIZE_SPECIAL, &ids, &n, &cap, &err)) {
			for (size_t i = 0; i < n; i++) assert_true(ids[i] >= 0 && (size_t)ids[i] < vocab_count(v));
			if (!tokenizer_decode(t, ids, n, true, &out, &bytes, &err)) free(out);
		}
		tokenizer_free(t);
	}
	free(ids);
	vocab_free(v);
	return loads;
}

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xc4\xa0\":3},\"merges\":[\"a b\"]}"
#define BYTES "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"}"

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
		"{" MODEL ",\"added_tokens\":[{\"id\":-5,\"content\":\"x\"}]," BYTES "}",
		"{" MODEL ",\"added_tokens\":[{\"id\":4,\"content\":7}]," BYTES "}",
		"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a\"},\"behavior\":\"Isolated\",\"invert\":false}}",
	};
	static const char *const odd[] = {
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\":0},\"merges\":[\"\",\" \",\"a\",\"a  b\"]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[\"a b\",\"x y\",\"a a\"]}," BYTES "}",
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":7}," BYTES "}",
		"{" MODEL ",\"added_tokens\":7," BYTES "}",
		"{" MODEL ",\"added_tokens\":[{\"id\":4,\"content\":\"\"}]," BYTES "}",
		"{" MODEL ",\"added_tokens\":[{\"id\":4,\"content\":\"<x>\",\"lstrip\":true,\"rstrip\":true,\"special\":true}]," BYTES "}",
		"{" MODEL ",\"normalizer\":[],\"pre_tokenizer\":7,\"decoder\":\"x\",\"post_processor\":{\"type\":7}}",
		"{" MODEL ",\"normalizer\":{\"type\":\"NoSuch\"}}",
		"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"x\"}}",
		"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\"},\"content\":\"x\"}}",
		"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\"},\"behavior\":\"Removed\",\"invert\":true}}",
		"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[7,null,{}]}}",
		"{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"x\",99],\"sep\":7}}",
		"{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[7,{\"SpecialToken\":{\"id\":\"x\"}},{\"Sequence\":{}}],\"special_tokens\":{\"x\":{\"ids\":[1,-1,99,\"a\"]}}}}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof refused/sizeof *refused; i++) {
		if (survives(refused[i])) fail_msg("accepted: %s", refused[i]);
	}
	for (size_t i = 0; i < sizeof odd/sizeof *odd; i++) survives(odd[i]);
}

/* A byte-level vocabulary of the 256 bytes, as GPT-2 writes them, and a token of half a character. */
static void byte_vocab(char *to, size_t size)
{
	size_t n = (size_t)snprintf(to, size, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
	for (int b = 0, next = 256; b < 256; b++) {
		int shown = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
		n += (size_t)snprintf(to + n, size - n, "%s\"\\u%04x\":%d", b ? "," : "", shown ? b : next, b);
		next += !shown;
	}
	snprintf(to + n, size - n, ",\"\\u00c3\\u00a4\":256},\"merges\":[\"\\u00c3 \\u00a4\"]}," BYTES "}");
}

static void round_trips(void **state)
{
	static const char *const texts[] = { "", "plain text", " two  blanks\n\n\ttab", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\x80\xff\xc3 cut \xf0\x9f\x98", "\xed\xa0\xbd\xc0\xaf" };
	static char json[16384];
	struct ggu_error err = { 0 };
	struct vocab *v;
	struct tokenizer *t;
	(void)state;
	byte_vocab(json, sizeof json);
	assert_int_equal(load(&v, json, &err), GGU_OK);
	assert_int_equal(tokenizer_new(&t, v, &err), GGU_OK);
	for (size_t i = 0; i < sizeof texts/sizeof *texts; i++) {
		int32_t *ids = NULL;
		size_t n = 0, cap = 0, bytes, at = 0, whole = strlen(texts[i]);
		struct detokenizer *d;
		char *out, streamed[64];
		const char *part;
		assert_int_equal(tokenizer_encode(t, texts[i], whole, TOKENIZE_SPECIAL, &ids, &n, &cap, &err), GGU_OK);
		assert_int_equal(tokenizer_decode(t, ids, n, true, &out, &bytes, &err), GGU_OK);
		assert_int_equal(bytes, whole);
		assert_memory_equal(out, texts[i], bytes);
		assert_int_equal(detokenizer_new(&d, t), GGU_OK);
		for (size_t k = 0; k < n; k++) {
			assert_int_equal(detokenizer_add(d, ids[k], &part, &bytes), GGU_OK);
			memcpy(streamed + at, part, bytes);
			at += bytes;
			/* never inside a character of a well-formed text */
			if (i < 4) assert_true(((unsigned char)texts[i][at] & 0xc0) != 0x80);
		}
		detokenizer_end(d, &part, &bytes);
		if (bytes) memcpy(streamed + at, part, bytes);
		at += bytes;
		assert_int_equal(at, whole);
		assert_memory_equal(streamed, texts[i], at);
		detokenizer_free(d);
		free(out);
		free(ids);
	}
	{
		int32_t beyond = 257, below = -1;
		char *out;
		size_t bytes;
		assert_int_equal(tokenizer_decode(t, &beyond, 1, true, &out, &bytes, &err), GGU_ERR_RANGE);
		assert_int_equal(tokenizer_decode(t, &below, 1, true, &out, &bytes, &err), GGU_ERR_RANGE);
	}
	tokenizer_free(t);
	vocab_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(hostile), cmocka_unit_test(round_trips) };
	int bad;
	if (!mkdtemp(dir)) return 1;
	snprintf(path, sizeof path, "%s/tokenizer.json", dir);
	bad = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(dir);
	return bad;
}
