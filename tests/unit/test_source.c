/* SPDX-License-Identifier: MIT
 * test_source.c - ways to open: bytes from functions and from the middle of something, a header without its data, a
 * shard alone; walking over the data; what failed. */
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
#include "../../libgguf/whole.h"
#include "../../model/util/file.h"

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

/* A header with one string, of SIZE_MAX bytes, in a source of more bytes where that is possible. */
static enum ggu_status give_long(void *ctx, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	const struct ggu_memory *head = ctx;

	(void)err;
	*got = n < 4096 ? n : 4096;
	for (size_t i = 0; i < *got; i++)
		((unsigned char *)to)[i] = at + i < head->n ? head->p[at + i] : 'x';
	return GGU_OK;
}

static void string_as_long_as_memory_is_refused(void **state)
{
	static const unsigned char start[] = "GGUF\3\0\0\0" "\0\0\0\0\0\0\0\0" "\1\0\0\0\0\0\0\0"
		"\1\0\0\0\0\0\0\0k" "\10\0\0";   /* and a NUL */
	struct ggu_memory head = { 0 };
	const struct ggu_sink to = ggu_sink_memory(&head);
	const struct ggu_source s = { give_long, &head, INT64_MAX };
	unsigned char length[8];
	struct ggu_file *f;

	(void)state;
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)SIZE_MAX >> 8*i);
	assert_int_equal(to.write(to.ctx, start, sizeof start, NULL), GGU_OK);
	assert_int_equal(to.write(to.ctx, length, 8, NULL), GGU_OK);
	assert_int_equal(ggu_open_source(&f, &s, NULL, NULL),
		SIZE_MAX > UINT32_MAX ? GGU_ERR_TRUNCATED : GGU_ERR_NOMEM);
	free(head.p);
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

/* A string longer than any file is reported as the end of the source, not as lack of memory. */
static void length_not_known_stays_so_behind_a_base(void **state)
{
	enum { VALUE = 24 + 8 + 20 + 4 };       /* of general.architecture: its length */
	struct ggu_open_options o = { .base = 4097 };
	struct mine m = { .base = 4097, .most = SIZE_MAX };
	struct ggu_source s = { give, &m, UINT64_MAX };
	struct ggu_file *f;
	struct ggu_error e;

	(void)state;
	assert_int_equal(ggu_open_source(&f, &s, &o, NULL), GGU_OK);
	look(f);
	assert_true(ggu_file_bytes(f, 0) == UINT64_MAX);
	ggu_close(f);
	assert_int_equal(file.p[VALUE], 5);
	file.p[VALUE + 7] = 0x20;
	assert_int_equal(ggu_open_source(&f, &s, &o, &e), GGU_ERR_TRUNCATED);
	file.p[VALUE + 7] = 0;
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
	assert_string_equal(ggu_file_source_name(f, 0), "(stdin)");
	ggu_close(f);
	assert_int_equal(lseek(0, 8, SEEK_SET), 8);
	assert_int_equal(ggu_open(&f, "-", NULL), GGU_ERR_FORMAT);
	dup2(keep, 0);
	close(keep);
	fclose(t);
}

/* A pipe from a process that writes with pauses; neither end blocks. */
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

/* A call that failed is named, and why is told by sys_errno alone. */
static void failed(const struct ggu_error *e, enum ggu_status s, const char *call)
{
	assert_int_equal(s, GGU_ERR_IO);
	assert_int_equal(e->code, GGU_ERR_IO);
	assert_string_equal(e->what, call);
	assert_int_equal(e->sys_errno, EISDIR);
}
static void a_failed_call_is_named_apart_from_the_reason(void **state)
{
	int fd = open("/", O_RDONLY);
	char *text, b[1];
	size_t n;
	struct ggu_file *f;
	struct ggu_error e;
	(void)state;
	failed(&e, whole_of_fd(&fd, b, 1, &n, &e), "read");
	failed(&e, file_read_at(fd, "folder", 0, b, 1, &e), "read");
	failed(&e, file_slurp_any("/", 10, &text, &n, &e), "read");
	failed(&e, ggu_open(&f, "/", &e), "open");
	close(fd);
	assert_int_equal(file_slurp("/", "no such file", 10, &text, &n, &e), GGU_ERR_MISSING);
	assert_int_equal(e.sys_errno, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_functions), cmocka_unit_test(passes_their_failures_on),
		cmocka_unit_test(string_as_long_as_memory_is_refused),
		cmocka_unit_test(begins_at_the_base),
		cmocka_unit_test(length_not_known_stays_so_behind_a_base),
		cmocka_unit_test(standard_input_begins_where_it_stands),
		cmocka_unit_test(waits_for_a_pipe), cmocka_unit_test(full_pipes_are_waited_for),
		cmocka_unit_test(needs_no_data), cmocka_unit_test(opens_one_shard),
		cmocka_unit_test(walks_in_whole_blocks),
		cmocka_unit_test(a_failed_call_is_named_apart_from_the_reason),
	};
	return cmocka_run_group_tests(tests, make, unmake);
}
