/* SPDX-License-Identifier: MIT
 * fault.c - a library to preload that makes the n-th call of something fail:
 *
 *   FAULT=malloc:N          malloc, calloc, realloc, aligned_alloc and posix_memalign fail from call N on
 *                           ("malloc1:N": that call only)
 *   FAULT=write:N:ENOSPC    write and pwrite fail with that error (ENOSPC, EIO) from call N on
 *   FAULT=write:N:short     call N writes half, the next fails with ENOSPC
 *   FAULT=write:N:kill      call N kills the process before anything is written
 *   FAULT=read:N:EIO        read and pread fail ("end": they find the end of the file)
 *   FAULT=fsync:N:EIO, rename:N:EACCES      likewise, fdatasync and linkat too
 *   FAULT=rename:N:term, unlink:N:term      SIGTERM before call N, which then is made if the process lives
 *   FAULT=fallocate:N:EDQUOT                likewise (ENOSPC, EFBIG)
 *   FAULT=entropy:N:EIO             getentropy fails
 *   FAULT=flock:N:ENOSYS            flock fails
 *   FAULT=fchown:N:EPERM            fchown fails
 *   FAULT=mmap:N:end        files are emptied as soon as they are mapped
 *   FAULT=qsort             qsort leaves equal items in another order (with glibc, the opposite of theirs)
 *   FAULT_COUNT=FILE        at exit "malloc M write W read R" is written to FILE
 *
 * What libc calls inside itself (stdio's writes) is not seen. glibc and musl, not macOS. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

enum kind { MALLOC, WRITE, READ, FSYNC, RENAME, UNLINK, FALLOCATE, ENTROPY, FLOCK, FCHOWN, MMAP, KINDS };
static const char *const names[KINDS] = { "malloc", "write", "read", "fsync", "rename", "unlink",
	"fallocate", "entropy", "flock", "fchown", "mmap" };
static atomic_ulong calls[KINDS];
static unsigned long at[KINDS];
static int error[KINDS], once, is_short, is_kill, is_term, is_end, is_turned;

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static ssize_t (*real_write)(int, const void *, size_t), (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_read)(int, void *, size_t), (*real_pread)(int, void *, size_t, off_t);
static int (*real_fsync)(int), (*real_rename)(const char *, const char *), (*real_unlink)(const char *);
static int (*real_getentropy)(void *, size_t), (*real_flock)(int, int);
static void (*real_qsort)(void *, size_t, size_t, int (*)(const void *, const void *));
static int (*real_fchown)(int, uid_t, gid_t);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_linkat)(int, const char *, int, const char *, int), (*real_fallocate)(int, int, off_t, off_t);

/* dlsym itself may allocate before it has found malloc. */
static char early[8192];
static size_t early_used;
static void *early_alloc(size_t n)
{
	void *p = early + early_used;
	n = (n + 15)/16*16;
	if (n > sizeof early - early_used) return NULL;
	early_used += n;
	return p;
}
static int is_early(const void *p) { return (const char *)p >= early && (const char *)p < early + sizeof early; }

static void find(void *to, const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);
	memcpy(to, &p, sizeof p);
}

static void count_out(void)
{
	const char *file = getenv("FAULT_COUNT");
	unsigned long m = calls[MALLOC], w = calls[WRITE], r = calls[READ];
	FILE *f = file ? fopen(file, "w") : NULL;
	if (!f) return;
	fprintf(f, "malloc %lu\nwrite %lu\nread %lu\n", m, w, r);
	fclose(f);
}

__attribute__((constructor)) static void start(void)
{
	const char *s = getenv("FAULT");
	char what[16], how[16] = "";
	unsigned long n;
	find(&real_malloc, "malloc"); find(&real_calloc, "calloc"); find(&real_realloc, "realloc");
	find(&real_aligned_alloc, "aligned_alloc"); find(&real_posix_memalign, "posix_memalign");
	find(&real_write, "write"); find(&real_pwrite, "pwrite"); find(&real_read, "read"); find(&real_pread, "pread");
	find(&real_fsync, "fsync"); find(&real_rename, "rename"); find(&real_unlink, "unlink");
	find(&real_getentropy, "getentropy"); find(&real_flock, "flock"); find(&real_qsort, "qsort");
	find(&real_fchown, "fchown");
	is_turned = s && !strcmp(s, "qsort");
	find(&real_linkat, "linkat"); find(&real_fallocate, "fallocate");
	if (s && sscanf(s, "%15[a-z]%d:%lu", what, &once, &n) != 3) once = 0;
	if (s && (once || sscanf(s, "%15[a-z]:%lu:%15s", what, &n, how) >= 2))
		for (int k = 0; k < KINDS; k++) if (!strcmp(what, names[k])) {
			at[k] = n;
			error[k] = !strcmp(how, "ENOSPC") ? ENOSPC : !strcmp(how, "EACCES") ? EACCES
				: !strcmp(how, "EDQUOT") ? EDQUOT : !strcmp(how, "EFBIG") ? EFBIG
				: !strcmp(how, "ENOSYS") ? ENOSYS : !strcmp(how, "EPERM") ? EPERM
				: k == MALLOC ? ENOMEM : EIO;
			is_short = !strcmp(how, "short");
			is_kill = !strcmp(how, "kill");
			is_term = !strcmp(how, "term");
			is_end = !strcmp(how, "end");
			if (is_short) error[k] = ENOSPC;
		}
	for (int k = 0; k < KINDS; k++) calls[k] = 0;
	atexit(count_out);
}

/* Is this call one that fails? */
static int fails(enum kind k)
{
	unsigned long n = ++calls[k];
	if (!at[k] || n < at[k] || (once && n > at[k])) return 0;
	if (is_kill && k == WRITE) raise(SIGKILL);
	if (is_term) {
		if (n == at[k]) raise(SIGTERM);
		return 0;
	}
	errno = error[k];
	return !(is_short && n == at[k]);
}

void *malloc(size_t n) { return !real_malloc ? early_alloc(n) : fails(MALLOC) ? NULL : real_malloc(n); }
void *calloc(size_t a, size_t b) { return !real_calloc ? early_alloc(a*b) : fails(MALLOC) ? NULL : real_calloc(a, b); }
void *realloc(void *p, size_t n)
{
	if (is_early(p) || !real_realloc) {
		void *q = real_malloc ? real_malloc(n) : early_alloc(n);
		if (p && q)
			memcpy(q, p, n < (size_t)(early + sizeof early - (char *)p) ? n :
				(size_t)(early + sizeof early - (char *)p));
		return q;
	}
	return fails(MALLOC) ? NULL : real_realloc(p, n);
}
void *aligned_alloc(size_t to, size_t n) { return fails(MALLOC) ? NULL : real_aligned_alloc(to, n); }
int posix_memalign(void **p, size_t to, size_t n) { return fails(MALLOC) ? ENOMEM : real_posix_memalign(p, to, n); }
void free(void *p)
{
	static void (*real_free)(void *);
	if (is_early(p)) return;
	if (!real_free) find(&real_free, "free");
	real_free(p);
}

static size_t part(size_t n) { return is_short && calls[WRITE] == at[WRITE] && n > 1 ? n/2 : n; }
ssize_t write(int fd, const void *p, size_t n)
{
	return fd != 2 && fails(WRITE) ? -1 : real_write(fd, p, fd == 2 ? n : part(n));
}
ssize_t pwrite(int fd, const void *p, size_t n, off_t o) { return fails(WRITE) ? -1 : real_pwrite(fd, p, part(n), o); }
ssize_t read(int fd, void *p, size_t n) { return fails(READ) ? is_end - 1 : real_read(fd, p, n); }
ssize_t pread(int fd, void *p, size_t n, off_t o) { return fails(READ) ? is_end - 1 : real_pread(fd, p, n, o); }
int fdatasync(int fd) { return fails(FSYNC) ? -1 : real_fsync(fd); }
int fsync(int fd) { return fails(FSYNC) ? -1 : real_fsync(fd); }
int rename(const char *a, const char *b) { return fails(RENAME) ? -1 : real_rename(a, b); }
int unlink(const char *a) { return fails(UNLINK) ? -1 : real_unlink(a); }
int linkat(int from, const char *a, int to, const char *b, int flags)
{
	return fails(RENAME) ? -1 : real_linkat(from, a, to, b, flags);
}
int getentropy(void *p, size_t n) { return fails(ENTROPY) ? -1 : real_getentropy(p, n); }
int fchown(int fd, uid_t u, gid_t g) { return fails(FCHOWN) ? -1 : real_fchown(fd, u, g); }
void *mmap(void *at_p, size_t n, int prot, int flags, int fd, off_t o)
{
	char path[32];
	void *p;
	if (!real_mmap) find(&real_mmap, "mmap");
	p = real_mmap(at_p, n, prot, flags, fd, o);
	if (fd >= 0 && fails(MMAP)) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (truncate(path, 0)) abort();
	}
	return p;
}
int flock(int fd, int how) { return fails(FLOCK) ? -1 : real_flock(fd, how); }
int fallocate(int fd, int mode, off_t o, off_t n) { return fails(FALLOCATE) ? -1 : real_fallocate(fd, mode, o, n); }
void qsort(void *v, size_t n, size_t bytes, int (*compare)(const void *, const void *))
{
	for (size_t i = 0; is_turned && i < n/2; i++) {
		char *a = (char *)v + i*bytes, *b = (char *)v + (n - 1 - i)*bytes, c;
		for (size_t k = 0; k < bytes; k++) c = a[k], a[k] = b[k], b[k] = c;
	}
	real_qsort(v, n, bytes, compare);
}
#ifdef __GLIBC__
/* the names that programs call if they are built with _FILE_OFFSET_BITS=64 */
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t o) { return pwrite(fd, p, n, o); }
void *mmap64(void *p, size_t n, int prot, int flags, int fd, off64_t o) { return mmap(p, n, prot, flags, fd, o); }
ssize_t pread64(int fd, void *p, size_t n, off64_t o) { return pread(fd, p, n, o); }
int fallocate64(int fd, int mode, off64_t o, off64_t n) { return fallocate(fd, mode, o, n); }
#endif
