/* SPDX-License-Identifier: MIT
 * general.c - general.* metadata; see general.h. The name is the user's, the card's, that of config.json, or made of
 * kind and size. Tables list the keys of the card that stand for one text (the first that is there counts), a
 * list or several sources. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "../libgguf/try.h"
#include "../model/util/file.h"
#include "general.h"

enum { MAX_CARD = 16 << 20, MAX_OVERRIDE = 64 << 20, MAX_TEXT = 512, MAX_STRINGS = 1024 };
#define HUB "https://huggingface.co/"

static enum ggu_status set(struct ggu_meta *m, const char *key, const char *s)
{
	return s && *s ? ggu_meta_set_str(m, key, s, strlen(s)) : GGU_OK;
}
/* ASCII only, in any locale */
static bool lower(char c) { return c >= 'a' && c <= 'z'; }
static bool upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool digit(char c) { return c >= '0' && c <= '9'; }

/* ---- names ---- */

/* "v1.0", "1.5", "iter3": a part of a model's name that is a version */
static bool is_version(const char *s)
{
	if (text_starts(s, "iter")) s += strlen("iter");
	else if (*s == 'v' || *s == 'V') s++;
	if (!digit(*s)) return false;
	while (digit(*s)) {
		while (digit(*s)) s++;
		if (*s == '.' && digit(s[1])) s++;
	}
	return !*s;
}
/* "7B", "8x7B", "1.5b", "small": a part that says the size */
static bool is_size(const char *s)
{
	static const char *const words[] = { "small", "mini", "medium", "large", "xl", "xxl" };
	const char *p = s;
	for (size_t i = 0; i < sizeof words/sizeof *words; i++) if (!strcmp(words[i], s)) return true;
	if (*p == 'A') p++;
	while (digit(*p)) p++;
	if (*p == 'x' && p > s) p++;
	while (digit(*p)) p++;
	if (p == s || !digit(p[-1])) return false;
	if ((*p == '.' || *p == '_') && digit(p[1])) for (p++; digit(*p);) p++;
	return *p && strchr("KMBTkmbt", *p) && !p[1];
}

/* "meta-llama-3" -> "Meta Llama 3": dashes become blanks, words in lower case get a capital, versions stay. */
static void title(const char *id, char to[MAX_TEXT])
{
	size_t n = 0;
	while (*id && n < MAX_TEXT - 2) {
		size_t len = strcspn(id, "- \t"), letters = 0, capitals = 0;
		if (!len) { id++; continue; }
		if (len > MAX_TEXT - 2 - n) len = MAX_TEXT - 2 - n;
		if (n) to[n++] = ' ';
		if (len > MAX_TEXT - 2 - n) len = MAX_TEXT - 2 - n;
		for (size_t k = 0; k < len; k++) { letters += lower(id[k]); capitals += upper(id[k]); }
		if (letters && !capitals && !digit(*id) && !(*id == 'v' && digit(id[1])))
			for (size_t k = 0; k < len; k++) {
				bool first = lower(id[k]) && (!k || !(lower(id[k - 1]) || upper(id[k - 1])));
				to[n++] = (char)(first ? id[k] - 32 : id[k]);
			}
		else for (size_t k = 0; k < len; k++) to[n++] = id[k];
		id += len;
	}
	to[n] = 0;
}

/* The version in a model's name: parts that look like one, after the first part that is neither a word nor a version,
 * or at the end of the base name. Several are joined. */
static void version_of(const char *name, char to[MAX_TEXT])
{
	char copy[MAX_TEXT], *part[64], *save = NULL;
	size_t n = 0, base = 0, written = 0;
	snprintf(copy, sizeof copy, "%s", name);
	for (char *p = strtok_r(copy, "-", &save); p && n < 64; p = strtok_r(NULL, "-", &save)) part[n++] = p;
	while (base < n && (is_version(part[base]) ||
		(!(base && is_size(part[base])) && (lower(*part[base]) || upper(*part[base])))))
		base++;
	if (base == n) while (base && is_version(part[base - 1])) base--;
	*to = 0;
	for (size_t k = base; k < n; k++)
		if (is_version(part[k]))
			written += (size_t)snprintf(to + written, MAX_TEXT - written, "%s%s", written ? "-" : "",
				part[k]);
}

/* keys PREFIX.name and so on, from "org/name", a URL or plain text */
static enum ggu_status set_source(struct ggu_meta *m, const char *prefix, const char *id)
{
	char key[96], text[MAX_TEXT], url[2*MAX_TEXT], org[MAX_TEXT];
	const char *slash, *name = id;
	enum ggu_status s = GGU_OK;
	bool is_url = text_starts(id, "http://") || text_starts(id, "https://") || text_starts(id, "ssh://");
	if (is_url) {
		snprintf(key, sizeof key, "%s.repo_url", prefix);
		s = set(m, key, id);
		if (s || !text_starts(id, HUB)) return s;
		name = id += strlen(HUB);
		if (!strchr(id, '/') || strchr(strchr(id, '/') + 1, '/')) return GGU_OK;
	}
	slash = strchr(id, ' ') ? NULL : strchr(id, '/');
	if (slash) name = slash + 1;
	snprintf(key, sizeof key, "%s.name", prefix);
	if (strchr(id, ' ')) snprintf(text, sizeof text, "%s", id);
	else title(name, text);
	TRY(set(m, key, text));
	version_of(name, text);
	if (!strchr(id, ' ')) {
		snprintf(key, sizeof key, "%s.version", prefix);
		TRY(set(m, key, text));
	}
	if (!slash || slash == id || *id == '.') return GGU_OK;
	snprintf(org, sizeof org, "%.*s", (int)(slash - id), id);
	title(org, text);
	snprintf(key, sizeof key, "%s.organization", prefix);
	TRY(set(m, key, text));
	if (is_url) return GGU_OK;
	snprintf(url, sizeof url, HUB "%s/%s", org, name);
	snprintf(key, sizeof key, "%s.repo_url", prefix);
	return set(m, key, url);
}

void general_size_label(uint64_t n, char to[32])
{
	static const struct { double unit; char letter; } u[] = { { 1e12, 'T' }, { 1e9, 'B' }, { 1e6, 'M' },
		{ 1e3, 'K' } };
	size_t k = 0;
	double x;
	while (k < 3 && (double)n < u[k].unit) k++;
	x = (double)n/u[k].unit;
	/* at least two digits */
	snprintf(to, 32, "%.*f%c", rint(x) >= 10 ? 0 : rint(x) >= 1 ? 1 : 2, x, u[k].letter);
}

/* ---- the card ---- */

/* The YAML between the first line, which must be "---", and the next "---". Tabs become two blanks. *to is NULL if
 * there is none. */
static enum ggu_status front_matter(const char *text, size_t n, char **to, size_t *to_n, struct ggu_error *err)
{
	const char *p = text, *end = text + n, *stop = NULL;
	size_t k = 0;
	*to = NULL;
	if (n < 4 || !text_begins(p, n, "---")) return GGU_OK;
	p += strlen("---");
	if (*p == '\r') p++;
	if (*p++ != '\n') return GGU_OK;
	for (const char *q = p; q < end; q++) {
		const char *line = memchr(q, '\n', (size_t)(end - q));
		size_t len = (size_t)((line ? line : end) - q);
		if (len && q[len - 1] == '\r') len--;
		if (text_is(q, len, "---")) { stop = q; break; }
		if (!line) break;
		q = line;
	}
	if (!stop) return GGU_OK;
	*to = malloc(2*(size_t)(stop - p) + 1);
	if (!*to) return ggu_no_memory(err);
	for (; p < stop; p++) {
		if (*p == '\t') (*to)[k++] = ' ';
		(*to)[k++] = *p == '\t' ? ' ' : *p;
	}
	(*to)[k] = 0;
	*to_n = k;
	return GGU_OK;
}

static bool text_node(const struct yaml_node *s) { return s && s->kind == YAML_SCALAR && s->n && !yaml_null(s); }
static const char *card_text(const struct yaml_node *card, const char *const *keys)
{
	for (; *keys; keys++) {
		const struct yaml_node *s = yaml_get(card, *keys);
		if (text_node(s)) return s->text;
	}
	return NULL;
}

/* Texts of several keys, each a scalar or a list, as one array. */
static enum ggu_status set_list(struct ggu_meta *m, const char *key, const struct yaml_node *card,
	const char *const *keys)
{
	struct ggu_str v[MAX_STRINGS];
	size_t n = 0;
	for (; *keys; keys++) {
		const struct yaml_node *s = yaml_get(card, *keys);
		if (text_node(s)) {
			if (n < MAX_STRINGS) v[n++] = (struct ggu_str){ s->text, s->n };
			continue;
		}
		if (!s || s->kind != YAML_SEQUENCE) continue;
		for (size_t k = 0; k < s->count && n < MAX_STRINGS; k++)
			if (text_node(s->items[k])) v[n++] = (struct ggu_str){ s->items[k]->text, s->items[k]->n };
	}
	return n ? ggu_meta_set_strs(m, key, v, n) : GGU_OK;
}

/* general.WHAT.count and general.WHAT.N.*; items are ids, or mappings with the keys themselves. */
static enum ggu_status set_sources(struct ggu_meta *m, const char *what, const struct yaml_node *card,
	const char *const *keys)
{
	static const char *const fields[] = { "name", "author", "version", "organization", "description", "url", "doi",
		"uuid", "repo_url", NULL };
	const struct yaml_node *list = NULL, *const *item;
	char key[96];
	size_t n, done = 0;
	enum ggu_status s = GGU_OK;
	for (; *keys && !list; keys++) list = yaml_get(card, *keys);
	if (!list || yaml_null(list) || list->kind == YAML_MAPPING) return GGU_OK;
	item = list->kind == YAML_SEQUENCE ? list->items : &list;
	n = list->kind == YAML_SEQUENCE ? list->count : 1;
	for (size_t k = 0; k < n; k++) done += text_node(item[k]) || item[k]->kind == YAML_MAPPING;
	if (!done) return GGU_OK;
	snprintf(key, sizeof key, "general.%s.count", what);
	s = ggu_meta_set_uint(m, key, GGU_U32, done);
	for (size_t k = 0, id = 0; !s && k < n; k++) {
		char prefix[64];
		snprintf(prefix, sizeof prefix, "general.%s.%zu", what, id);
		if (text_node(item[k])) { s = set_source(m, prefix, item[k]->text); id++; }
		else if (item[k]->kind == YAML_MAPPING) {
			for (const char *const *f = fields; !s && *f; f++) {
				const struct yaml_node *v = yaml_get(item[k], *f);
				snprintf(key, sizeof key, "%s.%s", prefix, *f);
				if (text_node(v)) s = ggu_meta_set_str(m, key, v->text, v->n);
			}
			id++;
		}
	}
	return s;
}

/* The sources of a single text: the first key that the card has counts. */
#define KEYS(...) (const char *const[]){ __VA_ARGS__, NULL }
static enum ggu_status card_texts(struct ggu_meta *m, const struct yaml_node *card)
{
	const struct { const char *key, *const *names; } t[] = {
		{ "general.author", KEYS("author", "model_author", "model_creator") },
		{ "general.version", KEYS("version", "model_version") },
		{ "general.organization", KEYS("organization", "model_organization") },
		{ "general.finetune", KEYS("finetune", "model_finetune") },
		{ "general.basename", KEYS("basename", "model_basename", "model_type") },
		{ "general.description", KEYS("description", "model_description") },
		{ "general.quantized_by", KEYS("quantized_by") },
		{ "general.url", KEYS("url", "model_url") }, { "general.doi", KEYS("doi", "model_doi") },
		{ "general.uuid", KEYS("uuid", "model_uuid") },
		{ "general.repo_url", KEYS("repo_url", "model_repo_url") },
		{ "general.license.name", KEYS("license_name") }, { "general.license.link", KEYS("license_link") },
	};
	const struct yaml_node *license = yaml_get(card, "license");
	char text[MAX_TEXT];
	size_t n = 0;
	enum ggu_status s = GGU_OK;
	for (size_t k = 0; !s && k < sizeof t/sizeof *t; k++) s = set(m, t[k].key, card_text(card, t[k].names));
	if (s || !license) return s;
	if (text_node(license)) return set(m, "general.license", license->text);
	text[0] = 0;
	for (size_t k = 0; license->kind == YAML_SEQUENCE && k < license->count && n < sizeof text; k++)
		if (text_node(license->items[k]))
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? "," : "", license->items[k]->text);
	return set(m, "general.license", text);
}

static enum ggu_status card_to_meta(struct ggu_meta *m, const struct yaml_node *card)
{
	enum ggu_status s = card_texts(m, card);
	if (!s) s = set_sources(m, "base_model", card, KEYS("base_model", "base_models", "base_model_sources"));
	if (!s) s = set_sources(m, "dataset", card, KEYS("datasets", "dataset", "dataset_sources"));
	if (!s) s = set_list(m, "general.tags", card, KEYS("tags", "pipeline_tag"));
	return s ? s : set_list(m, "general.languages", card, KEYS("languages", "language"));
}

static enum ggu_status read_card(const char *dir, struct yaml_doc **doc, struct ggu_error *err)
{
	char *text, *yaml;
	size_t n, k;
	enum ggu_status s = file_slurp(dir, "README.md", MAX_CARD, &text, &n, err);
	if (s == GGU_ERR_MISSING) { *err = (struct ggu_error){ 0 }; return GGU_OK; }
	if (s) return s;
	s = front_matter(text, n, &yaml, &k, err);
	if (yaml) s = yaml_doc_parse(doc, "README.md", yaml, k, err);
	if (s) ggu_error_file(err, "README.md");
	free(yaml);
	free(text);
	return s;
}

/* ---- the rest ---- */

static enum ggu_status sampling_to_meta(struct ggu_meta *m, const json_t *g)
{
	static const struct { const char *from, *to; enum ggu_kv_type type; } t[] = {
		{ "sequence", "sequence", GGU_STRING }, { "top_k", "top_k", GGU_I32 }, { "top_p", "top_p", GGU_F32 },
		{ "min_p", "min_p", GGU_F32 },
		{ "xtc_probability", "xtc_probability", GGU_F32 }, { "xtc_threshold", "xtc_threshold", GGU_F32 },
		{ "temperature", "temp", GGU_F32 },
		{ "penalty_last_n", "penalty_last_n", GGU_I32 }, { "penalty_repeat", "penalty_repeat", GGU_F32 },
		{ "mirostat", "mirostat", GGU_I32 },
		{ "mirostat_tau", "mirostat_tau", GGU_F32 }, { "mirostat_eta", "mirostat_eta", GGU_F32 },
	};
	enum ggu_status s = GGU_OK;
	for (size_t k = 0; !s && k < sizeof t/sizeof *t; k++) {
		const json_t *v = json_object_get(g, t[k].from);
		char key[64];
		snprintf(key, sizeof key, "general.sampling.%s", t[k].to);
		if (t[k].type == GGU_STRING) s = set(m, key, json_string_value(v));
		else if (t[k].type == GGU_F32 && json_is_number(v) && fabs(json_number_value(v)) <= FLT_MAX)
			s = ggu_meta_set_float(m, key, GGU_F32, json_number_value(v));
		else if (t[k].type == GGU_I32 && json_is_number(v) && fabs(json_number_value(v)) < 2e9)
			s = ggu_meta_set_int(m, key, GGU_I32, (int64_t)json_number_value(v));
	}
	return s;
}

static enum ggu_status name_to_meta(struct ggu_meta *m, const struct config *c, const struct yaml_node *card,
	const struct general_given *given)
{
	const char *name = given->name;
	const char *path = json_string_value(json_object_get(c->root, "_name_or_path"));
	char text[MAX_TEXT], label[32];
	enum ggu_status s;
	general_size_label(given->n_weights, label);
	if (!name) name = card_text(card, KEYS("name", "model_name"));
	if (!name && path && *path && *path != '/' && *path != '.' && (!strchr(path, '/') ||
		!strchr(strchr(path, '/') + 1, '/'))) {
		title(strchr(path, '/') ? strchr(path, '/') + 1 : path, text);
		if (*text) name = text;
	}
	if (!name) {
		size_t n;
		title(given->kind ? given->kind : c->arch->name, text);
		n = strlen(text);
		if (given->n_weights) snprintf(text + n, sizeof text - n, " %s", label);
		name = text;
	}
	s = set(m, "general.name", name);
	return s || !given->n_weights ? s : set(m, "general.size_label", label);
}

enum ggu_status general_to_meta(struct ggu_meta *m, const char *dir, const struct config *c,
	const struct general_given *given, struct ggu_error *card_error, struct ggu_error *err)
{
	struct yaml_doc *doc = NULL;
	enum ggu_status s = read_card(dir, &doc, card_error);
	const struct yaml_node *card = !s && doc ? yaml_doc_root(doc) : NULL;
	if (s == GGU_ERR_NOMEM) {       /* that is not the card's fault */
		if (err) *err = *card_error;
		return s;
	}
	if (card && card->kind != YAML_MAPPING) card = NULL;
	s = set(m, "general.architecture", c->arch->name);
	if (!s) s = set(m, "general.type", "model");
	if (!s) s = sampling_to_meta(m, c->generation);
	if (!s) s = name_to_meta(m, c, card, given);
	if (!s && card) s = card_to_meta(m, card);
	if (doc) yaml_doc_free(doc);
	if (s == GGU_ERR_NOMEM) return ggu_no_memory(err);
	return s ? ggu_fail(err, s, GGU_NO_OFFSET, "general", "cannot be set") : GGU_OK;
}

static enum ggu_status override_one(struct ggu_meta *m, const char *key, const json_t *v)
{
	const struct ggu_kv *old = ggu_meta_find(m, key);
	enum ggu_kv_type t = old ? ggu_kv_type(old) : GGU_ARRAY;
	struct ggu_str list[MAX_STRINGS];
	size_t n = json_array_size(v);
	if (json_is_null(v)) { ggu_meta_remove(m, key); return GGU_OK; }
	if (json_is_string(v))
		return !old || t == GGU_STRING ? ggu_meta_set_str(m, key, json_string_value(v),
			json_string_length(v)) : GGU_ERR_TYPE;
	if (json_is_boolean(v))
		return !old || t == GGU_BOOL ? ggu_meta_set_bool(m, key, json_is_true(v)) : GGU_ERR_TYPE;
	if (json_is_number(v)) {
		double f = json_number_value(v);
		int64_t i = json_integer_value(v);
		if (old && (t == GGU_F32 || t == GGU_F64)) return ggu_meta_set_float(m, key, t, f);
		if (json_is_real(v)) return old ? GGU_ERR_TYPE : ggu_meta_set_float(m, key, GGU_F32, f);
		if (!old) t = i >= 0 && i <= UINT32_MAX ? GGU_U32 : GGU_I64;
		else if (t == GGU_STRING || t == GGU_BOOL || t == GGU_ARRAY) return GGU_ERR_TYPE;
		return i < 0 ? ggu_meta_set_int(m, key, t, i) : ggu_meta_set_uint(m, key, t, (uint64_t)i);
	}
	if (!json_is_array(v) || n > MAX_STRINGS || (old && (t != GGU_ARRAY || ggu_kv_item_type(old) != GGU_STRING)))
		return GGU_ERR_TYPE;
	for (size_t k = 0; k < n; k++) {
		const json_t *s = json_array_get(v, k);
		if (!json_is_string(s)) return GGU_ERR_TYPE;
		list[k] = (struct ggu_str){ json_string_value(s), json_string_length(s) };
	}
	return ggu_meta_set_strs(m, key, list, n);
}

/* What override_one wants for a key in place of v: s is what it returned. */
static enum ggu_status not_that(const struct ggu_meta *m, enum ggu_status s, const char *name, const char *key,
	const json_t *v, struct ggu_error *err)
{
	const struct ggu_kv *old = ggu_meta_find(m, key);
	const char *type = old ? ggu_kv_type_name(ggu_kv_type(old)) : NULL;
	if (s == GGU_ERR_NOMEM) return ggu_no_memory(err);
	if (s == GGU_ERR_RANGE && !old)
		return fabs(json_number_value(v)) > FLT_MAX
			? file_fail(err, s, name, GGU_NO_OFFSET, key, "is beyond the range of f32")
			: file_fail(err, s, name, GGU_NO_OFFSET, key, "the key is empty or too long");
	if (!old)
		return file_fail(err, s, name, GGU_NO_OFFSET, key,
			"expected a string, a bool, a number or at most %d strings", MAX_STRINGS);
	if (ggu_kv_type(old) != GGU_ARRAY)
		return file_fail(err, s, name, GGU_NO_OFFSET, key, "expected a value of its type, %s", type);
	if (ggu_kv_item_type(old) == GGU_STRING)
		return file_fail(err, s, name, GGU_NO_OFFSET, key, "expected at most %d strings", MAX_STRINGS);
	return file_fail(err, s, name, GGU_NO_OFFSET, key, "is an array of %s; only arrays of strings can be set",
		ggu_kv_type_name(ggu_kv_item_type(old)));
}

enum ggu_status general_override(struct ggu_meta *m, const char *json_file, struct ggu_error *err)
{
	json_t *o = NULL, *v;
	const char *key;
	char *name = file_named(json_file), *text = NULL;
	size_t n;
	enum ggu_status s = file_slurp_any(json_file, MAX_OVERRIDE, &text, &n, err);
	if (!s && !name) s = ggu_no_memory(err);
	if (!s) s = file_json_text(text, n, name, 0, JSON_REJECT_DUPLICATES, &o, err);
	json_object_foreach(o, key, v) {
		s = override_one(m, key, v);
		if (s) {
			not_that(m, s, name, key, v, err);
			break;
		}
	}
	json_decref(o);
	free(text);
	free(name);
	return s;
}
