/* SPDX-License-Identifier: MIT
 * load.h - what programs that evaluate have in common: a model with its pool, its vocabulary, a text. All failures exit
 * 2 with a message. */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H
#include "../libgguf/pool.h"
#include "../model/eval/model.h"
#include "../model/vocab/tokenizer.h"
#include "opt.h"

/* Enters the sandbox for the n inputs and the output (sandbox.h), then starts the threads, which are in it too. jobs 0:
 * ggu_cpu_count. pin: each thread stays on a core of its own, fast cores first. */
struct ggu_pool *load_pool(int jobs, bool pin, const char *const *inputs, int n, const char *output);
/* Options for the placement of threads and weights, for programs to which that matters. */
struct load_place { bool pin, mlock, no_mmap; };
#define LOAD_PLACE_OPTIONS(to) \
	OPT_FLAG(0, "pin", &(to)->pin, "keep each thread on a core of its own"), \
	OPT_FLAG(0, "mlock", &(to)->mlock, "lock the weights in memory"), \
	OPT_FLAG(0, "no-mmap", &(to)->no_mmap, "read the weights into memory instead of mapping the file")
#define LOAD_BATCH_OPTION(to) \
	OPT_INT('b', "batch", to, "N", 1, 1 << 20, "tokens computed at once (default: 512); does not change the result")
/* Options for the types of the cache; dflt: the name of the default. */
struct load_cache { const char *k, *v; };
#define LOAD_CACHE_OPTIONS(to, dflt) \
	OPT_STR(0, "cache-type-k", &(to)->k, "T", \
		"cached keys: f32, f16, bf16, i16, q8_0, q5_1 or q4_0 (default: " dflt ")"), \
	OPT_STR(0, "cache-type-v", &(to)->v, "T", "cached values (default: " dflt ")")
unsigned load_hold(const struct load_place *p);         /* for model_options */
/* From here on, a mapped file that shrinks ends the program with a message and exit 2. load_model calls it. */
void load_tell_of_shrinking(void);
/* path NULL: "-m is missing"; arch_files: of OPT_ARCH_FILES, NULL: none */
struct model *load_model(const char *path, const struct opt_list *arch_files, struct ggu_pool *pool);
struct model *load_model_held(const char *path, const struct opt_list *arch_files, struct ggu_pool *pool,
	unsigned hold);
/* Dies if the model has an encoder, for programs whose texts have one part. */
void load_refuse_encoder(const struct model *m, const char *path);
/* Warns if n positions are more than the model was trained for. */
void load_tell_context(const struct model *m, const char *path, size_t n);
/* The types of c; those that were not given are `dflt`. */
struct state_options load_cache_types(const struct load_cache *c, uint32_t dflt);
/* The vocabulary and tokenizer of a model's own metadata. */
void load_tokenizer(const struct model *m, const char *path, struct vocab **v, struct tokenizer **t);
/* All bytes of a file, unpacked if it is gzipped, or of standard input for NULL and "-", followed by a NUL. The caller
 * frees them. Dies if they are more than `most`: LOAD_TEXT for a text, which a tokenizer sees as a whole, or for ids,
 * LOAD_SMALL for a prompt, a value of metadata, a manifest. */
enum { LOAD_SMALL = 1 << 28, LOAD_TEXT = 1 << 30 };
char *load_text(const char *path, size_t most, size_t *n);
/* Which windows of ctx tokens of a text: `chunks` of them (0: all) after the first `from`. flags: TOKENIZE_* */
struct load_windows { size_t ctx; uint64_t from, chunks; unsigned flags; };
/* The number of those windows that text[n] has; sets *ids to their tokens, for the caller to free. Dies if there is
 * none, and warns if there are fewer than requested. file: the text's name */
size_t load_windows(const struct load_windows *w, struct tokenizer *t, const char *file, const char *text, size_t n,
	int32_t **ids);
/* Warns that from window `from` on there are only n, fewer than requested. */
void load_few_windows(const char *file, size_t n, uint64_t from);
/* The next token id at *p, a place in file's text, after blanks, commas and, if `lines`, ends of lines; then moves *p
 * after it. False at the end. Dies, with the byte of the text, at anything that is not an id below n_vocab. */
bool load_id(const char *file, const char *text, const char **p, bool lines, size_t n_vocab, int32_t *id);
/* What metadata may say about the origin of a text: its base name, or "stdin". */
const char *load_base_name(const char *path);

#endif
