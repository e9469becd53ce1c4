/* SPDX-License-Identifier: MIT
 * out.c - output under its final name is complete or absent.
 *
 * FILE is written as a hidden temporary beside it, so that the rename stays within one file system. Every
 * unfinished temporary is in a list that exit and the fatal signals walk; unlink is safe in a handler. Items of the list
 * are used again but never freed, so that it can be walked at any instant. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "msg.h"
#include "out.h"

enum { SEND_BYTES = 8 << 20 };
struct out {
	int fd;
	char *name, *temp;      /* NULL: standard output */
	bool stdio;             /* stdout was turned to it */
	uint64_t written, sent; /* bytes; see out_wrote */
};
struct unfinished { char *volatile temp; struct unfinished *next; };
static struct unfinished *volatile unfinished;

void out_abandon_all(void)
{
	for (struct unfinished *u = unfinished; u; u = u->next)
		if (u->temp) {
			unlink(u->temp);
			u->temp = NULL;
		}
}

static void on_signal(int sig)
{
	out_abandon_all();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void watch(char *temp)
{
	static bool ready;
	static const int fatal[] = { SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXCPU, SIGXFSZ };
	struct unfinished *u;
	if (!ready) {
		struct sigaction old, act = { .sa_handler = on_signal };
		ready = true;
		atexit(out_abandon_all);
		for (size_t k = 0; k < sizeof fatal/sizeof *fatal; k++)
			if (!sigaction(fatal[k], NULL, &old) && old.sa_handler != SIG_IGN) sigaction(fatal[k], &act, NULL);
	}
	for (u = unfinished; u && u->temp; u = u->next) ;
	if (!u) {
		u = calloc(1, sizeof *u);
		if (!u) {
			unlink(temp);
			msg_die("out of memory");
		}
		u->next = unfinished;
		unfinished = u;
	}
	u->temp = temp;
}

static void unwatch(const char *temp)
{
	for (struct unfinished *u = unfinished; u; u = u->next) if (u->temp == temp) u->temp = NULL;
}

/* A link is followed: what it names is replaced, not the link. */
static char *final_name(const char *name)
{
	char *real = realpath(name, NULL);
	if (!real) real = strdup(name);
	if (!real) msg_die("out of memory");
	return real;
}

struct out *out_open(const char *name, bool binary)
{
	struct out *o = calloc(1, sizeof *o);
	struct stat st;
	const char *slash;
	size_t n;
	mode_t mask;
	if (!o) msg_die("out of memory");
	if (name && !*name) msg_die("the name of the output is empty");
	if (!name || !strcmp(name, "-")) {
		o->fd = 1;
		if (binary && isatty(1)) msg_die("standard output is a terminal, and this is binary: use -o FILE or a pipe");
		return o;
	}
	o->name = final_name(name);
	if (!stat(o->name, &st) && !S_ISREG(st.st_mode)) {      /* /dev/null and the like: write there */
		o->fd = open(o->name, O_WRONLY | O_CLOEXEC);
		if (o->fd < 0) msg_die("%s: %s", name, strerror(errno));
		return o;
	}
	slash = strrchr(o->name, '/');
	n = slash ? (size_t)(slash - o->name) + 1 : 0;
	o->temp = malloc(strlen(o->name) + 16);
	if (!o->temp) msg_die("out of memory");
	sprintf(o->temp, "%.*s.%.200s.XXXXXX", (int)n, o->name, o->name + n);
	o->fd = mkstemp(o->temp);
	if (o->fd < 0) msg_die("%s: %s", name, strerror(errno));
	watch(o->temp);
	fcntl(o->fd, F_SETFD, FD_CLOEXEC);
	mask = umask(0);
	umask(mask);
	fchmod(o->fd, 0666 & ~mask);
	return o;
}

/* The folder that holds name; the caller frees it. NULL: out of memory. */
static char *folder_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? strndup(name, slash == name ? 1 : (size_t)(slash - name)) : strdup(".");
}

static bool same_inode(const struct stat *a, const struct stat *b) { return a->st_dev == b->st_dev && a->st_ino == b->st_ino; }

/* Of two names of files that are not there: the same name in the same folder. */
static bool same_place(const char *a, const char *b)
{
	const char *last_a = strrchr(a, '/'), *last_b = strrchr(b, '/');
	char *in_a = folder_of(a), *in_b = folder_of(b);
	struct stat x, y;
	bool same = in_a && in_b && !stat(in_a, &x) && !stat(in_b, &y) && same_inode(&x, &y)
		&& !strcmp(last_a ? last_a + 1 : a, last_b ? last_b + 1 : b);
	free(in_a);
	free(in_b);
	return same;
}

void out_refuse_input(const struct out *o, const char *input)
{
	bool is_stdin = input && !strcmp(input, "-"), have_a, have_b, same;
	struct stat a, b;
	if (!input) return;
	have_a = !(o->name ? stat(o->name, &a) : fstat(o->fd, &a));
	have_b = !(is_stdin ? fstat(0, &b) : stat(input, &b));
	if (have_a && have_b) same = S_ISREG(a.st_mode) && same_inode(&a, &b);
	else same = !have_a && !have_b && o->name && !is_stdin && same_place(o->name, input);
	if (same) msg_die("%s: input and output are the same file", is_stdin ? "(stdin)" : input);
}

void out_refuse_sources(const struct out *o, const char *name, const struct ggu_file *f)
{
	out_refuse_input(o, name);
	for (uint32_t i = 0; strcmp(name, "-") && i < ggu_file_n_sources(f); i++) out_refuse_input(o, ggu_file_source_name(f, i));
}

void out_reserve(struct out *o, uint64_t bytes)
{
#ifdef __linux__
	if (o->temp && bytes && bytes <= INT64_MAX && fallocate(o->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) && errno == ENOSPC)
		msg_die("%s: needs %s: %s", o->name, msg_bytes(bytes), strerror(ENOSPC));
#else
	(void)o; (void)bytes;
#endif
}

void out_wrote(struct out *o, uint64_t n)
{
#ifdef __linux__
	o->written += n;
	if (o->temp && o->written - o->sent >= SEND_BYTES) {
		sync_file_range(o->fd, (off_t)o->sent, (off_t)(o->written - o->sent), SYNC_FILE_RANGE_WRITE);
		o->sent = o->written;
	}
#else
	(void)o; (void)n;
#endif
}

int out_fd(const struct out *o) { return o->fd; }
const char *out_name(const struct out *o) { return o->name ? o->name : "standard output"; }

enum ggu_status out_put(struct out *o, const void *p, size_t n, struct ggu_error *err)
{
	const char *at = p, *end = at + n;
	while (at < end) {
		ssize_t put = write(o->fd, at, (size_t)(end - at));
		if (put < 0 && errno == EINTR) continue;
		if (put < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){ .fd = o->fd, .events = POLLOUT }, 1, -1);
			continue;
		}
		if (put < 0) return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "write");
		at += put;
	}
	out_wrote(o, n);
	return GGU_OK;
}

void out_write(struct out *o, const void *p, size_t n)
{
	struct ggu_error err;
	if (out_put(o, p, n, &err)) msg_die_error(out_name(o), &err);
}

void out_take_stdout(struct out *o)
{
	if (o->fd == 1) return;
	if (fflush(stdout) || dup2(o->fd, 1) < 0) msg_die("%s: %s", o->name, strerror(errno));
	o->stdio = true;
}

/* The new name itself must survive a loss of power. Best effort: some file systems cannot sync folders. */
void out_sync_folder(const char *name)
{
	char *folder = folder_of(name);
	int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(folder);
}

void out_close_stdout(void)
{
	/* a failure before the last one is kept by ferror alone */
	if (fflush(stdout) || ferror(stdout)) msg_die("standard output: %s", strerror(errno));
	if (close(1) && errno != EBADF) msg_die("standard output: %s", strerror(errno));
}

void out_seal(struct out *o)
{
	if (!o->temp || o->fd < 0) return;
	if (fsync(o->fd) && errno != EINVAL && errno != ENOTSUP) msg_die("%s: %s", o->name, strerror(errno));
	if (close(o->fd)) msg_die("%s: %s", o->name, strerror(errno));
	o->fd = -1;
}

void out_commit(struct out *o)
{
	if (o->stdio && (fflush(stdout) || ferror(stdout))) msg_die("%s: %s", o->name, strerror(errno));
	if (o->fd == 1) out_close_stdout();
	else if (o->temp) {
		out_seal(o);
		if (rename(o->temp, o->name)) msg_die("%s: %s", o->name, strerror(errno));
		unwatch(o->temp);
		out_sync_folder(o->name);
	} else if (close(o->fd)) msg_die("%s: %s", o->name, strerror(errno));
	free(o->temp);
	free(o->name);
	free(o);
}
