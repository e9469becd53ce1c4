/* SPDX-License-Identifier: MIT
 * msg.c - messages to the user, and sizes with units. A message is formatted and masked in buffers on the stack, then
 * written by one call. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/text.h"
#include "../libgguf/whole.h"
#include "msg.h"
#include "out.h"
#include "progress.h"

const char *msg_program = "gguf-utils";
bool msg_quiet, msg_verbose;

/* ---- messages ---- */

/* Formats a message. If a long name makes it too long, its beginning and its end are kept, cut between characters: the
 * reason is in one of the two. */
static void format(char *text, size_t bytes, const char *fmt, va_list ap)
{
	static const char gap[] = "...";
	va_list again;
	size_t n, head = bytes/2, tail = bytes - head - sizeof gap, from;
	char *all = NULL;
	va_copy(again, ap);
	n = (size_t)vsnprintf(text, bytes, fmt, ap);
	if (n >= bytes && n <= INT_MAX) all = malloc(n + 1);
	if (all) {                      /* without memory the end is lost */
		vsnprintf(all, n + 1, fmt, again);
		from = n - tail;
		while (head > bytes/2 - 4 && ((unsigned char)all[head] & 0xc0) == 0x80) head--;
		while (from < n - tail + 4 && ((unsigned char)all[from] & 0xc0) == 0x80) from++;
		snprintf(text + head, bytes - head, "%s%s", gap, all + from);
		free(all);
	}
	va_end(again);
}

/* Masks the whole message, since names from files and command lines may be in it. It is written by one call, so that
 * programs which share a terminal or a log do not mix their lines; by more only if masking makes it too long even for a
 * pipe, which takes no more than a page at once. */
void msg_say_list(const char *fmt, va_list ap)
{
	enum { MASKED = 16 };           /* room for a character, "\\u{10FFFF}" */
	char text[8192], line[64 + sizeof text];
	size_t n = (size_t)snprintf(line, 64, "%.60s: ", msg_program), len;
	format(text, sizeof text, fmt, ap);
	progress_hide();
	for (size_t i = 0, size = strlen(text); i < size; i += len) {
		if (n + MASKED >= sizeof line) {
			(void)!whole_write(2, line, n); /* there is nowhere to tell of it */
			n = 0;
		}
		n += text_mask_one(text + i, size - i, &len, line + n);
	}
	line[n++] = '\n';
	(void)!whole_write(2, line, n);
}

#ifdef __SANITIZE_ADDRESS__
/* A program in trouble leaves its memory to the system. The leak checker asks this function, and would otherwise report
 * what optimisation no longer keeps in a variable. */
static bool dying;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return dying; }
#endif

/* Several threads may find the same trouble at once, but only one tells of it and exits: the others wait here. */
static void be_first(void)
{
	static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&first);
}
_Noreturn static void leave(void)
{
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
	msg_say_list(fmt, ap);
	va_end(ap);
}

void msg_note(const char *fmt, ...)
{
	va_list ap;
	if (msg_quiet || !isatty(2)) return;
	va_start(ap, fmt);
	msg_say_list(fmt, ap);
	va_end(ap);
}

void msg_say(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	msg_say_list(fmt, ap);
	va_end(ap);
}

void msg_die(const char *fmt, ...)
{
	va_list ap;
	be_first();
	va_start(ap, fmt);
	msg_say_list(fmt, ap);
	va_end(ap);
	leave();
}

void msg_usage(const char *fmt, ...)
{
	va_list ap;
	be_first();
	va_start(ap, fmt);
	msg_say_list(fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try '%s -h'.\n", msg_program);
	leave();
}

void *msg_need(void *p)
{
	if (!p) msg_die("out of memory");
	return p;
}

const char *msg_name(const char *file) { return file && strcmp(file, "-") ? file : TEXT_STDIN; }
/* NAME-00001-of-00003.gguf and the like, of the same set? */
static bool is_shard_beside(const char *a, const char *b)
{
	enum { TAIL = sizeof "00001-of-00003.gguf" - 1, NUMBER = 5 };
	const size_t n = strlen(a);
	return n > TAIL && strlen(b) == n && !strncmp(a, b, n - TAIL)
		&& !strcmp(a + n - TAIL + NUMBER, b + n - TAIL + NUMBER);
}
/* Is it the folder of a Hugging Face checkpoint, which a program that reads GGUF was given? */
static bool is_checkpoint(const char *folder)
{
	char path[4096];
	return snprintf(path, sizeof path, "%s/config.json", folder) < (int)sizeof path && !access(path, F_OK);
}
void msg_error(const char *file, const struct ggu_error *err)
{
	const char *name = msg_name(file), *inner = err->file, *what = err->what;
	const char *reason = err->sys_errno ? strerror(err->sys_errno) : "";
	char at[40] = "";
	if (err->offset != GGU_NO_OFFSET) snprintf(at, sizeof at, "byte %llu: ", (unsigned long long)err->offset);
	/* a shard's name replaces that of the set; a file of a folder follows the folder; file_named has added ./ */
	if (strchr(inner, '/') || !strcmp(inner, TEXT_STDIN) || is_shard_beside(inner, name)) {
		bool added = !strncmp(inner, "./", 2) && file && strncmp(file, "./", 2);
		name = inner + (added ? 2 : 0);
		inner = "";
	}
	/* if a file cannot be opened, read or written, the system's message says everything */
	if (*reason && (!strcmp(what, "open") || !strcmp(what, "read") || !strcmp(what, "write"))) {
		what = reason;
		reason = "";
	}
	msg_say("%s%s%s: %s%s%s%s%s%s%s", name, *inner ? ": " : "", inner, at, err->where, *err->where ? ": " : "",
		what, *reason ? ": " : "", reason, err->sys_errno == EISDIR && is_checkpoint(name) ?
		"; gguf-convert makes a GGUF file of a checkpoint" : "");
}

void msg_die_error(const char *file, const struct ggu_error *err)
{
	be_first();
	msg_error(file, err);
	leave();
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

bool msg_escapes(void)
{
	const char *term = getenv("TERM");
	return term && *term && strcmp(term, "dumb");
}
bool msg_colour(void)
{
	const char *no = getenv("NO_COLOR");
	return isatty(1) && !(no && *no) && msg_escapes();
}
