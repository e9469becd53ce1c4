/* SPDX-License-Identifier: MIT
 * scores.h - the scored positions of a text: results from them, and parts of them as JSON that several processes made.
 * Programs only; failures exit 2.
 *
 * All sums run over the positions in order, in double, and JSON has every digit: parts that are merged give the
 * numbers of a single run. */
#ifndef TOOLS_SCORES_H
#define TOOLS_SCORES_H
#include "opt.h"
#include "tag.h"

/* Of one position, in nats. nll: -log of the model's probability of the right token. */
struct score { double nll, base_nll, kld; bool same_top; };
struct scores {
	bool has_base;                  /* the members of score other than nll are set */
	size_t n_ctx, from, windows;    /* tokens of a window; the first window, and how many there are */
	char of[TAG_BYTES];             /* tag.h: model, base, text and types of the cache */
	struct score *v;                /* [windows*scores_per(n_ctx)] */
};
/* Scored positions of a window of n_ctx tokens: n_ctx/2 to n_ctx - 2. */
size_t scores_per(size_t n_ctx);

/* Dies unless each NAME=X consists of the name of a result, which needs no base if there is none, and a number. */
void scores_check_rules(const struct opt_list *fail_above, bool has_base);
enum scores_form { SCORES_TEXT, SCORES_JSON, SCORES_PARTIAL };
/* Prints all results to stdout; SCORES_PARTIAL: as JSON and with them the scores. Returns EXIT_NO, with a message, if a
 * result breaks a rule, else EXIT_YES. */
int scores_report(const struct scores *s, enum scores_form form, const struct opt_list *fail_above);
/* What files of SCORES_PARTIAL hold, put together in the order of their windows, which must join and be of one
 * measurement. The caller frees v. */
struct scores scores_merge(char **files, int n);

#endif
