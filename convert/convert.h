/* SPDX-License-Identifier: MIT
 * convert.h - a Hugging Face checkpoint folder to one GGUF, streaming.
 *
 *   checkpoint   safetensors shards and their index: names, shapes, dtypes, bytes
 *   config       config.json and its companions, with the defaults of the class
 *   plan         for each GGUF tensor: type, shape, sources and transform (from model/arch/NAME.yaml)
 *   run          reads each source once, transforms and encodes chunks of rows, writes in order
 *
 * Memory: a few chunks of rows, plus the vocabulary. */
#ifndef CONVERT_H
#define CONVERT_H
#include "../libgguf/ggu.h"
#include "../quant/recipe.h"

struct convert_options {
	const char *type;               /* "auto", "f32", "f16", "bf16", "q8_0" or a recipe's name */
	/* importance of weight `name`, matrix `mat`, n_in columns, into to[]; false: none. NULL: no matrix. */
	bool (*importance_of)(void *ctx, const char *name, size_t mat, size_t n_in, float *to);
	void *importance_ctx;
	bool vocab_only;
	const char *name;               /* general.name; NULL: from the model card or config */
	const char *metadata;           /* path of a JSON object of further general.* keys; wins over the card */
	const char *arch_file;          /* a YAML description to use besides the built-in ones */
	int effort;
	void (*warn)(void *ctx, const char *text); void *warn_ctx;
	void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total); void *progress_ctx;
};

struct convert;         /* a checkpoint, planned */
enum ggu_status convert_open(struct convert **c, const char *dir, const struct convert_options *o, struct ggu_error *err);
const struct ggu_meta *convert_meta(const struct convert *c);
size_t convert_n_tensors(const struct convert *c);
const struct ggu_tensor *convert_tensor(const struct convert *c, size_t i);     /* as it will be written */
uint64_t convert_file_bytes(const struct convert *c);
enum ggu_status convert_run(struct convert *c, int fd, struct ggu_pool *pool, struct ggu_error *err);
void convert_close(struct convert *c);

#endif
