/* SPDX-License-Identifier: MIT
 * imatrix_file.c - which of the two forms a file has: GGUF (imatrix_gguf.c) or the older one (imatrix_dat.c).
 *
 * Anything else, including a GGUF that is not a matrix, is refused by its first bytes, however long it is. A GGUF file
 * is not read as a whole, as its covariances may be many times larger than the rest; a GGUF in a pipe is, once its
 * header is known to be that of a matrix. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgguf/text.h"
#include "../libgguf/whole.h"
#include "imatrix_internal.h"

/* Bytes [at, at + n) of a struct whole, for a source whose end is not known. */
static enum ggu_status pread_whole(void *ctx, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	struct whole *w = ctx;
	enum ggu_status s = at > SIZE_MAX - n ? ggu_no_memory(err) : whole_want(w, (size_t)at + n, err);
	if (s) return s;
	*got = at >= w->n ? 0 : w->n - (size_t)at < n ? w->n - (size_t)at : n;
	if (*got) memcpy(to, w->p + at, *got);
	return GGU_OK;
}
/* Only the beginning of this GGUF has been read: reads all of it into w, if its header is that of a matrix. */
static enum ggu_status want_matrix(struct whole *w, struct ggu_error *err)
{
	const struct ggu_source from = { pread_whole, w, UINT64_MAX };
	struct ggu_file *f;
	enum ggu_status s = ggu_open_source(&f, &from, NULL, err);
	uint64_t end;
	if (s) return s;
	end = ggu_file_data_end(f, 0);
	end += end < INT64_MAX ? ggu_file_alignment(f, 0) : 0;     /* a writer's padding is still to be removed */
	s = imatrix_check_type(f, err);
	if (!s) s = end >= SIZE_MAX ? ggu_no_memory(err) : whole_want(w, (size_t)end, err);
	ggu_close(f);
	return s;
}
static enum ggu_status read_gguf(struct imatrix *im, const char *path, struct whole *w, bool in_file,
	struct ggu_error *err)
{
	enum ggu_status s = in_file ? ggu_open(&im->file, path, err) : want_matrix(w, err);
	if (!s && !in_file) {
		s = ggu_open_memory(&im->file, w->p, w->n, NULL, err);
		im->bytes = w->p;
		*w = (struct whole){ 0 };
	}
	return s ? s : imatrix_read_gguf(im, im->file, err);
}

/* Reads a matrix from fd; bytes: how many there are, or UINT64_MAX. */
static enum ggu_status read_form(struct imatrix *im, const char *path, int fd, uint64_t bytes, struct ggu_error *err)
{
	struct whole w = { .more = whole_of_fd, .ctx = &fd };
	enum ggu_status s = whole_want(&w, 4, err);
	if (!s && !w.n) s = ggu_fail(err, GGU_ERR_TRUNCATED, 0, "", "the file is empty");
	else if (!s && text_is(w.p, w.n, "GGUF")) {
		/* ggu_open reads standard input from its current position */
		bool in_file = bytes != UINT64_MAX && (strcmp(path, "-") || lseek(fd, -4, SEEK_CUR) >= 0);
		s = read_gguf(im, path, &w, in_file, err);
	} else if (!s) s = imatrix_read_dat(im, &w, bytes, err);
	free(w.p);
	return s;
}

enum ggu_status imatrix_read(struct imatrix **out, const char *path, struct ggu_error *err)
{
	const bool standard = !strcmp(path, "-");
	struct imatrix *im;
	struct stat st;
	uint64_t bytes = UINT64_MAX;
	enum ggu_status s;
	int fd = standard ? 0 : open(path, O_RDONLY | O_CLOEXEC);
	off_t at = -1;
	if (fd < 0) return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "open");
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) at = lseek(fd, 0, SEEK_CUR);
	if (at >= 0) bytes = at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
	im = imatrix_new();
	s = im ? read_form(im, path, fd, bytes, err) : ggu_no_memory(err);
	if (!standard) close(fd);
	if (!s && !im->n_cov && im->file) {
		ggu_close(im->file);
		im->file = NULL;
	}
	if (s) imatrix_free(im);
	else *out = im;
	return s;
}
