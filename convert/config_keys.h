/* SPDX-License-Identifier: MIT
 * config_keys.h - which keys of config.json have been read.
 *
 * If no rule of its description knew about a key, a model that needs the key would be converted into one that computes
 * something else. So every key that a rule reads is marked, and the others are checked against the description's
 * `ignore` and `matters`. */
#ifndef CONVERT_CONFIG_KEYS_H
#define CONVERT_CONFIG_KEYS_H
#include <jansson.h>
#include "../libgguf/ggu.h"

struct config_keys;
enum ggu_status config_keys_new(struct config_keys **out, const json_t *root, struct ggu_error *err);
void config_keys_free(struct config_keys *k);
void config_keys_mark(struct config_keys *k, const json_t *object, const char *name);
bool config_keys_marked(const struct config_keys *k, const json_t *object, const char *name);

#endif
