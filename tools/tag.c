/* SPDX-License-Identifier: MIT
 * tag.c - see tag.h. It is XXH3 over everything that was added, in order. */
#include <stdlib.h>
#include <xxhash.h>
#include "../libgguf/text.h"
#include "msg.h"
#include "tag.h"

enum { FIRST_WEIGHTS = 1 << 12, PART_WEIGHTS = 1 << 16 };
struct tag { XXH3_state_t *h; };

struct tag *tag_new(void)
{
	struct tag *t = msg_need(malloc(sizeof *t));
	t->h = msg_need(XXH3_createState());
	XXH3_64bits_reset(t->h);
	return t;
}

void tag_add(struct tag *t, const void *p, size_t n) { XXH3_64bits_update(t->h, p, n); }

void tag_model(struct tag *t, const struct model *m, const char *name, bool whole)
{
	const struct ggu_file *f = model_file(m);
	const uint64_t id = model_id(m);
	struct ggu_walk *walk;
	struct ggu_error err;
	tag_add(t, &id, sizeof id);
	if (ggu_walk_new(&walk, f, whole ? PART_WEIGHTS : FIRST_WEIGHTS, &err)) msg_die_error(name, &err);
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *x = ggu_file_tensor(f, i);
		struct ggu_part part;
		tag_add(t, x->name, x->name_bytes + 1);
		tag_add(t, &x->type, sizeof x->type);
		tag_add(t, x->ne, sizeof x->ne);
		ggu_walk_to(walk, x);
		do {
			if (ggu_walk_next(walk, &part, &err)) msg_die_error(name, &err);
			tag_add(t, part.bytes, part.n_bytes);
		} while (whole && part.n_bytes);
	}
	ggu_walk_free(walk);
}

static void add_str(struct tag *t, struct ggu_str s)
{
	tag_add(t, &s.n, sizeof s.n);
	tag_add(t, s.p, s.n);
}
/* Is the key one of those that vocab_from_meta reads? */
static bool of_tokenizer(struct ggu_str key)
{
	return text_begins(key.p, key.n, "tokenizer.ggml.") || text_is(key.p, key.n, "gguf-utils.tokenizer") ||
		text_is(key.p, key.n, "gguf-utils.merges");
}
void tag_tokenizer(struct tag *t, const struct model *m)
{
	const struct ggu_meta *meta = ggu_file_meta(model_file(m));
	for (size_t i = 0; i < ggu_meta_count(meta); i++) {
		const struct ggu_kv *kv = ggu_meta_at(meta, i);
		if (!of_tokenizer(ggu_kv_key(kv))) continue;
		add_str(t, ggu_kv_key(kv));
		for (size_t k = 0; k < ggu_kv_n(kv); k++) {
			struct ggu_str s;
			double x;
			if (ggu_kv_str(kv, k, &s)) add_str(t, s);
			else if (ggu_kv_float(kv, k, &x)) tag_add(t, &x, sizeof x);
		}
	}
}

void tag_end(struct tag *t, char to[TAG_BYTES])
{
	snprintf(to, TAG_BYTES, "xxh3:%016llx", (unsigned long long)XXH3_64bits_digest(t->h));
	XXH3_freeState(t->h);
	free(t);
}
