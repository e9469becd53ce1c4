/* SPDX-License-Identifier: MIT
 * inplace.c - see inplace.h. Only the bytes from the first that changes to the last are written. The journal:
 * "GGUNDO1\n", bytes of the file u64, offset u64, n u64, the n old bytes from there on, XXH3 of all that u64;
 * little-endian. The file is marked when the journal is complete on the disk, so if the journal of a marked file fails
 * its checks, it was damaged. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "../libgguf/text.h"
#include "../libgguf/whole.h"
#include "inplace.h"
#include "msg.h"
#include "out.h"

enum { MAGIC = 4, HEAD = 32, TAIL = 8 };
static const char journal_magic[9] = "GGUNDO1\n";

/* A name as long as a file system permits has no room for six characters more: a number stands for its end. */
static char *journal_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const int folder = (int)(base - path);
	const size_t n = strlen(base);
	char *name = msg_need(malloc(strlen(path) + 32));
	if (n <= NAME_MAX - strlen("..undo")) sprintf(name, "%.*s.%s.undo", folder, path, base);
	else sprintf(name, "%.*s.%.200s.%016llx.undo", folder, path, base, (unsigned long long)XXH3_64bits(base, n));
	return name;
}

static void put_u64(unsigned char *p, uint64_t v)
{
	for (int i = 0; i < 8; i++) p[i] = (unsigned char)(v >> 8*i);
}
static uint64_t get_u64(const unsigned char *p)
{
	uint64_t v = 0;
	for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
	return v;
}

/* Reads bytes [at, at + n) of the file to p; false with errno. */
static bool get_at(int fd, unsigned char *p, size_t n, uint64_t at)
{
	while (n) {
		ssize_t k = pread(fd, p, n, (off_t)at);
		if (k < 0 && errno == EINTR) continue;
		if (!k) errno = EIO;    /* the file has become shorter */
		if (k <= 0) return false;
		p += k;
		at += (size_t)k;
		n -= (size_t)k;
	}
	return true;
}

/* A stretch of the file, after the magic. */
struct stretch { uint64_t at; size_t n; const unsigned char *p; };

/* Steps 2 to 4. */
static bool replace(int fd, const struct stretch *to)
{
	return whole_write_at(fd, GGU_EDIT_MAGIC, MAGIC, 0) && !fdatasync(fd)
		&& whole_write_at(fd, to->p, to->n, to->at) && !fdatasync(fd)
		&& whole_write_at(fd, "GGUF", MAGIC, 0) && !fdatasync(fd);
}

/* The old bytes *p, which the caller frees together with what precedes them. False: there is no journal. */
static bool read_journal(const char *name, uint64_t size, unsigned char **p, struct stretch *old)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	size_t n;
	if (fd < 0 && errno == ENOENT) return false;
	if (fd < 0 || fstat(fd, &st)) msg_die("%s: %s", name, strerror(errno));
	if (st.st_size < HEAD + TAIL || (uint64_t)st.st_size > SIZE_MAX/2)
		msg_die("%s: damaged: it has %lld byte%s", name, (long long)st.st_size,
			text_s((uint64_t)st.st_size));
	n = (size_t)st.st_size - HEAD - TAIL;
	*p = msg_need(malloc((size_t)st.st_size));
	if (!get_at(fd, *p, (size_t)st.st_size, 0)) msg_die("%s: %s", name, strerror(errno));
	close(fd);
	if (memcmp(*p, journal_magic, 8) != 0 || get_u64(*p + 24) != n ||
		XXH3_64bits(*p, HEAD + n) != get_u64(*p + HEAD + n))
		msg_die("%s: damaged", name);
	if (get_u64(*p + 8) != size || get_u64(*p + 16) < MAGIC || get_u64(*p + 16) > size ||
		n > size - get_u64(*p + 16))
		msg_die("%s: belongs to another file", name);
	*old = (struct stretch){ get_u64(*p + 16), n, *p + HEAD };
	return true;
}

/* Has the file the magic of an unfinished edit? Dies if it cannot be read: until that is known, its journal may be
 * needed. */
static bool is_marked(int fd, const char *path, const struct stat *st)
{
	unsigned char magic[MAGIC];
	if (st->st_size < MAGIC) return false;
	if (!get_at(fd, magic, MAGIC, 0)) msg_die("%s: %s", path, strerror(errno));
	return !memcmp(magic, GGU_EDIT_MAGIC, MAGIC);
}

/* A removed journal that comes back after a loss of power is harmless: the file is whole by then. */
static void remove_journal(char *name)
{
	if (unlink(name) && errno != ENOENT) msg_die("%s: %s", name, strerror(errno));
	free(name);
}

static int open_regular(const char *path, int how, struct stat *st)
{
	int fd = open(path, how | O_CLOEXEC | O_NONBLOCK);      /* opening a pipe must not wait */
	if (fd < 0 || fstat(fd, st)) msg_die("%s: %s", path, strerror(errno));
	if (!S_ISREG(st->st_mode)) msg_die("%s: not a regular file: it cannot be edited in place", path);
	return fd;
}

int inplace_look(const char *path)
{
	struct stat st;
	return open_regular(path, O_RDONLY, &st);
}

/* Opens and locks the file; does it again if another process has replaced the file meanwhile. */
static int open_locked(const char *path, struct stat *st)
{
	for (;;) {
		int fd = open_regular(path, O_RDWR, st);
		struct stat now;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			if (errno == EWOULDBLOCK) msg_die("%s: is being edited by another process", path);
			msg_die("%s: cannot be locked: %s", path, strerror(errno));
		}
		if (!stat(path, &now) && now.st_dev == st->st_dev && now.st_ino == st->st_ino) return fd;
		close(fd);
	}
}

int inplace_open(const char *path, bool *undone)
{
	struct stat st;
	int fd = open_locked(path, &st);
	*undone = false;
	if (is_marked(fd, path, &st)) {
		struct stretch old;
		unsigned char *p;
		char *name = journal_name(path);
		if (!read_journal(name, (uint64_t)st.st_size, &p, &old))
			msg_die("%s: an edit was interrupted, and %s, which is needed to undo it, is missing", path,
				name);
		if (!replace(fd, &old)) msg_die("%s: undoing an edit that was interrupted: %s", path, strerror(errno));
		free(p);
		remove_journal(name);
		*undone = true;
	} else {                        /* the edit is complete, or had not begun: a journal is of no use */
		char *name = journal_name(path);
		if (access(name, F_OK) == 0) remove_journal(name);
		else free(name);
	}
	return fd;
}

/* The journal has its final name from the start: while it is incomplete, the file is untouched. */
static void write_journal(const char *name, const struct stat *of, const struct stretch *old)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, of->st_mode & 0666);
	unsigned char head[HEAD], tail[TAIL];
	XXH3_state_t *x = msg_need(XXH3_createState());
	if (fd < 0) msg_die("%s: %s", name, strerror(errno));
	memcpy(head, journal_magic, 8);
	put_u64(head + 8, (uint64_t)of->st_size);
	put_u64(head + 16, old->at);
	put_u64(head + 24, old->n);
	XXH3_64bits_reset(x);
	XXH3_64bits_update(x, head, HEAD);
	XXH3_64bits_update(x, old->p, old->n);
	put_u64(tail, XXH3_64bits_digest(x));
	XXH3_freeState(x);
	if (!whole_write_at(fd, head, HEAD, 0) || !whole_write_at(fd, old->p, old->n, HEAD) ||
		!whole_write_at(fd, tail, TAIL, HEAD + old->n) ||
		fsync(fd) || close(fd)) {
		int why = errno;
		unlink(name);
		msg_die("%s: %s", name, strerror(why));
	}
	out_sync_folder(name);
}

void inplace_write(const char *path, int fd, const void *from, const void *to, size_t n)
{
	char *name = journal_name(path);
	const unsigned char *x = from, *y = to;
	struct stretch before = { MAGIC, 0, NULL }, after;
	sigset_t all, mask;
	struct stat st;
	while (before.at < n && x[before.at] == y[before.at]) before.at++;
	while (n > before.at && x[n - 1] == y[n - 1]) n--;
	before.n = n - (size_t)before.at;
	after = before;
	before.p = x + before.at;
	after.p = y + before.at;
	if (fstat(fd, &st)) msg_die("%s: %s", path, strerror(errno));
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);    /* the edit takes milliseconds */
	write_journal(name, &st, &before);
	if (!replace(fd, &after)) {
		int why = errno;
		if (replace(fd, &before)) remove_journal(name);
		else
			msg_say("%s: the edit could not be undone: %s has the old header, and gguf-edit -I will try "
				"again", path, name);
		msg_die("%s: %s", path, strerror(why));
	}
	remove_journal(name);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}
