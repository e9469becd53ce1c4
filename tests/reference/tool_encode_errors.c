/* SPDX-License-Identifier: MIT
 * tool_encode_errors MODEL IMATRIX ERRORS.json - TAP: the relative weighted squared error of every type, as a
 * part of the better peer's, against what we hold ourselves to. The metric is that of the JSON file: the first
 * 128 rows of each of its tensors, the mean over the tensors. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../imatrix/imatrix.h"
#include "../../quant/quant.h"

/* For types with one scale per block and one table of levels, the least error of any choice of scale and codes is known
 * (least_error); with importances no encoder reaches 0.97 of the peers'. There the limit is relative to the least
 * error. All limits are for the default objective, except IQ2_XXS with importances: how well it is searched shows
 * without the lift of its scales. With the lift, which trades error for divergence (TRIALS.md), the limit is
 * `lifted`. */
static const struct { const char *name; double imatrix, none, lifted; } targets[] = {
	{ "Q8_0", 1.0001, 1.0001 }, { "Q4_0", 0.97, 0.97 }, { "Q4_1", 0.97, 0.97 }, { "Q5_0", 0.97, 0.97 },
	{ "Q5_1", 0.97, 0.97 },
	{ "Q2_K", 0.94, 0.94 }, { "Q3_K", 0.985, 0.985 }, { "Q4_K", 0.97, 0.97 }, { "Q5_K", 0.97, 0.97 },
	{ "Q6_K", 0.94, 0.94 },
	{ "IQ4_NL", 0.97, 0.97 }, { "IQ4_XS", 0.97, 0.97 }, { "IQ2_XXS", 0.90, 0.90, .lifted = 0.94 },
	{ "IQ2_XS", 0.95, 0.95 }, { "IQ2_S", 0.95, 0.95 },
	{ "IQ3_XXS", 0.95, 0.95 }, { "IQ3_S", 0.95, 0.95 }, { "IQ1_S", 0.95, 0.95 }, { "IQ1_M", 0.95, 0.95 },
	{ "MXFP4", 0.97, 0.97 }, { "NVFP4", 0.97, 0.97 }, { "TQ1_0", 0.5, 0.5 }, { "TQ2_0", 0.5, 0.5 },
	{ "Q2_0", 0.5, 0.5 }, { "Q1_0", 1, 1 },
};
enum { ROWS = 128, BLOCK = 32, LEVELS = 32 };
static const struct one_scale { const char *name; double limit; int n; float level[LEVELS]; } one_scale[] = {
	{ "Q4_0", 1.002, 16, { -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7 } },
	{ "Q5_0", 1.002, 32, { -16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5,
		6, 7, 8,
		9, 10, 11, 12, 13, 14, 15 } },
	{ "IQ4_NL", 1.0025, 16, { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 } },
};

static void die(const char *what)
{
	printf("Bail out! %s\n", what);
	exit(1);
}
/* Where the code of an element changes: at 1/d = at it goes up or down to the next level. */
struct passage { double at; int element, step; };
static int by_place(const void *a, const void *b)
{
	double p = ((const struct passage *)a)->at, q = ((const struct passage *)b)->at;
	return (p > q) - (p < q);
}
/* The least sum of w (d*level - x)^2 over all d of either sign and all codes of a block. As 1/d goes from minus to plus
 * infinity, each code passes through all levels once; between two such changes the codes are constant and the best d is
 * known. So this looks at all code words that can be the best, some 500 or 1000. It does not require d to be an f16:
 * the least error of the format itself is a trifle higher. */
static double least_error(const struct one_scale *s, const float *x, const float *w)
{
	struct passage p[BLOCK*(LEVELS - 1)];
	int code[BLOCK], n = 0;
	double xx = 0, q2 = 0, qx = 0, gain = 0;
	for (int i = 0; i < BLOCK; i++) {
		double g = w ? w[i] : 1;
		code[i] = x[i] > 0 ? 0 : s->n - 1;
		xx += g*x[i]*x[i];
		q2 += g*s->level[code[i]]*s->level[code[i]];
		qx += g*s->level[code[i]]*x[i];
		for (int k = 0; x[i] != 0 && k + 1 < s->n; k++)
			p[n++] = (struct passage){ 0.5*(s->level[k] + s->level[k + 1])/x[i], i, x[i] > 0 ? 1 : -1 };
	}
	qsort(p, (size_t)n, sizeof *p, by_place);
	for (int k = 0; k <= n; k++) {
		if (q2 > 0 && qx*qx > gain*q2) gain = qx*qx/q2;
		if (k < n) {
			int i = p[k].element;
			double g = w ? w[i] : 1, was = s->level[code[i]], is = s->level[code[i] += p[k].step];
			q2 += g*(is*is - was*was);
			qx += g*(is - was)*x[i];
		}
	}
	return xx - gain;
}
/* How a type is measured. one: what is known about a type with one scale, or NULL. */
struct trial { uint32_t type; bool weigh, no_lift; const struct one_scale *one; };
/* least: for a type with one scale, the error that no encoder can be below; otherwise 0 */
static double tensor_error(struct ggu_file *f, const struct imatrix *im, const char *name, const struct trial *a,
	double *least)
{
	const struct ggu_tensor *t = ggu_file_find(f, name);
	const struct imatrix_entry *e = imatrix_find(im, name);
	size_t cols, n, rows;
	uint64_t bytes, in;
	struct quant_objective usual;
	float *x, *y, *w, *counted;
	unsigned char *raw, *blocks;
	double err = 0, norm = 0, least_sum = 0;
	if (!t || !e) die(name);
	cols = (size_t)t->ne[0];
	rows = t->ne[1] < ROWS ? (size_t)t->ne[1] : ROWS;
	n = rows*cols;
	if (!ggu_type_bytes(a->type, n, &bytes) || !ggu_type_bytes(t->type, n, &in)) die("sizes");
	x = malloc(n*sizeof *x); y = malloc(n*sizeof *y); w = malloc(cols*sizeof *w); counted = malloc(cols*sizeof *w);
	raw = malloc((size_t)in); blocks = malloc((size_t)bytes);
	if (!x || !y || !w || !counted || !raw || !blocks) die("memory");
	if (ggu_read(f, t, 0, raw, (size_t)in, NULL) != GGU_OK) die("read");
	quant_decode(t->type, raw, x, n);
	imatrix_importance(e, 0, w);
	usual = quant_objective_default(a->type, a->weigh);
	if (a->no_lift) usual.lift = 0;
	quant_weigh(&usual, w, cols, counted);
	quant_encode(a->type, &usual, x, a->weigh ? counted : NULL, rows, cols, QUANT_EFFORT_DEFAULT, blocks);
	quant_decode(a->type, blocks, y, n);
	for (size_t i = 0; i < n; i++) {
		double g = a->weigh ? w[i % cols] : 1, d = (double)y[i] - x[i];
		err += g*d*d;
		norm += g*x[i]*x[i];
	}
	for (size_t i = 0; a->one && i < n; i += BLOCK)
		least_sum += least_error(a->one, x + i, a->weigh ? w + i % cols : NULL);
	*least += least_sum/norm;
	free(x); free(y); free(w); free(counted); free(raw); free(blocks);
	return err/norm;
}
/* The better peer's mean. per_tensor of any peer has the names of the tensors. */
static double best_peer(json_t *mode, json_t **tensors)
{
	const char *peer;
	json_t *v;
	double best = 0;
	json_object_foreach(mode, peer, v) {
		double m = json_number_value(json_object_get(v, "mean"));
		if (best == 0 || m < best) best = m;
		*tensors = json_object_get(v, "per_tensor");
	}
	return best;
}

/* Prints a line of TAP; false if the mean error over the tensors is beyond `limit` of the better peer's. */
static bool hold(struct ggu_file *f, const struct imatrix *im, json_t *mode, const char *type, const struct trial *a,
	double limit)
{
	static int n;
	const char *of = a->no_lift ? "with importances, scales not lifted" : a->weigh ? "with importances" : "without";
	json_t *tensors = NULL, *unused;
	const char *name;
	double best = best_peer(mode, &tensors), mean = 0, least = 0;
	bool good;
	json_object_foreach(tensors, name, unused) mean += tensor_error(f, im, name, a, &least);
	mean /= (double)json_object_size(tensors);
	least /= (double)json_object_size(tensors);
	if (a->one) {
		printf("# %s %s: the least error that the format allows is %.4f of the better peer's, ours %.4f "
			"of that\n", type, of, least/best, mean/least);
		if (least*a->one->limit > best*limit) limit = least*a->one->limit/best;
	}
	good = mean <= best*limit;
	printf("%sok %d - %s %s: %.6g, %.4f of the better peer's, wanted %.3f\n", good ? "" : "not ", ++n, type, of,
		mean, mean/best, limit);
	return good;
}

int main(int argc, char **argv)
{
	struct ggu_file *f;
	struct imatrix *im;
	json_t *root;
	int n = 0;
	bool good = true;
	if (argc != 4 || quant_select(getenv("GGUF_CPU"), NULL) != GGU_OK) die("usage");
	if (ggu_open(&f, argv[1], NULL) != GGU_OK || imatrix_read(&im, argv[2], NULL) != GGU_OK) die("open");
	root = json_load_file(argv[3], 0, NULL);
	if (!root) die("json");
	for (size_t i = 0; i < sizeof targets/sizeof *targets; i++)
		for (int weigh = 1; weigh >= 0; weigh--) {
			const char *type = targets[i].name;
			json_t *mode = json_object_get(json_object_get(json_object_get(root, "errors"), type),
				weigh ? "imatrix" : "none");
			struct trial a = { .type = ggu_type_find(type)->id, .weigh = weigh };
			if (!mode || !quant_can_encode(a.type)) continue;
			for (size_t k = 0; k < sizeof one_scale/sizeof *one_scale; k++)
				if (!strcmp(one_scale[k].name, type)) a.one = &one_scale[k];
			if (weigh && targets[i].lifted > 0) {
				good &= hold(f, im, mode, type, &a, targets[i].lifted);
				a.no_lift = true;
				n++;
			}
			good &= hold(f, im, mode, type, &a, weigh ? targets[i].imatrix : targets[i].none);
			n++;
		}
	printf("1..%d\n", n);
	json_decref(root);
	imatrix_free(im);
	ggu_close(f);
	return !good;
}
