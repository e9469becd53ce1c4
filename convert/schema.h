/* SPDX-License-Identifier: MIT
 * schema.h - what the `convert` part of a description may contain. Any other key, a value of the wrong kind and an
 * expression that cannot be parsed are errors with line and column, whether or not this checkpoint uses them.
 *
 *   names         {NAME: EXPR}                      shorthands; in its own expression, and if it is null, a name is the
 *                                                   key of config.json
 *   check         {KEY: [EXPR, MESSAGE]}            conditions on config.json; KEY is what the message is about
 *   check_layer   {KEY: [EXPR, MESSAGE]}            the same for each layer i
 *   layers experts   EXPR                           what {i} and {x} run over
 *   metadata      {KEY: [TYPE, EXPR]} or {KEY: {type: value: or list: or each: when:}}: one value, a list from
 *                 config.json, or a list of EXPR for each layer i. The architecture's name is put before KEY, unless it
 *                 begins with tokenizer.
 *   needs         {KEY: EXPR}                       keys of metadata whose value may not be null if EXPR holds
 *   others        {KEY: true}                       keys of metadata that only other readers need: any that the
 *                                                   description adds itself should be in an expression of its graph,
 *                                                   or it is an error
 *   tensors       {NAME: SOURCE}                    see plan.h
 *   drop          {PATTERN: EXPR}                   checkpoint tensors that are not needed if EXPR holds
 *   copies        {NAME: {of: NAME, when: EXPR}}    see copies.h
 *   strip         {PREFIX: PREFIX}                  prefixes that names may have, and what the description has instead
 *   endings       {ENDING: ENDING}                  the same for endings
 *   ignore        {PATTERN: EXPR}                   keys of config.json that change no number if EXPR holds, in which
 *                                                   `value` is the key's value
 *   matters       {PATTERN: EXPR}                   keys that must not be ignored, unless EXPR, with the same `value`,
 *                                                   says that this one is harmless
 *   vocab         {KEY: EXPR}                       what the folder does not say: pre (tokenizer.ggml.pre, if several
 *                                                   names are possible), add_space_prefix, config_prefix (whether that
 *                                                   of tokenizer_config.json counts), add_bos, kind (what a model
 *                                                   without a name is called, by which llama.cpp may know the
 *                                                   vocabulary; if null, after the architecture), and special tokens,
 *                                                   by their id or text: bos eos unk sep pad mask eot eom
 *
 * A key that `and`, `or`, `??` or `?:` skipped has not been read, since it does not count for this model: with `not
 * windows or sliding_window != 0`, a model without windows leaves its sliding_window to `matters`. Where such a key is
 * harmless, `ignore` says so.
 * A key that no expression has read is ignored if any pattern of `ignore` that fits says so. Of the patterns of
 * `matters` that fit it, one decides: the key itself, or else that with the most characters besides * (of several, the
 * last). So `attn_config.clip: value <= 8` is an exception to `attn_config.*: false`, whichever of two descriptions has
 * which, if one is like the other. */
#ifndef CONVERT_SCHEMA_H
#define CONVERT_SCHEMA_H
#include "config.h"

enum ggu_status schema_check(const struct config *c, struct ggu_error *err);

#endif
