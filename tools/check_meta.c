/* SPDX-License-Identifier: MIT
 * check_meta.c - rules about metadata and the table of tensors; see check.h. */
#include <stdio.h>
#include <string.h>
#include "../libgguf/shard_name.h"
#include "../libgguf/size.h"
#include "../libgguf/split_key.h"
#include "check.h"
#include "kv_json.h"
#include "msg.h"

void check_report(const struct check *c, enum check_rule rule, uint32_t source, uint64_t byte, const char *where,
	const char *fmt, ...)
{
	char what[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	/* whichever shard was named */
	c->report(c->ctx, rule, ggu_file_n_sources(c->f) > 1 ? ggu_file_source_name(c->f, source) : c->name, byte,
		where, what);
}

/* ---- text ---- */

static bool is_utf8(struct ggu_str s)
{
	char *text;
	size_t n;
	if (!text_replace(s.p, s.n, &text, &n)) return true;
	free(text);
	return false;
}
/* Strings of a value that are not UTF-8; *first is the item of the first. */
static size_t broken_strings(const struct ggu_kv *kv, size_t *first)
{
	size_t bad = 0, unused;
	struct ggu_str s;
	for (size_t i = 0; i < ggu_kv_n(kv); i++) {
		const struct ggu_kv *sub = ggu_kv_sub(kv, i);
		if (sub ? !broken_strings(sub, &unused) : !ggu_kv_str(kv, i, &s) || is_utf8(s)) continue;
		if (!bad++) *first = i;
	}
	return bad;
}
static void check_text(const struct check *c, uint32_t source, const struct ggu_kv *kv)
{
	struct ggu_str key = ggu_kv_key(kv);
	size_t first = 0, n = broken_strings(kv, &first);
	bool ascii = true;
	for (size_t i = 0; i < key.n; i++) ascii &= key.p[i] > 0x20 && key.p[i] < 0x7f;
	if (!ascii)
		check_report(c, CHECK_ASCII_KEY, source, ggu_kv_offset(kv), key.p,
			"the key is not ASCII without blanks");
	if (!n) return;
	if (ggu_kv_type(kv) != GGU_ARRAY)
		check_report(c, CHECK_TEXT, source, ggu_kv_offset(kv), key.p, "is not UTF-8");
	else
		check_report(c, CHECK_TEXT, source, ggu_kv_offset(kv), key.p,
			"%zu string%s not UTF-8, the first is item %zu", n, n > 1 ? "s are" : " is", first);
}

/* ---- types ---- */

/* Keys whose types are fixed by the specification or by llama.cpp's writers. '*' stands for anything. */
struct typed { const char *key; enum ggu_kv_type type, item; };
static const struct typed general[] = {
	{ "general.architecture", GGU_STRING }, { "general.type", GGU_STRING },
	{ "general.quantization_version", GGU_U32 },
	{ "general.file_type", GGU_U32 }, { "general.name", GGU_STRING }, { "general.author", GGU_STRING },
	{ "general.version", GGU_STRING },
	{ "general.organization", GGU_STRING }, { "general.basename", GGU_STRING }, { "general.finetune", GGU_STRING },
	{ "general.description", GGU_STRING }, { "general.quantized_by", GGU_STRING },
	{ "general.size_label", GGU_STRING },
	{ "general.license", GGU_STRING }, { "general.license.name", GGU_STRING },
	{ "general.license.link", GGU_STRING },
	{ "general.url", GGU_STRING }, { "general.doi", GGU_STRING }, { "general.uuid", GGU_STRING },
	{ "general.repo_url", GGU_STRING },
	{ "general.source.*", GGU_STRING }, { "general.tags", GGU_ARRAY, GGU_STRING },
	{ "general.languages", GGU_ARRAY, GGU_STRING },
	{ "general.base_model.count", GGU_U32 }, { "general.base_model.*", GGU_STRING },
	{ "tokenizer.ggml.model", GGU_STRING }, { "tokenizer.ggml.pre", GGU_STRING },
	{ "tokenizer.ggml.tokens", GGU_ARRAY, GGU_STRING },
	{ "tokenizer.ggml.scores", GGU_ARRAY, GGU_F32 }, { "tokenizer.ggml.token_type", GGU_ARRAY, GGU_I32 },
	{ "tokenizer.ggml.merges", GGU_ARRAY, GGU_STRING }, { "tokenizer.ggml.*_token_id", GGU_U32 },
	{ "tokenizer.ggml.add_*", GGU_BOOL }, { "tokenizer.ggml.remove_extra_whitespaces", GGU_BOOL },
	{ "tokenizer.chat_template", GGU_STRING }, { "tokenizer.huggingface.json", GGU_STRING },
	{ "split.no", GGU_U16 }, { "split.count", GGU_U16 }, { "split.tensors.count", GGU_I32 },
};
/* Keys after the architecture's name: numbers that llama.cpp reads in one type only. Each may be a list by layer
 * instead. */
static const struct typed numbers[] = {
	{ "context_length", GGU_U32 }, { "embedding_length", GGU_U32 }, { "block_count", GGU_U32 },
	{ "feed_forward_length", GGU_U32 },
	{ "vocab_size", GGU_U32 }, { "expert_count", GGU_U32 }, { "expert_used_count", GGU_U32 },
	{ "attention.head_count", GGU_U32 }, { "attention.head_count_kv", GGU_U32 },
	{ "attention.key_length", GGU_U32 },
	{ "attention.value_length", GGU_U32 }, { "attention.sliding_window", GGU_U32 },
	{ "attention.layer_norm_epsilon", GGU_F32 }, { "attention.layer_norm_rms_epsilon", GGU_F32 },
	{ "rope.dimension_count", GGU_U32 }, { "rope.freq_base", GGU_F32 }, { "rope.scaling.factor", GGU_F32 },
	{ "rope.scaling.type", GGU_STRING },
	{ "attn_logit_softcapping", GGU_F32 }, { "final_logit_softcapping", GGU_F32 },
};

static bool matches(const char *pattern, const char *key)
{
	const char *star = strchr(pattern, '*');
	size_t before = star ? (size_t)(star - pattern) : 0, after = star ? strlen(star + 1) : 0, n = strlen(key);
	if (!star) return !strcmp(pattern, key);
	return n >= before + after && !memcmp(pattern, key, before) && !memcmp(star + 1, key + n - after, after);
}
static void check_type(const struct check *c, enum check_rule rule, uint32_t source, const struct ggu_kv *kv,
	const char *key, const struct typed *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct typed *t = list + i;
		if (!matches(t->key, key)) continue;
		if (rule == CHECK_NUMBER_TYPE && ggu_kv_type(kv) == GGU_ARRAY) return;
		if (ggu_kv_type(kv) == t->type && (t->type != GGU_ARRAY || ggu_kv_item_type(kv) == t->item)) return;
		check_report(c, rule, source, ggu_kv_offset(kv), ggu_kv_key(kv).p, "is %s, not %s%s", kv_type_text(kv),
			t->type == GGU_ARRAY ? "array of " : "", ggu_kv_type_name(t->type == GGU_ARRAY ? t->item :
				t->type));
		return;
	}
}

/* ---- metadata ---- */

static bool has_quantized(const struct ggu_file *f)
{
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++)
		if (ggu_type_info(ggu_file_tensor(f, i)->type)->kind == GGU_KIND_BLOCK) return true;
	return false;
}
static void check_required(const struct check *c)
{
	const struct ggu_meta *m = ggu_file_meta(c->f);
	struct ggu_str type = { "", 0 };
	ggu_meta_str(m, "general.type", &type);
	if (!strcmp(type.p, "imatrix")) return;
	if (!ggu_meta_find(m, "general.architecture"))
		check_report(c, CHECK_MISSING_KEY, 0, GGU_NO_OFFSET, "general.architecture", "is missing");
	if (has_quantized(c->f) && !ggu_meta_find(m, "general.quantization_version"))
		check_report(c, CHECK_MISSING_KEY, 0, GGU_NO_OFFSET, "general.quantization_version",
			"is missing, though tensors are quantized");
}

/* What a pair of the metadata of a source breaks; arch: the architecture that the source says. */
static void check_pair(const struct check *c, uint32_t source, const struct ggu_kv *kv, struct ggu_str arch)
{
	struct ggu_str key = ggu_kv_key(kv);
	check_text(c, source, kv);
	check_type(c, CHECK_KEY_TYPE, source, kv, key.p, general, sizeof general/sizeof *general);
	if (c->profile != CHECK_LLAMA_CPP) return;
	if (ggu_kv_sub(kv, 0) || ggu_kv_item_type(kv) == GGU_ARRAY)
		check_report(c, CHECK_NESTED, source, ggu_kv_offset(kv), key.p,
			"is an array of arrays, which llama.cpp does not read");
	if (arch.n && key.n > arch.n + 1 && !memcmp(key.p, arch.p, arch.n) && key.p[arch.n] == '.')
		check_type(c, CHECK_NUMBER_TYPE, source, kv, key.p + arch.n + 1, numbers,
			sizeof numbers/sizeof *numbers);
}

void check_metadata(const struct check *c)
{
	const struct ggu_meta *m = ggu_file_meta(c->f);
	struct ggu_str arch = { "", 0 };
	ggu_meta_str(m, "general.architecture", &arch);
	for (size_t i = 0; i < ggu_meta_count(m); i++) check_pair(c, 0, ggu_meta_at(m, i), arch);
	check_required(c);
	for (uint32_t i = 0; i < ggu_file_n_sources(c->f) && c->profile == CHECK_LLAMA_CPP; i++)
		if (ggu_file_big_endian(c->f, i))
			check_report(c, CHECK_ENDIAN, i, 4, "",
				"big-endian: llama.cpp reads the byte order of its machine only");
}

static void was_reported(void *ctx, const struct ggu_error *err)
{
	(void)ctx;
	(void)err;
}
bool check_shards(const struct check *c, struct ggu_error *err)
{
	const struct ggu_open_options alone = { .flags = GGU_OPEN_ALONE | GGU_OPEN_HEADER, .defect = was_reported };
	uint32_t no, count;
	if (!ggu_file_seekable(c->f) || !shard_name_parse(c->name, &no, &count)) return true;
	for (uint32_t i = 0; i < ggu_file_n_sources(c->f); i++) {
		struct ggu_str arch = { "", 0 };
		const struct ggu_meta *m;
		struct ggu_file *f;
		if (ggu_open_path(&f, ggu_file_source_name(c->f, i), &alone, err)) return false;
		m = ggu_file_meta(f);
		ggu_meta_str(m, "general.architecture", &arch);
		for (size_t k = 0; k < ggu_meta_count(m); k++) {
			const struct ggu_kv *kv = ggu_meta_at(m, k);
			const char *key = ggu_kv_key(kv).p;
			/* of the first, the rest is the metadata of the set, which were checked */
			if (i || (split_key(key) && !ggu_meta_find(ggu_file_meta(c->f), key)))
				check_pair(c, i, kv, arch);
		}
		ggu_close(f);
	}
	return true;
}

/* ---- table ---- */

void check_table(const struct check *c)
{
	const bool llama = c->profile == CHECK_LLAMA_CPP;
	const size_t most = llama ? 63 : 64;
	uint64_t expected = 0;
	uint32_t source = 0;
	bool told = false;
	for (size_t i = 0; i < ggu_file_n_tensors(c->f); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(c->f, i);
		const uint64_t align = ggu_file_alignment(c->f, t->source);
		if (t->source != source) {
			source = t->source;
			expected = 0;
			told = false;
		}
		if (t->name_bytes > most)
			check_report(c, CHECK_LONG_NAME, t->source, t->entry, t->name,
				"the name has %u bytes, more than %zu", t->name_bytes, most);
		if (!is_utf8((struct ggu_str){ t->name, t->name_bytes }))
			check_report(c, CHECK_TEXT, t->source, t->entry, t->name, "the name is not UTF-8");
		if (llama && t->offset != expected && !told) {
			check_report(c, CHECK_ORDER, t->source, t->entry, t->name,
				"the data is at offset %llu, not %llu: "
				"llama.cpp requires the order of the table, without gaps",
				(unsigned long long)t->offset, (unsigned long long)expected);
			told = true;            /* the others follow from this one */
		}
		expected += size_aligned(t->bytes, align);
	}
}
