/* SPDX-License-Identifier: MIT
 * models.c - see models.h. A model is written as a GGUF to a temporary file and opened from there; so is its
 * description, if it has one of its own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../libgguf/pool.h"
#include "../../quant/quant.h"
#include "models.h"
#include "scratch.h"

static uint64_t seed = 1;
static float drawn(float around)
{
	seed = seed*6364136223846793005u + 1442695040888963407u;
	return around + ((float)(seed >> 40)*0x1p-24f - 0.5f)*(around != 0 ? 0.5f : 0.6f);
}

static void put_keys(struct ggu_meta *m, const struct kind *k)
{
	char key[128];
	assert_int_equal(ggu_meta_set_str(m, "general.architecture", k->arch, strlen(k->arch)), GGU_OK);
	for (const struct key *x = k->keys; x->name; x++) {
		snprintf(key, sizeof key, "%s.%s", k->arch, x->name);
		assert_int_equal(x->v >= 0 && x->v == floor(x->v) ? ggu_meta_set_uint(m, key, GGU_U32, (uint64_t)x->v)
			: ggu_meta_set_float(m, key, GGU_F32, x->v), GGU_OK);
	}
	snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", k->arch);
	assert_int_equal(ggu_meta_set_float(m, key, GGU_F32, 1e-5), GGU_OK);
}

/* Adds every tensor for each of two layers, matrices in the given type. */
static void put_tensors(struct ggu_writer *w, const struct kind *k, uint32_t type, int data)
{
	for (const struct tensor *t = k->tensors; t->name; t++)
		for (int layer = 0; layer < (strstr(t->name, "%d") ? 2 : 1); layer++) {
			uint64_t ne[3] = { t->ne[0], t->ne[1] ? t->ne[1] : 1, t->ne[2] ? t->ne[2] : 1 },
				rows = ne[1]*ne[2], bytes;
			uint32_t of = rows > 1 && !strstr(t->name, "ssm_a") && !strstr(t->name, "conv1d") &&
				ne[0]%32 == 0 ? type : GGU_TYPE_F32;
			char name[64];
			float *x;
			char *packed;
			snprintf(name, sizeof name, t->name, layer);
			if (!data) {
				assert_int_equal(ggu_writer_add(w, name, t->ne[2] ? 3 : t->ne[1] ? 2 : 1, ne, of,
					NULL), GGU_OK);
				continue;
			}
			assert_true(ggu_type_bytes(of, ne[0]*rows, &bytes));
			x = malloc(ne[0]*rows*sizeof *x);
			packed = malloc(bytes);
			for (uint64_t i = 0; i < ne[0]*rows; i++) x[i] = drawn(t->around);
			for (uint64_t i = 0; strstr(name, "attn_rel_b") && i < ne[0]*rows; i++)
				x[i] = -ldexpf((float)(i/HEADS), -2*(int)(i%HEADS + 1));
			assert_int_equal(quant_encode(of, NULL, x, NULL, rows, ne[0], 1, packed), GGU_OK);
			assert_int_equal(ggu_writer_data(w, packed, bytes, NULL), GGU_OK);
			free(x);
			free(packed);
		}
}

struct model *make_model(const struct kind *k, uint32_t type, int threads)
{
	char path[SCRATCH_PATH], described[SCRATCH_PATH];
	const char *description = described;
	int fd = scratch_file(path);
	struct ggu_meta *meta = ggu_meta_new();
	struct model_options o = { .pool = ggu_pool_new(threads) };
	struct ggu_writer *w;
	struct ggu_error err = { 0 };
	struct model *m;
	assert_true(fd >= 0 && meta && o.pool);
	seed = 1;
	put_keys(meta, k);
	assert_int_equal(ggu_writer_new(&w, meta, NULL), GGU_OK);
	put_tensors(w, k, type, 0);
	assert_int_equal(ggu_writer_begin(w, fd, NULL), GGU_OK);
	put_tensors(w, k, type, 1);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
	close(fd);
	if (k->description) {
		fd = scratch_file(described);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, k->description, strlen(k->description)), strlen(k->description));
		close(fd);
		o.arch_files = &description;
		o.n_arch_files = 1;
	}
	if (model_open(&m, path, &o, &err)) fail_msg("%s: %s", err.where, err.what);
	unlink(path);
	if (k->description) unlink(described);
	ggu_writer_free(w);
	ggu_meta_free(meta);
	return m;
}
void drop_model(struct model *m)
{
	struct ggu_pool *p = model_pool(m);
	model_close(m);
	ggu_pool_free(p);
}

/* ---- evaluating ---- */

int32_t text[LONG + 64];
struct work *new_work(struct model *m, size_t n_batch)
{
	struct work *w;
	assert_int_equal(work_new(&w, m, n_batch, NULL), GGU_OK);
	return w;
}
struct state *new_state(struct model *m, uint32_t type)
{
	struct state *s;
	assert_int_equal(state_new(&s, m, &(struct state_options){ type, type }, NULL), GGU_OK);
	return s;
}
void go_on(struct work *w, struct state *s, const int32_t *ids, size_t n, float *rows)
{
	struct part p = { s, ids, n, 0 };
	struct ggu_error err = { 0 };
	if (model_eval(w, &(struct model_call){ .part = &p, .n_parts = 1, .rows = rows }, &err))
		fail_msg("%s", err.what);
}
float *alone(struct model *m, uint32_t cache, const int32_t *ids, size_t n, size_t n_batch)
{
	struct work *w = new_work(m, n_batch);
	struct state *s = new_state(m, cache);
	float *rows = malloc(n*WIDE*sizeof *rows);
	go_on(w, s, ids, n, rows);
	state_free(s);
	work_free(w);
	return rows;
}
void same(const float *a, const float *b, size_t n) { assert_memory_equal(a, b, n*WIDE*sizeof *a); }
