/* SPDX-License-Identifier: MIT
 * kv_diff.h - two values of metadata beside each other. Programs only. */
#ifndef TOOLS_KV_DIFF_H
#define TOOLS_KV_DIFF_H
#include "../libgguf/ggu.h"

/* Type and all items are the same; floats to the bit. */
bool kv_same(const struct ggu_kv *a, const struct ggu_kv *b);
/* One side of a line: the value and its type, and where two arrays or strings part that begin alike. kv NULL: "absent";
 * other may be NULL too. The caller frees it; exits 2 out of memory. */
char *kv_side_text(const struct ggu_kv *kv, const struct ggu_kv *other);
/* Two strings, or two arrays of a kind, line by line and item by item on standard output; nothing for other pairs. */
void kv_print_unified(const struct ggu_kv *a, const struct ggu_kv *b);

#endif
