/* SPDX-License-Identifier: MIT
 * fuzz_safetensors.c - a checkpoint folder (fuzz.h): refused, or every tensor is found by its name and its data lies in
 * its file. */
#include <stdlib.h>
#include <string.h>
#include "../../convert/checkpoint.h"
#include "fuzz.h"

static void read_all(const struct checkpoint *c, const struct source_tensor *t)
{
	size_t bytes = (size_t)(t->n_weights*t->dtype->bytes);
	void *p = malloc(bytes + 1);

	must(p && checkpoint_read(c, t, 0, p, (size_t)t->n_weights, NULL) == GGU_OK,
		"data inside the file cannot be read");
	must(checkpoint_read(c, t, 1, p, (size_t)t->n_weights, NULL) != GGU_OK, "data past the end can be read");
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct checkpoint *c;
	struct ggu_error err = { 0 };

	if (checkpoint_open(&c, folder_of(data, size), &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		return 0;
	}
	for (size_t i = 0; i < checkpoint_count(c); i++) {
		const struct source_tensor *t = checkpoint_at(c, i);
		must(checkpoint_find(c, t->name) == t, "a tensor is not found");
		must(t->n_weights*t->dtype->bytes <= size, "a tensor is larger than the input");
		read_all(c, t);
	}
	checkpoint_close(c);
	return 0;
}
