/* SPDX-License-Identifier: MIT
 * fuzz_manifest.c - a list of digests: refused, or every entry is well formed, in its place, and found again. */
#include <string.h>
#include "../../tools/manifest.h"
#include "fuzz.h"

struct list { const char *path; struct manifest *m; };
static void read_it(void *ctx)
{
	struct list *l = ctx;
	l->m = manifest_read(l->path);
}

static void look_up(struct manifest *m, const struct manifest_entry *e)
{
	size_t n, n_found;
	struct manifest_entry *of_file = manifest_file(m, e->file, &n), *found;

	must(of_file && n, "a file is not found");
	must(!strcmp(of_file->file, e->file), "another file is found");
	found = manifest_find(of_file, n, e->tensor, e->kind, &n_found);
	must(found && found->kind == e->kind && !found->tensor == !e->tensor, "a digest is not found");
	must(n_found && found + n_found <= of_file + n, "digests of another file are found");
	for (size_t i = 0; i < n_found; i++)
		must(!e->tensor || !strcmp(found[i].tensor, e->tensor), "another tensor's digest is found");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct list l = { folder_file("manifest", data, size), NULL };

	if (!survives(read_it, &l))
		return 0;
	for (size_t i = 0; i < l.m->n; i++) {
		const struct manifest_entry *e = l.m->entry + i;
		must(strlen(e->digest) == digest_digits(e->kind), "a digest of another length");
		must(e->kind == DIGEST_UUID || !e->digest[strspn(e->digest, "0123456789abcdef")],
			"a digest of other than hex digits");
		must(!i || strcmp(e[-1].file, e->file) <= 0, "files out of order");
		look_up(l.m, e);
	}
	manifest_free(l.m);
	return 0;
}
