/* SPDX-License-Identifier: MIT
 * checkpoint.c - the files of a checkpoint folder and their tensors, whatever their format; see checkpoint.h.
 *
 * Which files: the first of the `layouts` below that the folder has. Their readers are safetensors.c and torch.c. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/grow.h"
#include "../libgguf/text.h"
#include "checkpoint_internal.h"
#include "coded.h"

enum { MAX_FILES = 100000 };

/* One way in which a folder keeps the tensors of a checkpoint: one file, shards with an index, or files of a
 * pattern. */
struct layout {
	const char *single, *index;             /* NULL: files of the pattern only */
	const char *prefix, *end;
	enum ggu_status (*read)(struct checkpoint *c, uint32_t i, struct ggu_error *err);
};
static const struct layout layouts[] = {
	{ "model.safetensors", "model.safetensors.index.json", "model", ".safetensors", safetensors_read },
	{ "pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model", ".bin", torch_read },
	{ NULL, NULL, "", ".pth", torch_read },
	{ NULL, NULL, "", ".pt", torch_read },
};

static const struct source_dtype dtypes[] = {
	{ "F64", 8, GGU_TYPE_F64 }, { "F32", 4, GGU_TYPE_F32 }, { "F16", 2, GGU_TYPE_F16 },
	{ "BF16", 2, GGU_TYPE_BF16 },
	{ "I64", 8, SOURCE_NO_TYPE }, { "I32", 4, SOURCE_NO_TYPE }, { "I16", 2, SOURCE_NO_TYPE },
	{ "I8", 1, SOURCE_NO_TYPE }, { "U64", 8, SOURCE_NO_TYPE }, { "U32", 4, SOURCE_NO_TYPE },
	{ "U16", 2, SOURCE_NO_TYPE }, { "U8", 1, SOURCE_NO_TYPE }, { "BOOL", 1, SOURCE_NO_TYPE },
	{ "C64", 8, SOURCE_NO_TYPE }, { "F8_E4M3", 1, SOURCE_NO_TYPE }, { "F8_E5M2", 1, SOURCE_NO_TYPE },
	{ "F8_E8M0", 1, SOURCE_NO_TYPE }, { "F8_E4M3FNUZ", 1, SOURCE_NO_TYPE }, { "F8_E5M2FNUZ", 1, SOURCE_NO_TYPE },
};

const struct source_dtype *checkpoint_dtype(const char *name)
{
	for (size_t i = 0; i < sizeof dtypes/sizeof *dtypes; i++) if (!strcmp(dtypes[i].name, name)) return dtypes + i;
	return NULL;
}

enum ggu_status checkpoint_add(struct checkpoint *c, const struct source_tensor *t, const char *name, size_t n,
	struct ggu_error *err)
{
	struct source_tensor *v = ggu_grow(c->tensors, c->n, sizeof *v);
	char *copy = strndup(name, n);
	if (v) c->tensors = v;
	if (!v || !copy) {
		free(copy);
		return ggu_no_memory(err);
	}
	v[c->n] = *t;
	v[c->n++].name = copy;
	return GGU_OK;
}

static void tensor_free(struct source_tensor *t)
{
	free((char *)t->name);
	coded_free(t->coded);
}

void checkpoint_tensors_free(struct checkpoint *c)
{
	for (size_t i = 0; i < c->n; i++) tensor_free(c->tensors + i);
	free(c->tensors);
}

void checkpoint_rows(struct source_tensor *t)
{
	uint64_t stride = 1;
	for (unsigned i = t->n_dims; i-- > 0; stride *= t->shape[i]) t->stride[i] = stride;
	t->n_stored = t->n_weights;
}

/* qsort wants an array, even of nothing. */
static void sort(void *v, size_t n, size_t bytes, int (*compare)(const void *, const void *))
{
	if (n > 1) qsort(v, n, bytes, compare);
}

/* ---- which files ---- */

/* Adds a file, unless it is in the list. */
static enum ggu_status add_shard(struct checkpoint *c, const char *name, struct ggu_error *err)
{
	struct shard *v;
	if (c->n_shards >= MAX_FILES)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name, "more than %d files", MAX_FILES);
	v = ggu_grow(c->shards, c->n_shards, sizeof *v);
	if (v) {
		c->shards = v;
		v[c->n_shards] = (struct shard){ strdup(name), -1, 0 };
		if (v[c->n_shards].name) { c->n_shards++; return GGU_OK; }
	}
	return ggu_no_memory(err);
}

static int by_shard_name(const void *a, const void *b)
{
	return strcmp(((const struct shard *)a)->name, ((const struct shard *)b)->name);
}

static int by_string(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Adds to files[] the file of every tensor of the index, in the order of the index. */
static enum ggu_status indexed_files(const struct layout *l, json_t *map, const char **files, struct ggu_error *err)
{
	json_t *v;
	const char *name;
	json_object_foreach(map, name, v) {
		const char *file = json_string_value(v);
		char where[128];
		snprintf(where, sizeof where, "weight_map.%s", name);
		if (!file || !*file || strchr(file, '/') || !file_ends_with(file, l->end))
			return file_fail(err, GGU_ERR_FORMAT, l->index, GGU_NO_OFFSET, where,
				"not the name of a %s file in the folder", l->end);
		*files++ = file;
	}
	return GGU_OK;
}

static enum ggu_status add_indexed(struct checkpoint *c, const struct layout *l, const json_t *index,
	struct ggu_error *err)
{
	json_t *map = json_object_get(index, "weight_map");
	size_t n = json_object_size(map);
	const char **files;
	enum ggu_status s;
	if (!json_is_object(map))
		return file_fail(err, GGU_ERR_FORMAT, l->index, GGU_NO_OFFSET, "weight_map", "not a JSON object");
	files = malloc((n + 1)*sizeof *files);
	if (!files) return ggu_no_memory(err);
	s = indexed_files(l, map, files, err);
	if (!s) sort(files, n, sizeof *files, by_string);
	for (size_t i = 0; !s && i < n; i++) if (!i || strcmp(files[i - 1], files[i])) s = add_shard(c, files[i], err);
	free(files);
	return s;
}

/* Checks that every tensor of the index is in the file that the index names. */
static enum ggu_status check_index(const struct checkpoint *c, const struct layout *l, const json_t *index,
	struct ggu_error *err)
{
	json_t *v;
	const char *name;
	json_object_foreach(json_object_get(index, "weight_map"), name, v) {
		const struct source_tensor *t = checkpoint_find(c, name);
		char where[128];
		snprintf(where, sizeof where, "weight_map.%s", name);
		if (!t || strcmp(c->shards[t->file].name, json_string_value(v)))
			return file_fail(err, GGU_ERR_MISSING, l->index, GGU_NO_OFFSET, where, "no such tensor in %s",
				json_string_value(v));
	}
	return GGU_OK;
}

/* Adds all files that match the layout's pattern. */
static enum ggu_status add_listed(struct checkpoint *c, const struct layout *l, struct ggu_error *err)
{
	DIR *d = opendir(c->dir);
	struct dirent *e;
	enum ggu_status s = GGU_OK;
	if (!d) return file_fail(err, GGU_ERR_IO, "", GGU_NO_OFFSET, "", "not a readable folder");
	while (!s && (e = readdir(d)) != NULL)
		if (text_starts(e->d_name, l->prefix) && file_ends_with(e->d_name, l->end))
			s = add_shard(c, e->d_name, err);
	closedir(d);
	return s;
}

/* Looks for the layout's files in the folder; index: that of the shards, or NULL. */
static enum ggu_status find_files(struct checkpoint *c, const struct layout *l, json_t **index, struct ggu_error *err)
{
	enum ggu_status s;
	if (l->single && file_exists(c->dir, l->single)) return add_shard(c, l->single, err);
	if (!l->index || !file_exists(c->dir, l->index)) return add_listed(c, l, err);
	s = file_json(c->dir, l->index, index, err);
	return s ? s : add_indexed(c, l, *index, err);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct source_tensor *)a)->name, ((const struct source_tensor *)b)->name);
}
static int by_name_and_file(const void *a, const void *b)
{
	const struct source_tensor *x = a, *y = b;
	int c = by_name(a, b);
	return c ? c : (x->file > y->file) - (x->file < y->file);
}

static enum ggu_status refuse_twins(const struct checkpoint *c, struct ggu_error *err)
{
	for (size_t i = 1; i < c->n; i++)
		if (!strcmp(c->tensors[i - 1].name, c->tensors[i].name))
			return file_fail(err, GGU_ERR_FORMAT, c->shards[c->tensors[i].file].name, GGU_NO_OFFSET,
				c->tensors[i].name, "also in %s", c->shards[c->tensors[i - 1].file].name);
	return GGU_OK;
}

static enum ggu_status read_shards(struct checkpoint *c, const struct layout *l, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	sort(c->shards, c->n_shards, sizeof *c->shards, by_shard_name);
	for (uint32_t i = 0; !s && i < c->n_shards; i++) {
		struct shard *f = c->shards + i;
		s = file_open(c->dir, f->name, &f->fd, &f->bytes, err);
		if (!s) s = l->read(c, i, err);
	}
	if (!s) sort(c->tensors, c->n, sizeof *c->tensors, by_name_and_file);
	return s ? s : refuse_twins(c, err);
}

enum ggu_status checkpoint_replace(struct checkpoint *c, const bool *gone, struct checkpoint *made,
	struct ggu_error *err)
{
	struct source_tensor *all = calloc(c->n + made->n + 1, sizeof *all);
	size_t n = 0;
	if (!all) return ggu_no_memory(err);
	for (size_t i = 0; i < c->n; i++)
		if (gone[i]) tensor_free(c->tensors + i);
		else all[n++] = c->tensors[i];
	for (size_t i = 0; i < made->n; i++) all[n++] = made->tensors[i];
	free(c->tensors);
	free(made->tensors);
	*made = (struct checkpoint){ 0 };
	c->tensors = all;
	c->n = n;
	sort(c->tensors, c->n, sizeof *c->tensors, by_name_and_file);
	return refuse_twins(c, err);
}

/* Says which files of weights there are instead: the first by name, and how many more. */
static enum ggu_status refuse_folder(const char *dir, struct ggu_error *err)
{
	static const char *const ends[] = { ".safetensors", ".bin" };
	DIR *d = opendir(dir);
	struct dirent *e;
	char first[64] = "", more[40] = "";
	size_t n = 0;
	while (d && (e = readdir(d)) != NULL)
		for (size_t i = 0; i < sizeof ends/sizeof *ends; i++) {
			if (!file_ends_with(e->d_name, ends[i])) continue;
			if (!n++ || strcmp(e->d_name, first) < 0)
				snprintf(first, sizeof first, "%.63s", e->d_name);
		}
	if (d) closedir(d);
	if (n > 1) snprintf(more, sizeof more, " and %zu more", n - 1);
	return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "",
		"no model*.safetensors, pytorch_model*.bin, *.pth or *.pt in the folder%s%s%s", n ? ", but " : "",
		first, more);
}

static enum ggu_status load(struct checkpoint *c, struct ggu_error *err)
{
	const struct layout *l = layouts;
	json_t *index = NULL;
	enum ggu_status s;
	do s = find_files(c, l, &index, err);
	while (!s && !c->n_shards && ++l < layouts + sizeof layouts/sizeof *layouts);
	if (!s && !c->n_shards) s = refuse_folder(c->dir, err);
	if (!s) s = read_shards(c, l, err);
	if (!s && index) s = check_index(c, l, index, err);
	json_decref(index);
	return s;
}

enum ggu_status checkpoint_open(struct checkpoint **out, const char *dir, struct ggu_error *err)
{
	struct checkpoint *c = calloc(1, sizeof *c);
	enum ggu_status s;
	if (!c || !(c->dir = strdup(dir))) s = ggu_no_memory(err);
	else s = load(c, err);
	if (s) checkpoint_close(c);
	else *out = c;
	return s;
}

void checkpoint_close(struct checkpoint *c)
{
	if (!c) return;
	for (size_t i = 0; i < c->n_shards; i++) {
		if (c->shards[i].fd >= 0) close(c->shards[i].fd);
		free(c->shards[i].name);
	}
	checkpoint_tensors_free(c);
	free(c->shards);
	free(c->dir);
	free(c);
}

size_t checkpoint_count(const struct checkpoint *c) { return c->n; }
const struct source_tensor *checkpoint_at(const struct checkpoint *c, size_t i) { return c->tensors + i; }
const struct source_tensor *checkpoint_find(const struct checkpoint *c, const char *name)
{
	const struct source_tensor key = { .name = name };
	return c->n ? bsearch(&key, c->tensors, c->n, sizeof *c->tensors, by_name) : NULL;
}

enum ggu_status checkpoint_read(const struct checkpoint *c, const struct source_tensor *t, uint64_t from, void *to,
	size_t n, struct ggu_error *err)
{
	const struct shard *f = c->shards + t->file;
	if (from > t->n_stored || n > t->n_stored - from)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, t->name, "a read goes past its end");
	if (t->coded) return coded_read(c, t->coded, from, to, n, err);
	return file_read_at(f->fd, f->name, t->offset + from*t->dtype->bytes, to, n*t->dtype->bytes, err);
}
