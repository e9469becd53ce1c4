/* SPDX-License-Identifier: MIT
 * typewish.c - see typewish.h. Patterns are PCRE2's. Each counts its hits, so that one without any can be reported. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include "../quant/recipe.h"
#include "msg.h"
#include "typeplan.h"
#include "typewish.h"

struct wish { const char *text; pcre2_code *code; uint32_t type; size_t hits; };
struct typewish { pcre2_match_data *match; size_t n; struct wish wish[]; };

static struct wish parse(const char *text)
{
	const char *eq = strrchr(text, '=');
	struct wish w = { .text = text };
	PCRE2_SIZE at;
	int code;
	if (!eq || eq == text) msg_usage("--tensor-type expects REGEX=T, not '%s'", text);
	w.type = typeplan_type("--tensor-type", eq + 1);
	w.code = pcre2_compile((PCRE2_SPTR)text, (size_t)(eq - text), PCRE2_CASELESS, &code, &at, NULL);
	if (!w.code) {
		PCRE2_UCHAR why[100] = "";
		pcre2_get_error_message(code, why, sizeof why);
		msg_usage("--tensor-type %s: not a regular expression: %s", text, (char *)why);
	}
	return w;
}

struct typewish *typewish_new(const struct opt_list *wishes)
{
	struct typewish *w = msg_need(calloc(1, sizeof *w + wishes->n*sizeof *w->wish));
	w->match = msg_need(pcre2_match_data_create(1, NULL));
	for (; w->n < wishes->n; w->n++) w->wish[w->n] = parse(wishes->v[w->n]);
	return w;
}

uint32_t typewish_find(void *wishes, const char *name)
{
	struct typewish *w = wishes;
	for (size_t i = 0; i < w->n; i++) {
		struct wish *x = &w->wish[i];
		int found = pcre2_match(x->code, (PCRE2_SPTR)name, strlen(name), 0, 0, w->match, NULL);
		if (found == PCRE2_ERROR_NOMATCH) continue;
		msg_need(found == PCRE2_ERROR_NOMEMORY ? NULL : w);
		if (found < 0) msg_die("--tensor-type %s: cannot be matched with %s: too many ways to match", x->text,
			name);
		x->hits++;
		return x->type;
	}
	return RECIPE_KEEP;
}

void typewish_report(const struct typewish *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (!w->wish[i].hits) msg_warn("--tensor-type %s: set no tensor's type", w->wish[i].text);
}

void typewish_free(struct typewish *w)
{
	for (size_t i = 0; i < w->n; i++) pcre2_code_free(w->wish[i].code);
	pcre2_match_data_free(w->match);
	free(w);
}
