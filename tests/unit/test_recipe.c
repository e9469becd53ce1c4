/* SPDX-License-Identifier: MIT
 * test_recipe.c - every recipe chooses the types that llama.cpp's own test expects of it, for twelve models:
 * ../shared/data/quant-type-selection (skipped where that is missing); and what those files do not cover.
 *
 * A file lists, for each recipe, the tensors whose type is not the recipe's own; shapes are told from what
 * two of the recipes list. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../quant/recipe.h"

enum { MAX = 8192 };
static struct ggu_tensor tensor[MAX];
static const struct ggu_tensor *list[MAX];
static size_t n_tensors;
static char names[MAX][64];

static size_t find(const char *name)
{
	for (size_t i = 0; i < n_tensors; i++) if (strcmp(names[i], name) == 0) return i;
	return n_tensors;
}
static struct ggu_tensor *add(const char *name, uint64_t cols, uint64_t experts)
{
	size_t i = find(name);
	assert_true(i < MAX && strlen(name) < sizeof names[i]);
	strcpy(names[i], name);
	tensor[i] = (struct ggu_tensor){ .name = names[i], .name_bytes = (uint32_t)strlen(name),
		.n_dims = experts > 1 ? 3 : 2,
		.ne = { cols, 64, experts, 1 }, .type = GGU_TYPE_F32 };
	list[i] = &tensor[i];
	if (i == n_tensors) n_tensors++;
	return &tensor[i];
}
static struct ggu_meta *meta_of(const char *arch, unsigned layers, unsigned heads, unsigned kv, unsigned experts)
{
	struct ggu_meta *m = ggu_meta_new();
	char key[128];
	assert_non_null(m);
	ggu_meta_set_str(m, "general.architecture", arch, strlen(arch));
	snprintf(key, sizeof key, "%s.block_count", arch);
	ggu_meta_set_uint(m, key, GGU_U32, layers);
	snprintf(key, sizeof key, "%s.attention.head_count", arch);
	ggu_meta_set_uint(m, key, GGU_U32, heads);
	snprintf(key, sizeof key, "%s.attention.head_count_kv", arch);
	ggu_meta_set_uint(m, key, GGU_U32, kv);
	snprintf(key, sizeof key, "%s.expert_count", arch);
	if (experts) ggu_meta_set_uint(m, key, GGU_U32, experts);
	return m;
}
static unsigned number(const char *head, const char *key)
{
	const char *p = strstr(head, key);
	return p ? (unsigned)strtoul(p + strlen(key), NULL, 10) : 0;
}
/* The one difference from llama.cpp's table: IQ4_NL replaces Q4_0, which is as large. */
static bool is_our_fallback(const struct recipe_choice *c, uint32_t theirs)
{
	return c->reason == RECIPE_FALLBACK && c->type == GGU_TYPE_IQ4_NL && theirs == GGU_TYPE_Q4_0;
}

/* If a block of 256 does not divide the row, the recipe Q6_K shows the fall-back Q8_0. MXFP4_MOE makes an exception of
 * every tensor that is not 3-D. */
static void check_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256], head[512] = "", name[128], type[32], recipe[32] = "";
	const char *arch;
	struct ggu_meta *meta;
	struct recipe_options o = { .output_type = -1, .token_embd_type = -1, .need_nothing = true };
	static struct recipe_choice choice[MAX];
	static uint32_t want[MAX];
	uint32_t own = 0;
	int done = 0;
	assert_non_null(f);
	n_tensors = 0;
	while (fgets(line, sizeof line, f)) {
		if (line[0] == '#') { strncat(head, line, sizeof head - strlen(head) - 1); continue; }
		if (sscanf(line, "[%31[^]]", recipe) == 1) continue;
		if (sscanf(line, "%127s %31s", name, type) != 2) continue;
		if (find(name) == n_tensors) add(name, 4096, 4);
		if (strcmp(recipe, "Q6_K") == 0 && strcmp(type, "q8_0") == 0) tensor[find(name)].ne[0] = 4096 + 32;
		if (strcmp(recipe, "MXFP4_MOE") == 0) tensor[find(name)].ne[2] = 1;
	}
	arch = strstr(head, "Meta-Llama") ? "llama" : "other";
	/* with eight experts, Q6_K would list keys and values as Q8_0 whatever their rows */
	assert_int_not_equal(number(head, "n_expert="), 8);
	meta = meta_of(arch, number(head, "n_layer="), number(head, "n_head="), number(head, "n_head_kv="),
		number(head, "n_expert="));
	rewind(f);
	for (;;) {
		bool more = fgets(line, sizeof line, f) != NULL;
		if (!more || line[0] == '[') {
			if (done) {
				const struct recipe *r = recipe_find(recipe);
				struct ggu_error err;
				assert_non_null(r);
				assert_int_equal(recipe_type(r), own);
				if (recipe_choose(r, &o, meta, list, n_tensors, choice, &err) != GGU_OK)
					fail_msg("%s %s: %s %s", path, recipe, err.where, err.what);
				for (size_t i = 0; i < n_tensors; i++)
					if (choice[i].type != want[i] && !is_our_fallback(&choice[i], want[i]))
						fail_msg("%s [%s] %s: got %s, expected %s", path, recipe, names[i],
							ggu_type_info(choice[i].type)->name,
								ggu_type_info(want[i])->name);
			}
			if (!more) break;
			assert_int_equal(sscanf(line, "[%31[^]]] %31s", recipe, type), 2);
			own = ggu_type_find(type)->id;
			for (size_t i = 0; i < n_tensors; i++) want[i] = own;
			done++;
		} else if (line[0] != '#' && sscanf(line, "%127s %31s", name, type) == 2) {
			want[find(name)] = ggu_type_find(type)->id;
		}
	}
	assert_int_equal(done, 33);
	ggu_meta_free(meta);
	fclose(f);
}
static void same_types_as_llama_cpp(void **state)
{
	const char *shared = getenv("GGUF_UTILS_SHARED");
	char path[512];
	DIR *d;
	int n = 0;
	(void)state;
	snprintf(path, sizeof path, "%s/data/quant-type-selection", shared ? shared : "../shared");
	d = opendir(path);
	if (!d) return;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char file[800];
		if (!strstr(e->d_name, ".schema")) continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		check_file(file);
		n++;
	}
	closedir(d);
	assert_int_equal(n, 12);
}

/* A model of two layers: the type that a recipe gives to one of its tensors. */
static void small_model(void)
{
	n_tensors = 0;
	add("output.weight", 256, 1);
	add("token_embd.weight", 256, 1);
	add("output_norm.weight", 256, 1)->n_dims = 1;
	tensor[2].ne[1] = 1;
	add("blk.1.ffn_down.weight", 768, 1);
	add("blk.0.ffn_down.weight", 768, 1);
	add("blk.0.attn_v.weight", 256, 1);
	add("blk.0.ffn_gate_inp.weight", 256, 1);
	add("blk.0.ssm_conv1d.weight", 4, 1);
	add("blk.0.odd.weight", 96, 1);
	add("blk.0.odder.weight", 40, 1);
	add("blk.0.attn_v.bias", 256, 1)->ne[1] = 1;
}
static struct recipe_choice choose(const char *recipe, const struct recipe_options *o, const char *name)
{
	static struct recipe_choice c[MAX];
	struct ggu_error err = { 0 };
	struct ggu_meta *meta = meta_of("llama", 2, 8, 2, 0);
	enum ggu_status s = recipe_choose(recipe_find(recipe), o, meta, list, n_tensors, c, &err);
	if (s != GGU_OK) fail_msg("%s: %s: %s", recipe, err.where, err.what);
	ggu_meta_free(meta);
	return c[find(name)];
}
static const struct recipe_options plain = { .output_type = -1, .token_embd_type = -1 };

static void fallbacks_and_tensors_left_alone(void **state)
{
	struct recipe_choice c;
	(void)state;
	small_model();
	c = choose("Q4_K_M", &plain, "blk.0.odd.weight");
	assert_int_equal(c.type, GGU_TYPE_Q5_0);
	assert_int_equal(c.wanted, GGU_TYPE_Q4_K);
	assert_int_equal(c.reason, RECIPE_FALLBACK);
	c = choose("Q4_K_M", &plain, "blk.0.odder.weight");
	assert_int_equal(c.type, GGU_TYPE_F16); assert_int_equal(c.reason, RECIPE_FALLBACK);
	c = choose("q8_0", &plain, "blk.0.odder.weight");
	assert_int_equal(c.type, GGU_TYPE_F16); assert_int_equal(c.wanted, GGU_TYPE_Q8_0);
	assert_int_equal(choose("q4_k", &plain, "blk.0.attn_v.weight").type, GGU_TYPE_Q6_K);
	assert_int_equal(choose("q4_k", &plain, "output.weight").type, GGU_TYPE_Q6_K);
	assert_int_equal(choose("q4_k", &plain, "token_embd.weight").type, GGU_TYPE_Q4_K);
	assert_int_equal(choose("f16", &plain, "token_embd.weight").type, GGU_TYPE_F16);
	assert_int_equal(choose("copy", &plain, "token_embd.weight").reason, RECIPE_LEFT_ALONE);
	for (int i = 0; i < 4; i++) {
		static const char *const alone[4] = { "output_norm.weight", "blk.0.ffn_gate_inp.weight",
			"blk.0.ssm_conv1d.weight", "blk.0.attn_v.bias" };
		c = choose("f16", &plain, alone[i]);
		assert_int_equal(c.type, GGU_TYPE_F32); assert_int_equal(c.reason, RECIPE_LEFT_ALONE);
	}
}

/* The first of some words that a name holds. */
struct words { const char *word[3]; uint32_t type[3]; size_t hits[3]; };
static uint32_t by_word(void *ctx, const char *name)
{
	struct words *w = ctx;
	for (size_t i = 0; i < 3 && w->word[i]; i++)
		if (strstr(name, w->word[i])) {
			w->hits[i]++;
			return w->type[i];
		}
	return RECIPE_KEEP;
}
/* 4.25 bits of MXFP4 and 4.5 of NVFP4, beside Q4_K's 4.5, IQ4_XS's 4.25, Q3_K's 3.4 and MXFP4's */
static void blocks_of_published_models_stay_unless_others_are_smaller(void **state)
{
	struct words over = { { "attn_v." }, { GGU_TYPE_Q8_0 }, { 0 } };
	struct recipe_options o = plain;
	(void)state;
	small_model();
	for (size_t i = 0; i < n_tensors; i++)
		if (strcmp(tensor[i].name, "blk.1.ffn_down.weight") == 0) tensor[i].type = GGU_TYPE_NVFP4;
		else if (tensor[i].ne[0]%32 == 0) tensor[i].type = GGU_TYPE_MXFP4;
	for (int i = 0; i < 3; i++) {
		static const char *const recipe[3] = { "Q4_K_M", "Q8_0", "IQ4_XS" };
		struct recipe_choice c = choose(recipe[i], &plain, "blk.0.ffn_down.weight");
		assert_int_equal(c.type, GGU_TYPE_MXFP4); assert_int_equal(c.reason, RECIPE_PUBLISHED);
	}
	assert_int_equal(choose("Q4_K_S", &plain, "blk.0.odd.weight").type, GGU_TYPE_MXFP4);
	assert_int_equal(choose("Q4_K_S", &plain, "blk.1.ffn_down.weight").type, GGU_TYPE_NVFP4);
	assert_int_equal(choose("MXFP4_MOE", &plain, "blk.1.ffn_down.weight").type, GGU_TYPE_NVFP4);
	assert_int_equal(choose("Q3_K_S", &plain, "blk.0.ffn_down.weight").type, GGU_TYPE_Q3_K);
	assert_int_equal(choose("F16", &plain, "blk.0.ffn_down.weight").type, GGU_TYPE_F16);
	o.pure = true;
	assert_int_equal(choose("Q4_K_S", &o, "blk.0.ffn_down.weight").type, GGU_TYPE_Q4_K);
	o = plain; o.override = by_word; o.override_ctx = &over;
	assert_int_equal(choose("Q4_K_S", &o, "blk.0.attn_v.weight").type, GGU_TYPE_Q8_0);
	tensor[find("blk.0.ffn_down.weight")].type = GGU_TYPE_Q4_0;     /* no model is published so */
	assert_int_equal(choose("Q8_0", &plain, "blk.0.ffn_down.weight").type, GGU_TYPE_Q8_0);
}

/* Sixteen layers are found by their names as if the metadata stated their number. */
static void layers_are_counted_by_name_where_nothing_says_how_many(void **state)
{
	static struct recipe_choice told[MAX], counted[MAX];
	struct ggu_meta *meta = meta_of("llama", 16, 8, 8, 0), *nothing = meta_of("llama", 0, 8, 8, 0);
	(void)state;
	n_tensors = 0;
	for (int i = 0; i < 16; i++) {
		char name[64];
		snprintf(name, sizeof name, "blk.%d.ffn_down.weight", i);
		add(name, 256, 1);
	}
	assert_int_equal(recipe_choose(recipe_find("Q4_K_M"), &plain, meta, list, n_tensors, told, NULL), GGU_OK);
	assert_int_equal(recipe_choose(recipe_find("Q4_K_M"), &plain, nothing, list, n_tensors, counted, NULL), GGU_OK);
	assert_int_equal(told[1].type, GGU_TYPE_Q6_K);
	assert_int_equal(told[2].type, GGU_TYPE_Q4_K);
	for (size_t i = 0; i < n_tensors; i++) assert_int_equal(counted[i].type, told[i].type);
	ggu_meta_free(meta);
	ggu_meta_free(nothing);
}

static void callers_wishes(void **state)
{
	struct words over = { { "attn_v.", "ffn", "_norm" }, { GGU_TYPE_Q8_0, GGU_TYPE_Q5_K, GGU_TYPE_F16 }, { 0 } };
	struct recipe_options o = plain;
	struct recipe_choice c;
	(void)state;
	small_model();
	o.override = by_word; o.override_ctx = &over;
	c = choose("Q4_K_M", &o, "blk.0.attn_v.weight");
	assert_int_equal(c.type, GGU_TYPE_Q8_0); assert_int_equal(c.reason, RECIPE_OVERRIDE);
	assert_true(over.hits[0] > 0 && over.hits[1] > 0 && over.hits[2] == 0);
	assert_int_equal(choose("Q4_K_M", &o, "blk.1.ffn_down.weight").type, GGU_TYPE_Q5_K);
	assert_int_equal(choose("F16", &o, "blk.1.ffn_down.weight").type, GGU_TYPE_Q5_K);
	o = plain; o.pure = true;
	assert_int_equal(choose("Q4_K_M", &o, "output.weight").type, GGU_TYPE_Q4_K);
	assert_int_equal(choose("Q4_K_M", &o, "blk.0.odd.weight").type, GGU_TYPE_Q5_0);
	o.have_importance = true;
	assert_int_equal(choose("IQ2_S", &o, "blk.1.ffn_down.weight").type, GGU_TYPE_IQ2_S);
	assert_int_equal(choose("IQ2_M", &o, "blk.1.ffn_down.weight").type, GGU_TYPE_IQ2_S);
	o = plain; o.output_type = GGU_TYPE_Q5_K; o.token_embd_type = GGU_TYPE_Q3_K;
	assert_int_equal(choose("Q4_K_M", &o, "output.weight").type, GGU_TYPE_Q5_K);
	assert_int_equal(choose("Q4_K_M", &o, "token_embd.weight").type, GGU_TYPE_Q3_K);
	o = plain; o.leave_output = true;
	assert_int_equal(choose("Q4_K_M", &o, "output.weight").reason, RECIPE_LEFT_ALONE);
	assert_true(recipe_needs_no_importance("per_layer_token_embd.weight") &&
		recipe_needs_no_importance("output.weight"));
	assert_false(recipe_needs_no_importance("blk.0.attn_output.weight"));
	o = plain; o.have_importance = true;
	assert_int_equal(choose("IQ2_XS", &o, "blk.0.attn_v.weight").type, GGU_TYPE_Q4_K);
	/* tied embeddings take the output's place */
	strcpy(names[0], "blk.0.attn_k.weight");
	assert_int_equal(choose("Q4_K_M", &plain, "token_embd.weight").type, GGU_TYPE_Q6_K);
	o = plain; o.output_type = GGU_TYPE_Q8_0;
	assert_int_equal(choose("Q4_K_M", &o, "token_embd.weight").type, GGU_TYPE_Q8_0);
}

/* Its latent queries are Q8_0 at least, and small weights of its indexer and mixers stay. */
static void glm5_next_has_exceptions_of_its_own(void **state)
{
	static const char *const name[4] = { "blk.0.attn_q_a.weight", "blk.0.attn_q_b.weight",
		"blk.0.indexer.proj.weight", "blk.0.attn_v_b.weight" };
	static struct recipe_choice c[4];
	(void)state;
	n_tensors = 0;
	for (int i = 0; i < 4; i++) add(name[i], 256, 1);
	for (int glm5 = 0; glm5 < 2; glm5++) {
		struct ggu_meta *meta = meta_of(glm5 ? "glm5-next" : "deepseek2", 1, 8, 8, 0);
		const struct recipe *q4 = recipe_find("Q4_K_S");
		assert_int_equal(recipe_choose(q4, &plain, meta, list, n_tensors, c, NULL), GGU_OK);
		for (int i = 0; i < 4; i++)
			assert_int_equal(c[i].type, !glm5 ? GGU_TYPE_Q4_K : i < 2 ? GGU_TYPE_Q8_0 : GGU_TYPE_F32);
		ggu_meta_free(meta);
	}
}

/* Gemma 3n's embedding by layer is larger than the other, so it can be named on its own. */
static void a_wish_for_the_embedding_by_layer_goes_before_the_type_of_the_embedding(void **state)
{
	struct words over = { { "embd" }, { GGU_TYPE_Q4_0 }, { 0 } };
	struct recipe_options o = plain;
	(void)state;
	small_model();
	add("per_layer_token_embd.weight", 256, 1);
	o.token_embd_type = GGU_TYPE_Q5_K;
	assert_int_equal(choose("Q4_K_M", &o, "per_layer_token_embd.weight").type, GGU_TYPE_Q5_K);
	o.override = by_word; o.override_ctx = &over;
	assert_int_equal(choose("Q4_K_M", &o, "per_layer_token_embd.weight").type, GGU_TYPE_Q4_0);
	assert_int_equal(choose("Q4_K_M", &o, "token_embd.weight").type, GGU_TYPE_Q5_K);
}

static void refusals(void **state)
{
	struct words misfit = { { "odd" }, { GGU_TYPE_Q6_K }, { 0 } };
	struct recipe_options o = plain;
	struct recipe_choice c[16];
	struct ggu_error err;
	(void)state;
	small_model();
	assert_int_equal(recipe_choose(recipe_find("IQ2_XS"), &o, NULL, list, n_tensors, c, &err), GGU_ERR_MISSING);
	/* whoever calls knows how its user names a matrix */
	assert_string_equal(err.what, "iq2_xs needs an importance matrix");
	assert_int_equal(recipe_choose(recipe_find("Q2_K_S"), &o, NULL, list, n_tensors, c, &err), GGU_ERR_MISSING);
	o.need_nothing = true;
	assert_int_equal(recipe_choose(recipe_find("IQ2_XS"), &o, NULL, list, n_tensors, c, &err), GGU_OK);
	o.override = by_word; o.override_ctx = &misfit;
	assert_int_equal(recipe_choose(recipe_find("Q4_K_M"), &o, NULL, list, n_tensors, c, &err), GGU_ERR_UNSUPPORTED);
	assert_string_equal(err.where, "blk.0.odd.weight");
	assert_null(recipe_find("Q9_K"));
}

/* The summaries state bits per weight of Llama 3.1 8B, with a matrix if the recipe needs one. */
static void summaries_tell_the_truth(void **state)
{
	static const struct { const char *name; uint64_t cols, rows; } layer[] = {
		{ "attn_q", 4096, 4096 }, { "attn_k", 4096, 1024 }, { "attn_v", 4096, 1024 },
		{ "attn_output", 4096, 4096 },
		{ "ffn_gate", 4096, 14336 }, { "ffn_up", 4096, 14336 }, { "ffn_down", 14336, 4096 },
		{ "attn_norm", 4096, 1 }, { "ffn_norm", 4096, 1 },
	};
	static struct recipe_choice c[MAX];
	struct ggu_meta *meta = meta_of("llama", 32, 32, 8, 0);
	(void)state;
	n_tensors = 0;
	add("token_embd.weight", 4096, 1)->ne[1] = 128256;
	add("output.weight", 4096, 1)->ne[1] = 128256;
	add("output_norm.weight", 4096, 1)->ne[1] = 1;
	for (int i = 0; i < 32; i++)
		for (size_t k = 0; k < sizeof layer/sizeof *layer; k++) {
			char name[64];
			snprintf(name, sizeof name, "blk.%d.%s.weight", i, layer[k].name);
			add(name, layer[k].cols, 1)->ne[1] = layer[k].rows;
		}
	for (size_t r = 0; recipe_at(r); r++) {
		const char *summary = recipe_summary(recipe_at(r));
		struct recipe_options o = plain;
		double bits = 0, weights = 0;
		char text[16];
		if (!strstr(summary, " bpw")) continue;
		o.have_importance = strstr(summary, "needs an importance matrix") != NULL;
		assert_int_equal(recipe_choose(recipe_at(r), &o, meta, list, n_tensors, c, NULL), GGU_OK);
		for (size_t i = 0; i < n_tensors; i++) {
			uint64_t n = tensor[i].ne[0]*tensor[i].ne[1], bytes = 0;
			ggu_type_bytes(c[i].type, n, &bytes);
			bits += 8.0*(double)bytes;
			weights += (double)n;
		}
		snprintf(text, sizeof text, "%.2f", bits/weights);
		if (strncmp(summary, text, strlen(text)) != 0)
			fail_msg("%s: %s bpw, not %s", recipe_name(recipe_at(r)), text, summary);
	}
	ggu_meta_free(meta);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_types_as_llama_cpp),
		cmocka_unit_test(fallbacks_and_tensors_left_alone),
		cmocka_unit_test(layers_are_counted_by_name_where_nothing_says_how_many),
		cmocka_unit_test(callers_wishes),
		cmocka_unit_test(blocks_of_published_models_stay_unless_others_are_smaller),
		cmocka_unit_test(glm5_next_has_exceptions_of_its_own),
		cmocka_unit_test(a_wish_for_the_embedding_by_layer_goes_before_the_type_of_the_embedding),
		cmocka_unit_test(refusals),
		cmocka_unit_test(summaries_tell_the_truth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
