/* SPDX-License-Identifier: MIT
 * peer_types.h - types of values by the names that the package gguf has for them, as references give them. */
#ifndef TESTS_LIB_PEER_TYPES_H
#define TESTS_LIB_PEER_TYPES_H
#include "../../libgguf/ggu.h"

static inline const char *peer_type_name(enum ggu_kv_type t)
{
	static const char *const names[] = { "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT32", "BOOL",
		"STRING", "ARRAY", "UINT64", "INT64", "FLOAT64" };
	return (size_t)t < sizeof names/sizeof *names ? names[t] : "?";
}

#endif
