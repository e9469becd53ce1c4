/* SPDX-License-Identifier: MIT
 * recipe.c - the named mixtures as two tables: the recipes, and the rules for exceptions.
 *
 * A tensor has a role, found from its name. Its type is that of the first rule that names the recipe and the role and
 * whose conditions hold, or else the recipe's own. If the block of that type does not divide the row, the tensor gets
 * the type's fall-back.
 *
 * Some conditions count: "the first eighth" of the tensors of a role. Tensors are counted by layer, then by name,
 * whatever their order in the file. In models with experts, the feed-forward roles go by the layer in the tensor's name
 * instead, as there are several such tensors in a layer. Tensors whose type the caller has fixed are not counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "quant.h"
#include "recipe.h"

/* name, general.file_type, type, summary. bpw: of Llama 3.1 8B with that recipe, all tensors counted. */
#define RECIPES(X) \
	X(F32,       0, F32,     "32 bits a weight, exact") \
	X(F16,       1, F16,     "16 bits, 10 of them fraction; range to 65504") \
	X(BF16,     32, BF16,    "16 bits, the upper half of a float") \
	X(Q8_0,      7, Q8_0,    "8.50 bpw, nearly lossless") \
	X(Q6_K,     18, Q6_K,    "6.56 bpw, hardly distinguishable from the original") \
	X(Q5_K_M,   17, Q5_K,    "5.70 bpw, the value tensors of half the layers in Q6_K") \
	X(Q5_K_S,   16, Q5_K,    "5.57 bpw") \
	X(Q5_1,      9, Q5_1,    "6.04 bpw, blocks of 32 with a minimum") \
	X(Q5_0,      8, Q5_0,    "5.57 bpw, blocks of 32") \
	X(Q4_K_M,   15, Q4_K,    "4.89 bpw, the usual choice") \
	X(Q4_K_S,   14, Q4_K,    "4.67 bpw") \
	X(Q4_1,      3, Q4_1,    "5.10 bpw, blocks of 32 with a minimum") \
	X(Q4_0,      2, Q4_0,    "4.64 bpw, blocks of 32, fast everywhere") \
	X(IQ4_NL,   25, IQ4_NL,  "4.68 bpw, uneven levels in blocks of 32") \
	X(IQ4_XS,   30, IQ4_XS,  "4.46 bpw, uneven levels") \
	X(Q3_K_L,   13, Q3_K,    "4.30 bpw") \
	X(Q3_K_M,   12, Q3_K,    "4.00 bpw") \
	X(Q3_K_S,   11, Q3_K,    "3.64 bpw") \
	X(IQ3_M,    27, IQ3_S,   "3.76 bpw, a code book") \
	X(IQ3_S,    26, IQ3_S,   "3.66 bpw, a code book") \
	X(IQ3_XS,   22, IQ3_S,   "3.50 bpw, a code book; needs an importance matrix") \
	X(IQ3_XXS,  23, IQ3_XXS, "3.25 bpw, a code book; needs an importance matrix") \
	X(Q2_K,     10, Q2_K,    "3.16 bpw") \
	X(Q2_K_S,   21, Q2_K,    "2.97 bpw; needs an importance matrix") \
	X(IQ2_M,    29, IQ2_S,   "2.93 bpw, a code book; needs an importance matrix") \
	X(IQ2_S,    28, IQ2_XS,  "2.74 bpw, a code book; needs an importance matrix") \
	X(IQ2_XS,   20, IQ2_XS,  "2.59 bpw, a code book; needs an importance matrix") \
	X(IQ2_XXS,  19, IQ2_XXS, "2.38 bpw, a code book; needs an importance matrix") \
	X(IQ1_M,    31, IQ1_M,   "2.15 bpw, a code book; needs an importance matrix") \
	X(IQ1_S,    24, IQ1_S,   "2.00 bpw, a code book; needs an importance matrix") \
	X(TQ2_0,    37, TQ2_0,   "three levels, for models trained that way") \
	X(TQ1_0,    36, TQ1_0,   "three levels, five to a byte, for models trained that way") \
	X(Q2_0,     41, Q2_0,    "four levels, for models trained that way") \
	X(Q1_0,     40, Q1_0,    "a sign, for models trained that way") \
	X(MXFP4_MOE, 38, MXFP4,  "experts in 4-bit floats, the rest in Q8_0") \
	X(NVFP4,    39, NVFP4,   "4-bit floats, a scale for 16") \
	X(COPY, RECIPE_KEEP, F32, "every tensor as it is")

enum { /* places in the table, and bits of a set of recipes */
#define X(name, ftype, type, summary) P_##name,
	RECIPES(X)
#undef X
	N_RECIPES
};
_Static_assert(N_RECIPES <= 64, "a set of recipes is the bits of a uint64_t");
struct recipe { const char *name; uint32_t ftype, type; const char *summary; };
static const struct recipe recipes[] = {
#define X(name, ftype, type, summary) { #name, ftype, GGU_TYPE_##type, summary },
	RECIPES(X)
#undef X
};
static const struct { const char *alias, *name; } aliases[] = {
	{ "Q3_K", "Q3_K_M" }, { "Q4_K", "Q4_K_M" }, { "Q5_K", "Q5_K_M" }, { "MXFP4", "MXFP4_MOE" }, { "FP16", "F16" },
};

const struct recipe *recipe_find(const char *name)
{
	for (size_t i = 0; i < sizeof aliases/sizeof *aliases; i++)
		if (text_same(name, aliases[i].alias)) name = aliases[i].name;
	for (size_t i = 0; i < N_RECIPES; i++)
		if (text_same(name, recipes[i].name)) return &recipes[i];
	return NULL;
}
const struct recipe *recipe_at(size_t i) { return i < N_RECIPES ? &recipes[i] : NULL; }
const char *recipe_name(const struct recipe *r) { return r->name; }
const char *recipe_summary(const struct recipe *r) { return r->summary; }
uint32_t recipe_file_type(const struct recipe *r) { return r->ftype; }
uint32_t recipe_type(const struct recipe *r) { return r->ftype == RECIPE_KEEP ? RECIPE_KEEP : r->type; }

/* ---- roles ---- */

enum role { R_OTHER, R_OUTPUT, R_EMBD, R_VALUE, R_KEY, R_QUERY, R_ATTN_OUT, R_UP, R_GATE, R_DOWN, R_LATENT, N_ROLES };
/* The first row whose text is part of the name, or with `whole` equals the name, decides. */
static const struct { const char *text; bool whole; enum role role; } role_names[] = {
	{ "output.weight", true, R_OUTPUT },
	{ "token_embd.weight", true, R_EMBD },
	{ "per_layer_token_embd.weight", true, R_EMBD },
	{ "attn_qkv.weight", false, R_VALUE },
	{ "attn_kv_b.weight", false, R_VALUE },
	{ "attn_v.weight", false, R_VALUE },
	{ "attn_k.weight", false, R_KEY },
	{ "attn_q.weight", false, R_QUERY },
	{ "attn_q_a", false, R_LATENT },
	{ "attn_q_b", false, R_LATENT },
	{ "nextn.eh_proj", false, R_LATENT },
	{ "attn_output.weight", false, R_ATTN_OUT },
	{ "ffn_up", false, R_UP },
	{ "ffn_gate", false, R_GATE },
	{ "ffn_down", false, R_DOWN },
};
static enum role role_of(const char *name)
{
	for (size_t i = 0; i < sizeof role_names/sizeof *role_names; i++)
		if (role_names[i].whole ? strcmp(name, role_names[i].text) == 0 :
			strstr(name, role_names[i].text) != NULL)
			return role_names[i].role;
	return R_OTHER;
}

bool recipe_needs_no_importance(const char *name)
{
	enum role role = role_of(name);
	return role == R_OUTPUT || role == R_EMBD;
}

/* Weights that stay as they are: too small to matter, or read by code that wants floats. */
static const char *const left_alone[] = {
	"_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
	"ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight",
	"time_mix_first.weight", "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight", "time_mix_v0.weight",
	"time_mix_v1.weight", "time_mix_v2.weight", "time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight",
	"time_mix_g1.weight", "time_mix_g2.weight", "time_mix_decay_w1.weight", "time_mix_decay_w2.weight",
	"time_mix_lerp_fused.weight", "attn_rel_b.weight", ".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_",
	".rel_pos", ".patch_embd", ".patch_merger", "a.rvq.codebook", "mm.a.code_embd",
};
/* ... and in glm5-next */
static const char *const left_alone_glm5[] = {
	"hc_", "indexer.attn_q_b", "indexer.attn_k", "indexer.proj", "indexer_compressor_gate",
	"indexer_compressor_ape", "ssm_f_a.weight", "ssm_f_b.weight", "ssm_g_a.weight", "ssm_g_b.weight",
	"ssm_beta.weight", "attn_kv_a_mqa.weight", "attn_k_b.weight", "attn_v_b.weight",
};
static bool is_left_alone(const struct ggu_tensor *t, const struct recipe_options *o, bool glm5)
{
	size_t n = strlen(t->name);
	const struct ggu_type_info *info = ggu_type_info(t->type);
	/* dimensions of one at the end do not count: a file may have them or not */
	if (ggu_tensor_rows(t) <= 1 || !info || info->kind == GGU_KIND_INT) return true;
	if (n < 6 || strcmp(t->name + n - 6, "weight") != 0) return true;
	if (o->leave_output && strcmp(t->name, "output.weight") == 0) return true;
	if (strcmp(t->name, "position_embd.weight") == 0 || strcmp(t->name, "token_types.weight") == 0) return true;
	for (size_t i = 0; i < sizeof left_alone/sizeof *left_alone; i++)
		if (strstr(t->name, left_alone[i])) return true;
	for (size_t i = 0; glm5 && i < sizeof left_alone_glm5/sizeof *left_alone_glm5; i++)
		if (strstr(t->name, left_alone_glm5[i])) return true;
	return false;
}

/* ---- rules ---- */

enum { /* conditions of a rule: all must hold. i is the tensor's place in its role, n the number of layers */
	GQA4 = 1,               /* four query heads or more share a key */
	EXPERTS4 = 2, EXPERTS8 = 4, NOT_EXPERTS8 = 8,   /* at least 4; exactly 8 */
	MATRIX = 16, NO_MATRIX = 32,
	FALCON = 64, NOT_FALCON = 128,
	IS_70B = 256,
	EARLY8 = 512, EARLY16 = 1024, FIRST2 = 2048, FIRST4 = 4096,     /* i < n/8, n/16, 2, 4 */
	MIDDLE = 8192,          /* n/8 <= i < 7n/8 */
	MORE = 16384,           /* the first and last eighth and every third between */
	MISFIT = 32768,         /* the recipe's block does not divide the row */
	EXPERT = 65536,         /* a 3-D tensor of experts */
	COUNT8 = 131072,        /* as EARLY8, but counted in models with experts too */
	GLM5 = 262144,
};
#define P(name) (1ull << P_##name)
#define LOW (P(IQ2_XXS) | P(IQ2_XS) | P(IQ2_S) | P(IQ2_M) | P(IQ1_S) | P(IQ1_M))
#define IQ2SM (P(IQ2_S) | P(IQ2_M))
#define EVERY (~0ull)
#define ROLE(r) (1u << (r))

static const struct rule { uint64_t recipes; unsigned roles, when; uint32_t type; } rules[] = {
	{ EVERY, ROLE(R_LATENT), GLM5, GGU_TYPE_Q8_0 },

	{ P(MXFP4_MOE), ROLE(R_OUTPUT), 0, GGU_TYPE_Q8_0 },
	{ P(MXFP4_MOE), ~ROLE(R_OUTPUT), EXPERT, GGU_TYPE_MXFP4 },
	{ P(MXFP4_MOE), ~ROLE(R_OUTPUT), 0, GGU_TYPE_Q8_0 },

	{ EVERY, ROLE(R_OUTPUT), FALCON, GGU_TYPE_Q8_0 },
	{ EVERY, ROLE(R_OUTPUT), MISFIT, GGU_TYPE_Q8_0 },
	{ LOW | P(IQ3_XXS), ROLE(R_OUTPUT), 0, GGU_TYPE_Q5_K },
	{ EVERY & ~P(Q8_0), ROLE(R_OUTPUT), 0, GGU_TYPE_Q6_K },

	{ LOW & ~IQ2SM, ROLE(R_EMBD), 0, GGU_TYPE_Q2_K },
	{ IQ2SM | P(IQ3_XXS), ROLE(R_EMBD), 0, GGU_TYPE_IQ3_S },
	{ P(TQ1_0) | P(TQ2_0) | P(Q2_0), ROLE(R_EMBD), 0, GGU_TYPE_Q4_K },

	{ LOW, ROLE(R_VALUE), GQA4, GGU_TYPE_Q4_K },
	{ LOW, ROLE(R_VALUE), EXPERTS4, GGU_TYPE_Q4_K },
	{ IQ2SM, ROLE(R_VALUE), 0, GGU_TYPE_IQ3_S },
	{ LOW, ROLE(R_VALUE), 0, GGU_TYPE_Q2_K },
	{ LOW, ROLE(R_KEY), EXPERTS8, GGU_TYPE_Q4_K },
	{ IQ2SM, ROLE(R_DOWN), COUNT8, GGU_TYPE_IQ3_S },
	{ LOW, ROLE(R_DOWN), COUNT8, GGU_TYPE_Q2_K },
	{ LOW, ROLE(R_ATTN_OUT), EXPERTS8, GGU_TYPE_Q5_K },
	{ P(IQ1_S) | P(IQ1_M), ROLE(R_ATTN_OUT), 0, GGU_TYPE_IQ2_XXS },
	{ IQ2SM, ROLE(R_ATTN_OUT), 0, GGU_TYPE_IQ3_S },

	{ EVERY & ~LOW, ROLE(R_VALUE), EXPERTS8, GGU_TYPE_Q8_0 },
	{ P(Q4_K_M) | P(Q5_K_M), ROLE(R_VALUE), MORE, GGU_TYPE_Q6_K },
	{ P(Q2_K) | P(Q3_K_S) | P(Q3_K_M) | P(IQ3_M) | P(Q4_K_S) | P(Q4_K_M), ROLE(R_VALUE), IS_70B, GGU_TYPE_Q5_K },
	{ P(Q2_K_S) | P(IQ3_XXS) | P(IQ3_XS) | P(IQ3_S), ROLE(R_VALUE), IS_70B | GQA4, GGU_TYPE_Q5_K },
	{ P(Q2_K) | P(Q2_K_S) | P(IQ3_XXS) | P(IQ3_XS) | P(IQ3_S), ROLE(R_VALUE), GQA4, GGU_TYPE_Q4_K },
	{ P(Q2_K), ROLE(R_VALUE), 0, GGU_TYPE_Q3_K },
	{ P(IQ3_XXS), ROLE(R_VALUE), NO_MATRIX, GGU_TYPE_IQ3_S },
	{ P(IQ3_M), ROLE(R_VALUE), 0, GGU_TYPE_Q4_K },
	{ P(Q3_K_M), ROLE(R_VALUE), FIRST2, GGU_TYPE_Q5_K },
	{ P(Q3_K_M), ROLE(R_VALUE), 0, GGU_TYPE_Q4_K },
	{ P(Q3_K_L), ROLE(R_VALUE), 0, GGU_TYPE_Q5_K },
	{ P(IQ4_NL) | P(IQ4_XS), ROLE(R_VALUE), GQA4, GGU_TYPE_Q5_K },
	{ P(Q4_K_S), ROLE(R_VALUE), FIRST4, GGU_TYPE_Q5_K },

	{ EVERY & ~LOW, ROLE(R_KEY), EXPERTS8, GGU_TYPE_Q8_0 },
	{ P(IQ3_XS), ROLE(R_KEY) | ROLE(R_QUERY), 0, GGU_TYPE_IQ3_XXS },
	{ P(IQ3_XXS), ROLE(R_KEY) | ROLE(R_QUERY), 0, GGU_TYPE_IQ2_S },

	{ P(Q2_K), ROLE(R_DOWN), 0, GGU_TYPE_Q3_K },
	{ P(Q2_K_S), ROLE(R_DOWN), EARLY8, GGU_TYPE_Q4_K },
	{ P(IQ3_XXS), ROLE(R_DOWN), NO_MATRIX | EARLY8, GGU_TYPE_Q4_K },
	{ P(IQ3_XXS), ROLE(R_DOWN), NO_MATRIX, GGU_TYPE_Q3_K },
	{ P(Q3_K_M), ROLE(R_DOWN), EARLY16, GGU_TYPE_Q5_K },
	{ P(Q3_K_M), ROLE(R_DOWN), NOT_FALCON, GGU_TYPE_Q4_K },
	{ P(Q3_K_M), ROLE(R_DOWN), MORE, GGU_TYPE_Q4_K },
	{ P(IQ3_M), ROLE(R_DOWN), EARLY8, GGU_TYPE_Q4_K },
	{ P(IQ3_M), ROLE(R_DOWN), EXPERTS8 | MORE, GGU_TYPE_Q4_K },
	{ P(Q3_K_L), ROLE(R_DOWN), FALCON, GGU_TYPE_Q4_K },
	{ P(Q3_K_L), ROLE(R_DOWN), 0, GGU_TYPE_Q5_K },
	{ P(Q4_K_M), ROLE(R_DOWN), FALCON | EARLY16, GGU_TYPE_Q6_K },
	{ P(Q4_K_M), ROLE(R_DOWN), FALCON | MORE, GGU_TYPE_Q5_K },
	{ P(Q4_K_M), ROLE(R_DOWN), NOT_FALCON | MORE, GGU_TYPE_Q6_K },
	{ P(Q5_K_M), ROLE(R_DOWN), MORE, GGU_TYPE_Q6_K },
	{ P(IQ4_NL) | P(IQ4_XS), ROLE(R_DOWN), NO_MATRIX | EARLY8, GGU_TYPE_Q5_K },
	{ P(Q4_K_S), ROLE(R_DOWN), NOT_FALCON | EARLY8, GGU_TYPE_Q5_K },
	{ P(Q4_0), ROLE(R_DOWN), MATRIX | EARLY8, GGU_TYPE_Q4_1 },
	{ P(Q5_0), ROLE(R_DOWN), MATRIX | EARLY8, GGU_TYPE_Q5_1 },

	{ P(Q2_K) | P(IQ3_XS) | P(IQ3_XXS) | P(Q3_K_S) | P(Q3_K_M) | P(IQ4_NL) | P(Q4_K_S) | P(Q4_K_M) | P(IQ3_S) |
		P(IQ3_M) | P(IQ4_XS), ROLE(R_ATTN_OUT), NOT_FALCON | EXPERTS8, GGU_TYPE_Q5_K },
	{ P(Q2_K), ROLE(R_ATTN_OUT), NOT_FALCON | NOT_EXPERTS8, GGU_TYPE_Q3_K },
	{ P(IQ3_XXS), ROLE(R_ATTN_OUT), NOT_FALCON | NOT_EXPERTS8, GGU_TYPE_IQ3_S },
	{ P(Q3_K_M) | P(IQ3_M), ROLE(R_ATTN_OUT), NOT_FALCON | NOT_EXPERTS8, GGU_TYPE_Q4_K },
	{ P(Q3_K_L), ROLE(R_ATTN_OUT), NOT_FALCON | NOT_EXPERTS8, GGU_TYPE_Q5_K },
	{ P(Q3_K_L), ROLE(R_ATTN_OUT), FALCON, GGU_TYPE_Q4_K },

	{ P(IQ3_XS), ROLE(R_GATE) | ROLE(R_UP), MIDDLE, GGU_TYPE_IQ3_XXS },
};

/* The fall-backs of types whose block is too long for a row. For any other type, or if the fall-back does not fit
 * either, the tensor becomes F16. Where llama.cpp uses Q4_0, this uses IQ4_NL, which is as large: on SmolLM2 135M,
 * whose rows have 576 weights, it has 20 to 40 % less weighted error in every tensor, and Q2_K diverges by .17 instead
 * of .20. */
static const struct { uint32_t type, instead; } fallbacks[] = {
	{ GGU_TYPE_IQ1_S, GGU_TYPE_IQ4_NL }, { GGU_TYPE_IQ1_M, GGU_TYPE_IQ4_NL }, { GGU_TYPE_IQ2_XXS, GGU_TYPE_IQ4_NL },
	{ GGU_TYPE_IQ2_XS, GGU_TYPE_IQ4_NL }, { GGU_TYPE_IQ2_S, GGU_TYPE_IQ4_NL },
	{ GGU_TYPE_IQ3_XXS, GGU_TYPE_IQ4_NL }, { GGU_TYPE_IQ3_S, GGU_TYPE_IQ4_NL },
	{ GGU_TYPE_IQ4_XS, GGU_TYPE_IQ4_NL },
	{ GGU_TYPE_Q1_0, GGU_TYPE_IQ4_NL }, { GGU_TYPE_Q2_0, GGU_TYPE_IQ4_NL }, { GGU_TYPE_Q2_K, GGU_TYPE_IQ4_NL },
	{ GGU_TYPE_Q3_K, GGU_TYPE_IQ4_NL }, { GGU_TYPE_TQ1_0, GGU_TYPE_IQ4_NL }, { GGU_TYPE_TQ2_0, GGU_TYPE_IQ4_NL },
	{ GGU_TYPE_Q4_K, GGU_TYPE_Q5_0 }, { GGU_TYPE_Q5_K, GGU_TYPE_Q5_1 }, { GGU_TYPE_Q6_K, GGU_TYPE_Q8_0 },
	{ GGU_TYPE_NVFP4, GGU_TYPE_MXFP4 },
};
static bool fits(uint32_t type, uint64_t cols)
{
	const struct ggu_type_info *info = ggu_type_info(type);
	return info && cols % info->block_weights == 0;
}
static uint32_t fallback(uint32_t type, uint64_t cols)
{
	if (fits(type, cols)) return type;
	for (size_t i = 0; i < sizeof fallbacks/sizeof *fallbacks; i++)
		if (fallbacks[i].type == type && fits(fallbacks[i].instead, cols)) return fallbacks[i].instead;
	return GGU_TYPE_F16;
}

/* Is a tensor of type `from`, if models are published in it, as good in it as in `to`? Other blocks could only add
 * their own error to its weights, and would be no smaller. */
static bool stays(uint32_t from, uint32_t to)
{
	const struct ggu_type_info *f = ggu_type_info(from), *t = ggu_type_info(to);
	return (from == GGU_TYPE_MXFP4 || from == GGU_TYPE_NVFP4) && t->kind == GGU_KIND_BLOCK && from != to
		&& f->block_bytes*t->block_weights <= t->block_bytes*f->block_weights;
}

/* ---- the model ---- */

struct model_facts {
	unsigned when;                  /* conditions that hold for every tensor */
	unsigned n_expert, n_layer;
	unsigned n_value;               /* tensors of that role */
	bool tied;                      /* no output.weight: token_embd is it */
	bool only_ffn_experts;          /* 3-D tensors of attention are no experts */
};
/* The layer of "blk.12.attn_q.weight"; -1 outside the layers. */
static long layer_of(const char *name)
{
	char *end;
	long n;
	if (!text_starts(name, "blk.") || name[4] < '0' || name[4] > '9') return -1;
	n = strtol(name + 4, &end, 10);
	return *end == '.' && n < 1000000 ? n : -1;
}
static uint64_t model_number(const struct ggu_meta *meta, struct ggu_str arch, const char *key)
{
	char name[256];
	uint64_t v = 0;
	const struct ggu_kv *kv;
	if (!meta || arch.n > 128) return 0;
	snprintf(name, sizeof name, "%s.%s", arch.p, key);
	kv = ggu_meta_find(meta, name);
	if (kv) ggu_kv_uint(kv, 0, &v);         /* the first of a list by layer */
	return v < 1000000 ? v : 0;
}
/* What llama.cpp calls a 70B model, by architecture and layers. */
static const struct { const char *arch; unsigned n_layer; bool gqa; } seventy[] = {
	{ "llama", 80, true }, { "qwen2", 80, false }, { "deci", 80, false }, { "olmoe", 80, false },
	{ "jais2", 68, false },
};
static struct model_facts model_facts(const struct recipe_options *o, const struct ggu_meta *meta,
	const struct ggu_tensor *const *t, size_t n)
{
	struct model_facts m = { .tied = true };
	struct ggu_str arch = { "", 0 };
	uint64_t heads, kv;
	bool count;                     /* layers: the number is unknown */
	if (meta) ggu_meta_str(meta, "general.architecture", &arch);
	m.n_expert = (unsigned)model_number(meta, arch, "expert_count");
	m.n_layer = (unsigned)model_number(meta, arch, "block_count");
	heads = model_number(meta, arch, "attention.head_count");
	kv = model_number(meta, arch, "attention.head_count_kv");
	count = m.n_layer == 0;
	for (size_t i = 0; i < n; i++) {
		enum role role = role_of(t[i]->name);
		long layer = layer_of(t[i]->name);
		m.n_value += role == R_VALUE;
		if (role == R_OUTPUT) m.tied = false;
		if (count && layer >= (long)m.n_layer) m.n_layer = (unsigned)layer + 1;
	}
	m.when = (kv && heads/kv >= 4 ? GQA4 : 0) | (m.n_expert >= 4 ? EXPERTS4 : 0) |
		(m.n_expert == 8 ? EXPERTS8 : NOT_EXPERTS8) | (o->have_importance ? MATRIX : NO_MATRIX) |
		(strcmp(arch.p, "falcon") == 0 ? FALCON : NOT_FALCON) | (strcmp(arch.p, "glm5-next") == 0 ? GLM5 : 0);
	for (size_t i = 0; i < sizeof seventy/sizeof *seventy; i++)
		if (strcmp(arch.p, seventy[i].arch) == 0 && m.n_layer == seventy[i].n_layer && (!seventy[i].gqa ||
			heads != kv))
			m.when |= IS_70B;
	m.only_ffn_experts = strcmp(arch.p, "bailingmoe3") == 0;
	return m;
}

/* ---- choosing ---- */

static unsigned place(unsigned i, unsigned n)
{
	return (i < n/8 ? EARLY8 : 0) | (i < n/16 ? EARLY16 : 0) | (i < 2 ? FIRST2 : 0) | (i < 4 ? FIRST4 : 0) |
		(i >= n/8 && i < 7*n/8 ? MIDDLE : 0) |
		(i < n/8 || i >= 7*n/8 || (i - n/8) % 3 == 2 ? MORE : 0);
}
static uint32_t by_rules(const struct recipe *r, const struct model_facts *m, const struct ggu_tensor *t,
	enum role role, unsigned *count)
{
	bool ffn = role == R_UP || role == R_GATE || role == R_DOWN;
	unsigned n = role == R_VALUE ? m->n_value : m->n_layer, i = count[role]++, when = m->when;
	long layer = layer_of(t->name);
	if (role == R_EMBD && m->tied) role = R_OUTPUT;
	when |= i < n/8 ? COUNT8 : 0;
	when |= place(ffn && m->n_expert > 1 && layer >= 0 ? (unsigned)layer : i, n);
	if (!fits(r->type, t->ne[0])) when |= MISFIT;
	if (t->ne[2] > 1 && (ffn || !m->only_ffn_experts)) when |= EXPERT;
	for (size_t k = 0; k < sizeof rules/sizeof *rules; k++)
		if (rules[k].recipes >> (r - recipes) & 1 && rules[k].roles >> role & 1 && (rules[k].when & ~when) == 0)
			return rules[k].type;
	return r->type;
}

struct order { const struct ggu_tensor *t; size_t at; long layer; };
static int by_layer_and_name(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
	return strcmp(x->t->name, y->t->name);
}
static bool needs_importance(const struct recipe *r, const char *name, uint32_t type)
{
	if (recipe_needs_no_importance(name)) return false;
	return quant_needs_importance(type) || (type == GGU_TYPE_Q2_K && r == &recipes[P_Q2_K_S]);
}
/* The caller's type for this tensor; RECIPE_KEEP: none. An embedding by layer gets the embedding's type too, but an
 * override goes before that. */
static uint32_t wanted(const struct recipe_options *o, const struct model_facts *m, const struct ggu_tensor *t,
	enum role role)
{
	const bool by_layer = role == R_EMBD && strcmp(t->name, "token_embd.weight") != 0;
	uint32_t type;
	if (role == R_EMBD && !by_layer && o->token_embd_type >= 0) return (uint32_t)o->token_embd_type;
	if (role == R_OUTPUT && o->output_type >= 0) return (uint32_t)o->output_type;
	type = o->override ? o->override(o->override_ctx, t->name) : RECIPE_KEEP;
	if (type != RECIPE_KEEP) return type;
	if (by_layer && o->token_embd_type >= 0) return (uint32_t)o->token_embd_type;
	if (role == R_EMBD && m->tied && o->output_type >= 0) return (uint32_t)o->output_type;
	return RECIPE_KEEP;
}
/* The type that the recipe is named after (IQ2_S, which most tensors of its mixture do not have), or that of most. */
static uint32_t pure_type(const struct recipe *r)
{
	const struct ggu_type_info *t = ggu_type_find(r->name);
	return t ? t->id : r->type;
}
static enum ggu_status choose_one(const struct recipe *r, const struct recipe_options *o, const struct model_facts *m,
	const struct ggu_tensor *t, unsigned *count, struct recipe_choice *c, struct ggu_error *err)
{
	enum role role = role_of(t->name);
	uint32_t type = RECIPE_KEEP;
	*c = (struct recipe_choice){ t->type, t->type, RECIPE_LEFT_ALONE };
	if (is_left_alone(t, o, m->when & GLM5)) return GGU_OK;
	type = wanted(o, m, t, role);
	if (type != RECIPE_KEEP) {
		if (!ggu_type_info(type))
			return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, t->name, "there is no tensor type %u",
				type);
		if (!fits(type, t->ne[0]))
			return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, t->name,
				"rows of %llu weight%s are not a whole number of %s blocks",
				(unsigned long long)t->ne[0], text_s(t->ne[0]), ggu_type_info(type)->name);
		*c = (struct recipe_choice){ type, type, RECIPE_OVERRIDE };
	} else if (r->ftype == RECIPE_KEEP) {
		return GGU_OK;
	} else {
		bool plain = o->pure || ggu_type_info(r->type)->kind == GGU_KIND_FLOAT;
		c->wanted = plain ? pure_type(r) : by_rules(r, m, t, role, count);
		c->type = fallback(c->wanted, t->ne[0]);
		c->reason = c->type == c->wanted ? RECIPE_RULE : RECIPE_FALLBACK;
		if (!o->pure && stays(t->type, c->type)) {
			c->type = t->type;
			c->reason = RECIPE_PUBLISHED;
			return GGU_OK;
		}
	}
	if (!o->have_importance && !o->need_nothing && needs_importance(r, t->name, c->type))
		return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, t->name, "%s needs an importance matrix",
			ggu_type_info(c->type)->name);
	return GGU_OK;
}

enum ggu_status recipe_choose(const struct recipe *r, const struct recipe_options *o, const struct ggu_meta *meta,
	const struct ggu_tensor *const *tensors, size_t n, struct recipe_choice *choice, struct ggu_error *err)
{
	struct model_facts m = model_facts(o, meta, tensors, n);
	enum ggu_status s = GGU_OK;
	unsigned count[N_ROLES] = { 0 };
	struct order *order = malloc((n + 1)*sizeof *order);
	struct recipe_choice *out = malloc((n + 1)*sizeof *out);
	if (!order || !out) {
		s = ggu_no_memory(err);
		n = 0;
	}
	for (size_t i = 0; i < n; i++) order[i] = (struct order){ tensors[i], i, layer_of(tensors[i]->name) };
	if (n) qsort(order, n, sizeof *order, by_layer_and_name);
	for (size_t i = 0; i < n && s == GGU_OK; i++)
		s = choose_one(r, o, &m, order[i].t, count, &out[order[i].at], err);
	if (s == GGU_OK && n) memcpy(choice, out, n*sizeof *out);
	free(out);
	free(order);
	return s;
}
