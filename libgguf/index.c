/* SPDX-License-Identifier: MIT
 * index.c - finds names in a list: open addressing over (hash, position) pairs, at most half full.
 *
 * The hash is SipHash-1-3 under a key drawn once per process, so that a file cannot be made whose
 * names all collide. Nothing that leaves the library depends on the order of the slots.
 * Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif
#include "internal.h"

static uint64_t sip_key[2];
static pthread_once_t sip_once = PTHREAD_ONCE_INIT;

static void sip_seed(void)
{
	struct timespec t = { 0 };

	if (getentropy(sip_key, sizeof sip_key) == 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);     /* no entropy device: this is better than a constant */
	sip_key[0] = (uint64_t)t.tv_nsec*UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)t.tv_sec;
	sip_key[1] = (uint64_t)(uintptr_t)&t ^ (uint64_t)getpid() << 32;
}

static inline uint64_t rotl(uint64_t x, int k) { return x << k | x >> (64 - k); }

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1]; v[1] = rotl(v[1], 13) ^ v[0]; v[0] = rotl(v[0], 32);
	v[2] += v[3]; v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3]; v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1]; v[1] = rotl(v[1], 17) ^ v[2]; v[2] = rotl(v[2], 32);
}

static uint64_t sip(const char *s, size_t n)
{
	uint64_t v[4], w;
	size_t i = 0;

	pthread_once(&sip_once, sip_seed);
	v[0] = sip_key[0] ^ UINT64_C(0x736f6d6570736575);
	v[1] = sip_key[1] ^ UINT64_C(0x646f72616e646f6d);
	v[2] = sip_key[0] ^ UINT64_C(0x6c7967656e657261);
	v[3] = sip_key[1] ^ UINT64_C(0x7465646279746573);
	for (; n - i >= 8; i += 8) {
		memcpy(&w, s + i, 8);
		v[3] ^= w;
		sip_round(v);
		v[0] ^= w;
	}
	w = (uint64_t)n << 56;
	for (int k = 0; i < n; i++, k += 8)
		w |= (uint64_t)(unsigned char)s[i] << k;
	v[3] ^= w;
	sip_round(v);
	v[0] ^= w;
	v[2] ^= 0xff;
	for (int k = 0; k < 3; k++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* A slot has 32 bits of the hash above position + 1; 0 is empty. */
static size_t probe(const struct ggu_index *x, const void *list, ggu_index_key key, const char *s, size_t n, uint64_t h)
{
	size_t mask = x->n_slots - 1;

	for (size_t i = h & mask;; i = (i + 1) & mask) {
		uint64_t e = x->slot[i];
		if (!e)
			return i;
		if (e >> 32 == h >> 32) {
			struct ggu_str k = key(list, (size_t)(uint32_t)e - 1);
			if (k.n == n && !memcmp(k.p, s, n))
				return i;
		}
	}
}

size_t ggu_index_find(const struct ggu_index *x, const void *list, ggu_index_key key, const char *s, size_t n)
{
	uint64_t e;

	if (!x->n_slots)
		return SIZE_MAX;
	e = x->slot[probe(x, list, key, s, n, sip(s, n))];
	return e ? (size_t)(uint32_t)e - 1 : SIZE_MAX;
}

static void enter(struct ggu_index *x, const void *list, ggu_index_key key, size_t i)
{
	struct ggu_str k = key(list, i);
	uint64_t h = sip(k.p, k.n);

	x->slot[probe(x, list, key, k.p, k.n, h)] = (h >> 32) << 32 | (uint32_t)(i + 1);
}

bool ggu_index_add(struct ggu_index *x, const void *list, ggu_index_key key, size_t i)
{
	if (i >= UINT32_MAX - 1)
		return false;
	if (2*(x->n + 1) > x->n_slots) {
		struct ggu_index big = { .n_slots = x->n_slots ? 2*x->n_slots : 64 };
		big.slot = calloc(big.n_slots, sizeof *big.slot);
		if (!big.slot)
			return false;
		for (size_t k = 0; k < x->n_slots; k++)
			if (x->slot[k])
				enter(&big, list, key, (size_t)(uint32_t)x->slot[k] - 1);
		big.n = x->n;
		free(x->slot);
		*x = big;
	}
	enter(x, list, key, i);
	x->n++;
	return true;
}

void ggu_index_free(struct ggu_index *x)
{
	free(x->slot);
	*x = (struct ggu_index){ 0 };
}
