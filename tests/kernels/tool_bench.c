/* SPDX-License-Identifier: MIT
 * tool_bench.c - how fast each type decodes and multiplies on one instruction set.
 *
 *   tool_bench [TYPE...]      GGUF_CPU chooses the instruction set
 *
 * Columns: decoding ns per weight; products with 1, 4, 32 and 512 tokens in GMAC/s, 2048 x 2048 weights; GB/s of
 * weights read with 1 token; packing ns per activation. Best of several runs in CPU time, so that a busy machine
 * matters less. Compiled for the baseline CPU on purpose: what a kernel leaves behind in the upper registers would
 * show here. Compare with the f32 row, whose limit is the machine's multiply-adds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../quant/quant.h"

enum { K = 2048, OUT = 2048, TOKENS = 512 };
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec*1e-9;
}
/* seconds of the fastest run within `secs` */
#define BEST(best, secs, run) do { \
	best = 1e9; \
	for (double end_ = now() + (secs), t_; now() < end_; ) { t_ = now(); run; t_ = now() - t_; if (t_ < best) best = t_; } \
} while (0)

static void *bytes(size_t n)
{
	void *p = NULL;
	if (posix_memalign(&p, 64, n)) { perror("tool_bench"); exit(2); }
	memset(p, 0, n);
	return p;
}

static void bench(const struct ggu_type_info *t, void *work)
{
	static const size_t tokens[] = { 1, 4, 32, 512 };
	size_t row = K/t->block_weights*t->block_bytes, act_row = quant_act_bytes(t->id, K);
	uint8_t *w = bytes(OUT*row), *act = bytes(TOKENS*act_row);
	float *x = bytes(K*sizeof *x), *y = bytes((size_t)TOKENS*OUT*sizeof *y);
	double s;
	/* small codes; speed does not depend on numbers unless they are subnormal */
	for (size_t i = 0; i < OUT*row; i++) w[i] = (uint8_t)(0x21 + i % 5);
	for (size_t i = 0; i < K; i++) x[i] = (float)(i % 17) - 8;
	for (size_t i = 0; i < TOKENS; i++) quant_act_pack(t->id, x, K, act + i*act_row);
	BEST(s, 0.05, quant_decode(t->id, w, y, 64*K));
	printf("%-8s %6.3f", t->name, s/(64*K)*1e9);
	for (int i = 0; i < 4; i++) {
		BEST(s, 0.2, quant_mul(t->id, tokens[i], OUT, K, w, row, act, y, OUT, work));
		printf(" %7.1f", (double)tokens[i]*OUT*K/s*1e-9);
		if (i == 0) printf(" %5.1f GB/s", (double)(OUT*row)/s*1e-9);
	}
	BEST(s, 0.05, quant_act_pack(t->id, x, K, act));
	printf(" %6.3f\n", s/K*1e9);
	free(w); free(act); free(x); free(y);
}

int main(int argc, char **argv)
{
	struct ggu_error err;
	if (quant_select(getenv("GGUF_CPU"), &err)) { fprintf(stderr, "tool_bench: %s\n", err.what); return 2; }
	void *work = bytes(quant_mul_work_bytes());
	printf("%-8s %6s %7s %10s %7s %7s %7s %6s   %s\n", "type", "decode", "1", "", "4", "32", "512", "pack", quant_selected());
	for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++) {
		const struct ggu_type_info *t = ggu_type_info(id);
		int wanted = argc < 2;
		for (int i = 1; t && i < argc; i++) wanted |= !strcmp(argv[i], t->name);
		if (t && wanted && quant_can_multiply(id)) bench(t, work);
	}
	free(work);
	return 0;
}
