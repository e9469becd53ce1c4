/* SPDX-License-Identifier: MIT
 * config.c - the scope in which an architecture's convert part is evaluated; see config.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../model/util/file.h"
#include "../quant/vec.h"
#include "config.h"
#include "convert.h"

enum { MAX_DEPTH = 32 };        /* names that use names */

enum ggu_status config_fail(const struct config *c, const struct yaml_node *at, struct ggu_error *err, const char *what, ...)
{
	char text[120];
	va_list ap;
	va_start(ap, what);
	vsnprintf(text, sizeof text, what, ap);
	va_end(ap);
	return file_fail(err, GGU_ERR_FORMAT, c->arch->file, GGU_NO_OFFSET, "", "line %u: %s", at ? at->line : 0, text);
}

/* A JSON value as a value of an expression; objects stay JSON. */
static enum ggu_status from_json(struct config *c, const json_t *j, struct expr_value *v)
{
	switch (j ? json_typeof(j) : JSON_NULL) {
	case JSON_NULL: v->kind = EXPR_NULL; break;
	case JSON_TRUE: case JSON_FALSE: *v = (struct expr_value){ EXPR_BOOL, { .b = json_is_true(j) } }; break;
	case JSON_INTEGER: *v = (struct expr_value){ EXPR_INT, { .i = json_integer_value(j) } }; break;
	case JSON_REAL: *v = (struct expr_value){ EXPR_FLOAT, { .f = json_real_value(j) } }; break;
	case JSON_STRING: *v = (struct expr_value){ EXPR_STR, { .s = { json_string_value(j), json_string_length(j) } } }; break;
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

/* A value that from_json could not take says no more than its status. */
static const char *reason(const struct ggu_error *err, enum ggu_status s)
{
	return err->what[0] ? err->what : s == GGU_ERR_NOMEM ? "out of memory" : "lists of too many items";
}

static enum ggu_status derived(struct config *c, const struct yaml_node *e, const char *name, struct expr_value *v)
{
	struct ggu_error inner = { 0 };
	enum ggu_status s;
	if (c->depth < MAX_DEPTH) {
		c->depth++;
		s = expr_text(e->text, &c->scope, c->arena, v, &inner);
		c->depth--;
	} else s = ggu_fail(&inner, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "uses names that use names without end");
	/* the innermost is at fault */
	if (s && !c->cause[0]) snprintf(c->cause, sizeof c->cause, "%.63s: %s", name, reason(&inner, s));
	return s;
}

static enum ggu_status lookup(void *ctx, const void *object, const char *name, struct expr_value *v)
{
	struct config *c = ctx;
	const struct yaml_node *e;
	const json_t *j;
	if (object) return from_json(c, json_object_get(object, name), v);
	if ((!strcmp(name, "i") && c->i >= 0) || (!strcmp(name, "x") && c->x >= 0)) {
		*v = (struct expr_value){ EXPR_INT, { .i = *name == 'i' ? c->i : c->x } };
		return GGU_OK;
	}
	if ((e = yaml_get(c->names, name))) return derived(c, e, name, v);
	if (!strcmp(name, "generation")) return from_json(c, c->generation, v);
	j = json_object_get(c->text, name);
	if (!j) j = json_object_get(c->root, name);
	if (j) return from_json(c, j, v);
	if ((e = yaml_get(c->defaults, name))) return derived(c, e, name, v);
	v->kind = EXPR_NULL;
	return GGU_OK;
}

/* ---- functions beyond expr.h ---- */

/* wavelength_factors(theta, n_dims, factor, low, high, original): what each rotary frequency is divided by: nothing for
 * wavelengths up to original/high, factor beyond original/low, smooth between; in float32, as transformers and
 * llama.cpp compute it. Source: rope type "llama3" of transformers. */
static enum ggu_status wavelength_factors(const double *a, struct expr_arena *arena, struct expr_value *v)
{
	size_t n = (size_t)a[1]/2;
	float factor = (float)a[2], low = (float)a[3], high = (float)a[4], original = (float)a[5];
	struct expr_value *l;
	if (!(a[1] >= 2 && a[1] <= 65536 && a[0] > 0)) return GGU_ERR_RANGE;
	if (expr_arena_items(arena, n, &l, NULL)) return GGU_ERR_RANGE;
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

static enum ggu_status call(void *ctx, const char *name, const struct expr_value *args, size_t n, struct expr_arena *arena, struct expr_value *v, bool *known, struct ggu_error *err)
{
	double a[6];
	(void)ctx;
	if (strcmp(name, "wavelength_factors")) return GGU_OK;
	*known = true;
	if (n != 6) return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, name, "wants 6 arguments");
	for (size_t k = 0; k < n; k++) {
		if (args[k].kind != EXPR_INT && args[k].kind != EXPR_FLOAT) return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, name, "argument %zu is no number", k + 1);
		a[k] = args[k].kind == EXPR_INT ? (double)args[k].u.i : args[k].u.f;
	}
	if (wavelength_factors(a, arena, v)) return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name, "arguments out of range");
	return GGU_OK;
}

/* ---- evaluation ---- */

enum ggu_status config_eval_text(struct config *c, const struct yaml_node *at, const char *text, struct expr_value *v, struct ggu_error *err)
{
	struct ggu_error inner = { 0 };
	enum ggu_status s;
	c->cause[0] = 0;
	c->depth = 0;
	s = expr_text(text, &c->scope, c->arena, v, &inner);
	if (s) config_fail(c, at, err, "%.40s: %s", text, c->cause[0] ? c->cause : reason(&inner, s));
	return s;
}

enum ggu_status config_eval(struct config *c, const struct yaml_node *e, struct expr_value *v, struct ggu_error *err)
{
	if (!e || e->kind != YAML_SCALAR) return config_fail(c, e, err, "wants an expression");
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

/* ---- opening ---- */

static enum ggu_status find_class(struct config *c, const struct arch_set *set, struct ggu_error *err)
{
	const json_t *list = json_object_get(c->root, "architectures");
	const char *name;
	if (!list) list = json_object_get(c->text, "architectures");
	name = json_string_value(json_array_get(list, 0));
	if (!name) return file_fail(err, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, "architectures", "does not name the model's class");
	c->arch = arch_find_class(set, name, &c->defaults);
	if (c->arch && c->arch->convert) return GGU_OK;
	return file_fail(err, GGU_ERR_UNSUPPORTED, "config.json", GGU_NO_OFFSET, CONVERT_CLASS, "no architecture is known for %.80s", name);
}

/* The architecture that takes folders without config.json. */
static const struct arch *fallback(const struct arch_set *set)
{
	for (size_t k = 0; k < arch_count(set); k++)
		if (yaml_is(yaml_get(arch_at(set, k)->convert, "vocab_without_config"), "true")) return arch_at(set, k);
	return NULL;
}

enum ggu_status config_open(struct config *c, const char *dir, const struct arch_set *set, bool optional, struct ggu_error *err)
{
	enum ggu_status s;
	*c = (struct config){ .i = -1, .x = -1 };
	c->arena = expr_arena_new();
	if (!c->arena) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	c->scope = (struct expr_scope){ c, lookup, call };
	s = file_json(dir, "config.json", &c->root, err);
	if (s == GGU_ERR_MISSING && optional && (c->arch = fallback(set))) s = GGU_OK;
	else if (!s) {
		c->text = json_object_get(c->root, "text_config");
		if (!json_is_object(c->text)) c->text = c->root;
		s = find_class(c, set, err);
	}
	if (!s) {
		s = file_json(dir, "generation_config.json", &c->generation, err);
		if (s == GGU_ERR_MISSING) s = GGU_OK;
	}
	if (s) config_close(c);
	else c->names = yaml_get(c->arch->convert, "names");
	return s;
}

void config_close(struct config *c)
{
	json_decref(c->root);
	json_decref(c->generation);
	if (c->arena) expr_arena_free(c->arena);
	*c = (struct config){ 0 };
}
