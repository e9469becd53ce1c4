/* SPDX-License-Identifier: MIT
 * tool_gguf_json - compare a GGUF with what another program wrote for the same model.
 *
 *   tool_gguf_json FILE.gguf gguf.json TYPE [EXTRA_KEY...]
 *
 * gguf.json (../shared/reference/arch/README.md): object TYPE has `metadata` (key, type, value or sha256, advisory) and
 * `tensors` (name, type, shape, sha256). A line for each difference; exit 1 if there is any. Keys that only our file
 * has must be given as EXTRA_KEY, with or without the architecture's name before them; tensors whose data may differ
 * as ~NAME, with or without "blk.N." before it. Arrays are hashed as the text that
 * Python's json.dumps gives, floats as repr prints the double. */
#include <jansson.h>
#include <math.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/types.h"
#include "../lib/peer_types.h"

static int n_bad;
static void bad(const char *what, const char *name)
{
	printf("%s: %s\n", what, name);
	n_bad++;
}

/* ---- Python's spelling ---- */

struct text { char *p; size_t n, cap; };
static void put(struct text *t, const char *s, size_t n)
{
	if (t->n + n > t->cap) {
		t->cap = 2*(t->n + n) + 64;
		t->p = realloc(t->p, t->cap);
		if (!t->p) exit(2);
	}
	memcpy(t->p + t->n, s, n);
	t->n += n;
}

/* repr of a double: the shortest digits that read back; exponents below 1e-4 and from 1e16 on. */
static void put_float(struct text *t, double x)
{
	char b[40], digits[24], out[48];
	int exp, n = 0, k;
	size_t d = 0;
	if (isnan(x) || isinf(x)) {
		const char *word = isnan(x) ? "NaN" : x < 0 ? "-Infinity" : "Infinity";
		put(t, word, strlen(word));
		return;
	}
	for (int p = 0; p < 17; p++) {
		snprintf(b, sizeof b, "%.*e", p, x);
		if (strtod(b, NULL) == x) break;
	}
	exp = atoi(strchr(b, 'e') + 1);
	for (const char *s = b; *s != 'e'; s++) if (*s >= '0' && *s <= '9') digits[d++] = *s;
	while (d > 1 && digits[d - 1] == '0') d--;
	if (signbit(x)) out[n++] = '-';
	if (exp < -4 || exp >= 16) {
		out[n++] = digits[0];
		if (d > 1) out[n++] = '.';
		for (size_t i = 1; i < d; i++) out[n++] = digits[i];
		n += snprintf(out + n, sizeof out - (size_t)n, "e%c%02d", exp < 0 ? '-' : '+', abs(exp));
	} else if (exp < 0) {
		n += snprintf(out + n, sizeof out - (size_t)n, "0.%.*s%.*s", -exp - 1, "000", (int)d, digits);
	} else {
		for (k = 0; k <= exp || (size_t)k < d; k++) {
			if (k == exp + 1) out[n++] = '.';
			out[n++] = (size_t)k < d ? digits[k] : '0';
		}
		if (k == exp + 1) { out[n++] = '.'; out[n++] = '0'; }
	}
	put(t, out, (size_t)n);
}

static void put_string(struct text *t, struct ggu_str s)
{
	put(t, "\"", 1);
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		const char *esc = strchr("\"\"\\\\\nn\rr\tt\bb\ff", c);
		char b[8];
		if (c && esc && !((esc - "\"\"\\\\\nn\rr\tt\bb\ff") & 1) && (c < 32 || c == '"' || c == '\\')) {
			b[0] = '\\';
			b[1] = c == '"' || c == '\\' ? (char)c : c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' :
				c == '\b' ? 'b' : 'f';
			put(t, b, 2);
		} else if (c < 32) put(t, b, (size_t)snprintf(b, sizeof b, "\\u%04x", c));
		else put(t, s.p + i, 1);
	}
	put(t, "\"", 1);
}

static void put_item(struct text *t, const struct ggu_kv *kv, size_t i)
{
	enum ggu_kv_type ty = ggu_kv_item_type(kv);
	struct ggu_str s;
	double f;
	bool b;
	int64_t v;
	uint64_t u;
	char buf[24];
	if (ty == GGU_STRING && ggu_kv_str(kv, i, &s)) put_string(t, s);
	else if (ty == GGU_BOOL && ggu_kv_bool(kv, i, &b)) put(t, b ? "true" : "false", b ? 4 : 5);
	else if ((ty == GGU_F32 || ty == GGU_F64) && ggu_kv_float(kv, i, &f)) put_float(t, f);
	else if (ggu_kv_int(kv, i, &v)) put(t, buf, (size_t)snprintf(buf, sizeof buf, "%lld", (long long)v));
	else if (ggu_kv_uint(kv, i, &u)) put(t, buf, (size_t)snprintf(buf, sizeof buf, "%llu", (unsigned long long)u));
}

static void sha256(const void *p, size_t n, char hex[65])
{
	struct sha256_ctx c;
	uint8_t d[32];
	sha256_init(&c);
	sha256_update(&c, n, p);
	sha256_digest(&c, 32, d);
	for (int i = 0; i < 32; i++) snprintf(hex + 2*i, 3, "%02x", d[i]);
}

/* ---- metadata ---- */

static bool item_equal(const struct ggu_kv *kv, size_t i, const json_t *want)
{
	struct ggu_str s;
	double f;
	bool b;
	int64_t v;
	if (json_is_string(want))
		return ggu_kv_str(kv, i, &s) && s.n == json_string_length(want)
			&& !memcmp(s.p, json_string_value(want), s.n);
	if (json_is_boolean(want)) return ggu_kv_bool(kv, i, &b) && b == json_is_true(want);
	if (json_is_real(want)) return ggu_kv_float(kv, i, &f) && f == json_real_value(want);
	return json_is_integer(want) && (ggu_kv_int(kv, i, &v) ? v == json_integer_value(want) :
		ggu_kv_float(kv, i, &f) && f == json_number_value(want));
}

static bool value_equal(const struct ggu_kv *kv, const json_t *m)
{
	const json_t *value = json_object_get(m, "value"), *sha = json_object_get(m, "sha256"),
		*sub = json_object_get(m, "subtype");
	struct text t = { 0 };
	char hex[65];
	if (strcmp(peer_type_name(ggu_kv_type(kv)), json_string_value(json_object_get(m, "type")))) return false;
	if (ggu_kv_type(kv) != GGU_ARRAY) return item_equal(kv, 0, value);
	if (!sub || strcmp(peer_type_name(ggu_kv_item_type(kv)), json_string_value(sub))) return false;
	if ((json_int_t)ggu_kv_n(kv) != json_integer_value(json_object_get(m, "length"))) return false;
	if (value) {
		for (size_t i = 0; i < json_array_size(value); i++)
			if (!item_equal(kv, i, json_array_get(value, i))) return false;
		return true;
	}
	put(&t, "[", 1);
	for (size_t i = 0; i < ggu_kv_n(kv); i++) {
		if (i) put(&t, ",", 1);
		put_item(&t, kv, i);
	}
	put(&t, "]", 1);
	sha256(t.p, t.n, hex);
	free(t.p);
	return sha && !strcmp(hex, json_string_value(sha));
}

static bool allowed(const char *key, int n, char **extra)
{
	const char *dot = strchr(key, '.');
	for (int i = 0; i < n; i++) if (!strcmp(extra[i], key) || (dot && !strcmp(extra[i], dot + 1))) return true;
	return !strncmp(key, "gguf-utils.", 11);        /* what tokenizer.ggml.* cannot say */
}

static void compare_metadata(const struct ggu_meta *m, const json_t *want, int n_extra, char **extra)
{
	size_t i;
	const json_t *e;
	for (i = 0; i < json_array_size(want); i++) {
		const char *key;
		const struct ggu_kv *kv;
		e = json_array_get(want, i);
		key = json_string_value(json_object_get(e, "key"));
		if (json_is_true(json_object_get(e, "advisory"))) continue;
		kv = ggu_meta_find(m, key);
		if (!kv) bad("key missing", key);
		else if (!value_equal(kv, e)) bad("key differs", key);
	}
	for (i = 0; i < ggu_meta_count(m); i++) {
		const char *key = ggu_kv_key(ggu_meta_at(m, i)).p;
		bool known = allowed(key, n_extra, extra);
		for (size_t k = 0; !known && k < json_array_size(want); k++)
			known = !strcmp(json_string_value(json_object_get(json_array_get(want, k), "key")), key);
		if (!known) bad("key that is not wanted", key);
	}
}

/* ---- tensors ---- */

/* Is ~NAME among them? */
static bool may_differ(const char *name, int n, char **extra)
{
	const char *plain = strncmp(name, "blk.", 4) ? name : name + 4 + strspn(name + 4, "0123456789.");
	for (int i = 0; i < n; i++)
		if (*extra[i] == '~' && (!strcmp(extra[i] + 1, name) || !strcmp(extra[i] + 1, plain))) return true;
	return false;
}

static void compare_tensor(struct ggu_file *f, const json_t *e, int n_extra, char **extra)
{
	const char *name = json_string_value(json_object_get(e, "name")),
		*type = json_string_value(json_object_get(e, "type"));
	const struct ggu_tensor *t = ggu_file_find(f, name);
	const json_t *shape = json_object_get(e, "shape");
	struct ggu_error err;
	char hex[65];
	void *p;
	if (!t) { bad("tensor missing", name); return; }
	if (ggu_type_find(type) != ggu_type_info(t->type)) bad("tensor's type differs", name);
	if (json_array_size(shape) != t->n_dims) { bad("tensor's dimensions differ", name); return; }
	for (size_t i = 0; i < t->n_dims; i++)
		if ((uint64_t)json_integer_value(json_array_get(shape, i)) != t->ne[i]) { bad("tensor's shape differs",
			name); return; }
	if (!(p = malloc((size_t)t->bytes + 1)) ||
		ggu_read(f, t, 0, p, (size_t)t->bytes, &err)) { bad("tensor cannot be read", name); free(p); return; }
	sha256(p, (size_t)t->bytes, hex);
	if (strcmp(hex, json_string_value(json_object_get(e, "sha256"))) && !may_differ(name, n_extra, extra))
		bad("tensor's data differ", name);
	free(p);
}

int main(int argc, char **argv)
{
	struct ggu_file *f;
	struct ggu_error err;
	json_error_t je;
	json_t *root, *want;
	if (argc < 4) { fprintf(stderr, "usage: tool_gguf_json FILE.gguf gguf.json TYPE [EXTRA_KEY...]\n"); return 2; }
	if (ggu_open(&f, argv[1], &err)) { fprintf(stderr, "%s: byte %lld: %s: %s\n", argv[1], (long long)err.offset,
		err.where, err.what); return 2; }
	root = json_load_file(argv[2], 0, &je);
	want = json_object_get(root, strcmp(argv[3], "auto") ? argv[3] :
		json_string_value(json_object_get(root, "auto")));
	if (!want) { fprintf(stderr, "%s: no %s: %s\n", argv[2], argv[3], je.text); return 2; }
	compare_metadata(ggu_file_meta(f), json_object_get(want, "metadata"), argc - 4, argv + 4);
	for (size_t i = 0; i < json_array_size(json_object_get(want, "tensors")); i++)
		compare_tensor(f, json_array_get(json_object_get(want, "tensors"), i), argc - 4, argv + 4);
	if (ggu_file_n_tensors(f) != json_array_size(json_object_get(want, "tensors")))
		bad("number of tensors differs", argv[1]);
	json_decref(root);
	ggu_close(f);
	return n_bad > 0;
}
