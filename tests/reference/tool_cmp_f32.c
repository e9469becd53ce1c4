/* SPDX-License-Identifier: MIT
 * tool_cmp_f32.c - `tool_cmp_f32 GOT WANT TOLERANCE [SKIP_LAST_BYTES]` compares two files of float32: prints the
 * largest difference over the standard deviation of WANT, the reference; exit 0 if it is within the tolerance, else
 * 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float *load(const char *name, size_t *n)
{
	FILE *f = fopen(name, "rb");
	size_t cap = 1 << 16, got;
	float *v = malloc(cap*sizeof *v);
	*n = 0;
	if (!f) { perror(name); exit(2); }
	while ((got = fread(v + *n, sizeof *v, cap - *n, f)) > 0)
		if ((*n += got) == cap) v = realloc(v, (cap *= 2)*sizeof *v);
	fclose(f);
	return v;
}

int main(int argc, char **argv)
{
	size_t n, m;
	float *a, *b;
	double sum = 0, squares = 0, most = 0, deviation;
	if (argc < 4) return 2;
	a = load(argv[1], &n);
	b = load(argv[2], &m);
	if (argc > 4) m -= (size_t)atol(argv[4])/4;
	if (n < m || (argc <= 4 && n != m)) { printf("%zu values, wanted %zu\n", n, m); return 1; }
	for (size_t i = 0; i < m; i++) {
		double d = fabs((double)a[i] - b[i]);
		sum += b[i];
		squares += (double)b[i]*b[i];
		if (!(d <= most)) most = d;
	}
	deviation = sqrt(squares/(double)m - sum/(double)m*sum/(double)m);
	printf("%.3g of the standard deviation %.3g\n", most/deviation, deviation);
	free(a);
	free(b);
	return !(most <= atof(argv[3])*deviation);
}
