/* SPDX-License-Identifier: MIT
 * kv_text.c - see kv_text.h. An array's items are added as long as the next one fits; then follows how many there
 * are. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "../model/util/number.h"
#include "kv_text.h"
#include "msg.h"

/* n bytes with a backslash before quotes and backslashes, then masked. The masking adds backslashes of its own. */
static char *escaped(const char *s, size_t n)
{
	char *plain = msg_need(malloc(2*n + 1)), *masked;
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '"' || s[i] == '\\') plain[k++] = '\\';
		plain[k++] = s[i];
	}
	masked = text_mask(plain, k);
	free(plain);
	return masked;
}

/* In quotes, at most width columns of it. */
static char *quoted(struct ggu_str s, size_t width)
{
	size_t n = s.n, cut = n < 4*width ? n : 4*width, room;
	char *whole = escaped(s.p, cut), *text, *p = whole;
	bool fits = cut == n && text_width(whole) <= width;
	for (size_t w = 0; *p && (fits || w < width); w++) {    /* only whole characters */
		p++;
		while ((*p & 0xc0) == 0x80) p++;
	}
	*p = 0;
	room = strlen(whole) + 48;
	text = msg_need(malloc(room));
	if (fits) snprintf(text, room, "\"%s\"", whole);
	else snprintf(text, room, "\"%s\"... (%zu bytes)", whole, n);
	free(whole);
	return text;
}

static char *item_text(const struct ggu_kv *kv, size_t i, size_t width)
{
	char number[NUMBER_TEXT] = "?";
	struct ggu_str s;
	int64_t v;
	uint64_t u;
	double d;
	bool b;
	switch (ggu_kv_item_type(kv)) {
	case GGU_STRING: return quoted(ggu_kv_str(kv, i, &s) ? s : (struct ggu_str){ "", 0 }, width);
	case GGU_ARRAY: return kv_text(ggu_kv_sub(kv, i), width);
	case GGU_BOOL: if (ggu_kv_bool(kv, i, &b)) snprintf(number, sizeof number, "%s", b ? "true" : "false"); break;
	case GGU_F32: case GGU_F64:
		if (ggu_kv_float(kv, i, &d)) number_text(number, d, ggu_kv_item_type(kv) == GGU_F32);
		break;
	default:
		if (ggu_kv_int(kv, i, &v)) snprintf(number, sizeof number, "%" PRId64, v);
		else if (ggu_kv_uint(kv, i, &u)) snprintf(number, sizeof number, "%" PRIu64, u);
	}
	return msg_need(strdup(number));
}

char *kv_item_text(const struct ggu_kv *kv, size_t i) { return item_text(kv, i, SIZE_MAX/8); }

char *kv_text(const struct ggu_kv *kv, size_t width)
{
	size_t n = ggu_kv_n(kv), used = 1, columns = 0, i;
	char *all;
	if (ggu_kv_type(kv) != GGU_ARRAY) return item_text(kv, 0, width);
	all = msg_need(malloc(8));
	strcpy(all, "[");
	for (i = 0; i < n; i++) {
		char *one = item_text(kv, i, width/2);
		size_t len = strlen(one);
		if (columns + text_width(one) > width && i) { free(one); break; }
		all = msg_need(realloc(all, used + len + 48));
		used += (size_t)sprintf(all + used, "%s%s", i ? ", " : "", one);
		columns += text_width(one) + 2;
		free(one);
	}
	all = msg_need(realloc(all, used + 48));
	if (i < n) sprintf(all + used, ", ... %zu in all]", n);
	else strcpy(all + used, "]");
	return all;
}
