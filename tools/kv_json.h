/* SPDX-License-Identifier: MIT
 * kv_json.h - metadata and other values as JSON, exactly: what JSON cannot hold becomes a string. Programs only.
 *
 *   NaN, infinities       "NaN", "Infinity", "-Infinity"
 *   integers over 2^53    decimal strings, since readers keep numbers as doubles
 *   bytes, not UTF-8      U+FFFD for each; the exact bytes as hex beside, see kv_json_raw
 * All functions exit 2 out of memory. */
#ifndef TOOLS_KV_JSON_H
#define TOOLS_KV_JSON_H
#include <jansson.h>
#include "../libgguf/ggu.h"

json_t *json_of_uint(uint64_t v);
json_t *json_of_double(double v);
json_t *json_of_str(struct ggu_str s);
/* A tensor's sizes: [2048, 32000] */
json_t *json_of_shape(const struct ggu_tensor *t);
/* The bytes as hex digits if they are not UTF-8, else NULL. */
json_t *json_raw(struct ggu_str s);
/* A pair's value: scalar, or all items of an array. */
json_t *kv_json(const struct ggu_kv *kv);
/* What kv_json could not show: hex digits for a string, {"index": hex} for an array; NULL if nothing. */
json_t *kv_json_raw(const struct ggu_kv *kv);
/* "u32", "str", "array of str" */
const char *kv_type_text(const struct ggu_kv *kv);
/* Sets key; the value is taken over. */
void json_put(json_t *object, const char *key, json_t *value);
/* Sets key to s, and, if s is not UTF-8, key_raw to its bytes. */
void json_put_str(json_t *object, const char *key, struct ggu_str s);
void json_push(json_t *array, json_t *value);
/* The document and a newline on stdout; exits 2 if that fails. layout: JSON_INDENT(1) or JSON_COMPACT. Frees j. */
void json_print(json_t *j, size_t layout);

/* The same with what is in the array `all`, an item for each file that could be read, as a list or, if there is only
 * one file, as it is. Nothing if no file could be read, so that whoever reads this does not take it for an answer. */
void json_print_files(json_t *all, bool as_list);

#endif
