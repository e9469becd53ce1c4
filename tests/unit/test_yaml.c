/* SPDX-License-Identifier: MIT
 * test_yaml.c - YAML as a tree, what is refused, and the set of architecture descriptions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../model/arch/arch.h"
#include "../lib/scratch.h"

static void reads_a_tree(void **state)
{
	static const char text[] = "a: 1\nb: [x, 'null', null]\nc: &n {k: v}\nd: *n\n";
	struct yaml_doc *d;
	const struct yaml_node *r, *b;
	(void)state;
	assert_int_equal(yaml_doc_parse(&d, "t.yaml", text, strlen(text), NULL), GGU_OK);
	r = yaml_doc_root(d);
	assert_int_equal(r->count, 4);
	assert_true(yaml_is(yaml_get(r, "a"), "1"));
	b = yaml_get(r, "b");
	assert_int_equal(b->kind, YAML_SEQUENCE);
	assert_int_equal(b->line, 2);
	assert_false(yaml_null(b->items[1]));
	assert_true(yaml_null(b->items[2]));
	assert_ptr_equal(yaml_get(r, "c"), yaml_get(r, "d"));
	assert_true(yaml_is(yaml_get(yaml_get(r, "d"), "k"), "v"));
	assert_null(yaml_get(r, "none"));
	assert_null(yaml_get(b, "none"));
	yaml_doc_free(d);
}

static void refuses_with_a_line(void **state)
{
	static const char *const rows[][2] = {
		{ "", "empty" }, { "a: 1\n  b: 2\n", "line 2, column 4" },
		{ "a: 1\nb: {c: 1, c: 2}\n", "line 2, column 11" }, { "a: [1\n", "line 2" },
		{ "&x [*x]\n", "line 1" },
		{ "a: 1\n---\nb: 2\n", "line 2, column 1: a second document" }, { "a: 1\n...\nb: 2\n", "line 3" },
		{ "[a]: 1\n", "line 1" }, { "a: *gone\n", "line 1" },
	};
	char deep[400];
	struct yaml_doc *d;
	struct ggu_error err;
	(void)state;
	for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) {
		assert_int_equal(yaml_doc_parse(&d, "t.yaml", rows[i][0], strlen(rows[i][0]), &err), GGU_ERR_FORMAT);
		if (!strstr(err.what, rows[i][1])) fail_msg("%s: %s", rows[i][0], err.what);
	}
	memset(deep, '[', 200);
	memset(deep + 200, ']', 200);
	assert_int_equal(yaml_doc_parse(&d, "t.yaml", deep, sizeof deep, &err), GGU_ERR_FORMAT);
}

/* Mappings merge by key at any depth, lists and scalars replace, null removes, what aliases repeat is merged each
 * time. */
static void lays_one_over_another(void **state)
{
	static const char below[] = "a: 1\nm: &m {x: 1, y: {z: [1, 2]}, gone: 3}\nlist: [1, 2]\ntwin: *m\n"
		"flat: {k: v}\n";
	static const char above[] = "new: {n: null}\nm: {y: {w: 4}, x: 2, gone: null}\nlist: [3]\n"
		"twin: {x: {deep: 1}}\nflat: 5\n";
	struct yaml_doc *b, *a, *d;
	const struct yaml_node *r, *m;
	(void)state;
	assert_int_equal(yaml_doc_parse(&b, "below", below, strlen(below), NULL), GGU_OK);
	assert_int_equal(yaml_doc_parse(&a, "above", above, strlen(above), NULL), GGU_OK);
	assert_int_equal(yaml_doc_over(&d, yaml_doc_root(b), yaml_doc_root(a), true, NULL), GGU_OK);
	r = yaml_doc_root(d);
	assert_int_equal(r->count, 6);
	assert_string_equal(r->keys[0]->text, "a");
	assert_string_equal(r->keys[5]->text, "new");
	m = yaml_get(r, "m");
	assert_int_equal(m->count, 2);
	assert_true(yaml_is(yaml_get(m, "x"), "2"));
	assert_string_equal(yaml_get(m, "x")->file, "above");
	assert_int_equal(yaml_get(yaml_get(m, "y"), "z")->count, 2);
	assert_string_equal(yaml_get(yaml_get(m, "y"), "z")->file, "below");
	assert_true(yaml_is(yaml_get(yaml_get(m, "y"), "w"), "4"));
	assert_int_equal(yaml_get(r, "list")->count, 1);
	assert_true(yaml_is(yaml_get(yaml_get(r, "twin"), "gone"), "3"));
	assert_int_equal(yaml_get(yaml_get(r, "twin"), "x")->kind, YAML_MAPPING);
	assert_true(yaml_is(yaml_get(r, "flat"), "5"));
	yaml_doc_free(d);
	yaml_doc_free(a);
	yaml_doc_free(b);
}

static void refuses_a_null_that_removes_nothing(void **state)
{
	static const char below[] = "a: 1\nm: {x: 1}\n", above[] = "a: null\nm: {x: null,\n  y: ~}\n";
	struct yaml_doc *b, *a, *d;
	struct ggu_error err;
	(void)state;
	assert_int_equal(yaml_doc_parse(&b, "below", below, strlen(below), NULL), GGU_OK);
	assert_int_equal(yaml_doc_parse(&a, "above", above, strlen(above), NULL), GGU_OK);
	assert_int_equal(yaml_doc_over(&d, yaml_doc_root(b), yaml_doc_root(a), true, &err), GGU_ERR_FORMAT);
	assert_string_equal(err.file, "above");
	assert_string_equal(err.what, "line 3, column 3: y: there is no such key that null could remove");
	assert_int_equal(yaml_doc_over(&d, yaml_doc_root(b), yaml_doc_root(a), false, &err), GGU_OK);
	assert_int_equal(yaml_doc_root(d)->count, 1);
	assert_int_equal(yaml_get(yaml_doc_root(d), "m")->count, 0);
	yaml_doc_free(d);
	yaml_doc_free(a);
	yaml_doc_free(b);
}

static void refuses_a_key_without_value_that_would_remove(void **state)
{
	static const char below[] = "check: {x: 1}\n", above[] = "names: {y: 1}\ncheck:\n";
	struct yaml_doc *b, *a, *d;
	struct ggu_error err;
	(void)state;
	assert_int_equal(yaml_doc_parse(&b, "below", below, strlen(below), NULL), GGU_OK);
	assert_int_equal(yaml_doc_parse(&a, "above", above, strlen(above), NULL), GGU_OK);
	for (int strict = 0; strict < 2; strict++) {
		assert_int_equal(yaml_doc_over(&d, yaml_doc_root(b), yaml_doc_root(a), strict, &err), GGU_ERR_FORMAT);
		assert_string_equal(err.file, "above");
		assert_string_equal(err.what, "line 2, column 1: check: has no value: null removes what is below");
	}
	yaml_doc_free(a);
	yaml_doc_free(b);
}

/* Sixty levels of pairs of aliases are 2^60 mappings if nobody counts. */
static void bounds_what_aliases_repeat(void **state)
{
	char text[4000] = "a0: &a0 {k: 1}\n";
	size_t n = strlen(text);
	struct yaml_doc *d, *over;
	struct ggu_error err;
	(void)state;
	for (int i = 1; i < 60; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "a%d: &a%d {l: *a%d, r: *a%d}\n", i, i, i - 1, i - 1);
	assert_int_equal(yaml_doc_parse(&d, "t.yaml", text, n, &err), GGU_OK);
	assert_int_equal(yaml_doc_over(&over, yaml_doc_root(d), yaml_doc_root(d), true, &err), GGU_ERR_FORMAT);
	assert_non_null(strstr(err.what, "nodes"));
	yaml_doc_free(d);
}

static const struct arch *find(struct arch_set *s, const char *name)
{
	const struct arch *a = NULL;
	assert_int_equal(arch_find(s, name, &a, NULL), GGU_OK);
	return a;
}

static void is_a_base(struct arch_set *s, const char *name)
{
	const struct arch *a;
	assert_int_equal(arch_find(s, name, &a, NULL), GGU_ERR_UNSUPPORTED);
}

static const struct arch *find_class(struct arch_set *s, const char *hf_class)
{
	const struct yaml_node *c = NULL;
	const struct arch *a = NULL;
	assert_int_equal(arch_find_class(s, hf_class, &a, &c, NULL), GGU_OK);
	if (a) assert_int_equal(c->kind, YAML_MAPPING);
	return a;
}

static void knows_the_built_in_architectures(void **state)
{
	struct arch_set *s, *all;
	const struct arch *any;
	struct ggu_error err;
	(void)state;
	assert_int_equal(arch_set_new(&s, &err), GGU_OK);
	assert_string_equal(find_class(s, "MistralForCausalLM")->name, "llama");
	assert_non_null(find(s, "llama"));
	assert_null(find(s, "no-such"));
	is_a_base(s, "common");
	assert_int_equal(arch_find_fallback(s, &any, &err), GGU_OK);
	assert_string_equal(any->name, "llama");
	assert_int_equal(arch_set_new(&all, &err), GGU_OK);
	assert_int_equal(arch_set_all(all, &err), GGU_OK);
	assert_true(arch_count(all) > 20);
	for (size_t i = 0; i < arch_count(all); i++) {
		const struct arch *a = arch_at(all, i);
		if (!a->convert || !a->graph) fail_msg("%s lacks convert or graph", a->file);
		if (i) assert_true(strcmp(arch_at(all, i - 1)->name, a->name) < 0);
		/* one that is read alone, by its name or a class, is the same one */
		assert_string_equal(find(s, a->name)->file, a->file);
		for (size_t k = 0; k < a->classes->count; k++)
			assert_string_equal(find_class(s, a->classes->keys[k]->text)->name, a->name);
	}
	arch_set_free(all);
	arch_set_free(s);
}

static void a_file_replaces_a_built_in_one(void **state)
{
	char path[SCRATCH_PATH];
	static const char good[] = "schema: 1\narch: llama\nclasses: {MyForCausalLM: {}}\n", old[] = "schema: 9\n";
	struct arch_set *s;
	struct ggu_error err;
	int fd = scratch_file(path);
	size_t n;
	(void)state;
	assert_int_equal(write(fd, good, strlen(good)), strlen(good));
	assert_int_equal(arch_set_new(&s, &err), GGU_OK);
	assert_int_equal(arch_set_all(s, &err), GGU_OK);
	n = arch_count(s);
	assert_int_equal(arch_set_add_file(s, path, &err), GGU_OK);
	assert_int_equal(arch_set_all(s, &err), GGU_OK);
	assert_int_equal(arch_count(s), n);
	assert_non_null(find_class(s, "MyForCausalLM"));
	assert_null(find_class(s, "LlamaForCausalLM"));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, old, strlen(old), 0), strlen(old));
	assert_int_equal(arch_set_add_file(s, path, &err), GGU_ERR_UNSUPPORTED);
	assert_string_equal(err.file, path);
	unlink(path);
	assert_int_equal(arch_set_add_file(s, path, &err), GGU_ERR_MISSING);
	close(fd);
	arch_set_free(s);
}

/* The order in which descriptions are read does not show: what is built in is not like what was added. */
static void an_added_base_changes_no_built_in_description(void **state)
{
	static const char base[] = "schema: 1\narch: common\nlike: llama\ngraph: null\n";
	struct arch_set *s;
	(void)state;
	assert_int_equal(arch_set_new(&s, NULL), GGU_OK);
	assert_int_equal(arch_set_add(s, "common.yaml", base, strlen(base), NULL), GGU_OK);
	assert_non_null(find(s, "qwen2")->graph);
	is_a_base(s, "common");
	arch_set_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_tree), cmocka_unit_test(refuses_with_a_line),
		cmocka_unit_test(lays_one_over_another),
		cmocka_unit_test(refuses_a_null_that_removes_nothing),
		cmocka_unit_test(refuses_a_key_without_value_that_would_remove),
		cmocka_unit_test(bounds_what_aliases_repeat),
		cmocka_unit_test(knows_the_built_in_architectures), cmocka_unit_test(a_file_replaces_a_built_in_one),
		cmocka_unit_test(an_added_base_changes_no_built_in_description),
	};
	return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
