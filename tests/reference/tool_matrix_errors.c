/* SPDX-License-Identifier: MIT
 * tool_matrix_errors TABLE - TAP: on every kind of matrix (tests/lib/matrices.h) each type's error at the default
 * effort is at most the better peer's, which TABLE holds: a line "types" names the columns; each other line a kind,
 * with a minus if without importances, and a figure or "-" for each type. Figures are means over SEEDS matrices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/quant.h"
#include "../lib/matrices.h"

enum { SEEDS = 3, TYPES = 32, LINE = 1024 };
/* Errors that come from the rounding of f16 alone, as in rows of equal weights, differ by chance. */
static const double hair = 1e-7, rounded = 1.00001;     /* figures have six digits */
static struct column { uint32_t type; char name[16]; int cases; double worst; char where[32]; } columns[TYPES];
static int n_columns;

static void die(const char *what)
{
	printf("Bail out! %s\n", what);
	exit(1);
}
static void read_types(char *rest)
{
	for (char *p = strtok(rest, " \n"); p && n_columns < TYPES; p = strtok(NULL, " \n")) {
		const struct ggu_type_info *info = ggu_type_find(p);
		if (!info || !quant_can_encode(info->id)) die(p);
		columns[n_columns].type = info->id;
		snprintf(columns[n_columns++].name, sizeof columns->name, "%.15s", p);
	}
}
static double mean_error(const struct matrix *m, uint32_t type, bool weigh, float (*x)[MATRIX_WEIGHTS],
	float (*w)[MATRIX_WEIGHTS])
{
	static float y[MATRIX_WEIGHTS], weights[MATRIX_WEIGHTS];
	static unsigned char blocks[sizeof y + 64];
	const struct quant_objective usual = quant_objective_default(type, true);
	double sum = 0;
	for (int s = 0; s < SEEDS; s++) {
		quant_weigh(&usual, w[s], m->cols, weights);
		quant_encode(type, NULL, x[s], weigh ? weights : NULL, m->rows, m->cols, QUANT_EFFORT_DEFAULT, blocks);
		quant_decode(type, blocks, y, m->rows*m->cols);
		sum += matrix_error(m, x[s], y, weigh ? w[s] : NULL);
	}
	return sum/SEEDS;
}
static void compare(const char *kind, char *rest)
{
	static float x[SEEDS][MATRIX_WEIGHTS], w[SEEDS][MATRIX_WEIGHTS];
	size_t length = strlen(kind), at = 0;
	bool weigh = length > 0 && kind[length - 1] != '-';
	char *p = strtok(rest, " \n");
	if (!weigh) length--;
	while (at < n_matrices &&
		(strlen(matrices[at].name) != length || strncmp(matrices[at].name, kind, length) != 0))
		at++;
	if (at == n_matrices) die(kind);
	for (int s = 0; s < SEEDS; s++) matrix_fill(&matrices[at], (uint64_t)s + 1, x[s], w[s]);
	for (int i = 0; i < n_columns; i++, p = strtok(NULL, " \n")) {
		double peer, e, ratio;
		if (!p) die(kind);
		if (strcmp(p, "-") == 0) continue;
		peer = strtod(p, NULL);
		e = mean_error(&matrices[at], columns[i].type, weigh, x, w);
		ratio = e <= hair ? 0 : peer > 0 ? e/peer : (double)INFINITY;
		if (!(ratio <= rounded))
			printf("# %s, %s: %.6g, %.5f of the better peer's\n", columns[i].name, kind, e, ratio);
		columns[i].cases++;
		if (ratio > columns[i].worst || e != e) {
			columns[i].worst = e != e ? (double)INFINITY : ratio;
			snprintf(columns[i].where, sizeof columns->where, "%.31s", kind);
		}
	}
}

int main(int argc, char **argv)
{
	char line[LINE];
	FILE *f;
	int bad = 0;
	if (argc != 2 || quant_select(getenv("GGUF_CPU"), NULL) != GGU_OK) die("usage");
	f = fopen(argv[1], "r");
	if (!f) die(argv[1]);
	while (fgets(line, sizeof line, f)) {
		char *rest = strchr(line, ' ');
		if (line[0] == '#' || !rest) continue;
		*rest++ = 0;
		if (strcmp(line, "types") == 0) read_types(rest);
		else compare(line, rest);
	}
	fclose(f);
	for (int i = 0; i < n_columns; i++) {
		bool ok = columns[i].cases > 0 && columns[i].worst <= rounded;
		printf("%sok %d - %s on %d kinds of matrices: at most %.4f of the better peer's (%s)\n", ok ? "" :
			"not ", i + 1, columns[i].name,
			columns[i].cases, columns[i].worst, columns[i].where);
		bad |= !ok;
	}
	printf("1..%d\n", n_columns);
	return bad;
}
