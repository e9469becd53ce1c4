/* SPDX-License-Identifier: MIT
 * models.h - small models of random weights, made as files and opened, and sequences that go through them. */
#ifndef TESTS_LIB_MODELS_H
#define TESTS_LIB_MODELS_H
#include "../../model/eval/model.h"

enum { WIDE = 64, VOCAB = 48, LONG = 200, HEADS = 4 };

/* %d: one in each of two layers. Vectors are drawn around 1 or so, matrices around 0. A bias by distance
 * (attn_rel_b [buckets][HEADS]) falls with the bucket, as ALiBi does. */
struct tensor { const char *name; uint64_t ne[3]; float around; };
struct key { const char *name; double v; };
/* description: of an architecture that is no known one */
struct kind { const char *arch; const struct key *keys; const struct tensor *tensors; const char *description; };

/* matrices of the type, where their rows go with it; with a pool of its own */
struct model *make_model(const struct kind *k, uint32_t type, int threads);
void drop_model(struct model *m);

extern int32_t text[LONG + 64];         /* ids */
struct work *new_work(struct model *m, size_t n_batch);
struct state *new_state(struct model *m, uint32_t type);
void go_on(struct work *w, struct state *s, const int32_t *ids, size_t n, float *rows);
/* Rows of ids[0..n) at once, in a work and state of their own; the caller frees. */
float *alone(struct model *m, uint32_t cache, const int32_t *ids, size_t n, size_t n_batch);
void same(const float *a, const float *b, size_t n);    /* n rows */

#endif
