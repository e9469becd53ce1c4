/* SPDX-License-Identifier: MIT
 * convert.c - open a checkpoint folder: description, plan, types, metadata; see convert.h.
 *
 * Types are those of llama.cpp's converter: vectors, norms and anything that is not a ".weight" are F32, a description
 * may force a type (routers, positions), packed blocks stay, and all others get the requested type, or F16 if their
 * rows are not whole Q8_0 blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/f32.h"
#include "../libgguf/text.h"
#include "../libgguf/try.h"
#include "../libgguf/types.h"
#include "../model/util/file.h"
#include "../model/util/number.h"
#include "../model/eval/model.h"
#include "../model/vocab/vocab.h"
#include "coded.h"
#include "config_keys.h"
#include "convert.h"
#include "copies.h"
#include "general.h"
#include "plan.h"

struct convert {
	struct arch_set *archs;
	struct config config;
	struct checkpoint *source;
	struct plan plan;
	struct ggu_tensor *tensors;
	struct ggu_meta *meta;
};

/* ---- types ---- */

enum { MOSTLY_MXFP4 = 38 };      /* general.file_type */
static const struct { const char *name; uint32_t type, file_type; } out_types[] = {
	{ "f32", GGU_TYPE_F32, 0 }, { "f16", GGU_TYPE_F16, 1 }, { "bf16", GGU_TYPE_BF16, 32 },
	{ "q8_0", GGU_TYPE_Q8_0, 7 },
};

/* auto: bf16 if most weights are; exact: the type in which all matrices are stored, or else f32. */
static const char *guess(const struct plan *p, bool exact)
{
	uint64_t n[GGU_TYPE_COUNT] = { 0 };
	for (size_t i = 0; i < p->n; i++) {
		const struct plan_tensor *t = p->v + i;
		for (size_t k = 0; t->n_dims > 1 && !t->packed && k < t->n_parts; k++)
			n[t->part[k].t->dtype->type] += t->part[k].t->n_weights;
	}
	if (exact && (n[GGU_TYPE_F32] + n[GGU_TYPE_F64] > 0 || (n[GGU_TYPE_BF16] && n[GGU_TYPE_F16]))) return "f32";
	return n[GGU_TYPE_BF16] > n[GGU_TYPE_F16] + n[GGU_TYPE_F32] + n[GGU_TYPE_F64] ? "bf16" : "f16";
}

static uint32_t type_of(const struct plan_tensor *t, uint32_t wanted)
{
	if (t->packed) return t->from;
	if (t->type >= 0) return (uint32_t)t->type;
	if (t->n_dims <= 1 || file_ends_with(t->name, "_norm.weight") || !file_ends_with(t->name, ".weight"))
		return GGU_TYPE_F32;
	return t->ne[0]%ggu_type_info(wanted)->block_weights ? (uint32_t)GGU_TYPE_F16 : wanted;
}

static enum ggu_status choose_types(struct convert *c, const char *name, uint32_t *file_type, struct ggu_error *err)
{
	size_t k = 0;
	bool packed = false;
	if (!name || !strcmp(name, "auto") || !strcmp(name, "exact"))
		name = guess(&c->plan, name && !strcmp(name, "exact"));
	while (k < sizeof out_types/sizeof *out_types && strcmp(out_types[k].name, name)) k++;
	if (k == sizeof out_types/sizeof *out_types)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name, "no such type");
	c->tensors = calloc(c->plan.n + 1, sizeof *c->tensors);
	if (!c->tensors) return ggu_no_memory(err);
	for (size_t i = 0; i < c->plan.n; i++) {
		const struct plan_tensor *t = c->plan.v + i;
		struct ggu_tensor *o = c->tensors + i;
		uint64_t n = 1;
		bool counted = true;
		*o = (struct ggu_tensor){ .name = t->name, .name_bytes = (uint32_t)strlen(t->name),
			.n_dims = t->n_dims, .type = type_of(t, out_types[k].type) };
		memcpy(o->ne, t->ne, sizeof o->ne);
		packed |= t->packed;
		for (int d = 0; d < 4; d++) counted &= !__builtin_mul_overflow(n, t->ne[d], &n);
		if (!counted || !ggu_type_bytes(o->type, n, &o->bytes))
			return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, t->name, "is too large");
	}
	*file_type = packed && out_types[k].type != GGU_TYPE_Q8_0 ? MOSTLY_MXFP4 : out_types[k].file_type;
	return GGU_OK;
}

/* ---- metadata of the architecture ---- */

static enum ggu_status set_number(struct ggu_meta *m, const char *key, enum ggu_kv_type t, const struct expr_value *v)
{
	if (v->kind != EXPR_INT) return ggu_meta_set_float(m, key, t, v->u.f);
	return t == GGU_F32 || t == GGU_F64 ? ggu_meta_set_float(m, key, t, (double)v->u.i)
		: ggu_meta_set_int(m, key, t, v->u.i);
}

static enum ggu_status set_list(struct ggu_meta *m, const char *key, enum ggu_kv_type t, const struct expr_value *v)
{
	size_t n = v->u.list.n;
	if (!n) return GGU_ERR_TYPE;
	void *p = calloc(n + 1, sizeof(struct ggu_str));
	struct ggu_str *str = p;
	float *f = p;
	uint32_t *u = p;
	int32_t *i = p;
	bool *b = p;
	enum ggu_status s = p ? GGU_OK : GGU_ERR_NOMEM;
	for (size_t k = 0; !s && k < n; k++) {
		const struct expr_value *x = v->u.list.v + k;
		bool whole = x->kind == EXPR_INT;
		if (t == GGU_STRING && x->kind == EXPR_STR) str[k] = x->u.s;
		else if (t == GGU_BOOL && x->kind == EXPR_BOOL) b[k] = x->u.b;
		else if (t == GGU_F32 && (whole || x->kind == EXPR_FLOAT)) {
			double d = whole ? (double)x->u.i : x->u.f;
			f[k] = (float)d;
			if (f32_overflows(d)) s = GGU_ERR_RANGE;
		}
		else if (t == GGU_U32 && whole && x->u.i >= 0 && x->u.i <= UINT32_MAX) u[k] = (uint32_t)x->u.i;
		else if (t == GGU_I32 && whole && x->u.i >= INT32_MIN && x->u.i <= INT32_MAX) i[k] = (int32_t)x->u.i;
		else s = GGU_ERR_TYPE;
	}
	if (!s) s = t == GGU_STRING ? ggu_meta_set_strs(m, key, str, n) : ggu_meta_set_array(m, key, t, p, n);
	free(p);
	return s;
}

static enum ggu_status set_value(struct ggu_meta *m, const char *key, enum ggu_kv_type t, const struct expr_value *v)
{
	switch (v->kind) {
	case EXPR_NULL: return GGU_OK;
	case EXPR_OBJECT: return GGU_ERR_TYPE;
	case EXPR_LIST: return set_list(m, key, t, v);
	case EXPR_STR: return t == GGU_STRING ? ggu_meta_set_str(m, key, v->u.s.p, v->u.s.n) : GGU_ERR_TYPE;
	case EXPR_BOOL: return t == GGU_BOOL ? ggu_meta_set_bool(m, key, v->u.b) : GGU_ERR_TYPE;
	default: return set_number(m, key, t, v);
	}
}

/* A list with one item for each layer, from an expression over i. */
static enum ggu_status each_layer(struct config *c, const struct yaml_node *e, struct expr_value *v,
	struct ggu_error *err)
{
	struct expr_value *l;
	int64_t n;
	enum ggu_status s = config_layers(c, -1, &n, err);
	if (s) return s;
	l = expr_arena_alloc(c->arena, ((size_t)n + 1)*sizeof *l);
	if (!l) return ggu_no_memory(err);
	for (c->i = 0; !s && c->i < n; c->i++) s = config_eval(c, e, l + c->i, err);
	c->i = -1;
	*v = (struct expr_value){ EXPR_LIST, { .list = { l, (size_t)n } } };
	return s;
}

/* If a shorthand stands for a name, maybe through other shorthands, returns the last: the key of config.json. */
static const struct yaml_node *origin(const struct config *f, const struct yaml_node *value)
{
	const struct yaml_node *named = value;
	for (int k = 0; k < 8 && named; k++, named = yaml_get(f->names, value->text)) value = named;
	return value;
}

/* A null value writes nothing, unless `needs` says that the key must be there. */
static enum ggu_status refuse_null(struct convert *c, const struct yaml_node *key, const struct yaml_node *value,
	const char *name, struct ggu_error *err)
{
	struct config *f = &c->config;
	const struct yaml_node *rule = yaml_get(yaml_get(f->arch->convert, "needs"), key->text);
	bool needed;
	enum ggu_status s = config_true(f, rule, false, &needed, err);
	if (s || !needed || !c->source) return s;
	value = origin(f, value);
	return file_fail(err, GGU_ERR_MISSING, "config.json", GGU_NO_OFFSET, value->text,
		"has no value, but %.60s needs one (%.40s, line %u)", name, value->file, value->line);
}
/* v: what it is, of which a float is shown: it may be whole, and need int() in the description */
static enum ggu_status refuse_value(const struct convert *c, const struct yaml_node *value, const struct expr_value *v,
	const char *type, const char *name, struct ggu_error *err)
{
	char is[NUMBER_TEXT];
	value = origin(&c->config, value);
	if (v->kind == EXPR_FLOAT)
		return file_fail(err, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, value->text,
			"is the float %s, not a valid %s, which %.60s wants (%.40s, line %u)",
			number_text(is, v->u.f, false), type, name, value->file, value->line);
	return file_fail(err, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, value->text,
		"is not a valid %s, which %.60s wants (%.40s, line %u)", type, name, value->file, value->line);
}

/* KEY: [type, value] or {type:, value: or list: or each:, when:} */
static enum ggu_status add_key(struct convert *c, const struct yaml_node *key, const struct yaml_node *e,
	struct ggu_error *err)
{
	bool row = e->kind == YAML_SEQUENCE, when;
	const struct yaml_node *type = row ? e->items[0] : yaml_get(e, "type");
	const struct yaml_node *each = yaml_get(e, "each"), *list = yaml_get(e, "list");
	const struct yaml_node *value = row ? e->items[1] : list ? list : yaml_get(e, "value");
	struct config *f = &c->config;
	struct expr_value v;
	char name[160];
	int t = 0;
	enum ggu_status s;
	while (t < GGU_KV_TYPE_COUNT && !yaml_is(type, t == GGU_STRING ? "str" : ggu_kv_type_name(t))) t++;
	if (t == GGU_KV_TYPE_COUNT) return config_fail(f, type, err, "no such type");
	TRY(config_true(f, yaml_get(e, "when"), true, &when, err));
	if (!when) return GGU_OK;
	TRY(each ? each_layer(f, each, &v, err) : config_eval(f, value, &v, err));
	if (text_starts(key->text, "tokenizer.")) snprintf(name, sizeof name, "%s", key->text);
	else snprintf(name, sizeof name, "%s.%s", f->arch->name, key->text);
	if (v.kind == EXPR_NULL) return refuse_null(c, key, value, name, err);
	if (v.kind == EXPR_LIST && !each && !list) return refuse_value(c, value, &v, type->text, name, err);
	s = set_value(c->meta, name, (enum ggu_kv_type)t, &v);
	if (s == GGU_ERR_NOMEM) return ggu_no_memory(err);
	return s ? refuse_value(c, each ? each : value, &v, type->text, name, err) : GGU_OK;
}

static enum ggu_status arch_to_meta(struct convert *c, struct ggu_error *err)
{
	const struct yaml_node *l = yaml_get(c->config.arch->convert, "metadata");
	enum ggu_status s = GGU_OK;
	if (!c->config.root) return GGU_OK;
	for (size_t k = 0; !s && l && k < l->count; k++) s = add_key(c, l->keys[k], l->items[k], err);
	return s;
}

/* Evaluates the metadata early: if a size of config.json is wrong, its key is reported, not a tensor that does not
 * fit. */
static enum ggu_status check_values(struct convert *c, struct ggu_error *err)
{
	enum ggu_status s;
	if (!(c->meta = ggu_meta_new())) return ggu_no_memory(err);
	s = arch_to_meta(c, err);
	ggu_meta_free(c->meta);
	c->meta = NULL;
	return s;
}

/* ---- vocabulary ---- */

/* The tensor of the embedding; NULL: there is none. */
static const struct plan_tensor *embedding(const struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->v[i].name, "token_embd.weight") && p->v[i].n_dims == 2) return p->v + i;
	return NULL;
}
/* vocab_size of config.json; -1: absent or null; -2: not a count. */
static int64_t vocab_size(const struct config *c)
{
	const json_t *own = json_object_get(c->text, "vocab_size");
	const json_t *n = own ? own : json_object_get(c->root, "vocab_size");
	config_keys_mark(c->keys, own ? c->text : c->root, "vocab_size");
	if (!n || json_is_null(n)) return -1;
	return json_is_integer(n) && json_integer_value(n) >= 0 ? json_integer_value(n) : -2;
}
/* Checks for the config.json of another model, or one without a width. */
static enum ggu_status check_embedding(const struct convert *c, struct ggu_error *err)
{
	static const char length[] = "embedding_length";
	const struct plan_tensor *t = embedding(&c->plan);
	unsigned long long columns = t ? t->ne[0] : 0, rows = t ? t->ne[1] : 0;
	int64_t tokens = vocab_size(&c->config);
	uint64_t said;
	char key[160];
	if (t && tokens == -2)
		return file_fail(err, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, "vocab_size",
			"is not a number of tokens; the embedding has %llu row%s", rows, text_s(rows));
	if (t && tokens >= 0 && (unsigned long long)tokens != rows)
		return file_fail(err, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, "vocab_size",
			"is %lld, but the embedding has %llu row%s", (long long)tokens, rows, text_s(rows));
	if (!t || !yaml_get(yaml_get(c->config.arch->convert, "metadata"), length)) return GGU_OK;
	snprintf(key, sizeof key, "%s.%s", c->config.arch->name, length);
	if (!ggu_meta_uint(c->meta, key, &said))
		return file_fail(err, GGU_ERR_MISSING, "config.json", GGU_NO_OFFSET, key,
			"has no value; the embedding has %llu column%s", columns, text_s(columns));
	return said == columns ? GGU_OK : file_fail(err, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, key,
		"is %llu, but the embedding has %llu column%s", (unsigned long long)said, columns, text_s(columns));
}

/* Compares the tensors with config.json and with the layers of the description, and reports the checkpoint's tensor.
 * Nothing is known about those of an architecture that cannot be evaluated. */
static enum ggu_status check_shapes(const struct convert *c, struct ggu_error *err)
{
	struct ggu_error wrong;
	enum ggu_status s;
	if (!c->config.arch->graph) return GGU_OK;
	s = model_check(c->config.arch, c->meta, c->tensors, c->plan.n, &wrong);
	if (!s) return GGU_OK;
	for (size_t i = 0; i < c->plan.n; i++) {
		const struct plan_tensor *t = c->plan.v + i;
		if (strcmp(t->name, wrong.where) || !t->n_parts) continue;
		return file_fail(err, s, "", GGU_NO_OFFSET, t->part[0].t->name, "as %.60s %s", t->name, wrong.what);
	}
	return file_fail(err, s, "", GGU_NO_OFFSET, wrong.where, "%s", wrong.what);
}

/* `vocab`: facts of the architecture that the folder's files do not state. kinds: 1 << EXPR_INT and the like, of which
 * *v is one, or it is null if there is none. */
static enum ggu_status vocab_fact(struct config *c, const char *key, unsigned kinds, struct expr_value *v,
	struct ggu_error *err)
{
	const struct yaml_node *e = yaml_get(yaml_get(c->arch->convert, "vocab"), key);
	enum ggu_status s = e ? config_eval(c, e, v, err) : GGU_OK;
	if (!e) v->kind = EXPR_NULL;
	return s || v->kind == EXPR_NULL || kinds >> v->kind & 1 ? s : config_fail(c, e, err,
		"%s: has a value of the wrong kind", key);
}

static enum ggu_status vocab_facts(struct config *c, struct vocab_hints *h, struct ggu_error *err)
{
	struct expr_value v;
	enum ggu_status s = vocab_fact(c, "pre", 1u << EXPR_STR, &v, err);
	if (!s && v.kind && !vocab_pre_is_known(v.u.s.p))
		s = config_fail(c, yaml_get(yaml_get(c->arch->convert, "vocab"), "pre"), err,
			"pre: no pre-tokenizer is called '%.60s'", v.u.s.p);
	if (!s && v.kind) h->pre = v.u.s.p;
	if (!s) s = vocab_fact(c, "add_space_prefix", 1u << EXPR_BOOL, &v, err);
	if (!s && v.kind) h->add_space_prefix = v.u.b ? 1 : -1;
	if (!s) s = vocab_fact(c, "config_prefix", 1u << EXPR_BOOL, &v, err);
	if (!s && v.kind) h->config_prefix = v.u.b;
	if (!s) s = vocab_fact(c, "add_bos", 1u << EXPR_BOOL, &v, err);
	if (!s && v.kind) h->add_bos = v.u.b ? 1 : -1;
	for (int i = 0; i < VOCAB_N_SPECIAL && !s; i++) {
		s = vocab_fact(c, vocab_special_names[i].name, 1u << EXPR_INT | 1u << EXPR_STR, &v, err);
		if (v.kind == EXPR_INT) h->special[i].id = v.u.i;
		if (v.kind == EXPR_STR) h->special[i].text = v.u.s.p;
	}
	return s;
}

/* Reports tokens without a row in the embedding: no model can use them, but whoever added them should know. */
static void tell_left_out(const struct vocab *v, const struct convert_options *o)
{
	const char *file;
	size_t n = vocab_left_out(v, &file);
	struct ggu_error what;
	if (!n || !o->warn) return;
	file_fail(&what, GGU_ERR_RANGE, file, GGU_NO_OFFSET, "",
		"%zu token%s left out, since the model has %zu", n, n == 1 ? " is" : "s are", vocab_count(v));
	o->warn(o->warn_ctx, &what);
}

/* Reports ids with different tokens in two files. transformers, its older versions and llama.cpp do not use the same
 * file. */
static void tell_differences(const struct vocab *v, const struct convert_options *o)
{
	const struct vocab_difference *d;
	for (size_t n = vocab_differences(v, &d); n-- > 0 && o->warn; d++) {
		struct ggu_error what;
		file_fail(&what, GGU_ERR_FORMAT, d->file, GGU_NO_OFFSET, "",
			"%zu id%s another token than in %s, whose tokens are used; the first is %zu", d->n,
			d->n == 1 ? " has" : "s have", d->than, d->first);
		o->warn(o->warn_ctx, &what);
	}
}

static enum ggu_status vocab_part(struct convert *c, const char *dir, const struct convert_options *o,
	struct ggu_error *err)
{
	const struct plan_tensor *t = embedding(&c->plan);
	int64_t rows = t ? (int64_t)t->ne[1] : -1;
	/* the vocabulary is padded to the rows of the embedding: readers insist on that */
	struct vocab_hints h = { .n_vocab = t ? rows : vocab_size(&c->config) };
	struct vocab *v;
	enum ggu_status s;
	s = vocab_facts(&c->config, &h, err);
	if (!s) s = vocab_from_dir(&v, dir, &h, err);
	if (s) return s;
	if (rows >= 0 && vocab_count(v) > (uint64_t)rows)
		s = ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "",
			"the tokenizer has %zu tokens, but the embedding %lld row%s", vocab_count(v), (long long)rows,
			text_s((uint64_t)rows));
	if (!s) s = vocab_to_meta(v, c->meta, err);
	if (!s) tell_left_out(v, o);
	if (!s) tell_differences(v, o);
	vocab_free(v);
	return s;
}

/* ---- opening ---- */

static uint64_t n_weights(const struct plan *p)
{
	uint64_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (!p->v[i].values) n += p->v[i].ne[0]*p->v[i].ne[1]*p->v[i].ne[2]*p->v[i].ne[3];
	return n;
}

/* Reports biases that config.json does not ask for: transformers computes without them, llama.cpp with them. */
static void tell_biases(const struct plan *p, const struct convert_options *o)
{
	struct ggu_error what;
	if (!p->n_denied || !o->warn) return;
	file_fail(&what, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, "",
		"asks for no %s, which transformers would leave out: %zu such bias%s kept", p->denied, p->n_denied,
		p->n_denied == 1 ? " is" : "es are");
	o->warn(o->warn_ctx, &what);
}

/* Whoever names the folder of an adapter (LoRA) wants a model that has it. Of the two only the model can be converted,
 * if the folder has one: transformers would add the adapter to it. */
static enum ggu_status tell_adapter(const char *dir, const struct convert_options *o, struct ggu_error *err)
{
	static const char file[] = "adapter_config.json", advice[] = "merge it into the model and save that";
	struct ggu_error what;
	if (!file_exists(dir, file)) return GGU_OK;
	if (!file_exists(dir, "config.json"))
		return file_fail(err, GGU_ERR_UNSUPPORTED, file, GGU_NO_OFFSET, "",
			"the folder holds an adapter, not a model: %s", advice);
	file_fail(&what, GGU_ERR_UNSUPPORTED, file, GGU_NO_OFFSET, "", "the adapter is left out: %s", advice);
	if (o->warn) o->warn(o->warn_ctx, &what);
	return GGU_OK;
}

static enum ggu_status load(struct convert *c, const char *dir, const struct convert_options *o, struct ggu_error *err)
{
	struct ggu_error card = { 0 }, left_out;
	struct expr_value kind = { 0 };
	uint32_t file_type = 0;
	enum ggu_status s = arch_set_open(&c->archs, o->arch_files, o->n_arch_files, err);
	if (!s && !o->vocab_only) s = tell_adapter(dir, o, err);
	if (!s) s = config_open(&c->config, dir, c->archs, o->vocab_only, err);
	if (!s) c->config.coded = coded_is(&c->config);
	if (!s && c->config.root) s = config_check(&c->config, err);
	if (!s && !o->vocab_only) {
		s = checkpoint_open(&c->source, dir, err);
		if (!s && c->config.coded) s = coded_open(c->source, &c->config, err);
		if (!s) s = copies_compare(&c->config, c->source, o->warn, o->warn_ctx, err);
		if (!s && c->config.untied) s = config_check(&c->config, err);
		if (!s) s = check_values(c, err);
		if (!s) s = plan_new(&c->plan, &c->config, c->source, err);
		if (!s) tell_biases(&c->plan, o);
	}
	if (!s) s = choose_types(c, o->type, &file_type, err);
	if (!s && !(c->meta = ggu_meta_new())) s = ggu_no_memory(err);
	if (!s) s = vocab_fact(&c->config, "kind", 1u << EXPR_STR, &kind, err);
	if (!s) s = general_to_meta(c->meta, dir, &c->config, &(struct general_given){ o->name,
		kind.kind ? kind.u.s.p : NULL, n_weights(&c->plan) }, &card, err);
	if (!s && card.code && o->warn) {
		file_fail(&left_out, card.code, card.file, card.offset, "", "ignored: %s", card.what);
		o->warn(o->warn_ctx, &left_out);
	}
	if (!s) s = arch_to_meta(c, err);
	if (!s) s = check_embedding(c, err);
	if (!s && !o->vocab_only) s = check_shapes(c, err);
	if (!s && !o->vocab_only && ggu_meta_set_uint(c->meta, "general.file_type", GGU_U32, file_type))
		s = ggu_no_memory(err);
	if (!s && ggu_meta_set_uint(c->meta, "general.quantization_version", GGU_U32, 2)) s = ggu_no_memory(err);
	if (!s) s = vocab_part(c, dir, o, err);
	if (!s && !o->vocab_only) s = config_unread(&c->config, o->warn, o->warn_ctx, err);
	if (!s && o->metadata) s = general_override(c->meta, o->metadata, err);
	return s;
}

enum ggu_status convert_open(struct convert **out, const char *dir, const struct convert_options *o,
	struct ggu_error *err)
{
	struct convert *c = calloc(1, sizeof *c);
	enum ggu_status s = c ? load(c, dir, o, err) : ggu_no_memory(err);
	if (s) convert_close(c);
	else *out = c;
	return s;
}

enum ggu_status convert_classes(const char *const *arch_files, size_t n_arch_files,
	void (*each)(void *ctx, const char *hf_class, const char *arch), void *ctx, struct ggu_error *err)
{
	struct arch_set *set;
	enum ggu_status s = arch_set_open(&set, arch_files, n_arch_files, err);
	if (s) return s;
	s = arch_set_all(set, err);
	for (size_t i = 0; !s && i < arch_count(set); i++) {
		const struct yaml_node *classes = arch_at(set, i)->classes;
		for (size_t k = 0; k < classes->count; k++) each(ctx, classes->keys[k]->text, arch_at(set, i)->name);
	}
	arch_set_free(set);
	return s;
}

void convert_close(struct convert *c)
{
	if (!c) return;
	plan_free(&c->plan);
	checkpoint_close(c->source);
	config_close(&c->config);
	arch_set_free(c->archs);
	ggu_meta_free(c->meta);
	free(c->tensors);
	free(c);
}

const struct ggu_meta *convert_meta(const struct convert *c) { return c->meta; }
size_t convert_n_tensors(const struct convert *c) { return c->plan.n; }
const struct ggu_tensor *convert_tensor(const struct convert *c, size_t i) { return c->tensors + i; }
uint32_t convert_from(const struct convert *c, size_t i) { return c->plan.v[i].from; }
size_t convert_n_sources(const struct convert *c, size_t i) { return c->plan.v[i].n_parts; }
const char *convert_source(const struct convert *c, size_t i)
{
	return c->plan.v[i].n_parts ? c->plan.v[i].part[0].t->name : "";
}
enum ggu_status convert_read(struct convert *c, struct recode_piece *p, struct ggu_error *err)
{
	return plan_fetch(&c->plan, p, err);
}
enum ggu_status convert_finish(struct recode_piece *p, struct ggu_error *err) { return plan_finish(p, err); }
