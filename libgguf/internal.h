/* SPDX-License-Identifier: MIT
 * internal.h - what the files of libggu share and no other code sees: the cursor over a source, and the insides of the
 * public structs. */
#ifndef GGU_INTERNAL_H
#define GGU_INTERNAL_H
#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>
#include "arena.h"
#include "index.h"
#include "pool.h"
#include "try.h"

/* Sets the rule that err, just filled, is about; returns status. */
static inline enum ggu_status ggu_rule(struct ggu_error *err, enum ggu_rule rule, enum ggu_status status)
{
	if (err)
		err->rule = rule;
	return status;
}

enum {
	GGU_KEY_MAX = 65535,            /* bytes of a key or tensor name; the specification's bound for keys */
	GGU_ARRAY_DEPTH_MAX = 8,
	GGU_ALIGN_DEFAULT = 32,
	GGU_ALIGN_MIN = 8,              /* the specification requires a multiple of 8 */
	GGU_ALIGN_MAX = 1 << 20
};

static inline bool ggu_mul(uint64_t a, uint64_t b, uint64_t *r)
{
	return !__builtin_mul_overflow(a, b, r) && *r <= INT64_MAX;
}
/* All positions are below 2^63, so what is aligned to it cannot overflow. */
static inline bool ggu_align_ok(uint64_t a)
{
	return a >= GGU_ALIGN_MIN && a <= GGU_ALIGN_MAX && !(a & (a - 1));
}

/* ---- shard.c ---- */

/* One file of a GGUF and what its header says. Bytes count from the base. */
struct ggu_shard {
	struct ggu_source source;       /* the caller's, or pread NULL */
	const uint8_t *memory;          /* from the base on, or NULL */
	int fd;                         /* -1: memory or a source */
	bool own_fd, seekable, big;
	bool cut;                       /* the header ended before its end (only with a defect callback) */
	uint64_t base, size;            /* size: from the base on; UINT64_MAX: unknown, as for a pipe */
	uint32_t version, alignment;
	uint64_t header_bytes;          /* without padding */
	uint64_t data_offset;
	char *name;
	const uint8_t *map;             /* of the whole file, made by ggu_map */
	/* [GGU_BUF_BYTES], read ahead: its last buf_n bytes are [buf_at, buf_at + buf_n) */
	uint8_t *buf;
	uint64_t buf_at;
	size_t buf_n;
};
enum { GGU_BUF_BYTES = 1 << 18 };
/* After a call that failed with EAGAIN: waits for poll's events and returns true; false for any other failure. */
bool ggu_wait(int fd, int events);
/* One read of at most n bytes, by a call that was not interrupted; -1 and errno if it fails. */
ssize_t ggu_read_some(int fd, void *to, size_t n);
/* Set the source of s, which is empty except for fd -1. Path "-" is standard input from its current position. */
enum ggu_status ggu_shard_of_path(struct ggu_shard *s, const char *path, uint64_t base, struct ggu_error *err);
enum ggu_status ggu_shard_of_fd(struct ggu_shard *s, int fd, uint64_t base, struct ggu_error *err);
void ggu_shard_of_memory(struct ggu_shard *s, const void *bytes, size_t n, uint64_t base);
void ggu_shard_of_source(struct ggu_shard *s, const struct ggu_source *from, uint64_t base);
void ggu_shard_close(struct ggu_shard *s);
/* Reads bytes [at, at+n) of a seekable source; *got < n only at its end. */
enum ggu_status ggu_shard_pread(const struct ggu_shard *s, uint64_t at, void *to, size_t n, size_t *got,
	struct ggu_error *err);
/* The same for a pipe, which gives each byte only once. */
enum ggu_status ggu_shard_read(struct ggu_shard *s, uint64_t at, void *to, size_t n, size_t *got,
	struct ggu_error *err);
/* Reads some of them, at least one unless at the end; `at` is a pipe's current position. */
enum ggu_status ggu_shard_fill(struct ggu_shard *s, uint64_t at, void *to, size_t n, size_t *got,
	struct ggu_error *err);

/* ---- cursor.c ---- */

/* What opening does with defects that leave the rest readable. */
struct ggu_leniency {
	void (*defect)(void *ctx, const struct ggu_error *err);         /* NULL: opening ends at the first one */
	void *ctx;
	uint32_t shard;
	const char *name;               /* of the shard */
};
/* status and *err if opening must end; GGU_OK if a broken rule was reported and reading continues. */
enum ggu_status ggu_tolerate(const struct ggu_leniency *l, enum ggu_status status, struct ggu_error *err);

/* A position in a source with the bytes after it. Every getter advances, or fails with GGU_ERR_TRUNCATED at the first
 * byte of what it was to read. `where` names what is being read. */
struct ggu_cursor {
	struct ggu_shard *s;
	const uint8_t *p;               /* next byte, n of them buffered */
	size_t n;
	uint64_t at;                    /* offset of p */
	const char *where;
	struct ggu_error *err;
	const struct ggu_leniency *lenient;
};
void ggu_cursor_init(struct ggu_cursor *c, struct ggu_shard *s, const struct ggu_leniency *lenient,
	struct ggu_error *err);
uint64_t ggu_cursor_left(const struct ggu_cursor *c);  /* bytes up to the end; huge for a pipe */
enum ggu_status ggu_cursor_u32(struct ggu_cursor *c, uint32_t *v);
enum ggu_status ggu_cursor_u64(struct ggu_cursor *c, uint64_t *v);
enum ggu_status ggu_cursor_bytes(struct ggu_cursor *c, void *to, size_t n);
/* n integers or floats of `width` bytes, as this machine has them; n*width must not overflow. */
enum ggu_status ggu_cursor_numbers(struct ggu_cursor *c, struct ggu_arena *a, uint64_t n, size_t width, void **to);
/* Reads a length of at most max and that many bytes, and adds a NUL. */
enum ggu_status ggu_cursor_str(struct ggu_cursor *c, struct ggu_arena *a, uint64_t max, struct ggu_str *s);
/* Returns bytes read ahead to the source, whose position is then that of the cursor. */
void ggu_cursor_done(struct ggu_cursor *c);

/* ---- swap.c ---- */

const char *ggu_type_swap(uint32_t id);                 /* the layout of a known type, see qtypes.def */
/* Reverses the bytes of every integer of n_blocks blocks laid out as in qtypes.def. */
void ggu_swap_blocks(void *p, size_t n_blocks, const struct ggu_type_info *info);
void ggu_swap_items(void *p, size_t n, size_t width);   /* width 1, 2, 4, 8 */

/* ---- meta.c ---- */

struct ggu_kv {
	struct ggu_str key;
	uint64_t offset;
	uint8_t type, item_type;        /* equal for scalars */
	size_t n;
	union {
		unsigned char scalar[8];
		struct ggu_str str;
		const void *items;              /* packed numbers */
		const struct ggu_str *strs;
		const struct ggu_kv *subs;
	} v;
};
struct ggu_meta {
	struct ggu_arena arena;
	struct ggu_kv *kv;
	size_t n;
	struct ggu_index index;
};
/* Appends kv, whose data is already in the arena and whose key is new. */
enum ggu_status ggu_meta_append(struct ggu_meta *m, const struct ggu_kv *kv);

/* ---- kv_read.c, table.c: the parts of a header ---- */

enum ggu_status ggu_kv_read(struct ggu_cursor *c, struct ggu_meta *m);
struct ggu_table {
	struct ggu_arena arena;
	struct ggu_tensor *t;
	size_t n;
	struct ggu_index index;
};
/* Checks name, shape and type, and fills t->bytes. at: the offsets to report for each of them, or all GGU_NO_OFFSET. */
struct ggu_tensor_at { uint64_t name, n_dims, ne, type; };
enum ggu_status ggu_tensor_check(struct ggu_tensor *t, const struct ggu_tensor_at *at, struct ggu_error *err);
enum ggu_status ggu_table_append(struct ggu_table *x, const struct ggu_tensor *t, bool *dup);
size_t ggu_table_find(const struct ggu_table *x, const char *name);
void ggu_table_free(struct ggu_table *x);
/* Reads the next entry; if defects are tolerated, an entry with a defect of its own is left out. */
enum ggu_status ggu_table_read(struct ggu_cursor *c, struct ggu_table *x, uint32_t shard);

/* ---- read.c, layout.c, shards.c ---- */

struct ggu_file {
	struct ggu_meta *meta;
	struct ggu_table table;
	size_t *order;
	struct ggu_shard *shard;
	uint32_t n_shards;
	struct ggu_open_options options;
	pthread_mutex_t *lock;          /* protects the mappings and what was read ahead from a pipe */
};
/* Reads shard i's header into *meta (new, the caller's) and appends its tensors to f. */
enum ggu_status ggu_header_read(struct ggu_file *f, uint32_t i, struct ggu_meta **meta, struct ggu_error *err);
/* Fills order[n] with the positions of t[n] in the order of their data, which must not overlap. */
enum ggu_status ggu_layout_order(const struct ggu_tensor *t, size_t n, size_t *order, const struct ggu_leniency *l,
	struct ggu_error *err);
/* Checks the offsets of shard s's tensors, those of the table from `first` on: they are aligned and inside the file,
 * and no byte is in two tensors. Fills f->order for them. */
enum ggu_status ggu_layout_check(struct ggu_file *f, const struct ggu_shard *s, size_t first,
	const struct ggu_leniency *l, struct ggu_error *err);
struct ggu_leniency ggu_file_leniency(const struct ggu_file *f, uint32_t shard);
/* Does the name of path say that it is a shard after the first? */
bool ggu_shards_begin_elsewhere(const char *path);
/* Do the metadata say that this is one of several shards? */
bool ggu_shards_are_named(const struct ggu_meta *m);
/* If shard 0, opened from path (NULL: not from a path), is one of several, opens and reads the others. */
enum ggu_status ggu_shards_open(struct ggu_file *f, const char *path, struct ggu_error *err);

/* ---- data.c ---- */

void ggu_huge_pages(void *p, size_t n); /* asks the system for them, for n bytes of a mapping */

/* ---- topology.c ---- */

int ggu_cpus_allowed(void);     /* cores in the calling thread's affinity mask; 0: unknown */
/* Restricts the calling thread to these cores; failure is ignored. */
void ggu_cpus_bind(const struct ggu_cpu *cpu, int n);
/* The cores that the calling thread may use, for ggu_cpus_restore, which frees the mask; NULL: unknown. */
struct ggu_cpu_mask *ggu_cpus_save(void);
void ggu_cpus_restore(struct ggu_cpu_mask *m);

#endif
