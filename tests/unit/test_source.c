/* SPDX-License-Identifier: MIT
 * test_source.c - ways to open: bytes from functions and from the middle of something, a header without its data, a
 * shard alone, defects that are reported instead of refused; and to walk over the data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../libgguf/ggu.h"

enum { ROWS = 1000, COLS = 256, BYTES = ROWS*144 };
static struct ggu_memory file;

/* Two small tensors around one of several parts. */
static int make(void **state)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_sink to = ggu_sink_memory(&file);
	struct ggu_writer *w;
	unsigned char *data = malloc(BYTES);

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (unsigned char)(i*2654435761u >> 24);
	assert_int_equal(ggu_meta_set_str(m, "general.architecture", "llama", 5), GGU_OK);
	assert_int_equal(ggu_meta_set_uint(m, "split.count", GGU_U16, 1), GGU_OK);
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "first", 1, (uint64_t[]){ 3 }, GGU_TYPE_F32, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "q", 2, (uint64_t[]){ COLS, ROWS }, GGU_TYPE_Q4_K, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "last", 1, (uint64_t[]){ 1 }, GGU_TYPE_F16, NULL), GGU_OK);
	assert_int_equal(ggu_writer_begin_sink(w, &to, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, "abcdefghijkl", 12, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, data, BYTES, NULL), GGU_OK);
	assert_int_equal(ggu_writer_data(w, "yz", 2, NULL), GGU_OK);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
	assert_int_equal(ggu_writer_file_bytes(w), file.n);
	ggu_writer_free(w);
	ggu_meta_free(m);
	free(data);
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	free(file.p);
	return 0;
}

static void look(const struct ggu_file *f)
{
	char b[12];

	assert_int_equal(ggu_file_n_tensors(f), 3);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "first"), 0, b, 12, NULL), GGU_OK);
	assert_memory_equal(b, "abcdefghijkl", 12);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "last"), 1, b, 1, NULL), GGU_OK);
	assert_int_equal(b[0], 'z');
}

/* ---- the caller's functions ---- */

struct mine { size_t base, most, fails_at, calls; };
static enum ggu_status give(void *ctx, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	struct mine *m = ctx;
	size_t room = at < m->base + file.n ? m->base + file.n - (size_t)at : 0;

	m->calls++;
	if (m->fails_at && at + n > m->fails_at)
		return ggu_fail(err, GGU_ERR_IO, at, "", "the line is down");
	*got = n < room ? n : room;
	if (*got > m->most)
		*got = m->most;
	assert_true(at >= m->base);
	memcpy(to, file.p + (at - m->base), *got);
	return GGU_OK;
}

static void opens_functions(void **state)
{
	struct mine m = { .most = 7 };
	struct ggu_source s = { give, &m, file.n };
	struct ggu_file *f;
	const void *p;

	(void)state;
	assert_int_equal(ggu_open_source(&f, &s, NULL, NULL), GGU_OK);
	assert_true(ggu_file_seekable(f));
	look(f);
	assert_int_equal(ggu_map(f, ggu_file_find(f, "q"), &p, NULL), GGU_ERR_UNSUPPORTED);
	ggu_close(f);
}

static void passes_their_failures_on(void **state)
{
	struct mine m = { .most = SIZE_MAX };
	struct ggu_source s = { give, &m, file.n };
	struct ggu_file *f;
	struct ggu_error e;
	char b[2];

	(void)state;
	assert_int_equal(ggu_open_source(&f, &s, NULL, NULL), GGU_OK);
	m.fails_at = file.n - 64;
	assert_int_equal(ggu_read(f, ggu_file_find(f, "last"), 0, b, 2, &e), GGU_ERR_IO);
	assert_string_equal(e.what, "the line is down");
	assert_string_equal(e.where, "last");
	ggu_close(f);
	m.fails_at = 10;
	errno = 0;
	assert_int_equal(ggu_open_source(&f, &s, NULL, &e), GGU_ERR_IO);
	assert_string_equal(e.what, "the line is down");
}

/* ---- the middle of something ---- */

static void begins_at_the_base(void **state)
{
	struct ggu_open_options o = { .base = 4097 };
	struct mine m = { .base = 4097, .most = SIZE_MAX };
	struct ggu_source s = { give, &m, file.n + 4097 };
	char *all = calloc(1, file.n + 4097);
	const void *p;
	struct ggu_file *f;
	FILE *t = tmpfile();

	(void)state;
	memcpy(all + 4097, file.p, file.n);
	assert_int_equal(fwrite(all, file.n + 4097, 1, t), 1);
	fflush(t);
	assert_int_equal(ggu_open_memory(&f, all, file.n + 4097, &o, NULL), GGU_OK);
	look(f);
	assert_int_equal(ggu_file_bytes(f, 0), file.n);
	ggu_close(f);
	assert_int_equal(ggu_open_source(&f, &s, &o, NULL), GGU_OK);
	look(f);
	ggu_close(f);
	assert_int_equal(ggu_open_fd(&f, fileno(t), &o, NULL), GGU_OK);
	look(f);
	assert_int_equal(ggu_map(f, ggu_file_find(f, "last"), &p, NULL), GGU_OK);
	assert_memory_equal(p, "yz", 2);
	assert_int_equal(ggu_map(f, ggu_file_find(f, "first"), &p, NULL), GGU_OK);
	assert_memory_equal(p, "abc", 3);
	ggu_close(f);
	o.base = file.n + 5000;
	assert_int_equal(ggu_open_memory(&f, all, file.n + 4097, &o, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(ggu_open_fd(&f, fileno(t), &o, NULL), GGU_ERR_TRUNCATED);
	fclose(t);
	free(all);
}

static void standard_input_begins_where_it_stands(void **state)
{
	struct ggu_file *f;
	FILE *t = tmpfile();
	int keep = dup(0);

	(void)state;
	assert_int_equal(fwrite("something", 9, 1, t), 1);
	assert_int_equal(fwrite(file.p, file.n, 1, t), 1);
	fflush(t);
	assert_int_equal(dup2(fileno(t), 0), 0);
	assert_int_equal(lseek(0, 9, SEEK_SET), 9);
	assert_int_equal(ggu_open(&f, "-", NULL), GGU_OK);
	look(f);
	ggu_close(f);
	assert_int_equal(lseek(0, 8, SEEK_SET), 8);
	assert_int_equal(ggu_open(&f, "-", NULL), GGU_ERR_FORMAT);
	dup2(keep, 0);
	close(keep);
	fclose(t);
}

/* A pipe from a process that writes with pauses; both ends do not block. */
static void waits_for_a_pipe(void **state)
{
	struct ggu_open_options o = { .base = 100 };
	struct ggu_file *f;
	int p[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(fcntl(p[0], F_SETFL, O_NONBLOCK), 0);
	child = fork();
	if (!child) {
		char rest[100] = { 0 };
		usleep(20000);
		if (write(p[1], rest, 100) != 100)
			_exit(1);
		for (size_t at = 0; at < file.n; at += 40000) {
			usleep(5000);
			if (write(p[1], file.p + at, file.n - at < 40000 ? file.n - at : 40000) < 0)
				_exit(1);
		}
		_exit(0);
	}
	close(p[1]);
	assert_int_equal(ggu_open_fd(&f, p[0], &o, NULL), GGU_OK);
	look(f);
	ggu_close(f);
	close(p[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void full_pipes_are_waited_for(void **state)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;
	int p[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(fcntl(p[1], F_SETFL, O_NONBLOCK), 0);
	child = fork();
	if (!child) {
		char part[5000];
		size_t n = 0;
		ssize_t r;
		close(p[1]);
		while (usleep(100), (r = read(p[0], part, sizeof part)) > 0)
			n += (size_t)r;
		_exit(n > 300000 ? 0 : 1);
	}
	close(p[0]);
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	assert_int_equal(ggu_writer_add(w, "x", 1, (uint64_t[]){ 300000 }, GGU_TYPE_I8, NULL), GGU_OK);
	assert_int_equal(ggu_writer_begin(w, p[1], NULL), GGU_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ggu_writer_data(w, file.p, 100000, NULL), GGU_OK);
	assert_int_equal(ggu_writer_end(w, NULL), GGU_OK);
	close(p[1]);
	ggu_writer_free(w);
	ggu_meta_free(m);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* ---- headers alone ---- */

static void needs_no_data(void **state)
{
	struct ggu_open_options o = { .flags = GGU_OPEN_HEADER };
	struct ggu_file *f;
	struct ggu_error e;
	size_t header;
	const void *p;
	char b[12];

	(void)state;
	assert_int_equal(ggu_open_memory(&f, file.p, file.n, NULL, NULL), GGU_OK);
	header = (size_t)ggu_file_data_offset(f, 0);
	assert_true(ggu_file_header_bytes(f, 0) <= header && header - ggu_file_header_bytes(f, 0) < 32);
	assert_int_equal(ggu_file_data_end(f, 0), file.n - 30);
	ggu_close(f);
	assert_int_equal(ggu_open_memory(&f, file.p, header + 12, NULL, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(ggu_open_memory(&f, file.p, header + 12, &o, NULL), GGU_OK);
	assert_int_equal(ggu_file_n_tensors(f), 3);
	assert_false(ggu_file_is_cut(f));
	assert_int_equal(ggu_read(f, ggu_file_find(f, "first"), 0, b, 12, NULL), GGU_OK);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "last"), 0, b, 2, &e), GGU_ERR_TRUNCATED);
	assert_int_equal(ggu_map(f, ggu_file_find(f, "last"), &p, &e), GGU_ERR_TRUNCATED);
	ggu_close(f);
	assert_int_equal(ggu_open_memory(&f, file.p, header - 32, &o, NULL), GGU_ERR_TRUNCATED);
}

static void opens_one_shard(void **state)
{
	struct ggu_open_options o = { .flags = GGU_OPEN_ALONE };
	struct ggu_memory shard = { 0 };
	struct ggu_sink to = ggu_sink_memory(&shard);
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;
	struct ggu_file *f;
	uint64_t v = 0;

	(void)state;
	assert_int_equal(ggu_meta_set_uint(m, "split.count", GGU_U16, 7), GGU_OK);
	assert_int_equal(ggu_writer_new(&w, m, NULL), GGU_OK);
	assert_int_equal(ggu_writer_header(w, &to, NULL), GGU_OK);
	assert_int_equal(ggu_writer_header_bytes(w), shard.n);
	ggu_writer_free(w);
	ggu_meta_free(m);
	assert_int_equal(ggu_open_memory(&f, shard.p, shard.n, NULL, NULL), GGU_ERR_UNSUPPORTED);
	assert_int_equal(ggu_open_memory(&f, shard.p, shard.n, &o, NULL), GGU_OK);
	assert_true(ggu_meta_uint(ggu_file_meta(f), "split.count", &v) && v == 7);
	ggu_close(f);
	free(shard.p);
}

/* ---- defects ---- */

static struct { size_t n; enum ggu_rule rule[64]; } seen;
static void note(void *ctx, const struct ggu_error *err)
{
	assert_ptr_equal(ctx, &seen);
	assert_int_not_equal(err->code, GGU_OK);
	assert_true(*err->what);
	if (seen.n < 64)
		seen.rule[seen.n] = err->rule;
	seen.n++;
}
static const struct ggu_open_options lenient = { .defect = note, .defect_ctx = &seen };

static void put(struct ggu_memory *b, uint64_t v, size_t width)
{
	for (size_t i = 0; i < width; i++) {
		unsigned char c = (unsigned char)(v >> 8*i);
		ggu_sink_memory(b).write(b, &c, 1, NULL);
	}
}
static void put_str(struct ggu_memory *b, const char *s, size_t n)
{
	put(b, n, 8);
	ggu_sink_memory(b).write(b, s, n, NULL);
}
static void put_kv(struct ggu_memory *b, const char *key, size_t n, enum ggu_kv_type t, uint64_t v)
{
	put_str(b, key, n);
	put(b, t, 4);
	put(b, v, ggu_kv_type_bytes(t));
}
static void put_tensor(struct ggu_memory *b, const char *name, uint32_t n_dims, uint64_t ne, uint32_t type,
	uint64_t offset)
{
	put_str(b, name, strlen(name));
	put(b, n_dims, 4);
	for (uint32_t i = 0; i < n_dims; i++)
		put(b, i ? 1 : ne, 8);
	put(b, type, 4);
	put(b, offset, 8);
}

/* A file with a defect of each kind. */
static void put_defects(struct ggu_memory *b)
{
	ggu_sink_memory(b).write(b, "GGUF", 4, NULL);
	put(b, 3, 4);
	put(b, 12, 8);
	put(b, 7, 8);
	put_kv(b, "", 0, GGU_U8, 1);
	put_kv(b, "a\0b", 3, GGU_U8, 1);
	put_kv(b, "bool", 4, GGU_BOOL, 2);
	put_kv(b, "k", 1, GGU_U8, 1);
	put_kv(b, "k", 1, GGU_U8, 2);
	put_str(b, "bools", 5);                /* [[false, 3]] */
	put(b, GGU_ARRAY, 4);
	put(b, GGU_ARRAY, 4);
	put(b, 1, 8);
	put(b, GGU_BOOL, 4);
	put(b, 2, 8);
	put(b, 0x300, 2);
	put_kv(b, "general.alignment", 17, GGU_U32, 12);
	put_tensor(b, "", 1, 4, GGU_TYPE_F32, 0);
	put_tensor(b, "dims", 5, 4, GGU_TYPE_F32, 0);
	put_tensor(b, "block", 1, 33, GGU_TYPE_Q4_0, 0);
	put_tensor(b, "type", 1, 32, 99, 0);
	put_tensor(b, "removed", 1, 32, 4, 0);
	put_tensor(b, "size", 1, UINT64_C(1) << 63, GGU_TYPE_F32, 0);
	put_tensor(b, "good", 1, 4, GGU_TYPE_F32, 0);
	put_tensor(b, "good", 1, 4, GGU_TYPE_F32, 64);
	put_tensor(b, "odd", 1, 1, GGU_TYPE_F32, 33);
	put_tensor(b, "far", 1, 4, GGU_TYPE_F32, 1 << 20);
	put_tensor(b, "farther", 1, 4, GGU_TYPE_F32, UINT64_MAX - 31);
	put_tensor(b, "over", 1, 16, GGU_TYPE_F32, 0);
	for (int i = 0; i < 200; i++)
		put(b, 7, 1);
}
static void reports_every_defect(void **state)
{
	static const enum ggu_rule want[] = {
		GGU_RULE_KEY, GGU_RULE_KEY, GGU_RULE_BOOL, GGU_RULE_KEY_TWICE, GGU_RULE_BOOL, GGU_RULE_ALIGNMENT,
		GGU_RULE_NAME, GGU_RULE_DIMS, GGU_RULE_BLOCK, GGU_RULE_TYPE, GGU_RULE_TYPE, GGU_RULE_SIZE,
			GGU_RULE_NAME_TWICE,
		GGU_RULE_OFFSET, GGU_RULE_DATA, GGU_RULE_DATA, GGU_RULE_OVERLAP, GGU_RULE_OVERLAP,
	};
	struct ggu_memory b = { 0 };
	struct ggu_file *f;
	uint64_t v;
	char to[64];

	(void)state;
	put_defects(&b);
	memset(&seen, 0, sizeof seen);
	assert_int_equal(ggu_open_memory(&f, b.p, b.n, &lenient, NULL), GGU_OK);
	assert_int_equal(seen.n, sizeof want/sizeof *want);
	assert_memory_equal(seen.rule, want, sizeof want);
	assert_false(ggu_file_is_cut(f));
	assert_int_equal(ggu_meta_count(ggu_file_meta(f)), 2);
	assert_true(ggu_meta_uint(ggu_file_meta(f), "k", &v) && v == 1);
	assert_int_equal(ggu_file_alignment(f), 32);
	assert_int_equal(ggu_file_n_tensors(f), 5);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "over"), 0, to, 64, NULL), GGU_OK);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "odd"), 0, to, 4, NULL), GGU_OK);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "far"), 0, to, 4, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(ggu_read(f, ggu_file_find(f, "farther"), 0, to, 4, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(ggu_file_data_end(f, 0), UINT64_MAX);
	ggu_close(f);
	assert_int_equal(ggu_open_memory(&f, b.p, b.n, NULL, NULL), GGU_ERR_FORMAT);
	free(b.p);
}

static void shows_a_header_that_is_cut(void **state)
{
	struct ggu_file *f;
	size_t header, n_kv = 0, n_tensors = 0;

	(void)state;
	assert_int_equal(ggu_open_memory(&f, file.p, file.n, NULL, NULL), GGU_OK);
	header = (size_t)ggu_file_header_bytes(f, 0);
	ggu_close(f);
	for (size_t n = 8; n < header; n++) {
		unsigned char *cut = malloc(n), b[12];
		const struct ggu_tensor *t;
		const void *p;
		memcpy(cut, file.p, n);
		memset(&seen, 0, sizeof seen);
		assert_int_equal(ggu_open_memory(&f, cut, n, &lenient, NULL), GGU_OK);
		assert_true(seen.n && seen.rule[seen.n - 1] == GGU_RULE_CUT);
		assert_true(ggu_file_is_cut(f));
		assert_true(ggu_meta_count(ggu_file_meta(f)) >= n_kv && ggu_file_n_tensors(f) >= n_tensors);
		n_kv = ggu_meta_count(ggu_file_meta(f));
		n_tensors = ggu_file_n_tensors(f);
		t = ggu_file_tensor(f, 0);
		if (t) {
			assert_int_equal(ggu_read(f, t, 0, b, 12, NULL), GGU_ERR_TRUNCATED);
			assert_int_equal(ggu_map(f, t, &p, NULL), GGU_ERR_TRUNCATED);
			assert_ptr_equal(ggu_file_in_data_order(f, 0), t);
		}
		ggu_close(f);
		free(cut);
	}
	assert_int_equal(n_kv, 2);
	assert_int_equal(n_tensors, 2);
}

static void no_gguf_stays_refused(void **state)
{
	struct ggu_file *f;

	(void)state;
	memset(&seen, 0, sizeof seen);
	assert_int_equal(ggu_open_memory(&f, "GGML\3\0\0\0", 8, &lenient, NULL), GGU_ERR_FORMAT);
	assert_int_equal(ggu_open_memory(&f, "GGUF\7\0\0\0", 8, &lenient, NULL), GGU_ERR_UNSUPPORTED);
	assert_int_equal(ggu_open_memory(&f, "GGUF", 4, &lenient, NULL), GGU_ERR_TRUNCATED);
	assert_int_equal(seen.n, 0);
}

/* ---- walking ---- */

static void walks_in_whole_blocks(void **state)
{
	static const size_t parts[] = { 256, 1024, 256*999, 256*1000, 256*5000 };
	struct ggu_file *f;
	struct ggu_walk *w;
	struct ggu_part part;

	(void)state;
	assert_int_equal(ggu_open_memory(&f, file.p, file.n, NULL, NULL), GGU_OK);
	assert_int_equal(ggu_walk_new(&w, f, 100, NULL), GGU_ERR_RANGE);
	assert_int_equal(ggu_walk_new(&w, f, 0, NULL), GGU_ERR_RANGE);
	for (size_t i = 0; i < sizeof parts/sizeof *parts; i++) {
		const struct ggu_tensor *q = ggu_file_find(f, "q");
		const unsigned char *data = file.p + ggu_file_data_offset(f, 0) + q->offset;
		uint64_t at = 0, weights = 0;
		assert_int_equal(ggu_walk_new(&w, f, parts[i], NULL), GGU_OK);
		assert_int_equal(ggu_walk_next(w, &part, NULL), GGU_OK);
		assert_int_equal(part.n_bytes, 0);
		ggu_walk_to(w, q);
		while (ggu_walk_next(w, &part, NULL) == GGU_OK && part.n_bytes) {
			assert_true(part.n_bytes % 144 == 0 && part.n_weights <= parts[i] &&
				part.n_weights == part.n_bytes/144*256);
			assert_true(part.at_byte == at && part.at_weight == weights);
			assert_memory_equal(part.bytes, data + at, part.n_bytes);
			at += part.n_bytes;
			weights += part.n_weights;
		}
		assert_int_equal(at, BYTES);
		ggu_walk_to(w, ggu_file_find(f, "first"));
		assert_int_equal(ggu_walk_next(w, &part, NULL), GGU_OK);
		assert_int_equal(part.n_weights, 3);
		assert_memory_equal(part.bytes, "abcdefghijkl", 12);
		ggu_walk_free(w);
	}
	ggu_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_functions), cmocka_unit_test(passes_their_failures_on),
			cmocka_unit_test(begins_at_the_base),
		cmocka_unit_test(standard_input_begins_where_it_stands), cmocka_unit_test(waits_for_a_pipe),
		cmocka_unit_test(full_pipes_are_waited_for), cmocka_unit_test(needs_no_data),
			cmocka_unit_test(opens_one_shard),
		cmocka_unit_test(reports_every_defect), cmocka_unit_test(shows_a_header_that_is_cut),
			cmocka_unit_test(no_gguf_stays_refused),
		cmocka_unit_test(walks_in_whole_blocks),
	};
	return cmocka_run_group_tests(tests, make, unmake);
}
