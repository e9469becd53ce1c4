/* SPDX-License-Identifier: MIT
 * attn.h - attention: a cache of keys and values in blocks of positions, and queries that attend to it.
 *
 *   out[t][h] = sum over p of softmax over p of (score of query h of token t, key p) times value p
 *
 * Query heads share key-value heads in equal groups, in order. Keys may be wider or narrower than values; values may be
 * the front of the keys (latent attention: one shared head of 576, of which 512 are the values). Encoders and
 * cross-attention also store what they attend to in blocks, and mask nothing.
 *
 * The numeric contract, in addition to that of quant.h: portable C is the definition; bits do not depend on the
 * instruction set, the threads, the cut into tasks, or which tokens are computed in one call.
 *   - Keys and values are rounded to the cache's type once, as by quant_encode at QUANT_EFFORT_MIN, and read back as by
 *     quant_decode, even in the call that stores them. I16, integers nearly as precise as F16 and faster to multiply,
 *     cuts a row into blocks of 128 numbers, the last one shorter, each d*c. With m the largest magnitude of the block,
 *     d = m/4095, but 0 if m < 2^-96 and NaN if m is infinite or NaN; c = x*(1/d), to the nearest, ties to even, and 0
 *     if d is not above 0.
 *   - A score with keys of floats is one fma chain over the dimensions in order, fma(q[i], k[i], s), from 0.0f. With
 *     keys of a block type it is the product of quant.h, the query being integers with a scale for 32. With keys in I16
 *     the query is rounded as they are, to e*b; s = fma(d*e, (float)(sum of c*b), s) over the blocks in order, from
 *     0.0f; the sum of 128 products fits an int32. The score is then multiplied by scale; then capped, if there is a
 *     softcap: cap*tanh(s/cap) by vec.h's tanh; then biased: fma(-slope, |p - pos|, s), or plus the table's entry for
 *     the distance.
 *   - Positions are cut at multiples of ATTN_BLOCK into tiles and at multiples of ATTN_SPLIT into splits. A split
 *     begins with m = -inf, sixteen sums L = 0 and a[j] = 0, and takes its tiles in order. For a tile: m' = the largest
 *     of m and the scores seen; w[p] = e(s[p] - m'), or 0 if p is not seen; f = e(m - m'); L[l] = fma(L[l], f, the
 *     sum of w[p] with p mod 16 = l, p in order); a[j] = a[j]*f, then a[j] = fma(w[p], v[p][j], a[j]) for the p
 *     seen, in order. As long as m' is -inf, 0 is used for it. At the end the sum l is the tree over L (quant.h).
 *   - Values of a block type are d*c + m. For each 32 dimensions the tile's u[p] = w[p]*d[p], rounded, or 0 if p is not
 *     seen, become integers U[p] with a scale s, as 64 activations of quant.h would; a[j] = a[j]*f, then a[j] = fma(s,
 *     (float)(sum of U[p]*c[p][j]), a[j]). With I16 this is done for each 128 dimensions, and with 4095 in place of
 *     quant.h's 2032. Mins have sixteen sums M = 0 for each 32 dimensions: M[l] = M[l]*f, then M[l] = fma(w[p], m[p],
 *     M[l]) for the p seen with p mod 16 = l, in order; at the end of the split a[j] = a[j] + the tree over M. Values
 *     that are the front of keys of a block type or in I16 are floats, as decoded.
 *   - e(x) is that of vec_exp, but 0 for x < -87.
 *   - Splits are joined in order, except those with l = 0. The first is the start; then M' = the largest of M and m,
 *     f = e(M - M'), g = e(m - M'), L = fma(l, g, L*f), A[j] = fma(a[j], g, A[j]*f).
 *   - A sink s comes last: M' = the largest of M and s, f = e(M - M'), L = L*f + e(s - M'), A[j] = A[j]*f. Then
 *     out[j] = A[j]*(1/L). If no split counts, out is zeros.
 *   - Positions that a token does not see have no effect on it, even if they contain NaN.
 *
 * Nothing here allocates, fails or keeps state. All functions are thread-safe after quant_select. */
#ifndef QUANT_ATTN_H
#define QUANT_ATTN_H
#include "../libgguf/types.h"

enum { ATTN_BLOCK = 64, ATTN_SPLIT = 512 };

/* ---- the cache ---- */

struct attn_shape {
	size_t n_head, n_kv;            /* n_head is a multiple of n_kv */
	size_t k_dim, v_dim;            /* of a head */
	uint32_t k_type, v_type;
	bool v_in_k;                    /* values are the first v_dim of the keys; v_type is ignored, v_dim <= k_dim */
};
/* true for F32, F16, BF16 and I16; for Q8_0, Q5_1 and Q4_0 if dim is a multiple of 32. */
bool attn_can_store(uint32_t type, size_t dim);
/* Bytes of the key, or value, of one head at one position. */
size_t attn_row_bytes(uint32_t type, size_t dim);

/* A block of the cache holds ATTN_BLOCK positions of one sequence in one layer, for all key-value heads; it has
 * nothing to do with the blocks of types. Its address must be a multiple of 64. Its bytes are the same for every
 * instruction set. What it has at positions that were never stored may be read but has no effect, and two positions
 * share no byte. So a block may be copied, saved, loaded, and cut short by forgetting positions. */
size_t attn_block_bytes(const struct attn_shape *s);

/* Stores n positions pos, pos + 1, ...: rows of k [n_kv][k_dim] and v [n_kv][v_dim], strides in floats; v is ignored
 * with v_in_k. block[p/ATTN_BLOCK] is the block of position p. Threads may store different positions at once; cuts at
 * multiples of ATTN_BLOCK are fastest. */
void attn_store(const struct attn_shape *s, void *const *block, size_t pos, size_t n, const float *k, size_t k_stride,
	const float *v, size_t v_stride);
/* Reads position pos of a head: k[k_dim] and v[v_dim]; either may be NULL. */
void attn_load(const struct attn_shape *s, void *const *block, size_t pos, size_t head, float *k, float *v);

/* ---- attending ---- */

/* The positions that a token at pos sees, limited to the n_pos that are stored. */
enum attn_mask {
	ATTN_NONE,                      /* all */
	ATTN_CAUSAL,                    /* 0..pos */
	/* the last `window` of 0..pos: its own and window - 1 before it; 0..pos if window is 0 */
	ATTN_WINDOW,
	ATTN_CHUNK,                     /* pos/window*window..pos; 0..pos if window is 0 */
	ATTN_AROUND,                    /* pos - window/2..pos + window/2 */
};
enum attn_bias {
	ATTN_NO_BIAS,
	ATTN_ALIBI,                     /* bias[n_head]: slopes */
	/* bias[n_head][2*reach + 1]: by p - pos, clamped to -reach..reach, the lowest first */
	ATTN_RELATIVE,
};

/* Tokens of one sequence at positions pos, pos + 1, ..., whose keys and values are stored. */
struct attn_rows {
	void *const *block;             /* block[p/ATTN_BLOCK]; only those of positions seen are used */
	size_t n, pos, n_pos;
	const float *q;                 /* [n][n_head][k_dim], rows of tokens q_stride floats apart */
	float *out;                     /* [n][n_head][v_dim], rows of tokens out_stride floats apart */
	size_t q_stride, out_stride;
	struct { size_t tokens, kv, heads, parts, first_task, first_merge, partial; } cut;      /* set by attn_plan */
};

struct attn {
	struct attn_shape shape;
	float scale, softcap;           /* softcap 0: none */
	enum attn_mask mask;
	size_t window;
	enum attn_bias bias_kind;
	const float *bias;
	size_t reach;
	const float *sink;              /* [n_head] or NULL */
	struct attn_rows *rows;         /* sequences of the batch */
	size_t n_rows;
	/* results of splits, if a few tokens are cut over positions; 64-byte aligned. If it is NULL or too small,
	 * positions are not cut */
	void *partial;
	size_t partial_bytes;
};

/* The size of `partial` for cutting this batch over positions; 0: its tokens keep n_threads busy anyway. Uses
 * rows[].cut, which attn_plan sets anew. */
size_t attn_partial_bytes(struct attn *a, int n_threads);
/* The largest such size for up to n_tokens of one sequence that see up to n_pos positions. */
size_t attn_partial_most(const struct attn_shape *s, size_t n_tokens, size_t n_pos, int n_threads);
/* Bytes of a thread's scratch memory, 64-byte aligned. */
size_t attn_work_bytes(const struct attn_shape *s);

/* Cuts the batch into tasks that keep n_threads busy; every cut gives the same bits. First all tasks must run, each
 * once, in any order, then all merges (there may be none). A merge is short and writes `out` of its token for one
 * key-value head. If there are merges, consecutive tasks are best run by one thread (GGU_TAKE_NEAR), as each prefetches
 * what the next one reads first. */
struct attn_plan { size_t n_tasks, n_merges; };
struct attn_plan attn_plan(struct attn *a, int n_threads);
void attn_run(const struct attn *a, size_t task, void *work);
void attn_merge(const struct attn *a, size_t merge);

/* The least bytes of the cache that the batch reads, and its multiply-adds: for measuring. */
void attn_cost(const struct attn *a, double *bytes, double *macs);

#endif
