/* SPDX-License-Identifier: MIT
 * ggu.h - read and write GGUF files. The public header of libggu.
 *
 * A file is metadata (typed key/value pairs), a table of tensors, and the tensors' data:
 *
 *   "GGUF" version n_tensors n_kv | key type value ... | name n_dims ne[] type offset ... | pad | data
 *
 * Versions 2 and 3, little and big endian, are read; version 3, little endian, is written. Whatever the byte order of
 * the source, everything that this library returns is little-endian, as the machines are that it is for.
 *
 * Errors: functions that can fail return enum ggu_status, GGU_OK = 0, and fill *err unless err is NULL. Out-parameters
 * are not changed on failure. Nothing here prints, exits or aborts. Strings from a file are bytes with a length and may
 * contain NUL; names and keys also end in a NUL that the length does not count.
 *
 * Threads: different objects may be used from different threads, and a const object from several. */
#ifndef GGU_H
#define GGU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers and blocks are used as they lie in the file, which is little-endian"
#endif
#ifdef __cplusplus
extern "C" {
#endif
#if defined __GNUC__
#pragma GCC visibility push(default)    /* exactly what is declared here is exported */
#endif

#define GGU_VERSION_MAJOR 0
#define GGU_VERSION_MINOR 1
#define GGU_VERSION_PATCH 0
#define GGU_VERSION (GGU_VERSION_MAJOR*10000 + GGU_VERSION_MINOR*100 + GGU_VERSION_PATCH)
const char *ggu_version(void);          /* of the library that is running: "0.1.0" */

/* ---- errors ---- */

enum ggu_status {
	GGU_OK = 0,
	GGU_ERR_NOMEM,          /* out of memory */
	GGU_ERR_IO,             /* a system call failed: sys_errno says how */
	GGU_ERR_TRUNCATED,      /* the source ends inside something */
	GGU_ERR_FORMAT,         /* the bytes break a rule of the format */
	GGU_ERR_UNSUPPORTED,    /* well-formed, but not supported */
	GGU_ERR_MISSING,        /* no such key, tensor or file */
	GGU_ERR_TYPE,           /* the key exists with another type */
	GGU_ERR_RANGE,          /* an argument or a number out of range */
	GGU_ERR_STATE           /* calls in the wrong order */
};

/* Rules of the format that a file can break; gguf(5) states them. */
enum ggu_rule {
	GGU_RULE_NONE,          /* the error is about something else */
	GGU_RULE_MAGIC,
	GGU_RULE_VERSION,
	GGU_RULE_CUT,           /* the header, or something in it, extends past the end of the file */
	GGU_RULE_COUNT,         /* more pairs or tensors than the file has room for */
	GGU_RULE_KEY,           /* empty, or contains NUL */
	GGU_RULE_KEY_TWICE,
	GGU_RULE_VALUE_TYPE,
	GGU_RULE_BOOL,          /* neither 0 nor 1 */
	GGU_RULE_DEPTH,         /* of nested arrays */
	GGU_RULE_ALIGNMENT,
	GGU_RULE_NAME,          /* of a tensor: empty or contains NUL; a name or key that is too long */
	GGU_RULE_NAME_TWICE,
	GGU_RULE_DIMS,
	GGU_RULE_SIZE,          /* elements or bytes overflow */
	GGU_RULE_TYPE,
	GGU_RULE_BLOCK,         /* rows are not whole blocks */
	GGU_RULE_OFFSET,        /* not a multiple of the alignment */
	GGU_RULE_DATA,          /* beyond the end of the file */
	GGU_RULE_OVERLAP,
	GGU_RULE_SPLIT          /* shards that do not belong together */
};

/* Where and what. offset is the first byte of the offending field, GGU_NO_OFFSET if there is none (a JSON file, an
 * argument). where: a key, the name of a tensor or the path of a JSON key, or "". file: the file inside a checkpoint
 * folder or the shard, or "" for the file that the caller named. */
#define GGU_NO_OFFSET UINT64_MAX
struct ggu_error {
	enum ggu_status code;
	enum ggu_rule rule;
	uint32_t source;        /* shard, from 0 */
	uint64_t offset;
	int sys_errno;          /* with GGU_ERR_IO, else 0 */
	char where[128];        /* truncated if necessary, always terminated; not masked for terminals */
	char file[128];         /* only its end if it is too long: "...part/model.gguf" */
	/* a phrase, "string of 9000 bytes extends past the end of the file"; with GGU_ERR_IO what failed, "open" */
	char what[160];
};
/* Fills *err if err is not NULL and returns code, so that `return ggu_fail(err, ...)` works. */
#if defined __GNUC__
__attribute__((format(printf, 5, 6)))
#endif
enum ggu_status ggu_fail(struct ggu_error *err, enum ggu_status code, uint64_t offset, const char *where,
	const char *what, ...);
/* The most common failure. */
static inline enum ggu_status ggu_no_memory(struct ggu_error *err)
{
	return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
}
/* Sets err->file, to the end of the name if it is too long. err may be NULL. */
void ggu_error_file(struct ggu_error *err, const char *name);
const char *ggu_status_name(enum ggu_status code);      /* "truncated" */

/* ---- tensor types ---- */

enum ggu_type {
#define QTYPE(id, NAME, name, weights, bytes, swap, kind) GGU_TYPE_##NAME = id,
#include "qtypes.def"
#undef QTYPE
};
enum ggu_type_kind { GGU_KIND_FLOAT, GGU_KIND_BLOCK, GGU_KIND_INT };
struct ggu_type_info {
	const char *name;       /* "q4_K" */
	uint32_t id;
	uint32_t block_weights, block_bytes;
	enum ggu_type_kind kind;
};
const struct ggu_type_info *ggu_type_info(uint32_t id); /* NULL: unknown or removed */
uint32_t ggu_type_end(void);    /* one more than the largest id */
const struct ggu_type_info *ggu_type_find(const char *name);    /* any case; NULL: none */
/* Bytes of n_weights elements; false if n_weights is not a multiple of the block or the product
 * does not fit 63 bits. */
bool ggu_type_bytes(uint32_t id, uint64_t n_weights, uint64_t *bytes);

/* ---- metadata ---- */

enum ggu_kv_type {
	GGU_U8, GGU_I8, GGU_U16, GGU_I16, GGU_U32, GGU_I32, GGU_F32, GGU_BOOL,
	GGU_STRING, GGU_ARRAY, GGU_U64, GGU_I64, GGU_F64
};
const char *ggu_kv_type_name(enum ggu_kv_type t);       /* "u32" */
size_t ggu_kv_type_bytes(enum ggu_kv_type t);           /* 0 for string and array */

struct ggu_str { const char *p; size_t n; };            /* a view; may hold NUL; p[n] is NUL */

struct ggu_meta;        /* ordered key/value pairs with hashed look-up */
struct ggu_kv;          /* one pair; valid until its meta is changed or freed */

struct ggu_meta *ggu_meta_new(void);                    /* NULL: out of memory */
void ggu_meta_free(struct ggu_meta *m);
size_t ggu_meta_count(const struct ggu_meta *m);
const struct ggu_kv *ggu_meta_at(const struct ggu_meta *m, size_t i);           /* in order */
const struct ggu_kv *ggu_meta_find(const struct ggu_meta *m, const char *key);  /* NULL: absent */

struct ggu_str ggu_kv_key(const struct ggu_kv *kv);
enum ggu_kv_type ggu_kv_type(const struct ggu_kv *kv);
uint64_t ggu_kv_offset(const struct ggu_kv *kv);        /* byte of the key in its file, or GGU_NO_OFFSET */
/* Arrays: type of the items (GGU_ARRAY for nested ones) and their number; a scalar is an array of one. */
enum ggu_kv_type ggu_kv_item_type(const struct ggu_kv *kv);
size_t ggu_kv_n(const struct ggu_kv *kv);
/* Item i; a scalar has item 0. false if i is out of range or the value is not of that sort:
 * int takes every integer type that fits and bool, float also the floats, str strings only. */
bool ggu_kv_int(const struct ggu_kv *kv, size_t i, int64_t *v);
bool ggu_kv_uint(const struct ggu_kv *kv, size_t i, uint64_t *v);
bool ggu_kv_float(const struct ggu_kv *kv, size_t i, double *v);
bool ggu_kv_bool(const struct ggu_kv *kv, size_t i, bool *v);
bool ggu_kv_str(const struct ggu_kv *kv, size_t i, struct ggu_str *v);
/* Item i of a nested array, as a pair without key; NULL: not nested. */
const struct ggu_kv *ggu_kv_sub(const struct ggu_kv *kv, size_t i);
/* Packed items of a numeric array, ggu_kv_n of them; NULL for strings and nested ones. */
const void *ggu_kv_data(const struct ggu_kv *kv);

/* By key: false if it is absent or of another sort. *v then keeps its value, which may be a default. */
bool ggu_meta_uint(const struct ggu_meta *m, const char *key, uint64_t *v);
bool ggu_meta_int(const struct ggu_meta *m, const char *key, int64_t *v);
bool ggu_meta_float(const struct ggu_meta *m, const char *key, double *v);
bool ggu_meta_bool(const struct ggu_meta *m, const char *key, bool *v);
bool ggu_meta_str(const struct ggu_meta *m, const char *key, struct ggu_str *v);

enum ggu_status ggu_meta_copy(struct ggu_meta **to, const struct ggu_meta *from);

/* Setters replace in place or append; data is copied. On failure nothing is changed. GGU_ERR_NOMEM: out of memory.
 * GGU_ERR_TYPE: t is not of the function's sort (integers, floats). GGU_ERR_RANGE: a value that t cannot represent, a
 * bool that is neither 0 nor 1, arrays nested more than 8 deep, or a key that is empty, contains NUL or is longer than
 * 65535 bytes. */
enum ggu_status ggu_meta_set_uint(struct ggu_meta *m, const char *key, enum ggu_kv_type t, uint64_t v);
enum ggu_status ggu_meta_set_int(struct ggu_meta *m, const char *key, enum ggu_kv_type t, int64_t v);
enum ggu_status ggu_meta_set_float(struct ggu_meta *m, const char *key, enum ggu_kv_type t, double v);
enum ggu_status ggu_meta_set_bool(struct ggu_meta *m, const char *key, bool v);
enum ggu_status ggu_meta_set_str(struct ggu_meta *m, const char *key, const char *s, size_t n);
enum ggu_status ggu_meta_set_array(struct ggu_meta *m, const char *key, enum ggu_kv_type item, const void *items,
	size_t n);
enum ggu_status ggu_meta_set_strs(struct ggu_meta *m, const char *key, const struct ggu_str *items, size_t n);
/* An array of n arrays, each a copy of another pair's value. */
enum ggu_status ggu_meta_set_arrays(struct ggu_meta *m, const char *key, const struct ggu_kv *const *items, size_t n);
enum ggu_status ggu_meta_set_kv(struct ggu_meta *m, const struct ggu_kv *kv);   /* a copy of another meta's pair */
bool ggu_meta_remove(struct ggu_meta *m, const char *key);      /* false: there was none */
/* The pair keeps its place. GGU_ERR_MISSING: no such key; GGU_ERR_STATE: another pair has the new one. */
enum ggu_status ggu_meta_rename(struct ggu_meta *m, const char *key, const char *to);

/* ---- reading ---- */

/* Replaces "GGUF" while a header is edited in place. A file that begins with it is refused with GGU_ERR_STATE. */
#define GGU_EDIT_MAGIC "GGUe"

struct ggu_file;        /* one GGUF, in one file or in shards */

struct ggu_tensor {
	const char *name;
	uint32_t name_bytes;
	uint32_t n_dims;        /* 0 to 4; more is refused */
	uint64_t ne[4];         /* ne[0] fastest; 1 beyond n_dims */
	uint32_t type;          /* ggml id, always a known one */
	uint32_t source;        /* shard that holds it */
	uint64_t offset;        /* in its shard's data section */
	uint64_t bytes;
	uint64_t entry;         /* byte of its table entry in its shard */
};
static inline uint64_t ggu_tensor_rows(const struct ggu_tensor *t) { return t->ne[1]*t->ne[2]*t->ne[3]; }

/* Opens a file and checks its whole header. Path "-" is standard input, from its current position. If the name is that
 * of a shard of N, all N are opened as one: metadata of shard 1 without split.*, tensors in the order of the shards. A
 * pipe is read up to the end of the header; its data can be read once, in the order of the file. A file that breaks a
 * rule of gguf(5) is refused with a byte offset: duplicate keys and names, unknown types, overlapping, misaligned or
 * missing data. */
enum ggu_status ggu_open(struct ggu_file **f, const char *path, struct ggu_error *err);

enum {
	GGU_OPEN_HEADER = 1,    /* the data need not be there */
	GGU_OPEN_ALONE = 2      /* a shard is read as a file of its own; split.* stay in the metadata */
};
struct ggu_open_options {
	/* the GGUF begins at this byte; every offset counts from there. 0 for shards read as one */
	uint64_t base;
	unsigned flags;         /* GGU_OPEN_* */
	/* If not NULL, called for every defect, in order; reading continues as far as it can. A pair or tensor with a
	 * defect of its own (a duplicate key, an unknown type) is left out of metadata and table; a tensor whose data
	 * is misaligned, overlaps or is missing stays. If the header is truncated, ggu_file_is_cut returns true, and no
	 * data can be read. Opening still fails for anything that is not a GGUF of a known version, for input/output
	 * errors and if memory runs out. */
	void (*defect)(void *ctx, const struct ggu_error *err);
	void *defect_ctx;
	uint64_t reserved[4];   /* 0 */
};
/* As ggu_open; options may be NULL. */
enum ggu_status ggu_open_path(struct ggu_file **f, const char *path, const struct ggu_open_options *options,
	struct ggu_error *err);
/* fd stays the caller's and must outlive f. Its position matters only for pipes. */
enum ggu_status ggu_open_fd(struct ggu_file **f, int fd, const struct ggu_open_options *options, struct ggu_error *err);
/* bytes must outlive f. */
enum ggu_status ggu_open_memory(struct ggu_file **f, const void *bytes, size_t n,
	const struct ggu_open_options *options, struct ggu_error *err);

/* Bytes from wherever the caller has them. */
struct ggu_source {
	/* Reads up to n bytes from byte `at` on, at < bytes; *got 0 is the end. Returns GGU_OK or what ggu_fail
	 * returns. Called from several threads at once if ggu_read is. */
	enum ggu_status (*pread)(void *ctx, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err);
	void *ctx;
	uint64_t bytes;         /* in all; UINT64_MAX: unknown */
};
/* *source is copied; its ctx must outlive f. */
enum ggu_status ggu_open_source(struct ggu_file **f, const struct ggu_source *source,
	const struct ggu_open_options *options, struct ggu_error *err);
void ggu_close(struct ggu_file *f);

uint32_t ggu_file_version(const struct ggu_file *f);
bool ggu_file_big_endian(const struct ggu_file *f, uint32_t source);
bool ggu_file_seekable(const struct ggu_file *f);
uint32_t ggu_file_alignment(const struct ggu_file *f, uint32_t source);
uint64_t ggu_file_data_offset(const struct ggu_file *f, uint32_t source);       /* first byte of the data section */
uint32_t ggu_file_n_sources(const struct ggu_file *f);
uint64_t ggu_file_header_bytes(const struct ggu_file *f, uint32_t source);      /* without the padding after it */
uint64_t ggu_file_data_end(const struct ggu_file *f, uint32_t source);  /* after the last tensor's last byte */
/* From the base on; UINT64_MAX: unknown, as for a pipe. */
uint64_t ggu_file_bytes(const struct ggu_file *f, uint32_t source);
bool ggu_file_is_cut(const struct ggu_file *f);                         /* see struct ggu_open_options */
const char *ggu_file_source_name(const struct ggu_file *f, uint32_t source);    /* its path, or "(stdin)" for "-" */
const struct ggu_meta *ggu_file_meta(const struct ggu_file *f);
size_t ggu_file_n_tensors(const struct ggu_file *f);
const struct ggu_tensor *ggu_file_tensor(const struct ggu_file *f, size_t i);   /* in table order */
const struct ggu_tensor *ggu_file_find(const struct ggu_file *f, const char *name);     /* NULL: none */

/* Reads n bytes of t from byte `from` of its data on. A seekable source is read with pread, from any thread; a pipe can
 * only be read forward (GGU_ERR_STATE otherwise). Big-endian data is swapped, and `from` and n must be whole blocks of
 * it. */
enum ggu_status ggu_read(const struct ggu_file *f, const struct ggu_tensor *t, uint64_t from, void *to, size_t n,
	struct ggu_error *err);
/* The i-th tensor in the order of the data (offsets), the order a pipe delivers. */
const struct ggu_tensor *ggu_file_in_data_order(const struct ggu_file *f, size_t i);

/* Walks over the data of tensors in parts of whole blocks, through one buffer. */
struct ggu_walk;
struct ggu_part {
	const void *bytes;      /* valid until the next call */
	size_t n_bytes, n_weights;      /* 0: after the last part */
	uint64_t at_byte, at_weight;    /* of the tensor */
};
/* part_weights: a positive multiple of 256. */
enum ggu_status ggu_walk_new(struct ggu_walk **w, const struct ggu_file *f, size_t part_weights, struct ggu_error *err);
/* Continues with the parts of t, from its first on. */
void ggu_walk_to(struct ggu_walk *w, const struct ggu_tensor *t);
enum ggu_status ggu_walk_next(struct ggu_walk *w, struct ggu_part *part, struct ggu_error *err);
void ggu_walk_free(struct ggu_walk *w);

/* The tensor's bytes in a read-only mapping, valid until ggu_close. GGU_ERR_UNSUPPORTED: a pipe, a big-endian file or a
 * source of the caller's. If the file is truncated while it is mapped, the process is killed by SIGBUS; programs that
 * map files should report that. */
enum ggu_status ggu_map(struct ggu_file *f, const struct ggu_tensor *t, const void **p, struct ggu_error *err);

/* ---- writing ---- */

/* Receives bytes in order, in large pieces: the writer buffers up to 2 MB. Returns GGU_OK or what ggu_fail returns. */
struct ggu_sink {
	enum ggu_status (*write)(void *ctx, const void *p, size_t n, struct ggu_error *err);
	void *ctx;
};
struct ggu_sink ggu_sink_fd(const int *fd);     /* *fd must outlive it */
/* Memory that grows. Start with all 0; free p at the end. */
struct ggu_memory { unsigned char *p; size_t n, room; };
struct ggu_sink ggu_sink_memory(struct ggu_memory *to);

/* A writer writes one GGUF to a file descriptor or a sink, front to back, never seeking. Call ggu_writer_new,
 * ggu_writer_add for every tensor, ggu_writer_begin (writes the header), ggu_writer_data for the data of all tensors in
 * the order of their offsets, and ggu_writer_end. */
struct ggu_writer;
/* meta is copied. Alignment: general.alignment in meta (a power of two, 8 to 2^20), else 32. */
enum ggu_status ggu_writer_new(struct ggu_writer **w, const struct ggu_meta *meta, struct ggu_error *err);
/* Adds an entry to the table. Its data comes after that of all tensors so far. */
enum ggu_status ggu_writer_add(struct ggu_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne,
	uint32_t type, struct ggu_error *err);
/* The same with an offset in the data section, a multiple of the alignment; gaps are filled with zeros. Tensors may not
 * overlap: ggu_writer_begin and ggu_writer_header fail if they do. */
enum ggu_status ggu_writer_add_at(struct ggu_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne,
	uint32_t type, uint64_t offset, struct ggu_error *err);
/* After the last add: size of the header with the padding after it, and of the whole file. */
uint64_t ggu_writer_header_bytes(const struct ggu_writer *w);
uint64_t ggu_writer_file_bytes(const struct ggu_writer *w);
/* Writes only the header, including padding; the writer is not changed. */
enum ggu_status ggu_writer_header(const struct ggu_writer *w, const struct ggu_sink *to, struct ggu_error *err);
enum ggu_status ggu_writer_begin(struct ggu_writer *w, int fd, struct ggu_error *err);
enum ggu_status ggu_writer_begin_sink(struct ggu_writer *w, const struct ggu_sink *to, struct ggu_error *err);
/* Writes the next n bytes of data. Padding is added after each tensor. */
enum ggu_status ggu_writer_data(struct ggu_writer *w, const void *p, size_t n, struct ggu_error *err);
/* Checks that every byte was given and flushes. Does not close or sync fd. */
enum ggu_status ggu_writer_end(struct ggu_writer *w, struct ggu_error *err);
void ggu_writer_free(struct ggu_writer *w);

/* ---- importance ---- */

/* How much each column of a weight matters when it is quantized: the mean square of its activations, as in importance
 * matrices. A tensor of several matrices (experts) has one row of them for each matrix, one that serves all, or those
 * of all matrices joined in one row. */
struct ggu_importance {
	/* The sizes of the importances of a tensor; false: there are none. */
	bool (*find)(void *ctx, const char *tensor, size_t *n_in, size_t *n_mat);
	/* Fills to[n_in] for a matrix; false, and 1 everywhere, if no token reached it. One thread at a time. */
	bool (*get)(void *ctx, const char *tensor, size_t matrix, float *to);
	void *ctx;
};
/* From an importance matrix, in either of its file forms. The caller closes it. */
enum ggu_status ggu_importance_open(struct ggu_importance *m, const char *path, struct ggu_error *err);
void ggu_importance_close(struct ggu_importance *m);

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
