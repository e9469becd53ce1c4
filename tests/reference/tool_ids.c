/* SPDX-License-Identifier: MIT
 * tool_ids - compare token ids with a reference.
 *
 *   tool_ids texts.json REFERENCE.json MODE GOT.json [SKIP_PREFIX]
 *   tool_ids --published FILE.inp FILE.out GOT.json
 *   tool_ids --texts texts.json | --inputs FILE.inp | --bytes HEX
 *
 * The first form reads the rows of reference/tokenizers/NAME.json (member MODE, else ids) and an array of arrays of
 * ids, or for MODE "decoded" (else the text) of texts; rows whose id begins with SKIP_PREFIX do not count. The second reads published vectors: ids of one text a line.
 * --texts and --inputs print the texts as a JSON array for gguf-tokenize --json, --bytes the bytes. A line for each
 * difference; exit 1 if there is any. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The texts of a .inp file: separated by a line of this text. */
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
	if (row < 10 || row != json_array_size(got)) { printf("%zu texts, %zu results\n", row, json_array_size(got)); bad++; }
	json_decref(got); json_decref(texts);
	free(text);
	return bad > 0;
}

static int reference(char **a, int n)
{
	json_t *in = load(a[0]), *out = load(a[1]), *got = load(a[3]), *row;
	const json_t *texts = json_object_get(in, "texts"), *rows = json_object_get(out, "texts");
	size_t i, bad = 0;
	if (json_array_size(rows) != json_array_size(texts) || json_array_size(got) != json_array_size(texts)) { puts("other numbers of texts"); bad++; }
	else json_array_foreach(rows, i, row) {
		const char *id = json_string_value(json_object_get(row, "id"));
		json_t *want = json_object_get(row, a[2]);
		if (!want) want = strcmp(a[2], "decoded") ? json_object_get(row, "ids") : json_object_get(json_array_get(texts, i), "text");
		if (n > 4 && !strncmp(id, a[4], strlen(a[4]))) continue;
		bad += (size_t)differ(id, json_array_get(got, i), want);
	}
	json_decref(in); json_decref(out); json_decref(got);
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
	if (argc == 5 && !strcmp(argv[1], "--published")) return published(argv[2], argv[3], argv[4]);
	if (argc == 3 && !strcmp(argv[1], "--bytes")) {
		unsigned byte;
		for (const char *p = argv[2]; sscanf(p, "%2x", &byte) == 1; p += 2) putchar((int)byte);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--texts")) out = texts_of(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "--inputs")) out = inputs(argv[2]);
	else return argc >= 5 ? reference(argv + 1, argc - 1) : 2;
	json_dumpf(out, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(out);
	return 0;
}
