/* SPDX-License-Identifier: MIT
 * fit-starts.c - chooses the first scales ("starts") of the encoders' searches; scripts/fit-starts compiles and runs
 * it.
 *
 *   fit-starts SAMPLES [FLOATS COLS [IMPORTANCES]] <FAMILY     see FAMILY below; prints a list and what it leaves
 *
 * Sub-blocks: synthetic ones, normal and Student-t(4), each with equal and with log-normal importances, SAMPLES of
 * each; and as many drawn from FLOATS (rows of COLS float32), with IMPORTANCES (COLS float32) if they are given. Each
 * candidate is carried through three alternations (round the codes | scale, and min, by least squares), and what it
 * leaves is its least error as a part of the sum of w x^2. The list is made greedily: next comes the candidate that
 * lowers the mean over all sub-blocks of the least error so far most. All sums are in double and of one order, so that
 * the same input gives the same list.
 *
 * FAMILY, on standard input, is lines of words:
 *   affine N NMAX | levels N LEVEL...     sub-blocks of N weights; codes 0 to NMAX and a min, or these levels
 *   from A to B step C                    candidates: the codes that the range is mapped to (affine, each with 0, .25,
 *                                         .5, .75 and 1 of the surplus below), the level that max |x| is mapped to
 *                                         (either sign)
 *   want K                                how many
 *   present START...                      a list to hold beside it: levels, or pairs of codes and part */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_N = 32, MAX_LEVELS = 64, MAX_STARTS = 64, ALTERNATIONS = 3, KINDS = 5 };

struct start { double codes, at; };
struct family {
	bool affine;
	int n, n_levels;
	double nmax, level[MAX_LEVELS];
	double from, to, step;
	int want, n_present;
	struct start present[MAX_STARTS];
};
struct sample { double x[MAX_N], w[MAX_N], scale; };    /* scale: sum of w x^2 */

static void die(const char *what)
{
	fprintf(stderr, "fit-starts: %s\n", what);
	exit(2);
}
static void *get(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	if (!p) die("out of memory");
	return p;
}

/* ---- sub-blocks ---- */

static double uniform(unsigned long long *state)                /* (0, 1); xorshift64* */
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return ((double)(*state*2685821657736338717ull >> 11) + .5)/9007199254740992.;
}
static double normal(unsigned long long *state)
{
	double u = uniform(state);
	return sqrt(-2*log(u))*cos(6.283185307179586*uniform(state));
}
static double student4(unsigned long long *state)
{
	double z = normal(state), s = 0;
	for (int k = 0; k < 4; k++) {
		double g = normal(state);
		s += g*g;
	}
	return z/sqrt(s/4);
}
static void weigh(struct sample *s, int n)
{
	for (int e = 0; e < n; e++) s->scale += s->w[e]*s->x[e]*s->x[e];
}
/* kind: bit 0 importances, bit 1 Student-t */
static void draw(struct sample *s, int n, int kind, unsigned long long *state)
{
	for (int e = 0; e < n; e++) {
		s->x[e] = kind & 2 ? student4(state) : normal(state);
		s->w[e] = kind & 1 ? exp(normal(state)) : 1;
	}
	weigh(s, n);
}
static float *read_floats(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	long bytes;
	float *v;
	if (!f || fseek(f, 0, SEEK_END)) die(path);
	bytes = ftell(f);
	if (bytes < 0 || fseek(f, 0, SEEK_SET)) die(path);
	*n = (size_t)bytes/sizeof *v;
	v = get(*n, sizeof *v);
	if (fread(v, sizeof *v, *n, f) != *n) die(path);
	fclose(f);
	return v;
}
/* Evenly spaced sub-blocks of the rows. */
static int take(struct sample *s, int want, int n, const char *path, const char *columns, const char *importances)
{
	size_t count, cols = strtoul(columns, NULL, 10), n_imp = 0, blocks;
	float *x = read_floats(path, &count), *w = importances ? read_floats(importances, &n_imp) : NULL;
	if (!cols || cols%(size_t)n || count%cols || (w && n_imp != cols)) die("rows of another length");
	blocks = count/(size_t)n;
	for (int k = 0; k < want; k++) {
		size_t at = blocks*(size_t)k/(size_t)want*(size_t)n;
		for (int e = 0; e < n; e++) {
			s[k].x[e] = (double)x[at + (size_t)e];
			s[k].w[e] = w ? (double)w[(at + (size_t)e)%cols] : 1;
		}
		weigh(s + k, n);
	}
	free(x);
	free(w);
	return want;
}

/* ---- what a start leaves ---- */

static double nearest(const struct family *f, double v)
{
	double best = f->level[0];
	for (int k = 1; k < f->n_levels; k++) if (fabs(f->level[k] - v) < fabs(best - v)) best = f->level[k];
	return best;
}
static double clamped(double v, double top)
{
	return v < 0 ? 0 : v > top ? top : v;
}
/* weight = s*q - m */
static double affine_error(const struct family *f, const struct sample *p, struct start g)
{
	double lo = p->x[0], hi = lo, s, m, best = p->scale;
	for (int e = 1; e < f->n; e++) {
		lo = fmin(lo, p->x[e]);
		hi = fmax(hi, p->x[e]);
	}
	lo = fmin(lo, 0);               /* what K-quants store is never a min above 0 */
	s = (hi - lo)/g.codes;
	m = s*f->nmax*g.at - (lo + (hi - lo)*g.at);
	if (m < 0) m = 0;
	for (int i = 0; i < ALTERNATIONS && s > 0; i++) {
		double w = 0, x = 0, q1 = 0, q2 = 0, qx = 0, det, err = 0;
		for (int e = 0; e < f->n; e++) {
			double q = nearbyint(clamped((p->x[e] + m)/s, f->nmax)), a = p->w[e];
			w += a; x += a*p->x[e]; q1 += a*q; q2 += a*q*q; qx += a*q*p->x[e];
		}
		det = q2*w - q1*q1;
		s = det > 0 ? (qx*w - q1*x)/det : 0;
		m = (s*q1 - x)/w;
		if (!(det > 0) || m < 0) {
			s = q2 > 0 ? qx/q2 : 0;
			m = 0;
		}
		err = p->scale - 2*s*qx + 2*m*x + s*s*q2 - 2*s*m*q1 + m*m*w;
		best = fmin(best, err);
	}
	return best;
}
/* weight = s*v, v a level */
static double levels_error(const struct family *f, const struct sample *p, struct start g)
{
	double top = 0, s, best = p->scale;
	for (int e = 0; e < f->n; e++) top = fmax(top, fabs(p->x[e]));
	s = top/g.codes;
	for (int i = 0; i < ALTERNATIONS && s != 0; i++) {
		double vv = 0, vx = 0;
		for (int e = 0; e < f->n; e++) {
			double v = nearest(f, p->x[e]/s);
			vv += p->w[e]*v*v;
			vx += p->w[e]*v*p->x[e];
		}
		s = vv > 0 ? vx/vv : 0;
		best = fmin(best, p->scale - s*vx);
	}
	return best;
}
/* [n_samples][n] relative errors */
static double *errors(const struct family *f, const struct sample *p, int n_samples, const struct start *g, int n)
{
	double *err = get((size_t)n_samples*(size_t)n, sizeof *err);
	for (int i = 0; i < n_samples; i++)
		for (int k = 0; k < n; k++)
			err[(size_t)i*(size_t)n + (size_t)k] = !(p[i].scale > 0) ? 0 :
				(f->affine ? affine_error : levels_error)(f, p + i, g[k])/p[i].scale;
	return err;
}

/* ---- the list ---- */

static int candidates(const struct family *f, struct start **list)
{
	const int steps = (int)((f->to - f->from)/f->step + 1.5), each = f->affine ? 5 : 2;
	*list = get((size_t)steps*(size_t)each, sizeof **list);
	for (int k = 0; k < steps; k++)
		for (int j = 0; j < each; j++) {
			double codes = f->from + f->step*k;
			(*list)[k*each + j] = f->affine ? (struct start){ codes, .25*j } :
				(struct start){ j ? -codes : codes, 0 };
		}
	return steps*each;
}
/* The mean over the sub-blocks of the smaller of the least error so far and that of column k. */
static double with(const double *so_far, const double *err, int n_samples, int n, int k)
{
	double sum = 0;
	for (int i = 0; i < n_samples; i++) sum += fmin(so_far[i], err[(size_t)i*(size_t)n + (size_t)k]);
	return sum/n_samples;
}
static void add(double *so_far, const double *err, int n_samples, int n, int k)
{
	for (int i = 0; i < n_samples; i++) so_far[i] = fmin(so_far[i], err[(size_t)i*(size_t)n + (size_t)k]);
}
static double *nothing(int n_samples)
{
	double *v = get((size_t)n_samples, sizeof *v);
	for (int i = 0; i < n_samples; i++) v[i] = 1;
	return v;
}
static void print_start(const struct family *f, struct start g)
{
	if (f->affine) printf("{ %gf, %g }", g.codes, g.at);
	else printf("%gf", g.codes);
}
static void fit(const struct family *f, const struct sample *p, int n_samples)
{
	struct start *list;
	const int n = candidates(f, &list);
	double *err = errors(f, p, n_samples, list, n), *old = errors(f, p, n_samples, f->present, f->n_present);
	double *so_far = nothing(n_samples), *before = nothing(n_samples), floor, left = 1;
	for (int k = 0; k < n; k++) add(so_far, err, n_samples, n, k);
	floor = with(so_far, err, n_samples, n, 0);
	for (int i = 0; i < n_samples; i++) so_far[i] = 1;
	printf("all %d candidates leave %.6f\n%4s %-20s %10s %10s\n", n, floor, "", "start", "leave", "present");
	for (int j = 0; j < f->want && j < n; j++) {
		int best = 0;
		for (int k = 0; k < n; k++) {
			double e = with(so_far, err, n_samples, n, k);
			if (k && e >= left) continue;
			best = k;
			left = e;
		}
		add(so_far, err, n_samples, n, best);
		printf("%4d ", j + 1);
		print_start(f, list[best]);
		printf("\t%10.6f", left);
		if (j < f->n_present) printf(" %10.6f", with(before, old, n_samples, f->n_present, j));
		if (j < f->n_present) add(before, old, n_samples, f->n_present, j);
		putchar('\n');
	}
	free(list); free(err); free(old); free(so_far); free(before);
}

/* ---- the family ---- */

static int numbers(char *line, double *to, int most)
{
	int n = 0;
	for (char *w = strtok(line, " \n"); w && n < most; w = strtok(NULL, " \n")) to[n++] = strtod(w, NULL);
	return n;
}
static void read_family(struct family *f)
{
	static char line[8192];
	double v[2*MAX_STARTS];
	while (fgets(line, sizeof line, stdin)) {
		char *rest = strchr(line, ' ');
		int n;
		if (!rest) continue;
		if (sscanf(line, "from %lf to %lf step %lf", &f->from, &f->to, &f->step) == 3) continue;
		*rest++ = 0;
		n = numbers(rest, v, 2*MAX_STARTS);
		if (!strcmp(line, "want")) f->want = (int)v[0];
		else if (!strcmp(line, "present")) {
			f->n_present = f->affine ? n/2 : n < MAX_STARTS ? n : MAX_STARTS;
			for (int k = 0; k < f->n_present; k++)
				f->present[k] = f->affine ? (struct start){ v[2*k], v[2*k + 1] } :
					(struct start){ v[k], 0 };
		} else if (!strcmp(line, "affine") && n == 2) {
			f->affine = true;
			f->n = (int)v[0];
			f->nmax = v[1];
		} else if (!strcmp(line, "levels") && n > 1 && n <= MAX_LEVELS + 1) {
			f->n = (int)v[0];
			f->n_levels = n - 1;
			memcpy(f->level, v + 1, (size_t)(n - 1)*sizeof *v);
		} else die("a line of another kind");
	}
	if (f->n < 1 || f->n > MAX_N || !(f->step > 0) || !(f->from > 0) || f->to < f->from) die("no family");
}

int main(int argc, char **argv)
{
	static struct family f;
	unsigned long long state = 88172645463325252ull;
	int each = argc > 1 ? atoi(argv[1]) : 0, n = 0;
	struct sample *p;
	if (each < 1 || argc == 3 || argc > 5) die("usage: SAMPLES [FLOATS COLS [IMPORTANCES]] <FAMILY");
	read_family(&f);
	p = get((size_t)each*KINDS, sizeof *p);
	for (int kind = 0; kind < KINDS - 1; kind++)
		for (int k = 0; k < each; k++) draw(p + n++, f.n, kind, &state);
	if (argc > 3) n += take(p + n, each, f.n, argv[2], argv[3], argc > 4 ? argv[4] : NULL);
	fit(&f, p, n);
	free(p);
	return 0;
}
