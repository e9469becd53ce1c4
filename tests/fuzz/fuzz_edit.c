/* SPDX-License-Identifier: MIT
 * fuzz_edit.c - TYPE, a line feed, and a value as gguf-edit --set-file takes it: refused, or the value has that type,
 * and an array shown as JSON is read back as the same. */
#include <stdlib.h>
#include <string.h>
#include "../../tools/edit_value.h"
#include "../../tools/kv_json.h"
#include "fuzz.h"

struct edit { struct ggu_meta *m; const char *key; struct edit_value v; };
static void set(void *ctx)
{
	struct edit *e = ctx;
	if (!e->m) e->m = ggu_meta_new();
	must(e->m, "no memory");
	edit_value(e->m, e->key, &e->v);
}
static void show(void *ctx)
{
	struct edit *e = ctx;
	json_t *j = kv_json(ggu_meta_find(e->m, e->key));
	e->v.text = json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT);
	must(e->v.text != NULL, "a value that JSON cannot show");
	e->v.n = strlen(e->v.text);
	json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = memchr(data, '\n', size);
	struct edit a = { .key = "first", .v = { .type = text, .in_file = true } }, b;

	if (!end)
		return 0;
	a.v.type_n = (size_t)(end - text);
	a.v.text = end + 1;
	a.v.n = size - a.v.type_n - 1;
	if (survives(set, &a)) {
		const struct ggu_kv *kv = ggu_meta_find(a.m, "first");
		must(kv && ggu_meta_count(a.m) == 1, "what was set is not there");
		must((ggu_kv_type(kv) == GGU_ARRAY) == (a.v.type_n > 2 && a.v.type[a.v.type_n - 1] == ']'),
			"a value of another type");
		if (ggu_kv_type(kv) == GGU_ARRAY) {
			must(survives(show, &a), "what was set cannot be shown");
			b = a;
			b.key = "second";
			must(survives(set, &b), "what is shown cannot be set");
			must(survives(show, &b), "what was set again cannot be shown");
			must(!strcmp(a.v.text, b.v.text), "what is shown is set to something else");
			free((void *)(uintptr_t)a.v.text);
			free((void *)(uintptr_t)b.v.text);
		}
		ggu_meta_free(a.m);
	}
	return 0;
}
