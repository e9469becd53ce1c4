/* SPDX-License-Identifier: MIT
 * graph_id.c - a number that differs between models whose states are not interchangeable, even if their shapes are the
 * same.
 *
 * It covers what decides the contents of a cache: the description, the metadata of the architecture, the tensors'
 * names, types and shapes, and the beginning of each tensor's data. That is enough to tell a fine-tuned model from the
 * one it was made of, and a page of each tensor is read instead of all of them. The order of metadata and tensors, the
 * model's own name and its vocabulary do not count. */
#include <string.h>
#include <xxhash.h>
#include "graph.h"

enum { SAMPLE_BYTES = 64 };

static uint64_t mix(const void *p, size_t n, uint64_t h) { return XXH3_64bits_withSeed(p, n, h); }

static uint64_t of_node(const struct yaml_node *y, uint64_t h)
{
	const uint64_t kind[2] = { (uint64_t)y->kind, y->count };
	h = mix(kind, sizeof kind, h);
	if (y->kind == YAML_SCALAR) return mix(y->text, y->n, h);
	for (size_t i = 0; i < y->count; i++) {
		if (y->keys) h = of_node(y->keys[i], h);
		h = of_node(y->items[i], h);
	}
	return h;
}

static uint64_t of_pair(const struct ggu_kv *kv)
{
	const struct ggu_str key = ggu_kv_key(kv);
	uint64_t h = mix(key.p, key.n, ggu_kv_n(kv));
	for (size_t i = 0; i < ggu_kv_n(kv); i++) {
		struct ggu_str s;
		double x;
		if (ggu_kv_float(kv, i, &x)) h = mix(&x, sizeof x, h);
		else if (ggu_kv_str(kv, i, &s)) h = mix(s.p, s.n, h);
	}
	return h;
}

static uint64_t of_tensor(struct ggu_file *f, const struct ggu_tensor *t)
{
	const uint64_t row[5] = { t->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3] };
	const uint64_t h = mix(row, sizeof row, mix(t->name, t->name_bytes, 0));
	const void *p;
	if (ggu_map(f, t, &p, NULL)) return h;
	return mix(p, t->bytes < SAMPLE_BYTES ? (size_t)t->bytes : SAMPLE_BYTES, h);
}

uint64_t graph_id(const struct graph *g)
{
	const struct ggu_meta *m = ggu_file_meta(g->file);
	const size_t n = strlen(g->arch->name);
	uint64_t h = of_node(g->arch->graph, mix(g->arch->name, n, 0));
	for (size_t i = 0; i < ggu_meta_count(m); i++) {
		const struct ggu_str key = ggu_kv_key(ggu_meta_at(m, i));
		if (key.n > n && !memcmp(key.p, g->arch->name, n) && key.p[n] == '.') h += of_pair(ggu_meta_at(m, i));
	}
	for (size_t i = 0; i < ggu_file_n_tensors(g->file); i++) h += of_tensor(g->file, ggu_file_tensor(g->file, i));
	return h;
}
