/* SPDX-License-Identifier: MIT
 * msg.c - messages to the person, strings made fit for a terminal, sizes with units. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "msg.h"
#include "out.h"
#include "progress.h"

const char *msg_program = "gguf-utils";
bool msg_quiet, msg_verbose;

/* ---- text fit for a terminal ---- */

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

/* The first character of s as it may be shown, to[] of 12 bytes; *len is what it took of s. */
static size_t mask_one(const char *s, size_t n, size_t *len, char *to)
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

/* ---- messages ---- */

/* Masked as a whole, without memory of its own: names from files and command lines may be in it. One call of write, so
 * that programs which share a terminal or a log do not mix their lines. */
static void say(const char *fmt, va_list ap)
{
	char text[8192], line[64 + 4*sizeof text];      /* a byte is shown as four characters at most */
	size_t n = (size_t)snprintf(line, 64, "%.60s: ", msg_program), len;
	const char *at = line;
	vsnprintf(text, sizeof text, fmt, ap);
	for (size_t i = 0, size = strlen(text); i < size; i += len) n += mask_one(text + i, size - i, &len, line + n);
	line[n++] = '\n';
	progress_hide();
	while (n) {
		ssize_t put = write(2, at, n);
		if (put < 0 && errno == EAGAIN) poll(&(struct pollfd){ .fd = 2, .events = POLLOUT }, 1, -1);
		else if (put < 0 && errno != EINTR) return;
		if (put > 0) {
			at += put;
			n -= (size_t)put;
		}
	}
}

#ifdef __SANITIZE_ADDRESS__
/* A program in trouble leaves its memory to the system: the leak checker asks this, and otherwise reports what
 * optimisation no longer keeps in a variable. */
static bool dying;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return dying; }
#endif

/* Two threads may find trouble at once, and exit is for one: the others wait for the end. */
_Noreturn static void leave(void)
{
	static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&first);
	out_abandon_all();
#ifdef __SANITIZE_ADDRESS__
	dying = true;
#endif
	exit(EXIT_TROUBLE);
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

void msg_say(const char *fmt, ...)
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
	leave();
}

void *msg_need(void *p)
{
	if (!p) msg_die("out of memory");
	return p;
}

void msg_error(const char *file, const struct ggu_error *err)
{
	const char *name = file && strcmp(file, "-") ? file : "(stdin)", *inner = err->file, *what = err->what;
	const char *reason = err->sys_errno ? strerror(err->sys_errno) : "";
	char at[40] = "";
	if (err->offset != GGU_NO_OFFSET) snprintf(at, sizeof at, "byte %llu: ", (unsigned long long)err->offset);
	/* a shard's name replaces the set's; a file of a folder follows the folder's; ./ is file_named's */
	if (strchr(inner, '/')) {
		bool added = !strncmp(inner, "./", 2) && file && strncmp(file, "./", 2);
		name = inner + (added ? 2 : 0);
		inner = "";
	}
	if (strstr(err->what, reason)) reason = "";
	/* of a file that cannot be opened the system's words say all */
	if (*reason && (!strcmp(what, "open") || !strcmp(what, "cannot open"))) { what = reason; reason = ""; }
	msg_say("%s%s%s: %s%s%s%s%s%s", name, *inner ? ": " : "", inner, at, err->where, *err->where ? ": " : "",
		what, *reason ? ": " : "", reason);
}

void msg_die_error(const char *file, const struct ggu_error *err)
{
	msg_error(file, err);
	leave();
}

char *text_mask(const char *s, size_t n)
{
	char *out = msg_need(n < SIZE_MAX/12 ? malloc(n*10 + 1) : NULL), *o = out;
	for (size_t i = 0, len; i < n; i += len) o += mask_one(s + i, n - i, &len, o);
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
		size_t k = mask_one(s + i, n - i, &len, one);
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
