/* SPDX-License-Identifier: MIT
 * fuzz_convert.c - a checkpoint folder (fuzz.h) with config.json, a model card and a description arch.yaml of its
 * own, or without one for the built-in ones: refused, or its plan is carried out and every tensor has as many bytes
 * as it says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../convert/checkpoint.h"
#include "../../convert/coded.h"
#include "../../convert/general.h"
#include "../../convert/plan.h"
#include "../../libgguf/ggu.h"
#include "fuzz.h"

/* Plans may ask for a lot with few words (make: range(65536)); not all of it need be read. */
enum { MOST = 1 << 20 };

static void carry_out(struct plan *p)
{
	char *to = malloc(MOST);
	struct ggu_error err = { 0 };

	must(to, "no memory");
	for (size_t i = 0; i < p->n; i++) {
		const struct plan_tensor *t = p->v + i;
		uint64_t n = t->ne[0]*t->ne[1]*t->ne[2]*t->ne[3], bytes = 0;
		must(ggu_type_info(t->from) && ggu_type_bytes(t->from, n, &bytes), "a tensor of no size");
		for (uint64_t at = 0; at < bytes && at < MOST; at += 24) {
			size_t part = bytes - at < 24 ? (size_t)(bytes - at) : 24;
			must(plan_read(p, i, at, to, part, &err) == GGU_OK, "a tensor cannot be read in parts");
		}
		if (bytes <= MOST)
			must(plan_read(p, i, 0, to, (size_t)bytes, &err) == GGU_OK, "a tensor cannot be read whole");
	}
	free(to);
}

static void unread(void *ctx, const struct ggu_error *what)
{
	(void)ctx;
	must(*what->what, "a key that is not read is told without a word");
}

static void convert(const char *dir, struct arch_set *set)
{
	struct config c;
	struct checkpoint *source = NULL;
	struct plan p;
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_error err = { 0 }, card;

	if (config_open(&c, dir, set, false, &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		ggu_meta_free(m);
		return;
	}
	must(m, "no memory");
	c.coded = coded_is(&c);
	config_check(&c, &err);
	config_unread(&c, unread, NULL, &err);
	general_to_meta(m, dir, &c, &(struct general_given){ .n_weights = 12345678 }, &card, &err);
	if (checkpoint_open(&source, dir, &err) == GGU_OK &&
		(!c.coded || coded_open(source, &c, &err) == GGU_OK) && plan_new(&p, &c, source, &err) == GGU_OK) {
		carry_out(&p);
		plan_free(&p);
	} else must(err.code != GGU_OK && *err.what, "refused without a reason");
	checkpoint_close(source);
	config_close(&c);
	ggu_meta_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arch_set *built_in;
	struct arch_set *set = NULL;
	const char *dir = folder_of(data, size);
	char path[512];

	snprintf(path, sizeof path, "%s/arch.yaml", dir);
	must(built_in || arch_set_new(&built_in, NULL) == GGU_OK, "the built-in descriptions cannot be read");
	must(arch_set_empty(&set, NULL) == GGU_OK, "no memory");
	convert(dir, arch_set_add_file(set, path, NULL) == GGU_OK ? set : built_in);
	arch_set_free(set);
	return 0;
}

/* Puts a pair of the language of descriptions into a mapping in braces: keys that may not stand together, or not
 * there, are seldom found by changing bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
	static const char *const pairs[] = { "from: a, ", "make: \"[1]\", ", "transform: transpose, ", "when: n > 1, ",
		"optional: true, ", "bias: \"false\", ", "bias: \"true\", ", "stack: 2, ", "type: f16, ",
		"pack: mxfp4, ", "scales: a, ", "each: i, ", "list: \"[1]\", ", "value: n, ", "of: a, ",
		"all.*: {make: \"[1]\"}, " };
	const char *pair = pairs[seed*2654435761u >> 28];
	const size_t k = strlen(pair);
	const uint8_t *config = memmem(data, n, "\n--- config", 11);    /* what follows is no description */
	const size_t end = config ? (size_t)(config - data) : n;
	size_t braces = 0, at = 0, of;

	_Static_assert(sizeof pairs/sizeof *pairs == 16, "four bits choose a pair");
	for (size_t i = 0; i < end; i++)
		braces += data[i] == '{';
	if (!braces || n + k > most || seed%4 == 0)
		return LLVMFuzzerMutate(data, n, most);
	for (of = seed%braces + 1; of; at++)
		of -= data[at] == '{';
	memmove(data + at + k, data + at, n - at);
	memcpy(data + at, pair, k);
	return n + k;
}
