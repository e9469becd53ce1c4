/* SPDX-License-Identifier: MIT
 * logits_file.c - see logits_file.h. Numbers are taken apart byte by byte, so that the file is the same on every
 * machine. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/text.h"
#include "../libgguf/whole.h"
#include "../quant/vec.h"
#include "logits_file.h"
#include "msg.h"

static const char magic[8] = { '_', 'l', 'o', 'g', 'i', 't', 's', '_' };
enum { HEAD_BYTES = sizeof magic + 3*4 };
size_t logits_file_row_bytes(const struct logits_file *l) { return 2*(2*((l->n_vocab + 1)/2) + 4); }
/* A window is below 2^49 bytes, so only its product with their number can wrap around. */
static uint64_t windows_bytes(const struct logits_file *l)
{
	uint64_t each = 4*(uint64_t)l->n_ctx + (uint64_t)l->n_rows*logits_file_row_bytes(l), n;
	return __builtin_mul_overflow((uint64_t)l->n_chunk, each, &n) || n > INT64_MAX ? INT64_MAX : n;
}
uint64_t logits_file_bytes(const struct logits_file *l) { return HEAD_BYTES + windows_bytes(l); }

/* ---- little-endian numbers ---- */

static uint32_t get_u16(const unsigned char *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t get_u32(const unsigned char *p) { return get_u16(p) | get_u16(p + 2) << 16; }
static float get_f32(const unsigned char *p)
{
	uint32_t u = get_u32(p);
	float x;
	memcpy(&x, &u, 4);
	return x;
}
static void put_u16(unsigned char *p, uint32_t v)
{
	p[0] = (unsigned char)v;
	p[1] = (unsigned char)(v >> 8);
}
static void put_u32(unsigned char *p, uint32_t v)
{
	put_u16(p, v);
	put_u16(p + 2, v >> 16);
}
static void put_f32(unsigned char *p, float x)
{
	uint32_t u;
	memcpy(&u, &x, 4);
	put_u32(p, u);
}

/* ---- reading ---- */

/* Reads the next n bytes of the stream, or what comes before its end or an error. Waits for a descriptor that does not
 * block. */
static size_t next(const struct logits_file *l, void *to, size_t n)
{
	size_t done = fread(to, 1, n, l->f);
	while (done < n && ferror(l->f) && errno == EAGAIN) {
		clearerr(l->f);
		poll(&(struct pollfd){ .fd = fileno(l->f), .events = POLLIN }, 1, -1);
		done += fread((char *)to + done, 1, n - done, l->f);
	}
	return done;
}
static void get(struct logits_file *l, void *to, size_t n)
{
	size_t got = next(l, to, n);
	l->at += got;
	if (got == n) return;
	if (ferror(l->f)) msg_die("%s: byte %llu: %s", l->name, (unsigned long long)l->at, strerror(errno));
	msg_die("%s: byte %llu: the file ends within its logits", l->name, (unsigned long long)l->at);
}

/* Checks the size of a file. How much comes through a pipe, or from the middle of a file, is only known at its end. */
static void check_size(struct logits_file *l)
{
	const uint64_t want = logits_file_bytes(l);
	uint64_t size;
	l->in_order = ftello(l->f) != (off_t)l->at || fseeko(l->f, 0, SEEK_END);
	if (l->in_order) return;
	size = (uint64_t)ftello(l->f);
	if (size < want)
		msg_die("%s: byte %llu: the file ends, but its header promises %llu bytes", l->name,
			(unsigned long long)size, (unsigned long long)want);
	if (size > want)
		msg_die("%s: byte %llu: the file has more data than its header promises", l->name,
			(unsigned long long)want);
	if (fseeko(l->f, (off_t)l->at, SEEK_SET)) msg_die("%s: %s", l->name, strerror(errno));
}

/* Memory grows with what arrives: the header in a pipe may claim anything. */
static void read_tokens(struct logits_file *l)
{
	unsigned char part[1 << 14];
	uint64_t n = (uint64_t)l->n_chunk*l->n_ctx, cap = 0;    /* below 2^55 */
	for (size_t i = 0; i < n; ) {
		size_t k = n - i < sizeof part/4 ? (size_t)(n - i) : sizeof part/4;
		get(l, part, 4*k);
		if (cap - i < k) {
			cap = n/2 < cap ? n : 2*cap + sizeof part;
			l->tokens = msg_need(cap > SIZE_MAX/sizeof *l->tokens ? NULL
				: realloc(l->tokens, (size_t)cap*sizeof *l->tokens));
		}
		for (size_t j = 0; j < k; j++) l->tokens[i++] = (int32_t)get_u32(part + 4*j);
	}
}

bool logits_file_read_head(struct logits_file *l, FILE *f, const char *name)
{
	unsigned char start[HEAD_BYTES];
	int32_t head[3];
	*l = (struct logits_file){ .f = f, .name = name, .at = sizeof magic };
	if (next(l, start, sizeof magic) < sizeof magic || memcmp(start, magic, sizeof magic)) {
		if (fseeko(f, 0, SEEK_SET))
			msg_die("%s: byte 0: not saved logits; a model cannot be read from a pipe here", name);
		return false;
	}
	get(l, start + sizeof magic, sizeof start - sizeof magic);
	for (int i = 0; i < 3; i++) head[i] = (int32_t)get_u32(start + sizeof magic + 4*i);
	if (head[0] < 4 || head[1] < 1 || head[2] < 1 || head[0] > 1 << 24 || head[1] > 1 << 24)
		msg_die("%s: byte 8: %d window%s of %d token%s with a vocabulary of %d make%s no sense", name, head[2],
			text_s((uint64_t)head[2]), head[0], text_s((uint64_t)head[0]), head[1],
			head[2] == 1 ? "s" : "");
	l->n_ctx = (size_t)head[0];
	l->n_vocab = (size_t)head[1];
	l->n_chunk = (size_t)head[2];
	l->n_rows = l->n_ctx - 1 - l->n_ctx/2;
	check_size(l);
	read_tokens(l);
	l->first = l->at;
	l->row = msg_need(malloc(logits_file_row_bytes(l)));
	get(l, l->row, logits_file_row_bytes(l));
	return true;
}

/* Standard input is not opened by its name: a socket cannot be, and a file would begin anew. */
static FILE *open_stream(const char *path)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : fcntl(0, F_DUPFD_CLOEXEC, 3);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
	if (!f && fd >= 0) close(fd);
	return f;
}
bool logits_file_open(struct logits_file *l, const char *path)
{
	FILE *f = open_stream(path);
	if (!f && !strcmp(path, "-")) msg_die("%s: %s", msg_name(path), strerror(errno));
	if (f && logits_file_read_head(l, f, msg_name(path))) return true;
	if (f) fclose(f);
	*l = (struct logits_file){ 0 };
	return false;
}

static uint64_t byte_of(const struct logits_file *l, uint64_t row) { return l->first + row*logits_file_row_bytes(l); }

/* Log probabilities are at most 0; a model may have given NaN. */
static enum ggu_status check_row(const struct logits_file *l, uint64_t row, const unsigned char *bytes,
	struct ggu_error *err)
{
	const float scale = get_f32(bytes), least = get_f32(bytes + 4);
	if (!(scale < 0 || scale*65535 + least > 1e-3F || isinf(scale) || isinf(least))) return GGU_OK;
	return ggu_fail(err, GGU_ERR_FORMAT, byte_of(l, row), "",
		"a row that begins at %g with steps of %g holds no log probabilities", (double)least, (double)scale);
}

enum ggu_status logits_file_read(struct logits_file *l, uint64_t from, size_t n, unsigned char *rows,
	struct ggu_error *err)
{
	size_t bytes = n*logits_file_row_bytes(l), done = 0;
	if (!from && n) {
		done = logits_file_row_bytes(l);
		memcpy(rows, l->row, done);     /* a pipe has it no more */
	}
	while (done < bytes) {
		ssize_t got = l->in_order ? (ssize_t)next(l, rows + done, bytes - done)
			: pread(fileno(l->f), rows + done, bytes - done, (off_t)(byte_of(l, from) + done));
		if (got < 0 && errno == EINTR) continue;
		if (got < 0 || (!got && l->in_order && ferror(l->f)))
			return ggu_fail(err, GGU_ERR_IO, byte_of(l, from) + done, "", "read");
		if (!got)
			return ggu_fail(err, GGU_ERR_TRUNCATED, byte_of(l, from) + done, "",
				"the file ends within its logits");
		done += (size_t)got;
	}
	for (size_t r = 0; r < n; r++) {
		enum ggu_status s = check_row(l, from + r, rows + r*logits_file_row_bytes(l), err);
		if (s) return s;
	}
	return GGU_OK;
}

void logits_file_rest(struct logits_file *l)
{
	unsigned char rest[1 << 14];
	while (l->in_order && next(l, rest, sizeof rest) == sizeof rest) { }
}

void logits_file_decode(const struct logits_file *l, const unsigned char *row, float *log_p)
{
	const float scale = get_f32(row), least = get_f32(row + 4);
	for (size_t i = 0; i < l->n_vocab; i++) log_p[i] = scale*(float)get_u16(row + 8 + 2*i) + least;
}

/* ---- writing ---- */

void logits_file_create(struct logits_file *l, FILE *f, const char *name, size_t n_ctx, size_t n_vocab, size_t n_chunk,
	const int32_t *tokens)
{
	const size_t head[3] = { n_ctx, n_vocab, n_chunk }, bytes = HEAD_BYTES + 4*n_chunk*n_ctx;
	unsigned char *start = msg_need(malloc(bytes)), *at = start + sizeof magic;
	*l = (struct logits_file){ .f = f, .name = name, .n_ctx = n_ctx, .n_vocab = n_vocab, .n_chunk = n_chunk };
	l->n_rows = n_ctx - 1 - n_ctx/2;
	memcpy(start, magic, sizeof magic);
	for (size_t i = 0; i < 3 + n_chunk*n_ctx; i++, at += 4)
		put_u32(at, i < 3 ? (uint32_t)head[i] : (uint32_t)tokens[i - 3]);
	if (!whole_write(fileno(f), start, bytes)) msg_die("%s: %s", name, strerror(errno));
	free(start);
	l->first = bytes;
	/* a pipe; or a file that began elsewhere or appends all that is written, as a shell's `>>` makes it */
	l->in_order = lseek(fileno(f), 0, SEEK_CUR) != (off_t)l->first || fcntl(fileno(f), F_GETFL) & O_APPEND;
}

enum ggu_status logits_file_write(struct logits_file *l, uint64_t from, size_t n, const unsigned char *rows,
	struct ggu_error *err)
{
	const size_t bytes = n*logits_file_row_bytes(l);
	bool ok = l->in_order ? whole_write(fileno(l->f), rows, bytes)
		: whole_write_at(fileno(l->f), rows, bytes, byte_of(l, from));
	return ok ? GGU_OK : ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "write");
}

/* Numbers are processed EACH at a time, so that compilers vectorize the loops. */
enum { EACH = 8 };
static float least_of(const float *x, size_t n)
{
	float low[EACH], all = x[0];
	size_t i = 0;
	for (size_t k = 0; k < EACH; k++) low[k] = x[0];
	for (; i + EACH <= n; i += EACH)
		for (size_t k = 0; k < EACH; k++) low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
	for (; i < n; i++) all = x[i] < all ? x[i] : all;
	for (size_t k = 0; k < EACH; k++) all = low[k] < all ? low[k] : all;
	return all;
}
/* (x - low)/scale, 0 for what is below low or NaN. It is at most 65535, so that adding 1.5 * 2^23 rounds it to the
 * nearest, ties to even. */
static void put_steps(unsigned char *to, const float *x, size_t n, float low, float scale)
{
	for (size_t k = 0; k < n; k++) {
		float v = (x[k] - low)/scale;
		v = v > 0 ? v : 0;
		v = v + 12582912.0F;
		put_u16(to + 2*k, (uint32_t)(int32_t)(v - 12582912.0F));
	}
}
void logits_file_encode(const struct logits_file *l, const float *x, double log_sum, unsigned char *row)
{
	const float top = vec_max(x, l->n_vocab), far = top - 16, least = least_of(x, l->n_vocab),
		low = least < far ? far : least, scale = (top - low)/65535;
	size_t i = 0;
	memset(row, 0, logits_file_row_bytes(l));
	put_f32(row, scale);
	put_f32(row + 4, (float)((double)low - log_sum));
	if (!(scale > 0)) return;
	for (; i + EACH <= l->n_vocab; i += EACH) put_steps(row + 8 + 2*i, x + i, EACH, low, scale);
	put_steps(row + 8 + 2*i, x + i, l->n_vocab - i, low, scale);
}

void logits_file_close(struct logits_file *l)
{
	if (l->tokens) fclose(l->f);            /* if it was written, its output closes it */
	free(l->tokens);
	free(l->row);
	l->tokens = NULL;
	l->row = NULL;
}
