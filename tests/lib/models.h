/* SPDX-License-Identifier: MIT
 * models.h - small models of random weights, made as files and opened, and sequences that go through them. */
#ifndef TESTS_LIB_MODELS_H
#define TESTS_LIB_MODELS_H
#include "../../model/eval/model.h"

enum { WIDE = 64, VOCAB = 48, LONG = 200, HEADS = 4 };

/* %d: one in each of two layers. Vectors are drawn around 1, matrices around 0. A bias by distance (attn_rel_b
 * [buckets][HEADS]) falls with the bucket, as in ALiBi. */
struct tensor { const char *name; uint64_t ne[3]; float around; };
struct key { const char *name; double v; };
/* description: that of an architecture that is not built in. recurrent: states have no keys and values, but what they
 * keep of the whole past */
struct kind {
	const char *arch;
	const struct key *keys;
	const struct tensor *tensors;
	const char *description;
	bool recurrent;
};

/* matrices have the type if it fits their rows; the model has a pool of its own */
struct model *make_model(const struct kind *k, uint32_t type, int threads);
void drop_model(struct model *m);

extern int32_t text[LONG + 64];         /* ids */
struct work *new_work(struct model *m, size_t n_batch);
struct state *new_state(struct model *m, uint32_t type);
void go_on(struct work *w, struct state *s, const int32_t *ids, size_t n, float *rows);
/* The rows of ids[0..n), evaluated at once in a new work and state; the caller frees them. */
float *alone(struct model *m, uint32_t cache, const int32_t *ids, size_t n, size_t n_batch);
void same(const float *a, const float *b, size_t n);    /* n rows */

#endif
