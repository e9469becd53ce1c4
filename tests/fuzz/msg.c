/* SPDX-License-Identifier: MIT
 * msg.c - stands in for tools/msg.c under the fuzz targets: what a program would die of is where survives returns. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../tools/msg.h"
#include "fuzz.h"
#if defined __SANITIZE_ADDRESS__
#define LEAKS 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define LEAKS 1
#endif
#endif
#ifdef LEAKS
void __lsan_disable(void);
void __lsan_enable(void);
#else
static void __lsan_disable(void) { }
static void __lsan_enable(void) { }
#endif

const char *msg_program = "fuzz";
int msg_quiet = 1;
bool msg_verbose;
static jmp_buf dead;
static bool alive;

/* Who dies does not clean up: memory is not missed, descriptors would run out. */
enum { FDS = 64 };
static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

bool survives(void (*call)(void *ctx), void *ctx)
{
	volatile bool ends = false;
	bool was_open[FDS];
	for (int i = 0; i < FDS; i++) was_open[i] = is_open(i);
	__lsan_disable();
	alive = true;
	if (!setjmp(dead)) {
		call(ctx);
		ends = true;
	}
	alive = false;
	__lsan_enable();
	for (int i = 0; !ends && i < FDS; i++)
		if (!was_open[i] && is_open(i)) close(i);
	return ends;
}

void msg_die(const char *fmt, ...)
{
	must(alive && *fmt, "a message where none is due");
	longjmp(dead, 1);
}
void msg_die_error(const char *file, const struct ggu_error *err) { msg_die("%s: %s", file, err->what); }
void msg_error(const char *file, const struct ggu_error *err) { (void)file; (void)err; }
void msg_warn(const char *fmt, ...) { (void)fmt; }
void msg_note(const char *fmt, ...) { (void)fmt; }
void msg_say(const char *fmt, ...) { (void)fmt; }
char *text_mask(const char *s, size_t n)
{
	char *to = malloc(n + 1);
	must(to, "no memory");
	memcpy(to, s, n);
	to[n] = 0;
	return to;
}
bool text_replace(const char *s, size_t n, char **to, size_t *n_to)
{
	(void)s; (void)n; (void)to; (void)n_to;
	return false;
}
bool text_print(const char *s, size_t n) { (void)s; (void)n; return true; }
size_t text_width(const char *masked) { return strlen(masked); }
bool msg_colour(void) { return false; }
const char *msg_bytes(uint64_t n) { (void)n; return ""; }
const char *msg_count(uint64_t n) { (void)n; return ""; }
