/* SPDX-License-Identifier: MIT
 * manifest.c - see manifest.h. A file is read as a whole, its lines are parsed in place, and its entries sorted by
 * file, tensor and kind, so that a look-up is a binary search. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/grow.h"
#include "load.h"
#include "manifest.h"
#include "msg.h"

enum { COLONS = 8 };            /* a name may be cut at one of its last so many */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}
/* Replaces escapes in place. */
static void unescape(char *s)
{
	char *to = s;
	for (; *s; s++) {
		if (s[0] == '\\' && s[1]) { s++; *to++ = *s == 'n' ? '\n' : *s == 'r' ? '\r' : *s; }
		else *to++ = *s;
	}
	*to = 0;
}

static bool is_digest(enum digest_kind k, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool dash = k == DIGEST_UUID && (i == 8 || i == 13 || i == 18 || i == 23);
		if (dash ? s[i] != '-' : !isxdigit((unsigned char)s[i])) return false;
	}
	return n == digest_digits(k);
}

/* Parses one line in place, without separating file and tensor; false if it is not an entry. */
static bool entry(char *line, struct manifest_entry *e)
{
	bool escaped = *line == '\\';
	char *name;
	size_t n;
	line += escaped;
	n = strcspn(line, " \t");
	if (!digest_find(line, n, &e->kind)) return false;
	line += n;
	line += strspn(line, " \t");
	n = strcspn(line, " \t");
	if (!is_digest(e->kind, line, n) || !line[n]) return false;
	for (size_t i = 0; i < n; i++) line[i] = (char)tolower((unsigned char)line[i]);
	e->digest = line;
	line[n] = 0;
	/* blanks after the second are part of the name */
	name = line + n + 1;
	name += strspn(name, " \t") != 0;
	if (!*name) return false;
	if (escaped) unescape(name);
	e->file = name;
	e->tensor = NULL;
	e->seen = false;
	return true;
}

/* A file is sorted before its tensors, one of which may have an empty name. */
static int by_name(const void *a, const void *b)
{
	const struct manifest_entry *x = a, *y = b;
	int c = strcmp(x->file, y->file);
	if (!c) c = (x->tensor != NULL) - (y->tensor != NULL);
	if (!c && x->tensor) c = strcmp(x->tensor, y->tensor);
	return c ? c : (int)x->kind - (int)y->kind;
}

/* The first of the sorted entries whose name is the n bytes of name; m->n: there is none. */
static size_t named(const struct manifest *m, const char *name, size_t n)
{
	size_t low = 0, high = m->n;
	while (low < high) {
		size_t middle = (low + high)/2;
		if (strncmp(m->entry[middle].file, name, n) < 0) low = middle + 1;
		else high = middle;
	}
	return low < m->n && !strncmp(m->entry[low].file, name, n) && !m->entry[low].file[n] ? low : m->n;
}
/* The colon after the name of a file that has a line of its own, as is[] says; NULL: there is none. */
static char *behind_named(const struct manifest *m, char *name, bool *is)
{
	size_t n = strlen(name);
	for (int colons = 0; n > 1 && colons < COLONS; ) {
		size_t found;
		if (name[--n] != ':') continue;
		colons++;
		found = named(m, name, n);
		if (found == m->n) continue;
		is[found] = true;
		return name + n;
	}
	return NULL;
}
/* Cuts names into those of a file and of a tensor. */
static void find_tensors(struct manifest *m)
{
	bool *is_file = msg_need(calloc(m->n, sizeof *is_file));
	char **cut = msg_need(calloc(m->n, sizeof *cut));
	for (size_t i = 0; i < m->n; i++) cut[i] = behind_named(m, (char *)(uintptr_t)m->entry[i].file, is_file);
	for (size_t i = 0; i < m->n; i++) {
		char *name = (char *)(uintptr_t)m->entry[i].file, *end = strstr(name, ".gguf:");
		if (is_file[named(m, name, strlen(name))]) cut[i] = NULL;
		else if (!cut[i] && end) cut[i] = end + strlen(".gguf");
		else if (!cut[i] && name[0] == '-' && name[1] == ':') cut[i] = name + 1;
	}
	for (size_t i = 0; i < m->n; i++) {
		if (!cut[i]) continue;
		*cut[i] = 0;
		m->entry[i].tensor = cut[i] + 1;
	}
	free(is_file);
	free(cut);
}

struct manifest *manifest_read(const char *path)
{
	struct manifest *m = msg_need(calloc(1, sizeof *m));
	size_t bytes, bad = 0, number = 0, first_bad = 0;
	m->text = load_text(path, LOAD_SMALL, &bytes);
	for (char *line = m->text, *next; line < m->text + bytes; line = next) {
		size_t n = strcspn(line, "\n");
		next = line + n + 1;
		line[n] = 0;
		if (n && line[n - 1] == '\r') line[n - 1] = 0;
		number++;
		if (!*line) continue;
		m->entry = msg_need(ggu_grow(m->entry, m->n, sizeof *m->entry));
		if (entry(line, m->entry + m->n)) m->n++;
		else if (!bad++) first_bad = number;
	}
	if (!m->n) msg_die("%s: not a manifest: there are no lines of algorithm, digest and name", msg_name(path));
	if (bad)
		msg_warn("%s: line %zu%s not algorithm, digest and name", msg_name(path), first_bad,
			bad > 1 ? " and others are" : " is");
	qsort(m->entry, m->n, sizeof *m->entry, by_name);
	find_tensors(m);
	qsort(m->entry, m->n, sizeof *m->entry, by_name);
	return m;
}
void manifest_free(struct manifest *m)
{
	if (!m) return;
	free(m->entry);
	free(m->text);
	free(m);
}

struct manifest_entry *manifest_file(struct manifest *m, const char *file, size_t *n)
{
	for (int base = 0; base < 2; base++)
		for (size_t i = 0; i < m->n; i++) {
			const char *name = m->entry[i].file;
			if (strcmp(base ? base_name(name) : name, base ? base_name(file) : file) != 0) continue;
			for (*n = 1; i + *n < m->n && !strcmp(m->entry[i + *n].file, name); ++*n) ;
			return m->entry + i;
		}
	return NULL;
}
struct manifest_entry *manifest_find(struct manifest_entry *of_file, size_t n, const char *tensor, enum digest_kind k,
	size_t *n_found)
{
	struct manifest_entry key = { .kind = k, .file = n ? of_file->file : "", .tensor = tensor };
	struct manifest_entry *first = n ? bsearch(&key, of_file, n, sizeof key, by_name) : NULL;
	*n_found = 0;
	if (!first) return NULL;
	while (first > of_file && !by_name(first - 1, &key)) first--;
	while (first + *n_found < of_file + n && !by_name(first + *n_found, &key)) ++*n_found;
	return first;
}

/* Does the name need escapes? */
static bool unfit(const char *s) { return s && s[strcspn(s, "\\\n\r")] != 0; }
static void put(const char *s)
{
	char *shown = isatty(1) ? text_mask(s, strlen(s)) : NULL;
	if (shown) s = shown;
	for (; *s; s++) {
		if (!shown && (*s == '\\' || *s == '\n' || *s == '\r')) putchar('\\');
		putchar(shown ? *s : *s == '\n' ? 'n' : *s == '\r' ? 'r' : *s);
	}
	free(shown);
}
void manifest_print_name(const char *file, const char *tensor, const char *what)
{
	put(file);
	if (tensor) {
		putchar(':');
		put(tensor);
	}
	puts(what);
}
void manifest_print(enum digest_kind k, const char *digest, const char *file, const char *tensor)
{
	if (!isatty(1) && (unfit(file) || unfit(tensor))) putchar('\\');
	printf("%-8s  %s  ", digest_name(k), digest);
	manifest_print_name(file, tensor, "");
}
