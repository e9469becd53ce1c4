/* SPDX-License-Identifier: MIT
 * check.h - the rules that gguf-check applies to a file. Programs only.
 *
 * Rules are numbered: up to 20 as in enum ggu_rule, which the reader checks; the others are here. Each group of rules
 * has a function that reports what breaks them. A rule of a profile is checked only in that profile. */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H
#include <stdarg.h>
#include "../libgguf/pool.h"

enum check_rule {
	CHECK_TEXT = 21, CHECK_ASCII_KEY, CHECK_LONG_NAME, CHECK_MISSING_KEY, CHECK_KEY_TYPE,
	CHECK_TOKENS, CHECK_TOKEN_LISTS, CHECK_TOKEN_ID, CHECK_TOKEN_TYPE, CHECK_MERGE, CHECK_VOCAB,
	CHECK_PADDING, CHECK_FINITE,
	/* what llama.cpp refuses though the specification allows it */
	CHECK_ORDER, CHECK_NESTED, CHECK_ENDIAN, CHECK_NUMBER_TYPE
};
enum check_profile { CHECK_SPEC, CHECK_LLAMA_CPP };

struct check {
	struct ggu_file *f;
	const char *name;               /* of the file, for messages */
	enum check_profile profile;
	struct ggu_pool *pool;
	bool sound;                     /* the reader found nothing */
	/* one defect; byte may be GGU_NO_OFFSET */
	void (*report)(void *ctx, unsigned rule, const char *file, uint64_t byte, const char *where, const char *what);
	void *ctx;
};
#if defined __GNUC__
__attribute__((format(printf, 6, 7)))
#endif
void check_report(const struct check *c, enum check_rule rule, uint32_t source, uint64_t byte, const char *where,
	const char *fmt, ...);

void check_metadata(const struct check *c);     /* rules 21 to 25, and of llama.cpp */
/* The same of what a set of shards does not show: the keys that say which shard it is, and all metadata of the others
 * than the first. Returns false if a shard could not be read, with *err. */
bool check_shards(const struct check *c, struct ggu_error *err);
void check_tokenizer(const struct check *c);    /* 26 to 31 */
void check_table(const struct check *c);        /* names; order */
/* Rules 32 (for sound files) and 33: reads all data; returns false if the file ended early or could not be read, with
 * *err. */
bool check_data(const struct check *c, struct ggu_error *err);

#endif
