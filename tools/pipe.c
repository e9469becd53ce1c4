/* SPDX-License-Identifier: MIT
 * pipe.c - see pipe.h. What a program leaves unread of a pipe is read at its end, so that the program that writes does
 * not die of it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "msg.h"
#include "pipe.h"

void pipe_widen(int fd)
{
#ifdef F_SETPIPE_SZ
	fcntl(fd, F_SETPIPE_SZ, 1 << 20);       /* what unprivileged users may have; fails if it is not a pipe */
#else
	(void)fd;
#endif
}

void pipe_input(const char *name)
{
	if (strcmp(name, "-")) return;
	if (isatty(0)) msg_die("standard input is a terminal: name a file, or send one through a pipe");
	pipe_widen(0);
}

void pipe_once(const char *const *names, int n, const char *what)
{
	int found = 0;
	for (int i = 0; i < n; i++) found += names[i] && !strcmp(names[i], "-");
	if (found > 1) msg_usage("%s cannot both be standard input", what);
}

enum ggu_status pipe_rest(struct ggu_file *f, const char *name, struct ggu_error *err)
{
	static char rest[65536];
	size_t n = ggu_file_n_tensors(f);
	if (ggu_file_seekable(f)) return GGU_OK;
	if (n) {
		const struct ggu_tensor *t = ggu_file_in_data_order(f, n - 1);
		uint32_t block = t->bytes ? ggu_type_info(t->type)->block_bytes : 0;
		/* GGU_ERR_STATE: that part was read already */
		if (ggu_read(f, t, t->bytes - block, rest, block, err) && err->code != GGU_ERR_STATE) return err->code;
	}
	while (!strcmp(name, "-")) {
		ssize_t got = read(0, rest, sizeof rest);
		if (got < 0 && errno == EAGAIN) poll(&(struct pollfd){ .fd = 0, .events = POLLIN }, 1, -1);
		else if (!got || (got < 0 && errno != EINTR)) break;
	}
	return GGU_OK;
}

void pipe_drain(struct ggu_file *f, const char *name)
{
	struct ggu_error err;
	if (pipe_rest(f, name, &err)) msg_die_error(name, &err);
}
