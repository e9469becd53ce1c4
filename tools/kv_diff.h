/* SPDX-License-Identifier: MIT
 * kv_diff.h - shows the differences of two metadata values. Programs only. */
#ifndef TOOLS_KV_DIFF_H
#define TOOLS_KV_DIFF_H
#include "../libgguf/ggu.h"

/* Are type and all items the same, floats to the bit? */
bool kv_same(const struct ggu_kv *a, const struct ggu_kv *b);
/* One side of a line: the value and its type, and, for two arrays or strings that begin alike, where they begin to
 * differ. kv NULL: "absent"; other may be NULL too. The caller frees it; exits 2 out of memory. */
char *kv_side_text(const struct ggu_kv *kv, const struct ggu_kv *other);
/* Prints how two strings differ line by line, or two arrays of one type item by item; nothing for other pairs. */
void kv_print_unified(const struct ggu_kv *a, const struct ggu_kv *b);

#endif
