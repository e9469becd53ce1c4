/* SPDX-License-Identifier: MIT
 * fuzz_torch.c - a file of PyTorch's, a zip archive with a pickle: refused with a reason, or every tensor can be
 * read. */
#include <stdlib.h>
#include <string.h>
#include "../../convert/checkpoint.h"
#include "fuzz.h"

enum { MOST = 1 << 16 };

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
		size_t n = t->n_weights*t->dtype->bytes <= MOST ? (size_t)t->n_weights : MOST/t->dtype->bytes;
		must(checkpoint_find(c, t->name) == t, "a tensor is not found");
		must(checkpoint_read(c, t, 0, to, n, NULL) == GGU_OK, "data inside the file cannot be read");
		must(checkpoint_read(c, t, t->n_weights, to, 1, NULL) != GGU_OK, "data past the end can be read");
	}
	checkpoint_close(c);
	free(folder);
	return 0;
}
