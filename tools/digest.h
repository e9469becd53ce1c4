/* SPDX-License-Identifier: MIT
 * digest.h - digests of byte streams by name. Programs only. */
#ifndef TOOLS_DIGEST_H
#define TOOLS_DIGEST_H
#include <stdbool.h>
#include <stddef.h>

/* In order of strength: a check that has the choice takes the last. A UUID is version 5: SHA-1 of llama.cpp's name
 * space and the bytes. */
enum digest_kind { DIGEST_UUID, DIGEST_XXH64, DIGEST_XXH3, DIGEST_SHA1, DIGEST_SHA256, DIGEST_KINDS };
enum { DIGEST_TEXT = 65 };      /* the longest text with its NUL */

const char *digest_name(enum digest_kind k);            /* "xxh3" */
size_t digest_digits(enum digest_kind k);               /* length of its text */
bool digest_find(const char *name, size_t n, enum digest_kind *k);

struct digest;
struct digest *digest_new(enum digest_kind k);          /* exits 2 out of memory */
void digest_add(struct digest *d, const void *p, size_t n);
void digest_end(struct digest *d, char text[DIGEST_TEXT]);      /* frees d */

#endif
