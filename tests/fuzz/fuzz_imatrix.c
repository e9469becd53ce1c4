/* SPDX-License-Identifier: MIT
 * fuzz_imatrix.c - any bytes as an importance matrix, of the old form or as a GGUF: refused, or written with all its
 * digits, read again and found equal; and written in the other forms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../imatrix/imatrix.h"
#include "fuzz.h"

static void same(const struct imatrix *a, const struct imatrix *b)
{
	must(imatrix_count(a) == imatrix_count(b) && imatrix_n_datasets(a) == imatrix_n_datasets(b), "a count changed");
	must(imatrix_chunks(a) == imatrix_chunks(b) && imatrix_chunk_tokens(a) == imatrix_chunk_tokens(b),
		"the chunks changed");
	for (size_t i = 0; i < imatrix_n_datasets(a); i++)
		must(!strcmp(imatrix_dataset(a, i), imatrix_dataset(b, i)), "a dataset changed");
	for (size_t i = 0; i < imatrix_count(a); i++) {
		const struct imatrix_entry *e = imatrix_at(a, i), *f = imatrix_at(b, i);
		must(imatrix_find(a, e->name) == e, "an entry is not found");
		must(!strcmp(e->name, f->name) && e->n_in == f->n_in && e->n_mat == f->n_mat, "an entry changed");
		must(!memcmp(e->sums, f->sums, e->n_in*e->n_mat*sizeof *e->sums)
			&& !memcmp(e->counts, f->counts, e->n_mat*sizeof *e->counts), "a number changed");
	}
}

/* Reads matrix k of a covariance into memory that the caller frees; NULL: refused. */
static float *mean_of(const struct imatrix *im, const char *name, size_t k, size_t n)
{
	float *mean = malloc((n + 1)*sizeof *mean);
	must(mean, "no memory");
	if (imatrix_covariance(im, name, k, mean, NULL) == GGU_OK) return mean;
	free(mean);
	return NULL;
}
/* The mean of `times` the same matrix, merged, is that of the matrix, unless sums have left the range of floats. */
static void same_covariances(const struct imatrix *a, const struct imatrix *b, double times)
{
	struct imatrix_covariance c, d;
	must(imatrix_n_covariances(a) == imatrix_n_covariances(b), "another number of covariances");
	for (size_t i = 0; i < imatrix_count(a); i++) {
		const char *name = imatrix_at(a, i)->name;
		const bool has = imatrix_has_covariance(a, name, &c);
		must(has == imatrix_has_covariance(b, name, &d), "a covariance came or went");
		if (!has) continue;
		must(!strcmp(c.name, d.name) && c.n_in == d.n_in && c.n_mat == d.n_mat && c.block == d.block
			&& c.n_floats == d.n_floats, "a covariance changed its shape");
		for (size_t k = 0; k < c.n_mat; k++) {
			float *x = mean_of(a, name, k, c.n_floats), *y = mean_of(b, name, k, c.n_floats);
			must(c.counts[k]*times == d.counts[k], "a covariance changed its tokens");
			must(times != 1 || !x == !y, "a covariance is read once only");
			for (size_t j = 0; x && y && j < c.n_floats; j++)
				must(x[j] == y[j], "a covariance changed");
			free(x);
			free(y);
		}
	}
}

static void use(const struct imatrix *im)
{
	for (size_t i = 0; i < imatrix_count(im); i++) {
		const struct imatrix_entry *e = imatrix_at(im, i);
		float *x = malloc(e->n_in*sizeof *x);
		must(x, "no memory");
		for (size_t k = 0; k < e->n_mat; k++) imatrix_importance(e, k, x);
		for (size_t j = 0; j < e->n_in; j++) must(x[j] >= 0, "a negative importance");
		free(x);
	}
}

/* The same matrix twice may be refused for what is only read then: a covariance that is not finite. */
static bool add_up(struct imatrix *sum, const struct imatrix *im, const struct imatrix *again)
{
	struct ggu_error err = { 0 };
	enum ggu_status s;
	must(sum != NULL, "no memory");
	if (!(s = imatrix_merge(sum, im, &err))) s = imatrix_merge(sum, again, &err);
	must(!s || (s == GGU_ERR_FORMAT && strstr(err.what, "not finite")), "two equal ones cannot be merged");
	return !s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct imatrix *im, *again, *sum = imatrix_new();
	struct ggu_error err = { 0 };
	char path[64];
	FILE *to;

	if (imatrix_read(&im, folder_file("matrix", data, size), &err) != GGU_OK) {
		must(err.code != GGU_OK && *err.what, "refused without a reason");
		imatrix_free(sum);
		return 0;
	}
	use(im);
	to = tmpfile();
	must(to && imatrix_write_checkpoint(im, "tag", fileno(to), NULL) == GGU_OK, "what was read cannot be written");
	snprintf(path, sizeof path, "/dev/fd/%d", fileno(to));
	rewind(to);
	must(imatrix_read(&again, path, NULL) == GGU_OK, "what was written cannot be read");
	same(im, again);
	same_covariances(im, again, 1);
	must(!strcmp(imatrix_tag(again), "tag"), "the tag changed");
	if (add_up(sum, im, again)) {
		must(imatrix_count(sum) == imatrix_count(im), "the sum has other entries");
		same_covariances(im, sum, 2);
	}
	imatrix_scale(sum, 0.5);
	rewind(to);
	if (imatrix_write_gguf(sum, fileno(to), NULL) == GGU_OK) {
		imatrix_free(again);
		rewind(to);
		must(imatrix_read(&again, path, &err) == GGU_OK, "a sum that was written cannot be read");
	}
	must(!ftruncate(fileno(to), 0) && !lseek(fileno(to), 0, SEEK_SET), "no scratch file");
	if (imatrix_write_dat(im, fileno(to), NULL) == GGU_OK) {
		imatrix_free(again);
		rewind(to);
		must(imatrix_read(&again, path, &err) == GGU_OK, "the old form that was written cannot be read");
		must(imatrix_count(again) == imatrix_count(im), "the old form has other entries");
	}
	fclose(to);
	imatrix_free(im);
	imatrix_free(again);
	imatrix_free(sum);
	return 0;
}
