/* SPDX-License-Identifier: MIT
 * tool_ggtxt.c - bytes on stdout from a text on stdin, for files that no writer would write.
 *
 * Lines of statements, in the order of the bytes; # starts a comment line:
 *
 *   u8 u16 u32 u64 i8 i16 i32 i64 N    an integer: 7, -1, 0x1f, 2^62, 2^62-1
 *   f32 f64 X                          a number
 *   str "abc"                          length u64 and bytes; \xNN is a byte
 *   bytes "abc"                        bytes alone
 *   hex 00 ff ...                      bytes, to the end of the line
 *   zeros N                            N zeros
 *   pad N                              zeros up to a multiple of N
 *   repeat N STATEMENTS                the rest of the line N times
 *   big                                what follows is big-endian
 *   header T K                         "GGUF" u32 3, u64 T (tensors), u64 K (pairs)
 *   key "k" TYPE                       str "k" and the number of a value type: u32, str, arr ...
 *   array TYPE N                       item type and count
 *   tensor "t" TYPE OFFSET NE...       a table entry, to the end of the line; TYPE q4_0 or a number */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/types.h"

static uint64_t at;
static bool big;
static unsigned line_no;

static void die(const char *what, const char *which)
{
	fprintf(stderr, "tool_ggtxt: line %u: %s: %s\n", line_no, what, which);
	exit(2);
}

static void put(uint64_t v, int width)
{
	for (int i = 0; i < width; i++)
		putchar((int)(v >> 8*(big ? width - 1 - i : i) & 255));
	at += (uint64_t)width;
}

static void zeros(uint64_t n)
{
	while (n--)
		put(0, 1);
}

/* The next word, ended by a blank, or NULL at the end of the line; *p advances. */
static char *word(char **p)
{
	static char w[64];
	size_t n;

	*p += strspn(*p, " \t");
	n = strcspn(*p, " \t");
	if (!n)
		return NULL;
	if (n >= sizeof w)
		die("long word", *p);
	memcpy(w, *p, n);
	w[n] = 0;
	*p += n;
	return w;
}

static char *need(char **p)
{
	char *w = word(p);

	if (!w)
		die("something is missing", "at the end");
	return w;
}

static uint64_t integer(const char *w)
{
	char *end;
	uint64_t v = *w == '-' ? (uint64_t)strtoll(w, &end, 0) : strtoull(w, &end, 0);

	if (*end == '^') {
		unsigned long e = strtoul(end + 1, &end, 10);
		uint64_t base = v;
		for (v = 1; e--;)
			v *= base;
	}
	if (*end == '-')
		v -= strtoull(end + 1, &end, 0);
	else if (*end == '+')
		v += strtoull(end + 1, &end, 0);
	if (*end || end == w)
		die("no integer", w);
	return v;
}

/* Undoes the escapes of a quoted string in place. */
static struct ggu_str quoted(char **p)
{
	char *s, *to;

	*p += strspn(*p, " \t");
	if (**p != '"')
		die("no string", *p);
	s = to = ++*p;
	while (**p != '"') {
		unsigned byte;
		if (!**p)
			die("no closing quote", s);
		if ((*p)[0] == '\\' && (*p)[1] == 'x' && sscanf(*p + 2, "%2x", &byte) == 1) {
			*to++ = (char)byte;
			*p += 4;
		} else {
			*to++ = *(*p)++;
		}
	}
	++*p;
	return (struct ggu_str){ s, (size_t)(to - s) };
}

static void put_str(struct ggu_str s, bool length)
{
	if (length)
		put(s.n, 8);
	fwrite(s.p, 1, s.n, stdout);
	at += s.n;
}

static uint64_t kv_type(const char *w)
{
	for (int t = 0; t < GGU_KV_TYPE_COUNT; t++)
		if (!strcmp(w, ggu_kv_type_name(t)))
			return (uint64_t)t;
	return integer(w);
}

static void tensor(char **p)
{
	uint64_t ne[64], type, offset;
	const struct ggu_type_info *info;
	uint32_t n = 0;
	char *w;

	put_str(quoted(p), true);
	w = need(p);
	info = ggu_type_find(w);
	type = info ? info->id : integer(w);
	offset = integer(need(p));
	while (n < 64 && (w = word(p)))
		ne[n++] = integer(w);
	put(n, 4);
	for (uint32_t i = 0; i < n; i++)
		put(ne[i], 8);
	put(type, 4);
	put(offset, 8);
}

static void statements(char *p);

static void repeat(char **p)
{
	uint64_t n = integer(need(p));
	size_t len = strlen(*p) + 1;
	char *copy = malloc(len);

	if (!copy)
		die("out of memory", "repeat");
	while (n--)
		statements(memcpy(copy, *p, len));
	free(copy);
	*p += len - 1;
}

static void statement(const char *w, char **p)
{
	if ((*w == 'u' || *w == 'i') && w[1] >= '1' && w[1] <= '9') {
		int width = atoi(w + 1)/8;
		put(integer(need(p)), width);
	} else if (!strcmp(w, "f32")) {
		float f = strtof(need(p), NULL);
		uint32_t u;
		memcpy(&u, &f, 4);
		put(u, 4);
	} else if (!strcmp(w, "f64")) {
		double f = strtod(need(p), NULL);
		uint64_t u;
		memcpy(&u, &f, 8);
		put(u, 8);
	} else if (!strcmp(w, "str") || !strcmp(w, "bytes")) {
		bool length = *w == 's';
		put_str(quoted(p), length);
	} else if (!strcmp(w, "hex")) {
		const char *h;
		while ((h = word(p)))
			put(strtoul(h, NULL, 16), 1);
	} else if (!strcmp(w, "zeros")) {
		zeros(integer(need(p)));
	} else if (!strcmp(w, "pad")) {
		uint64_t n = integer(need(p));
		zeros((n - at % n) % n);
	} else if (!strcmp(w, "repeat")) {
		repeat(p);
	} else if (!strcmp(w, "big")) {
		big = true;
	} else if (!strcmp(w, "header")) {
		put_str((struct ggu_str){ "GGUF", 4 }, false);
		put(3, 4);
		put(integer(need(p)), 8);
		put(integer(need(p)), 8);
	} else if (!strcmp(w, "key")) {
		put_str(quoted(p), true);
		put(kv_type(need(p)), 4);
	} else if (!strcmp(w, "array")) {
		put(kv_type(need(p)), 4);
		put(integer(need(p)), 8);
	} else if (!strcmp(w, "tensor")) {
		tensor(p);
	} else {
		die("no such statement", w);
	}
}

static void statements(char *p)
{
	char *w;

	while ((w = word(&p)))
		statement(w, &p);
}

int main(void)
{
	static char line[65536];

	while (fgets(line, sizeof line, stdin)) {
		line_no++;
		line[strcspn(line, "\n")] = 0;
		if (line[strspn(line, " \t")] != '#')
			statements(line);
	}
	return fflush(stdout) || ferror(stdout) ? 2 : 0;
}
