/* SPDX-License-Identifier: MIT
 * fuzz_split.c - a folder of shards (folder.h), opened by each name: read, or refused with a reason; defects that are
 * reported instead are told once each, and none where the set is read. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/ggu.h"
#include "fuzz.h"

enum { MAX_DEFECTS = 256 };
struct defects {
	size_t n;
	struct { enum ggu_rule rule; uint32_t source; uint64_t offset; char where[128]; } d[MAX_DEFECTS];
};
static void note(void *ctx, const struct ggu_error *err)
{
	struct defects *l = ctx;

	must(err->rule != GGU_RULE_NONE && *err->what, "a defect without a reason");
	for (size_t i = 0; i < l->n && err->offset != GGU_NO_OFFSET; i++)
		must(l->d[i].rule != err->rule || l->d[i].source != err->source || l->d[i].offset != err->offset ||
			strcmp(l->d[i].where, err->where) != 0, "a defect told twice");
	if (l->n == MAX_DEFECTS)
		return;
	l->d[l->n].rule = err->rule;
	l->d[l->n].source = err->source;
	l->d[l->n].offset = err->offset;
	strcpy(l->d[l->n++].where, err->where);
}

static void open_one(const char *path)
{
	static struct defects d;
	const struct ggu_open_options o = { .defect = note, .defect_ctx = &d };
	struct ggu_error err = { 0 };
	struct ggu_file *f;
	bool read = ggu_open(&f, path, &err) == GGU_OK;

	must(read || (err.code != GGU_OK && *err.what), "refused without a reason");
	if (read) {
		for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
			const struct ggu_tensor *t = ggu_file_tensor(f, i);
			unsigned char byte[512];
			size_t n = ggu_type_info(t->type)->block_bytes;
			must(t->source < ggu_file_n_sources(f), "a tensor of no shard");
			must(!t->bytes || n > sizeof byte || ggu_read(f, t, t->bytes - n, byte, n, NULL) == GGU_OK,
				"data inside the shard cannot be read");
		}
		ggu_close(f);
	}
	memset(&d, 0, sizeof d);
	if (ggu_open_path(&f, path, &o, &err) == GGU_OK) {
		must(!read || !d.n, "a set that is read has defects");
		ggu_close(f);
	} else {
		must(!read, "a set that is read is refused when defects are reported");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	folder_of(data, size);
	for (size_t i = 0; folder_path(i); i++) {
		char *path = strdup(folder_path(i));
		must(path, "no memory");
		open_one(path);
		free(path);
	}
	return 0;
}
