/* SPDX-License-Identifier: MIT
 * config.c - the scope in which an architecture's convert part is evaluated; see config.h. A look-up goes through the
 * places that config.h lists, and marks the keys of config.json that it reads (config_keys.h). */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "../libgguf/try.h"
#include "../model/util/file.h"
#include "../quant/vec.h"
#include "config.h"
#include "config_keys.h"
#include "convert.h"
#include "schema.h"

enum { MAX_DEPTH = 32 };        /* names that use names */

enum ggu_status config_fail(const struct config *c, const struct yaml_node *at, struct ggu_error *err,
	const char *what, ...)
{
	char text[120];
	va_list ap;
	va_start(ap, what);
	vsnprintf(text, sizeof text, what, ap);
	va_end(ap);
	if (!at) return file_fail(err, GGU_ERR_FORMAT, c->arch->file, GGU_NO_OFFSET, "", "%s", text);
	return file_fail(err, GGU_ERR_FORMAT, at->file, GGU_NO_OFFSET, "", "line %u, column %u: %s", at->line,
		at->column, text);
}

/* A JSON value as a value of an expression; objects stay JSON. */
static enum ggu_status from_json(struct config *c, const json_t *j, struct expr_value *v)
{
	double infinity;
	if (file_json_infinity(j, &infinity)) {
		*v = (struct expr_value){ EXPR_FLOAT, { .f = infinity } };
		return GGU_OK;
	}
	switch (j ? json_typeof(j) : JSON_NULL) {
	case JSON_NULL: v->kind = EXPR_NULL; break;
	case JSON_TRUE: case JSON_FALSE: *v = (struct expr_value){ EXPR_BOOL, { .b = json_is_true(j) } }; break;
	case JSON_INTEGER: *v = (struct expr_value){ EXPR_INT, { .i = json_integer_value(j) } }; break;
	case JSON_REAL: *v = (struct expr_value){ EXPR_FLOAT, { .f = json_real_value(j) } }; break;
	case JSON_STRING: *v = (struct expr_value){ EXPR_STR,
		{ .s = { json_string_value(j), json_string_length(j) } } }; break;
	case JSON_OBJECT: *v = (struct expr_value){ EXPR_OBJECT, { .object = j } }; break;
	case JSON_ARRAY: {
		size_t n = json_array_size(j);
		struct expr_value *l;
		enum ggu_status s = expr_arena_items(c->arena, n, &l, NULL);
		for (size_t k = 0; k < n && !s; k++) s = from_json(c, json_array_get(j, k), l + k);
		if (s) return s;
		*v = (struct expr_value){ EXPR_LIST, { .list = { l, n } } };
	}
	}
	return GGU_OK;
}

/* Says why from_json failed, which may return only a status. */
static const char *reason(const struct ggu_error *err, enum ggu_status s)
{
	return err->what[0] ? err->what : s == GGU_ERR_NOMEM ? "out of memory" : "lists have too many items";
}

static enum ggu_status derived(struct config *c, const struct yaml_node *e, const char *name, struct expr_value *v)
{
	const struct yaml_node *outer = c->within;
	struct ggu_error inner = { 0 };
	enum ggu_status s;
	if (c->depth < MAX_DEPTH) {
		c->depth++;
		c->within = e;
		s = expr_text(e->text, &c->scope, c->arena, v, &inner);
		c->within = outer;
		c->depth--;
	} else s = ggu_fail(&inner, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "the names in it refer to each other endlessly "
		"(null: the key itself)");
	/* report the innermost */
	if (s && !c->cause[0]) snprintf(c->cause, sizeof c->cause, "%.63s: %s", name, reason(&inner, s));
	return s;
}

/* Reads object[name]. *is: whether there is such a key, which may be null. */
static enum ggu_status read_key(struct config *c, const json_t *object, const char *name, struct expr_value *v,
	bool *is)
{
	const json_t *j = json_object_get(object, name);
	*is = j != NULL;
	if (!j) return GGU_OK;
	config_keys_mark(c->keys, object, name);
	return from_json(c, j, v);
}

/* Names of what is known beyond the files */
static bool is_fact(const struct config *c, const char *name, struct expr_value *v)
{
	const struct { const char *name; bool yes; } all[] = { { "nested", c->text != c->root },
		{ "untied", c->untied }, { "coded", c->coded } };
	for (size_t i = 0; i < sizeof all/sizeof *all; i++) {
		if (strcmp(name, all[i].name)) continue;
		*v = (struct expr_value){ EXPR_BOOL, { .b = all[i].yes } };
		return true;
	}
	return false;
}

static enum ggu_status lookup(void *ctx, const void *object, const char *name, struct expr_value *v)
{
	struct config *c = ctx;
	const struct yaml_node *e;
	bool is;
	v->kind = EXPR_NULL;
	if (object) return read_key(c, object, name, v, &is);
	if ((!strcmp(name, "i") && c->i >= 0) || (!strcmp(name, "x") && c->x >= 0)) {
		*v = (struct expr_value){ EXPR_INT, { .i = *name == 'i' ? c->i : c->x } };
		return GGU_OK;
	}
	e = yaml_get(c->names, name);
	if (e && e != c->within) return derived(c, e, name, v);
	if (!strcmp(name, "generation")) return from_json(c, c->generation, v);
	if (!strcmp(name, "pooling")) return from_json(c, c->pooling, v);
	if (!strcmp(name, "value") && c->value) return from_json(c, c->value, v);
	if (!strcmp(name, "whole")) return from_json(c, c->root, v);
	if (is_fact(c, name, v)) return GGU_OK;
	if (c->untied && !strcmp(name, "tie_word_embeddings")) {
		*v = (struct expr_value){ EXPR_BOOL, { .b = false } };
		return GGU_OK;
	}
	TRY(read_key(c, c->text, name, v, &is));
	if (!is) TRY(read_key(c, c->root, name, v, &is));
	if (is) return GGU_OK;
	e = yaml_get(c->defaults, name);
	if (!e) e = yaml_get(c->arch->defaults, name);
	return e ? derived(c, e, name, v) : GGU_OK;
}

/* ---- functions beyond expr.h ---- */

/* wavelength_factors(theta, n_dims, factor, low, high, original): what each rotary frequency is divided by: 1 for
 * wavelengths below original/high, factor beyond original/low, smooth between; in float32, as transformers and
 * llama.cpp compute it. Source: rope type "llama3" of transformers. */
static enum ggu_status wavelength_factors(const double *a, struct expr_arena *arena, struct expr_value *v,
	struct ggu_error *err)
{
	float factor = (float)a[2], low = (float)a[3], high = (float)a[4], original = (float)a[5];
	struct expr_value *l;
	size_t n;
	if (!(a[1] >= 2 && a[1] <= 65536 && a[0] > 0 && factor > 0 && factor < INFINITY && low > 0 && low < INFINITY
		&& high > 0 && high < INFINITY && original > 0))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "wavelength_factors", "arguments out of range");
	n = (size_t)a[1]/2;
	TRY(expr_arena_items(arena, n, &l, err));
	for (size_t k = 0; k < n; k++) {
		float freq = 1.0f/(float)num_pow(a[0], (float)(2*k)/(float)a[1]);
		float wave = (float)(2*3.14159265358979323846)/freq, f = 1;
		if (wave > original/low) f = factor;
		else if (wave >= original/high) {
			float smooth = (original/wave - low)/(high - low);
			f = 1.0f/((1.0f - smooth)/factor + smooth);
		}
		l[k] = (struct expr_value){ EXPR_FLOAT, { .f = f } };
	}
	*v = (struct expr_value){ EXPR_LIST, { .list = { l, n } } };
	return GGU_OK;
}

/* gives(object, 'key'): whether it has such a key, which may be null. */
static enum ggu_status gives(const struct expr_value *args, size_t n, struct expr_value *v, struct ggu_error *err)
{
	if (n != 2 || (args[0].kind != EXPR_OBJECT && args[0].kind != EXPR_NULL) || args[1].kind != EXPR_STR)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "gives", "expected an object and a key");
	*v = (struct expr_value){ EXPR_BOOL, { .b = args[0].kind == EXPR_OBJECT
		&& json_object_get(args[0].u.object, args[1].u.s.p) } };
	return GGU_OK;
}

static enum ggu_status call(void *ctx, const char *name, const struct expr_value *args, size_t n,
	struct expr_arena *arena, struct expr_value *v, bool *known, struct ggu_error *err)
{
	const struct config *c = ctx;
	double a[6];
	*known = true;
	if (!strcmp(name, "gives")) return gives(args, n, v, err);
	if (!strcmp(name, "layer")) return expr_layer(args, n, c->i, (size_t)c->n_layers, v, err);
	if (strcmp(name, "wavelength_factors")) {
		*known = false;
		return GGU_OK;
	}
	if (n != 6) return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, name, "expected 6 arguments");
	for (size_t k = 0; k < n; k++) {
		if (args[k].kind != EXPR_INT && args[k].kind != EXPR_FLOAT)
			return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, name, "argument %zu is not a number",
				k + 1);
		a[k] = args[k].kind == EXPR_INT ? (double)args[k].u.i : args[k].u.f;
	}
	return wavelength_factors(a, arena, v, err);
}

/* ---- evaluation ---- */

enum ggu_status config_eval_text(struct config *c, const struct yaml_node *at, const char *text, struct expr_value *v,
	struct ggu_error *err)
{
	struct ggu_error inner = { 0 };
	enum ggu_status s;
	c->cause[0] = 0;
	c->depth = 0;
	c->within = NULL;
	s = expr_text(text, &c->scope, c->arena, v, &inner);
	if (s) config_fail(c, at, err, "%.40s: %s", text, c->cause[0] ? c->cause : reason(&inner, s));
	return s;
}

enum ggu_status config_eval(struct config *c, const struct yaml_node *e, struct expr_value *v, struct ggu_error *err)
{
	if (!e || e->kind != YAML_SCALAR) return config_fail(c, e, err, "expected an expression");
	return config_eval_text(c, e, e->text, v, err);
}

enum ggu_status config_true(struct config *c, const struct yaml_node *e, bool absent, bool *yes, struct ggu_error *err)
{
	struct expr_value v;
	enum ggu_status s;
	*yes = absent;
	if (!e) return GGU_OK;
	s = config_eval(c, e, &v, err);
	if (!s) *yes = expr_true(&v);
	return s;
}

enum ggu_status config_count(struct config *c, const struct yaml_node *in, const char *key, int64_t absent,
	int64_t max, int64_t *n, struct ggu_error *err)
{
	const struct yaml_node *e = yaml_get(in, key);
	struct expr_value v;
	*n = absent;
	if (!e) return absent >= 0 ? GGU_OK : config_fail(c, in, err, "no %s", key);
	TRY(config_eval(c, e, &v, err));
	if (v.kind == EXPR_NULL && absent >= 0) return GGU_OK;
	if (v.kind == EXPR_NULL)
		return file_fail(err, GGU_ERR_MISSING, "config.json", GGU_NO_OFFSET, e->text,
			"has no value, but the number of %s is needed (%.40s, line %u)", key, e->file, e->line);
	if (v.kind != EXPR_INT || v.u.i < 0 || v.u.i > max)
		return file_fail(err, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, e->text,
			"expected a number from 0 to %lld", (long long)max);
	*n = v.u.i;
	return GGU_OK;
}

enum ggu_status config_layers(struct config *c, int64_t absent, int64_t *n, struct ggu_error *err)
{
	TRY(config_count(c, c->arch->convert, "layers", absent, CONFIG_MAX_LAYERS, n, err));
	c->n_layers = *n;
	return GGU_OK;
}

static enum ggu_status refuse(const struct config *c, const char *key, const char *why, struct ggu_error *err)
{
	char layer[32] = "";
	if (c->i >= 0) snprintf(layer, sizeof layer, "layer %lld: ", (long long)c->i);
	return file_fail(err, GGU_ERR_UNSUPPORTED, "config.json", GGU_NO_OFFSET, key,
		"%s%s (%.40s, architecture %.40s)", layer, why, c->hf_class, c->arch->name);
}

/* Checks the keys of one list, for layer c->i if that is not -1. */
static enum ggu_status check_all(struct config *c, const struct yaml_node *l, struct ggu_error *err)
{
	for (size_t k = 0; l && k < l->count; k++) {
		bool yes;
		enum ggu_status s = config_true(c, l->items[k]->items[0], true, &yes, err);
		if (s) return s;
		if (!yes) return refuse(c, l->keys[k]->text, l->items[k]->items[1]->text, err);
	}
	return GGU_OK;
}

enum ggu_status config_check(struct config *c, struct ggu_error *err)
{
	const struct yaml_node *per_layer = yaml_get(c->arch->convert, "check_layer");
	enum ggu_status s = check_all(c, yaml_get(c->arch->convert, "check"), err);
	int64_t n = 0;
	/* where only a vocabulary is wanted, config.json may be too short to say how many */
	if (!s && per_layer) s = config_layers(c, 0, &n, err);
	for (c->i = 0; !s && c->i < n; c->i++) s = check_all(c, per_layer, err);
	c->i = -1;
	return s;
}

/* ---- opening ---- */

/* Finds the description by the class of the whole model, or else by that of its text part. */
static enum ggu_status find_class(struct config *c, struct arch_set *set, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	const char *whole = json_string_value(json_array_get(json_object_get(c->root, "architectures"), 0));
	const char *part = json_string_value(json_array_get(json_object_get(c->text, "architectures"), 0));
	config_keys_mark(c->keys, c->root, "architectures");
	config_keys_mark(c->keys, c->text, "architectures");
	if (!whole && !part)
		return file_fail(err, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, "architectures",
			"does not name the model's class");
	c->hf_class = whole;
	if (whole) s = arch_find_class(set, whole, &c->arch, &c->defaults, err);
	if (!s && part && (!c->arch || !c->arch->convert)) {
		c->hf_class = part;
		s = arch_find_class(set, part, &c->arch, &c->defaults, err);
	}
	if (s) return s;
	if (c->arch && c->arch->convert) return GGU_OK;
	if (c->arch)
		return file_fail(err, GGU_ERR_UNSUPPORTED, c->arch->file, GGU_NO_OFFSET, "convert",
			"is missing, as is a description that has it under like (class %.60s)", c->hf_class);
	return file_fail(err, GGU_ERR_UNSUPPORTED, "config.json", GGU_NO_OFFSET, CONVERT_CLASS,
		"no known architecture has the class %.80s", whole ? whole : part);
}

/* Reads how sentence-transformers makes one row of a text's rows: the first module whose type ends in Pooling. The
 * row's length, which Normalize makes 1, is left to those who read the row; other modules are noted. */
static enum ggu_status pooling(struct config *c, const char *dir, struct ggu_error *err)
{
	json_t *list, *module;
	size_t i;
	char file[256] = "";
	enum ggu_status s = file_json_list(dir, "modules.json", &list, err);
	if (s) return s == GGU_ERR_MISSING ? GGU_OK : s;
	json_array_foreach(list, i, module) {
		const char *type = json_string_value(json_object_get(module, "type"));
		const char *path = json_string_value(json_object_get(module, "path"));
		const char *name = type && strrchr(type, '.') ? strrchr(type, '.') + 1 : type ? type : "";
		const bool pools = file_ends_with(name, "Pooling");
		if (*name && strcmp(name, "Transformer") && !pools && strcmp(name, "Normalize"))
			snprintf(c->module, sizeof c->module, "%.63s", name);
		if (*file || !pools) continue;
		if (!path || !*path || strchr(path, '/') || strstr(path, "..") || strlen(path) > 200)
			s = file_fail(err, GGU_ERR_FORMAT, "modules.json", GGU_NO_OFFSET, "path",
				"expected the name of a folder");
		else snprintf(file, sizeof file, "%s/config.json", path);
		if (s) break;
	}
	json_decref(list);
	return s || !*file ? s : file_json(dir, file, &c->pooling, err);
}

/* What ModelOpt once said in a file of its own is in quantization_config now. */
static enum ggu_status quantization(struct config *c, const char *dir, struct ggu_error *err)
{
	static const char key[] = "quantization_config";
	json_t *file, *producer, *method;
	enum ggu_status s = file_json(dir, "hf_quant_config.json", &file, err);
	if (s) return s == GGU_ERR_MISSING ? GGU_OK : s;
	producer = json_object_get(file, "producer");
	method = json_object_get(producer, "name");
	if (json_is_string(method) && !json_object_get(c->root, key)) {
		json_t *said = json_object();
		if (json_object_set(said, "quant_method", method) || json_object_set(c->root, key, said))
			s = ggu_no_memory(err);
		json_decref(said);
	}
	json_decref(file);
	return s;
}

enum ggu_status config_open(struct config *c, const char *dir, struct arch_set *set, bool optional,
	struct ggu_error *err)
{
	enum ggu_status s;
	*c = (struct config){ .i = -1, .x = -1 };
	c->arena = expr_arena_new();
	if (!c->arena) return ggu_no_memory(err);
	c->scope = (struct expr_scope){ c, lookup, call };
	s = file_json(dir, "config.json", &c->root, err);
	if (s == GGU_ERR_MISSING && optional) {
		enum ggu_status found = arch_find_fallback(set, &c->arch, err);
		if (found || c->arch) s = found;
	} else if (!s) s = quantization(c, dir, err);
	if (!s && c->root) {
		c->text = file_text_part(c->root);
		s = config_keys_new(&c->keys, c->root, err);
		if (!s) s = find_class(c, set, err);
	}
	if (!s) {
		s = file_json(dir, "generation_config.json", &c->generation, err);
		if (s == GGU_ERR_MISSING) s = GGU_OK;
	}
	if (!s) s = pooling(c, dir, err);
	if (!s) s = schema_check(c, err);
	if (s) config_close(c);
	else c->names = yaml_get(c->arch->convert, "names");
	return s;
}

void config_close(struct config *c)
{
	json_decref(c->root);
	json_decref(c->generation);
	json_decref(c->pooling);
	config_keys_free(c->keys);
	if (c->arena) expr_arena_free(c->arena);
	*c = (struct config){ 0 };
}
