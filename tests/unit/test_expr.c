/* SPDX-License-Identifier: MIT
 * test_expr.c - expressions of architecture files: values, nulls, errors with positions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "../../model/util/expr.h"

/* a = 7, b = 2.5, s = 'gelu', list = [1, 2, 3], o.inner = 42, o['3'] = 33; the rest is null */
static enum ggu_status look(void *ctx, const void *object, const char *name, struct expr_value *v)
{
	static struct expr_value list[] = { { EXPR_INT, { .i = 1 } }, { EXPR_INT, { .i = 2 } },
		{ EXPR_INT, { .i = 3 } } };
	(void)ctx;
	if (object) {
		if (!strcmp(name, "3")) *v = (struct expr_value){ EXPR_INT, { .i = 33 } };
		if (!strcmp(name, "inner")) *v = (struct expr_value){ EXPR_INT, { .i = 42 } };
		return GGU_OK;
	}
	if (!strcmp(name, "a")) *v = (struct expr_value){ EXPR_INT, { .i = 7 } };
	if (!strcmp(name, "b")) *v = (struct expr_value){ EXPR_FLOAT, { .f = 2.5 } };
	if (!strcmp(name, "s")) *v = (struct expr_value){ EXPR_STR, { .s = { "gelu", 4 } } };
	if (!strcmp(name, "list")) *v = (struct expr_value){ EXPR_LIST, { .list = { list, 3 } } };
	if (!strcmp(name, "o")) *v = (struct expr_value){ EXPR_OBJECT, { .object = list } };
	return GGU_OK;
}

/* The value as text, or "error at N" */
static const char *show(const char *text)
{
	static char out[64];
	struct expr_scope scope = { NULL, look, NULL };
	struct expr_arena *a = expr_arena_new();
	struct expr_value v;
	struct ggu_error err;
	if (expr_text(text, &scope, a, &v, &err)) snprintf(out, sizeof out, "error at %d", (int)err.offset);
	else switch (v.kind) {
	case EXPR_NULL: strcpy(out, "null"); break;
	case EXPR_BOOL: strcpy(out, v.u.b ? "true" : "false"); break;
	case EXPR_INT: snprintf(out, sizeof out, "%lld", (long long)v.u.i); break;
	case EXPR_FLOAT: snprintf(out, sizeof out, "%g!", v.u.f); break;
	case EXPR_STR: snprintf(out, sizeof out, "'%s'", v.u.s.p); break;
	case EXPR_LIST: snprintf(out, sizeof out, "list of %zu", v.u.list.n); break;
	case EXPR_OBJECT: strcpy(out, "object"); break;
	}
	expr_arena_free(a);
	return out;
}

static void check(const char *const (*rows)[2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *got = show(rows[i][0]);
		if (strcmp(got, rows[i][1])) fail_msg("%s: got %s, want %s", rows[i][0], got, rows[i][1]);
	}
}

static void values(void **state)
{
	static const char *const rows[][2] = {
		{ "1 + 2*3", "7" }, { "(1 + 2)*3", "9" }, { "7 / 2", "3.5!" }, { "8 / 2", "4" }, { "-7 // 2", "-4" },
		{ "-7 % 3", "2" },
		{ "7 // 2.0", "3!" }, { "2 - 3 - 4", "-5" }, { "a", "7" }, { "a*b", "17.5!" }, { "none", "null" },
		{ "none + 1", "null" },
		{ "none ?? 5", "5" }, { "none ?? o.inner ?? 1", "42" }, { "a == 7 ? 'y' : 'n'", "'y'" },
		{ "s == 'gelu'", "true" },
		{ "s in ['relu', 'gelu']", "true" }, { "9 in list", "false" }, { "9 in none", "false" },
		{ "list[0]", "1" }, { "list[-1]", "3" },
		{ "list[3]", "null" }, { "len(list)", "3" }, { "max(list)", "3" }, { "min(4, 2.5, 3)", "2.5!" },
		{ "o['inner']", "42" }, { "o[list[2]]", "33" }, { "o['none']", "null" }, { "none[1].inner", "null" },
		{ "has(none)", "false" },
		{ "not none and true", "true" }, { "none or 'x'", "'x'" }, { "floor(2.7)", "2" }, { "ceil(2.1)", "3" },
		{ "round(2.5)", "2" },
		{ "sqrt(16)", "4!" }, { "int(-2.7)", "-2" }, { "abs(-3)", "3" }, { "range(4)", "list of 4" },
		{ "range(4)[2]", "2" }, { "1e-6", "1e-06!" },
		{ "any([0, 1])", "true" }, { "all([0, 1])", "false" }, { "none.inner", "null" },
		{ "null == none", "true" }, { "1 < none", "null" },
		{ "1e308*10 - 1e308*10 <= 0", "false" }, { "0 >= 1e308*10 - 1e308*10", "false" },
		{ "1 == 1.0", "true" }, { "2 - -1", "3" }, { "not a == 7", "false" },
		{ "[1, [2]] == [1, [2]]", "true" },
		{ "9223372036854775807", "9223372036854775807" },
	};
	(void)state;
	check(rows, sizeof rows/sizeof *rows);
}

static void errors_name_their_position(void **state)
{
	static const char *const rows[][2] = {
		{ "", "error at 0" }, { "1 +", "error at 3" }, { "1 2", "error at 2" }, { "(1", "error at 2" },
		{ "'abc", "error at 1" }, { "1 / 0", "error at 2" },
		{ "9223372036854775807 + 1", "error at 20" }, { "9223372036854775808", "error at 0" },
		{ "'a' + 1", "error at 4" }, { "foo(1)", "error at 0" },
		{ "len(1)", "error at 0" }, { "a.b", "error at 1" }, { "range(70000)", "error at 0" },
		{ "$", "error at 0" }, { "sqrt(-1)", "error at 0" },
		{ "pow(2)", "error at 0" }, { "a ? 1", "error at 5" }, { "int(1e300)", "error at 0" },
		{ "[1,", "error at 3" }, { "a[0]", "error at 1" }, { "o[2.5]", "error at 1" },
		{ "o[list]", "error at 1" }, { "list['x']", "error at 4" },
	};
	char deep[512];
	(void)state;
	check(rows, sizeof rows/sizeof *rows);
	memset(deep, '(', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	assert_string_equal(show(deep), "error at 64");
	for (size_t i = 0; i + 1 < sizeof deep; i++) deep[i] = i%2 ? '+' : '1';
	assert_memory_equal(show(deep), "error", 5);            /* a chain becomes a tree as deep as it is long */
	deep[301] = 0;
	assert_string_equal(show(deep), "151");
}

static void lists_take_no_more_memory_than_is_sensible(void **state)
{
	char text[1024] = "[";
	(void)state;
	for (int i = 0; i < 63; i++) strcat(text, "range(65536),");
	strcpy(text + strlen(text) - 1, "]");
	assert_string_equal(show(text), "list of 63");
	strcpy(text + strlen(text) - 1, ",range(65536)]");
	assert_string_equal(show(text), "error at -1");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(values), cmocka_unit_test(errors_name_their_position),
		cmocka_unit_test(lists_take_no_more_memory_than_is_sensible) };
	return cmocka_run_group_tests_name("expr", tests, NULL, NULL);
}
