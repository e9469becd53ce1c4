/* SPDX-License-Identifier: MIT
 * msg.c - messages to the person, strings made fit for a terminal, sizes with units. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "msg.h"
#include "out.h"
#include "progress.h"

const char *msg_program = "gguf-utils";
int msg_quiet;

static void say(const char *fmt, va_list ap)
{
	progress_hide();
	fprintf(stderr, "%s: ", msg_program);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void msg_warn(const char *fmt, ...)
{
	va_list ap;
	if (msg_quiet) return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void msg_note(const char *fmt, ...)
{
	va_list ap;
	if (msg_quiet || !isatty(2)) return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

/* An error: said with -q too. */
static void MSG_PRINTF(1, 2) complain(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void msg_die(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	out_abandon_all();
	exit(EXIT_TROUBLE);
}

void msg_error(const char *file, const struct ggu_error *err)
{
	char *name = text_mask(file && strcmp(file, "-") ? file : "(stdin)", strlen(file && strcmp(file, "-") ? file : "(stdin)"));
	char *inner = text_mask(err->file, strlen(err->file)), *where = text_mask(err->where, strlen(err->where)), *what = text_mask(err->what, strlen(err->what));
	char at[40] = "";
	const char *last = strrchr(inner, '/');
	if (err->offset != GGU_NO_OFFSET) snprintf(at, sizeof at, "byte %llu: ", (unsigned long long)err->offset);
	/* a shard's name replaces the set's; a file of a folder follows the folder's */
	if (*inner && last) { free(name); name = inner; inner = NULL; }
	complain("%s%s%s: %s%s%s%s%s%s", name, inner && *inner ? ": " : "", inner && *inner ? inner : "", at, where, *where ? ": " : "", what,
		err->sys_errno && !strstr(what, strerror(err->sys_errno)) ? ": " : "", err->sys_errno && !strstr(what, strerror(err->sys_errno)) ? strerror(err->sys_errno) : "");
	free(name); free(inner); free(where); free(what);
}

void msg_die_error(const char *file, const struct ggu_error *err)
{
	msg_error(file, err);
	out_abandon_all();
	exit(EXIT_TROUBLE);
}

/* ---- text fit for a terminal ---- */

/* Length of the well-formed UTF-8 sequence at s, 0 if there is none; *c its code point. */
static size_t utf8(const unsigned char *s, size_t n, uint32_t *c)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
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
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e)
		|| (c >= 0x2060 && c <= 0x2069) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c < 0xe0080);
}

char *text_mask(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	char *out = n < SIZE_MAX/12 ? malloc(n*10 + 1) : NULL, *o = out;
	if (!out) msg_die("out of memory");
	for (size_t i = 0; i < n; ) {
		uint32_t c;
		size_t len = utf8(p + i, n - i, &c);
		if (!len) o += sprintf(o, "\\x%02X", p[i++]);
		else if (unfit(c)) {
			if (c == '\n') o += sprintf(o, "\\n");
			else if (c == '\t') o += sprintf(o, "\\t");
			else if (c < 0x80) o += sprintf(o, "\\x%02X", c);
			else o += sprintf(o, "\\u{%X}", c);
			i += len;
		} else {
			memcpy(o, p + i, len);
			o += len;
			i += len;
		}
	}
	*o = 0;
	return out;
}

bool text_replace(const char *s, size_t n, char **to, size_t *n_to)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i = 0, len = 0;
	uint32_t c;
	char *o;
	while (i < n && (len = utf8(p + i, n - i, &c))) i += len;
	if (i == n) return false;
	*to = o = n < SIZE_MAX/3 ? malloc(3*n) : NULL;
	if (!o) msg_die("out of memory");
	for (i = 0; i < n; i += len) {
		len = utf8(p + i, n - i, &c);
		memcpy(o, len ? s + i : "\xef\xbf\xbd", len ? len : 3);
		o += len ? len : 3;
		len += !len;
	}
	*n_to = (size_t)(o - *to);
	return true;
}

size_t text_width(const char *masked)
{
	size_t n = 0;
	for (; *masked; masked++) n += (*masked & 0xc0) != 0x80;
	return n;
}

/* ---- numbers with units ---- */

static char ring[8][32];
static unsigned turn;

static const char *unit(uint64_t n, double step, const char *const *names, const char *one)
{
	char *s = ring[turn++ % 8];
	double x = (double)n;
	int i = -1;
	while (x >= step*0.99995 && i < 4) { x /= step; i++; }
	if (i < 0) snprintf(s, sizeof ring[0], "%llu%s", (unsigned long long)n, one);
	else snprintf(s, sizeof ring[0], "%.*f %s", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x, names[i]);
	return s;
}
const char *msg_bytes(uint64_t n)
{
	static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	return unit(n, 1024, names, " B");
}
const char *msg_count(uint64_t n)
{
	static const char *const names[] = { "K", "M", "B", "T", "P" };
	return unit(n, 1000, names, "");
}

bool msg_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(1) && !(no && *no) && term && strcmp(term, "dumb");
}
