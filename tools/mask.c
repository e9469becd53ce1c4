/* SPDX-License-Identifier: MIT
 * mask.c - strings made fit for a terminal; see msg.h. Control characters, invisible ones and bytes that are not UTF-8
 * become escapes, character by character. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "msg.h"

/* Length of the well-formed UTF-8 sequence at s, 0 if there is none; *c its code point. */
static size_t utf8(const unsigned char *s, size_t n, uint32_t *c)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 :
		s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	if (!len || len > n) return 0;
	*c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80) return 0;
		*c = *c << 6 | (s[i] & 0x3f);
	}
	if (len > 1 && (*c < least[len] || (*c >= 0xd800 && *c < 0xe000) || *c > 0x10ffff)) return 0;
	return len;
}

/* Control characters, and those that turn the direction of text or hide. */
static bool unfit(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f
		|| (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x2069) || c == 0xfeff
		|| (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c < 0xe0080);
}

size_t text_character(const char *s, size_t n, uint32_t *c, bool *fit)
{
	size_t len = utf8((const unsigned char *)s, n, c);
	if (!len) *c = (unsigned char)*s;
	*fit = len && !unfit(*c);
	return len;
}

size_t text_mask_one(const char *s, size_t n, size_t *len, char *to)
{
	uint32_t c;
	bool fit;
	*len = text_character(s, n, &c, &fit);
	if (!*len) {
		*len = 1;
		return (size_t)sprintf(to, "\\x%02X", (unsigned)c);
	}
	if (fit) {
		memcpy(to, s, *len);
		return *len;
	}
	if (c == '\n' || c == '\t') return (size_t)sprintf(to, c == '\n' ? "\\n" : "\\t");
	return (size_t)sprintf(to, c < 0x80 ? "\\x%02X" : "\\u{%X}", (unsigned)c);
}

char *text_mask(const char *s, size_t n)
{
	char *out = msg_need(n < SIZE_MAX/12 ? malloc(n*10 + 1) : NULL), *o = out;
	for (size_t i = 0, len; i < n; i += len) o += text_mask_one(s + i, n - i, &len, o);
	*o = 0;
	return out;
}

/* How many bytes from s on are plain ASCII, at least: eight at a time. */
static size_t plain(const char *s, size_t n)
{
	size_t i = 0;
	for (uint64_t eight; n - i >= sizeof eight; i += sizeof eight) {
		memcpy(&eight, s + i, sizeof eight);
		if (eight & UINT64_C(0x8080808080808080)) break;
	}
	return i;
}

bool text_replace(const char *s, size_t n, char **to, size_t *n_to)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i = 0, len = 0;
	uint32_t c;
	char *o;
	for (i = plain(s, n); i < n && (len = utf8(p + i, n - i, &c)); i += len + plain(s + i + len, n - i - len));
	if (i == n) return false;
	*to = o = msg_need(n < SIZE_MAX/3 ? malloc(3*n) : NULL);
	for (i = 0; i < n; i += len) {
		len = utf8(p + i, n - i, &c);
		memcpy(o, len ? s + i : "\xef\xbf\xbd", len ? len : 3);
		o += len ? len : 3;
		len += !len;
	}
	*n_to = (size_t)(o - *to);
	return true;
}

bool text_print(const char *s, size_t n)
{
	char one[12];
	if (!isatty(1)) return !n || fwrite(s, n, 1, stdout) == 1;
	for (size_t i = 0, len; i < n; i += len) {
		size_t k = text_mask_one(s + i, n - i, &len, one);
		bool plain = s[i] == '\n' || s[i] == '\t';
		if (fwrite(plain ? s + i : one, plain ? 1 : k, 1, stdout) != 1) return false;
	}
	return true;
}

size_t text_width(const char *masked)
{
	size_t n = 0;
	for (; *masked; masked++) n += (*masked & 0xc0) != 0x80;
	return n;
}
