/* SPDX-License-Identifier: MIT
 * kv_text.h - a metadata value in a line fit for a terminal. Programs only. */
#ifndef TOOLS_KV_TEXT_H
#define TOOLS_KV_TEXT_H
#include "../libgguf/ggu.h"

/* The value, masked; long strings and arrays are cut so that about `width` columns are taken, with the full
 * length after: `"{{ bos_tok"... (1832 bytes)`, `[1, 2, 3, ... 32000 in all]`. Numbers read back exactly.
 * The caller frees it; exits 2 out of memory. */
char *kv_text(const struct ggu_kv *kv, size_t width);
char *kv_item_text(const struct ggu_kv *kv, size_t i);         /* item i in the same form, not cut */

#endif
