/* SPDX-License-Identifier: MIT
 * schema.h - what may stand in the `convert` part of a description. Any other key, a value of the wrong kind and an
 * expression that cannot be read are errors with line and column, whether or not this checkpoint comes to them.
 *
 *   names         {NAME: EXPR}                      shorthands
 *   check         {KEY: [EXPR, MESSAGE]}            what config.json must fulfil; KEY says what the message is about
 *   check_layer   {KEY: [EXPR, MESSAGE]}            the same for each layer i
 *   layers experts   EXPR                           what {i} and {x} run over
 *   metadata      {KEY: [TYPE, EXPR]} or {KEY: {type: value: or list: or each: when:}}: one value, a list of them as
 *                 config.json has it, or what EXPR is for each layer i; the architecture's name is put before KEYs but
 *                 those that begin with tokenizer.
 *   needs         {KEY: EXPR}                       of metadata: keys whose value may not be null, where EXPR holds
 *   tensors       {NAME: SOURCE}                    see plan.h
 *   drop          {PATTERN: EXPR}                   checkpoint tensors that are of no use, where EXPR holds
 *   copies        {NAME: {of: NAME, when: EXPR}}    see copies.h
 *   strip         {PREFIX: PREFIX}                  prefixes that names may have, and what the description has instead
 *   ignore        {PATTERN: EXPR}                   keys of config.json that change no number, where EXPR, in which
 *                                                   `value` is the key's value, holds
 *   matters       {PATTERN: EXPR}                   keys that must not be passed over, unless EXPR, the same way, says
 *                                                   that this one is harmless
 *   vocab         {KEY: EXPR}                       what the folder does not say: pre (tokenizer.ggml.pre, where
 *                                                   several names fit), add_space_prefix, config_prefix (that of
 *                                                   tokenizer_config.json counts), add_bos, eot */
#ifndef CONVERT_SCHEMA_H
#define CONVERT_SCHEMA_H
#include "config.h"

enum ggu_status schema_check(const struct config *c, struct ggu_error *err);

#endif
