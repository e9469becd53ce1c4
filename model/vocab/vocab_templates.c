/* SPDX-License-Identifier: MIT
 * vocab_templates.c - chat templates of a checkpoint folder, as llama.cpp's converter finds them: those of
 * tokenizer_config.json (a text, or a list of named ones), else chat_template.jinja and the named ones in
 * additional_chat_templates/NAME.jinja, else chat_template.json. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "../../libgguf/grow.h"
#include "../util/file.h"
#include "vocab_internal.h"

static const char folder[] = "additional_chat_templates", end[] = ".jinja";
enum { MAX_TEMPLATE = 16 << 20, MAX_NAME = 128 };

/* Makes a name fit for a key: characters other than ASCII letters and digits become '_'. */
static void key_name(const char *name, char to[MAX_NAME])
{
	size_t n = 0;
	for (; *name && n < MAX_NAME - 1; name++) {
		const char c = *name;
		bool fit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (fit || ((unsigned char)c & 0xc0) != 0x80) to[n++] = fit ? c : '_';
	}
	to[n] = 0;
}

/* Adds a template. One without a name is left out; of several with the same name the last counts, as in
 * transformers. */
static enum ggu_status add(struct vocab *v, const char *name, const char *text, struct ggu_error *err)
{
	char key[MAX_NAME];
	struct vocab_template *t;
	struct ggu_str a = { NULL, 0 }, b;
	size_t i = 0;
	bool named;
	key_name(name, key);
	if (!*key) return GGU_OK;
	named = strcmp(key, "default") != 0;
	if (named) a = vocab_copy(v, key, strlen(key));
	if (named && !a.p) return ggu_no_memory(err);
	b = vocab_copy(v, text, strlen(text));
	t = v->templates;
	while (i < v->n_templates && (a.p && t[i].name ? strcmp(a.p, t[i].name) != 0 : a.p != t[i].name)) i++;
	if (i == v->n_templates) {
		t = vocab_alloc(v, (i + 1)*sizeof *t);
		if (t && i) memcpy(t, v->templates, i*sizeof *t);
	}
	if (!t || !b.p) return ggu_no_memory(err);
	t[i] = (struct vocab_template){ (char *)a.p, (char *)b.p };
	v->templates = t;
	v->n_templates += i == v->n_templates;
	return GGU_OK;
}

/* Line ends become line feeds, as Python reads text. Refuses what is no text. */
static enum ggu_status clean(char *text, size_t n, const char *file, struct ggu_error *err)
{
	size_t k = 0;
	for (size_t i = 0; i < n;) {
		utf8proc_int32_t c;
		utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(n - i),
			&c);
		if (len < 1 || !c) return file_fail(err, GGU_ERR_FORMAT, file, i, "", "is not text in UTF-8");
		if (c == '\r') {
			text[k++] = '\n';
			i += 1 + (i + 1 < n && text[i + 1] == '\n');
		} else {
			memmove(text + k, text + i, (size_t)len);
			k += (size_t)len;
			i += (size_t)len;
		}
	}
	text[k] = 0;
	return GGU_OK;
}

static enum ggu_status add_file(struct vocab *v, const char *dir, const char *file, const char *name,
	struct ggu_error *err)
{
	char *text;
	size_t n;
	enum ggu_status s = file_slurp(dir, file, MAX_TEMPLATE, &text, &n, err);
	if (s) return s;
	s = clean(text, n, file, err);
	if (!s) s = add(v, name, text, err);
	free(text);
	return s;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The files of the folder of named templates, in the order of their names. */
static enum ggu_status add_folder(struct vocab *v, const char *dir, struct ggu_error *err)
{
	char *path = file_path(dir, folder), **names = NULL;
	DIR *d = path ? opendir(path) : NULL;
	struct dirent *e;
	size_t n = 0;
	enum ggu_status s = path ? GGU_OK : ggu_no_memory(err);
	while (d && !s && (e = readdir(d)) != NULL) {
		char **more;
		if (!file_ends_with(e->d_name, end)) continue;
		more = ggu_grow(names, n, sizeof *names);
		if (more) names = more;
		if (!more || !(names[n] = strdup(e->d_name))) s = ggu_no_memory(err);
		else n++;
	}
	if (n) qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n; i++) {
		char file[sizeof folder + 256];
		snprintf(file, sizeof file, "%s/%s", folder, names[i]);
		names[i][strlen(names[i]) - strlen(end)] = 0;
		if (!s) s = add_file(v, dir, file, names[i], err);
		free(names[i]);
	}
	free(names);
	if (d) closedir(d);
	free(path);
	return s;
}

enum ggu_status vocab_load_templates(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	json_t *own = NULL, *c = json_object_get(f->config, "chat_template"), *row;
	size_t i;
	enum ggu_status s = GGU_OK;
	if (!c || json_is_null(c)) {
		s = add_file(v, f->dir, "chat_template.jinja", "default", err);
		if (!s) return add_folder(v, f->dir, err);
		if (s != GGU_ERR_MISSING) return s;
		TRY(vocab_read_json(f->dir, "chat_template.json", &own, err));
		c = json_object_get(own, "chat_template");
		s = GGU_OK;
	}
	if (json_is_string(c)) s = add(v, "default", json_string_value(c), err);
	json_array_foreach(c, i, row) {
		const char *name = vocab_json_str(row, "name"), *t = vocab_json_str(row, "template");
		if (!s && name && t) s = add(v, name, t, err);
	}
	json_decref(own);
	return s;
}
