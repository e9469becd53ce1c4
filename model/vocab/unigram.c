/* SPDX-License-Identifier: MIT
 * unigram.c - see unigram.h.
 *
 * Pieces are in a tree by bytes, whose nodes are in order of depth, so that the children of each are adjacent. A text
 * is cut at places that no piece crosses (before most words): every way passes there, so sums begin again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "unigram.h"

enum { LONGEST = 4096 };                /* bytes of a piece; at each character, up to so many are looked at */
enum { UNKNOWN = -1 };
#define PENALTY 10                      /* of unknown characters */

struct node { uint32_t child; int32_t id; uint16_t n_children; uint8_t byte; };         /* id -1: no piece ends here */
struct best { double score; uint32_t from, next; int32_t id; };         /* best way to a place; from NOWHERE: none */
#define NOWHERE UINT32_MAX
struct unigram {
	const struct vocab *v;
	struct node *node;
	double unknown_score;
	bool *user;                     /* [v->n] SentencePiece's user-defined pieces, or NULL */
	int32_t unk, byte[256];         /* -1: none */
	bool bytes;
	struct best *best;
	size_t room;
};

/* ---- the tree ---- */

struct entry { const char *p; size_t n; int32_t id; };
static int by_text(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
	if (c) return c;
	if (x->n != y->n) return x->n < y->n ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static size_t shared(const struct entry *a, const struct entry *b)
{
	size_t n = 0;
	while (n < a->n && n < b->n && a->p[n] == b->p[n]) n++;
	return n;
}

/* The entries that begin with a node's bytes. */
struct range { uint32_t from, to, depth; };

static void grow(struct node *node, struct range *range, const struct entry *e, size_t k, size_t *n)
{
	struct range r = range[k];
	struct node *x = node + k;
	x->child = (uint32_t)*n;
	x->id = UNKNOWN;
	for (; r.from < r.to && e[r.from].n == r.depth; r.from++) if (x->id == UNKNOWN) x->id = e[r.from].id;
	while (r.from < r.to) {
		uint32_t to = r.from + 1;
		uint8_t byte = (uint8_t)e[r.from].p[r.depth];
		while (to < r.to && (uint8_t)e[to].p[r.depth] == byte) to++;
		node[*n].byte = byte;
		range[(*n)++] = (struct range){ r.from, to, r.depth + 1 };
		x->n_children++;
		r.from = to;
	}
}

/* e[n], sorted */
static bool make_tree(struct unigram *u, const struct entry *e, size_t n)
{
	size_t nodes = 1, made = 1;
	struct range *range;
	for (size_t i = 0; i < n; i++) nodes += e[i].n - (i ? shared(e + i - 1, e + i) : 0);
	if (nodes >= UINT32_MAX) return false;
	u->node = calloc(nodes, sizeof *u->node);
	range = malloc(nodes*sizeof *range);
	if (u->node && range) {
		range[0] = (struct range){ 0, (uint32_t)n, 0 };
		for (size_t k = 0; k < made; k++) grow(u->node, range, e, k, &made);
	}
	free(range);
	return u->node && range;
}

static const struct node *step(const struct unigram *u, const struct node *at, uint8_t byte)
{
	const struct node *lo = u->node + at->child, *hi = lo + at->n_children;
	while (lo < hi) {
		const struct node *mid = lo + (hi - lo)/2;
		if (mid->byte == byte) return mid;
		if (mid->byte < byte) lo = mid + 1;
		else hi = mid;
	}
	return NULL;
}

/* ---- construction ---- */

/* all: every token is a piece, as in tokenizer.json. Otherwise, as in SentencePiece, those that are text. */
static bool is_piece(const struct vocab *v, size_t id, bool all)
{
	int32_t t = v->types[id];
	if (!v->tokens[id].n || t == VOCAB_UNUSED) return false;
	return all || t == VOCAB_NORMAL || t == VOCAB_USER_DEFINED;
}

static void byte_of(struct unigram *u, size_t id, bool all)
{
	int byte = vocab_byte_of(u->v->tokens[id]);
	if (byte >= 0 && (all || u->v->types[id] == VOCAB_BYTE)) u->byte[byte] = (int32_t)id;
}

static bool is_user(const struct unigram *u, size_t id) { return u->user && u->user[id]; }

/* What a piece of so many bytes adds to a sum. A user-defined one has no score of its own, but one that hardly any
 * others which cover the same text can reach: that of SentencePiece 0.2.3. Rounded as scores are, so that sums do not
 * depend on the order of pieces. */
static double score_of(const struct unigram *u, int32_t id, size_t bytes)
{
	return is_user(u, (size_t)id) ? (double)(float)(0.1*(double)(bytes - 1)) : (double)u->v->scores[id];
}

static enum ggu_status read_user(struct unigram *u, const json_t *list, struct ggu_error *err)
{
	size_t i;
	json_t *row;
	if (!json_array_size(list)) return GGU_OK;
	if (!(u->user = calloc(u->v->n + 1, sizeof *u->user))) return ggu_no_memory(err);
	json_array_foreach(list, i, row) {
		json_int_t id = json_is_integer(row) ? json_integer_value(row) : -1;
		if (id >= 0 && (uint64_t)id < u->v->n) u->user[id] = true;
	}
	return GGU_OK;
}

static enum ggu_status read_pieces(struct unigram *u, const bool *own, bool all, struct ggu_error *err)
{
	const struct vocab *v = u->v;
	struct entry *e = malloc((v->n + 1)*sizeof *e);
	float least = INFINITY;         /* of all scores; in SentencePiece, of those of normal pieces */
	size_t n = 0;
	bool ok;
	if (!e) return ggu_no_memory(err);
	for (size_t id = 0; id < v->n; id++) {
		if (!own[id]) continue;
		byte_of(u, id, all);
		if ((all || v->types[id] == VOCAB_NORMAL) && !is_user(u, id) && v->scores[id] < least)
			least = v->scores[id];
		if (!is_piece(v, id, all)) continue;
		if (v->tokens[id].n > LONGEST) {
			free(e);
			return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "tokenizer.ggml.tokens",
				"token %zu has %zu bytes; at most %d are supported",
				id, v->tokens[id].n, LONGEST);
		}
		e[n++] = (struct entry){ v->tokens[id].p, v->tokens[id].n, (int32_t)id };
	}
	u->unknown_score = (double)(least < INFINITY ? least : 0) - PENALTY;
	qsort(e, n, sizeof *e, by_text);
	ok = make_tree(u, e, n);
	free(e);
	return ok ? GGU_OK : ggu_no_memory(err);
}

enum ggu_status unigram_new(struct unigram **out, const struct vocab *v, const bool *own, struct ggu_error *err)
{
	struct unigram *u = calloc(1, sizeof *u);
	const json_t *m = json_object_get(v->pipeline, "model"), *unk = json_object_get(m, "unk_id");
	json_int_t id = json_is_integer(unk) ? json_integer_value(unk) : v->special[VOCAB_UNK];
	enum ggu_status s;
	if (!u) return ggu_no_memory(err);
	u->v = v;
	u->unk = id >= 0 && (uint64_t)id < v->n ? (int32_t)id : UNKNOWN;
	u->bytes = vocab_json_true(m, "byte_fallback");
	memset(u->byte, -1, sizeof u->byte);
	s = v->scores ? read_user(u, json_object_get(m, "user_defined"), err)
		: ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "tokenizer.ggml.scores",
			"is missing: pieces of this kind have scores");
	if (!s) s = read_pieces(u, own, vocab_json_true(m, "all_tokens"), err);
	if (s) unigram_free(u);
	else *out = u;
	return s;
}

void unigram_free(struct unigram *u)
{
	if (!u) return;
	free(u->node);
	free(u->user);
	free(u->best);
	free(u);
}

bool unigram_has_bytes(const struct unigram *u) { return u->bytes; }

/* ---- encoding ---- */

static bool make_room(struct unigram *u, size_t n)
{
	size_t room = u->room ? u->room : 256;
	struct best *best;
	if (n <= u->room) return true;
	if (n > SIZE_MAX/2/sizeof *best) return false;
	while (room < n) room *= 2;
	if (!(best = realloc(u->best, room*sizeof *best))) return false;
	u->best = best;
	u->room = room;
	return true;
}

/* Notes the way to `to` by this piece if it is the best so far. *n: places that have been set. */
static bool reach(struct unigram *u, size_t from, size_t to, int32_t id, double score, size_t *n)
{
	struct best *b;
	if (!make_room(u, to + 1)) return false;
	while (*n <= to) u->best[(*n)++].from = NOWHERE;
	b = u->best + to;
	score += u->best[from].score;
	if (b->from != NOWHERE && !(score > b->score)) return true;
	*b = (struct best){ score, (uint32_t)from, 0, id };
	return true;
}

static size_t char_bytes(const char *p, size_t n)
{
	utf8proc_int32_t c;
	utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)p, (utf8proc_ssize_t)n, &c);
	return len > 0 ? (size_t)len : 1;
}

/* Tries all pieces that begin at `at`, and if the character alone is none of them, the character as unknown. */
static bool pieces(struct unigram *u, const char *p, size_t n, size_t at, size_t *n_seen)
{
	size_t one = char_bytes(p + at, n - at);
	const struct node *x = u->node;
	bool single = false;
	for (size_t i = at; i < n && (x = step(u, x, (uint8_t)p[i])); i++) {
		if (x->id == UNKNOWN) continue;
		single |= i + 1 - at == one;
		if (!reach(u, at, i + 1, x->id, score_of(u, x->id, i + 1 - at), n_seen)) return false;
	}
	return single || reach(u, at, at + one, UNKNOWN, u->unknown_score, n_seen);
}

/* Finds the best ways to the places of p[n] up to the first that no piece crosses; returns it. 0: out of memory. */
static size_t stretch(struct unigram *u, const char *p, size_t n)
{
	size_t at = 0, seen = 1;
	if (n >= NOWHERE) n = NOWHERE - 1;
	if (!make_room(u, 1)) return 0;
	u->best[0] = (struct best){ .from = NOWHERE };
	do {
		if (!pieces(u, p, n, at, &seen)) return 0;
		at += char_bytes(p + at, n - at);
	} while (at < seen - 1);
	return at;
}

/* Unknown characters that follow each other, and the unknown piece itself if the text has it, are one. piece: it alone,
 * which keeps its id; otherwise all bytes get theirs, if there is one for each. */
struct run { size_t n; bool piece; };

/* Adds a run that ends at `end`, and begins another. */
static bool end_run(const struct unigram *u, const char *end, struct run *r, struct ids *o)
{
	const char *const p = end - r->n;
	const size_t n = r->n;
	bool bytes = u->bytes && !r->piece;
	*r = (struct run){ 0 };
	for (size_t i = 0; i < n && bytes; i++) bytes = u->byte[(uint8_t)p[i]] >= 0;
	for (size_t i = 0; i < n && bytes; i++) if (!ids_add(o, u->byte[(uint8_t)p[i]])) return false;
	return !n || bytes || u->unk < 0 || ids_add(o, u->unk);
}

bool unigram_encode(struct unigram *u, const char *text, size_t n, struct ids *o)
{
	struct run run = { 0 };
	size_t at = 0;
	for (size_t len; at < n && !ids_enough(o); at += len) {
		if (!(len = stretch(u, text + at, n - at))) return false;
		for (uint32_t to = (uint32_t)len; to; to = u->best[to].from) u->best[u->best[to].from].next = to;
		for (uint32_t from = 0, to; from < len; from = to) {
			int32_t id;
			to = u->best[from].next;
			id = u->best[to].id;
			if (id == UNKNOWN || id == u->unk)
				run = (struct run){ run.n + to - from, !run.n && id == u->unk && id != UNKNOWN };
			else if (!end_run(u, text + at + from, &run, o) || !ids_add(o, id)) return false;
		}
	}
	return end_run(u, text + at, &run, o);
}
