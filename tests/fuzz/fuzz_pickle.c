/* SPDX-License-Identifier: MIT
 * fuzz_pickle.c - a pickle: refused with a reason, or every tensor's shape, strides and storage are such as a reader
 * may rely on. Values that contain themselves are walked to a depth. */
#include <string.h>
#include "../../convert/pickle.h"
#include "fuzz.h"

enum { DEPTH = 4 };
static const uint8_t *text;
static size_t text_n;

static void within(const struct pickle_str *s)
{
	must(!s->n || ((const uint8_t *)s->p >= text && s->n <= text_n &&
		(const uint8_t *)s->p <= text + text_n - s->n), "a string outside the pickle");
}
static void walk(const struct pickle_value *v, int depth)
{
	const struct pickle_tensor *t = &v->u.tensor;
	if (v->kind == PICKLE_STR) within(&v->u.s);
	if (v->kind == PICKLE_TENSOR) {
		must(t->size->n == t->stride->n, "a tensor of more sizes than strides");
		for (size_t i = 0; i < t->size->n; i++)
			must(t->size->v[i]->kind == PICKLE_INT && t->stride->v[i]->kind == PICKLE_INT,
				"a shape of other things than integers");
		must(t->storage->n >= 0, "a storage of fewer than no elements");
		within(&t->storage->key);
	}
	if (v->kind != PICKLE_DICT && v->kind != PICKLE_LIST && v->kind != PICKLE_TUPLE) return;
	must(v->u.items.n <= text_n, "more items than bytes");
	must(v->kind != PICKLE_DICT || v->u.items.n%2 == 0, "a key without a value");
	for (size_t i = 0; i < v->u.items.n && depth; i++) walk(v->u.items.v[i], i < 64 ? depth - 1 : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pickle *p;
	struct ggu_error err = { 0 };
	text = data;
	text_n = size;
	if (pickle_read(&p, data, size, "fuzz", 0, &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		return 0;
	}
	walk(pickle_root(p), DEPTH);
	pickle_get(pickle_root(p), "state_dict");
	pickle_free(p);
	return 0;
}
