/* SPDX-License-Identifier: MIT
 * tool_ids - compare token ids with a reference.
 *
 *   tool_ids texts.json REFERENCE.json MODE GOT.json [SKIP_PREFIX]
 *   tool_ids --folder DIR texts.json REFERENCE.json MODE=FLAGS... [-SKIP_PREFIX]
 *   tool_ids --published FILE.inp FILE.out GOT.json
 *   tool_ids --invalid DIR texts.json [keep]
 *   tool_ids --texts texts.json | --inputs FILE.inp
 *
 * The first form reads the rows of reference/tokenizers/NAME.json (member MODE, else ids) and an array of arrays of
 * ids, or for MODE "decoded" (else the text) of texts; rows whose id begins with SKIP_PREFIX do not count. The second
 * encodes itself, for several modes with one vocabulary: FLAGS are b for BOS and EOS, s for special tokens in the
 * text, or d to decode the row's ids; for FILE/MODE=FLAGS the first 200000 bytes of FILE, whole lines of them, are
 * encoded and their ids' hash compared. Asking for the first ids only has to give the same. The third reads published
 * vectors: ids of one text a line.
 * --invalid encodes and decodes the bytes of invalid_utf8; with keep they must come back unchanged.
 * --texts and --inputs print the texts as a JSON array for gguf-tokenize --json. A line for each difference; exit 1
 * if there is any. */
#include <jansson.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../model/vocab/tokenizer.h"
#include "../lib/first_ids.h"

static json_t *load(const char *path)
{
	json_error_t e;
	json_t *j = json_load_file(path, JSON_ALLOW_NUL, &e);
	if (!j) { fprintf(stderr, "%s: %s\n", path, e.text); exit(2); }
	return j;
}

static char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *p = malloc(16 << 20);
	if (!f || !p) { perror(path); exit(2); }
	*n = fread(p, 1, (16 << 20) - 1, f);
	p[*n] = 0;
	fclose(f);
	return p;
}

static int differ(const char *name, const json_t *got, const json_t *want)
{
	char *a, *b;
	if (json_equal(got, want)) return 0;
	a = json_dumps(got, JSON_COMPACT);
	b = json_dumps(want, JSON_COMPACT);
	printf("%s:\n  got  %.200s\n  want %.200s\n", name, a ? a : "nothing", b ? b : "nothing");
	free(a);
	free(b);
	return 1;
}

/* The texts of a .inp file, separated by lines with this text. */
static json_t *inputs(const char *path)
{
	static const char mark[] = "\n__ggml_vocab_test__\n";
	json_t *out = json_array();
	size_t n;
	char *text = slurp(path, &n);
	for (char *p = text, *end; ; p = end + sizeof mark - 1) {
		end = strstr(p, mark);
		json_array_append_new(out, json_stringn(p, end ? (size_t)(end - p) : strlen(p)));
		if (!end) break;
	}
	free(text);
	return out;
}

static int published(const char *inp, const char *out, const char *got_path)
{
	json_t *got = load(got_path), *texts = inputs(inp);
	size_t bytes, row = 0, bad = 0;
	char name[40], *text = slurp(out, &bytes);
	for (char *line = text, *next; line && row < json_array_size(texts); line = next, row++) {
		json_t *want = json_array();
		next = strchr(line, '\n');
		if (next) *next++ = 0;
		for (char *p = line, *end; ; p = end) {
			long v = strtol(p, &end, 10);
			if (end == p) break;
			json_array_append_new(want, json_integer(v));
		}
		snprintf(name, sizeof name, "text %zu", row);
		bad += (size_t)differ(name, json_array_get(got, row), want);
		json_decref(want);
	}
	if (row < 10 || row != json_array_size(got)) { printf("%zu texts, %zu results\n", row,
		json_array_size(got)); bad++; }
	json_decref(got); json_decref(texts);
	free(text);
	return bad > 0;
}

static int reference(char **a, int n)
{
	json_t *in = load(a[0]), *out = load(a[1]), *got = load(a[3]), *row;
	const json_t *texts = json_object_get(in, "texts"), *rows = json_object_get(out, "texts");
	size_t i, bad = 0;
	if (json_array_size(rows) != json_array_size(texts) ||
		json_array_size(got) != json_array_size(texts)) { puts("other numbers of texts"); bad++; }
	else json_array_foreach(rows, i, row) {
		const char *id = json_string_value(json_object_get(row, "id"));
		json_t *want = json_object_get(row, a[2]);
		if (!want)
			want = strcmp(a[2], "decoded") ? json_object_get(row, "ids") :
				json_object_get(json_array_get(texts, i), "text");
		if (n > 4 && !strncmp(id, a[4], strlen(a[4]))) continue;
		bad += (size_t)differ(id, json_array_get(got, i), want);
	}
	json_decref(in); json_decref(out); json_decref(got);
	return bad > 0;
}

/* What the library makes of one row. */
static json_t *result(struct tokenizer *t, const json_t *text, const json_t *row, const char *flags)
{
	unsigned how = (strchr(flags, 'b') ? TOKENIZE_BOS | TOKENIZE_EOS : 0) |
		(strchr(flags, 's') ? TOKENIZE_SPECIAL : 0);
	const json_t *list = json_object_get(row, "ids");
	size_t n = 0, bytes;
	int32_t *ids = malloc((json_array_size(list) + 1)*sizeof *ids);
	json_t *out = NULL;
	char *back;
	if (!ids) exit(2);
	if (strchr(flags, 'd')) {
		for (; n < json_array_size(list); n++) ids[n] = (int32_t)json_integer_value(json_array_get(list, n));
		if (!tokenizer_decode(t, ids, n, true, &back, &bytes, NULL)) {
			out = json_stringn(back, bytes);
			free(back);
		}
	} else if (!tokenizer_encode(t, json_string_value(text), json_string_length(text), how, &ids, &n, NULL)) {
		out = json_array();
		for (size_t i = 0; i < n; i++) json_array_append_new(out, json_integer(ids[i]));
		for (size_t k = 0, got; k <= n; k += 1 + n/4)
			if (!first_ids_are(t, json_string_value(text), json_string_length(text), how, k, ids, n, &got))
				json_array_append_new(out, json_string("other first ids"));
	}
	free(ids);
	return out;
}

/* The member of the reference, `wikitext` by default: 32-bit ids, little-endian. */
static int long_text(struct tokenizer *t, const char *path, const char *mode, const char *flags, const json_t *want)
{
	unsigned how = strchr(flags, 's') ? TOKENIZE_SPECIAL : 0;
	size_t bytes, n = 0;
	char *text = slurp(path, &bytes), hex[2*SHA256_DIGEST_SIZE + 1];
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;
	int32_t *ids = NULL;
	int bad;
	if (bytes > 200000) bytes = 200000;
	while (bytes && text[bytes - 1] != '\n') bytes--;
	if (json_object_get(want, mode)) want = json_object_get(want, mode);
	sha256_init(&sha);
	if (tokenizer_encode(t, text, bytes, how, &ids, &n, NULL)) exit(2);
	for (size_t i = 0; i < n; i++) {
		uint32_t id = (uint32_t)ids[i];
		sha256_update(&sha, 4, (const uint8_t[]){ (uint8_t)id, (uint8_t)(id >> 8), (uint8_t)(id >> 16),
			(uint8_t)(id >> 24) });
	}
	sha256_digest(&sha, sizeof digest, digest);
	for (size_t i = 0; i < sizeof digest; i++) snprintf(hex + 2*i, 3, "%02x", digest[i]);
	bad = strcmp(hex, json_string_value(json_object_get(want, "sha256"))) != 0;
	/* without reading much further: a word has few ids */
	for (size_t k = 1, got; k < n; k *= 8)
		bad |= !first_ids_are(t, text, bytes, how, k, ids, n, &got) || got > k + 100;
	if (bad) printf("%s: %zu ids, want %lld\n", path, n, (long long)json_integer_value(json_object_get(want, "n")));
	free(ids);
	free(text);
	return bad;
}

static int folder(char **a, int n)
{
	const struct vocab_hints h = { .n_vocab = -1 };
	const char *skip = *a[n - 1] == '-' ? a[n - 1] + 1 : NULL;
	struct vocab *v;
	struct tokenizer *t;
	struct ggu_error err;
	json_t *in = load(a[1]), *out = load(a[2]), *row;
	const json_t *texts = json_object_get(in, "texts"), *rows = json_object_get(out, "texts");
	size_t i, bad = json_array_size(rows) != json_array_size(texts);
	if (vocab_from_dir(&v, a[0], &h, &err) || tokenizer_new(&t, v, &err)) { printf("%s: %s: %s\n", err.file,
		err.where, err.what); return 1; }
	for (int k = 3; k < n - (skip != NULL); k++) {
		char mode[40] = "", flags[8] = "";
		const char *file = strrchr(a[k], '/') ? a[k] : NULL;
		sscanf(file ? strrchr(a[k], '/') + 1 : a[k], "%39[^=]=%7s", mode, flags);
		if (file) {
			*strrchr(a[k], '/') = 0;
			bad += (size_t)long_text(t, file, mode, flags, json_object_get(out, "wikitext"));
			continue;
		}
		json_array_foreach(rows, i, row) {
			const char *id = json_string_value(json_object_get(row, "id"));
			const json_t *text = json_object_get(json_array_get(texts, i), "text"),
				*want = json_object_get(row, mode);
			json_t *got;
			char name[100];
			if (skip && !strncmp(id, skip, strlen(skip))) continue;
			if (!want) want = strchr(flags, 'd') ? text : json_object_get(row, "ids");
			got = result(t, text, row, flags);
			snprintf(name, sizeof name, "%s %s", mode, id);
			bad += (size_t)differ(name, got, want);
			json_decref(got);
		}
	}
	tokenizer_free(t);
	vocab_free(v);
	json_decref(in);
	json_decref(out);
	return bad > 0;
}

static int invalid(const char *dir, const char *texts, bool keep)
{
	const struct vocab_hints h = { .n_vocab = -1 };
	struct vocab *v;
	struct tokenizer *t;
	json_t *in = load(texts), *row;
	size_t i, bad = json_array_size(json_object_get(in, "invalid_utf8")) == 0;
	if (vocab_from_dir(&v, dir, &h, NULL) || tokenizer_new(&t, v, NULL)) return 1;
	json_array_foreach(json_object_get(in, "invalid_utf8"), i, row) {
		const char *hex = json_string_value(json_object_get(row, "hex"));
		size_t n = strlen(hex)/2, count = 0, bytes = 0;
		char *text = malloc(n + 1), *back = NULL;
		int32_t *ids = NULL;
		unsigned byte;
		for (size_t k = 0; k < n; k++) text[k] = sscanf(hex + 2*k, "%2x", &byte) == 1 ? (char)byte : 0;
		if (tokenizer_encode(t, text, n, 0, &ids, &count, NULL)
			|| tokenizer_decode(t, ids, count, true, &back, &bytes, NULL)
			|| (keep && (bytes != n || memcmp(back, text, n)))) {
			printf("%s\n", hex);
			bad++;
		}
		free(text);
		free(back);
		free(ids);
	}
	tokenizer_free(t);
	vocab_free(v);
	json_decref(in);
	return bad > 0;
}

static json_t *texts_of(const char *path)
{
	json_t *out = json_array(), *in = load(path), *row;
	size_t i;
	json_array_foreach(json_object_get(in, "texts"), i, row) json_array_append(out, json_object_get(row, "text"));
	json_decref(in);
	return out;
}

int main(int argc, char **argv)
{
	json_t *out;
	if (argc >= 6 && !strcmp(argv[1], "--folder")) return folder(argv + 2, argc - 2);
	if (argc == 5 && !strcmp(argv[1], "--published")) return published(argv[2], argv[3], argv[4]);
	if (argc >= 4 && !strcmp(argv[1], "--invalid")) return invalid(argv[2], argv[3], argc > 4);
	if (argc == 3 && !strcmp(argv[1], "--texts")) out = texts_of(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "--inputs")) out = inputs(argv[2]);
	else return argc >= 5 ? reference(argv + 1, argc - 1) : 2;
	json_dumpf(out, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(out);
	return 0;
}
