/* SPDX-License-Identifier: MIT
 * tool_mkgguf.c - `tool_mkgguf TENSOR...` writes a small model to standard output. A TENSOR is
 * NAME:TYPE:NE0xNE1..[:FILL], with the type f64 or one that can be encoded. Weights are pseudo-random and the same
 * every time. FILL is nan (one weight, in row 1, column 2), beyond (that weight is 1e300, in f64), huge, zero, one or
 * square (none below 0). A tensor with 0 dimensions cannot be made. The argument KEY=VALUE adds a string to the
 * metadata, KEY=N a u32, KEY= and any other number (nan and inf too) an f32, KEY=[N,N..] an array of up to 16 u32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/quant.h"

enum { MAX = 4096 };
static struct { char *name; const char *fill; uint64_t ne[4]; uint32_t n_dims, type; } t[MAX];

static void die(const char *what) { fprintf(stderr, "tool_mkgguf: %s\n", what); exit(2); }
static void must(enum ggu_status s) { if (s != GGU_OK) die(ggu_status_name(s)); }

/* KEY=VALUE; value: the part after the sign */
static void set(struct ggu_meta *m, const char *key, const char *value)
{
	char *end;
	unsigned long v;
	double f;
	if (*value == '[') {
		uint32_t list[16];
		size_t k = 0;
		for (end = (char *)value; (*end == '[' || *end == ',') && k < 16;)
			list[k++] = (uint32_t)strtoul(end + 1, &end, 10);
		must(ggu_meta_set_array(m, key, GGU_U32, list, k));
		return;
	}
	v = strtoul(value, &end, 10);
	if (*value && !*end) must(ggu_meta_set_uint(m, key, GGU_U32, v));
	else if (f = strtod(value, &end), *value && !*end) must(ggu_meta_set_float(m, key, GGU_F32, f));
	else must(ggu_meta_set_str(m, key, value, strlen(value)));
}
/* NAME:TYPE:NE0xNE1..[:FILL] */
static void describe(char *arg, int n)
{
	char *p = strchr(arg, ':'), *end;
	if (n == MAX || !p) die(arg);
	t[n].name = arg;
	*p++ = 0;
	end = strchr(p, ':');
	if (!end) die(p);
	*end = 0;
	if (!ggu_type_find(p)) die(p);
	t[n].type = ggu_type_find(p)->id;
	for (int d = 0; d < 4; d++) t[n].ne[d] = 1;
	for (*end = 'x'; *end == 'x' && t[n].n_dims < 4;) t[n].ne[t[n].n_dims++] = strtoull(end + 1, &end, 10);
	t[n].fill = *end == ':' ? end + 1 : "";
}
static float weight(uint32_t *seed, const char *fill)
{
	float v = 0;
	for (int k = 0; k < 4; k++) {
		*seed = *seed*1664525u + 1013904223u;
		v += (float)(*seed >> 8)*0x1p-24f - 0.5f;
	}
	if (strcmp(fill, "huge") == 0) return v*1e37f;
	if (strcmp(fill, "zero") == 0) return 0;
	if (strcmp(fill, "one") == 0) return 1;
	return strcmp(fill, "square") == 0 ? v*v : v*0.05f;
}
static void put_doubles(const float *x, size_t n, bool beyond, unsigned char *out)
{
	for (size_t i = 0; i < n; i++) {
		double d = beyond && i == 2 ? 1e300 : (double)x[i];
		memcpy(out + i*sizeof d, &d, sizeof d);
	}
}
static void write_data(struct ggu_writer *w, int i, uint32_t *seed)
{
	size_t cols = (size_t)t[i].ne[0];
	uint64_t rows = t[i].ne[1]*t[i].ne[2]*t[i].ne[3], bytes = 0;
	float *x = malloc(cols*sizeof *x);
	unsigned char *out = malloc(cols*sizeof(double));
	if (!x || !out) die("memory");
	ggu_type_bytes(t[i].type, cols, &bytes);
	for (uint64_t r = 0; r < rows; r++) {
		for (size_t j = 0; j < cols; j++) x[j] = weight(seed, t[i].fill);
		if (strcmp(t[i].fill, "nan") == 0 && r == 1) x[2] = NAN;
		if (t[i].type == GGU_TYPE_F64) put_doubles(x, cols, r == 1 && strcmp(t[i].fill, "beyond") == 0, out);
		else quant_encode(t[i].type, NULL, x, NULL, 1, cols, 1, out);
		must(ggu_writer_data(w, out, (size_t)bytes, NULL));
	}
	free(x);
	free(out);
}

int main(int argc, char **argv)
{
	struct ggu_meta *m = ggu_meta_new();
	struct ggu_writer *w;
	int n = 0;
	uint32_t seed = 1;
	if (!m) die("memory");
	must(ggu_meta_set_str(m, "general.architecture", "llama", 5));
	for (int i = 1; i < argc; i++) {
		char *eq = strchr(argv[i], '=');
		if (!eq) {
			describe(argv[i], n++);
			continue;
		}
		*eq = 0;
		set(m, argv[i], eq + 1);
	}
	must(ggu_writer_new(&w, m, NULL));
	for (int i = 0; i < n; i++) must(ggu_writer_add(w, t[i].name, t[i].n_dims, t[i].ne, t[i].type, NULL));
	must(ggu_writer_begin(w, 1, NULL));
	for (int i = 0; i < n; i++) write_data(w, i, &seed);
	must(ggu_writer_end(w, NULL));
	ggu_writer_free(w);
	ggu_meta_free(m);
	return 0;
}
