/* SPDX-License-Identifier: MIT
 * imatrix_stats.c - see imatrix_stats.h. Each entry is reduced to its numbers once. Entries of a layer are then
 * combined, and each weight is compared with the one of the same name in the layer before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "../quant/vec.h"
#include "covariance_stats.h"
#include "imatrix_stats.h"
#include "kv_json.h"
#include "msg.h"

struct stats {
	double n, sum, min, max, mean, sd, active, bits, entropy, outliers, similarity;
	size_t seen, n_mat;
	long layer;                     /* -1: in no layer */
};

static double mean_square(const struct imatrix_entry *e, size_t i) { return e->sums[i]/e->counts[i/e->n_in]; }
static bool seen(const struct imatrix_entry *e, size_t i) { return e->counts[i/e->n_in] > 0; }

/* "blk.12.ffn_down.weight": 12, *rest ".ffn_down.weight"; -1 for other names. */
static long layer_of(const char *name, const char **rest)
{
	char *end;
	long n;
	if (!text_starts(name, "blk.") || name[4] < '0' || name[4] > '9') return -1;
	n = strtol(name + 4, &end, 10);
	*rest = end;
	return n < 1000000 && *end == '.' ? n : -1;
}

/* NAN if there is no such layer. */
static double similarity(const struct imatrix *im, const struct imatrix_entry *e)
{
	char name[512];
	const char *rest;
	long layer = layer_of(e->name, &rest);
	const struct imatrix_entry *b;
	double ab = 0, aa = 0, bb = 0;
	if (layer < 1 || (size_t)snprintf(name, sizeof name, "blk.%ld%s", layer - 1, rest) >= sizeof name) return NAN;
	b = imatrix_find(im, name);
	if (!b || b->n_in != e->n_in || b->n_mat != e->n_mat) return NAN;
	for (size_t i = 0; i < e->n_in*e->n_mat; i++) {
		double x, y;
		if (!seen(e, i) || !seen(b, i)) continue;
		x = mean_square(e, i);
		y = mean_square(b, i);
		ab += x*y;
		aa += x*x;
		bb += y*y;
	}
	return aa > 0 && bb > 0 ? ab/sqrt(aa*bb) : NAN;
}

static struct stats stats_of(const struct imatrix *im, const struct imatrix_entry *e)
{
	struct stats s = { .min = INFINITY, .max = 0, .n_mat = e->n_mat };
	size_t all = e->n_in*e->n_mat;
	const char *rest;
	for (size_t i = 0; i < e->n_mat; i++) s.seen += e->counts[i] > 0;
	s.n = (double)(s.seen*e->n_in);
	s.layer = layer_of(e->name, &rest);
	s.similarity = similarity(im, e);
	if (!s.seen) { s.min = 0; return s; }
	for (size_t i = 0; i < all; i++) if (seen(e, i)) {
		double m = mean_square(e, i);
		s.sum += m;
		if (m < s.min) s.min = m;
		if (m > s.max) s.max = m;
		s.active += m > 1e-5;
	}
	s.mean = s.sum/s.n;
	for (size_t i = 0; i < all; i++) if (seen(e, i)) {
		double m = mean_square(e, i), d = m - s.mean, p = s.sum > 0 ? m/s.sum : 0;
		s.sd += d*d;
		if (p > 0) s.bits -= p*num_log(p)/0.69314718055994531;
	}
	s.sd = sqrt(s.sd/s.n);
	for (size_t i = 0; i < all; i++)
		if (seen(e, i)) s.outliers += s.sd > 0 && fabs(mean_square(e, i) - s.mean) > s.sd;
	s.active /= s.n;
	s.outliers /= s.n;
	s.entropy = s.n > 1 ? s.bits/(num_log(s.n)/0.69314718055994531) : 0;
	return s;
}

struct layer { long number; double sum, n, similarity; size_t tensors, similar; };
static int by_layer(const void *a, const void *b)
{
	const struct stats *x = *(const struct stats *const *)a, *y = *(const struct stats *const *)b;
	if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
	return (x > y) - (x < y);
}

/* Statistics of the tensors in layers, each layer's added up in their order. */
static size_t layers_of(const struct stats *s, size_t n, struct layer *l)
{
	const struct stats **sorted = msg_need(malloc((n + 1)*sizeof *sorted));
	size_t n_layers = 0;
	for (size_t i = 0; i < n; i++) sorted[i] = s + i;
	qsort(sorted, n, sizeof *sorted, by_layer);
	for (size_t i = 0; i < n; i++) {
		const struct stats *t = sorted[i];
		struct layer *k;
		if (t->layer < 0) continue;
		if (!n_layers || l[n_layers - 1].number != t->layer)
			l[n_layers++] = (struct layer){ .number = t->layer };
		k = l + n_layers - 1;
		k->sum += t->sum;
		k->n += t->n;
		k->tensors++;
		if (!isnan(t->similarity)) { k->similarity += t->similarity; k->similar++; }
	}
	free(sorted);
	return n_layers;
}

static void put_similarity(json_t *j, double x)
{
	json_put(j, "similarity", isnan(x) ? json_null() : json_of_double(x));
}

static json_t *covariances_json(const struct imatrix *im, const char *path)
{
	json_t *all = json_array();
	struct covariance_stats s;
	for (size_t i = 0; i < imatrix_count(im); i++) {
		const char *name = imatrix_at(im, i)->name;
		json_t *j;
		if (!covariance_stats(im, path, name, &s)) continue;
		j = json_object();
		json_put_str(j, "name", (struct ggu_str){ name, strlen(name) });
		json_put(j, "columns", json_of_uint(s.of.n_in));
		json_put(j, "block", json_of_uint(s.of.block));
		json_put(j, "matrices", json_of_uint(s.of.n_mat));
		json_put(j, "bytes", json_of_uint((uint64_t)s.bytes));
		json_put(j, "tokens", json_of_double(s.tokens));
		json_put(j, "directions", json_of_double(s.directions));
		json_put(j, "top", json_of_double(s.top));
		json_put(j, "condition", json_of_double(s.condition));
		json_push(all, j);
	}
	return all;
}
/* The names, and the bytes of those that are not UTF-8 by their places in the list. */
static void put_datasets(json_t *root, const struct imatrix *im)
{
	json_t *names = json_array(), *all_raw = json_object();
	for (size_t i = 0; i < imatrix_n_datasets(im); i++) {
		const char *name = imatrix_dataset(im, i);
		const struct ggu_str s = { name, strlen(name) };
		json_t *raw = json_raw(s);
		char at[24];
		json_push(names, json_of_str(s));
		snprintf(at, sizeof at, "%zu", i);
		if (raw) json_put(all_raw, at, raw);
	}
	json_put(root, "datasets", names);
	if (json_object_size(all_raw)) json_put(root, "datasets_raw", all_raw);
	else json_decref(all_raw);
}
static void print_json(const struct imatrix *im, const char *path, const struct stats *s, size_t n,
	const struct layer *l, size_t n_layers)
{
	json_t *root = json_object(), *tensors = json_array(), *layers = json_array();
	put_datasets(root, im);
	for (size_t i = 0; i < n; i++) {
		const struct imatrix_entry *e = imatrix_at(im, i);
		const struct ggu_str name = { e->name, strlen(e->name) };
		json_t *j = json_object();
		double tokens = 0;
		for (size_t k = 0; k < e->n_mat; k++) tokens += e->counts[k];
		json_put_str(j, "name", name);
		json_put(j, "columns", json_of_uint(e->n_in));
		json_put(j, "matrices", json_of_uint(e->n_mat));
		json_put(j, "matrices_seen", json_of_uint(s[i].seen));
		json_put(j, "tokens", json_of_double(tokens));
		json_put(j, "sum", json_of_double(s[i].sum));
		json_put(j, "min", json_of_double(s[i].min));
		json_put(j, "max", json_of_double(s[i].max));
		json_put(j, "mean", json_of_double(s[i].mean));
		json_put(j, "sd", json_of_double(s[i].sd));
		json_put(j, "active", json_of_double(s[i].active));
		json_put(j, "entropy_bits", json_of_double(s[i].bits));
		json_put(j, "entropy", json_of_double(s[i].entropy));
		json_put(j, "outliers", json_of_double(s[i].outliers));
		put_similarity(j, s[i].similarity);
		json_push(tensors, j);
	}
	for (size_t i = 0; i < n_layers; i++) {
		json_t *j = json_object();
		json_put(j, "layer", json_of_uint((uint64_t)l[i].number));
		json_put(j, "tensors", json_of_uint(l[i].tensors));
		json_put(j, "sum", json_of_double(l[i].sum));
		json_put(j, "mean", json_of_double(l[i].sum/l[i].n));
		put_similarity(j, l[i].similar ? l[i].similarity/(double)l[i].similar : NAN);
		json_push(layers, j);
	}
	json_put(root, "chunks", json_of_uint(imatrix_chunks(im)));
	json_put(root, "chunk_tokens", json_of_uint(imatrix_chunk_tokens(im)));
	json_put(root, "tensors", tensors);
	json_put(root, "layers", layers);
	if (imatrix_n_covariances(im)) json_put(root, "covariances", covariances_json(im, path));
	json_print(root, JSON_INDENT(1));
}

static void print_similarity(double x)
{
	if (isnan(x)) printf("%8s\n", "-");
	else printf("%8.4f\n", x);
}

static void print_covariances(const struct imatrix *im, const char *path, int wide)
{
	struct covariance_stats s;
	if (imatrix_n_covariances(im))
		printf("\n%-*s %8s %8s %10s %10s %7s %10s\n", wide, "covariance of", "columns", "tokens", "bytes",
			"directions", "top", "condition");
	for (size_t i = 0; i < imatrix_count(im); i++) {
		char *shown;
		if (!covariance_stats(im, path, imatrix_at(im, i)->name, &s)) continue;
		shown = text_mask(s.of.name, strlen(s.of.name));
		printf("%s%*s %8zu %8.0f %10.0f %10.1f %5.1f %% %10.0f\n", shown, wide - (int)text_width(shown), "",
			s.of.n_in, s.tokens, s.bytes, s.directions, 100*s.top, s.condition);
		free(shown);
	}
}
static void print_text(const struct imatrix *im, const char *path, const struct stats *s, size_t n,
	const struct layer *l, size_t n_layers)
{
	char *shown = text_mask(path, strlen(path));
	int wide = 6;
	printf("%s: %zu tensor%s, %llu chunk%s", shown, n, text_s(n), (unsigned long long)imatrix_chunks(im),
		text_s(imatrix_chunks(im)));
	if (imatrix_chunk_tokens(im))           /* which the old form does not have */
		printf(" of %llu token%s", (unsigned long long)imatrix_chunk_tokens(im),
			text_s(imatrix_chunk_tokens(im)));
	free(shown);
	for (size_t i = 0; i < imatrix_n_datasets(im); i++) {
		shown = text_mask(imatrix_dataset(im, i), strlen(imatrix_dataset(im, i)));
		printf("%s%s", i ? ", " : " of ", shown);
		free(shown);
	}
	for (size_t i = 0; i < n; i++) {
		shown = text_mask(imatrix_at(im, i)->name, strlen(imatrix_at(im, i)->name));
		if ((int)text_width(shown) > wide) wide = (int)text_width(shown);
		free(shown);
	}
	printf("\n\n%-*s %11s %10s %10s %10s %10s %7s %7s %7s %8s\n", wide, "tensor", "sum", "min", "max", "mean",
		"sd", "active", "entropy", "outlier", "similar");
	for (size_t i = 0; i < n; i++) {
		char *t = text_mask(imatrix_at(im, i)->name, strlen(imatrix_at(im, i)->name));
		printf("%s%*s %11.4g %10.4g %10.4g %10.4g %10.4g %5.1f %% %5.1f %% %5.1f %% ", t,
			wide - (int)text_width(t), "", s[i].sum, s[i].min, s[i].max, s[i].mean, s[i].sd,
			100*s[i].active, 100*s[i].entropy, 100*s[i].outliers);
		print_similarity(s[i].similarity);
		if (s[i].seen < s[i].n_mat)
			printf("  %zu of %zu matri%s never used\n", s[i].n_mat - s[i].seen, s[i].n_mat,
				s[i].n_mat == 1 ? "x was" : s[i].n_mat - s[i].seen == 1 ? "ces was" : "ces were");
		free(t);
	}
	if (n_layers) printf("\n%5s %8s %11s %10s %8s\n", "layer", "tensors", "sum", "mean", "similar");
	for (size_t i = 0; i < n_layers; i++) {
		printf("%5ld %8zu %11.4g %10.4g ", l[i].number, l[i].tensors, l[i].sum, l[i].sum/l[i].n);
		print_similarity(l[i].similar ? l[i].similarity/(double)l[i].similar : NAN);
	}
	print_covariances(im, path, wide);
}

void imatrix_stats_print(const struct imatrix *im, const char *path, bool json)
{
	size_t n = imatrix_count(im), n_layers;
	struct stats *s = msg_need(calloc(n + 1, sizeof *s));
	struct layer *l = msg_need(calloc(n + 1, sizeof *l));
	for (size_t i = 0; i < n; i++) s[i] = stats_of(im, imatrix_at(im, i));
	n_layers = layers_of(s, n, l);
	if (json) print_json(im, path, s, n, l, n_layers);
	else print_text(im, path, s, n, l, n_layers);
	free(s);
	free(l);
}
