/* SPDX-License-Identifier: MIT
 * types.h - how many types there are, for tables by type. Not installed: the numbers grow. */
#ifndef GGU_TYPES_H
#define GGU_TYPES_H
#include "ggu.h"

enum {
#define QTYPE(id, NAME, name, weights, bytes, swap, kind) GGU_TYPE_ID_##NAME = id,
#include "qtypes.def"
#undef QTYPE
	GGU_TYPE_COUNT          /* one more than the largest: qtypes.def is in order */
};
#define GGU_KV_TYPE_COUNT (GGU_F64 + 1)

#endif
