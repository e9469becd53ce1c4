/* SPDX-License-Identifier: MIT
 * hashing.c - see hashing.h. The data passes in windows of some megabytes, cut into pieces of one tensor each. While
 * one window is hashed the next is read. Tasks of a round: one for each digest of the whole, which goes through all
 * pieces of the window, one for each digest of each tensor, one for each piece to be read (of a pipe one for all of
 * them). */
#include <stdlib.h>
#include "../libgguf/pool.h"
#include "hashing.h"
#include "msg.h"
#include "progress.h"

enum { WINDOW = 2 << 20, PIECE = WINDOW/8, PIECES = 256 };
struct piece {
	const struct ggu_tensor *t;
	struct digest **digest;         /* [DIGEST_KINDS] of the tensor, those wanted */
	uint64_t from;
	size_t n;
	unsigned char *p;
	bool last;                      /* of its tensor */
	enum ggu_status status;
	struct ggu_error err;
};
struct window { unsigned char *bytes; struct piece piece[PIECES]; size_t n; };
struct task { enum { WHOLE, TENSOR, READ, READ_ALL } what; enum digest_kind kind; size_t piece; };
struct run {
	const struct hashing *h;
	struct ggu_file *f;
	bool pipe;
	struct window window[2], *now, *next;
	struct digest *whole[DIGEST_KINDS];
	struct task task[PIECES*(DIGEST_KINDS + 1) + DIGEST_KINDS];
	size_t n_tasks;
	/* the place of the next cut */
	size_t i;
	uint64_t at;
	struct digest **digest;         /* of tensor i */
};

static const struct ggu_tensor *nth(const struct run *r, size_t i)
{
	return r->pipe ? ggu_file_in_data_order(r->f, i) : ggu_file_tensor(r->f, i);
}

/* Cuts the next pieces, as many as fit into a window; none at the end. */
static void cut(struct run *r, struct window *w)
{
	size_t used = 0;
	for (w->n = 0; w->n < PIECES && r->i < ggu_file_n_tensors(r->f); w->n++) {
		const struct ggu_tensor *t = nth(r, r->i);
		const size_t block = ggu_type_info(t->type)->block_bytes, most = PIECE/block*block;
		struct piece *p = w->piece + w->n;
		size_t n = t->bytes - r->at < most ? (size_t)(t->bytes - r->at) : most;
		if (n > WINDOW - used) break;
		if (!r->digest) {
			r->digest = msg_need(calloc(DIGEST_KINDS, sizeof *r->digest));
			for (int k = 0; k < DIGEST_KINDS; k++)
				if (r->h->tensors && r->h->kind[k] && k != DIGEST_UUID) r->digest[k] = digest_new(k);
		}
		*p = (struct piece){ .t = t, .digest = r->digest, .from = r->at, .n = n, .p = w->bytes + used };
		used += n;
		r->at += n;
		p->last = r->at == t->bytes;
		if (p->last) {
			r->i++;
			r->at = 0;
			r->digest = NULL;
		}
	}
}

static void task(struct run *r, int what, enum digest_kind k, size_t piece)
{
	r->task[r->n_tasks++] = (struct task){ what, k, piece };
}
/* Lists the tasks, long ones first. */
static void plan(struct run *r)
{
	r->n_tasks = 0;
	for (int k = 0; k < DIGEST_KINDS; k++) if (r->whole[k]) task(r, WHOLE, k, 0);
	for (int k = 0; k < DIGEST_KINDS; k++)
		for (size_t i = 0; i < r->now->n; i++)
			if (r->now->piece[i].digest[k] && (!i || r->now->piece[i - 1].last)) task(r, TENSOR, k, i);
	if (r->pipe) task(r, READ_ALL, 0, 0);
	for (size_t i = 0; i < r->next->n && !r->pipe; i++) task(r, READ, 0, i);
}

static void read_piece(struct run *r, size_t i)
{
	struct piece *p = r->next->piece + i;
	p->status = ggu_read(r->f, p->t, p->from, p->p, p->n, &p->err);
}
static void work(void *ctx, size_t i, int worker)
{
	struct run *r = ctx;
	const struct task *t = r->task + i;
	const struct window *w = r->now;
	(void)worker;
	if (t->what == READ) read_piece(r, t->piece);
	else if (t->what == READ_ALL)
		for (size_t p = 0; p < r->next->n && (!p || !r->next->piece[p - 1].status); p++) read_piece(r, p);
	else if (t->what == WHOLE)
		for (size_t p = 0; p < w->n; p++) digest_add(r->whole[t->kind], w->piece[p].p, w->piece[p].n);
	else
		for (size_t p = t->piece; p < w->n && w->piece[p].t == w->piece[t->piece].t; p++)
			digest_add(w->piece[p].digest[t->kind], w->piece[p].p, w->piece[p].n);
}

static void end(const struct run *r, struct digest **digest, const struct ggu_tensor *t)
{
	char text[DIGEST_TEXT];
	for (int k = 0; k < DIGEST_KINDS; k++) {
		if (!digest[k]) continue;
		digest_end(digest[k], text);
		r->h->found(r->h->ctx, t, k, text);
	}
}

/* Is the data in the order of the table? Tensors of no bytes may be anywhere. */
static bool in_table_order(const struct ggu_file *f)
{
	const struct ggu_tensor *last = NULL;
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *t = ggu_file_in_data_order(f, i);
		if (!t->bytes) continue;
		if (last && t < last) return false;
		last = t;
	}
	return true;
}

/* Frees the digests of tensors that were not read to their end: of those in w, and of the one that is cut. */
static void give_up(struct run *r, const struct window *w)
{
	char text[DIGEST_TEXT];
	for (size_t i = 0; i <= w->n; i++) {
		struct digest **digest = i < w->n ? w->piece[i].digest : r->digest;
		if (i < w->n ? !w->piece[i].last : !digest) continue;
		for (int k = 0; k < DIGEST_KINDS; k++) if (digest[k]) digest_end(digest[k], text);
		free(digest);
	}
	for (int k = 0; k < DIGEST_KINDS; k++) if (r->whole[k]) digest_end(r->whole[k], text);
}
/* Hashes one window while the next is read, until there are none. False: one cannot be read. */
static bool all_windows(struct run *r, const char *name, struct ggu_pool *pool)
{
	uint64_t done = 0;
	for (cut(r, r->next); r->now->n || r->next->n; cut(r, r->next)) {
		struct window *read = r->next;
		plan(r);
		ggu_pool_run(pool, r->n_tasks, work, r);
		for (size_t i = 0; i < r->now->n; i++) {
			const struct piece *p = r->now->piece + i;
			progress_set(done += p->n);
			if (!p->last) continue;
			end(r, p->digest, p->t);
			free(p->digest);
		}
		for (size_t i = 0; i < read->n; i++) {
			if (!read->piece[i].status) continue;
			msg_error(name, &read->piece[i].err);
			give_up(r, read);
			return false;
		}
		r->next = r->now;
		r->now = read;
	}
	return true;
}

bool hashing_run(const struct hashing *h, struct ggu_file *f, const char *name, struct ggu_pool *pool)
{
	struct run *r;
	bool read;
	if (!ggu_file_seekable(f) && h->whole && !in_table_order(f)) {
		msg_say("%s: the data is in a different order than the table: "
			"through a pipe only --tensors can be hashed", msg_name(name));
		return false;
	}
	r = msg_need(calloc(1, sizeof *r));
	r->h = h;
	r->f = f;
	r->pipe = !ggu_file_seekable(f);
	for (int i = 0; i < 2; i++) r->window[i].bytes = msg_need(malloc(WINDOW));
	for (int k = 0; k < DIGEST_KINDS; k++) if (h->whole && h->kind[k]) r->whole[k] = digest_new(k);
	r->now = r->window;
	r->next = r->window + 1;
	read = all_windows(r, name, pool);
	if (read) end(r, r->whole, NULL);
	for (int i = 0; i < 2; i++) free(r->window[i].bytes);
	free(r);
	return read;
}
