/* SPDX-License-Identifier: MIT
 * build_tensor.c - fields of a description that name tensors: matrices, vectors, norms and ropes; and their shapes. */
#include <float.h>
#include <stdio.h>
#include <string.h>
#include "../../libgguf/size.h"
#include "../../libgguf/text.h"
#include "../../libgguf/try.h"
#include "../../quant/quant.h"
#include "../util/number.h"
#include "build_internal.h"

#define MIN_DIVISOR 1e-6f

/* ---- names ---- */

static bool full_name(const struct builder *b, const char *name, const char *suffix, char full[256])
{
	bool root = b->layer < 0 || *name == '/';
	int n = root ? snprintf(full, 256, "%s%s", name + (*name == '/'), suffix)
		: snprintf(full, 256, "%s.%d.%s%s", b->blocks, (int)b->layer, name, suffix);
	return n < 256;
}
const struct ggu_tensor *build_find(const struct builder *b, const char *name, const char *suffix)
{
	char full[256];
	return full_name(b, name, suffix, full) ? ggu_file_find(b->f, full) : NULL;
}
static const struct ggu_tensor *find_any(const struct builder *b, const char *name)
{
	const struct ggu_tensor *t = build_find(b, name, ".weight");
	if (!t) t = build_find(b, name, "");
	return t ? t : build_find(b, name, ".bias");
}
/* at: where the description names it, which may be the mistake */
static enum ggu_status missing(const struct builder *b, const struct yaml_node *at, const char *name)
{
	char full[256];
	if (!full_name(b, name, ".weight", full)) snprintf(full, sizeof full, "%.250s", name);
	return ggu_fail(b->err, GGU_ERR_MISSING, GGU_NO_OFFSET, full, "is missing (%s, line %u, column %u)", at->file,
		at->line, at->column);
}

/* Sets *name to the name at `at`, or of a list of names to the first that exists, or else the last; NULL: null was
 * intended. */
static enum ggu_status choose(const struct builder *b, const struct yaml_node *at, const char *key, const char **name)
{
	*name = NULL;
	if (yaml_null(at) || (at->kind == YAML_SEQUENCE && !at->count)) return GGU_OK;
	if (at->kind == YAML_SEQUENCE) {
		size_t i = 0;
		for (; i + 1 < at->count; i++)
			if (at->items[i]->kind == YAML_SCALAR && find_any(b, at->items[i]->text)) break;
		at = at->items[i];
	}
	if (yaml_null(at)) return GGU_OK;
	if (at->kind != YAML_SCALAR) return build_fail(b, at, key, "expected a tensor's name");
	*name = at->text;
	return GGU_OK;
}

enum ggu_status build_absent(const struct builder *b, const struct yaml_node *map, const char *key)
{
	const struct yaml_node *at = yaml_get(map, key);
	if (at && at->kind == YAML_SEQUENCE && at->count) at = at->items[0];
	if (!at || at->kind != YAML_SCALAR || yaml_null(at)) return build_fail(b, at ? at : map, key, "is missing");
	return missing(b, at, at->text);
}

/* ---- vectors ---- */

static enum ggu_status read_vector(const struct builder *b, const struct ggu_tensor *t, struct vector *v)
{
	uint64_t rows = ggu_tensor_rows(t);
	const void *data;
	float *out;
	if (!t->ne[0] || !rows || t->ne[0] > BUILD_MAX_SIZE || rows > BUILD_MAX_SIZE/t->ne[0]
		|| !quant_can_decode(t->type))
		return ggu_fail(b->err, GGU_ERR_FORMAT, t->entry, t->name, "does not give a vector of numbers");
	v->n = t->ne[0]*rows;
	v->row = 1;
	for (size_t i = 0; v->row == 1 && i < t->n_dims; i++) v->row = t->ne[i];
	if (!b->shapes_only) TRY(ggu_map(b->f, t, &data, b->err));
	out = build_alloc(b, v->n*sizeof *out);
	if (!out) return GGU_ERR_NOMEM;
	if (!b->shapes_only) quant_decode(t->type, data, out, v->n);
	v->v = out;
	build_read(b, t);
	return GGU_OK;
}

static enum ggu_status wrong_length(const struct builder *b, const struct yaml_node *at, const char *name,
	size_t n_row, size_t n_rows)
{
	const struct ggu_tensor *t = find_any(b, name);
	const uint64_t want[] = { n_row, n_rows };
	char is[TEXT_SHAPE], wanted[TEXT_SHAPE];
	if (!t) return missing(b, at, name);
	text_shape(is, t->ne, t->n_dims);
	text_shape(wanted, want, n_rows == 1 ? 1 : 2);
	return ggu_fail(b->err, GGU_ERR_FORMAT, t->entry, t->name, "has shape %s, expected %s%s", is, wanted,
		n_rows == 1 ? " numbers" : "");
}
/* Dimensions of 1 do not count: n numbers may be 1 x n or n x 1. */
static bool has_rows(const struct vector *v, size_t n_row, size_t n_rows)
{
	return v->n == n_row*n_rows && v->row == (n_row == 1 ? n_rows : n_row);
}
/* Either of the two may have the wrong shape. */
static enum ggu_status wrong_bias(const struct builder *b, const struct ggu_tensor *t, size_t n_out, size_t n_mat)
{
	const uint64_t outputs[] = { n_out, n_mat };
	char is[TEXT_SHAPE], of[TEXT_SHAPE];
	text_shape(is, t->ne, t->n_dims);
	text_shape(of, outputs, n_mat == 1 ? 1 : 2);
	return ggu_fail(b->err, GGU_ERR_FORMAT, t->entry, t->name, "has shape %s, but its weight has %s outputs", is,
		of);
}

enum ggu_status build_rows(const struct builder *b, const struct yaml_node *map, const char *key,
	const struct vector *v, size_t n_row, size_t n_rows)
{
	const struct yaml_node *at = yaml_get(map, key);
	const char *name;
	if (!v->v || has_rows(v, n_row, n_rows)) return GGU_OK;
	return choose(b, at, key, &name) || !name ? GGU_ERR_FORMAT : wrong_length(b, at, name, n_row, n_rows);
}
enum ggu_status build_length(const struct builder *b, const struct yaml_node *map, const char *key,
	const struct vector *v, size_t n)
{
	return build_rows(b, map, key, v, n, 1);
}

enum ggu_status build_heads(const struct builder *b, const struct yaml_node *at, const char *kind, struct heads *h)
{
	if (!h->n_kv) h->n_kv = h->n;
	if (!h->k_dim) h->k_dim = b->g->n_embd/h->n;
	if (!h->v_dim) h->v_dim = h->k_dim;
	if (!h->k_dim || h->n%h->n_kv || h->n > BUILD_MAX_SIZE/h->k_dim || h->n > BUILD_MAX_SIZE/h->v_dim)
		return build_fail(b, at, kind, "heads are not a multiple of key-value heads, or too large");
	return GGU_OK;
}

/* ---- matrices ---- */

/* The bias of all matrices, if there is one. */
static enum ggu_status bias(const struct builder *b, const char *name, struct weight *w)
{
	const struct ggu_tensor *t = build_find(b, name, ".bias");
	struct vector v = { 0 };
	enum ggu_status s = t ? read_vector(b, t, &v) : GGU_OK;
	if (s) return s;
	if (t && !has_rows(&v, w->n_out, w->n_mat)) return wrong_bias(b, t, w->n_out, w->n_mat);
	w->bias = v.v;
	return GGU_OK;
}

static enum ggu_status wrong_shape(const struct builder *b, const struct ggu_tensor *t, size_t n_in, size_t n_out,
	size_t n_mat)
{
	const uint64_t want[3] = { n_in ? n_in : TEXT_ANY, n_out ? n_out : TEXT_ANY, n_mat ? n_mat : TEXT_ANY };
	char is[TEXT_SHAPE], wanted[TEXT_SHAPE];
	text_shape(is, t->ne, t->n_dims);
	text_shape(wanted, want, n_mat == 1 ? 2 : 3);
	return ggu_fail(b->err, GGU_ERR_FORMAT, t->entry, t->name, "has shape %s, expected %s", is, wanted);
}

static enum ggu_status matrix(const struct builder *b, const struct yaml_node *at, const char *name, struct weight *w)
{
	const struct ggu_tensor *t = build_find(b, name, ".weight");
	uint64_t row;
	if (!t) return missing(b, at, name);
	*w = (struct weight){ .name = t->name, .type = t->type, .n_in = t->ne[0], .n_out = t->ne[1],
		.n_mat = t->ne[2] };
	if (t->ne[3] != 1 || !t->ne[0] || !t->ne[1] || !t->ne[2] || t->ne[0] > BUILD_MAX_SIZE
		|| t->ne[1] > BUILD_MAX_SIZE || t->ne[2] > BUILD_MAX_SIZE/t->ne[1])
		return wrong_shape(b, t, 0, 0, 1);
	if (!quant_can_multiply(t->type) || !ggu_type_bytes(t->type, t->ne[0], &row))
		return ggu_fail(b->err, GGU_ERR_UNSUPPORTED, t->entry, t->name,
			"is of type %s, which cannot be multiplied", ggu_type_info(t->type)->name);
	w->row_bytes = row;
	build_read(b, t);
	if (!b->shapes_only) TRY(ggu_map(b->f, t, &w->data, b->err));
	return bias(b, name, w);
}

enum ggu_status build_shape(const struct builder *b, const struct weight *w, size_t n_in, size_t n_out, size_t n_mat)
{
	const struct ggu_tensor *t;
	if (!w->name) return GGU_OK;
	t = ggu_file_find(b->f, w->name);
	if (t->ne[3] != 1 || !w->n_in || !w->n_out || !w->n_mat || w->n_in > BUILD_MAX_SIZE
		|| w->n_out > BUILD_MAX_SIZE || (n_in && w->n_in != n_in)
		|| (n_out && w->n_out != n_out) || (n_mat && w->n_mat != n_mat))
		return wrong_shape(b, t, n_in, n_out, n_mat);
	return GGU_OK;
}

enum ggu_status build_named(struct builder *b, const struct yaml_node *map, const struct field *f, void *to)
{
	const struct yaml_node *at = yaml_get(map, f->key);
	const struct ggu_tensor *t;
	const char *name;
	enum ggu_status s = choose(b, at, f->key, &name);
	if (s) return s;
	if (!name) return f->flags & FIELD_NEEDED ? build_fail(b, at ? at : map, f->key, "is missing") : GGU_OK;
	if (f->kind == FIELD_WEIGHT) {
		struct weight *w = to;
		s = matrix(b, at, name, w);
		if (!s) b->g->widest = size_most(b->g->widest, w->n_in);
		if (!s && f->flags & FIELD_INPUT) b->forms |= 1u << quant_act_of(w->type);
		return s;
	}
	t = find_any(b, name);
	return t ? read_vector(b, t, to) : missing(b, at, name);
}

/* ---- norms ---- */

const struct field build_norm_fields[] = { { "rms", FIELD_OWN }, { "layer", FIELD_OWN }, { "eps", FIELD_NUMBER },
	{ "when", FIELD_OWN }, { NULL } };

enum ggu_status build_norm(struct builder *b, const struct yaml_node *at, struct norm *o)
{
	static const char *const kinds[] = { "rms", "layer" };
	const struct yaml_node *which = NULL;
	const struct ggu_tensor *t;
	struct vector v = { 0 };
	const char *name;
	bool yes;
	if (yaml_null(at)) return GGU_OK;
	TRY(build_when(b, at, &yes));
	if (!yes) return GGU_OK;
	for (size_t i = 0; at->kind == YAML_MAPPING && i < at->count; i++)
		for (int k = 0; k < 2; k++) if (!strcmp(at->keys[i]->text, kinds[k]) && !yaml_null(at->items[i])) {
			if (which) return build_fail(b, at, "norm", "has both rms and layer, expected one of them");
			which = at->items[i];
			o->kind = k ? NORM_LAYER : NORM_RMS;
		}
	if (!which) return build_fail(b, at, "norm", "expected {rms: NAME, eps: ...} or {layer: NAME, eps: ...}");
	TRY(build_number(b, at, "eps", -1, 0, 1, &o->eps));
	TRY(choose(b, which, "norm", &name));
	if (!name) {
		if (which->count) o->kind = NORM_NONE;  /* [NAME, null], and there is no NAME. [] is a norm. */
		return GGU_OK;
	}
	if (!(t = build_find(b, name, ".weight"))) t = build_find(b, name, "");
	if (!t) return missing(b, which, name);
	TRY(read_vector(b, t, &v));
	o->w = v.v;
	o->n_w = v.n;
	o->n = t->ne[0];                /* of a group; build_norm_width checks that it fits */
	if (!(t = build_find(b, name, ".bias"))) return GGU_OK;
	TRY(read_vector(b, t, &v));
	o->b = v.v;
	return v.n == o->n_w ? GGU_OK : wrong_bias(b, t, o->n_w, 1);
}

enum ggu_status build_norm_width(const struct builder *b, const struct yaml_node *map, const char *key, struct norm *o,
	size_t n, size_t n_group)
{
	const struct yaml_node *at = yaml_get(map, key), *which = yaml_get(at, o->kind == NORM_LAYER ? "layer" : "rms");
	const char *name;
	enum ggu_status s;
	if (o->kind == NORM_NONE) return GGU_OK;
	if (!o->w) {
		o->n = n_group;
		return GGU_OK;
	}
	if ((o->n == n_group && n % o->n_w == 0) || (o->n == n && o->n_w == n)) return GGU_OK;
	s = choose(b, which, key, &name);
	return s ? s : wrong_length(b, which, name ? name : key, n_group, 1);
}

/* ---- rope ---- */

static const char *const styles[] = { "half", "interleaved", NULL };
#define AT(member) offsetof(struct rope, member)
static const struct field yarn_fields[] = {
	{ "factor", FIELD_NUMBER, AT(yarn), 0, 1e-6, 1e6, .flags = FIELD_MAY_LACK },
	{ "beta_fast", FIELD_NUMBER, AT(beta_fast), 32, 1e-3, 1e6 },
	{ "beta_slow", FIELD_NUMBER, AT(beta_slow), 1, 1e-3, 1e6 },
	{ "truncate", FIELD_FLAG, AT(truncate), 1 },
	{ NULL }
};
static const struct field divide_fields[] = { { "by", FIELD_OWN }, { NULL } };
const struct field build_rope_fields[] = {
	{ "style", FIELD_WORD, AT(interleaved), .words = styles, .flags = FIELD_NEEDED },
	{ "dims", FIELD_SIZE, AT(dims), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ "base", FIELD_NUMBER, AT(base), 10000, 1, 1e12 },
	{ "linear", FIELD_NUMBER, AT(linear), 1, 1e-6, 1e6 },
	{ "original", FIELD_SIZE, AT(original), 0, 0, BUILD_MAX_SIZE },
	{ "magnitude", FIELD_NUMBER, AT(magnitude), 0, 1e-6, 1e3, .flags = FIELD_MAY_LACK },
	{ "yarn", FIELD_MAP, .sub = yarn_fields },
	{ "divide", FIELD_OWN, .sub = divide_fields },
	{ "divide_long", FIELD_OWN, .sub = divide_fields },
	{ "when", FIELD_OWN },
	{ NULL }
};

enum ggu_status build_rope(struct builder *b, const struct yaml_node *at, struct rope *r)
{
	bool yes;
	if (yaml_null(at)) return GGU_OK;
	TRY(build_when(b, at, &yes));
	if (!yes) return GGU_OK;
	TRY(build_fields(b, at, build_rope_fields, r));
	return r->yarn > 0 && !r->original ? build_fail(b, at, "rope", "yarn needs the original context length")
		: GGU_OK;
}

/* Divisors belong to the model, not to a layer, which may do without. None is so small that an angle is not a finite
 * number; one that is huge leaves its pair as it is. */
static enum ggu_status divisors(struct builder *b, const struct yaml_node *map, const char *key, size_t n,
	const float **v)
{
	struct builder outside = *b;
	const struct yaml_node *at = yaml_get(map, key);
	const struct ggu_tensor *t;
	struct vector x = { 0 };
	const char *name;
	bool yes = true;
	outside.layer = -1;
	if (at && at->kind == YAML_MAPPING) {
		if (!yaml_get(at, "by")) return build_absent(b, at, "by");
		TRY(build_when(b, at, &yes));
		at = yaml_get(at, "by");
	}
	TRY(choose(&outside, at, key, &name));
	if (!yes || !name) return GGU_OK;
	t = find_any(&outside, name);
	if (!t) return GGU_OK;
	TRY(read_vector(b, t, &x));
	if (!has_rows(&x, n, 1)) return wrong_length(&outside, at, name, n, 1);
	for (size_t i = 0; i < n && !b->shapes_only; i++)
		if (!(x.v[i] >= MIN_DIVISOR && x.v[i] <= FLT_MAX)) {
			char is[NUMBER_TEXT], least[NUMBER_TEXT], most[NUMBER_TEXT];
			return ggu_fail(b->err, GGU_ERR_RANGE, t->entry, t->name,
				"factor %zu is %s, not between %s and %s", i, number_text(is, x.v[i], true),
				number_text(least, MIN_DIVISOR, true), number_text(most, FLT_MAX, true));
		}
	*v = x.v;
	return GGU_OK;
}

enum ggu_status build_rope_width(struct builder *b, const struct yaml_node *map, struct rope *r, size_t head_dim,
	int *index)
{
	const struct yaml_node *at = yaml_get(map, "rope");
	struct graph *g = b->g;
	size_t i = 0;
	*index = -1;
	if (r->base == 0) return GGU_OK;
	if (!r->dims) r->dims = head_dim;
	if (r->dims % 2 || r->dims > head_dim)
		return build_fail(b, at, "rope", "rotates an odd number of dimensions, or more than a head has");
	TRY(divisors(b, at, "divide", r->dims/2, &r->divisor));
	TRY(divisors(b, at, "divide_long", r->dims/2, &r->long_divisor));
	if (r->long_divisor && !r->original)
		return build_fail(b, at, "rope", "divide_long needs the original context length");
	if (r->long_divisor && !g->long_from) g->long_from = r->original;
	if (r->long_divisor && g->long_from != r->original)
		return build_fail(b, at, "rope", "has another original context length than earlier layers");
	while (i < g->n_ropes && !rope_same(g->rope + i, r)) i++;
	if (i == GRAPH_MAX_ROPES) return build_fail(b, at, "rope", "too many kinds of rope");
	if (i == g->n_ropes) g->rope[g->n_ropes++] = *r;
	*index = (int)i;
	return GGU_OK;
}
