/* SPDX-License-Identifier: MIT
 * msg.h - what programs say to the user: messages, colour, units. Programs only.
 *
 * Messages go to stderr and are masked as a whole; strings from a file that are printed elsewhere pass text_mask. */
#ifndef TOOLS_MSG_H
#define TOOLS_MSG_H
#include <stdarg.h>
#include <stdio.h>
#include "../libgguf/ggu.h"

enum { EXIT_YES = 0, EXIT_NO = 1, EXIT_TROUBLE = 2 };

extern const char *msg_program;         /* "gguf-info"; set by opt_parse */
extern bool msg_quiet;                  /* -q: no warnings, no progress */
extern bool msg_verbose;                /* -v, of programs that have it */

#if defined __GNUC__
#define MSG_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define MSG_PRINTF(a, b)
#endif
void msg_warn(const char *fmt, ...) MSG_PRINTF(1, 2);           /* "gguf-info: ..."; not with -q */
void msg_note(const char *fmt, ...) MSG_PRINTF(1, 2);           /* as warn, but only if stderr is a terminal */
/* as warn, but with -q too: an error after which the program has more to do */
void msg_say(const char *fmt, ...) MSG_PRINTF(1, 2);
void msg_say_list(const char *fmt, va_list ap) MSG_PRINTF(1, 0);        /* the same, of an argument list */
_Noreturn void msg_die(const char *fmt, ...) MSG_PRINTF(1, 2);  /* warn, drop unfinished output, exit 2; with -q too */
/* the same, pointing to -h: for mistakes that the command line has whatever the files contain */
_Noreturn void msg_usage(const char *fmt, ...) MSG_PRINTF(1, 2);
/* Returns p, the result of malloc or the like; if it is NULL, says "out of memory" and exits 2. */
void *msg_need(void *p);
/* The name of an input in messages: "(stdin)" for "-" and NULL. */
const char *msg_name(const char *file);
/* "gguf-info: m.gguf: byte 1832: string of 9 bytes extends past the end of the file", from err; file as the user named
 * it. */
void msg_error(const char *file, const struct ggu_error *err);
_Noreturn void msg_die_error(const char *file, const struct ggu_error *err);

/* The bytes of the first character of s[n], n > 0, and its code point *c; 0, and *c the first byte, if that is part of
 * no character. *fit: it may be shown on a terminal as it is. */
size_t text_character(const char *s, size_t n, uint32_t *c, bool *fit);
/* Writes the same character as it may be shown to to[12]; returns how many of these bytes it used, and in *len how many
 * bytes of s it was. */
size_t text_mask_one(const char *s, size_t n, size_t *len, char *to);
/* Copy of n bytes of s fit for a terminal: control characters, invalid UTF-8, bidi controls as \xNN or
 * \u{...}. Caller frees; exits 2 out of memory. */
char *text_mask(const char *s, size_t n);
/* False if the n bytes are UTF-8. Else *to (the caller frees it, *n_to bytes) is a copy with U+FFFD for every
 * byte that is part of no character. Exits 2 out of memory. */
bool text_replace(const char *s, size_t n, char **to, size_t *n_to);
/* The n bytes of s to stdout, as they are; on a terminal masked, but for line feeds and tabs. False if writing
 * failed. */
bool text_print(const char *s, size_t n);
/* Columns of the terminal that masked text takes: one for each character. */
size_t text_width(const char *masked);

/* Does the terminal know escape sequences? Not without TERM, and not if that is dumb. */
bool msg_escapes(void);
/* colour on stdout: only a terminal that knows them, never with NO_COLOR */
bool msg_colour(void);
/* "4.03 GiB", "512 B" in a static ring of 8 buffers */
const char *msg_bytes(uint64_t n);
const char *msg_count(uint64_t n);      /* "6.8 M" */

#endif
