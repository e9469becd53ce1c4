/* SPDX-License-Identifier: MIT
 * copies.c - find copies, and recognize those that differ; see copies.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "../model/util/file.h"
#include "../quant/quant.h"
#include "copies.h"
#include "view.h"

enum { PIECE = 1 << 16, MAX_NAME = 512 };

static const struct source_tensor *find_prefixed(const struct config *c, const struct checkpoint *source,
	const char *name)
{
	const struct yaml_node *strip = yaml_get(c->arch->convert, "strip");
	const struct source_tensor *t = checkpoint_find(source, name);
	for (size_t k = 0; !t && strip && k < strip->count; k++) {
		const char *has = strip->keys[k]->text, *instead = strip->items[k]->text;
		char full[MAX_NAME];
		if (!text_starts(name, instead)) continue;
		snprintf(full, sizeof full, "%s%s", has, name + strlen(instead));
		t = checkpoint_find(source, full);
	}
	return t;
}

static const struct source_tensor *find(const struct config *c, const struct checkpoint *source, const char *name)
{
	const struct yaml_node *endings = yaml_get(c->arch->convert, "endings");
	const struct source_tensor *t = find_prefixed(c, source, name);
	for (size_t k = 0; !t && endings && k < endings->count; k++) {
		const struct yaml_node *instead = endings->items[k];
		size_t n = strlen(name);
		char full[MAX_NAME];
		if (!text_ends(name, n, instead->text)) continue;
		snprintf(full, sizeof full, "%.*s%s", (int)(n - instead->n), name, endings->keys[k]->text);
		t = find_prefixed(c, source, full);
	}
	return t;
}

const struct source_tensor *copies_find(struct config *c, const struct checkpoint *source, const char *name)
{
	const struct yaml_node *l = yaml_get(c->arch->convert, "copies");
	const struct source_tensor *t = find(c, source, name);
	for (size_t k = 0; !t && l && k < l->count; k++) {
		bool yes = false;
		struct ggu_error err;           /* copies_compare has evaluated it without an error */
		if (!yaml_is(yaml_get(l->items[k], "of"), name)) continue;
		if (!copies_has(c, l->keys[k]->text, &yes, &err) && yes) t = find(c, source, l->keys[k]->text);
	}
	return t;
}

enum ggu_status copies_has(struct config *c, const char *name, bool *yes, struct ggu_error *err)
{
	const struct yaml_node *e = yaml_get(yaml_get(c->arch->convert, "copies"), name);
	*yes = false;
	return e ? config_true(c, yaml_get(e, "when"), true, yes, err) : GGU_OK;
}

/* Elements [at, at + n) of v as floats in x. raw: scratch memory for them. */
static enum ggu_status load(const struct view *v, const struct checkpoint *source, uint64_t at, size_t n, void *raw,
	float *x, struct ggu_error *err)
{
	void *work = malloc(view_work_bytes(v, n) + 1);
	enum ggu_status s = work ? view_read(v, source, at, n, raw, work, err) : ggu_no_memory(err);
	if (!s) quant_decode((uint32_t)v->t->dtype->type, raw, x, n);
	free(work);
	return s;
}

/* Compares elements as numbers, so that copies may be stored in different types. */
static enum ggu_status compare(const struct checkpoint *source, const struct source_tensor *a,
	const struct source_tensor *b, bool *same, struct ggu_error *err)
{
	struct view v[2];
	uint64_t piece = 1;
	enum ggu_status s = GGU_OK;
	*same = a->n_dims == b->n_dims && !memcmp(a->shape, b->shape, a->n_dims*sizeof *a->shape) &&
		a->dtype->type != SOURCE_NO_TYPE && b->dtype->type != SOURCE_NO_TYPE;
	if (!*same || (a->file == b->file && a->offset == b->offset &&
		!memcmp(a->stride, b->stride, a->n_dims*sizeof *a->stride)))
		return GGU_OK;
	for (int k = 0; k < 2; k++) {
		view_of(v + k, k ? b : a);
		view_coalesce(v + k);
		if (view_unit(v + k) > piece) piece = view_unit(v + k);         /* a multiple of the other's */
	}
	if (piece < PIECE) piece = PIECE - PIECE%piece;
	const bool fits = piece <= SIZE_MAX/sizeof(uint64_t);
	uint64_t *raw = fits ? malloc((size_t)piece*sizeof *raw) : NULL;        /* elements of any type */
	float *x = fits ? malloc(2*(size_t)piece*sizeof *x) : NULL;
	if (!raw || !x) s = ggu_no_memory(err);
	for (uint64_t at = 0; !s && *same && at < a->n_weights; at += piece) {
		size_t n = (size_t)(a->n_weights - at < piece ? a->n_weights - at : piece);
		for (int k = 0; k < 2 && !s; k++) s = load(v + k, source, at, n, raw, x + (size_t)k*piece, err);
		for (size_t i = 0; i < n && !s; i++) *same &= x[i] == x[piece + i];
	}
	free(raw);
	free(x);
	return s;
}

enum ggu_status copies_compare(struct config *c, const struct checkpoint *source,
	void (*warn)(void *ctx, const struct ggu_error *what), void *ctx, struct ggu_error *err)
{
	const struct yaml_node *l = yaml_get(c->arch->convert, "copies");
	bool untied = false;
	for (size_t k = 0; l && k < l->count; k++) {
		const struct source_tensor *copy = find(c, source, l->keys[k]->text);
		const struct source_tensor *of = find(c, source, yaml_get(l->items[k], "of")->text);
		bool yes, same;
		struct ggu_error what;
		enum ggu_status s = copies_has(c, l->keys[k]->text, &yes, err);
		same = !yes || !copy || !of;
		if (!s && !same) s = compare(source, copy, of, &same, err);
		if (s) return s;
		if (same) continue;
		if (!yaml_get(l->items[k], "when"))
			return file_fail(err, GGU_ERR_UNSUPPORTED, "", GGU_NO_OFFSET, copy->name,
				"differs from %.80s, of which it must be a copy", of->name);
		untied = true;
		file_fail(&what, GGU_ERR_FORMAT, "config.json", GGU_NO_OFFSET, "tie_word_embeddings",
			"is true, but %.60s differs from %.60s: both are kept", copy->name, of->name);
		if (warn) warn(ctx, &what);
	}
	c->untied = untied;
	return GGU_OK;
}
