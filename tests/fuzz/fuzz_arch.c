/* SPDX-License-Identifier: MIT
 * fuzz_arch.c - any bytes as an architecture description: refused, or its graph is resolved for a little model;
 * refused, or three tokens go through it. The sizes that the forward pass relies on are those that the graph has
 * checked.
 *
 * The model has two layers of every tensor that a built-in description names, of one square shape, and the keys that
 * they read under whatever name the description has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../libgguf/pool.h"
#include "../../model/eval/model_internal.h"
#include "../../model/eval/session.h"
#include "fuzz.h"

enum { WIDE = 32 };     /* columns and rows of every matrix */

static const char *const matrices[] = { "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down" };
static const char *const vectors[] = { "attn_norm", "ffn_norm", "attn_q_norm", "attn_k_norm", "post_attention_norm",
	"post_ffw_norm" };

static void set_keys(struct ggu_meta *m, const char *arch)
{
	static const struct { const char *key; int64_t v; } ints[] = {
		{ "block_count", 2 }, { "context_length", 64 }, { "embedding_length", WIDE },
		{ "feed_forward_length", WIDE },
		{ "attention.head_count", 4 }, { "attention.key_length", WIDE/4 },
		{ "attention.value_length", WIDE/4 }, { "rope.dimension_count", WIDE/4 },
		{ "attention.sliding_window", 2 }, { "rope.scaling.original_context_length", 32 }, { "odd", -7 },
	};
	char key[128];

	for (size_t i = 0; i < sizeof ints/sizeof *ints; i++) {
		snprintf(key, sizeof key, "%s.%s", arch, ints[i].key);
		must(ggu_meta_set_int(m, key, GGU_I32, ints[i].v) == GGU_OK, "no metadata");
	}
	for (int i = 0; i < 2; i++) {
		snprintf(key, sizeof key, "%s.%s", arch, i ? "attention.layer_norm_epsilon" :
			"attention.layer_norm_rms_epsilon");
		must(ggu_meta_set_float(m, key, GGU_F32, 1e-5) == GGU_OK, "no metadata");
	}
	snprintf(key, sizeof key, "%s.list", arch);
	must(ggu_meta_set_array(m, key, GGU_I32, (int32_t[]){ 1, 2, 3 }, 3) == GGU_OK, "no metadata");
}

/* The keys that operators other than attention and feed-forward read. */
static const struct { const char *name; uint64_t cols, rows, mats; } others[] = {
	{ "ffn_gate_inp", WIDE, 4, 1 }, { "ffn_gate_exps", WIDE, WIDE, 4 }, { "ffn_up_exps", WIDE, WIDE, 4 },
	{ "ffn_down_exps", WIDE, WIDE, 4 },
	{ "attn_kv_a_mqa", WIDE, 18, 1 }, { "attn_kv_a_norm", 16, 1, 1 }, { "attn_k_b", 6, 16, 4 },
	{ "attn_v_b", 16, 8, 4 },
	{ "ssm_in", WIDE, 2*WIDE, 1 }, { "ssm_conv1d", 4, WIDE, 1 }, { "ssm_x", WIDE, 2 + 2*8, 1 },
	{ "ssm_dt", 2, WIDE, 1 },
	{ "ssm_a", 8, WIDE, 1 }, { "ssm_d", WIDE, 1, 1 }, { "ssm_out", WIDE, WIDE, 1 },
	{ "ssm2_in", WIDE, WIDE + WIDE + 2*8 + 4, 1 }, { "ssm2_conv1d", 4, WIDE + 2*8, 1 }, { "ssm2_a", 4, 1, 1 },
	{ "ssm2_dt", 4, 1, 1 },
};

static void add_mats(struct ggu_writer *w, uint64_t *bytes, const char *format, int layer, const char *name,
	uint64_t cols, uint64_t rows, uint64_t mats)
{
	char full[64];
	uint64_t ne[3] = { cols, rows, mats };

	if (layer < 0) snprintf(full, sizeof full, format, name);
	else snprintf(full, sizeof full, format, layer, name);
	must(ggu_writer_add(w, full, mats > 1 ? 3 : rows > 1 ? 2 : 1, ne, GGU_TYPE_F32, NULL) == GGU_OK, "no tensor");
	*bytes += 4*cols*rows*mats;
}
static void add(struct ggu_writer *w, uint64_t *bytes, const char *format, int layer, const char *name, uint64_t cols,
	uint64_t rows)
{
	add_mats(w, bytes, format, layer, name, cols, rows, 1);
}

/* The model as a GGUF in memory, for an architecture of this name: *n bytes, which the caller frees. */
static uint8_t *make_model(const char *arch, size_t *n)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w = NULL;
	uint64_t bytes = 0;
	FILE *f = tmpfile();
	uint8_t *p;

	set_keys(m, arch);
	must(f && ggu_writer_new(&w, m, NULL) == GGU_OK, "no model");
	add(w, &bytes, "%s.weight", -1, "token_embd", WIDE, WIDE);
	add(w, &bytes, "%s.weight", -1, "output_norm", WIDE, 1);
	add(w, &bytes, "%s.weight", -1, "rope_freqs", WIDE/8, 1);
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < sizeof matrices/sizeof *matrices; k++)
			add(w, &bytes, "blk.%d.%s.weight", i, matrices[k], WIDE, WIDE);
		add(w, &bytes, "blk.%d.%s.weight", i, "attn_qkv", WIDE, 3*WIDE);
		add(w, &bytes, "blk.%d.%s.weight", i, "ffn_gate_up", WIDE, 2*WIDE);
		add(w, &bytes, "blk.%d.%s.bias", i, "attn_qkv", 3*WIDE, 1);
		for (size_t k = 0; k < sizeof others/sizeof *others; k++)
			add_mats(w, &bytes, "blk.%d.%s.weight", i, others[k].name, others[k].cols, others[k].rows,
				others[k].mats);
		for (size_t k = 0; k < sizeof vectors/sizeof *vectors; k++)
			add(w, &bytes, "blk.%d.%s.weight", i, vectors[k], k == 2 || k == 3 ? WIDE/4 : WIDE, 1);
	}
	must(ggu_writer_begin(w, fileno(f), NULL) == GGU_OK, "no model");
	for (uint64_t i = 0; i < bytes/4; i++)
		must(ggu_writer_data(w, &(float){ (float)(i % 7)*0.25f + 0.125f }, 4, NULL) == GGU_OK, "no data");
	must(ggu_writer_end(w, NULL) == GGU_OK, "no end");
	*n = (size_t)ggu_writer_file_bytes(w);
	p = malloc(*n);
	must(p && pread(fileno(f), p, *n, 0) == (ssize_t)*n, "no bytes");
	ggu_writer_free(w);
	ggu_meta_free(m);
	fclose(f);
	return p;
}

static void evaluate(struct model *m)
{
	struct session *s;
	struct ggu_error err = { 0 };
	int32_t ids[3] = { 1, 2, 0 };
	float *logits = malloc(3*(model_n_logits(m) + 1)*sizeof *logits);
	struct session_eval e = { .ids = ids, .n = 3, .logits = m->graph.head.name ? logits : NULL };

	must(logits, "no memory");
	if (session_new(&s, m, 4, m->graph.whole ? 4 : 2, NULL, &err) == GGU_OK) {
		struct part source = { session_state(s), ids + 2, 1, 0 };
		must(!model_has_encoder(m) || !model_encode(session_work(s), &source, 1, NULL, NULL, &err),
			"the encoder failed");
		must(session_eval(s, &e, &err) == GGU_OK, "the evaluation failed");
		fuzz_evaluated++;
		session_free(s);
	} else must(err.code != GGU_OK && *err.what, "refused without a reason");
	free(logits);
}

static void resolve(const struct arch *a)
{
	static struct ggu_pool *pool;
	struct model m = { .be = &backend_cpu, .arena = expr_arena_new(),
		.pool = pool ? pool : (pool = ggu_pool_new(1)) };
	struct ggu_error err = { 0 };
	size_t n;
	uint8_t *bytes = make_model(a->name, &n);

	pages_init(&m.pages);
	must(m.arena && m.pool && ggu_open_memory(&m.file, bytes, n, NULL, NULL) == GGU_OK, "the model cannot be read");
	if (graph_build(&m.graph, a, m.file, m.arena, &err) == GGU_OK) evaluate(&m);
	else must(err.code != GGU_OK && *err.what, "refused without a reason");
	pages_free(&m.pages);
	ggu_close(m.file);
	expr_arena_free(m.arena);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arch_set *set;
	struct ggu_error err = { 0 };

	must(arch_set_empty(&set, NULL) == GGU_OK, "no memory");
	if (arch_set_add(set, "input.yaml", (const char *)data, size, &err) != GGU_OK)
		must(err.code != GGU_OK && *err.what, "refused without a reason");
	must(arch_set_all(set, NULL) == GGU_OK, "no memory");
	for (size_t i = 0; i < arch_count(set); i++) resolve(arch_at(set, i));
	arch_set_free(set);
	return 0;
}
