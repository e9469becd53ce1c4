/* SPDX-License-Identifier: MIT
 * convert.h - a Hugging Face checkpoint folder as the metadata and tensors of a GGUF, to be read as a stream.
 *
 *   checkpoint   safetensors shards and their index: names, shapes, dtypes, bytes
 *   config       config.json and its companions, with the defaults of the class
 *   plan         for each GGUF tensor: shape, sources and transforms (view.h), from model/arch/NAME.yaml
 *   general      general.* from the model card
 *
 * A program opens the folder, chooses types, and reads each tensor's elements in order; the program does the rounding
 * and encoding (quant/). Memory: strips of a few MiB, of coded tensors all that unfinished pieces lie in (plan_read.c),
 * plus the vocabulary. */
#ifndef CONVERT_CONVERT_H
#define CONVERT_CONVERT_H
#include "../libgguf/ggu.h"
#include "../quant/recode.h"

struct convert_options {
	/* "auto", "f32", "f16", "bf16", "q8_0", or "exact": the type that loses nothing */
	const char *type;
	bool vocab_only;                /* metadata and vocabulary, no tensors; config.json may be missing */
	const char *name;               /* general.name; NULL: from the model card or config */
	const char *metadata;           /* path of a JSON object whose keys override all others */
	const char *const *arch_files; size_t n_arch_files;     /* descriptions to use besides the built-in ones */
	void (*warn)(void *ctx, const struct ggu_error *what); void *warn_ctx;
};

struct convert;         /* a checkpoint, planned */
/* Errors name the file inside the folder in err->file. GGU_ERR_UNSUPPORTED: an unknown class (err->where is then
 * CONVERT_CLASS), a tensor without a place, a check of the description. GGU_ERR_RANGE: no such type. */
#define CONVERT_CLASS "architectures[0]"
enum ggu_status convert_open(struct convert **out, const char *dir, const struct convert_options *o,
	struct ggu_error *err);
const struct ggu_meta *convert_meta(const struct convert *c);
size_t convert_n_tensors(const struct convert *c);
/* name, shape, bytes and the type chosen; in order of writing */
const struct ggu_tensor *convert_tensor(const struct convert *c, size_t i);
uint32_t convert_from(const struct convert *c, size_t i);                       /* type of what convert_read returns */
/* the first checkpoint tensor that it comes from; "" if it is computed */
const char *convert_source(const struct convert *c, size_t i);
size_t convert_n_sources(const struct convert *c, size_t i);
/* Reads a piece of tensor p->i in type convert_from, whole elements. One thread; forward is fast. What is left to
 * compute, if p->later says that there is any, convert_finish does: once for each piece, from any thread, before
 * convert_close. */
enum ggu_status convert_read(struct convert *c, struct recode_piece *p, struct ggu_error *err);
enum ggu_status convert_finish(struct recode_piece *p, struct ggu_error *err);
void convert_close(struct convert *c);
/* Every Hugging Face class that has a description, sorted by architecture. */
enum ggu_status convert_classes(const char *const *arch_files, size_t n_arch_files,
	void (*each)(void *ctx, const char *hf_class, const char *arch), void *ctx, struct ggu_error *err);

#endif
