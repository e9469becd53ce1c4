/* SPDX-License-Identifier: MIT
 * config_unread.c - the keys of config.json that no rule has read, once everything has been evaluated: `ignore` says
 * which change nothing, `matters` which are an error (schema.h), and the others are reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/try.h"
#include "../model/util/file.h"
#include "config.h"
#include "config_keys.h"

bool config_matches(const char *pattern, const char *s)
{
	for (; *pattern; pattern++, s++) {
		bool any = pattern[0] == '*' && pattern[1] == '*';
		if (*pattern != '*') { if (*pattern != *s) return false; continue; }
		while (!config_matches(pattern + 1 + any, s)) if (!*s || (*s++ == '.' && !any)) return false;
		return true;
	}
	return !*s;
}

struct unread {
	struct config *c;
	void (*warn)(void *ctx, const struct ggu_error *what);
	void *ctx;
	struct ggu_error *err;
};

/* Does an entry of `ignore` say that the key changes nothing? */
static enum ggu_status ignored(const struct unread *u, const char *path, bool *yes)
{
	const struct yaml_node *l = yaml_get(u->c->arch->convert, "ignore");
	*yes = false;
	for (size_t k = 0; l && k < l->count && !*yes; k++)
		if (config_matches(l->keys[k]->text, path)) TRY(config_true(u->c, l->items[k], true, yes, u->err));
	return GGU_OK;
}

/* How much of a name a pattern gives; a name gives more than any pattern that fits it. */
static size_t given(const char *pattern)
{
	size_t n = strchr(pattern, '*') == NULL;
	for (; *pattern; pattern++) n += 2*(*pattern != '*');
	return n;
}

/* The entry of `matters` that decides about a key; NULL: there is none. */
static const struct yaml_node *rule_for(const struct unread *u, const char *path)
{
	const struct yaml_node *l = yaml_get(u->c->arch->convert, "matters"), *rule = NULL;
	size_t best = 0;
	for (size_t k = 0; l && k < l->count; k++) {
		const char *pattern = l->keys[k]->text;
		if (!config_matches(pattern, path) || given(pattern) < best) continue;
		best = given(pattern);
		rule = l->items[k];
	}
	return rule;
}

/* A value as messages show it: its JSON, of which a long one loses its end. */
enum { SHOWN = 40 };
static void show(const json_t *value, char to[SHOWN + 1])
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
	size_t n = text ? strlen(text) : 0;
	bool whole = n <= SHOWN;
	if (!whole) n = SHOWN - strlen("...");
	while (!whole && n && ((unsigned char)text[n] & 0xc0) == 0x80) n--;    /* inside a character */
	snprintf(to, SHOWN + 1, "%.*s%s", (int)n, text ? text : "", whole ? "" : "...");
	free(text);
}

static enum ggu_status unread_object(const struct unread *u, const json_t *object, const char *prefix, bool silent);

/* Checks one key. A value that is null or empty changes nothing. */
static enum ggu_status unread_key(const struct unread *u, const json_t *object, const char *name, const json_t *value,
	const char *path, bool silent)
{
	double infinity;
	const struct yaml_node *rule;
	bool yes, object_of_keys = json_is_object(value) && !file_json_infinity(value, &infinity);
	char text[SHOWN + 1];
	struct ggu_error what;
	enum ggu_status s;
	if (json_is_null(value) || (json_is_array(value) && !json_array_size(value))) return GGU_OK;
	if (config_keys_marked(u->c->keys, object, name))
		return object_of_keys ? unread_object(u, value, path, silent) : GGU_OK;
	rule = rule_for(u, path);
	u->c->value = value;
	s = ignored(u, path, &yes);
	if (!s && !yes) s = config_true(u->c, rule, false, &yes, u->err);
	u->c->value = NULL;
	if (s || yes) return s;
	if (!rule && object_of_keys) return unread_object(u, value, path, silent);
	if (!rule && (silent || !u->warn)) return GGU_OK;
	show(value, text);
	if (rule)
		s = file_fail(u->err, GGU_ERR_UNSUPPORTED, "config.json", GGU_NO_OFFSET, path,
			"is %s, which changes the results, but %.40s has no rule for it", text, u->c->arch->file);
	else {
		file_fail(&what, GGU_ERR_UNSUPPORTED, "config.json", GGU_NO_OFFSET, path,
			"is %s, which %.40s does not read", text, u->c->arch->file);
		u->warn(u->ctx, &what);
	}
	return s;
}

static enum ggu_status unread_object(const struct unread *u, const json_t *object, const char *prefix, bool silent)
{
	const char *name;
	json_t *value;
	char path[256];
	json_object_foreach((json_t *)object, name, value) {
		if (snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", name) >= (int)sizeof path ||
			value == u->c->text)
			continue;
		TRY(unread_key(u, object, name, value, path, silent));
	}
	return GGU_OK;
}

/* If there is a text part, the root describes the other parts: only keys that `matters` lists are looked for there. */
enum ggu_status config_unread(struct config *c, void (*warn)(void *ctx, const struct ggu_error *what), void *ctx,
	struct ggu_error *err)
{
	struct unread u = { c, warn, ctx, err };
	struct ggu_error what;
	enum ggu_status s = unread_object(&u, c->text, "", false);
	if (!s && *c->module && warn) {
		file_fail(&what, GGU_ERR_UNSUPPORTED, "modules.json", GGU_NO_OFFSET, "",
			"the module %s is left out: what it makes of a text's row is not in the GGUF", c->module);
		warn(ctx, &what);
	}
	return s || c->text == c->root ? s : unread_object(&u, c->root, "", true);
}
