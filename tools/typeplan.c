/* SPDX-License-Identifier: MIT
 * typeplan.c - see typeplan.h. A plan's tensors are found by name in a sorted list; without a plan, recipe.h chooses,
 * and wishes (typewish.h) override it. */
#include <errno.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../libgguf/text.h"
#include "../libgguf/types.h"
#include "../model/util/file.h"
#include "../model/util/yaml.h"
#include "../quant/quant.h"
#include "msg.h"
#include "near.h"
#include "typeplan.h"
#include "typewish.h"

enum { NO_TYPE = 600 };

static const char *no_type(const char *name, char text[NO_TYPE])
{
	struct near near = { .asked = name };
	char list[400] = "", hint[NEAR_BYTES];
	for (uint32_t i = 0; i < GGU_TYPE_COUNT; i++) {
		if (!quant_can_encode(i)) continue;
		near_try(&near, ggu_type_info(i)->name);
		snprintf(list + strlen(list), sizeof list - strlen(list), " %s", ggu_type_info(i)->name);
	}
	snprintf(text, NO_TYPE, "'%.60s' is not a type that can be encoded%s%s", name,
		near.best ? near_hint(&near, "", hint) : "; the types are:", near.best ? "" : list);
	return text;
}
uint32_t typeplan_type(const char *option, const char *name)
{
	const struct ggu_type_info *info = ggu_type_find(name);
	char text[NO_TYPE];
	if (!info || !quant_can_encode(info->id)) msg_usage("%s: %s", option, no_type(name, text));
	return info->id;
}

static FILE *open_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) msg_die("%s: %s", path, strerror(errno));
	return f;
}
void typeplan_list_recipes(void)
{
	fputs("Recipes:\n", stderr);
	for (size_t i = 0; recipe_at(i); i++)
		fprintf(stderr, "  %-10s %s\n", recipe_name(recipe_at(i)), recipe_summary(recipe_at(i)));
}
void typeplan_no_recipe(const char *const *v, int n)
{
	for (int i = 0; i < n; i++) {
		struct near near = { .asked = v[i] };
		char hint[NEAR_BYTES];
		for (size_t k = 0; recipe_at(k); k++) near_try(&near, recipe_name(recipe_at(k)));
		if (near.best) msg_usage("%s is not a recipe%s", v[i], near_hint(&near, "", hint));
	}
	typeplan_list_recipes();
	if (n > 1) msg_usage("neither %s nor %s is a recipe", v[0], v[1]);
	msg_usage("%s%sno recipe given", n ? v[0] : "", n ? ": " : "");
}
bool typeplan_sha256(const char *path, char hex[65])
{
	struct sha256_ctx ctx;
	uint8_t buf[4096], digest[SHA256_DIGEST_SIZE];
	FILE *f;
	struct stat st;
	size_t n;
	/* before opening it, which would wait for a writer */
	if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode)) return false;
	f = open_file(path);
	sha256_init(&ctx);
	while ((n = fread(buf, 1, sizeof buf, f)) > 0) sha256_update(&ctx, n, buf);
	if (ferror(f)) msg_die("%s: %s", path, strerror(errno));
	fclose(f);
	sha256_digest(&ctx, sizeof digest, digest);
	for (size_t i = 0; i < sizeof digest; i++) snprintf(hex + 2*i, 3, "%02x", digest[i]);
	return true;
}

enum { PLAN_MAX = 64 << 20 };
/* name: as in a plan, in its own memory; line: of the plan, 0: not there so far */
struct by_name { char *name; size_t at; unsigned line; };
struct plan {
	const char *path;                       /* for messages */
	bool may_need_matrix;
	const struct ggu_tensor *const *t;
	size_t n;
	struct by_name *index;                  /* [n], sorted */
	struct recipe_choice *choice;
};
static int name_order(const void *a, const void *b)
{
	return strcmp(((const struct by_name *)a)->name, ((const struct by_name *)b)->name);
}
static int name_is(const void *name, const void *b) { return strcmp(name, ((const struct by_name *)b)->name); }
/* Is it a list of dimensions, those of t? Ones at the end are ignored. */
static bool is_shape(const struct yaml_node *list, const struct ggu_tensor *t)
{
	if (list->kind != YAML_SEQUENCE) return false;
	for (size_t d = 0; d < list->count || d < t->n_dims; d++) {
		char want[24] = "1";
		if (d < t->n_dims) snprintf(want, sizeof want, "%llu", (unsigned long long)t->ne[d]);
		if (d < list->count ? !yaml_is(list->items[d], want) : strcmp(want, "1") != 0) return false;
	}
	return true;
}
static void plan_item(const struct plan *p, const struct yaml_node *item)
{
	const struct yaml_node *name = yaml_get(item, "tensor"), *type = yaml_get(item, "type"),
		*shape = yaml_get(item, "shape");
	struct by_name *found;
	const struct ggu_type_info *info;
	const struct ggu_tensor *t;
	char text[NO_TYPE];
	uint32_t to;
	uint64_t unused;
	if (!name || !type || name->kind != YAML_SCALAR || type->kind != YAML_SCALAR)
		msg_die("%s: line %u: expected tensor and type", p->path, item->line);
	found = bsearch(name->text, p->index, p->n, sizeof *p->index, name_is);
	if (!found || strlen(name->text) != name->n)
		msg_die("%s: line %u: the model has no tensor '%s'", p->path, item->line, name->text);
	if (found->line)
		msg_die("%s: line %u: %s was already given in line %u", p->path, item->line, name->text, found->line);
	found->line = item->line;
	t = p->t[found->at];
	if (shape && !is_shape(shape, t))
		msg_die("%s: line %u: %s has another shape in the model: is the plan for another one?", p->path,
			item->line, name->text);
	info = ggu_type_find(type->text);
	if (!info || !(info->id == t->type || quant_can_encode(info->id)))
		msg_die("%s: line %u: %s", p->path, item->line, no_type(type->text, text));
	to = info->id;
	if (!ggu_type_bytes(to, t->ne[0], &unused))
		msg_die("%s: line %u: rows of %llu weight%s are not a whole number of %s blocks", p->path, item->line,
			(unsigned long long)t->ne[0], text_s(t->ne[0]), ggu_type_info(to)->name);
	if (!p->may_need_matrix && to != t->type && quant_needs_importance(to) && !recipe_needs_no_importance(t->name))
		msg_die("%s: line %u: %s as %s needs an importance matrix (-i FILE)", p->path, item->line, name->text,
			ggu_type_info(to)->name);
	p->choice[found->at] = (struct recipe_choice){ to, to, to == t->type ? RECIPE_LEFT_ALONE : RECIPE_OVERRIDE };
}
/* Decodes a name that was written as typeplan.h says: a byte that is not UTF-8 is the character U+00NN. */
static char *name_in_plan(const struct ggu_tensor *t)
{
	char *to = msg_need(malloc(2*(size_t)t->name_bytes + 1)), *o = to;
	const char *s = t->name, *end = s + t->name_bytes;
	for (size_t len; s < end; s += len) {
		uint32_t c;
		bool fit;
		len = text_character(s, (size_t)(end - s), &c, &fit);
		if (len) {
			memcpy(o, s, len);
			o += len;
		} else {
			*o++ = (char)(0xc0 | c >> 6);
			*o++ = (char)(0x80 | (c & 0x3f));
			len = 1;
		}
	}
	*o = 0;
	return to;
}
static void from_plan(const char *path, bool may_need_matrix, const struct ggu_tensor *const *t, size_t n,
	struct recipe_choice *choice)
{
	struct plan p = { msg_name(path), may_need_matrix, t, n, msg_need(calloc(n + 1, sizeof *p.index)), choice };
	struct yaml_doc *doc;
	struct ggu_error err;
	size_t bytes;
	char *text;
	const struct yaml_node *root;
	if (file_slurp_any(path, PLAN_MAX, &text, &bytes, &err)) msg_die_error(path, &err);
	for (size_t i = 0; i < n; i++) {
		p.index[i] = (struct by_name){ name_in_plan(t[i]), i, 0 };
		choice[i] = (struct recipe_choice){ t[i]->type, t[i]->type, RECIPE_LEFT_ALONE };
	}
	qsort(p.index, n, sizeof *p.index, name_order);
	if (yaml_doc_parse(&doc, path, text, bytes, &err) != GGU_OK) msg_die_error(path, &err);
	root = yaml_doc_root(doc);
	if (!root || root->kind != YAML_SEQUENCE) msg_die("%s: not a list of tensors and types", p.path);
	for (size_t i = 0; i < root->count; i++) plan_item(&p, root->items[i]);
	yaml_doc_free(doc);
	for (size_t i = 0; i < n; i++) free(p.index[i].name);
	free(p.index);
	free(text);
}
/* The recipe that is nearest to a mixture, judged by the type of most weights. */
static uint32_t nearest_file_type(const struct ggu_tensor *const *t, size_t n, const struct recipe_choice *choice)
{
	uint64_t weights[GGU_TYPE_COUNT] = { 0 };
	uint32_t most = 0;
	for (size_t i = 0; i < n; i++) weights[choice[i].type] += t[i]->ne[0]*ggu_tensor_rows(t[i]);
	for (uint32_t k = 1; k < GGU_TYPE_COUNT; k++) if (weights[k] > weights[most]) most = k;
	for (size_t i = 0; recipe_at(i); i++)
		if (recipe_type(recipe_at(i)) == most) return recipe_file_type(recipe_at(i));
	return RECIPE_KEEP;
}

/* Warns if the recipe leaves all tensors alone: the output bears its name, and is as large as the input. */
static void tell_of_idleness(const struct recipe *r, const char *name, const struct recipe_choice *choice, size_t n)
{
	size_t i = 0;
	while (i < n && choice[i].reason == RECIPE_LEFT_ALONE) i++;
	if (i == n && n && recipe_type(r) != RECIPE_KEEP)
		msg_warn("%s: has no tensor that recipes quantize (several rows, a name that ends in weight): "
			"all stay as they are", msg_name(name));
}

uint32_t typeplan_choose(const struct typeplan_options *p, const struct recipe *r, const char *name,
	const struct ggu_meta *meta, const struct ggu_tensor *const *t, size_t n, struct recipe_choice *choice)
{
	const struct typeplan_given *g = &p->given;
	struct recipe_options ro = p->recipe;
	struct typewish *wishes = typewish_new(&g->tensor_type);
	bool wished = g->pure || g->leave_output || g->tensor_type.n || g->output_type || g->embd_type;
	struct ggu_error err;
	enum ggu_status s;
	uint32_t ftype;
	ro.pure |= g->pure;
	ro.leave_output |= g->leave_output;
	ro.override = typewish_find;
	ro.override_ctx = wishes;
	ro.output_type = g->output_type ? (int)typeplan_type("--output-tensor-type", g->output_type) : -1;
	ro.token_embd_type = g->embd_type ? (int)typeplan_type("--token-embedding-type", g->embd_type) : -1;
	if (p->plan) {
		if (wished) msg_usage("--plan names every type: it cannot be combined with options that choose types");
		from_plan(p->plan, ro.have_importance || ro.need_nothing, t, n, choice);
		ftype = nearest_file_type(t, n, choice);
	} else {
		s = recipe_choose(r, &ro, meta, t, n, choice, &err);
		if (s == GGU_ERR_MISSING) msg_die("%s: %s: %s (-i FILE)", msg_name(name), err.where, err.what);
		if (s) msg_die_error(name, &err);
		typewish_report(wishes);
		tell_of_idleness(r, name, choice, n);
		ftype = recipe_file_type(r);
	}
	typewish_free(wishes);
	return ftype;
}
