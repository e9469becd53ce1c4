/* SPDX-License-Identifier: MIT
 * pickle.h - the values of a Python pickle that holds a state dict of tensors. Nothing in it is ever run.
 *
 * A pickle is a program for a stack machine. Here its opcodes build plain values. "Globals", the classes and functions
 * that Python would import and call, are names looked up in a table (pickle.c), which has only what torch.save writes
 * for a state dict. Any other opcode or global is refused by its name. Source: Lib/pickletools.py of CPython (opcodes),
 * torch/_utils.py and torch/serialization.py of PyTorch (globals). */
#ifndef CONVERT_PICKLE_H
#define CONVERT_PICKLE_H
#include "../libgguf/ggu.h"

enum pickle_kind {
	PICKLE_NONE, PICKLE_BOOL, PICKLE_INT, PICKLE_FLOAT, PICKLE_STR,
	PICKLE_TUPLE, PICKLE_LIST, PICKLE_DICT,         /* items; of a dict: key, value, key, value */
	PICKLE_GLOBAL, PICKLE_STORAGE, PICKLE_TENSOR,
};
struct pickle_value;
struct pickle_items { const struct pickle_value **v; size_t n, cap; };
struct pickle_str { const char *p; size_t n; };         /* no NUL at its end */
struct pickle_storage {
	const char *dtype;              /* as safetensors calls it; NULL: bytes without a type */
	struct pickle_str key;          /* name of the member that holds it */
	int64_t n;                      /* elements */
};
struct pickle_tensor {
	const struct pickle_storage *storage;
	const char *dtype;
	int64_t offset;                 /* of its first element in the storage, in elements */
	const struct pickle_items *size, *stride;       /* integers, slowest dimension first */
};
struct pickle_value {
	enum pickle_kind kind;
	union {
		bool b;
		int64_t i;
		double f;
		struct pickle_str s;
		struct pickle_items items;
		const struct pickle_global *global;
		struct pickle_storage storage;
		struct pickle_tensor tensor;
	} u;
};
struct pickle;

/* Reads n bytes at text, which must stay as long as the values are used and are at byte `base` of the file named
 * `file`. Values may contain themselves. Memory: up to some 100 bytes for each byte of the pickle. */
enum ggu_status pickle_read(struct pickle **out, const unsigned char *text, size_t n, const char *file, uint64_t base,
	struct ggu_error *err);
void pickle_free(struct pickle *p);
const struct pickle_value *pickle_root(const struct pickle *p);
/* A dict's value for a key; NULL: not a dict, or no such key. */
const struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key);

#endif
