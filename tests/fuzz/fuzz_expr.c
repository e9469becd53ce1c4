/* SPDX-License-Identifier: MIT
 * fuzz_expr.c - any bytes as an expression of an architecture file: refused, or a value, and the same one again. */
#include <stdlib.h>
#include <string.h>
#include "../../model/util/expr.h"
#include "fuzz.h"

static struct expr_value list[] = { { EXPR_INT, { .i = 1 } }, { EXPR_FLOAT, { .f = 2.5 } },
	{ EXPR_STR, { .s = { "x", 1 } } } };

/* One name of each kind: n null, b, i, f, s, l, o. Whatever is looked up in an object is the list. */
static enum ggu_status lookup(void *ctx, const void *object, const char *name, struct expr_value *v)
{
	(void)ctx;
	v->kind = EXPR_NULL;
	if (object || !strcmp(name, "l")) *v = (struct expr_value){ EXPR_LIST, { .list = { list, 3 } } };
	else if (!strcmp(name, "b")) *v = (struct expr_value){ EXPR_BOOL, { .b = true } };
	else if (!strcmp(name, "i")) *v = (struct expr_value){ EXPR_INT, { .i = INT64_MIN } };
	else if (!strcmp(name, "f")) *v = (struct expr_value){ EXPR_FLOAT, { .f = 1e300 } };
	else if (!strcmp(name, "s")) *v = list[2];
	else if (!strcmp(name, "o")) *v = (struct expr_value){ EXPR_OBJECT, { .object = list } };
	return GGU_OK;
}

static bool same(const struct expr_value *a, const struct expr_value *b)
{
	if (a->kind != b->kind) return false;
	switch (a->kind) {
	case EXPR_NULL: return true;
	case EXPR_BOOL: return a->u.b == b->u.b;
	case EXPR_INT: return a->u.i == b->u.i;
	case EXPR_FLOAT: return !memcmp(&a->u.f, &b->u.f, sizeof a->u.f) || (a->u.f != a->u.f && b->u.f != b->u.f);
	case EXPR_STR: return a->u.s.n == b->u.s.n && !memcmp(a->u.s.p, b->u.s.p, a->u.s.n);
	case EXPR_LIST:
		for (size_t i = 0; a->u.list.n == b->u.list.n && i < a->u.list.n; i++)
			if (!same(a->u.list.v + i, b->u.list.v + i)) return false;
		return a->u.list.n == b->u.list.n;
	case EXPR_OBJECT: return a->u.object == b->u.object;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct expr_scope scope = { NULL, lookup, NULL };
	struct expr_arena *arena = expr_arena_new();
	char *text = malloc(size + 1);
	struct expr_value v, w;
	struct ggu_error err = { 0 };
	enum ggu_status s;

	must(text && arena, "no memory");
	if (size) memcpy(text, data, size);
	text[size] = 0;
	s = expr_text(text, &scope, arena, &v, &err);
	if (s) must(err.code == s && *err.what, "refused without a reason");
	must(expr_text(text, &scope, arena, &w, NULL) == s, "refused only once");
	if (!s) must(same(&v, &w) && expr_true(&v) == expr_true(&w), "two values");
	expr_arena_free(arena);
	free(text);
	return 0;
}
