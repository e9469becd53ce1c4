/* SPDX-License-Identifier: MIT
 * coded_internal.h - what the files that find the parts of coded weights share. Private to convert/. */
#ifndef CONVERT_CODED_INTERNAL_H
#define CONVERT_CODED_INTERNAL_H
#include <jansson.h>
#include "checkpoint_internal.h"
#include "coded.h"

struct finder {
	const struct checkpoint *source;
	struct checkpoint made;         /* only its tensors */
	bool *gone;                     /* tensors of `source` that are parts of weights, or not needed */
	const json_t *said;             /* quantization_config */
	struct ggu_error *err;
};
/* Fails with GGU_ERR_FORMAT and the name of t. */
enum ggu_status finder_misfit(const struct finder *f, const struct source_tensor *t, const char *what);
/* Takes the tensor that is called like the first n bytes of base and the ending, if there is one, into *t, which owns
 * its name then. ending NULL: none. It must be stored row by row. */
enum ggu_status finder_take(const struct finder *f, const char *base, size_t n, const char *ending,
	struct source_tensor *t);
bool finder_type_is(const struct source_tensor *t, const char *name);
/* A number above 0 of a JSON object; 0: there is none. */
static inline uint64_t finder_count(const json_t *object, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(object, key));
	return n > 0 ? (uint64_t)n : 0;
}

/* Finds the weights of bitsandbytes that have four bits (coded_bnb.c). */
enum ggu_status coded_find_bnb(struct finder *f);

#endif
