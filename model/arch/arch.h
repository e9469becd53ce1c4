/* SPDX-License-Identifier: MIT
 * arch.h - the registry of architecture descriptions, model/arch/NAME.yaml.
 *
 *   schema: 1
 *   arch: NAME          general.architecture
 *   like: NAME          the description that this one is laid over; or a list of them, [NAME, ...]
 *   fallback: true      used for folders without config.json, if only the vocabulary is wanted
 *   defaults: {...}     what config.json may leave out, for all classes
 *   classes: {...}      Hugging Face classes, each with what its config.json may leave out
 *   convert: {...}      config.json and checkpoint to GGUF: read by convert/ (config.h, plan.h)
 *   graph: {...}        what the evaluator does: read by model/eval/graph.c
 *
 * like: what a description does not give is taken from the one below. Mappings merge by key, at any depth, the lower
 * one's keys first; a list or a scalar replaces what is below; null removes the key, which must be there, and must be
 * written: nothing at all is an error. Only `classes` and `fallback` are not taken over, since a class belongs to one
 * description; a description without classes is not an architecture, but a base, there for others to be like. So
 * whatever many descriptions vary is a mapping; shorthands under `names` can be replaced one by one.
 *
 * like: [a, b] lays b over a, and the description over both. What a and b are like themselves is laid once, where it is
 * first needed: if both are like common, the order is common, a, b. If b is like a, it is that of `like: b`. So a text
 * is always above what it is like, and below what is named after it, unless that is already below something. Where b
 * removes a key that a has removed, too, nothing happens; in a description's own text this is an error. Where b changes
 * part of what a has removed, only that part is there: then name b first.
 *
 * make embeds the files' text. arch_set_add_file adds one at run time, which replaces an earlier one of the same name
 * and takes over the classes that it lists. It may be like the earlier one of its own name, and like others that were
 * added before. Those that are like the earlier one do not change. CONTRIBUTING.md has an example. */
#ifndef MODEL_ARCH_H
#define MODEL_ARCH_H
#include "../util/yaml.h"

struct arch {
	const char *name;                       /* general.architecture */
	const char *file;                       /* "llama.yaml", or the name of an added one (file_named) */
	bool fallback;
	/* convert and graph may come from another file: nodes say which */
	const struct yaml_node *classes, *defaults, *convert, *graph;
};
struct arch_set;
enum ggu_status arch_set_new(struct arch_set **out, struct ggu_error *err);     /* with the built-in ones */
/* with the built-in ones, and those of files[0..n-1], added in order */
enum ggu_status arch_set_open(struct arch_set **out, const char *const *files, size_t n, struct ggu_error *err);
enum ggu_status arch_set_empty(struct arch_set **out, struct ggu_error *err);   /* without them */
/* text[n] is copied; file is its name in messages */
enum ggu_status arch_set_add(struct arch_set *s, const char *file, const char *text, size_t n, struct ggu_error *err);
enum ggu_status arch_set_add_file(struct arch_set *s, const char *path, struct ggu_error *err);
void arch_set_free(struct arch_set *s);

/* A built-in description is parsed when one of these functions needs it, so each may fail for lack of memory. What they
 * find is valid until arch_set_free; *found is NULL if there is none. If what has the name is a base, or what has the
 * class was replaced by one, they fail and name it: its author may not know that classes are not inherited. */
enum ggu_status arch_find(struct arch_set *s, const char *name, const struct arch **found,
	struct ggu_error *err);                                                 /* by general.architecture */
/* by Hugging Face class ("LlamaForCausalLM"); class_node: its entry under `classes`, with its defaults */
enum ggu_status arch_find_class(struct arch_set *s, const char *hf_class, const struct arch **found,
	const struct yaml_node **class_node, struct ggu_error *err);
enum ggu_status arch_find_fallback(struct arch_set *s, const struct arch **found, struct ggu_error *err);

/* Reads all descriptions. Then arch_count and arch_at give those with classes, sorted by name. */
enum ggu_status arch_set_all(struct arch_set *s, struct ggu_error *err);
size_t arch_count(const struct arch_set *s);
const struct arch *arch_at(const struct arch_set *s, size_t i);

#endif
