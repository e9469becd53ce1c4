/* SPDX-License-Identifier: MIT
 * fuzz_torch.c - a file of PyTorch's, a zip archive with a pickle: refused with a reason, or every tensor can be
 * read. */
#include <stdlib.h>
#include <string.h>
#include "../../convert/view.h"
#include "fuzz.h"

enum { MOST = 1 << 16 };

/* Whatever its strides are. */
static void read_in_order(const struct checkpoint *c, const struct source_tensor *t)
{
	struct view v;
	uint64_t unit, n;
	char *to, *work;
	view_of(&v, t);
	view_coalesce(&v);
	unit = view_unit(&v);
	n = view_count(&v) < MOST ? view_count(&v) : unit < MOST ? MOST - MOST%unit : unit;
	to = malloc((size_t)n*t->dtype->bytes + 1);
	work = malloc(view_work_bytes(&v, n) + 1);
	must(view_count(&v) == t->n_weights, "a view has another number of elements");
	must(to && work && view_read(&v, c, 0, n, to, work, NULL) == GGU_OK, "an element cannot be read");
	free(to);
	free(work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char to[MOST];
	char *folder = strdup(folder_file("pytorch_model.bin", data, size));
	struct checkpoint *c;
	struct ggu_error err = { 0 };

	must(folder != NULL, "no memory");
	*strrchr(folder, '/') = 0;
	if (checkpoint_open(&c, folder, &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		free(folder);
		return 0;
	}
	for (size_t i = 0; i < checkpoint_count(c); i++) {
		const struct source_tensor *t = checkpoint_at(c, i);
		size_t n = t->bytes <= MOST ? (size_t)t->n_stored : MOST/t->dtype->bytes;
		must(checkpoint_find(c, t->name) == t, "a tensor is not found");
		must(checkpoint_read(c, t, 0, to, n, NULL) == GGU_OK, "data inside the file cannot be read");
		must(checkpoint_read(c, t, t->n_stored, to, 1, NULL) != GGU_OK, "data past the end can be read");
		read_in_order(c, t);
	}
	checkpoint_close(c);
	free(folder);
	return 0;
}
