/* SPDX-License-Identifier: MIT
 * fuzz_scores.c - files of gguf-perplexity --partial (folder.h): refused, or put together to as many scores as their
 * windows have, in whatever order they are named. */
#include <stdlib.h>
#include <string.h>
#include "../../tools/scores.h"
#include "fuzz.h"

enum { MOST = 4 };
struct merging { char *file[MOST]; int n; struct scores s; };
static void merge(void *ctx)
{
	struct merging *m = ctx;
	m->s = scores_merge(m->file, m->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct merging m = { .n = 0 }, back = { .n = 0 };
	size_t n;

	folder_of(data, size);
	for (const char *path; m.n < MOST && (path = folder_path((size_t)m.n));)
		must((m.file[m.n++] = strdup(path)), "no memory");
	for (; back.n < m.n; back.n++)
		back.file[back.n] = m.file[m.n - 1 - back.n];
	if (m.n && survives(merge, &m)) {
		n = m.s.windows*scores_per(m.s.n_ctx);
		must(m.s.v && m.s.windows && n, "nothing was read");
		must(survives(merge, &back), "the order of the files matters");
		must(back.s.windows == m.s.windows && back.s.from == m.s.from, "windows are missing");
		/* as bits, which NaN has too; flags one by one, as a struct has padding */
		for (size_t i = 0; i < n; i++) {
			const struct score *a = m.s.v + i, *b = back.s.v + i;
			must(!memcmp(&a->nll, &b->nll, sizeof a->nll) && !memcmp(&a->kld, &b->kld, sizeof a->kld) &&
				!memcmp(&a->base_nll, &b->base_nll, sizeof a->base_nll) && a->same_top == b->same_top,
				"a score is another");
		}
		free(m.s.v);
		free(back.s.v);
	}
	while (m.n)
		free(m.file[--m.n]);
	return 0;
}
