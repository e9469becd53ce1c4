/* SPDX-License-Identifier: MIT
 * scores.c - see scores.h. The measures are a table of names in the order in which they are printed; so are the members
 * of a score in JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../model/util/file.h"
#include "../quant/vec.h"
#include "decimal.h"
#include "kv_json.h"
#include "msg.h"
#include "near.h"
#include "scores.h"

size_t scores_per(size_t n_ctx) { return n_ctx - 1 - n_ctx/2; }

/* ---- results ---- */

/* In the order of printing. All but the first are there with --base. */
enum measure { PPL, BASE_PPL, KLD, KLD_MEDIAN, KLD_P99, KLD_P999, KLD_MAX, TOP1, RATIO, RMS_DELTA_P, N_MEASURES };
static const char *const names[N_MEASURES] = {
	"ppl", "base_ppl", "kld", "kld_median", "kld_p99", "kld_p999", "kld_max", "top1", "ratio", "rms_delta_p",
};
struct result { double value, error; bool has_error; };
static void set(struct result *r, enum measure m, double value, const double *error)
{
	r[m] = (struct result){ value, error ? *error : 0, error };
}
static size_t n_measures(bool has_base) { return has_base ? N_MEASURES : PPL + 1; }

/* Mean and its standard error of a member of all scores. Rounding can make the variance less than zero. */
static double mean(const struct score *s, size_t n, size_t offset, double *error)
{
	double sum = 0, squares = 0, m;
	for (size_t i = 0; i < n; i++) {
		double x;
		memcpy(&x, (const char *)(s + i) + offset, sizeof x);
		sum += x;
		squares += x*x;
	}
	m = sum/(double)n;
	squares = squares/(double)n - m*m;
	*error = n > 1 && !(squares <= 0) ? sqrt(squares/(double)(n - 1)) : 0;
	return m;
}

/* NaN sorts last, so that the maximum shows it. */
static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return isnan(x) || isnan(y) ? !!isnan(x) - !!isnan(y) : (x > y) - (x < y);
}

static void base_results(struct result *r, const struct score *s, size_t n, double ppl)
{
	double error, kld = mean(s, n, offsetof(struct score, kld), &error);
	double base_error, base = num_exp(mean(s, n, offsetof(struct score, base_nll), &base_error));
	double same = 0, same_error, ratio = 0, ratio2 = 0, delta = 0;
	double *sorted = msg_need(malloc(n*sizeof *sorted));
	base_error *= base;
	set(r, BASE_PPL, base, &base_error);
	set(r, KLD, kld, &error);
	for (size_t i = 0; i < n; i++) {
		double l = s[i].nll - s[i].base_nll, p = num_exp(-s[i].nll) - num_exp(-s[i].base_nll);
		sorted[i] = s[i].kld;
		same += s[i].same_top;
		ratio += l;
		ratio2 += l*l;
		delta += p*p;
	}
	qsort(sorted, n, sizeof *sorted, by_value);
	set(r, KLD_MEDIAN, n % 2 ? sorted[n/2] : (sorted[n/2 - 1] + sorted[n/2])/2, NULL);
	set(r, KLD_P99, sorted[(size_t)(0.99*(double)(n - 1) + 0.5)], NULL);
	set(r, KLD_P999, sorted[(size_t)(0.999*(double)(n - 1) + 0.5)], NULL);
	set(r, KLD_MAX, sorted[n - 1], NULL);
	same /= (double)n;
	same_error = n > 1 ? sqrt(same*(1 - same)/(double)(n - 1)) : 0;
	set(r, TOP1, same, &same_error);
	ratio /= (double)n;
	ratio2 = ratio2/(double)n - ratio*ratio;
	ratio2 = n > 1 && !(ratio2 <= 0) ? sqrt(ratio2/(double)(n - 1))*ppl/base : 0;
	set(r, RATIO, ppl/base, &ratio2);
	set(r, RMS_DELTA_P, sqrt(delta/(double)n), NULL);
	free(sorted);
}

/* ---- printing ---- */

static json_t *json_of_results(const struct scores *s, const struct result *r)
{
	json_t *root = json_object(), *base = NULL;
	char name[64];
	for (size_t i = 0; i < n_measures(s->has_base); i++) {
		json_t *to;
		if (i == BASE_PPL) base = json_object();
		to = base ? base : root;
		snprintf(name, sizeof name, "%s", names[i == BASE_PPL ? PPL : i]);
		json_put(to, name, json_of_double(r[i].value));
		strncat(name, "_stderr", sizeof name - strlen(name) - 1);
		if (r[i].has_error) json_put(to, name, json_of_double(r[i].error));
	}
	json_put(root, "n_tokens", json_of_uint(s->windows*s->n_ctx));
	json_put(root, "n_scored", json_of_uint(s->windows*scores_per(s->n_ctx)));
	json_put(root, "n_ctx", json_of_uint(s->n_ctx));
	if (base) json_put(root, "base", base);
	return root;
}

/* The members of a score by name; same_top as 0 and 1. */
static const struct { const char *name; size_t offset; bool with_base; } members[] = {
	{ "nll", offsetof(struct score, nll), false },
	{ "base_nll", offsetof(struct score, base_nll), true },
	{ "kld", offsetof(struct score, kld), true },
};
enum { N_MEMBERS = sizeof members/sizeof *members };

static json_t *json_of_scores(const struct scores *s)
{
	json_t *root = json_object(), *list;
	size_t n = s->windows*scores_per(s->n_ctx);
	json_put(root, "of", json_string(s->of));
	json_put(root, "from", json_of_uint(s->from));
	json_put(root, "windows", json_of_uint(s->windows));
	for (size_t m = 0; m < N_MEMBERS; m++) {
		if (members[m].with_base && !s->has_base) continue;
		list = json_array();
		for (size_t i = 0; i < n; i++) {
			double x;
			memcpy(&x, (const char *)(s->v + i) + members[m].offset, sizeof x);
			json_push(list, json_of_double(x));
		}
		json_put(root, members[m].name, list);
	}
	if (!s->has_base) return root;
	list = json_array();
	for (size_t i = 0; i < n; i++) json_push(list, json_of_uint(s->v[i].same_top));
	json_put(root, "same_top", list);
	return root;
}

/* printf would show the sign of a NaN, which depends on the machine. */
static double unsigned_nan(double x) { return isnan(x) ? fabs((double)NAN) : x; }

/* Perplexities have digits before the point; all others are shares or divergences. */
static void print_text(const struct result *r, bool has_base)
{
	for (size_t i = 0; i < n_measures(has_base); i++) {
		int digits = i == PPL || i == BASE_PPL ? 4 : 8;
		printf("%s %.*f", names[i], digits, unsigned_nan(r[i].value));
		if (r[i].has_error) printf(" +- %.*f", digits, unsigned_nan(r[i].error));
		putchar('\n');
	}
}

/* ---- rules ---- */

/* NAME=X of --fail-above */
static size_t read_rule(const char *rule, bool has_base, double *bound)
{
	size_t m = 0, n = strcspn(rule, "=");
	const char *at = rule + n + 1;
	char asked[16] = "", hint[NEAR_BYTES];
	struct near near = { .asked = asked };
	if (!rule[n] || !decimal_real(&at, bound) || *at)
		msg_usage("--fail-above expects NAME=NUMBER, not '%s'", rule);
	while (m < N_MEASURES && (strlen(names[m]) != n || memcmp(names[m], rule, n))) m++;
	if (m < n_measures(has_base)) return m;
	if (m < N_MEASURES) msg_usage("--fail-above %s: a measurement without --base gives no such result", rule);
	if (n < sizeof asked) memcpy(asked, rule, n);
	for (m = 0; m < n_measures(has_base); m++) near_try(&near, names[m]);
	msg_usage("--fail-above %s: there is no such result%s", rule, near_hint(&near, "", hint));
}

void scores_check_rules(const struct opt_list *fail_above, bool has_base)
{
	double bound;
	for (size_t i = 0; i < fail_above->n; i++) read_rule(fail_above->v[i], has_base, &bound);
}

static int verdict(const struct result *r, const struct opt_list *fail_above, bool has_base)
{
	int status = EXIT_YES;
	for (size_t i = 0; i < fail_above->n; i++) {
		double bound;
		size_t m = read_rule(fail_above->v[i], has_base, &bound);
		if (r[m].value <= bound) continue;
		msg_warn("%s is %.8g, %s %.8g", names[m], unsigned_nan(r[m].value),
			isnan(r[m].value) ? "not at most" : "above", bound);
		status = EXIT_NO;
	}
	return status;
}

int scores_report(const struct scores *s, enum scores_form form, const struct opt_list *fail_above)
{
	struct result r[N_MEASURES];
	size_t n = s->windows*scores_per(s->n_ctx);
	double error, ppl = num_exp(mean(s->v, n, offsetof(struct score, nll), &error));
	json_t *root;
	error *= ppl;
	set(r, PPL, ppl, &error);
	if (s->has_base) base_results(r, s->v, n, ppl);
	if (form == SCORES_TEXT) print_text(r, s->has_base);
	else {
		root = json_of_results(s, r);
		if (form == SCORES_PARTIAL) json_put(root, "scores", json_of_scores(s));
		json_print(root, JSON_INDENT(1));
	}
	return verdict(r, fail_above, s->has_base);
}

/* ---- parts ---- */

enum { MAX_PART = 1 << 30 };

static _Noreturn void no_part(const char *file) { msg_die("%s: not what --partial prints", msg_name(file)); }
static size_t count_of(const char *file, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX) no_part(file);
	return (size_t)json_integer_value(v);
}
static double number_of(const char *file, const json_t *v)
{
	const char *text = json_string_value(v);
	if (json_is_number(v)) return json_number_value(v);
	if (text && !strcmp(text, "NaN")) return NAN;
	if (text && (!strcmp(text, "Infinity") || !strcmp(text, "-Infinity")))
		return *text == '-' ? -INFINITY : INFINITY;
	no_part(file);
}

static void read_members(const char *file, const json_t *o, struct scores *s)
{
	size_t n = s->windows*scores_per(s->n_ctx);
	const json_t *same = json_object_get(o, "same_top");
	for (size_t m = 0; m < N_MEMBERS; m++) {
		const json_t *list = json_object_get(o, members[m].name);
		if (members[m].with_base && !s->has_base) continue;
		if (json_array_size(list) != n) no_part(file);
		for (size_t i = 0; i < n; i++) {
			double x = number_of(file, json_array_get(list, i));
			memcpy((char *)(s->v + i) + members[m].offset, &x, sizeof x);
		}
	}
	if (s->has_base && json_array_size(same) != n) no_part(file);
	for (size_t i = 0; s->has_base && i < n; i++) {
		const json_t *v = json_array_get(same, i);
		if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > 1) no_part(file);
		s->v[i].same_top = json_integer_value(v) == 1;
	}
}

static struct scores read_part(const char *file)
{
	struct scores s = { 0 };
	struct ggu_error err;
	json_t *root, *scores;
	char *text;
	size_t n;
	if (file_slurp_any(file, MAX_PART, &text, &n, &err)) msg_die_error(file, &err);
	if (file_json_text(text, n, "", 0, JSON_REJECT_DUPLICATES, &root, &err)) msg_die_error(file, &err);
	free(text);
	scores = json_object_get(root, "scores");
	s.has_base = json_object_get(root, "base") != NULL;
	s.n_ctx = count_of(file, root, "n_ctx");
	s.from = count_of(file, scores, "from");
	s.windows = count_of(file, scores, "windows");
	if (!json_string_length(json_object_get(scores, "of"))) no_part(file);
	snprintf(s.of, sizeof s.of, "%s", json_string_value(json_object_get(scores, "of")));
	if (s.n_ctx < 4 || s.windows != json_array_size(json_object_get(scores, "nll"))/scores_per(s.n_ctx))
		no_part(file);
	s.v = msg_need(calloc(s.windows*scores_per(s.n_ctx) + 1, sizeof *s.v));
	read_members(file, scores, &s);
	json_decref(root);
	return s;
}

struct named_part { const char *file; struct scores s; };
static int by_window(const void *a, const void *b)
{
	const struct named_part *x = a, *y = b;
	if (x->s.from != y->s.from) return x->s.from < y->s.from ? -1 : 1;
	return (x->s.windows > y->s.windows) - (x->s.windows < y->s.windows);   /* none first */
}

struct scores scores_merge(char **files, int n)
{
	struct named_part *p = msg_need(calloc((size_t)n, sizeof *p));
	struct scores all;
	size_t per, at = 0;
	for (int i = 0; i < n; i++) p[i] = (struct named_part){ msg_name(files[i]), read_part(files[i]) };
	qsort(p, (size_t)n, sizeof *p, by_window);
	all = p[0].s;
	per = scores_per(all.n_ctx);
	for (int i = 1; i < n; i++) {
		const struct scores *s = &p[i].s;
		if (s->n_ctx != all.n_ctx || s->has_base != all.has_base || strcmp(s->of, all.of) != 0)
			msg_die("%s and %s are from different measurements", p[0].file, p[i].file);
		if (s->from != all.from + all.windows)
			msg_die("%s begins with window %zu, but those before it end before window %zu", p[i].file,
				s->from, all.from + all.windows);
		all.windows += s->windows;
	}
	all.v = msg_need(malloc((all.windows*per + 1)*sizeof *all.v));
	for (int i = 0; i < n; i++) {
		size_t count = p[i].s.windows*per;
		memcpy(all.v + at, p[i].s.v, count*sizeof *all.v);
		at += count;
		free(p[i].s.v);
	}
	free(p);
	if (!all.windows) msg_die("%s: no windows", msg_name(files[0]));
	return all;
}
