/* SPDX-License-Identifier: MIT
 * check_tokenizer.c - rules about the tokenizer in the metadata; see check.h. */
#include <string.h>
#include "../libgguf/index.h"
#include "../libgguf/text.h"
#include "check.h"

enum { TOKEN_TYPE_MAX = 6 };

/* A key that is an array of `item`; NULL if it is missing or of another type, which another rule reports. */
static const struct ggu_kv *list(const struct check *c, const char *key, enum ggu_kv_type item)
{
	const struct ggu_kv *kv = ggu_meta_find(ggu_file_meta(c->f), key);
	return kv && ggu_kv_type(kv) == GGU_ARRAY && ggu_kv_item_type(kv) == item ? kv : NULL;
}

static void check_lists(const struct check *c, size_t n)
{
	static const struct { const char *key; enum ggu_kv_type item; } lists[] = {
		{ "tokenizer.ggml.scores", GGU_F32 }, { "tokenizer.ggml.token_type", GGU_I32 },
	};
	for (size_t i = 0; i < sizeof lists/sizeof *lists; i++) {
		const struct ggu_kv *kv = list(c, lists[i].key, lists[i].item);
		if (kv && ggu_kv_n(kv) != n)
			check_report(c, CHECK_TOKEN_LISTS, 0, ggu_kv_offset(kv), lists[i].key,
				"has %zu item%s for %zu token%s", ggu_kv_n(kv), text_s(ggu_kv_n(kv)), n, text_s(n));
	}
}

static void check_ids(const struct check *c, size_t n)
{
	const struct ggu_meta *m = ggu_file_meta(c->f);
	static const char head[] = "tokenizer.ggml.", tail[] = "_token_id";
	for (size_t i = 0; i < ggu_meta_count(m); i++) {
		const struct ggu_kv *kv = ggu_meta_at(m, i);
		struct ggu_str key = ggu_kv_key(kv);
		uint64_t id;
		if (key.n < sizeof head + sizeof tail - 2 || memcmp(key.p, head, sizeof head - 1) != 0 ||
			strcmp(key.p + key.n - (sizeof tail - 1), tail) != 0)
			continue;
		if (ggu_kv_type(kv) == GGU_ARRAY || !ggu_kv_uint(kv, 0, &id) || id < n) continue;
		check_report(c, CHECK_TOKEN_ID, 0, ggu_kv_offset(kv), key.p, "is %llu, but there %s %zu token%s",
			(unsigned long long)id, n == 1 ? "is" : "are", n, text_s(n));
	}
}

static void check_types(const struct check *c)
{
	const struct ggu_kv *kv = list(c, "tokenizer.ggml.token_type", GGU_I32);
	size_t bad = 0, first = 0;
	int64_t v, first_value = 0;
	for (size_t i = 0; kv && i < ggu_kv_n(kv); i++) {
		if (ggu_kv_int(kv, i, &v) && v >= 1 && v <= TOKEN_TYPE_MAX) continue;
		if (!bad++) { first = i; first_value = v; }
	}
	if (bad)
		check_report(c, CHECK_TOKEN_TYPE, 0, ggu_kv_offset(kv), "tokenizer.ggml.token_type",
			"%zu value%s not from 1 to %d, the first is %lld, item %zu",
		bad, bad > 1 ? "s are" : " is", TOKEN_TYPE_MAX, (long long)first_value, first);
}

static struct ggu_str token_at(const void *tokens, size_t i)
{
	struct ggu_str s = { "", 0 };
	ggu_kv_str(tokens, i, &s);
	return s;
}
/* The blank between the two parts of a merge: the first that is not its first byte. */
static const char *blank_in(struct ggu_str merge) { return merge.n > 2 ? memchr(merge.p + 1, ' ', merge.n - 2) : NULL; }

static void check_merges(const struct check *c, const struct ggu_kv *tokens)
{
	const struct ggu_kv *kv = list(c, "tokenizer.ggml.merges", GGU_STRING);
	struct ggu_index index = { 0 };
	size_t bad = 0, first = 0;
	struct ggu_str s;
	for (size_t i = 0; kv && i < ggu_kv_n(tokens); i++) {
		s = token_at(tokens, i);
		if (ggu_index_find(&index, tokens, token_at, s.p, s.n) == SIZE_MAX
			&& !ggu_index_add(&index, tokens, token_at, i))
			break;
	}
	for (size_t i = 0; kv && i < ggu_kv_n(kv); i++) {
		const char *blank;
		bool ok;
		ggu_kv_str(kv, i, &s);
		blank = blank_in(s);
		ok = blank && ggu_index_find(&index, tokens, token_at, s.p, (size_t)(blank - s.p)) != SIZE_MAX
			&& ggu_index_find(&index, tokens, token_at, blank + 1,
				(size_t)(s.p + s.n - blank - 1)) != SIZE_MAX;
		if (!ok && !bad++) first = i;
	}
	ggu_index_free(&index);
	if (bad)
		check_report(c, CHECK_MERGE, 0, ggu_kv_offset(kv), "tokenizer.ggml.merges",
			"%zu item%s not two tokens with a blank between, the first is item %zu",
		bad, bad > 1 ? "s are" : " is", first);
}

static void check_vocab(const struct check *c, size_t n)
{
	const struct ggu_tensor *t = ggu_file_find(c->f, "token_embd.weight");
	if (t && t->n_dims > 1 && t->ne[1] < n)
		check_report(c, CHECK_VOCAB, t->source, t->entry, t->name, "has %llu row%s for %zu token%s",
			(unsigned long long)t->ne[1], text_s(t->ne[1]), n, text_s(n));
}

void check_tokenizer(const struct check *c)
{
	const struct ggu_meta *m = ggu_file_meta(c->f);
	const struct ggu_kv *tokens = list(c, "tokenizer.ggml.tokens", GGU_STRING);
	struct ggu_str model = { "", 0 };
	if (!ggu_meta_str(m, "tokenizer.ggml.model", &model)) return;
	if (!ggu_meta_find(m, "tokenizer.ggml.tokens") && strcmp(model.p, "none") != 0
		&& strcmp(model.p, "no_vocab") != 0)
		check_report(c, CHECK_TOKENS, 0, ggu_kv_offset(ggu_meta_find(m, "tokenizer.ggml.model")),
			"tokenizer.ggml.tokens", "is missing, though there is a tokenizer");
	if (!tokens) return;
	if (!strcmp(model.p, "gpt2") && !list(c, "tokenizer.ggml.merges", GGU_STRING))
		check_report(c, CHECK_TOKENS, 0, ggu_kv_offset(ggu_meta_find(m, "tokenizer.ggml.model")),
			"tokenizer.ggml.merges", "is missing, though the tokenizer is gpt2");
	check_lists(c, ggu_kv_n(tokens));
	check_ids(c, ggu_kv_n(tokens));
	check_types(c);
	check_merges(c, tokens);
	check_vocab(c, ggu_kv_n(tokens));
}
