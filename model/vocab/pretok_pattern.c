/* SPDX-License-Identifier: MIT
 * pretok_pattern.c - the regular expressions of tokenizer.json as PCRE understands them.
 *
 * They are Oniguruma's, which differ in a few escapes, and in classes: these may hold classes and be intersected (&&),
 * where PCRE would take brackets and ampersands for letters. A class that holds others becomes
 *   [ab[cd]]    [abcd]
 *   [ab[^cd]]   (?:[ab]|[^cd])
 *   [ab&&cd]    (?:(?=[ab])[cd])
 *   [^ab[^cd]]  (?:(?!(?:[ab]|[^cd]))(?s:.)) */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "pretok_internal.h"

enum { MAX_DEPTH = 16 };

/* \s, \w and \h as the inside of a class. PCRE's \s has U+180E, which Unicode 6.3 took out; its \w has all numbers and
 * no marks; its \h is blanks, not hex digits. Each begins and ends with a property or a range, so that a hyphen beside
 * it makes no range. */
#define SPACE "\\p{Zs}\\t-\\r\\x{85}\\p{Z}"
#define WORD PRETOK_WORD
#define HEX "0-9a-fA-F"
#define VT "\\x{b}"                /* \v; PCRE's is all that breaks lines */
/* Outside of a class, \w has the fractions and raised digits of Latin-1 too; \b is where a run of these begins or
 * ends. */
#define EDGED_IN WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define EDGED "[" EDGED_IN "]"
#define EDGE "(?:(?<=" EDGED ")(?!" EDGED ")|(?<!" EDGED ")(?=" EDGED "))"

/* What replaces the escape of this letter; in_class: between brackets. NULL: PCRE's own is right. */
static const char *escape(char letter, bool in_class)
{
	switch (letter) {
	case 's': return in_class ? SPACE : "[" SPACE "]";
	case 'S': return in_class ? "\\S\\x{180e}" : "[^" SPACE "]";
	case 'w': return in_class ? WORD : EDGED;
	case 'W': return in_class ? "[^" WORD "]" : "[^" EDGED_IN "]";
	case 'h': return in_class ? HEX : "[" HEX "]";
	case 'H': return "[^" HEX "]";
	case 'v': return VT;
	case 'Q': return "Q";           /* PCRE would quote what follows */
	case 'E': return "E";
	case 'b': return in_class ? NULL : EDGE;
	case 'B': return in_class ? NULL : "(?!" EDGE ")";
	default: return NULL;
	}
}
static void put(struct buf *to, const char *text) { buf_put(to, text, strlen(text)); }

/* Writes an escape that stays; p points to the backslash. Returns what follows it. \uHHHH is \x{HHHH}. \p{Han} and the
 * like are the characters of the script itself, where PCRE takes those that it shares with others too. \p without a
 * brace is a letter, where PCRE would take the next one for a name. */
static const char *put_own_escape(struct buf *to, const char *p)
{
	const bool property = p[1] == 'p' || p[1] == 'P';
	const char *name = p + 3 + (p[1] && p[2] == '{' && p[3] == '^'),
		*end = property && p[2] == '{' ? strchr(name, '}') : NULL;
	struct buf script = { 0 };
	pcre2_code *re = NULL;
	int code;
	PCRE2_SIZE at;
	if (p[1] == 'u' && strspn(p + 2, "0123456789abcdefABCDEF") >= 4) {
		put(to, "\\x{");
		buf_put(to, p + 2, 4);
		put(to, "}");
		return p + 6;
	}
	if (!end || end == name) {
		const bool letter = property && p[2] != '{';
		buf_put(to, p + letter, 2 - letter);
		return p + 2;
	}
	put(&script, (p[1] == 'P') != (name[-1] == '^') ? "\\P{sc:" : "\\p{sc:");
	buf_put(&script, name, (size_t)(end + 1 - name));
	if (!script.failed)
		re = pcre2_compile((PCRE2_SPTR)script.p, script.n, PCRE2_UTF, &code, &at, NULL);
	if (re) buf_put(to, script.p, script.n);
	else buf_put(to, p, (size_t)(end + 1 - p));
	to->failed |= script.failed;
	pcre2_code_free(re);
	free(script.p);
	return end + 1;
}

/* A class while it is read. */
struct class {
	bool negated;
	struct buf plain;               /* what PCRE can have between brackets */
	struct buf others;              /* "|atom" for each of the rest */
	struct buf met;                 /* "(?=atom)" for each side before a && */
};
static void class_free(struct class *c)
{
	free(c->plain.p);
	free(c->others.p);
	free(c->met.p);
}
/* Writes the side of && that was read last. */
static void put_side(const struct class *c, struct buf *to)
{
	if (c->others.n) put(to, "(?:");
	if (c->plain.n) {
		put(to, "[");
		buf_put(to, c->plain.p, c->plain.n);
		put(to, "]");
	}
	if (c->others.n) {
		buf_put(to, c->others.p + !c->plain.n, c->others.n - !c->plain.n);
		put(to, ")");
	}
	if (!c->plain.n && !c->others.n) put(to, "(?!)");
}
static bool is_plain(const struct class *c) { return !c->others.n && !c->met.n && c->plain.n; }
static void put_class(const struct class *c, struct buf *to)
{
	if (c->negated && is_plain(c)) {
		put(to, "[^");
		buf_put(to, c->plain.p, c->plain.n);
		put(to, "]");
		return;
	}
	put(to, c->negated ? "(?:(?!" : c->met.n ? "(?:" : "");
	if (c->met.n) buf_put(to, c->met.p, c->met.n);
	put_side(c, to);
	put(to, c->negated ? ")(?s:.))" : c->met.n ? ")" : "");
	to->failed |= c->plain.failed || c->others.failed || c->met.failed;
}
static void end_side(struct class *c)
{
	put(&c->met, "(?=");
	put_side(c, &c->met);
	put(&c->met, ")");
	c->plain.n = c->others.n = 0;
}
static const char *put_escape(struct class *c, const char *p)
{
	const char *other = escape(p[1], true);
	if (!other) return put_own_escape(&c->plain, p);
	if (*other == '[') put(&c->others, "|");
	put(*other == '[' ? &c->others : &c->plain, other);
	return p + 2;
}

/* Writes a class of POSIX, such as [:punct:] or [:^punct:], p[n]. Those of PCRE have other characters: its letters are
 * \p{L}, its [:punct:] has no symbols but those of ASCII, its [:graph:] nothing for private use. */
static void put_posix(struct class *c, const char *p, size_t n)
{
	static const struct { const char *name, *inside; bool not; } own[] = {
		{ "punct:]", "\\p{P}\\p{S}", false }, { "space:]", SPACE, false },
		{ "blank:]", "\\p{Zs}\\t-\\t", false }, { "word:]", WORD, false },
		{ "upper:]", "\\p{Uppercase}", false }, { "lower:]", "\\p{Lowercase}", false },
		{ "alpha:]", "\\p{Alphabetic}", false }, { "alnum:]", "\\p{Alphabetic}\\p{Nd}", false },
		{ "graph:]", "\\p{Cc}\\p{Cn}\\p{Cs}\\p{Z}", true },
		{ "print:]", "\\p{Cc}\\p{Cn}\\p{Cs}\\p{Zl}\\p{Zp}", true },
	};
	const bool negated = p[2] == '^';
	size_t i = 0;
	while (i < sizeof own/sizeof *own && !text_starts(p + 2 + negated, own[i].name)) i++;
	if (i == sizeof own/sizeof *own) buf_put(&c->plain, p, n);
	else if (negated != own[i].not) {
		put(&c->others, "|[^");
		put(&c->others, own[i].inside);
		put(&c->others, "]");
	} else put(&c->plain, own[i].inside);
}

static const char *read_class(const char *p, struct class *c, int depth);
static const char *read_inner(const char *p, struct class *c, int depth)
{
	struct class inner = { 0 };
	p = read_class(p, &inner, depth);
	if (is_plain(&inner) && !inner.negated) buf_put(&c->plain, inner.plain.p, inner.plain.n);
	else {
		put(&c->others, "|");
		put_class(&inner, &c->others);
	}
	class_free(&inner);
	return p;
}
/* Reads a class from after its bracket; returns what follows it. NULL: it does not end, or is nested too deep. */
static const char *read_class(const char *p, struct class *c, int depth)
{
	const char *begin;
	if (depth > MAX_DEPTH) return NULL;
	c->negated = *p == '^';
	p += c->negated;
	for (begin = p; p && *p && (*p != ']' || p == begin); ) {
		const char *posix = *p == '[' && p[1] == ':' ? strstr(p, ":]") : NULL;
		if (*p == '\\' && p[1]) p = put_escape(c, p);
		else if (*p == '&' && p[1] == '&') {
			end_side(c);
			p += 2;
		} else if (posix) {
			put_posix(c, p, (size_t)(posix + 2 - p));
			p = posix + 2;
		} else if (*p == '[') p = read_inner(p + 1, c, depth + 1);
		else {
			/* a bracket that stands for itself */
			if (*p == ']') put(&c->plain, "\\");
			buf_put(&c->plain, p++, 1);
		}
	}
	return p && *p ? p + 1 : NULL;
}

/* Writes a bound that means another thing to PCRE: {,3} is plain text there, and a plus behind braces does not repeat
 * but forbids to go back. Returns what follows; p: PCRE's own is right. NULL: it has no other spelling. */
static const char *put_bound(struct buf *to, const char *p)
{
	const char *least = p + 1, *end = least + strspn(least, "0123456789"), *close = end;
	const bool range = *end == ',', any = end == least;
	const long n = any ? 0 : strtol(least, NULL, 10);
	bool open, more;
	if (range) close += 1 + strspn(end + 1, "0123456789");
	open = range && close == end + 1;
	if (*close != '}' || (any && (!range || open))) return p;
	more = close[1] == '+';
	if (!range && close[1] == '?') return NULL;     /* all or nothing, where PCRE ignores it */
	if (more && n > 1 && !open) return NULL;
	if (more && !open) put(to, n ? "+" : "*");
	else if (any || more) {
		put(to, any ? "{0" : "{");
		buf_put(to, least, (size_t)(close + 1 - least));
	} else return p;
	return close + 1 + more;
}

/* Writes the opening of a group with options; p points behind "(?". Oniguruma's m is PCRE's s. */
static const char *put_options(struct buf *to, const char *p)
{
	const char *end = p + strspn(p, "imx-");
	put(to, "(?");
	if (*end != ':' && *end != ')') return p;
	for (; p < end; p++) buf_put(to, *p == 'm' ? "s" : p, 1);
	return p;
}

bool pretok_pattern(const char *p, struct buf *to)
{
	buf_put(to, "", 0);
	while (p && *p) {
		struct class c = { 0 };
		const char *other = *p == '\\' && p[1] ? escape(p[1], false) : NULL,
			*after_bound = *p == '{' ? put_bound(to, p) : p;
		if (*p == '[') {
			p = read_class(p + 1, &c, 1);
			put_class(&c, to);
			class_free(&c);
		} else if (other) {
			put(to, other);
			p += 2;
		} else if (*p == '\\' && p[1]) p = put_own_escape(to, p);
		else if (*p == '(' && p[1] == '?') p = put_options(to, p + 2);
		else if (after_bound != p) p = after_bound;
		else buf_put(to, p++, 1);
	}
	return p;
}
