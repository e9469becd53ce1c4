/* SPDX-License-Identifier: MIT
 * digest.c - see digest.h. A struct digest holds the state of one kind, which nettle or libxxhash advances. A UUID is
 * the beginning of a SHA-1. */
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
/* This header makes xxhash use the CPU's widest vectors, if the library was built with it; results are the same. */
#if defined __has_include
#if __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif
#endif
#include "digest.h"
#include "msg.h"

static const struct { const char *name; size_t digits; } kinds[DIGEST_KINDS] = {
	[DIGEST_UUID] = { "uuid", 36 }, [DIGEST_XXH64] = { "xxh64", 16 }, [DIGEST_XXH3] = { "xxh3", 16 },
	[DIGEST_SHA1] = { "sha1", 40 }, [DIGEST_SHA256] = { "sha256", 64 },
};
struct digest {
	enum digest_kind kind;
	union {
		XXH64_state_t *xxh64;
		XXH3_state_t *xxh3;
		struct sha1_ctx sha1;           /* of UUIDs too */
		struct sha256_ctx sha256;
	} s;
};

const char *digest_name(enum digest_kind k) { return kinds[k].name; }
size_t digest_digits(enum digest_kind k) { return kinds[k].digits; }
bool digest_find(const char *name, size_t n, enum digest_kind *k)
{
	for (int i = 0; i < DIGEST_KINDS; i++)
		if (strlen(kinds[i].name) == n && !memcmp(kinds[i].name, name, n)) {
			*k = (enum digest_kind)i;
			return true;
		}
	return false;
}

struct digest *digest_new(enum digest_kind k)
{
	static const uint8_t uuid_space[16] = { 0xef, 0x00, 0x12, 0x06, 0xda, 0xdc, 0x5f, 0x6d, 0xa1, 0x5f, 0x33, 0x59,
		0xe5, 0x77, 0xd4, 0xe5 };
	struct digest *d = msg_need(malloc(sizeof *d));
	d->kind = k;
	if (k == DIGEST_XXH64) XXH64_reset(d->s.xxh64 = msg_need(XXH64_createState()), 0);
	if (k == DIGEST_XXH3) XXH3_64bits_reset(d->s.xxh3 = msg_need(XXH3_createState()));
	if (k == DIGEST_SHA256) sha256_init(&d->s.sha256);
	if (k == DIGEST_SHA1 || k == DIGEST_UUID) sha1_init(&d->s.sha1);
	if (k == DIGEST_UUID) sha1_update(&d->s.sha1, sizeof uuid_space, uuid_space);
	return d;
}

void digest_add(struct digest *d, const void *p, size_t n)
{
	switch (d->kind) {
	case DIGEST_XXH64: XXH64_update(d->s.xxh64, p, n); break;
	case DIGEST_XXH3: XXH3_64bits_update(d->s.xxh3, p, n); break;
	case DIGEST_SHA256: sha256_update(&d->s.sha256, n, p); break;
	default: sha1_update(&d->s.sha1, n, p);
	}
}

/* The groups of a UUID, with its version and variant in their places. */
static void uuid_text(uint8_t b[16], char *text)
{
	b[6] = (b[6] & 0x0f) | 0x50;
	b[8] = (b[8] & 0x3f) | 0x80;
	for (int i = 0; i < 16; i++)
		text += sprintf(text, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
}
static void hash64(uint64_t v, uint8_t *b)
{
	for (int i = 0; i < 8; i++) b[i] = (uint8_t)(v >> (56 - 8*i));
}

void digest_end(struct digest *d, char text[DIGEST_TEXT])
{
	uint8_t b[SHA256_DIGEST_SIZE];
	switch (d->kind) {
	case DIGEST_XXH64: hash64(XXH64_digest(d->s.xxh64), b); XXH64_freeState(d->s.xxh64); break;
	case DIGEST_XXH3: hash64(XXH3_64bits_digest(d->s.xxh3), b); XXH3_freeState(d->s.xxh3); break;
	case DIGEST_SHA256: sha256_digest(&d->s.sha256, SHA256_DIGEST_SIZE, b); break;
	default: sha1_digest(&d->s.sha1, SHA1_DIGEST_SIZE, b);
	}
	if (d->kind == DIGEST_UUID) uuid_text(b, text);
	else for (size_t i = 0; i < digest_digits(d->kind)/2; i++) sprintf(text + 2*i, "%02x", b[i]);
	free(d);
}
