/* SPDX-License-Identifier: MIT
 * matrices.c - see matrices.h. A kind draws a row from a bell curve or another distribution, and then changes some of
 * its weights or importances. */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "../../quant/vec.h"
#include "matrices.h"

enum weights {
	NORMAL, STUDENT_2, STUDENT_3, LAPLACE, UNIFORM,
	TWO_CLUSTERS,           /* of +-0.03 */
	ONE_SIDED,              /* some rows above zero, some below, half of them far from it */
	OFFSET,                 /* rows of a mean five times their deviation */
	SPARSE,                 /* seven weights of ten are zero */
	OUTLIER_COLUMNS,        /* every 61st times 20 */
	HOT_COLUMNS,            /* the same, and their importances times 100 */
	DEAD_COLUMNS, ZERO_ROWS,
	ONE_HUGE,               /* one weight of a row is 1000 times the others */
	ROW_SIZES,              /* e^0 to e^7 */
	STEPS,                  /* runs of 32 equal weights */
	ALIKE,                  /* all weights of a row are equal */
	BF16, INTEGERS, TINY, LARGE,
	ALTERNATING,            /* two magnitudes by turns, in every other row with signs by chance */
	THREE_SIZES,            /* three magnitudes by turns, likewise */
	/* weights decoded from codes of a few bits, with steps that no f16 is */
	BINARY, TERNARY,        /* one step for a row */
	ROW_CODES,              /* -7 to 8, one step for a row */
	GROUP_CODES,            /* 0 to 15 less a zero point, one of both for 128 columns */
	BLOCK_CODES             /* -8 to 7, one step for 32 columns, products rounded to bf16 */
};
enum importances {
	LOG_NORMAL_1, LOG_NORMAL_2, LOG_NORMAL_3, SOME_ZERO, ALL_ZERO,
	EIGHT_DECADES,
	SPIKES                  /* one column of a thousand counts as much as all others together */
};
const struct matrix matrices[] = {
	{ "normal", NORMAL, LOG_NORMAL_1, 96, 256 }, { "student-2", STUDENT_2, LOG_NORMAL_1, 96, 256 },
	{ "student-3", STUDENT_3, LOG_NORMAL_1, 96, 256 }, { "laplace", LAPLACE, LOG_NORMAL_1, 96, 256 },
	{ "uniform", UNIFORM, LOG_NORMAL_1, 96, 256 }, { "two-clusters", TWO_CLUSTERS, LOG_NORMAL_1, 96, 256 },
	{ "one-sided", ONE_SIDED, LOG_NORMAL_1, 96, 256 }, { "offset", OFFSET, LOG_NORMAL_1, 96, 256 },
	{ "sparse", SPARSE, LOG_NORMAL_1, 96, 256 }, { "outlier-columns", OUTLIER_COLUMNS, LOG_NORMAL_1, 96, 256 },
	{ "hot-columns", HOT_COLUMNS, LOG_NORMAL_1, 96, 256 }, { "dead-columns", DEAD_COLUMNS, LOG_NORMAL_1, 96, 256 },
	{ "zero-rows", ZERO_ROWS, LOG_NORMAL_1, 96, 256 }, { "one-huge", ONE_HUGE, LOG_NORMAL_1, 96, 256 },
	{ "row-sizes", ROW_SIZES, LOG_NORMAL_1, 96, 256 }, { "steps", STEPS, LOG_NORMAL_1, 96, 256 },
	{ "alike", ALIKE, LOG_NORMAL_1, 96, 256 }, { "bf16", BF16, LOG_NORMAL_1, 96, 256 },
	{ "integers", INTEGERS, LOG_NORMAL_1, 96, 256 }, { "tiny", TINY, LOG_NORMAL_1, 96, 256 },
	{ "large", LARGE, LOG_NORMAL_1, 96, 256 }, { "512-columns", NORMAL, LOG_NORMAL_1, 96, 512 },
	{ "4096-columns", NORMAL, LOG_NORMAL_1, 16, 4096 }, { "some-unimportant", NORMAL, SOME_ZERO, 96, 256 },
	{ "none-important", NORMAL, ALL_ZERO, 96, 256 }, { "wide", NORMAL, LOG_NORMAL_2, 96, 256 },
	{ "wider", NORMAL, LOG_NORMAL_3, 96, 256 }, { "widest", NORMAL, EIGHT_DECADES, 96, 256 },
	{ "spikes", NORMAL, SPIKES, 96, 1024 }, { "student-wide", STUDENT_3, LOG_NORMAL_2, 96, 256 },
	{ "student-wider", STUDENT_3, LOG_NORMAL_3, 96, 256 }, { "student-widest", STUDENT_3, EIGHT_DECADES, 96, 256 },
	{ "student-spikes", STUDENT_3, SPIKES, 96, 1024 }, { "alternating", ALTERNATING, LOG_NORMAL_1, 96, 256 },
	{ "three-sizes", THREE_SIZES, LOG_NORMAL_1, 96, 256 }, { "binary", BINARY, LOG_NORMAL_1, 96, 256 },
	{ "ternary", TERNARY, LOG_NORMAL_1, 96, 256 }, { "row-codes", ROW_CODES, LOG_NORMAL_1, 96, 256 },
	{ "group-codes", GROUP_CODES, LOG_NORMAL_1, 96, 256 }, { "block-codes", BLOCK_CODES, LOG_NORMAL_1, 96, 256 },
};
const size_t n_matrices = sizeof matrices/sizeof *matrices;

static uint64_t state;
static double uniform(void)             /* 0 to 1, neither end */
{
	state = state*6364136223846793005u + 1442695040888963407u;
	return ((double)(state >> 12) + 0.5)*0x1p-52;
}
static double normal(void)
{
	double a, b, s;
	do {
		a = 2*uniform() - 1; b = 2*uniform() - 1;
		s = a*a + b*b;
	} while (s >= 1);
	return a*sqrt(-2*num_log(s)/s);
}
static double student(int degrees)
{
	double s = 0, a = normal();
	for (int i = 0; i < degrees; i++) {
		double b = normal();
		s += b*b;
	}
	return a/sqrt(s/degrees);
}
static bool outlier(size_t j) { return j%61 == 5; }

static double step(size_t i, size_t part)       /* of codes, in part `part` of row i */
{
	return 0.006*num_exp(0.1*(double)((3*i + 5*part)%11));
}
/* v on a lattice of that step, least to least + 15 times it */
static double decoded(double v, size_t i, size_t part, double least)
{
	double s = step(i, part), q = rint(v/s);
	return (q < least ? least : q > least + 15 ? least + 15 : q)*s;
}
static double weight(enum weights kind, size_t i, size_t j)
{
	double v = 0.02*normal(), u = uniform();
	switch (kind) {
	case STUDENT_2: return 0.02*student(2);
	case STUDENT_3: return 0.02*student(3);
	case LAPLACE: return (v < 0 ? 0.02 : -0.02)*num_log(u);
	case UNIFORM: return (u - 0.5)*0.1;
	case TWO_CLUSTERS: return (u < 0.5 ? -0.03 : 0.03) + v*0.15;
	case ONE_SIDED: return (i%2 ? 1 : -1)*(fabs(v) + (i%4 < 2 ? 0.01 : 0));
	case OFFSET: return v + (i%2 ? 0.1 : -0.1);
	case SPARSE: return u < 0.7 ? 0 : v;
	case OUTLIER_COLUMNS: case HOT_COLUMNS: return outlier(j) ? 20*v : v;
	case DEAD_COLUMNS: return j%37 == 3 || j/16 == 3 ? 0 : v;
	case ZERO_ROWS: return i%3 ? v : 0;
	case ONE_HUGE: return j == i ? 1000*v : v;
	case ROW_SIZES: return v*num_exp((double)(i%8));
	case INTEGERS: return rint(u*20 - 10);
	case TINY: return v*5e-5;
	case LARGE: return v*5e5;
	case BINARY: return (v < 0 ? -3 : 3)*step(i, 0);
	case TERNARY: return fabs(v) < 0.01 ? 0 : (v < 0 ? -3 : 3)*step(i, 0);
	case ROW_CODES: return decoded(v, i, 0, -7);
	case GROUP_CODES: return decoded(v, i, j/128, -7 - (double)((i + j/128)%3));
	case BLOCK_CODES: return decoded(v, i, j/32, -8);
	default: return v;
	}
}
static double importance(enum importances kind, size_t j)
{
	double v = normal(), u = uniform();
	switch (kind) {
	case LOG_NORMAL_2: return num_exp(2*v);
	case LOG_NORMAL_3: return num_exp(3*v);
	case SOME_ZERO: return j%5 == 0 || j/32 == 2 ? 0 : num_exp(v);
	case ALL_ZERO: return 0;
	case EIGHT_DECADES: return num_exp(2.302585092994046*(8*u - 4));
	case SPIKES: return num_exp(0.5*v)*(j == 517 ? 1000 : 1);
	default: return num_exp(v);
	}
}
void matrix_fill(const struct matrix *m, uint64_t seed, float *x, float *w)
{
	enum weights kind = (enum weights)m->weights;
	const size_t turns = kind == ALTERNATING ? 2 : kind == THREE_SIZES ? 3 : SIZE_MAX;
	state = seed*1000003 + (uint64_t)m->weights*101 + (uint64_t)m->importances;
	for (int i = 0; i < 8; i++) uniform();
	for (size_t j = 0; j < m->cols; j++) {
		w[j] = (float)importance((enum importances)m->importances, j);
		if (kind == HOT_COLUMNS && outlier(j)) w[j] *= 100;
	}
	for (size_t i = 0; i < m->rows; i++)
		for (size_t j = 0; j < m->cols; j++) {
			float *v = x + i*m->cols + j;
			*v = (float)weight(kind, i, j);
			if ((kind == ALIKE && j > 0) || (kind == STEPS && j%32 > 0)) *v = v[-1];
			if (j >= turns) *v = i%2 && uniform() < 0.5 ? -v[-(ptrdiff_t)turns] : v[-(ptrdiff_t)turns];
			if (kind == BF16 || kind == BLOCK_CODES) {
				uint32_t u;
				memcpy(&u, v, sizeof u);
				u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000;
				memcpy(v, &u, sizeof u);
			}
		}
}
double matrix_error(const struct matrix *m, const float *x, const float *y, const float *w)
{
	double err = 0, norm = 0;
	bool some = false;
	for (size_t j = 0; w && j < m->cols; j++) some |= w[j] > 0;
	for (size_t i = 0; i < m->rows*m->cols; i++) {
		double g = some ? w[i%m->cols] : 1, d = (double)y[i] - x[i];
		err += g*d*d;
		norm += g*x[i]*x[i];
	}
	return norm > 0 ? err/norm : 0;
}
