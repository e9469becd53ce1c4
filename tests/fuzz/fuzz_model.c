/* SPDX-License-Identifier: MIT
 * fuzz_model.c - any bytes as a GGUF that is a model: refused, or three tokens go through it, and its state is saved
 * and loaded, and with a change refused or gone on with; and its vocabulary refused, or a text cut into tokens that it
 * has.
 *
 * A change of bytes breaks a header long before it changes a size that a model could have. The mutator here reads the
 * file, changes a value, type or shape, and writes another file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "../../libgguf/pool.h"
#include "../../model/eval/session.h"
#include "../../model/vocab/tokenizer.h"
#include "fuzz.h"

static void tokenize(const struct ggu_meta *m)
{
	static const char text[] = "Hello,  w\xc3\xb6rld 1234\n\xff<s>";
	struct vocab *v;
	struct tokenizer *t;
	struct ggu_error err = { 0 };
	int32_t *ids = NULL;
	size_t n = 0;

	if (vocab_from_meta(&v, m, &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		return;
	}
	if (tokenizer_new(&t, v, &err) == GGU_OK) {
		if (tokenizer_encode(t, text, sizeof text - 1, TOKENIZE_BOS | TOKENIZE_EOS | TOKENIZE_SPECIAL, &ids,
			&n, &err) == GGU_OK)
			for (size_t i = 0; i < n; i++)
				must(ids[i] >= 0 && (size_t)ids[i] < vocab_count(v), "an id outside the vocabulary");
		tokenizer_free(t);
	} else must(err.code != GGU_OK && *err.what, "no tokenizer without a reason");
	free(ids);
	vocab_free(v);
}

/* The state as bytes, of which one is changed or the last is missing, depending on `seed`. The first few hundred say
 * what the rest is. */
static void keep(struct session *s, const struct session_eval *next, uint32_t seed)
{
	struct state *state = session_state(s);
	size_t n = state_save_bytes(state), pos = state_pos(state), at = (seed >> 8)%(n < 512 || seed & 8 ? n : 512);
	char *bytes = malloc(2*n), *again = bytes + n;
	struct ggu_error err = { 0 };

	must(bytes, "no memory");
	state_save(state, bytes);
	must(state_load(state, bytes, n, &err) == GGU_OK && state_save_bytes(state) == n, "a state is not loaded");
	state_save(state, again);
	must(!memcmp(bytes, again, n), "a state changed when it was loaded");
	bytes[at] = (char)(bytes[at] ^ 1 << seed%8);
	if (state_load(state, bytes, seed & 16 ? n : n - 1, &err) == GGU_OK) {
		must(state_pos(state) >= 4 || session_eval(s, next, &err) == GGU_OK, "the evaluation failed");
	} else {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		state_save(state, bytes);
		must(state_pos(state) == pos && !memcmp(bytes, again, n), "a state that was refused is another");
	}
	free(bytes);
}

static void evaluate(struct model *m, uint32_t seed)
{
	struct session *s;
	struct ggu_error err = { 0 };
	int32_t ids[3] = { 0, 0, 0 };
	float *logits = malloc(3*(model_n_logits(m) + 1)*sizeof *logits);
	struct session_eval e = { .ids = ids, .n = 3, .logits = model_has_head(m) ? logits : NULL };

	must(logits, "no memory");
	if (model_n_positions(m) < e.n)
		e.n = model_n_positions(m);
	ids[1] = (int32_t)model_n_vocab(m) - 1;
	if (session_new(&s, m, 4, model_is_whole(m) ? 4 : 2, NULL, &err) == GGU_OK) {
		struct part source = { session_state(s), ids, 1, 0 };
		must(!model_has_encoder(m) || !model_encode(session_work(s), &source, 1, NULL, NULL, &err),
			"the encoder failed");
		must(session_eval(s, &e, &err) == GGU_OK, "the evaluation failed");
		if (!model_is_whole(m) && e.n == 3)
			keep(s, &(struct session_eval){ .ids = ids, .n = 1, .logits = e.logits }, seed);
		session_free(s);
	} else must(err.code != GGU_OK && *err.what, "refused without a reason");
	free(logits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ggu_pool *pool;
	struct model_options o = { .pool = pool ? pool : (pool = ggu_pool_new(1)) };
	struct ggu_file *f;
	struct model *m;
	struct ggu_error err = { 0 };

	if (ggu_open_memory(&f, data, size, NULL, NULL) != GGU_OK)
		return 0;
	tokenize(ggu_file_meta(f));
	ggu_close(f);
	if (model_open(&m, folder_file("model.gguf", data, size), &o, &err) == GGU_OK) {
		evaluate(m, (uint32_t)XXH3_64bits(data, size));
		model_close(m);
	} else must(err.code != GGU_OK && *err.what, "refused without a reason");
	return 0;
}

/* ---- mutations ---- */

/* A file that is being changed. data: of all tensors, as they were */
struct draft {
	struct ggu_file *f;
	struct ggu_meta *meta;
	struct ggu_tensor *t;
	unsigned char **data;
	size_t n;
	uint32_t seed;
};

static size_t roll(struct draft *d, size_t n)
{
	d->seed = d->seed*1664525u + 1013904223u;
	return (d->seed >> 8)%n;
}

static void set_number(struct draft *d, const char *key)
{
	static const uint64_t sizes[] = { 0, 1, 2, 3, 4, 7, 8, 16, 17, 32, 33, 64, 128, 4096, 4097, 1 << 16, 1 << 24,
		(1 << 24) + 1, INT32_MAX, UINT32_MAX, (uint64_t)1 << 32, INT64_MAX, UINT64_MAX };
	static const double numbers[] = { 0, 1, -1, 0.5, 1e-6, 1e-38, 1e6, 1e12, 1e38, 1e300, INFINITY, -INFINITY,
		NAN };
	uint64_t size = sizes[roll(d, sizeof sizes/sizeof *sizes)];
	double number = numbers[roll(d, sizeof numbers/sizeof *numbers)];

	if (roll(d, 2))
		ggu_meta_set_uint(d->meta, key, size > UINT32_MAX ? GGU_U64 : GGU_U32, size);
	else
		ggu_meta_set_float(d->meta, key, roll(d, 4) ? GGU_F32 : GGU_F64, number);
}

static void change_value(struct draft *d)
{
	const struct ggu_kv *kv = ggu_meta_at(d->meta, roll(d, ggu_meta_count(d->meta)));
	struct ggu_str s;
	uint32_t list[8] = { 1, 0, 2, 3, 1, 4, 2, UINT32_MAX };
	char key[256] = "";
	uint64_t v;

	if (ggu_kv_key(kv).n >= sizeof key)
		return;
	strcpy(key, ggu_kv_key(kv).p);
	if (ggu_kv_str(kv, 0, &s) && roll(d, 4))
		return;
	switch (roll(d, 8)) {
	case 0: ggu_meta_remove(d->meta, key); break;
	case 1: ggu_meta_set_array(d->meta, key, GGU_U32, list, roll(d, 9)); break;
	case 2: ggu_meta_set_str(d->meta, key, "yarn", roll(d, 5)); break;
	case 3: case 4:
		if (ggu_kv_uint(kv, 0, &v))
			ggu_meta_set_uint(d->meta, key, GGU_U64, v + roll(d, 3) - 1);
		break;
	default: set_number(d, key);
	}
}

/* Adds a key that another architecture has. */
static void add_value(struct draft *d)
{
	static const char *const names[] = { "attention.head_count_kv", "attention.key_length",
		"attention.value_length", "attention.sliding_window", "attention.sliding_window_pattern",
		"attention.scale", "attention.clamp_kqv", "attn_logit_softcapping", "final_logit_softcapping",
		"logit_scale", "residual_scale", "embedding_scale", "expert_count", "expert_used_count",
		"expert_group_count", "expert_group_used_count", "expert_weights_scale", "expert_weights_norm",
		"leading_dense_block_count", "nextn_predict_layers", "rope.dimension_count", "rope.freq_base",
		"rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.yarn_beta_fast",
		"rope.scaling.yarn_beta_slow", "rope.scaling.attn_factor", "ssm.time_step_rank", "ssm.group_count",
		"use_parallel_residual" };
	struct ggu_str arch = { "llama", 5 };
	char key[256];

	ggu_meta_str(d->meta, "general.architecture", &arch);
	if (snprintf(key, sizeof key, "%s.%s", arch.p, names[roll(d, sizeof names/sizeof *names)]) < (int)sizeof key)
		set_number(d, key);
}

/* Changes a size wherever it appears, so that tensors and metadata may still agree. */
static void change_size(struct draft *d)
{
	const struct ggu_tensor *some = d->t + roll(d, d->n);
	uint64_t from = some->ne[roll(d, some->n_dims + 1)%4], to = 1 + roll(d, 2*from < 256 ? 2*from + 1 : 256), v;

	for (size_t i = 0; i < d->n; i++)
		for (uint32_t k = 0; k < d->t[i].n_dims; k++)
			if (d->t[i].ne[k] == from)
				d->t[i].ne[k] = to;
	for (size_t i = 0; i < ggu_meta_count(d->meta) && from > 1; i++) {
		const struct ggu_kv *kv = ggu_meta_at(d->meta, i);
		if (ggu_kv_type(kv) == GGU_U32 && ggu_kv_uint(kv, 0, &v) && v == from)
			ggu_meta_set_uint(d->meta, ggu_kv_key(kv).p, GGU_U32, to);
	}
}

static void change_tensor(struct draft *d)
{
	static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, -1, 0 };
	struct ggu_tensor *t = d->t + roll(d, d->n);
	const float x = odd[roll(d, sizeof odd/sizeof *odd)];

	switch (roll(d, 5)) {
	case 0: t->type = (uint32_t)roll(d, ggu_type_end()); break;
	case 1: t->ne[roll(d, 4)] = roll(d, 40); break;
	case 2: t->n_dims = (uint32_t)roll(d, 5); break;
	case 3: t->name = d->t[roll(d, d->n)].name; break;
	default:
		for (uint64_t at = 0; at + sizeof x <= t->bytes; at += sizeof x)
			memcpy(d->data[t - d->t] + at, &x, sizeof x);
	}
}

static bool draft_begin(struct draft *d, const uint8_t *bytes, size_t n)
{
	if (ggu_open_memory(&d->f, bytes, n, NULL, NULL) != GGU_OK)
		return false;
	d->n = ggu_file_n_tensors(d->f);
	if (!d->n || !ggu_meta_count(ggu_file_meta(d->f)) || ggu_meta_copy(&d->meta, ggu_file_meta(d->f)) != GGU_OK)
		return false;
	d->t = calloc(d->n, sizeof *d->t);
	d->data = calloc(d->n, sizeof *d->data);
	must(d->t && d->data, "no memory");
	for (size_t i = 0; i < d->n; i++) {
		d->t[i] = *ggu_file_tensor(d->f, i);
		d->data[i] = calloc(d->t[i].bytes + 1, 1);
		must(d->data[i] && !ggu_read(d->f, d->t + i, 0, d->data[i], d->t[i].bytes, NULL), "no data");
	}
	return true;
}

static void draft_end(struct draft *d)
{
	for (size_t i = 0; d->data && i < d->n; i++)
		free(d->data[i]);
	free(d->data);
	free(d->t);
	ggu_meta_free(d->meta);
	ggu_close(d->f);
}

/* Writes tensor t of n bytes: what it had, again and again. */
static enum ggu_status put_data(struct ggu_writer *w, const struct ggu_tensor *t, const unsigned char *data, uint64_t n)
{
	enum ggu_status s = GGU_OK;

	for (uint64_t at = 0, had = t->bytes ? t->bytes : 1; at < n && !s; at += had)
		s = ggu_writer_data(w, data, n - at < had ? n - at : had, NULL);
	return s;
}

/* Writes the file to `to`; false: there can be no such file of at most `most` bytes. */
static bool draft_write(const struct draft *d, size_t most, struct ggu_memory *to)
{
	struct ggu_sink sink = ggu_sink_memory(to);
	struct ggu_writer *w = NULL;
	enum ggu_status s = ggu_writer_new(&w, d->meta, NULL);

	for (size_t i = 0; i < d->n && !s; i++)
		s = ggu_writer_add(w, d->t[i].name, d->t[i].n_dims, d->t[i].ne, d->t[i].type, NULL);
	if (!s && ggu_writer_file_bytes(w) > most)
		s = GGU_ERR_RANGE;
	if (!s)
		s = ggu_writer_begin_sink(w, &sink, NULL);
	for (size_t i = 0; i < d->n && !s; i++) {
		const struct ggu_tensor *t = d->t + i;
		uint64_t n = 1, bytes = 0;
		for (uint32_t k = 0; k < t->n_dims; k++)
			n *= t->ne[k];
		ggu_type_bytes(t->type, n, &bytes);
		s = put_data(w, t, d->data[i], bytes);
	}
	if (!s)
		s = ggu_writer_end(w, NULL);
	ggu_writer_free(w);
	return !s && to->n <= most;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t most, unsigned seed)
{
	static void (*const changes[])(struct draft *) = { change_value, change_value, add_value, change_size,
		change_size, change_tensor };
	struct draft d = { .seed = seed };
	struct ggu_memory to = { 0 };
	bool ok = roll(&d, 16) && draft_begin(&d, bytes, n);

	for (size_t k = ok ? 1 + roll(&d, 3) : 0; k && ggu_meta_count(d.meta); k--)
		changes[roll(&d, sizeof changes/sizeof *changes)](&d);
	ok = ok && draft_write(&d, most, &to);
	if (ok)
		memcpy(bytes, to.p, n = to.n);
	free(to.p);
	draft_end(&d);
	return ok ? n : LLVMFuzzerMutate(bytes, n, most);
}
