/* SPDX-License-Identifier: MIT
 * coded_bnb.c - find the weights that bitsandbytes has stored in four bits (NF4, FP4).
 *
 * A weight is a line of codes, whatever its shape: two in a byte, the first one higher, with a scale for each block of
 * so many. NAME is that of the weight itself:
 *
 *   NAME                                       the codes, as bytes in a tensor of any type
 *   NAME.quant_map                             what each code stands for
 *   NAME.absmax                                the scales, or, if there is a nested_absmax, their codes
 *   NAME.nested_quant_map, NAME.nested_absmax  what those stand for, and factors for blocks of them
 *   NAME.quant_state.bitsandbytes__nf4         JSON: shape of the weight, sizes of blocks, and nested_offset; or __fp4
 *
 *   scale = nested_quant_map[absmax]*nested_absmax + nested_offset         in float32
 *
 * A Conv1D's weight is stored as a Linear's. Source: bitsandbytes, functional.QuantState. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/size.h"
#include "../libgguf/text.h"
#include "../libgguf/try.h"
#include "coded_internal.h"

enum { STATE_MAX = 1 << 16 };           /* bytes of JSON; they are some 170 */

/* ---- the state ---- */

struct state { unsigned n_dims; uint64_t shape[SOURCE_MAX_DIMS], n, block, nested_block; float offset; };

static bool read_members(const json_t *j, struct state *s)
{
	const json_t *shape = json_object_get(j, "shape");
	s->n_dims = (unsigned)size_least(json_array_size(shape), SOURCE_MAX_DIMS + 1);
	s->block = finder_count(j, "blocksize");
	s->nested_block = finder_count(j, "nested_blocksize");
	s->offset = (float)json_number_value(json_object_get(j, "nested_offset"));
	s->n = 1;
	if (!s->n_dims || s->n_dims > SOURCE_MAX_DIMS || !s->block || !isfinite(s->offset)) return false;
	for (unsigned i = 0; i < s->n_dims; i++) {
		const json_int_t n = json_integer_value(json_array_get(shape, i));
		s->shape[i] = (uint64_t)n;
		if (n < 1 || __builtin_mul_overflow(s->n, s->shape[i], &s->n)) return false;
	}
	return true;
}
static enum ggu_status read_state(const struct finder *f, const struct source_tensor *t, struct state *s)
{
	char *text;
	json_t *j;
	enum ggu_status st;
	bool ok;
	if (!finder_type_is(t, "U8") || t->n_weights > STATE_MAX)
		return finder_misfit(f, t, "is not JSON in at most 65536 bytes");
	text = malloc((size_t)t->n_weights + 1);
	if (!text) return ggu_no_memory(f->err);
	st = checkpoint_read(f->source, t, 0, text, (size_t)t->n_weights, f->err);
	j = st ? NULL : json_loadb(text, (size_t)t->n_weights, 0, NULL);
	free(text);
	if (st) return st;
	ok = read_members(j, s);
	json_decref(j);
	return ok ? GGU_OK : finder_misfit(f, t, "does not say shape and blocksize");
}

/* ---- the parts ---- */

/* Reads the n floats of NAME and ending. */
static enum ggu_status read_floats(const struct finder *f, const char *name, const char *ending, float *to, uint64_t n)
{
	struct source_tensor t = { 0 };
	enum ggu_status s = finder_take(f, name, strlen(name), ending, &t);
	if (s == GGU_OK && !t.name)
		s = file_fail(f->err, GGU_ERR_MISSING, "", GGU_NO_OFFSET, name, "has no tensor %s", ending);
	if (s == GGU_OK && (!finder_type_is(&t, "F32") || t.n_weights != n))
		s = file_fail(f->err, GGU_ERR_FORMAT, "", GGU_NO_OFFSET, t.name, "expected %llu of F32",
			(unsigned long long)n);
	if (s == GGU_OK) s = checkpoint_read(f->source, &t, 0, to, (size_t)n, f->err);
	free((char *)t.name);
	return s;
}
/* Are the scales codes themselves? */
static bool is_nested(const struct coded *k) { return finder_type_is(&k->scale, "U8"); }

static enum ggu_status find_map(const struct finder *f, const char *name, const struct state *s, struct coded *k)
{
	const bool nested = is_nested(k);
	const uint64_t n = nested ? k->scale_columns/s->nested_block + (k->scale_columns%s->nested_block > 0) : 0;
	struct coded_map *m;
	if (n > SIZE_MAX/sizeof(float)) return finder_misfit(f, &k->scale, "is too large");
	m = calloc(1, size_plus(sizeof *m, (size_t)n*sizeof *m->factor));
	if (!m) return ggu_no_memory(f->err);
	k->map = m;
	m->block = nested ? s->nested_block : 0;
	m->offset = s->offset;
	TRY(read_floats(f, name, ".quant_map", m->level, sizeof m->level/sizeof *m->level));
	if (!nested) return GGU_OK;
	TRY(read_floats(f, name, ".nested_quant_map", m->scale_level, sizeof m->scale_level/sizeof *m->scale_level));
	return read_floats(f, name, ".nested_absmax", m->factor, n);
}
/* Takes the codes for a line of bytes. */
static enum ggu_status fit_codes(const struct finder *f, const struct state *s, struct coded *k)
{
	struct source_tensor *t = &k->code.in;
	const uint64_t bytes = t->n_weights*t->dtype->bytes;
	if (bytes != s->n/2 + s->n%2) return finder_misfit(f, t, "does not have the codes of its quant_state's shape");
	t->dtype = checkpoint_dtype("U8");
	t->n_dims = 1;
	t->shape[0] = t->n_weights = t->n_stored = bytes;
	checkpoint_rows(t);
	k->code.bits = 4;
	k->code.high_first = true;
	k->code.width = bytes;
	k->rows = 1;
	k->columns = s->n;
	return GGU_OK;
}
static enum ggu_status fit_scales(const struct finder *f, const struct state *s, struct coded *k)
{
	const struct source_tensor *t = &k->scale;
	k->shared = true;
	k->factor = 1;
	k->block_rows = k->scale_rows = 1;
	k->block_columns = s->block;
	k->scale_columns = s->n/s->block + (s->n%s->block > 0);
	if (t->n_weights != k->scale_columns) return finder_misfit(f, t, "scales do not fit the weights");
	if (is_nested(k) ? s->nested_block > 0 : t->dtype->type != SOURCE_NO_TYPE) return GGU_OK;
	return finder_misfit(f, t, "scales are neither floats nor codes with a nested_blocksize");
}

/* ---- a weight ---- */

static enum ggu_status find_parts(struct finder *f, const char *name, const char *ending, struct coded *k)
{
	struct source_tensor state = { 0 }, made;
	struct state s = { 0 };
	enum ggu_status st = finder_take(f, name, strlen(name), ending, &state);
	if (!st) st = read_state(f, &state, &s);
	free((char *)state.name);
	if (!st) st = finder_take(f, name, strlen(name), "", &k->code.in);
	if (!st) st = finder_take(f, name, strlen(name), ".absmax", &k->scale);
	if (st) return st;
	if (!k->code.in.name || !k->scale.name)
		return file_fail(f->err, GGU_ERR_MISSING, "", GGU_NO_OFFSET, name, "has no %s, but a quant_state",
			k->code.in.name ? "absmax" : "codes");
	TRY(fit_codes(f, &s, k));
	TRY(fit_scales(f, &s, k));
	TRY(find_map(f, name, &s, k));
	k->kind = CODED_MAPPED;
	k->linear = true;
	made = k->code.in;
	made.coded = k;
	made.dtype = checkpoint_dtype("F32");
	made.n_dims = s.n_dims;
	memcpy(made.shape, s.shape, sizeof made.shape);
	made.n_weights = s.n;
	if (__builtin_mul_overflow(s.n, sizeof(float), &made.bytes))
		return finder_misfit(f, &k->code.in, "is too large");
	checkpoint_rows(&made);
	return checkpoint_add(&f->made, &made, name, strlen(name), f->err);
}
static enum ggu_status find_weight(struct finder *f, const char *state, const char *ending)
{
	const size_t n = strlen(state) - strlen(ending);
	struct coded *k = calloc(1, sizeof *k);
	char *name = malloc(n + 1);
	enum ggu_status s = k && name ? GGU_OK : ggu_no_memory(f->err);
	if (!s) {
		memcpy(name, state, n);
		name[n] = '\0';
		s = find_parts(f, name, ending, k);
	}
	free(name);
	if (s) coded_free(k);
	return s;
}
enum ggu_status coded_find_bnb(struct finder *f)
{
	static const char *const endings[] = { ".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4" };
	for (size_t i = 0; i < f->source->n; i++) {
		const char *name = f->source->tensors[i].name;
		for (size_t k = 0; k < sizeof endings/sizeof *endings; k++)
			if (text_ends(name, strlen(name), endings[k])) TRY(find_weight(f, name, endings[k]));
	}
	return GGU_OK;
}
