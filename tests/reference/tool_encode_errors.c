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

/* Q4_0, Q5_0 and IQ4_NL have one scale for a block: no choice of it comes below 0.978, 0.982 and 0.975 with importances. */
static const struct { const char *name; double imatrix, none; } targets[] = {
	{ "Q8_0", 1.0001, 1.0001 }, { "Q4_0", 0.985, 0.97 }, { "Q4_1", 0.97, 0.97 }, { "Q5_0", 0.99, 0.97 }, { "Q5_1", 0.97, 0.97 },
	{ "Q2_K", 0.94, 0.94 }, { "Q3_K", 0.985, 0.985 }, { "Q4_K", 0.97, 0.97 }, { "Q5_K", 0.97, 0.97 }, { "Q6_K", 0.94, 0.94 },
	{ "IQ4_NL", 0.98, 0.97 }, { "IQ4_XS", 0.97, 0.97 }, { "IQ2_XXS", 0.9, 0.9 }, { "IQ2_XS", 0.95, 0.95 }, { "IQ2_S", 0.95, 0.95 },
	{ "IQ3_XXS", 0.95, 0.95 }, { "IQ3_S", 0.95, 0.95 }, { "IQ1_S", 0.95, 0.95 }, { "IQ1_M", 0.95, 0.95 },
	{ "MXFP4", 0.97, 0.97 }, { "NVFP4", 0.97, 0.97 }, { "TQ1_0", 0.5, 0.5 }, { "TQ2_0", 0.5, 0.5 }, { "Q2_0", 0.5, 0.5 }, { "Q1_0", 1, 1 },
};
enum { ROWS = 128 };

static void die(const char *what)
{
	printf("Bail out! %s\n", what);
	exit(1);
}
static double tensor_error(struct ggu_file *f, const struct imatrix *im, const char *name, uint32_t type, bool weigh)
{
	const struct ggu_tensor *t = ggu_file_find(f, name);
	const struct imatrix_entry *e = imatrix_find(im, name);
	size_t cols, n, rows;
	uint64_t bytes, in;
	float *x, *y, *w;
	unsigned char *raw, *blocks;
	double err = 0, norm = 0;
	if (!t || !e) die(name);
	cols = (size_t)t->ne[0];
	rows = t->ne[1] < ROWS ? (size_t)t->ne[1] : ROWS;
	n = rows*cols;
	if (!ggu_type_bytes(type, n, &bytes) || !ggu_type_bytes(t->type, n, &in)) die("sizes");
	x = malloc(n*sizeof *x); y = malloc(n*sizeof *y); w = malloc(cols*sizeof *w);
	raw = malloc((size_t)in); blocks = malloc((size_t)bytes);
	if (!x || !y || !w || !raw || !blocks) die("memory");
	if (ggu_read(f, t, 0, raw, (size_t)in, NULL) != GGU_OK) die("read");
	quant_decode(t->type, raw, x, n);
	imatrix_importance(e, 0, w);
	quant_encode(type, x, weigh ? w : NULL, rows, cols, QUANT_EFFORT_DEFAULT, blocks);
	quant_decode(type, blocks, y, n);
	for (size_t i = 0; i < n; i++) {
		double g = weigh ? w[i % cols] : 1, d = (double)y[i] - x[i];
		err += g*d*d;
		norm += g*x[i]*x[i];
	}
	free(x); free(y); free(w); free(raw); free(blocks);
	return err/norm;
}
/* The better peer's mean; per_tensor of any peer names the tensors. */
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

int main(int argc, char **argv)
{
	struct ggu_file *f;
	struct imatrix *im;
	json_t *root;
	int n = 0, bad = 0;
	if (argc != 4 || quant_select(getenv("GGUF_CPU"), NULL) != GGU_OK) die("usage");
	if (ggu_open(&f, argv[1], NULL) != GGU_OK || imatrix_read(&im, argv[2], NULL) != GGU_OK) die("open");
	root = json_load_file(argv[3], 0, NULL);
	if (!root) die("json");
	for (size_t i = 0; i < sizeof targets/sizeof *targets; i++)
		for (int weigh = 1; weigh >= 0; weigh--) {
			const struct ggu_type_info *info = ggu_type_find(targets[i].name);
			json_t *tensors = NULL, *unused, *mode = json_object_get(json_object_get(json_object_get(root, "errors"), targets[i].name),
				weigh ? "imatrix" : "none");
			double best, mean = 0, limit = weigh ? targets[i].imatrix : targets[i].none;
			const char *name;
			if (!mode || !quant_can_encode(info->id)) continue;
			best = best_peer(mode, &tensors);
			json_object_foreach(tensors, name, unused) mean += tensor_error(f, im, name, info->id, weigh);
			mean /= (double)json_object_size(tensors);
			printf("%sok %d - %s %s: %.6g, %.4f of the better peer's, wanted %.3f\n", mean <= best*limit ? "" : "not ", ++n, targets[i].name,
				weigh ? "with importances" : "without", mean, mean/best, limit);
			bad |= !(mean <= best*limit);
		}
	printf("1..%d\n", n);
	json_decref(root);
	imatrix_free(im);
	ggu_close(f);
	return bad;
}
