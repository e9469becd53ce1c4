/* SPDX-License-Identifier: MIT
 * tool_gguf.c - a GGUF file on stdout from a text on stdin, so that fixtures can be read in review:
 *
 *   kv TYPE KEY VALUE          TYPE as ggu_kv_type_name has it; strings to the end of the line, with \xNN
 *   kv TYPE[] KEY VALUE...     items separated by blanks
 *   tensor TYPE NAME SEED NE...     F32: numbers around 0 from the seed; other types: bytes from it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/types.h"

static void die(const char *what, const char *which)
{
	fprintf(stderr, "tool_gguf: %s: %s\n", what, which);
	exit(2);
}

/* Replaces \xNN in place; returns how many bytes are left. */
static size_t unescape(char *s)
{
	char *to = s, *start = s;
	while (*s) {
		unsigned byte;
		if (s[0] == '\\' && s[1] == 'x' && sscanf(s + 2, "%2x", &byte) == 1) { *to++ = (char)byte; s += 4; }
		else *to++ = *s++;
	}
	*to = 0;
	return (size_t)(to - start);
}

static enum ggu_kv_type type_of(const char *name)
{
	for (int t = 0; t < GGU_KV_TYPE_COUNT; t++) if (!strcmp(name, ggu_kv_type_name(t))) return t;
	die("no such type", name);
	return 0;
}

enum { MAX = 512 };
static void set_array(struct ggu_meta *m, const char *key, enum ggu_kv_type t, char *rest)
{
	static struct ggu_str strs[MAX];
	static unsigned char packed[MAX*8];
	size_t n = 0, width = ggu_kv_type_bytes(t);
	for (char *p = strtok(rest, " "); p && n < MAX; p = strtok(NULL, " "), n++) {
		int64_t i = strtoll(p, NULL, 10);
		float f = strtof(p, NULL);
		double d = strtod(p, NULL);
		if (t == GGU_STRING) strs[n] = (struct ggu_str){ p, unescape(p) };
		else
			memcpy(packed + n*width, t == GGU_F32 ? (void *)&f : t == GGU_F64 ? (void *)&d : (void *)&i,
				width);
	}
	if (t == GGU_STRING ? ggu_meta_set_strs(m, key, strs, n) : ggu_meta_set_array(m, key, t, packed, n))
		die("cannot set", key);
}

static void set(struct ggu_meta *m, const char *key, char *type, char *rest)
{
	size_t n = strlen(type);
	enum ggu_kv_type t;
	int s;
	if (n > 2 && !strcmp(type + n - 2, "[]")) {
		type[n - 2] = 0;
		set_array(m, key, type_of(type), rest);
		return;
	}
	t = type_of(type);
	if (t == GGU_STRING) { n = unescape(rest); s = ggu_meta_set_str(m, key, rest, n); }
	else if (t == GGU_BOOL) s = ggu_meta_set_bool(m, key, !strcmp(rest, "true"));
	else if (t == GGU_F32 || t == GGU_F64) s = ggu_meta_set_float(m, key, t, strtod(rest, NULL));
	else if (*rest == '-') s = ggu_meta_set_int(m, key, t, strtoll(rest, NULL, 10));
	else s = ggu_meta_set_uint(m, key, t, strtoull(rest, NULL, 10));
	if (s) die("cannot set", key);
}

static struct { char name[128]; uint32_t type, seed, n_dims; uint64_t ne[4]; } tensors[MAX];

static void write_data(struct ggu_writer *w, size_t i)
{
	uint64_t bytes, n = 1;
	uint32_t s = tensors[i].seed*2654435761u + 1;
	for (uint32_t d = 0; d < tensors[i].n_dims; d++) n *= tensors[i].ne[d];
	ggu_type_bytes(tensors[i].type, n, &bytes);
	for (uint64_t at = 0; at < bytes; at += 4) {
		unsigned char b[4];
		float f;
		s = s*1664525u + 1013904223u;
		f = (float)(int32_t)s/2147483648.0f;
		memcpy(b, tensors[i].type == GGU_TYPE_F32 ? (void *)&f : (void *)&s, 4);
		if (ggu_writer_data(w, b, bytes - at < 4 ? (size_t)(bytes - at) : 4, NULL))
			die("cannot write", tensors[i].name);
	}
}

int main(void)
{
	static char line[65536];
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;
	size_t n = 0;
	while (fgets(line, sizeof line, stdin)) {
		char type[64], key[256];
		int at = 0;
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "kv %63s %255s %n", type, key, &at) == 2 && at) {
			unescape(key);
			set(m, key, type, line + at);
		} else if (sscanf(line, "tensor %63s %127s %u%n", type, tensors[n].name, &tensors[n].seed, &at) == 3 &&
			n < MAX - 1) {
			const struct ggu_type_info *info = ggu_type_info(0);
			for (uint32_t t = 0; t < GGU_TYPE_COUNT; t++)
				if (ggu_type_info(t) && !strcmp(ggu_type_info(t)->name, type)) info = ggu_type_info(t);
			tensors[n].type = info->id;
			for (char *p = strtok(line + at, " "); p && tensors[n].n_dims < 4; p = strtok(NULL, " "))
				tensors[n].ne[tensors[n].n_dims++] = strtoull(p, NULL, 10);
			unescape(tensors[n].name);
			n++;
		} else if (*line && *line != '#') die("cannot read", line);
	}
	if (ggu_writer_new(&w, m, NULL)) die("cannot write", "header");
	for (size_t i = 0; i < n; i++)
		if (ggu_writer_add(w, tensors[i].name, tensors[i].n_dims, tensors[i].ne, tensors[i].type, NULL))
			die("cannot add", tensors[i].name);
	if (ggu_writer_begin(w, 1, NULL)) die("cannot write", "header");
	for (size_t i = 0; i < n; i++) write_data(w, i);
	if (ggu_writer_end(w, NULL)) die("cannot write", "end");
	ggu_writer_free(w);
	ggu_meta_free(m);
	return 0;
}
