/* SPDX-License-Identifier: MIT
 * out.c - output under its final name is complete or absent: it is written to a file that gets this name in the end
 * (temp.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgguf/shard_name.h"
#include "../libgguf/whole.h"
#include "msg.h"
#include "out.h"
#include "temp.h"

enum { SEND_BYTES = 8 << 20 };
struct out {
	int fd;
	char *name;             /* NULL: standard output */
	bool beside;            /* written to temp, else straight to what is open as fd */
	struct temp temp;
	mode_t mode;            /* while it rests */
	bool stdio;             /* stdout was turned to it */
	uint64_t written, sent; /* bytes; see out_wrote */
};

static const char *stdout_name = "standard output";     /* where printf writes */

void out_abandon_all(void) { temp_abandon_all(); }

/* The descriptor that a name like /dev/stdout or /dev/fd/3 means, or -1. */
static int named_fd(const char *name)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	if (!strcmp(name, "/dev/stdout")) return 1;
	if (!strcmp(name, "/dev/stderr")) return 2;
	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(folders[i]), digits;
		if (strncmp(name, folders[i], n) != 0) continue;
		digits = strspn(name + n, "0123456789");
		if (digits && digits < 9 && !name[n + digits]) return atoi(name + n);
	}
	return -1;
}
static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Sets the mode, and if possible the owner, of what is replaced; otherwise what umask leaves. If the file has to be of
 * another group, that group may do only what others may too. */
static void take_mode(int fd, const struct stat *old)
{
	mode_t mask = umask(0), mode = old ? old->st_mode & 0777 : 0666 & ~mask;
	umask(mask);
	if (old && fchown(fd, old->st_uid, old->st_gid) && fchown(fd, (uid_t)-1, old->st_gid))
		mode &= 0707 | (mode & 7) << 3;
	fchmod(fd, mode);
}

/* In a folder like /tmp, the owners of a file and of the folder alone may replace it. The system would say so at the
 * end, after hours of work. */
static bool is_kept(const char *name, const struct stat *st)
{
	const uid_t me = geteuid();
	char *folder = temp_folder(name);
	struct stat in;
	bool kept = folder && !stat(folder, &in) && in.st_mode & S_ISVTX && me && me != in.st_uid && me != st->st_uid;
	free(folder);
	return kept;
}

struct out *out_open(const char *name, bool binary)
{
	struct out *o = msg_need(calloc(1, sizeof *o));
	struct stat st, at_1;
	bool is_1 = !name || !strcmp(name, "-"), exists;
	int fd = is_1 ? 1 : named_fd(name);
	if (name && !*name) msg_usage("the name of the output is empty");
	/* a file that standard output is redirected to must not be replaced */
	exists = !is_1 && !stat(name, &st);
	if (!is_1 && !exists && errno != ENOENT) msg_die("%s: %s", name, strerror(errno));
	if (exists && S_ISREG(st.st_mode) && !fstat(1, &at_1) && same_inode(&st, &at_1)) fd = 1;
	o->fd = fd;
	if (fd == 1) {
		if (binary && isatty(1))
			msg_die("standard output is a terminal, and this is binary: use -o FILE or a pipe");
		return o;
	}
	if (fd < 0 && !(o->name = temp_follow(name))) msg_die("%s: %s", name, strerror(errno));
	if (fd >= 0 || (exists && !S_ISREG(st.st_mode))) {      /* /dev/null and the like: written directly */
		if (fd >= 0) o->name = msg_need(strdup(name));
		o->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : open(o->name, O_WRONLY | O_CLOEXEC);
		if (o->fd < 0) msg_die("%s: %s", name, strerror(errno));
		if (binary && isatty(o->fd))
			msg_die("%s is a terminal, and this is binary: name a file or send it through a pipe", name);
		return o;
	}
	if (exists && is_kept(o->name, &st)) msg_die("%s: %s", name, strerror(EPERM));
	if (!temp_open(&o->temp, o->name)) msg_die("%s: %s", name, strerror(errno));
	o->beside = true;
	o->fd = o->temp.fd;
	take_mode(o->fd, exists ? &st : NULL);
	return o;
}

static void out_free(struct out *o)
{
	free(o->name);
	free(o);
}

void out_check(const char *name)
{
	struct stat st;
	/* opening a FIFO would wait for a reader */
	bool fifo = !stat(name, &st) && S_ISFIFO(st.st_mode);
	struct out *o = fifo ? NULL : out_open(name, true);
	if (!o || !o->beside) msg_die("%s: is not a file that can be replaced", name);
	temp_drop(&o->temp);
	out_free(o);
}

/* Of two names of files that are not there, neither of them a link: the same name in the same folder. */
static bool same_place(const char *a, const char *b)
{
	const char *last_a = strrchr(a, '/'), *last_b = strrchr(b, '/');
	char *in_a = temp_folder(a), *in_b = temp_folder(b);
	struct stat x, y;
	bool same = in_a && in_b && !stat(in_a, &x) && !stat(in_b, &y) && same_inode(&x, &y)
		&& !strcmp(last_a ? last_a + 1 : a, last_b ? last_b + 1 : b);
	free(in_a);
	free(in_b);
	return same;
}

bool out_is(const struct out *o, const char *input)
{
	bool is_stdin = input && !strcmp(input, "-"), have_a, have_b, same;
	struct stat a, b;
	char *real;
	if (!input) return false;
	have_a = !(o->name ? stat(o->name, &a) : fstat(o->fd, &a));
	have_b = !(is_stdin ? fstat(0, &b) : stat(input, &b));
	if (have_a && have_b) return S_ISREG(a.st_mode) && same_inode(&a, &b);
	if (have_a || have_b || !o->name || is_stdin) return false;
	real = temp_follow(input);
	same = real && same_place(o->name, real);
	free(real);
	return same;
}
/* A name of a shard stands for all shards: is it one of those? */
static bool is_in_set(const struct out *o, const char *input)
{
	uint32_t no, count;
	char *name;
	struct stat st;
	bool found = false;
	if (!input || !shard_name_parse(input, &no, &count)) return false;
	name = msg_need(strdup(input));
	for (uint32_t i = 0; i < count && !found; i++) {
		shard_name_set(name, i);
		if (stat(name, &st)) break;     /* the set cannot be opened then */
		found = out_is(o, name);
	}
	free(name);
	return found;
}
void out_refuse_input(const struct out *o, const char *input)
{
	if (out_is(o, input) || is_in_set(o, input))
		msg_die("%s: input and output are the same file", msg_name(input));
}

void out_refuse_inputs(const struct out *o, const char *const *inputs, size_t n)
{
	for (size_t i = 0; i < n; i++) out_refuse_input(o, inputs[i]);
}

void out_refuse_sources(const struct out *o, const char *name, const struct ggu_file *f)
{
	out_refuse_input(o, name);
	for (uint32_t i = 0; strcmp(name, "-") && i < ggu_file_n_sources(f); i++)
		out_refuse_input(o, ggu_file_source_name(f, i));
}

/* Why a file of this size is impossible, or 0 if nothing is known against it. */
static int no_room(int fd, uint64_t bytes)
{
	struct rlimit most;
	if (bytes > INT64_MAX) return EFBIG;
	if (!getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur != RLIM_INFINITY && bytes > most.rlim_cur) return EFBIG;
#ifdef __linux__
	if (bytes && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) && (errno == ENOSPC || errno == EDQUOT ||
		errno == EFBIG))
		return errno;
#else
	(void)fd;
#endif
	return 0;
}
void out_reserve(struct out *o, uint64_t bytes)
{
	int why = o->beside ? no_room(o->fd, bytes) : 0;
	if (why) msg_die("%s: needs %s: %s", o->name, msg_bytes(bytes), strerror(why));
}

void out_wrote(struct out *o, uint64_t n)
{
#ifdef __linux__
	o->written += n;
	if (o->beside && o->written - o->sent >= SEND_BYTES) {
		sync_file_range(o->fd, (off_t)o->sent, (off_t)(o->written - o->sent), SYNC_FILE_RANGE_WRITE);
		o->sent = o->written;
	}
#else
	(void)o; (void)n;
#endif
}

bool out_skip(struct out *o, uint64_t n)
{
	/* its last byte is written: the sandbox has no right to lengthen files otherwise */
	if (!o->beside || !n || lseek(o->fd, (off_t)(n - 1), SEEK_CUR) < 0) return false;
	out_write(o, "", 1);
	return true;
}

int out_fd(const struct out *o) { return o->fd; }
const char *out_name(const struct out *o) { return o->name ? o->name : "standard output"; }

enum ggu_status out_put(struct out *o, const void *p, size_t n, struct ggu_error *err)
{
	if (!whole_write(o->fd, p, n)) return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "write");
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
	stdout_name = o->name;
}
_Noreturn void out_stdout_failed(void) { msg_die("%s: %s", stdout_name, strerror(errno)); }

/* The new name must survive a loss of power too. Best effort: some file systems cannot sync folders. */
void out_sync_folder(const char *name)
{
	char *folder = temp_folder(name);
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
	if (fflush(stdout) || ferror(stdout)) out_stdout_failed();
	if (close(1) && errno != EBADF) msg_die("standard output: %s", strerror(errno));
}

void out_rest(struct out *o)
{
	struct stat st;
	if (!o->beside) return;
	/* its mode may be one with which it could not be opened again */
	if (fstat(o->fd, &st) || fchmod(o->fd, 0600) || !temp_name(&o->temp) || close(o->fd))
		msg_die("%s: %s", o->name, strerror(errno));
	o->mode = st.st_mode & 0777;
	o->fd = -1;
}
void out_resume(struct out *o)
{
	if (o->fd >= 0) return;
	o->fd = open(o->temp.hidden, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (o->fd < 0 || fchmod(o->fd, o->mode)) msg_die("%s: %s", o->name, strerror(errno));
}

void out_seal(struct out *o)
{
	if (!o->beside || o->fd < 0) return;
	if (fsync(o->fd) && errno != EINVAL && errno != ENOTSUP) msg_die("%s: %s", o->name, strerror(errno));
	if (!temp_name(&o->temp) || close(o->fd)) msg_die("%s: %s", o->name, strerror(errno));
	o->fd = -1;
}

/* Gives a file its name. False: see errno. */
static bool commit_file(struct out *o)
{
	if (o->fd >= 0 && fsync(o->fd) && errno != EINVAL && errno != ENOTSUP) return false;
	if (!temp_commit(&o->temp) || (o->fd >= 0 && close(o->fd))) return false;
	temp_free(&o->temp);
	out_sync_folder(o->name);
	return true;
}
void out_commit(struct out *o)
{
	if (o->stdio && (fflush(stdout) || ferror(stdout))) out_stdout_failed();
	if (o->fd == 1) out_close_stdout();
	else if (o->beside ? !commit_file(o) : close(o->fd) != 0) msg_die("%s: %s", o->name, strerror(errno));
	out_free(o);
}

void out_commit_set(struct out **o, uint32_t n)
{
	temp_hold_signals();
	for (uint32_t i = n; i-- > 0;)
		if (o[i] && o[i]->beside && !commit_file(o[i])) {
			const int why = errno;
			for (uint32_t k = i + 1; k < n; k++) if (o[k] && o[k]->beside) unlink(o[k]->name);
			msg_die("%s: %s", o[i]->name, strerror(why));
		}
	for (uint32_t i = 0; i < n; i++)
		if (o[i] && o[i]->beside) out_free(o[i]);
		else if (o[i]) out_commit(o[i]);
	temp_release_signals();
}

void out_drop(struct out *o)
{
	out_abandon_all();
	temp_free(&o->temp);
	out_free(o);
}

void out_end(struct out *o, bool whole)
{
	if (whole || o->fd == 1) out_commit(o);
	else out_drop(o);
}
