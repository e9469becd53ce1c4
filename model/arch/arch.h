/* SPDX-License-Identifier: MIT
 * arch.h - the registry of architecture descriptions, model/arch/NAME.yaml.
 *
 * make embeds the files' text; arch_set_add_file adds one at run time, which wins over a built-in one of its name and
 * takes the classes that it lists.
 * A description has three parts: `arch` and `classes` (read here), `convert` (read by convert/) and `graph`
 * (read by model/eval/graph.c). CONTRIBUTING.md explains the schema with an example. */
#ifndef MODEL_ARCH_H
#define MODEL_ARCH_H
#include "../util/yaml.h"

struct arch {
	const char *name;                       /* general.architecture */
	const char *file;                       /* "llama.yaml", or the path of an added one, which has a slash in it */
	const struct yaml_node *root, *convert, *graph;
};
struct arch_set;
enum ggu_status arch_set_new(struct arch_set **s, struct ggu_error *err);       /* the built-in ones, checked */
enum ggu_status arch_set_empty(struct arch_set **s, struct ggu_error *err);     /* without them */
/* text[n] is copied; file is its name in messages */
enum ggu_status arch_set_add(struct arch_set *s, const char *file, const char *text, size_t n, struct ggu_error *err);
enum ggu_status arch_set_add_file(struct arch_set *s, const char *path, struct ggu_error *err);
void arch_set_free(struct arch_set *s);
size_t arch_count(const struct arch_set *s);
const struct arch *arch_at(const struct arch_set *s, size_t i);                 /* sorted by name */
const struct arch *arch_find(const struct arch_set *s, const char *name);       /* by general.architecture */
/* by Hugging Face class ("LlamaForCausalLM"); class_node: its entry under `classes`, with its defaults */
const struct arch *arch_find_class(const struct arch_set *s, const char *hf_class, const struct yaml_node **class_node);

#endif
