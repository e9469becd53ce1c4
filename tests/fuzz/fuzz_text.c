/* SPDX-License-Identifier: MIT
 * fuzz_text.c - a text for the programs that read one: refused, or its bytes; if it is gzipped, those that zlib's own
 * reader of files finds. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "../../tools/load.h"
#include "fuzz.h"

struct loading { const char *path; char *text; size_t n; };
static void load(void *ctx)
{
	struct loading *l = ctx;
	l->text = load_text(l->path, 1 << 24, &l->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loading l = { folder_file("text", data, size), NULL, 0 };
	unsigned char *same;
	gzFile f;

	if (!survives(load, &l))
		return 0;
	must(!l.text[l.n], "no NUL behind the text");
	if (size < 2 || data[0] != 0x1f || data[1] != 0x8b) {
		must(l.n == size && (!size || !memcmp(l.text, data, size)), "a plain text changed");
	} else {
		f = gzopen(l.path, "rb");
		same = malloc(l.n + 1);
		must(f && same, "no memory");
		must(gzread(f, same, (unsigned)l.n + 1) == (int)l.n, "zlib finds another length");
		must(!memcmp(l.text, same, l.n), "zlib finds another text");
		gzclose(f);
		free(same);
	}
	free(l.text);
	return 0;
}
