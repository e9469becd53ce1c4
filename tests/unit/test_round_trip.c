/* SPDX-License-Identifier: MIT
 * test_round_trip.c - decode(encode(text)) is the text, at once and through the streaming detokenizer. */
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
#include "../lib/first_ids.h"
#include "../lib/vocab_bytes.h"

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

/* decode(encode(text)) is the text, at once and token by token; streamed parts end between characters, if the text
 * consists of such. */
static void round_trip(struct tokenizer *t, const char *text, size_t whole, bool utf8)
{
	struct ggu_error err = { 0 };
	int32_t *ids = NULL;
	size_t n = 0, bytes, at = 0;
	struct detokenizer *d;
	char *out;
	const char *part;
	assert_int_equal(tokenizer_encode(t, text, whole, 0, &ids, &n, &err), GGU_OK);
	for (size_t k = 0, got; k <= n + 1; k += 1 + n/8)
		assert_true(first_ids_are(t, text, whole, 0, k, ids, n, &got));
	assert_int_equal(tokenizer_decode(t, ids, n, true, &out, &bytes, &err), GGU_OK);
	assert_int_equal(bytes, whole);
	assert_memory_equal(out, text, bytes);
	assert_int_equal(detokenizer_new(&d, t, NULL), GGU_OK);
	for (size_t k = 0; k <= n; k++) {
		if (k < n) assert_int_equal(detokenizer_add(d, ids[k], &part, &bytes, NULL), GGU_OK);
		else detokenizer_end(d, &part, &bytes);
		assert_true(bytes <= whole - at);
		if (bytes) assert_memory_equal(part, text + at, bytes);
		at += bytes;
		if (utf8 && at < whole) assert_true(((unsigned char)text[at] & 0xc0) != 0x80);
	}
	assert_int_equal(at, whole);
	detokenizer_free(d);
	free(out);
	free(ids);
}

static uint32_t seed = 2463534242u;
static uint32_t any(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed%below;
}

/* A character of one to four bytes, but no surrogate, and not U+2581, which stands for a blank. */
static size_t any_char(char *to)
{
	static const uint32_t most[] = { 0x80, 0x800, 0x10000, 0x110000 };
	uint32_t c = any(most[any(4)]);
	if (c >= 0xd800 && c < 0xe000) c -= 0x800;
	if (c == 0x2581) c = ' ';
	if (c < 0x80) { to[0] = (char)c; return 1; }
	if (c < 0x800) { to[0] = (char)(0xc0 | c >> 6); to[1] = (char)(0x80 | (c & 63)); return 2; }
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

static size_t any_text(char *to, size_t most)
{
	size_t n = 0;
	for (size_t k = any((uint32_t)most/4 + 1); k; k--)
		if (any(3)) to[n++] = " ab\n"[any(4)];
		else n += any_char(to + n);
	return n;
}

static void round_trips(void **state)
{
	static const char *const texts[] = { "", "plain text", " two  blanks\n\n\ttab",
		"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\x80\xff\xc3 cut \xf0\x9f\x98", "\xed\xa0\xbd\xc0\xaf" };
	static char json[16384];
	const int32_t beyond = 257, below = -1;
	struct ggu_error err = { 0 };
	struct vocab *v;
	struct tokenizer *t;
	char text[256], *out;
	size_t n;
	(void)state;
	byte_vocab(json, sizeof json);
	assert_int_equal(load(&v, json, &err), GGU_OK);
	assert_int_equal(tokenizer_new(&t, v, &err), GGU_OK);
	for (size_t i = 0; i < sizeof texts/sizeof *texts; i++) round_trip(t, texts[i], strlen(texts[i]), i < 4);
	for (int i = 0; i < 2000; i++) {
		n = any(sizeof text);
		for (size_t k = 0; k < n; k++) text[k] = (char)any(256);
		round_trip(t, text, n, false);
		n = any_text(text, sizeof text);
		round_trip(t, text, n, true);
	}
	assert_int_equal(tokenizer_decode(t, &beyond, 1, true, &out, &n, &err), GGU_ERR_RANGE);
	assert_int_equal(tokenizer_decode(t, &below, 1, true, &out, &n, &err), GGU_ERR_RANGE);
	tokenizer_free(t);
	vocab_free(v);
}

/* SentencePiece with all byte pieces: every text of well-formed characters comes back. */
static void spm_round_trips(void **state)
{
	static const char *const more[] = { "\xe2\x96\x81", "a", "b", "ab", "\xe2\x96\x81" "a",
		"\xe2\x96\x81\xe2\x96\x81", "\xc3\xa4" };
	enum { MORE = sizeof more/sizeof *more };
	static struct ggu_str tokens[256 + MORE];
	static char names[256][8];
	static int32_t types[256 + MORE];
	static float scores[256 + MORE];
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_error err = { 0 };
	struct vocab *v;
	struct tokenizer *t;
	char text[256];
	(void)state;
	assert_non_null(m);
	for (int i = 0; i < 256 + MORE; i++) {
		if (i < 256) snprintf(names[i], sizeof names[i], "<0x%02X>", (unsigned)i);
		tokens[i].p = i < 256 ? names[i] : more[i - 256];
		tokens[i].n = strlen(tokens[i].p);
		types[i] = i < 256 ? VOCAB_BYTE : VOCAB_NORMAL;
		scores[i] = (float)-i;
	}
	ggu_meta_set_str(m, "tokenizer.ggml.model", "llama", 5);
	ggu_meta_set_strs(m, "tokenizer.ggml.tokens", tokens, 256 + MORE);
	ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, scores, 256 + MORE);
	ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, types, 256 + MORE);
	assert_int_equal(vocab_from_meta(&v, m, &err), GGU_OK);
	ggu_meta_free(m);
	assert_int_equal(tokenizer_new(&t, v, &err), GGU_OK);
	for (int i = 0; i < 2000; i++) round_trip(t, text, any_text(text, sizeof text), true);
	tokenizer_free(t);
	vocab_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(round_trips), cmocka_unit_test(spm_round_trips) };
	int bad;
	if (!scratch_folder(dir)) return 1;
	printf("# seed %u\n", (unsigned)seed);
	bad = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return bad;
}
