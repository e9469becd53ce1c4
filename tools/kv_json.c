/* SPDX-License-Identifier: MIT
 * kv_json.c - see kv_json.h. A value becomes a tree of jansson's, item by item. json_put and json_push check for lack
 * of memory, which jansson only returns. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "kv_json.h"
#include "msg.h"
#include "out.h"

void json_put(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new_nocheck(object, key, msg_need(value))) msg_die("out of memory");
}
void json_push(json_t *array, json_t *value)
{
	if (json_array_append_new(array, msg_need(value))) msg_die("out of memory");
}

static const uint64_t exact = UINT64_C(1) << 53;        /* doubles hold every integer up to here */

json_t *json_of_uint(uint64_t v)
{
	char digits[24];
	if (v <= exact) return msg_need(json_integer((json_int_t)v));
	snprintf(digits, sizeof digits, "%" PRIu64, v);
	return msg_need(json_string(digits));
}

json_t *json_of_shape(const struct ggu_tensor *t)
{
	json_t *a = msg_need(json_array());
	for (uint32_t d = 0; d < t->n_dims; d++) json_push(a, json_of_uint(t->ne[d]));
	return a;
}

static json_t *json_of_int(int64_t v)
{
	char digits[24];
	if (v >= 0) return json_of_uint((uint64_t)v);
	if (v >= -(int64_t)exact) return msg_need(json_integer(v));
	snprintf(digits, sizeof digits, "%" PRId64, v);
	return msg_need(json_string(digits));
}

json_t *json_of_double(double v)
{
	return msg_need(isnan(v) ? json_string("NaN") : isinf(v) ? json_string(v < 0 ? "-Infinity" : "Infinity") :
		json_real(v));
}

json_t *json_of_str(struct ggu_str s)
{
	char *text;
	size_t n;
	json_t *j;
	if (!text_replace(s.p, s.n, &text, &n)) return msg_need(json_stringn_nocheck(s.p, s.n));
	j = json_stringn_nocheck(text, n);
	free(text);
	return msg_need(j);
}

json_t *json_raw(struct ggu_str s)
{
	char *hex, *text;
	size_t n;
	json_t *j;
	if (!text_replace(s.p, s.n, &text, &n)) return NULL;
	free(text);
	hex = msg_need(s.n < SIZE_MAX/2 ? malloc(2*s.n + 1) : NULL);
	for (size_t i = 0; i < s.n; i++) snprintf(hex + 2*i, 3, "%02x", (unsigned char)s.p[i]);
	j = json_string(hex);
	free(hex);
	return msg_need(j);
}

void json_put_str(json_t *object, const char *key, struct ggu_str s)
{
	json_t *raw = json_raw(s);
	char raw_key[64];
	json_put(object, key, json_of_str(s));
	snprintf(raw_key, sizeof raw_key, "%s_raw", key);
	if (raw) json_put(object, raw_key, raw);
}

static json_t *item(const struct ggu_kv *kv, size_t i)
{
	struct ggu_str s;
	int64_t v;
	uint64_t u;
	double d;
	bool b;
	switch (ggu_kv_item_type(kv)) {
	case GGU_STRING: return ggu_kv_str(kv, i, &s) ? json_of_str(s) : NULL;
	case GGU_BOOL: return ggu_kv_bool(kv, i, &b) ? msg_need(json_boolean(b)) : NULL;
	case GGU_F32: case GGU_F64: return ggu_kv_float(kv, i, &d) ? json_of_double(d) : NULL;
	case GGU_ARRAY: return kv_json(ggu_kv_sub(kv, i));
	default: return ggu_kv_int(kv, i, &v) ? json_of_int(v) : ggu_kv_uint(kv, i, &u) ? json_of_uint(u) : NULL;
	}
}

/* Nesting is bounded by the reader, which refuses deep arrays. */
json_t *kv_json(const struct ggu_kv *kv)
{
	json_t *a;
	if (ggu_kv_type(kv) != GGU_ARRAY) return item(kv, 0);
	a = msg_need(json_array());
	for (size_t i = 0; i < ggu_kv_n(kv); i++) json_push(a, item(kv, i));
	return a;
}

json_t *kv_json_raw(const struct ggu_kv *kv)
{
	enum ggu_kv_type t = ggu_kv_item_type(kv);
	json_t *all = NULL;
	struct ggu_str s;
	if (ggu_kv_type(kv) == GGU_STRING) return ggu_kv_str(kv, 0, &s) ? json_raw(s) : NULL;
	for (size_t i = 0; (t == GGU_STRING || t == GGU_ARRAY) && i < ggu_kv_n(kv); i++) {
		json_t *one = t == GGU_ARRAY ? kv_json_raw(ggu_kv_sub(kv, i)) :
			ggu_kv_str(kv, i, &s) ? json_raw(s) : NULL;
		char at[24];
		if (!one) continue;
		if (!all) all = msg_need(json_object());
		snprintf(at, sizeof at, "%zu", i);
		json_put(all, at, one);
	}
	return all;
}

const char *kv_type_text(const struct ggu_kv *kv)
{
	static char text[2][32];
	static unsigned turn;
	char *s = text[turn++ % 2];
	if (ggu_kv_type(kv) != GGU_ARRAY) return ggu_kv_type_name(ggu_kv_type(kv));
	snprintf(s, sizeof text[0], "array of %s", ggu_kv_type_name(ggu_kv_item_type(kv)));
	return s;
}

void json_print(json_t *j, size_t layout)
{
	/* on a terminal, characters that turn the direction of text are escaped too */
	errno = ENOMEM;
	if (json_dumpf(j, stdout, layout | JSON_REAL_PRECISION(17) | (isatty(1) ? JSON_ENSURE_ASCII : 0)))
		out_stdout_failed();
	putchar('\n');                         /* out_close_stdout reports a failure */
	json_decref(j);
}

void json_print_files(json_t *all, bool as_list)
{
	if (json_array_size(all)) json_print(json_incref(as_list ? all : json_array_get(all, 0)), JSON_INDENT(1));
	json_decref(all);
}
