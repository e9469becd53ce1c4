/* SPDX-License-Identifier: MIT
 * expr.h - the tiny expressions of architecture files.
 *
 *   expr    := or [ "?" expr ":" expr ]
 *   or      := and { "or" and }      and := not { "and" not }      not := { "not" } cmp
 *   cmp     := alt { ("=="|"!="|"<"|"<="|">"|">="|"in") alt }
 *   alt     := sum { "??" sum }                  a ?? b: b where a is null
 *   sum     := term { ("+"|"-") term }           term := unary { ("*"|"/"|"//"|"%") unary }
 *   unary   := { "-" } post                      post := prim { "." name | "[" expr "]" }
 *   prim    := number | 'string' | true | false | null | name | name "(" args ")" | "(" expr ")" | "[" args "]"
 *   name    := letter or _, then letters, digits, _
 *
 * Values are null, bool, int (64 bits), float (double), string, list, object (from the caller). A null operand of an
 * arithmetic operator or of "<", "<=", ">" or ">=" makes null; nothing is in null. Values of different kinds are
 * unequal, so true is not 1; but 1 is 1.0. "and" and "or" give the operand that decided. "a ?? b == c" is "(a ?? b) ==
 * c". "/" is float division unless both are ints that divide exactly, "//" is floor division. list[-1] is the last
 * item; object['a-b'] and object[2] are the members with these names, of which the second is a layer's part in some
 * config.json. Functions: min max abs sqrt pow log floor ceil round int float len, has(name) (not null), any/all over
 * lists, contains(list, x), count(list, x), range(n), and what the caller adds; those from abs to float make null of
 * null. Overflow of ints, division by zero and wrong kinds are errors with the position in the text; floats that
 * overflow are infinite. Brackets and signs nest less than 64 deep, and operators without brackets make a chain of less
 * than 200, so that no text can exhaust the stack. */
#ifndef MODEL_UTIL_EXPR_H
#define MODEL_UTIL_EXPR_H
#include "../../libgguf/ggu.h"

enum expr_kind { EXPR_NULL, EXPR_BOOL, EXPR_INT, EXPR_FLOAT, EXPR_STR, EXPR_LIST, EXPR_OBJECT };
struct expr_value {
	enum expr_kind kind;
	union {
		bool b;
		int64_t i;
		double f;
		struct ggu_str s;
		struct { struct expr_value *v; size_t n; } list;
		const void *object;     /* the caller's */
	} u;
};
struct expr;            /* a parsed expression */
/* Memory for the values of one or many evaluations, and a bound on their work, since names may use names that use
 * names. All evaluations with one arena take at most 2^23 steps and 2^22 items of lists together; beyond that
 * GGU_ERR_RANGE. */
struct expr_arena;
struct expr_scope {
	void *ctx;
	/* The value of a name, or of a member of an object (object NULL: top level). Absent: EXPR_NULL. Lists and
	 * strings must outlive the evaluation; alloc from the arena given. */
	enum ggu_status (*lookup)(void *ctx, const void *object, const char *name, struct expr_value *v);
	/* A function that the grammar does not have; NULL: there are none. *known = false: no such function. */
	enum ggu_status (*call)(void *ctx, const char *name, const struct expr_value *args, size_t n_args,
		struct expr_arena *a, struct expr_value *v, bool *known, struct ggu_error *err);
};
struct expr_arena *expr_arena_new(void);
void *expr_arena_alloc(struct expr_arena *a, size_t bytes);     /* zeroed; NULL: out of memory */
/* v[n], all null, for the items of a list; they live as long as the arena. They count towards the arena's bound.
 * GGU_ERR_RANGE: the bound is exceeded. GGU_ERR_NOMEM: out of memory. err may be NULL. */
enum ggu_status expr_arena_items(struct expr_arena *a, size_t n, struct expr_value **v, struct ggu_error *err);
void expr_arena_free(struct expr_arena *a);

enum ggu_status expr_parse(struct expr **out, const char *text, struct ggu_error *err);  /* err->offset: position */
void expr_free(struct expr *e);
enum ggu_status expr_eval(const struct expr *e, const struct expr_scope *s, struct expr_arena *a, struct expr_value *v,
	struct ggu_error *err);
/* parse, evaluate, free */
enum ggu_status expr_text(const char *text, const struct expr_scope *s, struct expr_arena *a, struct expr_value *v,
	struct ggu_error *err);
/* layer(X), a function for expressions that are evaluated for each of n layers: layer i's value of a list that has one
 * for each, and anything else as it is. i -1: outside the layers. */
enum ggu_status expr_layer(const struct expr_value *args, size_t n_args, int64_t i, size_t n, struct expr_value *v,
	struct ggu_error *err);
bool expr_true(const struct expr_value *v);     /* false for null, false, 0, "" and empty lists */

#endif
