/* SPDX-License-Identifier: MIT
 * test_general.c - model cards and configurations as general.* metadata. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../convert/general.h"
#include "../lib/scratch.h"

static char dir[SCRATCH_PATH];
static const struct arch arch = { .name = "llama", .file = "llama.yaml" };

static struct ggu_meta *meta_of(const char *card, const char *config, const char *name, struct ggu_error *card_error)
{
	struct config c = { .arch = &arch, .i = -1, .x = -1 };
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_error err;
	char path[SCRATCH_FILE];
	FILE *f;
	snprintf(path, sizeof path, "%s/README.md", dir);
	f = fopen(path, "wb");
	assert_non_null(f);
	fputs(card, f);
	fclose(f);
	c.root = c.text = json_loads(config, 0, NULL);
	c.generation = json_loads("{\"temperature\": 0.5, \"top_k\": 20, \"top_p\": \"no number\"}", 0, NULL);
	assert_int_equal(general_to_meta(m, dir, &c, &(struct general_given){ name, NULL, 8030261248 }, card_error,
		&err), GGU_OK);
	json_decref(c.root);
	json_decref(c.generation);
	unlink(path);
	return m;
}

static void is(const struct ggu_meta *m, const char *key, const char *want)
{
	struct ggu_str s;
	bool has = ggu_meta_str(m, key, &s);
	if (!want) { if (has) fail_msg("%s is %s", key, s.p); return; }
	if (!has) fail_msg("no %s", key);
	assert_string_equal(s.p, want);
}

static void reads_a_card(void **state)
{
	struct ggu_error e = { 0 };
	struct ggu_meta *m = meta_of("---\r\nlicense: other\nlicense_name: mine\nlanguage:\n- en\n- no\n"
		"tags: [a, \"b\"]\npipeline_tag: text-generation\n"
		"model_name: A Model\nmodel_creator:\tSomebody\nbase_model:\n- mistralai/Mistral-7B-v0.1\n"
		"- just-a-name\n- https://huggingface.co/org/some-model-1.5\n"
		"- {name: Given, version: v9}\ndatasets: [allenai/c4, ~]\n---\nlicense: not this\n", "{}", NULL, &e);
	struct ggu_str s;
	uint64_t n = 0;
	double f = 0;
	(void)state;
	assert_int_equal(e.code, GGU_OK);
	is(m, "general.name", "A Model");
	is(m, "general.author", "Somebody");
	is(m, "general.license", "other");
	is(m, "general.license.name", "mine");
	is(m, "general.size_label", "8.0B");
	assert_true(ggu_meta_uint(m, "general.base_model.count", &n));
	assert_int_equal(n, 4);
	is(m, "general.base_model.0.name", "Mistral 7B v0.1");
	is(m, "general.base_model.0.version", "v0.1");
	is(m, "general.base_model.0.organization", "Mistralai");
	is(m, "general.base_model.0.repo_url", "https://huggingface.co/mistralai/Mistral-7B-v0.1");
	is(m, "general.base_model.1.name", "Just A Name");
	is(m, "general.base_model.1.organization", NULL);
	is(m, "general.base_model.2.name", "Some Model 1.5");
	is(m, "general.base_model.2.repo_url", "https://huggingface.co/org/some-model-1.5");
	is(m, "general.base_model.3.name", "Given");
	is(m, "general.base_model.3.version", "v9");
	assert_true(ggu_meta_uint(m, "general.dataset.count", &n));
	assert_int_equal(n, 1);
	assert_int_equal(ggu_kv_n(ggu_meta_find(m, "general.tags")), 3);
	assert_true(ggu_kv_str(ggu_meta_find(m, "general.languages"), 1, &s));
	assert_string_equal(s.p, "no");
	assert_true(ggu_meta_float(m, "general.sampling.temp", &f));
	assert_true(f == 0.5);
	assert_true(ggu_meta_uint(m, "general.sampling.top_k", &n));
	assert_null(ggu_meta_find(m, "general.sampling.top_p"));
	ggu_meta_free(m);
}

static void names_without_a_card(void **state)
{
	static const struct { const char *config, *name, *want; } t[] = {
		{ "{\"_name_or_path\": \"meta-llama/Meta-Llama-3.1-8B-instruct\"}", NULL,
			"Meta Llama 3.1 8B Instruct" },
		{ "{\"_name_or_path\": \"/home/me/model\"}", NULL, "Llama 8.0B" },
		{ "{\"_name_or_path\": \"./out/checkpoint\"}", NULL, "Llama 8.0B" },
		{ "{\"_name_or_path\": \"a/b/c\"}", NULL, "Llama 8.0B" },
		{ "{\"_name_or_path\": 7}", NULL, "Llama 8.0B" },
		{ "{\"_name_or_path\": \"gpt2-xl\"}", "Said", "Said" },
	};
	static const char *const cards[] = { "", "---\n", "--- \nmodel_name: X\n---\n", "---\nmodel_name: X\n",
		"---\n- a list\n---\n", "text\n---\nmodel_name: X\n---\n" };
	(void)state;
	for (size_t i = 0; i < sizeof t/sizeof *t; i++)
		for (size_t k = 0; k < sizeof cards/sizeof *cards; k++) {
			struct ggu_error e = { 0 };
			struct ggu_meta *m = meta_of(cards[k], t[i].config, t[i].name, &e);
			is(m, "general.name", t[i].want);
			ggu_meta_free(m);
		}
}

static void leaves_out_a_broken_card(void **state)
{
	struct ggu_error e = { 0 };
	struct ggu_meta *m = meta_of("---\nlicense: [\n---\n", "{}", NULL, &e);
	(void)state;
	assert_int_equal(e.code, GGU_ERR_FORMAT);
	assert_string_equal(e.file, "README.md");
	is(m, "general.license", NULL);
	ggu_meta_free(m);
}

static void labels_sizes(void **state)
{
	static const struct { uint64_t n; const char *want; } t[] = { { 101696, "102K" }, { 6800000, "6.8M" },
		{ 123648, "124K" }, { 999, "1.0K" }, { 70000000000, "70B" }, { 1500000000000, "1.5T" } };
	char s[32];
	(void)state;
	for (size_t i = 0; i < sizeof t/sizeof *t; i++) {
		general_size_label(t[i].n, s);
		assert_string_equal(s, t[i].want);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(reads_a_card),
		cmocka_unit_test(names_without_a_card), cmocka_unit_test(leaves_out_a_broken_card),
		cmocka_unit_test(labels_sizes) };
	int bad;
	if (!scratch_folder(dir)) return 2;
	bad = cmocka_run_group_tests_name("general", tests, NULL, NULL);
	rmdir(dir);
	return bad;
}
