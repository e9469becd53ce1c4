/* SPDX-License-Identifier: MIT
 * tool_dequant.c - tool_dequant TYPE BLOCKS F32: decodes the file BLOCKS with every instruction set of this CPU and
 * compares with the floats of F32, bit by bit; exit 1 and the first difference if they differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/quant.h"

static unsigned char *slurp(const char *name, size_t *n)
{
	FILE *f = fopen(name, "rb");
	unsigned char *p = NULL;
	size_t room = 1 << 24;
	if (!f || !(p = malloc(room))) { perror(name); exit(2); }
	*n = fread(p, 1, room, f);
	fclose(f);
	return p;
}
int main(int argc, char **argv)
{
	size_t n_blocks, n_want, n;
	const struct ggu_type_info *info;
	unsigned char *blocks, *want;
	float *got;
	if (argc != 4 || !(info = ggu_type_find(argv[1]))) return 2;
	blocks = slurp(argv[2], &n_blocks);
	want = slurp(argv[3], &n_want);
	n = n_want/4;
	if (!quant_can_decode(info->id) || n_blocks/info->block_bytes*info->block_weights != n ||
		!(got = malloc(n_want)))
		return 2;
	for (const char *const *isa = quant_available(); *isa; isa++) {
		if (quant_select(*isa, NULL)) return 2;
		memset(got, 0xa5, n_want);
		quant_decode(info->id, blocks, got, n);
		for (size_t i = 0; i < n; i++) {
			if (!memcmp(want + 4*i, got + i, 4)) continue;
			float w;
			memcpy(&w, want + 4*i, 4);
			printf("%s, %s: element %zu: %.9g, want %.9g\n", argv[1], *isa, i, (double)got[i], (double)w);
			return 1;
		}
	}
	free(blocks); free(want); free(got);
	return 0;
}
