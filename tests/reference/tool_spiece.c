/* SPDX-License-Identifier: MIT
 * tool_spiece TOKENIZER.json N - SentencePiece's file as it was before it became a tokenizer.json of kind Unigram: the
 * first N pieces with their scores, special ones as control pieces, and the normalizer's table. */
#include <jansson.h>
#include <nettle/base64.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PIECE = 4096, NORMAL = 1, UNKNOWN, CONTROL };

static void varint(unsigned char **p, uint64_t v)
{
	for (; v > 127; v >>= 7) *(*p)++ = (unsigned char)(v | 128);
	*(*p)++ = (unsigned char)v;
}
static void bytes(unsigned char **p, unsigned field, const void *from, size_t n)
{
	varint(p, field << 3 | 2);
	varint(p, n);
	memcpy(*p, from, n);
	*p += n;
}
static void number(unsigned char **p, unsigned field, uint64_t v)
{
	varint(p, field << 3);
	varint(p, v);
}

static unsigned type_of(const json_t *j, size_t id)
{
	json_t *added;
	size_t i;
	if (json_integer_value(json_object_get(json_object_get(j, "model"), "unk_id")) == (json_int_t)id)
		return UNKNOWN;
	json_array_foreach(json_object_get(j, "added_tokens"), i, added)
		if (json_integer_value(json_object_get(added, "id")) == (json_int_t)id) return CONTROL;
	return NORMAL;
}

static void put_pieces(const json_t *j, size_t n)
{
	json_t *row;
	size_t i;
	json_array_foreach(json_object_get(json_object_get(j, "model"), "vocab"), i, row) {
		unsigned char one[MOST_PIECE + 32], all[MOST_PIECE + 64], *p = one, *q = all;
		const json_t *piece = json_array_get(row, 0);
		float score = (float)json_number_value(json_array_get(row, 1));
		uint32_t bits;
		if (i == n) break;
		if (json_string_length(piece) > MOST_PIECE) exit(2);
		bytes(&p, 1, json_string_value(piece), json_string_length(piece));
		memcpy(&bits, &score, sizeof bits);
		varint(&p, 2 << 3 | 5);
		for (int k = 0; k < 32; k += 8) *p++ = (unsigned char)(bits >> k);
		if (type_of(j, i) != NORMAL) number(&p, 3, type_of(j, i));
		bytes(&q, 1, one, (size_t)(p - one));
		fwrite(all, 1, (size_t)(q - all), stdout);
	}
}

int main(int argc, char **argv)
{
	json_t *j = argc > 2 ? json_load_file(argv[1], JSON_ALLOW_NUL, NULL) : NULL;
	const char *text = json_string_value(json_object_get(json_object_get(j, "normalizer"), "precompiled_charsmap"));
	size_t letters = text ? strlen(text) : 0, n = BASE64_DECODE_LENGTH(letters);
	unsigned char *table = malloc(n), *spec = malloc(n + 64), *all = malloc(n + 128), *p = spec, *q = all;
	struct base64_decode_ctx b;
	base64_decode_init(&b);
	if (!text || !table || !spec || !all || !base64_decode_update(&b, &n, table, letters, text)) return 2;
	put_pieces(j, strtoul(argv[2], NULL, 10));
	bytes(&p, 2, table, n);
	number(&p, 3, 1);               /* add_dummy_prefix */
	number(&p, 4, 1);               /* remove_extra_whitespaces */
	bytes(&q, 2, (unsigned char[]){ 3 << 3, 1 }, 2);        /* trainer_spec.model_type: unigram */
	bytes(&q, 3, spec, (size_t)(p - spec));
	fwrite(all, 1, (size_t)(q - all), stdout);
	free(table); free(spec); free(all);
	json_decref(j);
	return fflush(stdout) || ferror(stdout) ? 2 : 0;
}
