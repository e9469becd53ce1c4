/* SPDX-License-Identifier: MIT
 * coded.c - find the parts of coded weights and see that they fit; see coded.h.
 *
 * `schemes` has the endings of names that belong to one weight, after what they have in common. Everything else follows
 * from shapes and types: how many bits a code has, how many of them share a scale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "../libgguf/try.h"
#include "coded_internal.h"

/* Where AWQ has the codes of eight columns in an integer */
static const uint8_t awq_places[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };

#define QWEIGHT .code = ".qweight", .scale = ".scales", .name = ".weight", .zero = ".qzeros"
static const struct scheme {
	const char *method;             /* quantization_config.quant_method */
	const char *key, *format;       /* another key of it and its value, in any case; NULL: no matter which */
	bool absent;                    /* that value is meant if the key is absent */
	const char *code, *scale, *name;        /* endings; name: of the weight */
	const char *zero, *group, *shape, *factor, *bias;       /* NULL: there are none */
	bool turned;                    /* a column of codes is a row of the weight */
	bool divided;                   /* scales are divided by the factor */
	float by;                       /* the factor if no tensor has it; 0: 1 */
	bool linear;                    /* the weight of a Conv1D is stored as a Linear's, as it also is if turned */
	int lack;                       /* as in struct coded */
	const uint8_t *place;           /* as in struct coded_packed */
} schemes[] = {
	{ "fp8", .code = "", .scale = "_scale_inv", .name = "" },
	{ "fp8", .code = "", .scale = "_scale", .name = "" },           /* AutoFP8 */
	{ "fbgemm_fp8", .code = "", .scale = "_scale", .name = "" },
	{ "modelopt", .code = "", .scale = "_scale", .name = "", .factor = "_scale_2" },
	{ "compressed-tensors", .code = "", .scale = "_scale", .name = "", .zero = "_zero_point" },
	{ "compressed-tensors", .code = "_packed", .scale = "_scale", .name = "", .zero = "_zero_point",
		.group = "_g_idx", .shape = "_shape", .factor = "_global_scale", .divided = true },
	{ "gptq", "checkpoint_format", "gptq", true, QWEIGHT, .group = ".g_idx", .turned = true, .lack = 1 },
	{ "gptq", "checkpoint_format", "gptq_v2", false, QWEIGHT, .group = ".g_idx", .turned = true },
	{ "awq", "version", "gemm", true, QWEIGHT, .turned = true, .place = awq_places },
	{ "auto-round", "packing_format", "auto_round:auto_gptq", true, QWEIGHT, .group = ".g_idx", .turned = true,
		.lack = 1 },
	{ "auto-round", "packing_format", "auto_round:gptqmodel", false, QWEIGHT, .group = ".g_idx", .turned = true },
	{ "auto-round", "packing_format", "auto_round", false, QWEIGHT, .group = ".g_idx", .turned = true },
	{ "auto-round", "packing_format", "auto_round:auto_awq", false, QWEIGHT, .turned = true,
		.place = awq_places },
	{ "bitsandbytes", .code = ".weight", .scale = ".SCB", .name = ".weight", .divided = true, .by = 127,
		.linear = true },       /* LLM.int8 */
	{ "mlx", "mode", "affine", true, ".weight", ".scales", ".weight", .bias = ".biases" },
};
#undef QWEIGHT
enum { N_SCHEMES = sizeof schemes/sizeof *schemes };
/* Endings of what belongs to activations and to the cache, or to tensors of which nothing else is left */
static const char *const not_weights[] = { ".input_scale", ".input_scale_ub", ".input_zero_point",
	".input_global_scale", ".output_scale", "activation_scale", ".q_scale", ".k_scale", ".v_scale",
	".weight_format" };

/* ---- config.json ---- */

static const json_t *said(const struct config *c)
{
	static const char *const names[] = { "quantization_config", "compression_config", "quantization" };
	for (size_t i = 0; i < sizeof names/sizeof *names; i++) {
		const json_t *j = json_object_get(c->text, names[i]);
		if (!j) j = json_object_get(c->root, names[i]);
		if (j) return j;
	}
	return NULL;
}
static bool is_bnb(const char *method) { return method && !strcmp(method, "bitsandbytes"); }
/* bitsandbytes did not always have its name in config.json, and MLX has none. */
static const char *method_of(const json_t *q)
{
	const json_t *method = json_object_get(q, "quant_method");
	if (method) return json_string_value(method);
	if (json_is_true(json_object_get(q, "load_in_4bit")) || json_is_true(json_object_get(q, "load_in_8bit")))
		return "bitsandbytes";
	return finder_count(q, "group_size") && finder_count(q, "bits") ? "mlx" : NULL;
}
/* Is s what quantization_config says? */
static bool is_said(const struct scheme *s, const json_t *q)
{
	const char *method = method_of(q), *format = s->key ? json_string_value(json_object_get(q, s->key)) : NULL;
	if (!method || strcmp(method, s->method)) return false;
	return !s->key || (format ? text_same(format, s->format) : s->absent);
}
bool coded_is(const struct config *c)
{
	bool is = false;
	for (size_t i = 0; i < N_SCHEMES; i++) is |= is_said(schemes + i, said(c));
	return is;
}
/* The rows, or the columns, that config.json says share a scale; 0 if it does not say. It may say different things of
 * different layers, so this counts only where it fits. */
static uint64_t told(const json_t *q, bool columns)
{
	const json_t *weights = q, *block, *n;
	const char *name;
	json_t *group;
	json_object_foreach(json_object_get(q, "config_groups"), name, group)
		weights = json_object_get(group, "weights");
	block = json_object_get(weights, "block_structure");
	if (!block) block = json_object_get(q, "weight_block_size");
	n = block ? json_array_get(block, columns) : json_object_get(weights, "group_size");
	return json_integer_value(n) > 0 ? (uint64_t)json_integer_value(n) : 0;
}

/* ---- the parts of a weight ---- */

enum ggu_status finder_misfit(const struct finder *f, const struct source_tensor *t, const char *what)
{
	return file_fail(f->err, GGU_ERR_FORMAT, "", GGU_NO_OFFSET, t->name, "%s", what);
}
/* The first n bytes of base, and the ending; NULL: out of memory */
static char *joined(const char *base, size_t n, const char *ending)
{
	char *name = malloc(n + strlen(ending) + 1);
	if (!name) return NULL;
	memcpy(name, base, n);
	strcpy(name + n, ending);
	return name;
}
static enum ggu_status as_stored(const struct finder *f, const struct source_tensor *t)
{
	uint64_t stride = 1;
	for (unsigned i = t->n_dims; i-- > 0; stride *= t->shape[i])
		if (t->shape[i] > 1 && t->stride[i] != stride) return finder_misfit(f, t, "is not stored row by row");
	return GGU_OK;
}
enum ggu_status finder_take(const struct finder *f, const char *base, size_t n, const char *ending,
	struct source_tensor *t)
{
	const struct source_tensor *found;
	char *name;
	if (!ending) return GGU_OK;
	name = joined(base, n, ending);
	if (!name) return ggu_no_memory(f->err);
	found = checkpoint_find(f->source, name);
	if (!found) {
		free(name);
		return GGU_OK;
	}
	*t = *found;
	t->name = name;
	f->gone[found - f->source->tensors] = true;
	return as_stored(f, t);
}
/* A dimension counted from the end, or 1 */
static uint64_t dim(const struct source_tensor *t, unsigned from_end)
{
	return t->n_dims > from_end ? t->shape[t->n_dims - 1 - from_end] : 1;
}
bool finder_type_is(const struct source_tensor *t, const char *name) { return !strcmp(t->dtype->name, name); }
/* How many bits a number has of which `n` are packed in so many words; 0: that cannot be. */
static unsigned bits_of(uint64_t n, uint64_t words)
{
	/* likely ones first, as a short row may fit several */
	static const uint8_t all[] = { 4, 8, 3, 2, 6, 5, 7, 1 };
	for (size_t i = 0; i < sizeof all; i++) if (coded_words(n, all[i]) == words) return all[i];
	return 0;
}
/* How many of n rows or columns share one of n_scales; 0: that cannot be. */
static uint64_t block_of(uint64_t n, uint64_t n_scales, uint64_t told)
{
	if (!n_scales || n_scales > n) return 0;
	if (told && n/told + (n%told > 0) == n_scales) return told;
	return n%n_scales ? 0 : n/n_scales;
}

static enum ggu_status find_kind(const struct finder *f, const struct scheme *s, struct coded *k)
{
	static const struct { const char *dtype; enum coded_kind kind; unsigned bits; } all[] = {
		{ "F8_E4M3", CODED_E4M3, 8 }, { "F8_E5M2", CODED_E5M2, 8 }, { "I8", CODED_INTEGER, 8 },
		{ "U8", CODED_E2M1, 4 }, { "I32", CODED_INTEGER, 0 }, { "U32", CODED_INTEGER, 0 },
	};
	const struct source_tensor *t = &k->code.in;
	const bool fits = finder_type_is(t, "U32") == (s->bias != NULL);        /* only MLX's integers are U32 */
	for (size_t i = 0; i < sizeof all/sizeof *all; i++) {
		if (!fits || !finder_type_is(t, all[i].dtype)) continue;
		k->kind = all[i].kind;
		k->code.bits = all[i].bits;
		return GGU_OK;
	}
	return file_fail(f->err, GGU_ERR_UNSUPPORTED, "", GGU_NO_OFFSET, t->name,
		"is stored as %s with the scales %.80s", t->dtype->name, k->scale.name);
}
/* `shape`: the dimensions of the weight, of which the file's last one has packed integers */
static enum ggu_status read_shape(const struct finder *f, const struct source_tensor *t, struct coded *k)
{
	const struct source_tensor *c = &k->code.in;
	int64_t n[SOURCE_MAX_DIMS];
	bool fits = finder_type_is(t, "I64") && t->n_weights == c->n_dims && c->n_dims > 0;
	if (fits) TRY(checkpoint_read(f->source, t, 0, n, c->n_dims, f->err));
	for (unsigned i = 0; fits && i + 1 < c->n_dims; i++) fits = n[i] > 0 && (uint64_t)n[i] == c->shape[i];
	if (!fits || n[c->n_dims - 1] < 1) return finder_misfit(f, t, "is not the shape of the packed weights");
	k->columns = (uint64_t)n[c->n_dims - 1];
	return GGU_OK;
}
/* The columns of MLX's codes: so many scales, each for a group, whose size may be said of a weight's module alone. */
static enum ggu_status find_columns(const struct finder *f, const struct scheme *s, struct coded *k)
{
	char *module = strndup(k->scale.name, strlen(k->scale.name) - strlen(s->scale));
	const json_t *own;
	uint64_t size;
	if (!module) return ggu_no_memory(f->err);
	own = json_object_get(f->said, module);
	free(module);
	size = finder_count(json_is_object(own) ? own : f->said, "group_size");
	if (!size) return finder_misfit(f, &k->scale, "have no group_size in config.json");
	return __builtin_mul_overflow(dim(&k->scale, 0), size, &k->columns) ?
		finder_misfit(f, &k->scale, "are too many") : GGU_OK;
}
/* Codes of 32-bit integers: how many, and of how many bits each */
static enum ggu_status measure_words(const struct finder *f, const struct scheme *s, const struct source_tensor *shape,
	struct coded *k)
{
	const struct source_tensor *t = &k->code.in;
	const uint64_t packed = dim(t, 0);
	if (s->turned) {
		k->columns = dim(&k->scale, 0);
		k->code.down = k->columns == packed;
	} else if (shape->name) TRY(read_shape(f, shape, k));
	else if (s->bias) TRY(find_columns(f, s, k));
	else return finder_misfit(f, t, "has no shape");
	k->code.bits = bits_of(k->columns, k->code.down ? dim(&k->zero.in, 0) : packed);
	if (!k->code.bits || (s->turned && t->n_dims != 2))
		return finder_misfit(f, t, "has a shape that fits no packed weights");
	if (k->code.down) k->rows = k->rows*32/k->code.bits;
	k->code.place = s->place;
	return !s->place || (k->code.bits == 4 && k->columns%8 == 0) ? GGU_OK :
		finder_misfit(f, t, "does not have eight codes of 4 bits");
}
/* Rows and columns of codes */
static enum ggu_status measure(const struct finder *f, const struct scheme *s, const struct source_tensor *shape,
	struct coded *k)
{
	const struct source_tensor *t = &k->code.in;
	k->code.width = dim(t, 0);
	k->rows = dim(t, 1);
	if (!t->n_weights || k->code.width > UINT64_MAX/32 || k->rows > UINT64_MAX/32)
		return finder_misfit(f, t, "is empty, or too large");
	if (t->dtype->bytes == 4) return measure_words(f, s, shape, k);
	k->columns = k->code.width*(8/k->code.bits);
	return shape->name ? read_shape(f, shape, k) : GGU_OK;
}
/* Which dimensions of the scales belong to which of the codes */
static enum ggu_status fit_scales(const struct finder *f, struct coded *k)
{
	const struct source_tensor *c = &k->code.in, *s = &k->scale;
	const unsigned lack = c->n_dims > s->n_dims ? c->n_dims - s->n_dims : 0;
	uint64_t of_matrix;
	if (s->dtype->type == SOURCE_NO_TYPE && !finder_type_is(s, "F8_E4M3") && !finder_type_is(s, "F8_E8M0") &&
		!finder_type_is(s, "U8"))
		return file_fail(f->err, GGU_ERR_UNSUPPORTED, "", GGU_NO_OFFSET, s->name, "scales are %s",
			s->dtype->name);
	if (s->dtype->type == GGU_TYPE_F64) return finder_misfit(f, s, "scales are F64");
	k->scale_rows = s->n_weights == 1 || lack > 1 ? 1 : dim(s, !lack);
	k->scale_columns = s->n_weights == 1 || lack ? 1 : dim(s, 0);
	of_matrix = k->scale_rows*k->scale_columns;
	k->shared = s->n_weights == of_matrix;
	k->block_rows = block_of(k->rows, k->scale_rows, told(f->said, false));
	k->block_columns = block_of(k->columns, k->scale_columns, told(f->said, true));
	if (!k->block_rows || !k->block_columns || s->n_dims > c->n_dims + (s->n_weights == 1) ||
		(!k->shared && s->n_weights/of_matrix != c->n_weights/(k->code.width*dim(c, 1))))
		return finder_misfit(f, s, "scales do not fit the weights");
	return GGU_OK;
}
static enum ggu_status fit_zeros(const struct finder *f, const struct scheme *s, struct coded *k)
{
	struct coded_packed *z = &k->zero;
	const uint64_t r = k->scale_rows, c = k->scale_columns;
	uint64_t down = r, across = c;
	if (!z->in.name) return GGU_OK;
	z->bits = 8;
	z->width = dim(&z->in, 0);
	if (finder_type_is(&z->in, "I32") && finder_type_is(&k->code.in, "I32")) {
		z->bits = k->code.bits;
		z->place = k->code.place;
		z->down = !s->turned;
		if (z->down) down = coded_words(r, z->bits);
		else across = coded_words(c, z->bits);
	} else if (!finder_type_is(&z->in, "I8"))
		return file_fail(f->err, GGU_ERR_UNSUPPORTED, "", GGU_NO_OFFSET, z->in.name, "zeros are %s",
			z->in.dtype->name);
	return dim(&z->in, 1) == down && z->width == across && z->in.n_dims <= 2 && k->code.in.n_dims == 2 ? GGU_OK :
		finder_misfit(f, &z->in, "zeros do not fit the scales");
}
/* Checks the list of groups. One that says the same as the sizes of blocks is left out. */
static enum ggu_status fit_group(const struct finder *f, const struct scheme *s, struct coded *k)
{
	const struct source_tensor *g = &k->group;
	const uint64_t n = s->turned ? k->rows : k->columns, n_scales = s->turned ? k->scale_rows : k->scale_columns,
		block = s->turned ? k->block_rows : k->block_columns;
	bool plain = true;
	if (!g->name) return GGU_OK;
	if (!finder_type_is(g, "I32") || g->n_dims != 1 || g->n_weights != n || (!s->turned && n_scales > CODED_PIECE))
		return finder_misfit(f, g, "does not fit the weights");
	for (uint64_t i = 0; i < n; i += CODED_PIECE) {
		int32_t at[CODED_PIECE];
		const size_t some = n - i < CODED_PIECE ? (size_t)(n - i) : CODED_PIECE;
		TRY(checkpoint_read(f->source, g, i, at, some, f->err));
		for (size_t j = 0; j < some; j++) {
			if (at[j] < 0 || (uint64_t)at[j] >= n_scales)
				return finder_misfit(f, g, "there is no such group");
			plain &= (uint64_t)at[j] == (i + j)/block;
		}
	}
	k->grouped_rows = !plain && s->turned;
	k->grouped_columns = !plain && !s->turned;
	return GGU_OK;
}
/* A module of MLX may have a mode of its own, whose codes mean something else. The affine one alone has biases. */
static enum ggu_status fit_bias(const struct finder *f, const struct scheme *s, const struct coded *k)
{
	const struct source_tensor *b = &k->bias;
	int type;
	if (!s->bias) return GGU_OK;
	if (!b->name) return file_fail(f->err, GGU_ERR_MISSING, "", GGU_NO_OFFSET, k->scale.name, "have no biases");
	type = b->dtype->type;
	return b->n_weights == k->scale.n_weights && dim(b, 0) == dim(&k->scale, 0) &&
		(type == GGU_TYPE_F32 || type == GGU_TYPE_F16 || type == GGU_TYPE_BF16) ? GGU_OK :
		finder_misfit(f, b, "biases do not fit the scales");
}
static enum ggu_status fit_factor(const struct finder *f, const struct scheme *s, const struct source_tensor *t,
	struct coded *k)
{
	float x;
	k->factor = s->by ? s->by : 1;
	k->divided = s->divided;
	if (!t->name) return GGU_OK;
	if (!finder_type_is(t, "F32") || t->n_weights != 1) return finder_misfit(f, t, "expected one F32");
	TRY(checkpoint_read(f->source, t, 0, &x, 1, f->err));
	if (!(x > 0 && x < INFINITY)) return finder_misfit(f, t, "is not above 0");
	k->factor = x;
	return GGU_OK;
}

/* The weight as a tensor: F32, in the order of the codes */
static enum ggu_status add_weight(struct finder *f, const struct scheme *s, const char *base, size_t n, struct coded *k)
{
	struct source_tensor t = k->code.in;
	const uint64_t matrices = t.n_weights/(k->code.width*dim(&t, 1));
	enum ggu_status status;
	char *name;
	t.coded = k;
	t.dtype = checkpoint_dtype("F32");
	if (t.n_dims > 1) t.shape[t.n_dims - 2] = k->rows;
	if (t.n_dims) t.shape[t.n_dims - 1] = k->columns;
	if (__builtin_mul_overflow(k->rows, k->columns, &t.n_weights) ||
		__builtin_mul_overflow(t.n_weights, matrices, &t.n_weights) ||
		__builtin_mul_overflow(t.n_weights, sizeof(float), &t.bytes))
		return finder_misfit(f, &k->code.in, "is too large");
	checkpoint_rows(&t);
	k->linear = s->turned || s->linear;
	if (s->turned) {
		t.shape[0] = k->columns;
		t.shape[1] = k->rows;
		t.stride[0] = 1;
		t.stride[1] = k->columns;
	}
	name = joined(base, n, s->name);
	if (!name) return ggu_no_memory(f->err);
	status = checkpoint_add(&f->made, &t, name, strlen(name), f->err);
	free(name);
	return status;
}
static enum ggu_status build(struct finder *f, const struct scheme *s, const char *base, size_t n, struct coded *k)
{
	struct source_tensor shape = { 0 }, factor = { 0 };
	enum ggu_status st = finder_take(f, base, n, s->scale, &k->scale);
	if (!st) st = finder_take(f, base, n, s->code, &k->code.in);
	if (!st) st = finder_take(f, base, n, s->zero, &k->zero.in);
	if (!st) st = finder_take(f, base, n, s->group, &k->group);
	if (!st) st = finder_take(f, base, n, s->shape, &shape);
	if (!st) st = finder_take(f, base, n, s->factor, &factor);
	if (!st) st = finder_take(f, base, n, s->bias, &k->bias);
	if (!st) st = find_kind(f, s, k);
	if (!st) st = measure(f, s, &shape, k);
	if (!st) st = fit_scales(f, k);
	if (!st) st = fit_zeros(f, s, k);
	if (!st) st = fit_group(f, s, k);
	if (!st) st = fit_factor(f, s, &factor, k);
	if (!st) st = fit_bias(f, s, k);
	if (!st && finder_type_is(&k->code.in, "I32"))
		k->lack = k->zero.in.name ? s->lack : 1 << k->code.bits >> 1;
	if (!st) st = add_weight(f, s, base, n, k);
	free((char *)shape.name);
	free((char *)factor.name);
	return st;
}

/* ---- the checkpoint ---- */

/* The weight whose scales are tensor i, if these are scales, and if there are codes for them */
static enum ggu_status find_weight(struct finder *f, const struct scheme *s, size_t i)
{
	const struct source_tensor *scale = f->source->tensors + i, *code;
	const size_t all = strlen(scale->name), n = all - strlen(s->scale);
	struct coded *k;
	enum ggu_status status;
	char *name;
	if (!text_ends(scale->name, all, s->scale)) return GGU_OK;
	name = joined(scale->name, n, s->code);
	if (!name) return ggu_no_memory(f->err);
	code = checkpoint_find(f->source, name);
	free(name);
	if (!code || code->dtype->type != SOURCE_NO_TYPE) return GGU_OK;
	k = calloc(1, sizeof *k);
	if (!k) return ggu_no_memory(f->err);
	status = build(f, s, scale->name, n, k);
	if (status) coded_free(k);
	return status;
}
void coded_free(struct coded *k)
{
	if (!k) return;
	free((char *)k->code.in.name);
	free((char *)k->zero.in.name);
	free((char *)k->scale.name);
	free((char *)k->bias.name);
	free((char *)k->group.name);
	free(k->map);
	free(k);
}
static enum ggu_status find_all(struct finder *f)
{
	for (const struct scheme *s = schemes; s < schemes + N_SCHEMES; s++) {
		if (!is_said(s, f->said)) continue;
		for (size_t i = 0; i < f->source->n; i++) if (!f->gone[i]) TRY(find_weight(f, s, i));
	}
	if (is_bnb(method_of(f->said))) TRY(coded_find_bnb(f));
	for (size_t i = 0; i < f->source->n; i++) {
		const char *name = f->source->tensors[i].name;
		for (size_t k = 0; k < sizeof not_weights/sizeof *not_weights; k++)
			f->gone[i] |= text_ends(name, strlen(name), not_weights[k]);
	}
	return GGU_OK;
}
enum ggu_status coded_open(struct checkpoint *source, const struct config *c, struct ggu_error *err)
{
	struct finder f = { .source = source, .said = said(c), .err = err };
	enum ggu_status s;
	f.gone = calloc(source->n + 1, sizeof *f.gone);
	s = f.gone ? find_all(&f) : ggu_no_memory(err);
	if (!s) s = checkpoint_replace(source, f.gone, &f.made, err);
	checkpoint_tensors_free(&f.made);
	free(f.gone);
	return s;
}
