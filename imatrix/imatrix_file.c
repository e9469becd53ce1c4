/* SPDX-License-Identifier: MIT
 * imatrix_file.c - which of the two forms a file has: GGUF (imatrix_gguf.c) or the older one (imatrix_dat.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgguf/span.h"
#include "../libgguf/text.h"
#include "imatrix_internal.h"

static enum ggu_status read_all(const char *path, unsigned char **bytes, size_t *n, struct ggu_error *err)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : 0;
	size_t cap = 0;
	ssize_t got = 1;
	*bytes = NULL;
	*n = 0;
	if (fd < 0) return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "cannot open");
	while (got > 0) {
		if (*n == cap) {
			unsigned char *p = realloc(*bytes, cap = cap ? 2*cap : 65536);
			if (!p) { if (fd) close(fd); return ggu_no_memory(err); }
			*bytes = p;
		}
		got = read(fd, *bytes + *n, cap - *n);
		if (got < 0 && errno == EINTR) got = 1;
		else if (got > 0) *n += (size_t)got;
	}
	if (got < 0) ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "cannot read");
	if (fd) close(fd);
	return got < 0 ? GGU_ERR_IO : GGU_OK;
}

/* A GGUF file is not read as a whole: its covariances may be many times the rest. */
static bool is_gguf_file(const char *path)
{
	struct stat st;
	char magic[4] = "";
	int fd;
	bool is;
	if (strcmp(path, "-") == 0 || stat(path, &st) || !S_ISREG(st.st_mode)) return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return false;
	is = read(fd, magic, sizeof magic) == sizeof magic && text_is(magic, sizeof magic, "GGUF");
	close(fd);
	return is;
}
enum ggu_status imatrix_read(struct imatrix **out, const char *path, struct ggu_error *err)
{
	struct imatrix *im = imatrix_new();
	size_t n = 0;
	bool gguf = is_gguf_file(path);
	enum ggu_status s = !im ? ggu_no_memory(err) : gguf ? ggu_open(&im->file, path, err) :
		read_all(path, &im->bytes, &n, err);
	if (!s && !gguf && !n) s = ggu_fail(err, GGU_ERR_TRUNCATED, 0, "", "the file is empty");
	if (!s && !gguf && text_begins(im->bytes, n, "GGUF")) {
		gguf = true;
		s = ggu_open_memory(&im->file, im->bytes, n, NULL, err);
	}
	if (!s && gguf) s = imatrix_read_gguf(im, im->file, err);
	else if (!s) {
		struct span all = { im->bytes, n, 0 };
		s = imatrix_read_dat(im, &all, err);
	}
	if (!s && !im->n_cov && im->file) {
		ggu_close(im->file);
		im->file = NULL;
	}
	if (s) imatrix_free(im);
	else *out = im;
	return s;
}
