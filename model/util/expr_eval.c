/* SPDX-License-Identifier: MIT
 * expr_eval.c - the value of an expression's tree. Rules: expr.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "../../libgguf/try.h"
#include "../../quant/vec.h"
#include "expr_internal.h"

enum { MAX_LIST = 65536, MAX_DEPTH = 200 };

struct eval {
	const struct expr_scope *scope;
	struct expr_arena *arena;
	struct ggu_error *err;
	int depth;
};

static enum ggu_status fail(const struct eval *v, const struct expr_node *e, const char *what)
{
	return ggu_fail(v->err, GGU_ERR_FORMAT, e->at, e->name ? e->name : "", "%s", what);
}

bool expr_true(const struct expr_value *v)
{
	switch (v->kind) {
	case EXPR_NULL: return false;
	case EXPR_BOOL: return v->u.b;
	case EXPR_INT: return v->u.i != 0;
	case EXPR_FLOAT: return v->u.f != 0;
	case EXPR_STR: return v->u.s.n > 0;
	case EXPR_LIST: return v->u.list.n > 0;
	case EXPR_OBJECT: return true;
	}
	return false;
}

static bool is_number(const struct expr_value *v) { return v->kind == EXPR_INT || v->kind == EXPR_FLOAT; }
static double as_float(const struct expr_value *v) { return v->kind == EXPR_INT ? (double)v->u.i : v->u.f; }
static struct expr_value make_bool(bool b) { return (struct expr_value){ EXPR_BOOL, { .b = b } }; }
static struct expr_value make_int(int64_t i) { return (struct expr_value){ EXPR_INT, { .i = i } }; }
static struct expr_value make_float(double f) { return (struct expr_value){ EXPR_FLOAT, { .f = f } }; }

/* Takes a step, as each comparison of items does. false: none are left; nothing is equal then, and evaluation ends. */
static bool step(const struct eval *ev)
{
	if (ev->arena->steps) ev->arena->steps--;
	return ev->arena->steps;
}

static bool equal(const struct eval *ev, const struct expr_value *a, const struct expr_value *b)
{
	if (!step(ev)) return false;
	if (is_number(a) && is_number(b))
		return a->kind == EXPR_INT && b->kind == EXPR_INT ? a->u.i == b->u.i : as_float(a) == as_float(b);
	if (a->kind != b->kind) return false;
	switch (a->kind) {
	case EXPR_NULL: return true;
	case EXPR_BOOL: return a->u.b == b->u.b;
	case EXPR_STR: return a->u.s.n == b->u.s.n && !memcmp(a->u.s.p, b->u.s.p, a->u.s.n);
	case EXPR_LIST:
		if (a->u.list.n != b->u.list.n) return false;
		for (size_t i = 0; i < a->u.list.n; i++) if (!equal(ev, a->u.list.v + i, b->u.list.v + i)) return false;
		return true;
	default: return a->u.object == b->u.object;
	}
}
static bool contains(const struct eval *ev, const struct expr_value *list, const struct expr_value *x)
{
	for (size_t i = 0; i < list->u.list.n; i++) if (equal(ev, list->u.list.v + i, x)) return true;
	return false;
}

static enum ggu_status arith(const struct eval *ev, const struct expr_node *e, const struct expr_value *a,
	const struct expr_value *b, struct expr_value *v)
{
	bool whole = a->kind == EXPR_INT && b->kind == EXPR_INT;
	int64_t r;
	if (a->kind == EXPR_NULL || b->kind == EXPR_NULL) { v->kind = EXPR_NULL; return GGU_OK; }
	if (!is_number(a) || !is_number(b)) return fail(ev, e, "expected numbers");
	if (e->op == OP_DIV || e->op == OP_FLOORDIV || e->op == OP_MOD) {
		int64_t q;
		if (as_float(b) == 0) return fail(ev, e, "division by zero");
		if (!whole) {
			double f = as_float(a)/as_float(b);
			*v = make_float(e->op == OP_DIV ? f : e->op == OP_FLOORDIV ? floor(f) :
				as_float(a) - as_float(b)*floor(f));
			return GGU_OK;
		}
		if (b->u.i == -1)
			return a->u.i == INT64_MIN ? fail(ev, e, "overflow") :
				(*v = make_int(e->op == OP_MOD ? 0 : -a->u.i), GGU_OK);
		q = a->u.i/b->u.i;
		r = a->u.i%b->u.i;
		if (e->op == OP_DIV) *v = r ? make_float((double)a->u.i/(double)b->u.i) : make_int(q);
		else {
			bool down = r && (r < 0) != (b->u.i < 0);       /* floor: r has the sign of the divisor */
			*v = make_int(e->op == OP_MOD ? r + (down ? b->u.i : 0) : q - down);
		}
		return GGU_OK;
	}
	if (!whole) {
		double x = as_float(a), y = as_float(b);
		*v = make_float(e->op == OP_ADD ? x + y : e->op == OP_SUB ? x - y : x*y);
		return GGU_OK;
	}
	if (e->op == OP_ADD ? __builtin_add_overflow(a->u.i, b->u.i, &r) :
		e->op == OP_SUB ? __builtin_sub_overflow(a->u.i, b->u.i, &r) :
		__builtin_mul_overflow(a->u.i, b->u.i, &r))
		return fail(ev, e, "overflow");
	*v = make_int(r);
	return GGU_OK;
}

static enum ggu_status compare(const struct eval *ev, const struct expr_node *e, const struct expr_value *a,
	const struct expr_value *b, struct expr_value *v)
{
	int c;
	if (e->op == OP_EQ || e->op == OP_NE) { *v = make_bool(equal(ev, a, b) == (e->op == OP_EQ)); return GGU_OK; }
	if (e->op == OP_IN) {
		if (b->kind == EXPR_NULL) { *v = make_bool(false); return GGU_OK; }
		if (b->kind != EXPR_LIST) return fail(ev, e, "in: expected a list");
		*v = make_bool(contains(ev, b, a));
		return GGU_OK;
	}
	if (a->kind == EXPR_NULL || b->kind == EXPR_NULL) { v->kind = EXPR_NULL; return GGU_OK; }
	if (!is_number(a) || !is_number(b)) return fail(ev, e, "expected numbers");
	if (isunordered(as_float(a), as_float(b))) { *v = make_bool(false); return GGU_OK; }
	c = a->kind == EXPR_INT && b->kind == EXPR_INT ? (a->u.i > b->u.i) - (a->u.i < b->u.i)
		: (as_float(a) > as_float(b)) - (as_float(a) < as_float(b));
	*v = make_bool(e->op == OP_LT ? c < 0 : e->op == OP_LE ? c <= 0 : e->op == OP_GT ? c > 0 : c >= 0);
	return GGU_OK;
}

/* ---- functions ---- */

typedef enum ggu_status function(const struct eval *ev, const struct expr_node *e, const struct expr_value *x,
	size_t n, struct expr_value *v);

static enum ggu_status to_int(const struct eval *ev, const struct expr_node *e, double f, struct expr_value *v)
{
	if (!(f > -9.2e18 && f < 9.2e18)) return fail(ev, e, "out of range");
	*v = make_int((int64_t)f);
	return GGU_OK;
}
static enum ggu_status f_extreme(const struct eval *ev, const struct expr_node *e, const struct expr_value *x,
	size_t n, struct expr_value *v)
{
	bool max = e->name[1] == 'a';
	if (n == 1 && x->kind == EXPR_LIST) { n = x->u.list.n; x = x->u.list.v; }
	if (!n) return fail(ev, e, "expected a value");
	for (size_t i = 0; i < n; i++) {
		if (!is_number(x + i)) return fail(ev, e, "expected numbers");
		if (!i || (max ? as_float(x + i) > as_float(v) : as_float(x + i) < as_float(v))) *v = x[i];
	}
	return GGU_OK;
}
static enum ggu_status f_abs(const struct eval *ev, const struct expr_node *e, const struct expr_value *x, size_t n,
	struct expr_value *v)
{
	(void)n;
	if (x->kind == EXPR_INT && x->u.i == INT64_MIN) return fail(ev, e, "overflow");
	*v = x->kind == EXPR_INT ? make_int(x->u.i < 0 ? -x->u.i : x->u.i) : make_float(fabs(x->u.f));
	return GGU_OK;
}
static enum ggu_status f_round(const struct eval *ev, const struct expr_node *e, const struct expr_value *x, size_t n,
	struct expr_value *v)
{
	double f = as_float(x);
	(void)n;
	if (x->kind == EXPR_INT) { *v = *x; return GGU_OK; }
	return to_int(ev, e, *e->name == 'f' ? floor(f) : *e->name == 'c' ? ceil(f) : *e->name == 'r' ? rint(f) :
		trunc(f), v);
}
static enum ggu_status f_real(const struct eval *ev, const struct expr_node *e, const struct expr_value *x, size_t n,
	struct expr_value *v)
{
	double f = as_float(x);
	bool log = *e->name == 'l', root = *e->name == 's';
	(void)n;
	if ((log && f <= 0) || (root && f < 0)) return fail(ev, e, "out of range");
	*v = make_float(log ? num_log(f) : root ? sqrt(f) : f);
	return GGU_OK;
}
static enum ggu_status f_pow(const struct eval *ev, const struct expr_node *e, const struct expr_value *x, size_t n,
	struct expr_value *v)
{
	(void)n;
	if (as_float(x) < 0) return fail(ev, e, "out of range");
	*v = make_float(num_pow(as_float(x), as_float(x + 1)));
	return GGU_OK;
}
static enum ggu_status f_len(const struct eval *ev, const struct expr_node *e, const struct expr_value *x, size_t n,
	struct expr_value *v)
{
	(void)n;
	if (x->kind != EXPR_LIST && x->kind != EXPR_STR) return fail(ev, e, "expected a list or a string");
	*v = make_int((int64_t)(x->kind == EXPR_LIST ? x->u.list.n : x->u.s.n));
	return GGU_OK;
}
static enum ggu_status f_has(const struct eval *ev, const struct expr_node *e, const struct expr_value *x, size_t n,
	struct expr_value *v)
{
	(void)ev; (void)e; (void)n;
	*v = make_bool(x->kind != EXPR_NULL);
	return GGU_OK;
}
static enum ggu_status f_any_all(const struct eval *ev, const struct expr_node *e, const struct expr_value *x,
	size_t n, struct expr_value *v)
{
	bool all = e->name[1] == 'l';
	size_t hits = 0;
	(void)n;
	if (x->kind != EXPR_LIST) return fail(ev, e, "expected a list");
	for (size_t i = 0; i < x->u.list.n; i++) hits += expr_true(x->u.list.v + i);
	*v = make_bool(all ? hits == x->u.list.n : hits > 0);
	return GGU_OK;
}
static enum ggu_status f_contains(const struct eval *ev, const struct expr_node *e, const struct expr_value *x,
	size_t n, struct expr_value *v)
{
	(void)n;
	if (x->kind != EXPR_LIST) return fail(ev, e, "expected a list");
	*v = make_bool(contains(ev, x, x + 1));
	return GGU_OK;
}
static enum ggu_status f_count(const struct eval *ev, const struct expr_node *e, const struct expr_value *x, size_t n,
	struct expr_value *v)
{
	int64_t hits = 0;
	(void)n;
	if (x->kind != EXPR_LIST) return fail(ev, e, "expected a list");
	for (size_t i = 0; i < x->u.list.n; i++) hits += equal(ev, x->u.list.v + i, x + 1);
	*v = make_int(hits);
	return GGU_OK;
}
static enum ggu_status f_range(const struct eval *ev, const struct expr_node *e, const struct expr_value *x, size_t n,
	struct expr_value *v)
{
	struct expr_value *l;
	(void)n;
	if (x->kind != EXPR_INT || x->u.i < 0 || x->u.i > MAX_LIST) return fail(ev, e, "expected 0 to 65536");
	TRY(expr_arena_items(ev->arena, (size_t)x->u.i, &l, ev->err));
	for (int64_t i = 0; i < x->u.i; i++) l[i] = make_int(i);
	*v = (struct expr_value){ EXPR_LIST, { .list = { l, (size_t)x->u.i } } };
	return GGU_OK;
}

enum { ANY = 99 };
static const struct { const char *name; function *f; size_t n; bool numbers; } functions[] = {
	{ "min", f_extreme, ANY, false }, { "max", f_extreme, ANY, false }, { "abs", f_abs, 1, true },
	{ "sqrt", f_real, 1, true }, { "log", f_real, 1, true }, { "float", f_real, 1, true },
	{ "pow", f_pow, 2, true },
	{ "floor", f_round, 1, true }, { "ceil", f_round, 1, true }, { "round", f_round, 1, true },
	{ "int", f_round, 1, true },
	{ "len", f_len, 1, false }, { "has", f_has, 1, false }, { "any", f_any_all, 1, false },
	{ "all", f_any_all, 1, false },
	{ "contains", f_contains, 2, false }, { "count", f_count, 2, false }, { "range", f_range, 1, false },
};

enum ggu_status expr_layer(const struct expr_value *args, size_t n_args, int64_t i, size_t n, struct expr_value *v,
	struct ggu_error *err)
{
	if (n_args != 1) return ggu_fail(err, GGU_ERR_FORMAT, 0, "", "layer expects one argument");
	*v = *args;
	if (v->kind != EXPR_LIST) return GGU_OK;
	if (i < 0) return ggu_fail(err, GGU_ERR_FORMAT, 0, "", "layer: a list has no value outside the layers");
	if (args->u.list.n != n)
		return ggu_fail(err, GGU_ERR_FORMAT, 0, "",
			"layer: the list has %zu value%s, but the number of layers is %zu", args->u.list.n,
			text_s(args->u.list.n), n);
	*v = args->u.list.v[i];
	return GGU_OK;
}

static enum ggu_status call(const struct eval *ev, const struct expr_node *e, const struct expr_value *x,
	struct expr_value *v)
{
	bool known = false;
	for (size_t i = 0; i < sizeof functions/sizeof *functions; i++) {
		if (strcmp(functions[i].name, e->name)) continue;
		if (functions[i].n != ANY && functions[i].n != e->n_args)
			return fail(ev, e, "wrong number of arguments");
		for (size_t k = 0; functions[i].numbers && k < e->n_args; k++) {
			if (x[k].kind == EXPR_NULL) { v->kind = EXPR_NULL; return GGU_OK; }
			if (!is_number(x + k)) return fail(ev, e, "expected numbers");
		}
		return functions[i].f(ev, e, x, e->n_args, v);
	}
	if (ev->scope && ev->scope->call) {
		enum ggu_status s = ev->scope->call(ev->scope->ctx, e->name, x, e->n_args, ev->arena, v, &known,
			ev->err);
		if (s || known) return s;
	}
	return fail(ev, e, "no such function");
}

/* ---- the walk ---- */

static enum ggu_status eval(struct eval *ev, const struct expr_node *e, struct expr_value *v);

/* A string literal is copied: the value may outlive the expression. */
static enum ggu_status literal(const struct eval *ev, const struct expr_node *e, struct expr_value *v)
{
	char *s;
	*v = e->value;
	if (v->kind != EXPR_STR) return GGU_OK;
	s = expr_arena_alloc(ev->arena, v->u.s.n + 1);
	if (!s) return ggu_no_memory(ev->err);
	memcpy(s, v->u.s.p, v->u.s.n);
	v->u.s.p = s;
	return GGU_OK;
}

static enum ggu_status lookup(const struct eval *ev, const char *name, const void *object, struct expr_value *v)
{
	if (!ev->scope || !ev->scope->lookup) return GGU_OK;
	return ev->scope->lookup(ev->scope->ctx, object, name, v);
}

/* object['name'], or object[3] for a member that is called "3"; no member has a longer name than this. */
static enum ggu_status keyed(const struct eval *ev, const struct expr_node *e, const void *object,
	const struct expr_value *key, struct expr_value *v)
{
	char name[256];
	if (key->kind == EXPR_INT) snprintf(name, sizeof name, "%" PRId64, key->u.i);
	else if (key->kind == EXPR_STR && key->u.s.n < sizeof name)
		snprintf(name, sizeof name, "%.*s", (int)key->u.s.n, key->u.s.p);
	else return fail(ev, e, "expected object[string] or object[int]");
	return lookup(ev, name, object, v);
}

static enum ggu_status member(struct eval *ev, const struct expr_node *e, struct expr_value *v)
{
	struct expr_value o = { 0 }, i = { 0 };
	enum ggu_status s = eval(ev, e->arg[0], &o);
	if (!s && e->op == OP_INDEX) s = eval(ev, e->arg[1], &i);
	if (s || o.kind == EXPR_NULL) return s;
	if (e->op == OP_MEMBER)
		return o.kind == EXPR_OBJECT ? lookup(ev, e->name, o.u.object, v) : fail(ev, e, "is not an object");
	if (o.kind == EXPR_OBJECT) return keyed(ev, e, o.u.object, &i, v);
	if (o.kind != EXPR_LIST || i.kind != EXPR_INT) return fail(ev, e, "expected list[int]");
	if (i.u.i < 0) i.u.i += (int64_t)o.u.list.n;
	if (i.u.i >= 0 && (uint64_t)i.u.i < o.u.list.n) *v = o.u.list.v[i.u.i];
	return GGU_OK;
}

static enum ggu_status eval_node(struct eval *ev, const struct expr_node *e, struct expr_value *v)
{
	struct expr_value a = { 0 }, b = { 0 }, *x;
	v->kind = EXPR_NULL;
	switch (e->op) {
	case OP_VALUE: return literal(ev, e, v);
	case OP_NAME: return lookup(ev, e->name, NULL, v);
	case OP_MEMBER: case OP_INDEX: return member(ev, e, v);
	case OP_CALL: case OP_LIST:
		TRY(expr_arena_items(ev->arena, e->n_args + 1, &x, ev->err));
		for (size_t i = 0; i < e->n_args; i++) TRY(eval(ev, e->arg[i], x + i));
		if (e->op == OP_CALL) return call(ev, e, x, v);
		*v = (struct expr_value){ EXPR_LIST, { .list = { x, e->n_args } } };
		return GGU_OK;
	default: break;
	}
	TRY(eval(ev, e->arg[0], &a));
	switch (e->op) {                /* those that may not evaluate the second operand */
	case OP_NOT: *v = make_bool(!expr_true(&a)); return GGU_OK;
	case OP_NEG: b = make_int(0); return (a.kind == EXPR_FLOAT) ? (*v = make_float(-a.u.f), GGU_OK) :
		arith(ev, &(struct expr_node){ .op = OP_SUB, .at = e->at }, &b, &a, v);
	case OP_COND: return eval(ev, e->arg[expr_true(&a) ? 1 : 2], v);
	case OP_AND: if (!expr_true(&a)) { *v = a; return GGU_OK; } return eval(ev, e->arg[1], v);
	case OP_OR: if (expr_true(&a)) { *v = a; return GGU_OK; } return eval(ev, e->arg[1], v);
	case OP_ALT: if (a.kind != EXPR_NULL) { *v = a; return GGU_OK; } return eval(ev, e->arg[1], v);
	default: break;
	}
	TRY(eval(ev, e->arg[1], &b));
	return e->op <= OP_MOD ? arith(ev, e, &a, &b, v) : compare(ev, e, &a, &b, v);
}

/* Bounds the depth of a + b + c ..., a tree as deep as it has operators, which the parser does not bound. */
static enum ggu_status eval(struct eval *ev, const struct expr_node *e, struct expr_value *v)
{
	enum ggu_status s;
	if (ev->depth == MAX_DEPTH) return fail(ev, e, "too many operators in a row");
	if (!step(ev)) return ggu_fail(ev->err, GGU_ERR_RANGE, e->at, "", "takes too many steps");
	ev->depth++;
	s = eval_node(ev, e, v);
	ev->depth--;
	return s;
}

enum ggu_status expr_eval(const struct expr *e, const struct expr_scope *s, struct expr_arena *a, struct expr_value *v,
	struct ggu_error *err)
{
	struct eval ev = { s, a, err, 0 };
	struct expr_value r = { 0 };
	enum ggu_status st = eval(&ev, e->root, &r);
	if (!st) *v = r;
	return st;
}
