/* SPDX-License-Identifier: MIT
 * bpe.c - see bpe.h.
 *
 * The characters of a pre-token are a linked list; a heap has the neighbours that could merge, best first (lowest rank
 * or highest score, then leftmost). A merge adds the right symbol to the left one and offers the two new pairs. The
 * length of a symbol and the one after it grows whenever either changes, so entries of what has changed since are
 * recognised by it and skipped. A merge's result is the token with the joined text, whichever merge made it.
 *
 * A whole text may be one pre-token. But no merge crosses a place between two characters that are adjacent in no token,
 * and the two sides of such a place do not influence each other. So a text is cut there, mostly into words, and the ids
 * of words are remembered (memo.h). */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "bpe.h"

/* ---- the map of merges: open addressing, never more than half full ---- */

/* key 0: empty; id: the token with the joined text */
struct pair_map { size_t mask; struct { uint64_t key; uint32_t rank; int32_t id; } slot[]; };

static size_t table_size(size_t n)
{
	size_t size = 16;
	while (size < 2*n + 2) size *= 2;
	return size;
}

static uint64_t pair_key(int32_t l, int32_t r) { return ((uint64_t)(uint32_t)l << 32 | (uint32_t)r) + 1; }
static size_t pair_slot(const struct pair_map *m, uint64_t key)
{
	size_t i = (size_t)(key*0x9e3779b97f4a7c15u >> 20) & m->mask;
	while (m->slot[i].key && m->slot[i].key != key) i = (i + 1) & m->mask;
	return i;
}

/* Adds the pair of tokens join[0..left) and the `right` bytes after it, which become one. false: one of the three is no
 * token. */
static bool put_pair(struct bpe *b, size_t rank, const char *join, size_t left, size_t right)
{
	int32_t l = texts_find(b->texts, join, left), r = texts_find(b->texts, join + left, right),
		id = texts_find(b->texts, join, left + right);
	size_t i;
	if (l < 0 || r < 0 || id < 0) return false;
	i = pair_slot(b->pairs, pair_key(l, r));
	if (b->pairs->slot[i].key) return true;
	b->pairs->slot[i].key = pair_key(l, r);
	b->pairs->slot[i].rank = (uint32_t)rank;
	b->pairs->slot[i].id = id;
	return true;
}

/* Writes p[n] with a blank for each U+0120; returns its bytes. to may be p. */
static size_t with_blanks(const char *p, size_t n, char *to)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		bool blank = text_begins(p + i, n - i, "\xc4\xa0");
		to[k++] = blank ? ' ' : p[i];
		i += blank;
	}
	return k;
}

/* A merge is "left right", split at the first blank after the first byte. A blank within a part is written as U+0120,
 * which the tokens of byte-level vocabularies have too. A merge has no effect if one of the parts or the whole is no
 * token. join has room for the whole. */
static void add_pair(struct bpe *b, size_t rank, char *join)
{
	const struct ggu_str *m = b->v->merges + rank;
	const char *blank = m->n > 1 ? memchr(m->p + 1, ' ', m->n - 1) : NULL;
	size_t left, right;
	if (!blank) return;
	left = (size_t)(blank - m->p);
	right = m->n - left - 1;
	memcpy(join, m->p, left);
	memcpy(join + left, blank + 1, right);
	if (put_pair(b, rank, join, left, right)) return;
	left = with_blanks(join, left, join);
	right = with_blanks(blank + 1, right, join + left);
	if (left + right + 1 < m->n) put_pair(b, rank, join, left, right);
}

static bool fill_pairs(struct bpe *b)
{
	const struct vocab *v = b->v;
	size_t size = table_size(v->n_merges), longest = 1;
	char *join;
	for (size_t k = 0; k < v->n_merges; k++) if (v->merges[k].n > longest) longest = v->merges[k].n;
	join = malloc(longest);
	b->pairs = calloc(1, sizeof *b->pairs + size*sizeof *b->pairs->slot);
	if (b->pairs && join) {
		b->pairs->mask = size - 1;
		for (size_t k = 0; k < v->n_merges; k++) add_pair(b, k, join);
	}
	free(join);
	return b->pairs && join;
}

/* A byte that begins no character counts as one, and takes nothing of the character after it. */
static uint32_t char_bytes(const char *p, size_t n)
{
	unsigned char c = (unsigned char)*p;
	uint32_t len = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	if (len > n) return 1;
	for (uint32_t i = 1; i < len; i++) if (((unsigned char)p[i] & 0xc0) != 0x80) return 1;
	return len;
}

static int32_t char_code(const char *p, size_t len)
{
	uint32_t c = 0;
	for (size_t i = 0; i < len; i++) c = c << 8 | (unsigned char)p[i];
	return (int32_t)c;
}

/* Adds the pairs of adjacent characters of one token. false: there is no room, since more than half is full. */
static bool add_joints(struct pair_map *m, size_t *used, struct ggu_str t)
{
	size_t len = t.n ? char_bytes(t.p, t.n) : 0;
	for (size_t at = len, before = 0, next; at < t.n; before = at, at = next) {
		uint64_t key = pair_key(char_code(t.p + before, at - before), char_code(t.p + at,
			char_bytes(t.p + at, t.n - at)));
		size_t i = pair_slot(m, key);
		next = at + char_bytes(t.p + at, t.n - at);
		if (m->slot[i].key) continue;
		if (2*++*used > m->mask) return false;
		m->slot[i].key = key;
	}
	return true;
}

static bool fill_joints(struct bpe *b)
{
	for (size_t size = 1 << 14;; size *= 4) {
		size_t used = 0, id = 0;
		free(b->joints);
		b->joints = calloc(1, sizeof *b->joints + size*sizeof *b->joints->slot);
		if (!b->joints) return false;
		b->joints->mask = size - 1;
		while (id < b->v->n && add_joints(b->joints, &used, b->v->tokens[id])) id++;
		if (id == b->v->n) return true;
	}
}

/* Returns whether all bytes have a token. */
static bool fill_bytes(struct bpe *b, const bool *own)
{
	bool all = true;
	for (int i = 0; i < 256; i++) b->byte[i] = -1;
	for (size_t id = 0; id < b->v->n; id++) {
		int byte = vocab_byte_of(b->v->tokens[id]);
		if (byte >= 0 && own[id]) b->byte[byte] = (int32_t)id;
	}
	for (int i = 0; i < 256; i++) all &= b->byte[i] >= 0;
	return all;
}

/* ---- construction ---- */

struct symbol { uint32_t at, n; int32_t id, prev, next; };              /* n 0: merged away */
struct merge { int32_t l_id, l_tree, r_id, r_tree; uint32_t l_n; };     /* what a symbol was merged from */
/* A symbol and the one after it, n bytes. key: its order, the least first, and below it the symbol. */
struct offer { uint64_t key; uint32_t n; int32_t id; };
struct bpe_work {
	const struct bpe *b;
	const char *text;
	struct symbol *s;
	struct merge *tree;             /* and by symbols, their last merge, or -1: only if tokens fall apart */
	int32_t *last;
	struct offer *heap;
	size_t n_heap, n_tree, room;    /* bytes of text that there is room for */
	bool unknown;                   /* the stretch has something unknown */
};

static bool begin_work(struct bpe *b)
{
	b->memo = memo_new();
	b->work = calloc(1, sizeof *b->work);
	if (b->work) b->work->b = b;
	return b->memo && b->work;
}
static void end_work(struct bpe *b)
{
	free(b->memo);
	if (!b->work) return;
	free(b->work->s);
	free(b->work->tree);
	free(b->work->last);
	free(b->work->heap);
	free(b->work);
}

enum ggu_status bpe_new(struct bpe **out, const struct vocab *v, const bool *own, struct ggu_error *err)
{
	struct bpe *b = calloc(1, sizeof *b);
	const json_t *m = json_object_get(v->pipeline, "model");
	const char *order = vocab_json_str(m, "order"), *unk = vocab_json_str(m, "unk_token");
	/* With bytes for unknown characters, is there something for each? Where one vanishes, its neighbours meet. */
	bool keeps = false;
	if (b) {
		b->v = v;
		b->by_scores = order && !strcmp(order, "scores");
		b->byte_fallback = vocab_json_true(m, "byte_fallback");
		b->fuse_unk = b->by_scores || vocab_json_true(m, "fuse_unk");
		b->ignore_merges = vocab_json_true(m, "ignore_merges");
		b->unk = unk ? vocab_find(v, unk) : -1;
		keeps = fill_bytes(b, own) || b->unk >= 0;
	}
	if (!b || !begin_work(b) || !(b->texts = texts_new(v, own, b->by_scores)) || !fill_pairs(b)
		|| ((b->by_scores || (b->byte_fallback && keeps)) && !fill_joints(b))) {
		bpe_free(b);
		return ggu_no_memory(err);
	}
	if (b->by_scores && !v->scores) {
		bpe_free(b);
		return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "tokenizer.ggml.scores", "is missing");
	}
	for (size_t i = 0; b->by_scores && i < v->n; i++) {
		if (b->unk < 0 && v->types[i] == VOCAB_UNKNOWN) b->unk = (int32_t)i;
		b->falls_apart |= v->types[i] == VOCAB_UNUSED;
	}
	*out = b;
	return GGU_OK;
}

void bpe_free(struct bpe *b)
{
	if (!b) return;
	end_work(b);
	texts_free(b->texts);
	free(b->pairs);
	free(b->joints);
	free(b);
}

/* ---- merging ---- */

static bool before(const struct offer *x, const struct offer *y)
{
	return x->key < y->key;
}
/* A number that is less for a higher score. */
static uint32_t order_of(float score)
{
	uint32_t u;
	score += 0.0f;                  /* there is one zero */
	memcpy(&u, &score, sizeof u);
	return u >> 31 ? u : ~u & 0x7fffffff;
}
static void push(struct bpe_work *j, struct offer o)
{
	size_t i = j->n_heap++;
	for (; i && before(&o, j->heap + (i - 1)/2); i = (i - 1)/2) j->heap[i] = j->heap[(i - 1)/2];
	j->heap[i] = o;
}
static struct offer pop(struct bpe_work *j)
{
	struct offer top = j->heap[0], o = j->heap[--j->n_heap];
	size_t i = 0;
	for (;;) {
		size_t c = 2*i + 1;
		if (c >= j->n_heap) break;
		if (c + 1 < j->n_heap && before(j->heap + c + 1, j->heap + c)) c++;
		if (!before(j->heap + c, &o)) break;
		j->heap[i] = j->heap[c];
		i = c;
	}
	j->heap[i] = o;
	return top;
}

static void offer(struct bpe_work *j, int32_t left)
{
	const struct bpe *b = j->b;
	struct offer o;
	uint32_t order;
	const struct symbol *l, *r;
	if (left < 0 || j->s[left].next < 0) return;
	l = j->s + left;
	r = j->s + l->next;
	o.n = l->n + r->n;
	if (b->by_scores) {
		o.id = texts_find(b->texts, j->text + l->at, o.n);
		if (o.id < 0) return;
		order = order_of(b->v->scores[o.id]);
	} else {
		size_t i;
		if (l->id < 0 || r->id < 0) return;
		i = pair_slot(b->pairs, pair_key(l->id, r->id));
		if (!b->pairs->slot[i].key) return;
		order = b->pairs->slot[i].rank;
		o.id = b->pairs->slot[i].id;
	}
	o.key = (uint64_t)order << 32 | (uint32_t)left;
	push(j, o);
}

static void merge_all(struct bpe_work *j)
{
	while (j->n_heap) {
		struct offer o = pop(j);
		const int32_t left = (int32_t)(uint32_t)o.key;
		struct symbol *l = j->s + left, *r;
		if (!l->n || l->next < 0) continue;
		r = j->s + l->next;
		if (l->n + r->n != o.n) continue;
		if (j->b->falls_apart) {
			int32_t *last = j->last + left;
			j->tree[j->n_tree] = (struct merge){ l->id, *last, r->id, j->last[l->next], l->n };
			*last = (int32_t)j->n_tree++;
		}
		l->n = o.n;
		l->id = o.id;
		l->next = r->next;
		r->n = 0;
		if (l->next >= 0) j->s[l->next].prev = left;
		offer(j, l->prev);
		offer(j, left);
	}
}

/* Do unknown characters become bytes, and is there a token for each of these? */
static bool has_bytes(const struct bpe *b, const char *p, size_t n)
{
	bool bytes = b->byte_fallback;
	for (size_t i = 0; i < n && bytes; i++) bytes = b->byte[(unsigned char)p[i]] >= 0;
	return bytes;
}

/* Adds a symbol's ids. A SentencePiece token of type unused falls apart into what it was merged from. */
static bool emit(struct bpe_work *j, int32_t id, int32_t tree, uint32_t at, uint32_t n, bool *unknown, struct ids *o)
{
	const struct bpe *b = j->b;
	if (id >= 0 && tree >= 0 && b->by_scores && b->v->types[id] == VOCAB_UNUSED) {
		const struct merge *m = j->tree + tree;
		return emit(j, m->l_id, m->l_tree, at, m->l_n, unknown, o)
			&& emit(j, m->r_id, m->r_tree, at + m->l_n, n - m->l_n, unknown, o);
	}
	if (id >= 0 && !(b->by_scores && b->v->types[id] == VOCAB_UNUSED)) {
		*unknown = false;
		return ids_add(o, id);
	}
	if (has_bytes(b, j->text + at, n)) {
		for (uint32_t i = 0; i < n; i++) if (!ids_add(o, b->byte[(unsigned char)j->text[at + i]])) return false;
		*unknown = false;
		return true;
	}
	j->unknown = true;
	if (b->unk < 0 || (*unknown && b->fuse_unk)) return true;
	*unknown = true;
	return ids_add(o, b->unk);
}

/* Bytes of text[n] up to the first place that no merge crosses. */
static size_t stretch(const struct bpe *b, const char *text, size_t n)
{
	size_t before = 0, at = n ? char_bytes(text, n) : 0;
	if (!b->joints) return n;
	while (at < n) {
		size_t len = char_bytes(text + at, n - at);
		uint64_t key = pair_key(char_code(text + before, at - before), char_code(text + at, len));
		if (!b->joints->slot[pair_slot(b->joints, key)].key) return at;
		before = at;
		at += len;
	}
	return n;
}

static bool make_room(struct bpe_work *j, size_t n)
{
	size_t room = n > 256 ? n : 256;
	bool apart = j->b->falls_apart;
	if (n <= j->room) return true;
	if (n > SIZE_MAX/2/sizeof *j->heap) return false;
	free(j->s);
	free(j->tree);
	free(j->last);
	free(j->heap);
	j->s = malloc(room*sizeof *j->s);
	j->tree = apart ? malloc(room*sizeof *j->tree) : NULL;
	j->last = apart ? malloc(room*sizeof *j->last) : NULL;
	j->heap = malloc(2*room*sizeof *j->heap);       /* each pair, and one more with each merge */
	j->room = j->s && j->heap && (!apart || (j->tree && j->last)) ? room : 0;
	return j->room;
}

static bool encode_stretch(struct bpe_work *j, const char *text, size_t n, bool *unknown, struct ids *o)
{
	const struct texts *texts = j->b->texts;
	/* if there is no unknown token, a character that has none is left out first, so its neighbours can merge */
	bool drops = j->b->unk < 0 && !j->b->joints, ok = true;
	int32_t count = 0, id;
	if (n > INT32_MAX/4 || !make_room(j, n)) return false;
	j->text = text;
	j->n_heap = j->n_tree = 0;
	j->unknown = false;
	for (size_t at = 0, len; at < n; at += len) {
		len = char_bytes(text + at, n - at);
		id = texts_find(texts, text + at, len);
		if (id < 0 && drops && !has_bytes(j->b, text + at, len)) {
			j->unknown = true;
			continue;
		}
		j->s[count] = (struct symbol){ (uint32_t)at, (uint32_t)len, id, count - 1, count + 1 };
		if (j->last) j->last[count] = -1;
		count++;
	}
	if (!count) return true;
	j->s[count - 1].next = -1;
	for (int32_t i = 0; i + 1 < count; i++) offer(j, i);
	merge_all(j);
	for (int32_t i = 0; ok && i >= 0; i = j->s[i].next)
		ok = emit(j, j->s[i].id, j->last ? j->last[i] : -1, j->s[i].at, j->s[i].n, unknown, o);
	return ok;
}

/* Encodes a stretch. One without anything unknown has the same ids everywhere, so they are remembered. */
static bool encode_known(struct bpe *b, const char *text, size_t n, bool *unknown, struct ids *o)
{
	size_t had = o->n;
	int found = memo_find(b->memo, text, n, o);
	if (found) *unknown = false;
	if (found) return found > 0;
	if (!encode_stretch(b->work, text, n, unknown, o)) return false;
	if (!b->work->unknown) memo_put(b->memo, text, n, o->v + had, o->n - had);
	return true;
}

bool bpe_encode(struct bpe *b, const char *text, size_t n, struct ids *o)
{
	bool ok = true, unknown = false;
	if (n && b->ignore_merges) {
		int32_t id = texts_find(b->texts, text, n);
		if (id >= 0) return ids_add(o, id);
	}
	for (size_t at = 0, len; ok && at < n && !ids_enough(o); at += len) {
		len = stretch(b, text + at, n - at);
		ok = encode_known(b, text + at, len, &unknown, o);
	}
	return ok;
}
