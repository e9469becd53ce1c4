/* SPDX-License-Identifier: MIT
 * tool_vocab - compare the tokenizer.* keys of a GGUF with those that another converter wrote.
 *
 *   tool_vocab FILE.gguf REFERENCE.json
 *
 * REFERENCE.json is of reference/tokenizers/vocab (README.md there): `kv` with key, type and value; long texts and
 * arrays as length and SHA-256 of the bytes in the file. A line for each difference; exit 1 if there is any. */
#include <jansson.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/ggu.h"

static int n_bad;
static void bad(const char *key, const char *what)
{
	printf("%s: %s\n", key, what);
	n_bad++;
}

static int hash_is(struct sha256_ctx *c, const char *want)
{
	uint8_t d[SHA256_DIGEST_SIZE];
	char hex[2*SHA256_DIGEST_SIZE + 1];
	sha256_digest(c, sizeof d, d);
	for (size_t i = 0; i < sizeof d; i++) snprintf(hex + 2*i, 3, "%02x", d[i]);
	return want && !strcmp(hex, want);
}

static void compare(const struct ggu_kv *kv, const char *key, const json_t *row)
{
	const char *type = json_string_value(json_object_get(row, "type")), *sha = json_string_value(json_object_get(row, "sha256"));
	const json_t *want = json_object_get(row, "value");
	struct sha256_ctx c;
	struct ggu_str s;
	int64_t v;
	bool b;
	sha256_init(&c);
	if (!strcmp(type, "ARRAY")) {
		size_t n = ggu_kv_n(kv);
		if ((json_int_t)n != json_integer_value(json_object_get(row, "length"))) { bad(key, "another length"); return; }
		if (!strcmp(json_string_value(json_object_get(row, "element")), "STRING"))
			for (size_t i = 0; i < n && ggu_kv_str(kv, i, &s); i++) {
				uint64_t length = s.n;
				sha256_update(&c, sizeof length, (const uint8_t *)&length);
				sha256_update(&c, s.n, (const uint8_t *)s.p);
			}
		else if (ggu_kv_data(kv)) sha256_update(&c, 4*n, ggu_kv_data(kv));
		if (!hash_is(&c, sha)) bad(key, "other elements");
	} else if (!strcmp(type, "STRING")) {
		if (!ggu_kv_str(kv, 0, &s)) { bad(key, "is no text"); return; }
		if (sha) sha256_update(&c, s.n, (const uint8_t *)s.p);
		if (sha ? !hash_is(&c, sha) : s.n != json_string_length(want) || memcmp(s.p, json_string_value(want), s.n)) bad(key, "another text");
	} else if (!strcmp(type, "BOOL")) {
		if (!ggu_kv_bool(kv, 0, &b) || b != json_is_true(want)) bad(key, "another value");
	} else if (!ggu_kv_int(kv, 0, &v) || v != json_integer_value(want)) bad(key, "another value");
}

int main(int argc, char **argv)
{
	struct ggu_file *f;
	struct ggu_error err;
	json_t *root = argc == 3 ? json_load_file(argv[2], JSON_ALLOW_NUL, NULL) : NULL, *row;
	size_t i, k;
	if (!root || ggu_open(&f, argv[1], &err)) return 2;
	json_array_foreach(json_object_get(root, "kv"), i, row) {
		const char *key = json_string_value(json_object_get(row, "key"));
		const struct ggu_kv *kv = ggu_meta_find(ggu_file_meta(f), key);
		if (strncmp(key, "tokenizer.", 10)) continue;
		if (kv) compare(kv, key, row);
		else bad(key, "is missing");
	}
	for (i = 0; i < ggu_meta_count(ggu_file_meta(f)); i++) {
		struct ggu_str key = ggu_kv_key(ggu_meta_at(ggu_file_meta(f), i));
		if (strncmp(key.p, "tokenizer.", 10)) continue;
		json_array_foreach(json_object_get(root, "kv"), k, row) if (!strcmp(key.p, json_string_value(json_object_get(row, "key")))) break;
		if (k == json_array_size(json_object_get(root, "kv"))) bad(key.p, "only ours has it");
	}
	ggu_close(f);
	json_decref(root);
	return n_bad > 0;
}
