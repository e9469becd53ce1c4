/* SPDX-License-Identifier: MIT
 * fuzz_model.c - any bytes as a GGUF that is a model: refused, or three tokens go through it; and its vocabulary
 * refused, or a text cut into tokens that it has. */
#include <stdlib.h>
#include <string.h>
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

static void evaluate(struct model *m)
{
	struct session *s;
	struct ggu_error err = { 0 };
	int32_t ids[3] = { 0, 0, 0 };
	float *logits = malloc(3*model_n_vocab(m)*sizeof *logits);
	struct session_eval e = { .ids = ids, .n = 3, .logits = model_has_head(m) ? logits : NULL };

	must(logits, "no memory");
	ids[1] = (int32_t)model_n_vocab(m) - 1;
	if (session_new(&s, m, 4, model_is_whole(m) ? 4 : 2, NULL, &err) == GGU_OK) {
		struct part source = { session_state(s), ids, 1, 0 };
		must(!model_has_encoder(m) || !model_encode(session_work(s), &source, 1, NULL, NULL, &err),
			"the encoder failed");
		must(session_eval(s, &e, &err) == GGU_OK, "the evaluation failed");
		session_free(s);
	} else must(err.code != GGU_OK && *err.what, "refused without a reason");
	free(logits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ggu_pool *pool;
	struct model_options o = { NULL, pool ? pool : (pool = ggu_pool_new(1)) };
	struct ggu_file *f;
	struct model *m;
	struct ggu_error err = { 0 };

	if (ggu_open_memory(&f, data, size, NULL, NULL) != GGU_OK)
		return 0;
	tokenize(ggu_file_meta(f));
	ggu_close(f);
	if (model_open(&m, folder_file("model.gguf", data, size), &o, &err) == GGU_OK) {
		evaluate(m);
		model_close(m);
	} else must(err.code != GGU_OK && *err.what, "refused without a reason");
	return 0;
}
