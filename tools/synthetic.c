/* SPDX-License-Identifier: MIT
 * synthetic.c - see synthetic.h. The header is made by libgguf's writer, so that it is a file like any other. Then each
 * worker copies encoded units, drawn at random, to its share of every tensor. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../libgguf/pool.h"
#include "../libgguf/types.h"
#include "../quant/quant.h"
#include "../quant/recipe.h"
#include "decimal.h"
#include "msg.h"
#include "near.h"
#include "synthetic.h"

/* Shapes of Llama models: uses the first row that is large enough, with as many layers as the size takes. */
static const struct shape { double weights; uint32_t n_embd, head_dim, n_kv, n_ff, n_vocab; } shapes[] = {
	{ 3e6, 256, 64, 2, 512, 1024 },
	{ 20e6, 256, 64, 2, 768, 4096 },
	{ 50e6, 512, 64, 4, 1536, 8192 },
	{ 250e6, 768, 64, 4, 2048, 32000 },
	{ 700e6, 1024, 64, 4, 2816, 32000 },
	{ 2e9, 2048, 64, 4, 5632, 32000 },
	{ 5e9, 3072, 128, 8, 8192, 32000 },
	{ 10e9, 4096, 128, 8, 14336, 32000 },
	{ 30e9, 5120, 128, 8, 17920, 32000 },
	{ 1e12, 8192, 128, 8, 28672, 32000 },
};
enum { UNIT = 256, UNITS = 512, NAME_BYTES = 48, LAYER_TENSORS = 9, OTHER_TENSORS = 3, MAX_LAYERS = 4096 };

struct plan {
	struct shape shape;
	size_t n_layer, n;
	struct ggu_meta *meta;
	struct ggu_tensor *t;           /* [n] */
	char (*name)[NAME_BYTES];
	unsigned char *units[GGU_TYPE_COUNT];   /* UNITS times UNIT weights in each type that occurs */
	unsigned char *data;            /* of the tensor that is made */
	const struct ggu_tensor *at;
	uint64_t seed;
	size_t workers;
};

static double parse_size(const char *spec, const char **type)
{
	static const char letters[] = "kMBT";
	const char *end = spec, *letter;
	double n = 0;
	bool ok = decimal_real(&end, &n);
	letter = *end && *end != ',' ? strchr(letters, *end) : NULL;
	for (const char *l = letters; letter && l <= letter; l++) n *= 1000;
	if (letter) end++;
	if (!ok || *end != ',' || !(n >= 1e6 && n <= 1e12))
		msg_usage("--synthetic expects a size from 1M to 1T and a type, as in 1.1B,Q4_K_M, not '%s'", spec);
	*type = end + 1;
	return n;
}

static void add(struct plan *p, const char *name, size_t layer, uint64_t n_in, uint64_t n_out)
{
	struct ggu_tensor *t = p->t + p->n;
	if (layer < p->n_layer) snprintf(p->name[p->n], NAME_BYTES, "blk.%zu.%s.weight", layer, name);
	else snprintf(p->name[p->n], NAME_BYTES, "%s.weight", name);
	*t = (struct ggu_tensor){ .name = p->name[p->n], .ne = { n_in, n_out, 1, 1 }, .n_dims = n_out > 1 ? 2 : 1 };
	t->name_bytes = (uint32_t)strlen(t->name);
	t->type = GGU_TYPE_F32;
	p->n++;
}

static void plan_tensors(struct plan *p, double size)
{
	const struct shape *s = shapes;
	double kv, layer, ends;
	while (s->weights < size) s++;
	p->shape = *s;
	kv = (double)s->n_kv*s->head_dim;
	layer = s->n_embd*(2.0*s->n_embd + 2*kv + 3.0*s->n_ff);
	ends = 2.0*s->n_embd*s->n_vocab;
	p->n_layer = size > ends + layer ? (size_t)((size - ends)/layer + 0.5) : 1;
	if (p->n_layer > MAX_LAYERS) p->n_layer = MAX_LAYERS;
	p->t = msg_need(calloc(p->n_layer*LAYER_TENSORS + OTHER_TENSORS, sizeof *p->t));
	p->name = msg_need(calloc(p->n_layer*LAYER_TENSORS + OTHER_TENSORS, sizeof *p->name));
	add(p, "token_embd", p->n_layer, s->n_embd, s->n_vocab);
	add(p, "output_norm", p->n_layer, s->n_embd, 1);
	add(p, "output", p->n_layer, s->n_embd, s->n_vocab);
	for (size_t l = 0; l < p->n_layer; l++) {
		add(p, "attn_norm", l, s->n_embd, 1);
		add(p, "attn_q", l, s->n_embd, s->n_embd);
		add(p, "attn_k", l, s->n_embd, (uint64_t)kv);
		add(p, "attn_v", l, s->n_embd, (uint64_t)kv);
		add(p, "attn_output", l, s->n_embd, s->n_embd);
		add(p, "ffn_norm", l, s->n_embd, 1);
		add(p, "ffn_gate", l, s->n_embd, s->n_ff);
		add(p, "ffn_up", l, s->n_embd, s->n_ff);
		add(p, "ffn_down", l, s->n_ff, s->n_embd);
	}
}

static void plan_meta(struct plan *p, const char *spec, const char *type)
{
	const struct recipe *r = recipe_find(type);
	const struct shape *s = &p->shape;
	const struct { const char *key; uint64_t v; } numbers[] = {
		{ "llama.vocab_size", s->n_vocab }, { "llama.context_length", 131072 },
		{ "llama.embedding_length", s->n_embd }, { "llama.block_count", p->n_layer },
		{ "llama.feed_forward_length", s->n_ff },
		{ "llama.attention.head_count", s->n_embd/s->head_dim }, { "llama.attention.head_count_kv", s->n_kv },
		{ "llama.rope.dimension_count", s->head_dim },
	};
	bool ok;
	p->meta = msg_need(ggu_meta_new());
	ok = !ggu_meta_set_str(p->meta, "general.architecture", "llama", 5)
		&& !ggu_meta_set_str(p->meta, "general.name", spec, strlen(spec))
		&& !ggu_meta_set_str(p->meta, "tokenizer.ggml.model", "no_vocab", 8)
		&& !ggu_meta_set_float(p->meta, "llama.attention.layer_norm_rms_epsilon", GGU_F32, 1e-5);
	for (size_t i = 0; i < sizeof numbers/sizeof *numbers; i++)
		ok = ok && !ggu_meta_set_uint(p->meta, numbers[i].key, GGU_U32, numbers[i].v);
	if (r && recipe_file_type(r) != RECIPE_KEEP)
		ok = ok && !ggu_meta_set_uint(p->meta, "general.file_type", GGU_U32, recipe_file_type(r))
			&& !ggu_meta_set_uint(p->meta, "general.quantization_version", GGU_U32, 2);
	if (!ok) msg_die("out of memory");
}

static bool can_have(uint32_t type) { return quant_can_encode(type) && quant_can_multiply(type); }
static _Noreturn void no_type(const char *type)
{
	struct near near = { .asked = type };
	char hint[NEAR_BYTES];
	for (size_t i = 0; recipe_at(i); i++)
		if (recipe_type(recipe_at(i)) != RECIPE_KEEP) near_try(&near, recipe_name(recipe_at(i)));
	for (uint32_t i = 0; !near.best && i < GGU_TYPE_COUNT; i++)
		if (can_have(i)) near_try(&near, ggu_type_info(i)->name);
	msg_usage("'%s' is neither a recipe nor a type that weights can have%s", type, near_hint(&near, "", hint));
}

static void choose_types(struct plan *p, const char *type)
{
	const struct recipe *r = recipe_find(type);
	const struct ggu_type_info *one = r ? NULL : ggu_type_find(type);
	const struct ggu_tensor **list = msg_need(calloc(p->n, sizeof *list));
	struct recipe_choice *choice = msg_need(calloc(p->n, sizeof *choice));
	const struct recipe_options options = { .output_type = -1, .token_embd_type = -1, .need_nothing = true };
	struct ggu_error err;
	if (r && recipe_type(r) == RECIPE_KEEP) r = NULL;
	if (!r && !(one && can_have(one->id))) no_type(type);
	for (size_t i = 0; i < p->n; i++) list[i] = p->t + i;
	if (r && recipe_choose(r, &options, p->meta, list, p->n, choice, &err))
		msg_die_error(type, &err);
	for (size_t i = 0; i < p->n; i++) {
		struct ggu_tensor *t = p->t + i;
		if (t->n_dims > 1) t->type = r ? choice[i].type : one->id;
		ggu_type_bytes(t->type, t->ne[0]*t->ne[1], &t->bytes);
	}
	free(list);
	free(choice);
}

/* ---- numbers ---- */

static uint64_t mix(uint64_t x)         /* splitmix64 */
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30)*UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27)*UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}
/* A bell: sixteen bits of four sums of four bytes; deviation 1. */
static float bell(uint64_t i)
{
	uint64_t r = mix(i);
	int sum = 0;
	for (int k = 0; k < 8; k++) sum += (int)(r >> 8*k & 255);
	return (float)(sum - 1020)/209;
}

static size_t unit_bytes(uint32_t type)
{
	const struct ggu_type_info *info = ggu_type_info(type);
	return UNIT/info->block_weights*(size_t)info->block_bytes;
}

static void make_units(struct plan *p, uint32_t type)
{
	float *x = msg_need(malloc(UNIT*sizeof *x)), *importance = msg_need(malloc(UNIT*sizeof *importance));
	unsigned char *to = p->units[type] = msg_need(malloc(UNITS*unit_bytes(type)));
	for (size_t u = 0; u < UNITS; u++) {
		for (size_t i = 0; i < UNIT; i++) {
			x[i] = 0.02f*bell(u*UNIT + i);
			importance[i] = 1;
		}
		quant_encode(type, NULL, x, importance, 1, UNIT, QUANT_EFFORT_MIN, to + u*unit_bytes(type));
	}
	free(x);
	free(importance);
}

/* The share of a tensor that belongs to this task. */
static void fill(void *ctx, size_t task, int worker)
{
	const struct plan *p = ctx;
	const struct ggu_tensor *t = p->at;
	bool ones = t->n_dims == 1;
	size_t bytes = ones ? sizeof(float) : unit_bytes(t->type), n = (size_t)(t->bytes/bytes);
	const float one = 1;
	(void)worker;
	for (size_t i = task*n/p->workers; i < (task + 1)*n/p->workers; i++)
		memcpy(p->data + i*bytes,
			ones ? (const void *)&one : p->units[t->type] + mix(p->seed + i)%UNITS*bytes, bytes);
}

/* The header as the writer makes it; data is where the header says. */
static unsigned char *place(struct plan *p, struct ggu_file **f, size_t *n)
{
	struct ggu_writer *w;
	struct ggu_memory header = { 0 };
	struct ggu_sink sink = ggu_sink_memory(&header);
	struct ggu_error err;
	unsigned char *bytes = MAP_FAILED;
	uint64_t size;
	enum ggu_status s = ggu_writer_new(&w, p->meta, &err);
	for (size_t i = 0; !s && i < p->n; i++)
		s = ggu_writer_add(w, p->t[i].name, p->t[i].n_dims, p->t[i].ne, p->t[i].type, &err);
	if (s || ggu_writer_header(w, &sink, &err)) msg_die_error("--synthetic", &err);
	size = ggu_writer_file_bytes(w);
	ggu_writer_free(w);
	if (size <= SIZE_MAX)
		bytes = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED) msg_die("not enough memory for a model of %s", msg_bytes(size));
	*n = (size_t)size;
#ifdef MADV_HUGEPAGE
	madvise(bytes, *n, MADV_HUGEPAGE);
#endif
	memcpy(bytes, header.p, header.n);
	free(header.p);
	if (ggu_open_memory(f, bytes, *n, NULL, &err)) msg_die_error("--synthetic", &err);
	return bytes;
}

void *synthetic_make(const char *spec, struct ggu_pool *pool, size_t *n)
{
	struct plan p = { .workers = (size_t)ggu_pool_size(pool) };
	struct ggu_file *f;
	const char *type;
	double size = parse_size(spec, &type);
	unsigned char *bytes;
	plan_tensors(&p, size);
	plan_meta(&p, spec, type);
	choose_types(&p, type);
	bytes = place(&p, &f, n);
	for (size_t i = 0; i < p.n; i++) {
		p.at = ggu_file_tensor(f, i);
		p.data = bytes + ggu_file_data_offset(f, 0) + p.at->offset;
		p.seed = (uint64_t)i << 40;
		if (p.at->n_dims > 1 && !p.units[p.at->type]) make_units(&p, p.at->type);
		ggu_pool_phases(pool, &(struct ggu_phase){ fill, &p, p.workers, GGU_TAKE_OWN }, 1);
	}
	ggu_close(f);
	for (size_t i = 0; i < GGU_TYPE_COUNT; i++) free(p.units[i]);
	ggu_meta_free(p.meta);
	free(p.t);
	free(p.name);
	return bytes;
}
