/* SPDX-License-Identifier: MIT
 * test_hold.c - tensors held in memory are the bytes of the file, whoever read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include "../../libgguf/pool.h"
#include "../lib/scratch.h"
#include "../lib/skip.h"

static char path[SCRATCH_PATH];
static struct ggu_memory file;
static const struct { const char *name; uint64_t ne[2]; uint32_t type; } tensors[] = {
	{ "a", { 32, 1000 }, GGU_TYPE_Q8_0 }, { "b", { 3, 1 }, GGU_TYPE_F32 }, { "c", { 256, 7 }, GGU_TYPE_Q6_K },
	{ "none", { 0, 5 }, GGU_TYPE_F16 }, { "d", { 1, 20001 }, GGU_TYPE_F32 },
};
enum { N = sizeof tensors/sizeof *tensors };

static int make(void **state)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;
	struct ggu_sink sink = ggu_sink_memory(&file);
	struct ggu_error err;
	int fd = scratch_file(path);
	uint32_t r = 1;
	(void)state;
	assert_int_equal(ggu_writer_new(&w, m, &err), GGU_OK);
	for (int i = 0; i < N; i++)
		assert_int_equal(ggu_writer_add(w, tensors[i].name, 2, tensors[i].ne, tensors[i].type, &err), GGU_OK);
	assert_int_equal(ggu_writer_begin_sink(w, &sink, &err), GGU_OK);
	for (int i = 0; i < N; i++) {
		uint64_t bytes = 0;
		ggu_type_bytes(tensors[i].type, tensors[i].ne[0]*tensors[i].ne[1], &bytes);
		for (uint64_t k = 0; k < bytes; k++) {
			unsigned char c = (unsigned char)((r = r*1664525 + 1013904223) >> 24);
			assert_int_equal(ggu_writer_data(w, &c, 1, &err), GGU_OK);
		}
	}
	assert_int_equal(ggu_writer_end(w, &err), GGU_OK);
	assert_int_equal(write(fd, file.p, file.n), file.n);
	close(fd);
	ggu_writer_free(w);
	ggu_meta_free(m);
	return 0;
}
static int drop(void **state)
{
	(void)state;
	unlink(path);
	free(file.p);
	return 0;
}

static void assert_held(struct ggu_file *f)
{
	for (size_t i = 0; i < N; i++) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		struct ggu_error err;
		const void *p;
		char *read = malloc((size_t)t->bytes + 1);
		assert_int_equal(ggu_read(f, t, 0, read, (size_t)t->bytes, &err), GGU_OK);
		assert_int_equal(ggu_map(f, t, &p, &err), GGU_OK);
		assert_memory_equal(p, read, t->bytes);
		free(read);
	}
}

/* Four cores, two to a node. Nothing is bound to them, since they do not exist. */
static struct ggu_pool *two_nodes(int threads)
{
	static const struct ggu_cpu list[] = { { 60000, 0 }, { 60001, 1 }, { 60002, 0 }, { 60003, 1 } };
	return ggu_pool_open(&(struct ggu_pool_options){ threads, list, 4, false });
}

static void holds_what_the_file_has(void **state)
{
	(void)state;
	for (int threads = 0; threads <= 5; threads++)
		for (unsigned flags = 0; flags <= GGU_HOLD_COPY; flags++) {
			struct ggu_pool *pool = threads == 5 ? two_nodes(3) : threads ? ggu_pool_new(threads) : NULL;
			struct ggu_error err;
			struct ggu_file *f;
			assert_int_equal(ggu_open(&f, path, &err), GGU_OK);
			assert_int_equal(ggu_hold(f, flags, pool, &err), GGU_OK);
			assert_held(f);
			ggu_close(f);
			ggu_pool_free(pool);
		}
}

static enum ggu_status pread_file(void *ctx, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	(void)ctx, (void)err;
	*got = at + n < file.n ? n : file.n - (size_t)at;
	memcpy(to, file.p + at, *got);
	return GGU_OK;
}
/* The same file behind others' bytes */
enum { BEHIND = 100 };
static enum ggu_status pread_behind(void *ctx, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	*got = 0;
	return at - BEHIND < file.n ? pread_file(ctx, at - BEHIND, to, n, got, err) : GGU_OK;
}
static void holds_memory_and_sources(void **state)
{
	const struct ggu_source source = { pread_file, NULL, file.n };
	struct ggu_error err;
	struct ggu_file *f;
	const void *p;
	(void)state;
	for (unsigned flags = 0; flags <= GGU_HOLD_COPY; flags++) {
		assert_int_equal(ggu_open_memory(&f, file.p, file.n, NULL, &err), GGU_OK);
		assert_int_equal(ggu_hold(f, flags, NULL, &err), GGU_OK);
		assert_held(f);
		ggu_close(f);
	}
	assert_int_equal(ggu_open_source(&f, &source, NULL, &err), GGU_OK);
	assert_int_equal(ggu_hold(f, 0, NULL, &err), GGU_ERR_UNSUPPORTED);
	assert_int_equal(ggu_map(f, ggu_file_tensor(f, 0), &p, &err), GGU_ERR_UNSUPPORTED);
	assert_int_equal(ggu_hold(f, GGU_HOLD_COPY, NULL, &err), GGU_OK);
	assert_held(f);
	ggu_close(f);
}

/* UINT64_MAX and the base add up to a small number. */
static void refuses_a_source_of_unknown_size(void **state)
{
	const struct ggu_source source = { pread_behind, NULL, UINT64_MAX };
	const struct ggu_open_options options = { .base = BEHIND };
	struct ggu_error err;
	struct ggu_file *f;
	(void)state;
	assert_int_equal(ggu_open_source(&f, &source, &options, &err), GGU_OK);
	assert_int_equal(ggu_hold(f, GGU_HOLD_COPY, NULL, &err), GGU_ERR_UNSUPPORTED);
	ggu_close(f);
}

static void comes_before_the_map(void **state)
{
	struct ggu_error err;
	struct ggu_file *f;
	const void *p;
	(void)state;
	assert_int_equal(ggu_open(&f, path, &err), GGU_OK);
	assert_int_equal(ggu_map(f, ggu_file_tensor(f, 0), &p, &err), GGU_OK);
	assert_int_equal(ggu_hold(f, GGU_HOLD_COPY, NULL, &err), GGU_ERR_STATE);
	ggu_close(f);
}

/* If the file shrinks after it was opened, the error names the tensor. */
static void tells_which_tensor_is_cut(void **state)
{
	struct ggu_pool *pool = ggu_pool_new(3);
	struct ggu_error err;
	struct ggu_file *f;
	(void)state;
	assert_int_equal(ggu_open(&f, path, &err), GGU_OK);
	assert_int_equal(truncate(path, (off_t)file.n - 100), 0);
	assert_int_equal(ggu_hold(f, GGU_HOLD_COPY, pool, &err), GGU_ERR_TRUNCATED);
	assert_string_equal(err.where, "d");
	ggu_close(f);
	ggu_pool_free(pool);
}

static void locks_or_says_that_it_may_not(void **state)
{
	const struct rlimit none = { 0, 0 };
	struct ggu_error err;
	struct ggu_file *f;
	(void)state;
	if (!geteuid()) return;         /* limits do not apply to root */
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	assert_int_equal(ggu_open_memory(&f, file.p, file.n, NULL, &err), GGU_OK);
	assert_int_equal(ggu_hold(f, GGU_HOLD_LOCK, NULL, &err), GGU_ERR_IO);
	ggu_close(f);
}

static void locks(void **state)
{
	struct ggu_error err;
	struct ggu_file *f;
	struct rlimit has;
	(void)state;
	if (cannot_run(getrlimit(RLIMIT_MEMLOCK, &has) || has.rlim_cur < 2*file.n, "too little memory may be locked"))
		return;
	assert_int_equal(ggu_open(&f, path, &err), GGU_OK);
	assert_int_equal(ggu_hold(f, GGU_HOLD_COPY | GGU_HOLD_LOCK, NULL, &err), GGU_OK);
	assert_held(f);
	ggu_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_what_the_file_has), cmocka_unit_test(holds_memory_and_sources),
		cmocka_unit_test(refuses_a_source_of_unknown_size), cmocka_unit_test(comes_before_the_map),
		cmocka_unit_test(locks), cmocka_unit_test(locks_or_says_that_it_may_not),
		cmocka_unit_test(tells_which_tensor_is_cut),
	};
	return cmocka_run_group_tests(tests, make, drop);
}
