/* SPDX-License-Identifier: MIT
 * yaml.h - a YAML document as a tree, by libyaml. For architecture files, plans and model cards.
 *
 * A node is a scalar, a sequence or a mapping and knows its place in the text, so that errors can name it. Aliases are
 * followed without copying; depth is limited to 64 and nodes to a million.
 *
 * One document can be laid over another (yaml_doc_over): mappings merge by key, the lower one's keys first; a list or a
 * scalar replaces what is below; a null removes the key, but only if it is written. Each node keeps the place where it
 * was written. Names avoid those that libyaml exports (yaml_free is one). */
#ifndef MODEL_UTIL_YAML_H
#define MODEL_UTIL_YAML_H
#include "../../libgguf/ggu.h"

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };
struct yaml_node {
	enum yaml_kind kind;
	const char *file;               /* the name that was given with the text */
	unsigned line, column;          /* of the first character, from 1 */
	bool plain;                     /* scalar without quotes: null, true and numbers are not strings */
	const char *text; size_t n;     /* scalar; NUL-terminated */
	size_t count;                   /* sequence: items; mapping: pairs */
	const struct yaml_node *const *items;   /* values, in order */
	const struct yaml_node *const *keys;    /* mapping: scalars, in order; else NULL */
};
struct yaml_doc;
/* Parses text[n], one document; file: its name for messages. Errors have "line N, column N" in what. *d stays valid
 * when both are gone. */
enum ggu_status yaml_doc_parse(struct yaml_doc **d, const char *file, const char *text, size_t n,
	struct ggu_error *err);
/* Lays `above` over `below`, both mappings, whose documents must outlive *d. strict: a null that removes nothing is an
 * error; otherwise it has no effect. */
enum ggu_status yaml_doc_over(struct yaml_doc **d, const struct yaml_node *below, const struct yaml_node *above,
	bool strict, struct ggu_error *err);
const struct yaml_node *yaml_doc_root(const struct yaml_doc *d);
void yaml_doc_free(struct yaml_doc *d);
/* NULL: absent or map is not a mapping */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
bool yaml_is(const struct yaml_node *s, const char *text);      /* scalar with this text */
bool yaml_null(const struct yaml_node *s);                      /* NULL, plain ~ or null or empty */
/* The first key of map that is not in `keys`, words separated by blanks; NULL: there is none. */
const struct yaml_node *yaml_stray(const struct yaml_node *map, const char *keys);
/* Is `word` a word of a scalar below `at`? Keys do not count, nor does what follows a dot. Beyond 65536 nodes, true
 * without looking. */
bool yaml_mentions(const struct yaml_node *at, const char *word);

#endif
