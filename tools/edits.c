/* SPDX-License-Identifier: MIT
 * edits.c - see edits.h. Metadata are edited in a copy, names of tensors in a list of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/size.h"
#include "../model/util/file.h"
#include "edit_value.h"
#include "edits.h"
#include "load.h"
#include "msg.h"

/* ---- the arguments ---- */

static char *copy_of(const char *s, size_t n)
{
	return msg_need(strndup(s, n));
}

static const struct { const char *option, *form; } kinds[] = {
	[EDIT_SET] = { "--set", "KEY=TYPE:VALUE" }, [EDIT_SET_FILE] = { "--set-file", "KEY=TYPE:FILE" },
	[EDIT_RENAME] = { "--rename", "OLD=NEW" }, [EDIT_RENAME_TENSOR] = { "--rename-tensor", "OLD=NEW" },
};

/* The bytes of TYPE in "TYPE:VALUE", what follows KEY= in the argument; *value is what follows the colon. */
static size_t type_bytes(const struct edit *e, const char *key, const char *type, const char **value)
{
	const char *colon = strchr(type, ':');
	if (!colon)
		msg_usage("%s: no type: %s expects %s, such as %s=str:%.20s", key, kinds[e->kind].option,
			kinds[e->kind].form, key, type);
	*value = colon + 1;
	return (size_t)(colon - type);
}

static _Noreturn void no_such_form(const struct edit *e)
{
	msg_usage("%s expects %s, not '%s'", kinds[e->kind].option, kinds[e->kind].form, e->arg);
}

/* The part of "KEY=..." or "OLD=NEW" before the equals sign, which the caller frees; *rest is what follows the sign. */
static char *part(const struct edit *e, const char **rest)
{
	const char *eq = strchr(e->arg, '=');
	bool new_name = e->kind == EDIT_RENAME || e->kind == EDIT_RENAME_TENSOR;
	if (!eq || eq == e->arg || (new_name && !eq[1])) no_such_form(e);
	*rest = eq + 1;
	return copy_of(e->arg, (size_t)(eq - e->arg));
}

void edits_read_files(struct edits *all, const char *model)
{
	bool taken = !strcmp(model, "-");
	for (size_t i = 0; i < all->n; i++) {
		struct edit *e = all->v + i;
		const char *type, *path;
		char *key;
		if (e->kind != EDIT_SET_FILE) continue;
		key = part(e, &type);
		type_bytes(e, key, type, &path);
		if (!*path) no_such_form(e);
		if (!strcmp(path, "-")) {
			if (taken)
				msg_usage("--set-file %s: standard input is already read for %s", key,
					strcmp(model, "-") ? "another key" : "the model");
			taken = true;
		}
		e->text = load_text(path, LOAD_SMALL, &e->n);
		e->file = path;
		free(key);
	}
}

/* ---- the edits ---- */

static void apply_set(struct edited *m, const struct edit *e)
{
	struct edit_value v = { .in_file = e->file != NULL };
	char *key = part(e, &v.type);
	v.type_n = type_bytes(e, key, v.type, &v.text);
	v.n = v.in_file ? e->n : strlen(v.text);
	if (v.in_file) v.text = e->text;
	edit_value(m->meta, key, &v);
	free(key);
}
static void apply_rename(struct edited *m, const struct edit *e)
{
	const char *to;
	char *from = part(e, &to);
	enum ggu_status s = ggu_meta_rename(m->meta, from, to);
	if (s == GGU_ERR_MISSING) msg_die("%s: no key '%s'", msg_name(m->name), from);
	if (s == GGU_ERR_STATE) msg_die("%s: key '%s' already exists", msg_name(m->name), to);
	if (s == GGU_ERR_NOMEM) msg_die("out of memory");
	if (s) msg_usage("--rename %s: the new key is too long", e->arg);
	free(from);
}
static struct ggu_str tensor_name(const void *m, size_t i)
{
	const char *name = ((const struct edited *)m)->tensor[i];
	return (struct ggu_str){ name, strlen(name) };
}
static size_t find_tensor(const struct edited *m, const char *name)
{
	return ggu_index_find(&m->index, m, tensor_name, name, strlen(name));
}
static void name_tensor(struct edited *m, size_t i, char *name)
{
	m->tensor[i] = name;
	if (!ggu_index_add(&m->index, m, tensor_name, i)) msg_die("out of memory");
}
static void apply_rename_tensor(struct edited *m, const struct edit *e)
{
	const char *to;
	char *from = part(e, &to);
	size_t i = find_tensor(m, from), other = find_tensor(m, to);
	if (i == SIZE_MAX) msg_die("%s: no tensor '%s'", msg_name(m->name), from);
	if (other != SIZE_MAX && other != i) msg_die("%s: tensor '%s' already exists", msg_name(m->name), to);
	if (other != i) {
		free(m->tensor[i]);
		name_tensor(m, i, copy_of(to, strlen(to)));
	}
	free(from);
}
static void apply(struct edited *m, const struct edits *all)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct edit *e = all->v + i;
		switch (e->kind) {
		case EDIT_SET: case EDIT_SET_FILE: apply_set(m, e); break;
		case EDIT_RENAME: apply_rename(m, e); break;
		case EDIT_RENAME_TENSOR: apply_rename_tensor(m, e); break;
		case EDIT_DELETE:
			if (ggu_meta_remove(m->meta, e->arg)) break;
			msg_die("%s: no key '%s'", msg_name(m->name), e->arg);
		}
	}
}

void edits_free(struct edits *e)
{
	for (size_t i = 0; i < e->n; i++) free(e->v[i].text);
	free(e->v);
}

/* ---- the model ---- */

/* Refuses a new split.count to which the name does not fit: no program opens such a file. A file that was wrong before
 * stays wrong. */
static void refuse_lone_shard(const struct edited *m, const char *name)
{
	const struct ggu_kv *kv = ggu_meta_find(m->meta, "split.count");
	uint64_t n = 0, was = 0;
	char end[40];
	if (!kv) return;
	if (!ggu_kv_uint(kv, 0, &n) || ggu_kv_type(kv) == GGU_ARRAY)
		msg_die("split.count: expects an unsigned integer, not %s", ggu_kv_type_name(ggu_kv_type(kv)));
	ggu_meta_uint(ggu_file_meta(m->f), "split.count", &was);
	snprintf(end, sizeof end, "-of-%05llu.gguf", (unsigned long long)n);
	if (n > 1 && n != was && !(name && file_ends_with(name, end)))
		msg_die("split.count: the name of one file of %llu must end in %s; use gguf-split to make shards",
			(unsigned long long)n, end);
}

/* Offsets stay, unless the alignment changes or several shards become one file: then they are computed anew. */
static void place(struct edited *m)
{
	uint64_t align = 32, at = 0;
	ggu_meta_uint(m->meta, "general.alignment", &align);
	m->moved = align != ggu_file_alignment(m->f, 0) || ggu_file_n_sources(m->f) > 1;
	for (size_t i = 0; i < m->n; i++) m->offset[i] = ggu_file_tensor(m->f, i)->offset;
	for (size_t i = 0; i < m->n && m->moved && align; i++) {
		const struct ggu_tensor *t = ggu_file_in_data_order(m->f, i);
		m->offset[t - ggu_file_tensor(m->f, 0)] = at;
		at = size_aligned(at + t->bytes, align);
	}
}

void edited_make(struct edited *m, const struct edits *e, const char *to)
{
	m->n = ggu_file_n_tensors(m->f);
	m->tensor = msg_need(calloc(m->n + 1, sizeof *m->tensor));
	m->offset = msg_need(calloc(m->n + 1, sizeof *m->offset));
	if (ggu_meta_copy(&m->meta, ggu_file_meta(m->f))) msg_die("out of memory");
	for (size_t i = 0; i < m->n; i++)
		name_tensor(m, i, copy_of(ggu_file_tensor(m->f, i)->name, ggu_file_tensor(m->f, i)->name_bytes));
	apply(m, e);
	refuse_lone_shard(m, to);
	place(m);
}
void edited_free(struct edited *m)
{
	for (size_t i = 0; i < m->n; i++) free(m->tensor[i]);
	free(m->tensor);
	ggu_index_free(&m->index);
	free(m->offset);
	ggu_meta_free(m->meta);
}
