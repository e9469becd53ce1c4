/* SPDX-License-Identifier: MIT
 * edit_value.c - see edit_value.h. Numbers are checked by the setters of libggu: items of an array pass through a
 * pair of a scratch metadata, whose packed value is then copied. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "../libgguf/types.h"
#include "decimal.h"
#include "edit_value.h"
#include "msg.h"

struct spec { enum ggu_kv_type base; unsigned depth; };
/* where a value is from */
struct source { const char *key; bool in_file; };

static _Noreturn void wrong(const struct source *from, const char *fmt, ...) MSG_PRINTF(2, 3);
static void wrong(const struct source *from, const char *fmt, ...)
{
	char what[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (from->in_file) msg_die("%s: %s", from->key, what);
	msg_usage("%s: %s", from->key, what);
}

/* "u8 (0 to 255)": a type, with the range of integers. */
static const char *valid(enum ggu_kv_type t)
{
	static char text[64];
	const char *name = ggu_kv_type_name(t);
	bool is_signed = t == GGU_I8 || t == GGU_I16 || t == GGU_I32 || t == GGU_I64;
	uint64_t most;
	if (!is_signed && t != GGU_U8 && t != GGU_U16 && t != GGU_U32 && t != GGU_U64) return name;
	most = UINT64_MAX >> (64 - 8*ggu_kv_type_bytes(t));
	if (is_signed) snprintf(text, sizeof text, "%s (-%" PRIu64 " to %" PRIu64 ")", name, most/2 + 1, most/2);
	else snprintf(text, sizeof text, "%s (0 to %" PRIu64 ")", name, most);
	return text;
}

static struct spec parse_type(const char *key, const char *type, size_t n)
{
	struct spec s = { GGU_KV_TYPE_COUNT, 0 };
	size_t base = n;
	for (; text_ends(type, base, "[]"); base -= 2) s.depth++;
	for (int t = 0; t < GGU_KV_TYPE_COUNT; t++)
		if (t != GGU_ARRAY && text_is(type, base, ggu_kv_type_name(t)))
			s.base = t;
	if (text_is(type, base, "string")) s.base = GGU_STRING;
	if (s.base == GGU_KV_TYPE_COUNT)
		msg_usage("%s: '%.*s' is not a type: u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 bool str, "
			"with [] after it for arrays", key, n < 40 ? (int)n : 40, type);
	return s;
}

/* A number with a fraction, or what JSON has in place of one. */
static bool read_float(const char *text, double *v)
{
	const char *at = text + (*text == '-');
	if (text_same(at, "nan")) *v = NAN;
	else if (text_same(at, "inf") || text_same(at, "infinity")) *v = INFINITY;
	else if (!decimal_real(&at, v) || *at) return false;
	if (*text == '-') *v = -*v;
	return true;
}

/* Sets key to the number or truth value that text spells; false if it spells none of that type. text ends in a NUL. */
static bool set_scalar(struct ggu_meta *m, const char *key, enum ggu_kv_type t, const char *text)
{
	bool negative = *text == '-', ok;
	const char *at = text + negative;
	uint64_t u;
	double x;
	if (t == GGU_BOOL) {
		ok = !strcmp(text, "true") || !strcmp(text, "false");
		return ok && !ggu_meta_set_bool(m, key, *text == 't');
	}
	if (t == GGU_F32 || t == GGU_F64) return read_float(text, &x) && !ggu_meta_set_float(m, key, t, x);
	if (!decimal_whole(&at, &u) || *at) return false;
	if (!negative) return !ggu_meta_set_uint(m, key, t, u);
	return u <= (uint64_t)1 << 63 && !ggu_meta_set_int(m, key, t, (int64_t)(0 - u));
}

/* Sets one item of an array of numbers in the same way, from JSON. */
static bool set_item(struct ggu_meta *m, enum ggu_kv_type t, const json_t *j)
{
	char digits[40];
	const char *text = json_string_value(j);
	if (json_is_boolean(j)) text = json_is_true(j) ? "true" : "false";
	else if (json_is_integer(j)) snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(j));
	else if (json_is_real(j)) snprintf(digits, sizeof digits, "%.17g", json_real_value(j));
	else if (!text) return false;
	return set_scalar(m, "item", t, text ? text : digits);
}

static void must(enum ggu_status s, const char *key)
{
	if (s == GGU_ERR_NOMEM) msg_die("out of memory");
	if (s) msg_usage("%s: not a valid key: it is empty, contains NUL or is longer than 65535 bytes", key);
}
static void *room(size_t n, size_t size)
{
	return msg_need(calloc(n + 1, size));
}

static void set_numbers(struct ggu_meta *m, const char *key, enum ggu_kv_type t, const json_t *list,
	const struct source *from)
{
	const size_t n = json_array_size(list), width = ggu_kv_type_bytes(t);
	struct ggu_meta *item = msg_need(ggu_meta_new());
	unsigned char *packed = room(n, width);
	for (size_t i = 0; i < n; i++) {
		if (!set_item(item, t, json_array_get(list, i)))
			wrong(from, "item %zu is not a valid %s", i, valid(t));
		memcpy(packed + i*width, ggu_kv_data(ggu_meta_find(item, "item")), width);
	}
	must(ggu_meta_set_array(m, key, t, packed, n), key);
	free(packed);
	ggu_meta_free(item);
}
static void set_strings(struct ggu_meta *m, const char *key, const json_t *list, const struct source *from)
{
	const size_t n = json_array_size(list);
	struct ggu_str *s = room(n, sizeof *s);
	for (size_t i = 0; i < n; i++) {
		const json_t *j = json_array_get(list, i);
		if (!json_is_string(j)) wrong(from, "item %zu is not a string", i);
		s[i] = (struct ggu_str){ json_string_value(j), json_string_length(j) };
	}
	must(ggu_meta_set_strs(m, key, s, n), key);
	free(s);
}
static void set_list(struct ggu_meta *m, const char *key, struct spec s, const json_t *list, const struct source *from)
{
	const size_t n = json_array_size(list);
	const struct ggu_kv **sub = room(n, sizeof *sub);
	struct ggu_meta *lists = msg_need(ggu_meta_new());
	char name[24];
	if (!json_is_array(list)) wrong(from, "not a JSON array");
	if (s.depth == 1 && s.base == GGU_STRING) set_strings(m, key, list, from);
	else if (s.depth == 1) set_numbers(m, key, s.base, list, from);
	else {
		for (size_t i = 0; i < n; i++) {
			snprintf(name, sizeof name, "%zu", i);
			set_list(lists, name, (struct spec){ s.base, s.depth - 1 }, json_array_get(list, i), from);
		}
		for (size_t i = 0; i < n; i++) sub[i] = ggu_meta_at(lists, i);
		must(ggu_meta_set_arrays(m, key, sub, n), key);
	}
	ggu_meta_free(lists);
	free(sub);
}

/* A copy of JSON in which integers of 19 digits or more, which jansson may not be able to hold, are strings. */
static char *quote_integers(const char *text, size_t n, size_t *to_n)
{
	char *copy = msg_need(n < SIZE_MAX/2 ? malloc(n + n/8 + 1) : NULL), *to = copy;
	bool in_string = false;
	for (size_t i = 0, len; i < n; i += len) {
		size_t sign = text[i] == '-', digits = 0;
		while (!in_string && i + sign + digits < n && (unsigned)(text[i + sign + digits] - '0') < 10) digits++;
		bool quote = digits >= 19 && (i + sign + digits == n || !strchr(".eE", text[i + sign + digits]));
		len = digits ? sign + digits : in_string && text[i] == '\\' && i + 1 < n ? 2 : 1;
		in_string ^= text[i] == '"';
		if (quote) *to++ = '"';
		memcpy(to, text + i, len);
		to += len;
		if (quote) *to++ = '"';
	}
	*to_n = (size_t)(to - copy);
	return copy;
}

static json_t *parse_list(const struct source *from, enum ggu_kv_type base, const char *text, size_t n)
{
	json_error_t e;
	json_t *list = json_loadb(text, n, JSON_ALLOW_NUL, &e);
	if (!list && base != GGU_STRING && json_error_code(&e) == json_error_numeric_overflow) {
		size_t quoted_n;
		char *quoted = quote_integers(text, n, &quoted_n);
		list = json_loadb(quoted, quoted_n, JSON_ALLOW_NUL, &e);
		free(quoted);
	}
	if (!list) wrong(from, "not a JSON array: line %d, column %d: %s", e.line, e.column, e.text);
	return list;
}

void edit_value(struct ggu_meta *m, const char *key, const struct edit_value *v)
{
	const struct source from = { key, v->in_file };
	struct spec s = parse_type(key, v->type, v->type_n);
	size_t n = v->n;
	if (s.depth > 8) msg_usage("%s: arrays are nested more than 8 deep", key);      /* the reader's bound */
	if (s.depth) {
		json_t *list = parse_list(&from, s.base, v->text, n);
		set_list(m, key, s, list, &from);
		json_decref(list);
	} else if (s.base == GGU_STRING) {
		must(ggu_meta_set_str(m, key, v->text, n), key);
	} else {
		while (v->in_file && n && (v->text[n - 1] == '\n' || v->text[n - 1] == '\r')) n--;
		char *word = msg_need(strndup(v->text, n));
		if (strlen(word) != n || !set_scalar(m, key, s.base, word))
			wrong(&from, "'%.40s' is not a valid %s", word, valid(s.base));
		free(word);
	}
}
