/* SPDX-License-Identifier: MIT
 * tool_vocab - compare the tokenizer.* keys of a GGUF with those that another converter wrote.
 *
 *   tool_vocab FILE.gguf REFERENCE.json [KEY...]
 *   tool_vocab --bare FILE.gguf OUT.gguf
 *
 * REFERENCE.json is of reference/tokenizers/vocab (README.md there): `kv` with key, type and value; long texts and
 * arrays as length and SHA-256 of the bytes in the file. KEYs do not count. A line for each difference; exit 1 if
 * there is any. --bare writes a file that has the keys tokenizer.* and no others. */
#include <jansson.h>
#include <nettle/sha2.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../lib/peer_types.h"

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
	const char *type = json_string_value(json_object_get(row, "type")),
		*sha = json_string_value(json_object_get(row, "sha256"));
	const json_t *want = json_object_get(row, "value");
	struct sha256_ctx c;
	struct ggu_str s;
	int64_t v;
	bool b;
	if (strcmp(type, peer_type_name(ggu_kv_type(kv))) || (ggu_kv_type(kv) == GGU_ARRAY &&
		strcmp(json_string_value(json_object_get(row, "element")), peer_type_name(ggu_kv_item_type(kv))))) {
		bad(key, "another type");
		return;
	}
	sha256_init(&c);
	if (!strcmp(type, "ARRAY")) {
		size_t n = ggu_kv_n(kv);
		if ((json_int_t)n != json_integer_value(json_object_get(row, "length"))) { bad(key,
			"another length"); return; }
		if (ggu_kv_item_type(kv) == GGU_STRING)
			for (size_t i = 0; i < n && ggu_kv_str(kv, i, &s); i++) {
				uint64_t length = s.n;
				sha256_update(&c, sizeof length, (const uint8_t *)&length);
				sha256_update(&c, s.n, (const uint8_t *)s.p);
			}
		else if (ggu_kv_data(kv))
			sha256_update(&c, (ggu_kv_item_type(kv) == GGU_U8 ? 1 : 4)*n, ggu_kv_data(kv));
		if (!hash_is(&c, sha)) bad(key, "other elements");
	} else if (!strcmp(type, "STRING")) {
		if (!ggu_kv_str(kv, 0, &s)) { bad(key, "is no text"); return; }
		if (sha) sha256_update(&c, s.n, (const uint8_t *)s.p);
		if (sha ? !hash_is(&c, sha) : s.n != json_string_length(want)
			|| memcmp(s.p, json_string_value(want), s.n))
			bad(key, "another text");
	} else if (!strcmp(type, "BOOL")) {
		if (!ggu_kv_bool(kv, 0, &b) || b != json_is_true(want)) bad(key, "another value");
	} else if (!ggu_kv_int(kv, 0, &v) || v != json_integer_value(want)) bad(key, "another value");
}

static int among(const char *key, char **list, int n)
{
	for (int i = 0; i < n; i++) if (!strcmp(key, list[i])) return 1;
	return 0;
}

static int is_tokenizer(const struct ggu_kv *kv)
{
	return ggu_kv_key(kv).n > 10 && !memcmp(ggu_kv_key(kv).p, "tokenizer.", 10);
}

static int bare(const struct ggu_meta *from, const char *path)
{
	struct ggu_error err;
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w = NULL;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666), s = !m || fd < 0;
	for (size_t i = 0; !s && i < ggu_meta_count(from); i++)
		if (is_tokenizer(ggu_meta_at(from, i))) s = ggu_meta_set_kv(m, ggu_meta_at(from, i));
	s = s || ggu_writer_new(&w, m, &err) || ggu_writer_begin(w, fd, &err) || ggu_writer_end(w, &err);
	ggu_writer_free(w);
	ggu_meta_free(m);
	if (fd >= 0) close(fd);
	return s ? 2 : 0;
}

/* skip: keys that are not compared, n of them */
static void compare_all(const struct ggu_meta *m, const json_t *rows, char **skip, int n)
{
	size_t i, k;
	json_t *row;
	json_array_foreach(rows, i, row) {
		const char *key = json_string_value(json_object_get(row, "key"));
		const struct ggu_kv *kv = ggu_meta_find(m, key);
		if (strncmp(key, "tokenizer.", 10) || among(key, skip, n)) continue;
		if (kv) compare(kv, key, row);
		else bad(key, "is missing");
	}
	for (i = 0; i < ggu_meta_count(m); i++) {
		struct ggu_str key = ggu_kv_key(ggu_meta_at(m, i));
		if (!is_tokenizer(ggu_meta_at(m, i)) || among(key.p, skip, n)) continue;
		json_array_foreach(rows, k,
			row) if (!strcmp(key.p, json_string_value(json_object_get(row, "key")))) break;
		if (k == json_array_size(rows)) bad(key.p, "only ours has it");
	}
}

int main(int argc, char **argv)
{
	struct ggu_file *f;
	struct ggu_error err;
	int to_bare = argc == 4 && !strcmp(argv[1], "--bare"), status;
	json_t *root;
	if (argc < 3 || ggu_open(&f, argv[1 + to_bare], &err)) return 2;
	if (to_bare) {
		status = bare(ggu_file_meta(f), argv[3]);
		ggu_close(f);
		return status;
	}
	root = json_load_file(argv[2], JSON_ALLOW_NUL, NULL);
	if (root) compare_all(ggu_file_meta(f), json_object_get(root, "kv"), argv + 3, argc - 3);
	ggu_close(f);
	json_decref(root);
	return !root ? 2 : n_bad > 0;
}
