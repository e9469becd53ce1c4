/* SPDX-License-Identifier: MIT
 * check_data.c - rules about the data of tensors; see check.h. Parts of a tensor are read and decoded by all threads;
 * of a pipe by one, in order. What is found in the parts is added up in order. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/pool.h"
#include "../libgguf/size.h"
#include "../quant/quant.h"
#include "../quant/vec.h"
#include "check.h"
#include "msg.h"
#include "progress.h"

enum { PART = 1 << 16, PARTS = 64, WEIGHT_BYTES = 9 };
struct part { size_t n_bad, first; enum ggu_status status; struct ggu_error err; };
struct run {
	const struct check *c;
	struct ggu_pool *pool;
	const struct ggu_tensor *t;
	uint64_t at, n;                 /* weights from `at` on, n of them */
	struct part part[PARTS];
	float *x;                       /* [n_workers][PART] */
	unsigned char *raw;             /* [n_workers][PART*WEIGHT_BYTES] */
};

/* Is weight i an F64 that is finite, though its float is not? */
static bool finite_double(const struct run *r, const unsigned char *raw, size_t i)
{
	double d;
	if (r->t->type != GGU_TYPE_F64) return false;
	memcpy(&d, raw + i*sizeof d, sizeof d);
	return isfinite(d);
}
static void look(void *ctx, size_t task, int worker)
{
	struct run *r = ctx;
	const struct ggu_type_info *info = ggu_type_info(r->t->type);
	struct part *p = r->part + task;
	uint64_t from = (uint64_t)task*PART, at = r->at + from;
	size_t n = r->n - from < PART ? (size_t)(r->n - from) : PART, i = 0;
	float *x = r->x + (size_t)worker*PART;
	unsigned char *raw = r->raw + (size_t)worker*PART*WEIGHT_BYTES;
	*p = (struct part){ 0 };
	p->status = ggu_read(r->c->f, r->t, at/info->block_weights*info->block_bytes, raw,
		n/info->block_weights*info->block_bytes, &p->err);
	if (p->status || !quant_can_decode(r->t->type)) return;
	quant_decode(r->t->type, raw, x, n);
	for (; (i += vec_beyond(x + i, n - i, INFINITY)) < n; i++)
		if (!finite_double(r, raw, i) && !p->n_bad++) p->first = i;
}

static bool check_tensor(struct run *r, struct ggu_error *err)
{
	const struct ggu_tensor *t = r->t;
	const struct ggu_type_info *info = ggu_type_info(t->type);
	uint64_t total = t->ne[0]*ggu_tensor_rows(t), bad = 0, first = 0;
	for (r->at = 0; r->at < total; r->at += r->n) {
		size_t tasks;
		r->n = total - r->at < (uint64_t)PART*PARTS ? total - r->at : (uint64_t)PART*PARTS;
		tasks = (size_t)((r->n + PART - 1)/PART);
		ggu_pool_run(r->pool, tasks, look, r);
		for (size_t i = 0; i < tasks; i++) {
			const struct part *p = r->part + i;
			if (p->status) {
				*err = p->err;
				return false;
			}
			if (p->n_bad && !bad) first = r->at + i*PART + p->first;
			bad += p->n_bad;
		}
	}
	if (bad)
		check_report(r->c, CHECK_FINITE, t->source, ggu_file_data_offset(r->c->f, t->source) + t->offset
			+ first/info->block_weights*info->block_bytes, t->name,
			"%llu of %llu weights %s not finite, the first in row %llu, column %llu",
			(unsigned long long)bad, (unsigned long long)total, bad > 1 ? "are" : "is",
			(unsigned long long)(first/t->ne[0]), (unsigned long long)(first % t->ne[0]));
	return true;
}

/* Is the tensor's data inside the file? If not, the reader has reported it. */
static bool has_data(const struct check *c, const struct ggu_tensor *t)
{
	uint64_t size = ggu_file_bytes(c->f, t->source), at = ggu_file_data_offset(c->f, t->source);
	return size == UINT64_MAX || (at <= size && t->offset <= size - at && t->bytes <= size - at - t->offset);
}

/* The bytes of a source; base: where it begins in what fd has, which is not 0 if standard input was read before. */
struct bytes { int fd; off_t base; };
static struct bytes open_source(const struct check *c, uint32_t source)
{
	const char *name = ggu_file_source_name(c->f, source);
	const bool standard = !strcmp(c->name, "-");
	const struct bytes b = { standard ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(name, O_RDONLY | O_CLOEXEC),
		standard ? lseek(0, 0, SEEK_CUR) : 0 };
	if (b.fd < 0 || b.base < 0) msg_die("%s: %s", standard ? msg_name("-") : name, strerror(errno));
	return b;
}
/* The first byte of [from, to) that is not zero; `to` if there is none. */
static uint64_t first_set(struct bytes b, uint64_t from, uint64_t to)
{
	unsigned char buf[4096];
	while (from < to) {
		size_t n = to - from < sizeof buf ? (size_t)(to - from) : sizeof buf;
		ssize_t k = pread(b.fd, buf, n, b.base + (off_t)from);
		if (k <= 0) break;              /* padding at the end of the file may be missing */
		for (ssize_t i = 0; i < k; i++) if (buf[i]) return from + (uint64_t)i;
		from += (uint64_t)k;
	}
	return to;
}
/* Checks the padding after the header and after each tensor, up to the next multiple of the alignment. */
static void check_padding(const struct check *c, uint32_t source)
{
	uint64_t data = ggu_file_data_offset(c->f, source), align = ggu_file_alignment(c->f, source), at;
	const struct bytes b = open_source(c, source);
	at = first_set(b, ggu_file_header_bytes(c->f, source), data);
	if (at < data) check_report(c, CHECK_PADDING, source, at, "", "the padding after the header is not zero");
	for (size_t i = 0; i < ggu_file_n_tensors(c->f); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(c->f, i);
		uint64_t end = data + t->offset + t->bytes, next = size_aligned(end, align);
		if (t->source != source || !has_data(c, t)) continue;
		at = first_set(b, end, next);
		if (at < next)
			check_report(c, CHECK_PADDING, source, at, t->name, "the padding after the data is not zero");
	}
	close(b.fd);
}

bool check_data(const struct check *c, struct ggu_error *err)
{
	const bool seekable = ggu_file_seekable(c->f);
	struct run r = { .c = c, .pool = seekable ? c->pool : msg_need(ggu_pool_new(1)) };
	size_t n = ggu_file_n_tensors(c->f), workers;
	uint64_t done = 0, total = 0;
	bool ok = true;
	workers = (size_t)ggu_pool_size(r.pool);
	for (uint32_t i = 0; i < ggu_file_n_sources(c->f) && seekable && c->sound; i++) check_padding(c, i);
	r.x = msg_need(malloc(workers*PART*sizeof *r.x));
	r.raw = msg_need(malloc(workers*PART*WEIGHT_BYTES));
	for (size_t i = 0; i < n; i++) total += ggu_file_tensor(c->f, i)->bytes;
	progress_begin("checking", total, "B");
	for (size_t i = 0; i < n && ok; i++) {
		r.t = ggu_file_in_data_order(c->f, i);
		if (has_data(c, r.t)) ok = check_tensor(&r, err);
		progress_set(done += r.t->bytes);
	}
	progress_end();
	free(r.x);
	free(r.raw);
	if (!seekable) ggu_pool_free(r.pool);
	return ok;
}
