/* SPDX-License-Identifier: MIT
 * fuzz_vocab.c - a checkpoint folder (fuzz.h) with a tokenizer: refused, or written to metadata and read again as the
 * same vocabulary; and a tokenizer of it takes any text, and any ids back. */
#include <stdlib.h>
#include <string.h>
#include "../../model/vocab/tokenizer.h"
#include "fuzz.h"

static const char text[] = " Hello,  w\xc3\xb6rld <s>it's 1234\t\n\xe4\xbd\xa0\xe5\xa5\xbd \xff\x00\xc3 "
	"end<|endoftext|>";

static void tokenize(const struct vocab *v)
{
	struct tokenizer *t;
	struct ggu_error err = { 0 };

	if (tokenizer_new(&t, v, &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "no tokenizer without a reason");
		return;
	}
	for (unsigned flags = 0; flags < 8; flags += 7) {
		int32_t *ids = NULL;
		size_t n = 0, bytes;
		char *back;
		if (tokenizer_encode(t, text, sizeof text - 1, flags, &ids, &n, &err) == GGU_OK) {
			for (size_t i = 0; i < n; i++)
				must(ids[i] >= 0 && (size_t)ids[i] < vocab_count(v), "an id outside the vocabulary");
			if (tokenizer_decode(t, ids, n, flags, &back, &bytes, &err) == GGU_OK) free(back);
		}
		free(ids);
	}
	tokenizer_free(t);
}

static void same(const struct vocab *a, const struct vocab *b)
{
	must(vocab_count(a) == vocab_count(b), "the number of tokens changed");
	for (size_t i = 0; i < vocab_count(a); i++) {
		struct ggu_str s = vocab_token(a, (int32_t)i), t = vocab_token(b, (int32_t)i);
		must(s.n == t.n && !memcmp(s.p, t.p, s.n), "a token changed");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vocab *v, *again;
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_error err = { 0 };
	const struct vocab_hints hints = { .n_vocab = size % 2 ? -1 : 32, .pre = size % 3 ? "olmo" : NULL,
		.config_prefix = size % 3, .special = { [VOCAB_EOT] = { .id = (int64_t)(size % 40) },
			[VOCAB_EOM] = { .text = size % 5 ? "</s>" : NULL } } };

	if (vocab_from_dir(&v, folder_of(data, size), &hints, &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		ggu_meta_free(m);
		return 0;
	}
	tokenize(v);
	if (vocab_count(v)) {
		must(m && vocab_to_meta(v, m, NULL) == GGU_OK, "a vocabulary cannot be written");
		must(vocab_from_meta(&again, m, &err) == GGU_OK, "what was written cannot be read");
		same(v, again);
		tokenize(again);
		vocab_free(again);
	}
	vocab_free(v);
	ggu_meta_free(m);
	return 0;
}
