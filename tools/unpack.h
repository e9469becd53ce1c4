/* SPDX-License-Identifier: MIT
 * unpack.h - the bytes of a file, unpacked if it is gzipped. Programs only.
 *
 * Several streams one after another are one text, and zeros after the last are ignored, as in gzip(1). Anything else
 * after it is an error, as part of the text would be missing. So is a file of another kind that is easily given by
 * mistake, such as one that xz made. */
#ifndef TOOLS_UNPACK_H
#define TOOLS_UNPACK_H
#include <zlib.h>
#include "../libgguf/ggu.h"

struct unpack {
	int fd;
	enum unpack_state { UNPACK_BEGIN, UNPACK_PLAIN, UNPACK_STREAM, UNPACK_BETWEEN } state;
	bool ended;                     /* fd */
	uint64_t at;                    /* bytes that came from it */
	z_stream z;
	unsigned char in[1 << 16];      /* next_in and avail_in say which of them are left */
};
void unpack_begin(struct unpack *u, int fd);
/* For struct whole, with a struct unpack as ctx. */
enum ggu_status unpack_more(void *ctx, void *to, size_t n, size_t *got, struct ggu_error *err);
void unpack_end(struct unpack *u);

#endif
