/* SPDX-License-Identifier: MIT
 * tool_attend.c - how fast one token attends to a long past, by shape of the heads, type of the cache and instance,
 * and what share that is of what the machine can do, measured in the same process.
 *
 *   tool_attend [TYPE...]         GGUF_CPU: that instance alone
 *
 * So many layers that no cache of the processor holds them, DEPTH positions each, one after the other. GB/s: of keys
 * and values, beside a loop that reads memory; GMAC/s: beside the loop of fma. One thread, the best of several
 * runs in processor time; then all threads by the clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../../quant/attn.h"
#include "../../quant/quant.h"
#include "../../tools/limits.h"
#include "../lib/kerntest.h"

enum { DEPTH = 8192, BLOCKS = DEPTH/ATTN_BLOCK, STREAM = 192 << 20, MOST_HEADS = 32, MOST_DIM = 128 };
static const struct attn_shape shapes[] = {
	{ 32, 32, 128, 128, 0, 0, false }, { 9, 3, 64, 64, 0, 0, false }, { 32, 8, 128, 128, 0, 0, false },
	{ 32, 4, 64, 64, 0, 0, false },
};
static const uint32_t types[] = { GGU_TYPE_F32, GGU_TYPE_F16, GGU_TYPE_BF16, GGU_TYPE_I16, GGU_TYPE_Q8_0, GGU_TYPE_Q5_1,
	GGU_TYPE_Q4_0 };

/* A cache of this length is in large pages (page.c). */
static void *bytes(size_t n)
{
	enum { LARGE = 2 << 20 };
	void *p = NULL;
	if (posix_memalign(&p, n < 8*LARGE ? 64 : LARGE, n)) { perror("tool_attend"); exit(2); }
#ifdef MADV_HUGEPAGE
	if (n >= 8*LARGE) madvise(p, n, MADV_HUGEPAGE);
#endif
	memset(p, 0, n);
	return p;
}

struct layers { struct attn a; struct attn_rows rows; char *cache; size_t n; void *work; struct attn_plan plan; };
static void task(void *ctx, size_t i, int worker)
{
	const struct layers *l = ctx;
	attn_run(&l->a, i, (char *)l->work + (size_t)worker*attn_work_bytes(&l->a.shape));
}
static void merge(void *ctx, size_t i, int worker)
{
	(void)worker;
	attn_merge(&((const struct layers *)ctx)->a, i);
}
static void attend(struct ggu_pool *pool, struct layers *l)
{
	size_t block = attn_block_bytes(&l->a.shape);
	for (size_t i = 0; i < l->n; i++) {
		void *at[BLOCKS];
		struct ggu_phase phase[] = { { task, l, 0, GGU_TAKE_NEAR }, { merge, l, 0, GGU_TAKE_ANY } };
		for (size_t b = 0; b < BLOCKS; b++) at[b] = l->cache + (i*BLOCKS + b)*block;
		l->rows.block = at;
		l->plan = attn_plan(&l->a, ggu_pool_size(pool));
		phase[0].n_tasks = l->plan.n_tasks;
		phase[1].n_tasks = l->plan.n_merges;
		ggu_pool_phases(pool, phase, 2);
	}
}

/* Makes the layers of the stream: all their blocks have the keys and values of the first 64 positions. */
static void fill(struct layers *l, const float *x)
{
	const struct attn_shape *s = &l->a.shape;
	size_t block = attn_block_bytes(s);
	l->n = STREAM/(block*BLOCKS) + 1;
	l->cache = bytes(l->n*BLOCKS*block);
	attn_store(s, (void *[]){ l->cache }, 0, ATTN_BLOCK, x, s->n_kv*s->k_dim, x, s->n_kv*s->v_dim);
	for (size_t b = 1; b < l->n*BLOCKS; b++) memcpy(l->cache + b*block, l->cache, block);
}
static void bench(struct attn_shape s, const float *x, const struct limits *one, const struct limits *all,
	struct ggu_pool *pool)
{
	static float out[MOST_HEADS*MOST_DIM];
	struct ggu_pool *alone = ggu_pool_new(1);
	struct layers l = { .a = { .shape = s, .scale = 0.1f, .mask = ATTN_CAUSAL, .n_rows = 1 },
		.rows = { .n = 1, .pos = DEPTH - 1, .n_pos = DEPTH, .q = x, .out = out, .q_stride = s.n_head*s.k_dim,
			.out_stride = s.n_head*s.v_dim } };
	double t, read, macs;
	fill(&l, x);
	l.a.rows = &l.rows;
	l.a.partial_bytes = attn_partial_bytes(&l.a, ggu_pool_size(pool));
	l.a.partial = bytes(l.a.partial_bytes);
	l.work = bytes((size_t)ggu_pool_size(pool)*attn_work_bytes(&s));
	attn_cost(&l.a, &read, &macs);
	read *= (double)l.n*1e-9;
	macs *= (double)l.n*1e-9;
	printf("%2zu/%-2zu %3zu %-5s", s.n_head, s.n_kv, s.k_dim, ggu_type_info(s.k_type)->name);
	LIMITS_BEST(t, 0.2, attend(alone, &l));
	printf("  %6.1f %3.0f%%  %6.1f %3.0f%%", read/t, 100*read/t/one->read_gb, macs/t, 100*macs/t/one->f32_gmacs);
	LIMITS_BEST_BY(limits_now, t, 0.2, attend(pool, &l));
	printf("  %6.1f %3.0f%%  %6.1f %3.0f%%\n", read/t, 100*read/t/all->read_gb, macs/t,
		100*macs/t/all->f32_gmacs);
	ggu_pool_free(alone);
	free(l.cache); free(l.a.partial); free(l.work);
}
static void bench_isa(const char *isa, int n_types, char **wanted, const float *x)
{
	struct limits one, all;
	struct ggu_pool *pool = limits_of_one_and_all(isa, &one, &all);
	quant_select(isa, NULL);
	printf("\n%s: memory reads %.1f GB/s, by %d threads %.1f, float products %.0f and %.0f GMAC/s\n", isa,
		one.read_gb, ggu_pool_size(pool), all.read_gb, one.f32_gmacs, all.f32_gmacs);
	printf("%-15s  %11s  %11s  %11s  %11s\n", "heads dim cache", "GB/s read", "GMAC/s peak", "all threads",
		"GMAC/s peak");
	for (size_t i = 0; i < sizeof shapes/sizeof *shapes; i++)
		for (size_t k = 0; k < sizeof types/sizeof *types; k++) {
			struct attn_shape s = shapes[i];
			bool is_wanted = n_types == 0;
			for (int j = 0; j < n_types; j++)
				is_wanted |= !strcmp(wanted[j], ggu_type_info(types[k])->name);
			s.k_type = s.v_type = types[k];
			if (is_wanted) bench(s, x, &one, &all, pool);
		}
	ggu_pool_free(pool);
}

int main(int argc, char **argv)
{
	const char *only = getenv("GGUF_CPU");
	struct ggu_error err;
	float *x = bytes((size_t)ATTN_BLOCK*MOST_HEADS*MOST_DIM*sizeof *x);
	if (quant_select(only, &err)) { fprintf(stderr, "tool_attend: %s\n", err.what); return 2; }
	only = only ? quant_selected() : NULL;
	kt_reseed(1);
	for (size_t i = 0; i < (size_t)ATTN_BLOCK*MOST_HEADS*MOST_DIM; i++) x[i] = kt_bell();
	for (const char *const *isa = quant_available(); *isa; isa++)
		if (!only || !strcmp(only, *isa)) bench_isa(*isa, argc - 1, argv + 1, x);
	free(x);
	return 0;
}
