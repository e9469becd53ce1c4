/* SPDX-License-Identifier: MIT
 * fuzz_plan.c - a plan file for a model of four tensors: refused, or every tensor has a type that can be made and that
 * its rows fit, or keeps its own. */
#include <string.h>
#include "../../quant/quant.h"
#include "../../tools/typeplan.h"
#include "fuzz.h"

enum { N = 4 };
static const struct ggu_tensor tensors[N] = {
	{ .name = "token_embd.weight", .name_bytes = 17, .type = GGU_TYPE_F16, .n_dims = 2, .ne = { 256, 64, 1, 1 } },
	{ .name = "blk.0.attn_q.weight", .name_bytes = 19, .type = GGU_TYPE_F32, .n_dims = 2, .ne = { 96, 8, 1, 1 } },
	{ .name = "blk.0.ffn_up_exps.weight", .name_bytes = 24, .type = GGU_TYPE_BF16, .n_dims = 3,
		.ne = { 32, 4, 2, 1 } },
	{ .name = "output_norm.weight", .name_bytes = 18, .type = GGU_TYPE_F32, .n_dims = 1, .ne = { 7, 1, 1, 1 } },
};
struct choosing { const char *path; const struct ggu_meta *meta; struct recipe_choice choice[N]; };
static void choose(void *ctx)
{
	struct choosing *c = ctx;
	const struct ggu_tensor *t[N] = { tensors, tensors + 1, tensors + 2, tensors + 3 };
	const struct typeplan_options o = { .plan = c->path };
	typeplan_choose(&o, NULL, "model", c->meta, t, N, c->choice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ggu_meta *meta = ggu_meta_new();
	struct choosing c = { folder_file("plan.yaml", data, size), meta, { { 0 } } };
	uint64_t bytes;

	must(meta, "no memory");
	if (survives(choose, &c))
		for (int i = 0; i < N; i++) {
			must(c.choice[i].type == tensors[i].type || quant_can_encode(c.choice[i].type),
				"a type that cannot be encoded");
			must(ggu_type_bytes(c.choice[i].type, tensors[i].ne[0], &bytes),
				"rows that do not fit the type");
		}
	ggu_meta_free(meta);
	return 0;
}
