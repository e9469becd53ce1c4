/* SPDX-License-Identifier: MIT
 * expr.c - the text of an expression to its tree: a tokenizer and a precedence climber.
 *
 * Binary operators are one table, loosest first; the grammar is in expr.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "expr_internal.h"

enum { MAX_DEPTH = 64, MAX_TEXT = 4096, MAX_ITEMS = 1 << 22, MAX_STEPS = 1 << 23 };

/* ---- arena ---- */

struct expr_arena *expr_arena_new(void)
{
	struct expr_arena *a = calloc(1, sizeof *a);
	if (a) *a = (struct expr_arena){ .items = MAX_ITEMS, .steps = MAX_STEPS };
	return a;
}

void *expr_arena_alloc(struct expr_arena *a, size_t bytes) { return ggu_arena_zeros(&a->memory, bytes); }

enum ggu_status expr_arena_items(struct expr_arena *a, size_t n, struct expr_value **v, struct ggu_error *err)
{
	struct expr_value *l;
	if (n > a->items) return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "lists have too many items");
	l = expr_arena_alloc(a, n*sizeof *l + 1);
	if (!l) return ggu_no_memory(err);
	a->items -= n;
	*v = l;
	return GGU_OK;
}

void expr_arena_free(struct expr_arena *a)
{
	if (!a) return;
	ggu_arena_free(&a->memory);
	free(a);
}

/* ---- tokens ---- */

enum token { T_END, T_NUMBER, T_STRING, T_NAME, T_SIGN, T_BAD };
struct parser {
	const char *text, *p;           /* p: after the token */
	struct expr_arena *arena;
	struct ggu_error *err;
	enum ggu_status status;
	int depth;
	enum token t;
	const char *start; size_t n;    /* the token's characters; of a string those inside the quotes */
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static void next(struct parser *p)
{
	static const char two[] = "== != <= >= ?? // ";
	const char *s = p->p;
	while (*s == ' ' || *s == '\t' || *s == '\n') s++;
	p->start = s;
	if (!*s) p->t = T_END;
	else if (is_digit(*s)) {
		p->t = T_NUMBER;
		while (is_digit(*s)) s++;
		if (*s == '.' && is_digit(s[1])) for (s++; is_digit(*s); s++);
		if ((*s == 'e' || *s == 'E') && (is_digit(s[1]) || ((s[1] == '-' || s[1] == '+') && is_digit(s[2]))))
			for (s += 2; is_digit(*s); s++);
	} else if (is_letter(*s)) {
		p->t = T_NAME;
		while (is_letter(*s) || is_digit(*s)) s++;
	} else if (*s == '\'') {
		p->start = ++s;
		while (*s && *s != '\'') s++;
		p->t = *s ? T_STRING : T_BAD;
		p->n = (size_t)(s - p->start);
		p->p = *s ? s + 1 : s;
		return;
	} else {
		p->t = T_SIGN;
		for (const char *o = two; *o; o += 3) if (s[0] == o[0] && s[1] == o[1]) { s++; break; }
		s++;
	}
	p->n = (size_t)(s - p->start);
	p->p = s;
}

static bool at(const struct parser *p, const char *text)
{
	return (p->t == T_SIGN || p->t == T_NAME) && p->n == strlen(text) && !memcmp(p->start, text, p->n);
}
static bool take(struct parser *p, const char *text)
{
	if (!at(p, text)) return false;
	next(p);
	return true;
}
static struct expr_node *bad(struct parser *p, const char *what)
{
	if (!p->status)
		p->status = ggu_fail(p->err, GGU_ERR_FORMAT, (uint64_t)(p->start - p->text), "",
			"%s in expression: %.80s", what, p->text);
	return NULL;
}

static void *no_memory(struct parser *p)
{
	if (!p->status) p->status = ggu_no_memory(p->err);
	return NULL;
}

/* ---- tree ---- */

static struct expr_node *node(struct parser *p, enum expr_op op, size_t n_args, size_t where)
{
	struct expr_node *e = expr_arena_alloc(p->arena, sizeof *e);
	if (e && n_args) e->arg = expr_arena_alloc(p->arena, n_args*sizeof *e->arg);
	if (!e || (n_args && !e->arg)) return no_memory(p);
	e->op = op;
	e->n_args = n_args;
	e->at = where;
	return e;
}
static char *copy(struct parser *p)
{
	char *s = expr_arena_alloc(p->arena, p->n + 1);
	return s ? memcpy(s, p->start, p->n) : no_memory(p);
}

static struct expr_node *parse(struct parser *p, int level);

static struct expr_node *number(struct parser *p)
{
	struct expr_node *e = node(p, OP_VALUE, 0, (size_t)(p->start - p->text));
	char *s = copy(p);
	if (!e || !s) return NULL;
	errno = 0;
	if (strpbrk(s, ".eE")) {
		e->value.kind = EXPR_FLOAT;
		e->value.u.f = strtod(s, NULL);
	} else {
		e->value.kind = EXPR_INT;
		e->value.u.i = strtoll(s, NULL, 10);
	}
	if (errno) return bad(p, "number out of range");
	next(p);
	return e;
}

/* Parses items up to `close` as the arguments of e. */
static struct expr_node *items(struct parser *p, struct expr_node *e, const char *close)
{
	struct expr_node *v[64];
	size_t n = 0;
	if (!e) return NULL;
	if (!at(p, close))
		do {
			if (n == sizeof v/sizeof *v) return bad(p, "more than 64 items");
			v[n] = parse(p, 0);
			if (!v[n++]) return NULL;
		} while (take(p, ","));
	if (!take(p, close)) return bad(p, "missing closing bracket");
	e->n_args = n;
	e->arg = expr_arena_alloc(p->arena, (n + 1)*sizeof *e->arg);
	if (!e->arg) return no_memory(p);
	memcpy(e->arg, v, n*sizeof *v);
	return e;
}

static struct expr_node *word(struct parser *p)
{
	size_t where = (size_t)(p->start - p->text);
	struct expr_node *e = node(p, OP_NAME, 0, where);
	char *s = copy(p);
	if (!e || !s) return NULL;
	next(p);
	e->name = s;
	if (take(p, "(")) {
		e->op = OP_CALL;
		return items(p, e, ")");
	}
	if (!strcmp(s, "true") || !strcmp(s, "false")) {
		e->op = OP_VALUE;
		e->value.kind = EXPR_BOOL;
		e->value.u.b = *s == 't';
	} else if (!strcmp(s, "null")) e->op = OP_VALUE;
	return e;
}

static struct expr_node *primary(struct parser *p)
{
	size_t where = (size_t)(p->start - p->text);
	struct expr_node *e;
	if (p->t == T_NUMBER) return number(p);
	if (p->t == T_NAME) return word(p);
	if (p->t == T_STRING) {
		e = node(p, OP_VALUE, 0, where);
		if (!e) return NULL;
		e->value.kind = EXPR_STR;
		e->value.u.s = (struct ggu_str){ copy(p), p->n };
		next(p);
		return e->value.u.s.p ? e : NULL;
	}
	if (take(p, "[")) return items(p, node(p, OP_LIST, 0, where), "]");
	if (take(p, "(")) {
		e = parse(p, 0);
		return !e ? NULL : take(p, ")") ? e : bad(p, "missing closing parenthesis");
	}
	return bad(p, p->t == T_END ? "end of text" : "unexpected character");
}

static struct expr_node *postfix(struct parser *p)
{
	struct expr_node *e = primary(p), *o;
	while (e && (at(p, ".") || at(p, "["))) {
		bool member = at(p, ".");
		o = node(p, member ? OP_MEMBER : OP_INDEX, member ? 1 : 2, (size_t)(p->start - p->text));
		if (!o) return NULL;
		next(p);
		o->arg[0] = e;
		if (member) {
			if (p->t != T_NAME) return bad(p, "missing name after the dot");
			o->name = copy(p);
			if (!o->name) return NULL;
			next(p);
		} else {
			o->arg[1] = parse(p, 0);
			if (!o->arg[1]) return NULL;
			if (!take(p, "]")) return bad(p, "missing closing bracket");
		}
		e = o;
	}
	return e;
}

static struct expr_node *unary(struct parser *p, enum expr_op op, int level)
{
	struct expr_node *e = node(p, op, 1, (size_t)(p->start - p->text));
	if (!e) return NULL;
	next(p);
	e->arg[0] = parse(p, level);
	return e->arg[0] ? e : NULL;
}

/* Loosest first; a row's operators associate to the left. */
static const struct { const char *text; enum expr_op op; int level; } binary[] = {
	{ "or", OP_OR, 1 }, { "and", OP_AND, 2 },
	{ "==", OP_EQ, 4 }, { "!=", OP_NE, 4 }, { "<", OP_LT, 4 }, { "<=", OP_LE, 4 }, { ">", OP_GT, 4 },
	{ ">=", OP_GE, 4 }, { "in", OP_IN, 4 },
	{ "??", OP_ALT, 5 }, { "+", OP_ADD, 6 }, { "-", OP_SUB, 6 },
	{ "*", OP_MUL, 7 }, { "/", OP_DIV, 7 }, { "//", OP_FLOORDIV, 7 }, { "%", OP_MOD, 7 },
};
enum { LEVEL_COND = 0, LEVEL_NOT = 3, LEVEL_UNARY = 8 };

static struct expr_node *parse_level(struct parser *p, int level)
{
	struct expr_node *e;
	if (level == LEVEL_UNARY) return at(p, "-") ? unary(p, OP_NEG, LEVEL_UNARY) : postfix(p);
	if (level == LEVEL_NOT && at(p, "not")) return unary(p, OP_NOT, LEVEL_NOT);
	e = parse_level(p, level + 1);
	if (level == LEVEL_COND) {
		struct expr_node *c;
		if (!e || !at(p, "?")) return e;
		c = node(p, OP_COND, 3, (size_t)(p->start - p->text));
		if (!c) return NULL;
		next(p);
		c->arg[0] = e;
		c->arg[1] = parse(p, 0);
		if (!c->arg[1]) return NULL;
		if (!take(p, ":")) return bad(p, "missing : after ?");
		c->arg[2] = parse(p, 0);
		return c->arg[2] ? c : NULL;
	}
	while (e) {
		size_t i = 0, n = sizeof binary/sizeof *binary;
		struct expr_node *o;
		while (i < n && !(binary[i].level == level && at(p, binary[i].text))) i++;
		if (i == n) return e;
		o = node(p, binary[i].op, 2, (size_t)(p->start - p->text));
		if (!o) return NULL;
		next(p);
		o->arg[0] = e;
		o->arg[1] = parse_level(p, level + 1);
		e = o->arg[1] ? o : NULL;
	}
	return NULL;
}

/* Every recursion (brackets, signs, ?:) passes here, which bounds its depth. */
static struct expr_node *parse(struct parser *p, int level)
{
	struct expr_node *e;
	if (++p->depth > MAX_DEPTH) return bad(p, "nested too deeply");
	e = parse_level(p, level);
	p->depth--;
	return e;
}

enum ggu_status expr_parse(struct expr **out, const char *text, struct ggu_error *err)
{
	struct expr *e;
	struct parser p = { .text = text, .p = text, .err = err };
	if (strlen(text) > MAX_TEXT)
		return ggu_fail(err, GGU_ERR_RANGE, MAX_TEXT, "", "expression longer than %d bytes", MAX_TEXT);
	e = calloc(1, sizeof *e);
	if (e) e->arena = p.arena = expr_arena_new();
	if (!e || !e->arena) {
		free(e);
		return ggu_no_memory(err);
	}
	next(&p);
	e->root = parse(&p, 0);
	if (e->root && p.t != T_END) bad(&p, "unexpected text at the end");
	if (p.status) expr_free(e);
	else *out = e;
	return p.status;
}

void expr_free(struct expr *e)
{
	if (!e) return;
	expr_arena_free(e->arena);
	free(e);
}

enum ggu_status expr_text(const char *text, const struct expr_scope *s, struct expr_arena *a, struct expr_value *v,
	struct ggu_error *err)
{
	struct expr *e;
	enum ggu_status st = expr_parse(&e, text, err);
	if (st) return st;
	st = expr_eval(e, s, a, v, err);
	expr_free(e);
	return st;
}
