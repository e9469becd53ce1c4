/* SPDX-License-Identifier: MIT
 * test_like.c - descriptions that are like several others, and the order in which their texts are laid over one
 * another. This program has built-in descriptions of its own, in place of those of model/arch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "../../model/arch/arch.h"
#include "../../model/arch/embed/embed.h"

#define HEAD(name) "schema: 1\narch: " name "\n"
/* `by` is what the uppermost text gives; each text has a key of its own, so that their order shows. */
#define WORDS(name, like, more) HEAD(name) like "classes: {" name ": {}}\ngraph: {by: " name ", " name ": 1" more "}\n"
#define TEXT(name, like, more) { name ".yaml", WORDS(name, like, more), sizeof WORDS(name, like, more) - 1 }
const struct embedded arch_data[] = {
	TEXT("base", "", ", shared: 1, deep: {x: 1, y: 2}"),
	TEXT("left", "like: base\n", ", shared: null, deep: {x: left}"),
	TEXT("right", "like: base\n", ", shared: null, deep: {y: right}"),
	TEXT("both", "like: [left, right]\n", ""),
	TEXT("swapped", "like: [right, left]\n", ""),
	TEXT("cuts", "like: base\n", ", deep: null"),
	TEXT("restored", "like: [cuts, left]\n", ""),
	TEXT("cut", "like: [left, cuts]\n", ""),
	TEXT("again", "like: [left, both, base, left]\n", ""),
	TEXT("one", "like: [left]\n", ""),
	TEXT("crossed", "like: [both, swapped]\n", ""),
	TEXT("removes", "like: [left, right]\n", ", shared: null"),
	TEXT("chicken", "like: [base, egg]\n", ""),
	TEXT("egg", "like: chicken\n", ""),
	TEXT("narcissus", "like: narcissus\n", ""),
	TEXT("nobody", "like: [base,\n  stranger]\n", ""),
	{ NULL, NULL, 0 }
};

static struct arch_set *set(void)
{
	struct arch_set *s;
	assert_int_equal(arch_set_new(&s, NULL), GGU_OK);
	return s;
}
static const struct yaml_node *graph(struct arch_set *s, const char *name)
{
	const struct arch *a = NULL;
	assert_int_equal(arch_find(s, name, &a, NULL), GGU_OK);
	assert_non_null(a);
	return a->graph;
}
/* The texts that a description is made of, from the lowest: keys come in the order of the texts that bring them. */
static void assert_order(struct arch_set *s, const char *name, const char *want)
{
	const struct yaml_node *g = graph(s, name);
	char got[100] = "";
	size_t n = 0;
	for (size_t i = 0; i < g->count; i++)
		if (yaml_is(g->items[i], "1") && strcmp(g->keys[i]->text, "shared"))
			n += (size_t)snprintf(got + n, sizeof got - n, "%s%s", n ? " " : "", g->keys[i]->text);
	assert_string_equal(got, want);
	assert_true(yaml_is(yaml_get(g, "by"), name));
}

static void lays_each_text_once_in_the_order_of_the_list(void **state)
{
	static const char *const rows[][2] = { { "both", "base left right both" },
		{ "swapped", "base right left swapped" }, { "again", "base left right both again" },
		{ "one", "base left one" }, { "crossed", "base left right both swapped crossed" } };
	(void)state;
	/* whichever is read first */
	for (size_t first = 0; first < sizeof rows/sizeof *rows; first++) {
		struct arch_set *s = set();
		graph(s, rows[first][0]);
		for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) assert_order(s, rows[i][0], rows[i][1]);
		arch_set_free(s);
	}
}

static void merges_what_siblings_change(void **state)
{
	struct arch_set *s = set();
	const struct yaml_node *deep = yaml_get(graph(s, "both"), "deep");
	(void)state;
	assert_true(yaml_is(yaml_get(deep, "x"), "left"));
	assert_true(yaml_is(yaml_get(deep, "y"), "right"));
	assert_string_equal(yaml_get(deep, "x")->file, "left.yaml");
	/* both remove it, which is no mistake of either */
	assert_null(yaml_get(graph(s, "both"), "shared"));
	/* one removes what the other changes a part of: the last decides */
	deep = yaml_get(graph(s, "restored"), "deep");
	assert_int_equal(deep->count, 1);
	assert_true(yaml_is(yaml_get(deep, "x"), "left"));
	assert_null(yaml_get(graph(s, "cut"), "deep"));
	arch_set_free(s);
}

static void has_classes_of_its_own_text_alone(void **state)
{
	struct arch_set *s = set();
	const struct arch *a = NULL;
	(void)state;
	assert_int_equal(arch_find(s, "both", &a, NULL), GGU_OK);
	assert_int_equal(a->classes->count, 1);
	assert_non_null(yaml_get(a->classes, "both"));
	arch_set_free(s);
}

static void refuses_with_the_place(void **state)
{
	static const char *const rows[][3] = {
		{ "removes", "", "line 5, column 34: shared: there is no such key that null could remove" },
		{ "chicken", "chicken", "line 3, column 7: is itself like this one" },
		{ "egg", "egg", "line 3, column 14: is itself like this one" },
		{ "narcissus", "narcissus", "line 3, column 7: no such description" },
		{ "nobody", "stranger", "line 4, column 3: no such description" },
	};
	struct arch_set *s = set();
	const struct arch *a;
	struct ggu_error err;
	(void)state;
	for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) {
		assert_int_equal(arch_find(s, rows[i][0], &a, &err), GGU_ERR_FORMAT);
		assert_string_equal(err.what, rows[i][2]);
		assert_string_equal(err.where, rows[i][1]);
	}
	/* what cannot be read leaves the others as they are */
	assert_order(s, "both", "base left right both");
	arch_set_free(s);
}

static void refuses_lists_of_anything_else(void **state)
{
	static const char *const rows[][2] = { { "like: []\n", "line 3, column 7" },
		{ "like: {a: b}\n", "line 3, column 7" }, { "like: [base, [left]]\n", "line 3, column 14" } };
	struct arch_set *s = set();
	struct ggu_error err;
	char text[80], want[100];
	(void)state;
	for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) {
		snprintf(text, sizeof text, HEAD("new") "%s", rows[i][0]);
		snprintf(want, sizeof want, "%s: expected the name of a description, or a list of names", rows[i][1]);
		assert_int_equal(arch_set_add(s, "new.yaml", text, strlen(text), &err), GGU_ERR_FORMAT);
		assert_string_equal(err.what, want);
		assert_string_equal(err.file, "new.yaml");
	}
	arch_set_free(s);
}

/* Added ones may be like those added before, and like the earlier one of their own name. */
static void an_added_one_may_be_like_added_ones(void **state)
{
	static const char base[] = HEAD("base") "like: base\ngraph: {by: added, added: 1}\n",
		mixed[] = HEAD("mixed") "like: [left, base]\nclasses: {}\ngraph: {by: mixed}\n",
		early[] = HEAD("early") "like: late\n";
	struct arch_set *s = set();
	struct ggu_error err;
	(void)state;
	assert_int_equal(arch_set_add(s, "early.yaml", early, strlen(early), &err), GGU_ERR_FORMAT);
	assert_string_equal(err.what, "line 3, column 7: no such description");
	assert_int_equal(arch_set_add(s, "base.yaml", base, strlen(base), NULL), GGU_OK);
	assert_int_equal(arch_set_add(s, "mixed.yaml", mixed, strlen(mixed), NULL), GGU_OK);
	assert_order(s, "mixed", "base left added");
	assert_order(s, "both", "base left right both");
	arch_set_free(s);
}

/* A base in place of an architecture: another one may have its classes, but it is none itself. */
static void names_a_base_that_hides_what_is_sought(void **state)
{
	static const char base[] = HEAD("one") "like: one\n", other[] = HEAD("other") "like: one\nclasses: {one: {}}\n";
	struct arch_set *s = set();
	const struct arch *a = NULL;
	const struct yaml_node *node;
	struct ggu_error err;
	(void)state;
	assert_int_equal(arch_set_add(s, "base.yaml", base, strlen(base), NULL), GGU_OK);
	assert_int_equal(arch_find(s, "one", &a, &err), GGU_ERR_UNSUPPORTED);
	assert_string_equal(err.file, "base.yaml");
	assert_string_equal(err.where, "one");
	assert_int_equal(arch_find_class(s, "one", &a, &node, &err), GGU_ERR_UNSUPPORTED);
	assert_string_equal(err.what, "has no classes, so it is a base and not an architecture");
	assert_int_equal(arch_find_class(s, "nowhere", &a, &node, NULL), GGU_OK);
	assert_null(a);
	assert_int_equal(arch_set_add(s, "other.yaml", other, strlen(other), NULL), GGU_OK);
	assert_int_equal(arch_find_class(s, "one", &a, &node, NULL), GGU_OK);
	assert_string_equal(a->name, "other");
	arch_set_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lays_each_text_once_in_the_order_of_the_list),
		cmocka_unit_test(merges_what_siblings_change), cmocka_unit_test(has_classes_of_its_own_text_alone),
		cmocka_unit_test(refuses_with_the_place), cmocka_unit_test(refuses_lists_of_anything_else),
		cmocka_unit_test(an_added_one_may_be_like_added_ones),
		cmocka_unit_test(names_a_base_that_hides_what_is_sought),
	};
	return cmocka_run_group_tests_name("like", tests, NULL, NULL);
}
