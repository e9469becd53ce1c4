/* SPDX-License-Identifier: MIT
 * input.c - see input.h. zlib passes plain files through as they are. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "input.h"
#include "msg.h"

char *input_read(const char *name, size_t *n)
{
	bool is_stdin = !name || !strcmp(name, "-");
	int fd = is_stdin ? dup(0) : open(name, O_RDONLY | O_CLOEXEC), code;
	gzFile z = fd < 0 ? NULL : gzdopen(fd, "rb");
	size_t cap = 0;
	char *p = NULL;
	int got = 1;
	if (is_stdin) name = "(stdin)";
	if (!z) msg_die("%s: %s", name, fd < 0 ? strerror(errno) : "out of memory");
	*n = 0;
	while (got > 0) {
		if (cap - *n < 65536) {
			char *more = cap > SIZE_MAX/4 ? NULL : realloc(p, cap = cap ? 2*cap : 1 << 20);
			if (!more) msg_die("%s: out of memory", name);
			p = more;
		}
		errno = 0;
		got = gzread(z, p + *n, 32768);
		if (got > 0) *n += (size_t)got;
	}
	if (got < 0) {
		const char *why = gzerror(z, &code);
		msg_die("%s: %s", name, code == Z_ERRNO ? strerror(errno) : why);
	}
	if (gzclose(z) == Z_BUF_ERROR) msg_die("%s: the gzip stream is cut short", name);
	p[*n] = 0;
	return p;
}

const char *input_base_name(const char *name)
{
	const char *slash;
	if (!name || !strcmp(name, "-")) return "stdin";
	slash = strrchr(name, '/');
	return slash && slash[1] ? slash + 1 : name;
}
