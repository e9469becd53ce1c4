/* SPDX-License-Identifier: MIT
 * msg.c - stands in for tools/msg.c under the fuzz targets: if a program would exit with a message, `survives` returns
 * false instead. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../tools/msg.h"
#include "fuzz.h"
#if defined __SANITIZE_ADDRESS__
#define HOOKS 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define HOOKS 1
#endif
#endif

const char *msg_program = "fuzz";
bool msg_quiet = true, msg_verbose;
static jmp_buf dead;
static bool alive;

/* A program that dies does not clean up, so descriptors would run out, and memory within half an hour. Descriptors are
 * closed here, and with a sanitizer, which reports what is allocated and freed, memory is freed too, as far as the
 * table has room. Not for calls that open streams, of which libc keeps a list. */
enum { FDS = 64, BITS = 15, BLOCKS = 1 << BITS };
static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

#ifdef HOOKS
int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void *p, size_t n),
	void (*given)(const volatile void *p));
static const volatile void *block[BLOCKS];      /* a hash table; &gone: was freed */
static const char gone;
static _Thread_local bool is_watched;
static size_t n_blocks;

static size_t block_at(const volatile void *p)
{
	size_t i = (size_t)((uintptr_t)p/16*UINT64_C(0x9e3779b97f4a7c15) >> (64 - BITS));
	while (block[i] && block[i] != p) i = (i + 1) % BLOCKS;
	return i;
}
static void block_taken(const volatile void *p, size_t n)
{
	(void)n;
	if (!is_watched || !p || n_blocks == BLOCKS/2) return;
	block[block_at(p)] = p;
	n_blocks++;
}
static void block_given(const volatile void *p)
{
	size_t i;
	if (!is_watched || !p) return;
	i = block_at(p);
	if (block[i]) block[i] = &gone;
}
static void watch(void)
{
	static bool is_installed;
	if (!is_installed) __sanitizer_install_malloc_and_free_hooks(block_taken, block_given);
	is_installed = is_watched = true;
}
static void unwatch(bool is_dead)
{
	is_watched = false;
	for (size_t i = 0; is_dead && n_blocks && i < BLOCKS; i++)
		if (block[i] && block[i] != &gone) free((void *)(uintptr_t)block[i]);
	if (n_blocks) memset(block, 0, sizeof block);
	n_blocks = 0;
}
#else
static void watch(void) { }
static void unwatch(bool is_dead) { (void)is_dead; }
#endif

bool survives(void (*call)(void *ctx), void *ctx)
{
	volatile bool ends = false;
	bool was_open[FDS];
	for (int i = 0; i < FDS; i++) was_open[i] = is_open(i);
	watch();
	alive = true;
	if (!setjmp(dead)) {
		call(ctx);
		ends = true;
	}
	alive = false;
	unwatch(!ends);
	for (int i = 0; !ends && i < FDS; i++)
		if (!was_open[i] && is_open(i)) close(i);
	return ends;
}

void msg_die(const char *fmt, ...)
{
	must(alive && *fmt, "a message where none is due");
	longjmp(dead, 1);
}
void msg_usage(const char *fmt, ...)
{
	must(alive && *fmt, "a message where none is due");
	longjmp(dead, 1);
}
void *msg_need(void *p)
{
	if (!p) msg_die("out of memory");
	return p;
}
void msg_die_error(const char *file, const struct ggu_error *err) { msg_die("%s: %s", file, err->what); }
const char *msg_name(const char *file) { return file; }
void msg_error(const char *file, const struct ggu_error *err) { (void)file; (void)err; }
void msg_warn(const char *fmt, ...) { (void)fmt; }
void msg_note(const char *fmt, ...) { (void)fmt; }
void msg_say(const char *fmt, ...) { (void)fmt; }
bool msg_escapes(void) { return false; }
bool msg_colour(void) { return false; }
const char *msg_bytes(uint64_t n) { (void)n; return ""; }
const char *msg_count(uint64_t n) { (void)n; return ""; }
