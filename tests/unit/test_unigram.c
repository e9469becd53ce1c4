/* SPDX-License-Identifier: MIT
 * test_unigram.c - SentencePiece's table of characters and its unigram model beside slow ways of their own: keys looked
 * for one by one, and all ways to cut a text. Tables that are broken are refused or looked at within their bounds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../model/vocab/charsmap.h"
#include "../../model/vocab/tokenizer.h"
#include "../lib/first_ids.h"
#include "../lib/guard.h"

static uint64_t seed = 1;
static uint32_t drawn(uint32_t below)
{
	seed = seed*6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33)%below;
}

/* ---- a table, made as the format says ---- */

enum { UNITS = 4096, MOST_KEYS = 40, MOST_TEXT = 512 };
struct entry { char key[8]; size_t n; uint32_t value; };
struct table {
	struct entry e[MOST_KEYS];
	size_t n;
	uint32_t unit[UNITS];
	bool used[UNITS], base[UNITS];
	char texts[MOST_TEXT];
	size_t n_texts;
};

/* The children of the node at pos, whose keys agree in the first d bytes: all relative to one base. */
static void place(struct table *t, uint32_t pos, const char *prefix, size_t d)
{
	bool has[256] = { false };
	const struct entry *own = NULL;
	uint32_t at = 1;
	for (size_t i = 0; i < t->n; i++) {
		if (t->e[i].n < d || memcmp(t->e[i].key, prefix, d)) continue;
		if (t->e[i].n == d) own = t->e + i;
		else has[(uint8_t)t->e[i].key[d]] = true;
	}
	for (bool free_there = false; !free_there; at += !free_there) {
		free_there = !t->base[at] && (!own || !t->used[at]);
		for (uint32_t b = 0; b < 256; b++) free_there &= !has[b] || ((at ^ b) < UNITS && !t->used[at ^ b]);
	}
	t->base[at] = true;
	t->unit[pos] |= (pos ^ at) << 10 | (own ? 256 : 0);
	if (own) {
		t->used[at] = true;
		t->unit[at] = own->value | UINT32_C(1) << 31;
	}
	for (uint32_t b = 0; b < 256; b++) if (has[b]) {
		t->used[at ^ b] = true;
		t->unit[at ^ b] = b;
	}
	for (uint32_t b = 0; b < 256; b++) if (has[b]) {
		char longer[8];
		memcpy(longer, prefix, d);
		longer[d] = (char)b;
		place(t, at ^ b, longer, d + 1);
	}
}

static bool has_key(const struct table *t, const char *key, size_t n)
{
	for (size_t i = 0; i < t->n; i++) if (t->e[i].n == n && !memcmp(t->e[i].key, key, n)) return true;
	return false;
}

/* Keys of a few letters, high bytes among them. */
static void draw(struct table *t)
{
	*t = (struct table){ .n = 0 };
	for (size_t i = 0; i < MOST_KEYS; i++) {
		struct entry e = { .n = 1 + drawn(4), .value = (uint32_t)t->n_texts };
		size_t n_to = drawn(6);
		for (size_t k = 0; k < e.n; k++) e.key[k] = "abc\xc3\xa4\xff"[drawn(6)];
		if (has_key(t, e.key, e.n)) continue;
		for (size_t k = 0; k < n_to; k++) t->texts[t->n_texts++] = (char)('A' + drawn(26));
		t->texts[t->n_texts++] = 0;
		t->e[t->n++] = e;
	}
	t->used[0] = true;
	place(t, 0, "", 0);
}

/* The table's bytes, between guard pages. */
static char *bytes_of(const struct table *t, size_t *n)
{
	char *p;
	*n = 4 + sizeof t->unit + t->n_texts;
	p = guard_new(*n, GUARD_END);
	assert_non_null(p);
	for (size_t i = 0; i <= UNITS; i++) {
		uint32_t v = i ? t->unit[i - 1] : (uint32_t)sizeof t->unit;
		for (size_t k = 0; k < 4; k++) p[4*i + k] = (char)(v >> 8*k);
	}
	memcpy(p + 4 + sizeof t->unit, t->texts, t->n_texts);
	return p;
}

static const struct entry *slow(const struct table *t, const char *p, size_t n, bool shortest)
{
	const struct entry *best = NULL;
	for (size_t i = 0; i < t->n; i++) {
		const struct entry *e = t->e + i;
		if (e->n > n || memcmp(e->key, p, e->n) || (best && (e->n < best->n) != shortest)) continue;
		best = e;
	}
	return best;
}

static void prefixes_are_those_of_a_list(void **unused)
{
	struct table t;
	(void)unused;
	for (int round = 0; round < 50; round++) {
		struct charsmap m;
		size_t n;
		char *bytes, text[40];
		draw(&t);
		bytes = bytes_of(&t, &n);
		assert_int_equal(charsmap_read(&m, bytes, n, NULL), GGU_OK);
		for (int k = 0; k < 500; k++) {
			size_t n_text = drawn(sizeof text);
			for (size_t i = 0; i < n_text; i++) text[i] = "ab\0\xc3\xa4\xff c"[drawn(8)];
			for (int shortest = 0; shortest < 2; shortest++) {
				const struct entry *want = slow(&t, text, n_text, shortest);
				struct ggu_str to = { "", 0 };
				assert_int_equal(charsmap_find(&m, text, n_text, shortest, &to), want ? want->n : 0);
				if (want) assert_string_equal(to.p, t.texts + want->value);
				if (want) assert_int_equal(to.n, strlen(to.p));
			}
		}
		guard_free(bytes, n);
	}
}

/* Any bytes are refused, or every text can be looked up without leaving the pages. */
static void broken_tables_stay_within_their_bounds(void **unused)
{
	struct table t;
	(void)unused;
	for (int round = 0; round < 400; round++) {
		size_t n, cut;
		char *bytes, *p, text[64];
		struct charsmap m;
		struct ggu_error err = { 0 };
		draw(&t);
		bytes = bytes_of(&t, &n);
		for (uint32_t k = drawn(40); k--;) bytes[drawn((uint32_t)n)] = (char)drawn(256);
		for (size_t i = 0; i < n && round%4 == 0; i++) if (i >= 4) bytes[i] = (char)drawn(256);
		cut = round%3 ? n : 1 + drawn((uint32_t)n);
		if (round%5 == 0) bytes[cut - 1] = 0;
		p = guard_new(cut, GUARD_END);
		assert_non_null(p);
		memcpy(p, bytes, cut);
		if (charsmap_read(&m, p, cut, &err)) assert_true(err.code != GGU_OK && *err.what);
		else
			for (int k = 0; k < 100; k++) {
				struct ggu_str to;
				size_t n_text = drawn(sizeof text);
				for (size_t i = 0; i < n_text; i++) text[i] = (char)drawn(256);
				if (charsmap_find(&m, text, n_text, k%2, &to)) assert_int_equal(to.n, strlen(to.p));
			}
		guard_free(p, cut);
		guard_free(bytes, n);
	}
}

static void what_is_no_table_is_refused(void **unused)
{
	static const struct { const char *p; size_t n; enum ggu_status want; } t[] = {
		{ "", 0, GGU_ERR_TRUNCATED }, { "\4\0\0", 3, GGU_ERR_TRUNCATED }, { "\4\0\0\0", 4, GGU_ERR_TRUNCATED },
		{ "\4\0\0\0\0\0\0", 7, GGU_ERR_TRUNCATED }, { "\xfc\xff\xff\xff\0\0\0\0", 8, GGU_ERR_TRUNCATED },
		{ "\0\0\0\0", 4, GGU_ERR_FORMAT }, { "\3\0\0\0\0\0\0", 7, GGU_ERR_FORMAT },
		{ "\4\0\0\0\0\0\0\0x", 9, GGU_ERR_TRUNCATED }, { "\4\0\0\0\0\0\0\0", 8, GGU_OK },
		{ "\4\0\0\0\0\0\0\0x\0", 10, GGU_OK },
	};
	(void)unused;
	for (size_t i = 0; i < sizeof t/sizeof *t; i++) {
		struct charsmap m;
		struct ggu_error err;
		assert_int_equal(charsmap_read(&m, t[i].p, t[i].n, &err), t[i].want);
	}
}

/* ---- unigram ---- */

enum { PIECES = 60, LETTERS = 5, MOST = 120 };
static const char *const letters[LETTERS] = { "a", "b", "\xc3\xa4", "\xe2\x96\x81", "\xf0\x9f\x98\x80" };
struct pieces { char text[PIECES][32]; struct ggu_str s[PIECES]; float score[PIECES]; int32_t type[PIECES]; };

/* Scores are between least and least + 16. */
static void draw_pieces(struct pieces *p, float least)
{
	for (size_t i = 0; i < PIECES; i++) {
		*p->text[i] = 0;
		for (uint32_t k = 1 + drawn(5); k--;) strcat(p->text[i], letters[drawn(LETTERS - 1)]);
		if (!i) strcpy(p->text[i], "<unk>");
		p->s[i] = (struct ggu_str){ p->text[i], strlen(p->text[i]) };
		p->score[i] = least + (float)drawn(1 << 20)*0x1p-16f;
		p->type[i] = i ? 1 : 2;
	}
}

static struct vocab *vocab_of(const struct pieces *p)
{
	struct ggu_meta *m = ggu_meta_new();
	struct vocab *v;
	assert_non_null(m);
	assert_int_equal(ggu_meta_set_str(m, "tokenizer.ggml.model", "t5", 2), GGU_OK);
	assert_int_equal(ggu_meta_set_bool(m, "tokenizer.ggml.add_space_prefix", false), GGU_OK);
	assert_int_equal(ggu_meta_set_strs(m, "tokenizer.ggml.tokens", p->s, PIECES), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, p->score, PIECES), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, p->type, PIECES), GGU_OK);
	assert_int_equal(vocab_from_meta(&v, m, NULL), GGU_OK);
	ggu_meta_free(m);
	return v;
}

/* The first piece with these bytes; 0: none. */
static int32_t piece(const struct pieces *p, const char *text, size_t n)
{
	for (int32_t i = 1; i < PIECES; i++) if (p->s[i].n == n && !memcmp(p->s[i].p, text, n)) return i;
	return 0;
}

/* Goes through all ends of characters from left to right: the largest sum of scores that leads there, and its last
 * piece. */
static size_t slow_ids(const struct pieces *p, const char *text, size_t n, int32_t *ids)
{
	double best[MOST*4 + 1] = { 0 }, least = INFINITY;
	size_t from[MOST*4 + 1], at[MOST*4 + 1], n_at = 0, count = 0;
	int32_t by[MOST*4 + 1];
	for (size_t i = 1; i < PIECES; i++) least = fmin(least, p->score[i]);
	at[n_at++] = 0;
	for (size_t end = 1; end <= n; end++) {
		if (end < n && ((uint8_t)text[end] & 0xc0) == 0x80) continue;
		best[end] = -INFINITY;
		for (size_t k = 0; k < n_at; k++) {
			int32_t id = piece(p, text + at[k], end - at[k]);
			double score = best[at[k]] + (id ? p->score[id] : least - 10);
			if ((!id && k + 1 < n_at) || !(score > best[end])) continue;
			best[end] = score;
			from[end] = at[k];
			by[end] = id;
		}
		at[n_at++] = end;
	}
	for (size_t end = n; end; end = from[end])
		if (by[end] || from[end] == 0 || by[from[end]]) ids[count++] = by[end];
	for (size_t i = 0; i < count/2; i++) {
		int32_t id = ids[i];
		ids[i] = ids[count - 1 - i];
		ids[count - 1 - i] = id;
	}
	return count;
}

static void the_best_way_is_that_of_all(void **unused)
{
	struct pieces p;
	(void)unused;
	for (int round = 0; round < 20; round++) {
		struct vocab *v;
		struct tokenizer *t;
		draw_pieces(&p, round%4 ? -16 : 8);
		v = vocab_of(&p);
		assert_int_equal(tokenizer_new(&t, v, NULL), GGU_OK);
		for (int k = 0; k < 50; k++) {
			char text[MOST*4 + 1] = "";
			int32_t want[MOST*4], *ids = NULL;
			size_t n_want, n = 0;
			for (uint32_t c = drawn(MOST); c--;) strcat(text, letters[drawn(LETTERS)]);
			n_want = slow_ids(&p, text, strlen(text), want);
			assert_int_equal(tokenizer_encode(t, text, strlen(text), 0, &ids, &n, NULL), GGU_OK);
			assert_int_equal(n, n_want);
			if (n) assert_memory_equal(ids, want, n*sizeof *ids);
			for (size_t i = 0, got; i <= n; i++)
				assert_true(first_ids_are(t, text, strlen(text), 0, i, ids, n, &got));
			free(ids);
		}
		tokenizer_free(t);
		vocab_free(v);
	}
}

static void assert_ids(struct tokenizer *t, const char *text, const int32_t *want, size_t n_want)
{
	int32_t *ids = NULL;
	size_t n = 0;
	assert_int_equal(tokenizer_encode(t, text, strlen(text), 0, &ids, &n, NULL), GGU_OK);
	assert_int_equal(n, n_want);
	assert_memory_equal(ids, want, n*sizeof *ids);
	free(ids);
}

/* As SentencePiece does it: they are looked for before characters are replaced. */
static void user_defined_pieces_are_not_normalized(void **unused)
{
	static const char *const pieces[] = { "<unk>", "\xe2\x96\x81", "a", "b", "A", "ABABC", "AB", "ABACA" };
	static const char pipeline[] = "{\"normalizer\":{\"type\":\"SentencePiece\",\"charsmap\":true,"
		"\"add_dummy_prefix\":true,\"remove_extra_whitespaces\":true,\"escape_whitespaces\":true},"
		"\"model\":{\"type\":\"BPE\",\"order\":\"scores\",\"user_defined\":[5,4,7,6]}}";
	static const struct { const char *text; size_t n; int32_t want[8]; } cases[] = {
		{ "aAb", 4, { 1, 2, 4, 3 } }, { "BaB", 4, { 1, 3, 2, 3 } }, { "A  A ", 4, { 1, 4, 1, 4 } },
		{ "  B", 2, { 1, 3 } }, { "ABABA", 4, { 1, 6, 6, 4 } }, { "ABABC", 2, { 1, 5 } },
		{ "ABAC", 4, { 1, 6, 4, 0 } },
	};
	enum { N = sizeof pieces/sizeof *pieces };
	struct table t = { .n = 2, .e = { { "B", 1, 0 }, { "A", 1, 2 } }, .texts = "b\0a", .n_texts = 4 };
	struct ggu_str text[N];
	float score[N] = { 0 };
	int32_t type[N] = { 2, 1, 1, 1, 1, 1, 1, 1 };
	struct ggu_meta *m = ggu_meta_new();
	struct tokenizer *tok;
	struct vocab *v;
	size_t n;
	char *bytes;
	(void)unused;
	t.used[0] = true;
	place(&t, 0, "", 0);
	bytes = bytes_of(&t, &n);
	for (size_t i = 0; i < N; i++) text[i] = (struct ggu_str){ pieces[i], strlen(pieces[i]) };
	assert_int_equal(ggu_meta_set_str(m, "tokenizer.ggml.model", "llama", 5), GGU_OK);
	assert_int_equal(ggu_meta_set_strs(m, "tokenizer.ggml.tokens", text, N), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, score, N), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, type, N), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.precompiled_charsmap", GGU_U8, bytes, n), GGU_OK);
	assert_int_equal(ggu_meta_set_str(m, "gguf-utils.tokenizer", pipeline, strlen(pipeline)), GGU_OK);
	assert_int_equal(vocab_from_meta(&v, m, NULL), GGU_OK);
	ggu_meta_free(m);
	guard_free(bytes, n);
	assert_int_equal(tokenizer_new(&tok, v, NULL), GGU_OK);
	for (size_t i = 0; i < sizeof cases/sizeof *cases; i++)
		assert_ids(tok, cases[i].text, cases[i].want, cases[i].n);
	tokenizer_free(tok);
	vocab_free(v);
}

/* The first of the pieces is the unknown one. */
static struct vocab *unigram_of(const char *const *pieces, const float *score, size_t n, const char *pipeline)
{
	struct ggu_meta *m = ggu_meta_new();
	struct vocab *v;
	struct ggu_str text[PIECES];
	int32_t type[PIECES];
	assert_true(n <= PIECES);
	for (size_t i = 0; i < n; i++) {
		text[i] = (struct ggu_str){ pieces[i], strlen(pieces[i]) };
		type[i] = i ? 1 : 2;
	}
	assert_int_equal(ggu_meta_set_str(m, "tokenizer.ggml.model", "t5", 2), GGU_OK);
	assert_int_equal(ggu_meta_set_strs(m, "tokenizer.ggml.tokens", text, n), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.scores", GGU_F32, score, n), GGU_OK);
	assert_int_equal(ggu_meta_set_array(m, "tokenizer.ggml.token_type", GGU_I32, type, n), GGU_OK);
	assert_int_equal(ggu_meta_set_str(m, "gguf-utils.tokenizer", pipeline, strlen(pipeline)), GGU_OK);
	assert_int_equal(vocab_from_meta(&v, m, NULL), GGU_OK);
	ggu_meta_free(m);
	return v;
}

/* Ids that SentencePiece makes: a way through user-defined pieces is one of many, and the best one counts. */
static void user_defined_pieces_are_weighed(void **unused)
{
	static const char *const pieces[] = { "<unk>", "\xe2\x96\x81", "a", "b", "ab", "\xe2\x96\x81\xe2\x96\x81",
		"aba", "ba", "abab", "bab", "\xe2\x96\x81" "a" };
	static const char pipeline[] = "{\"normalizer\":{\"type\":\"SentencePiece\"},"
		"\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"user_defined\":[7,6,5]}}";
	static const struct { const char *text; size_t n; int32_t want[5]; } cases[] = {
		{ "   ", 2, { 1, 5 } }, { "     ", 3, { 1, 5, 5 } }, { "ababa", 2, { 6, 7 } },
		{ "abab", 2, { 2, 9 } }, { "aabab", 3, { 2, 2, 9 } }, { "ab", 1, { 4 } },
		{ "  a", 2, { 5, 2 } }, { "c   a", 3, { 0, 5, 10 } },
		{ "babab", 2, { 7, 9 } },
	};
	enum { N = sizeof pieces/sizeof *pieces };
	static const float score[N] = { 0, -2, -3, -4, -2.5f, 0, 0, 0, -20, 0.5f, -0.9f };
	struct vocab *v = unigram_of(pieces, score, N, pipeline);
	struct tokenizer *tok;
	(void)unused;
	assert_int_equal(tokenizer_new(&tok, v, NULL), GGU_OK);
	for (size_t i = 0; i < sizeof cases/sizeof *cases; i++)
		assert_ids(tok, cases[i].text, cases[i].want, cases[i].n);
	tokenizer_free(tok);
	vocab_free(v);
}

/* ... and its texts: where it removes blanks, there are none at the front of a text. */
static void blanks_in_front_are_not_decoded(void **unused)
{
	static const char *const pieces[] = { "<unk>", "\xe2\x96\x81", "\xe2\x96\x81" "a",
		"\xe2\x96\x81\xe2\x96\x81" };
	static const float score[] = { 0, -1, -2, -3 };
	static const struct { bool prefix, trim; int32_t ids[4]; size_t n; const char *want; } cases[] = {
		{ false, false, { 2, 2 }, 2, " a a" }, { false, false, { 1, 2 }, 2, "  a" },
		{ true, false, { 2, 2 }, 2, "a a" }, { true, false, { 1, 2 }, 2, " a" },
		{ false, true, { 2, 2 }, 2, "a a" }, { false, true, { 1, 1, 2, 1 }, 4, "a " },
		{ true, true, { 1, 1, 2, 2 }, 4, "a a" }, { true, true, { 3, 2 }, 2, "  a" },
	};
	(void)unused;
	for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
		char pipeline[200], *text;
		struct tokenizer *tok;
		struct vocab *v;
		size_t n;
		snprintf(pipeline, sizeof pipeline, "{\"normalizer\":{\"type\":\"SentencePiece\","
			"\"add_dummy_prefix\":%s,\"remove_extra_whitespaces\":%s},\"model\":{\"type\":\"Unigram\"}}",
			cases[i].prefix ? "true" : "false", cases[i].trim ? "true" : "false");
		v = unigram_of(pieces, score, sizeof score/sizeof *score, pipeline);
		assert_int_equal(tokenizer_new(&tok, v, NULL), GGU_OK);
		assert_int_equal(tokenizer_decode(tok, cases[i].ids, cases[i].n, true, &text, &n, NULL), GGU_OK);
		assert_string_equal(text, cases[i].want);
		free(text);
		tokenizer_free(tok);
		vocab_free(v);
	}
}

int main(void)
{
	const char *given = getenv("TEST_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes_are_those_of_a_list),
		cmocka_unit_test(broken_tables_stay_within_their_bounds),
		cmocka_unit_test(what_is_no_table_is_refused), cmocka_unit_test(the_best_way_is_that_of_all),
		cmocka_unit_test(user_defined_pieces_are_not_normalized),
		cmocka_unit_test(user_defined_pieces_are_weighed),
		cmocka_unit_test(blanks_in_front_are_not_decoded),
	};
	if (given) seed = strtoull(given, NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
