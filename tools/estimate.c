/* SPDX-License-Identifier: MIT
 * estimate.c - see estimate.h. All arithmetic is in double: headers can hold absurd numbers, and an estimate
 * needs no more. */
#include <stdio.h>
#include <string.h>
#include "../quant/attn.h"
#include "estimate.h"

enum { DEFAULT_CTX = 4096 };

/* Item i of ARCH.key if it is a list, its value if it is not, else fallback. */
static double number(const struct ggu_meta *m, const char *arch, const char *key, size_t i, double fallback)
{
	char full[256];
	const struct ggu_kv *kv;
	double v;
	snprintf(full, sizeof full, "%s.%s", arch, key);
	kv = ggu_meta_find(m, full);
	if (!kv || !ggu_kv_float(kv, ggu_kv_type(kv) == GGU_ARRAY ? i : 0, &v) || !(v >= 0)) return fallback;
	return v;
}

static uint64_t whole(double x) { return x < 9e18 ? (uint64_t)(x + 0.5) : UINT64_C(9000000000000000000); }

static bool is_expert(const char *name) { return strstr(name, "_exps.") != NULL; }

/* The bytes and multiply-adds of the weights that a token uses */
static void per_token(const struct ggu_file *f, double expert_share, double *bytes, double *macs)
{
	bool tied = !ggu_file_find(f, "output.weight");
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		double rows = (double)ggu_tensor_rows(t), share = is_expert(t->name) ? expert_share : 1;
		bool lookup = !strcmp(t->name, "token_embd.weight") && !tied;
		if (lookup && rows > 0) share = 1/rows;
		*bytes += share*(double)t->bytes;
		if (!lookup && rows > 1) *macs += share*rows*(double)t->ne[0];
	}
}

uint64_t estimate_ctx(const struct ggu_file *f, uint64_t wanted)
{
	struct ggu_str arch = { "", 0 };
	double trained;
	if (wanted) return wanted;
	ggu_meta_str(ggu_file_meta(f), "general.architecture", &arch);
	trained = number(ggu_file_meta(f), arch.p, "context_length", 0, DEFAULT_CTX);
	return trained < DEFAULT_CTX ? whole(trained) : DEFAULT_CTX;
}

/* Bytes of a head's keys, or values, in a cache at one position */
static double row_bytes(uint32_t type, double dim)
{
	return dim < 1e9 ? (double)attn_row_bytes(type, (size_t)dim) : dim*sizeof(float);
}
/* What an estimate consists of, in bytes and multiply-adds. slack: what large pages of memory leave unused; apart:
 * what is not there at the same time; read: of weights and cache, for a token halfway through the context */
struct parts { double kv, slack, scratch, apart, read, macs; };
/* An estimate from the header; false if that is not enough. */
static bool from_header(struct parts *p, const struct ggu_file *f, double ctx, const struct state_options *cache)
{
	const struct ggu_meta *m = ggu_file_meta(f);
	struct ggu_str arch = { "", 0 };
	const struct ggu_tensor *embd = ggu_file_find(f, "token_embd.weight");
	double wide_q = 0, wide_kv = 0, n_layer, n_embd, experts, used;
	ggu_meta_str(m, "general.architecture", &arch);
	n_layer = number(m, arch.p, "block_count", 0, 0);
	n_embd = number(m, arch.p, "embedding_length", 0, 0);
	if (!arch.n || !embd || n_layer < 1 || n_layer > 65536 || n_embd < 1) return false;
	if (number(m, arch.p, "attention.head_count", 0, 0) <= 0) return false;
	for (size_t i = 0; i < (size_t)n_layer; i++) {
		double heads = number(m, arch.p, "attention.head_count", i, 0);
		double heads_kv = number(m, arch.p, "attention.head_count_kv", i, heads);
		double k = number(m, arch.p, "attention.key_length", i, heads > 0 ? n_embd/heads : 0);
		double v = number(m, arch.p, "attention.value_length", i, heads > 0 ? n_embd/heads : 0);
		p->kv += ctx*heads_kv*(row_bytes(cache->k_type, k) + row_bytes(cache->v_type, v));
		wide_q = heads*(k + v) > wide_q ? heads*(k + v) : wide_q;
		wide_kv = heads_kv*(k + v) > wide_kv ? heads_kv*(k + v) : wide_kv;
	}
	p->scratch = 2*n_embd + wide_q + wide_kv + 2*number(m, arch.p, "feed_forward_length", 0, 4*n_embd) + ctx;
	p->scratch = 4.0*(MODEL_BATCH*p->scratch + (double)ggu_tensor_rows(embd));
	experts = number(m, arch.p, "expert_count", 0, 0);
	used = number(m, arch.p, "expert_used_count", 0, experts);
	per_token(f, experts > 0 && used <= experts ? used/experts : 1, &p->read, &p->macs);
	p->read += p->kv/2;
	return true;
}
static void from_plan(struct parts *p, double n_logits, const struct model_cost *c)
{
	p->kv = c->state_bytes;
	p->slack = c->slack_bytes;
	p->scratch = c->made_bytes + c->work_bytes - c->idle_bytes + 2*sizeof(float)*n_logits;  /* logits and order */
	p->apart = c->apart_bytes;
	p->read = c->weight_bytes + c->head_bytes + c->seen_bytes;
	p->macs = c->source_macs > 0 ? c->source_macs : c->macs + c->head_macs;
}

/* What stays unread of an embedding that is not the output matrix too. Linux maps a file by pieces of 64 KiB; how many
 * have a row of the n_ctx tokens, some of which are the same, is taken to be pieces*n_ctx/(pieces + n_ctx). */
static double unread(const struct ggu_tensor *embd, double n_ctx)
{
	const double bytes = (double)embd->bytes, pieces = bytes/65536;
	return pieces > 0 ? bytes*pieces/(pieces + n_ctx) : 0;
}
void estimate_make(struct estimate *e, const struct ggu_file *f, const struct estimate_options *o)
{
	const struct ggu_tensor *embd = ggu_file_find(f, "token_embd.weight"),
		*head = ggu_file_find(f, "output.weight");
	double weights = 0, n_vocab = embd ? (double)ggu_tensor_rows(embd) : 0, left = 0, base = ESTIMATE_BASE;
	struct parts p = { 0 };
	memset(e, 0, sizeof *e);
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) weights += (double)ggu_file_tensor(f, i)->bytes;
	e->weights = whole(weights);
	if (o->cost) from_plan(&p, head ? (double)ggu_tensor_rows(head) : n_vocab, o->cost);
	else if (!from_header(&p, f, (double)o->n_ctx, &o->cache)) return;
	if (head && embd) left = unread(embd, (double)o->n_ctx);
	if (ggu_meta_find(ggu_file_meta(f), "tokenizer.ggml.tokens")) base += ESTIMATE_PER_TOKEN*n_vocab;
	e->known = true;
	e->n_ctx = o->n_ctx;
	e->kv_cache = whole(p.kv);
	e->scratch = whole(p.scratch);
	e->total = whole(weights - left + p.kv + p.slack + p.scratch - p.apart + base);
	e->read_per_token = whole(p.read);
	e->macs_per_token = whole(p.macs);
	e->tokens_per_s = p.read > 0 ? o->bandwidth/p.read : 0;
}
