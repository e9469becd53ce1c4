/* SPDX-License-Identifier: MIT
 * temp.c - see temp.h.
 *
 * Every hidden name is in a list that exit and the fatal signals walk; unlink is safe in a handler. Items of the list
 * are used again but never freed, so that it can be walked at any instant. Signals wait while a hidden name exists that
 * is not in the list. A name that is taken cannot be given by a link: then the file gets a hidden one, for the instant
 * until it is renamed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "temp.h"

enum { LINKS_MAX = 40 };

/* The target of the link, as a name relative to the current folder. */
static char *linked(const char *name)
{
	char to[PATH_MAX], *path;
	const char *slash = strrchr(name, '/');
	int folder = slash ? (int)(slash - name) + 1 : 0;
	ssize_t n = readlink(name, to, sizeof to - 1);
	if (n < 0) return NULL;
	to[n] = 0;
	path = malloc((size_t)folder + (size_t)n + 1);
	if (path) sprintf(path, "%.*s%s", *to == '/' ? 0 : folder, name, to);
	return path;
}
char *temp_follow(const char *name)
{
	struct stat st;
	char *real = !lstat(name, &st) && S_ISLNK(st.st_mode) ? realpath(name, NULL) : NULL, *next;
	if (real) return real;
	real = strdup(name);
	for (int i = 0; real && !lstat(real, &st) && S_ISLNK(st.st_mode); i++, real = next) {
		next = i < LINKS_MAX ? linked(real) : NULL;
		if (i == LINKS_MAX) errno = ELOOP;
		free(real);
	}
	return real;
}

char *temp_folder(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? strndup(name, slash == name ? 1 : (size_t)(slash - name)) : strdup(".");
}

struct unfinished { char *volatile name; struct unfinished *next, *spare; };
static struct unfinished *volatile unfinished;
static struct unfinished *spare;        /* an item without a name, which knows of the next one */

void temp_abandon_all(void)
{
	for (struct unfinished *u = unfinished; u; u = u->next)
		if (u->name) {
			unlink(u->name);
			u->name = NULL;
		}
}

static atomic_int held, waiting;        /* how often signals are held; the one that came, or 0 */

/* Notes the signal before it looks at `held`, so that the thread that releases signals sees it if this one returns. */
static void on_signal(int sig)
{
	waiting = sig;
	if (held) return;
	temp_abandon_all();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void catch_signals(void)
{
	static const int fatal[] = { SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGALRM, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2,
		SIGVTALRM, SIGPROF, SIGXCPU };
	static bool ready;
	struct sigaction old, act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	if (ready) return;
	ready = true;
	atexit(temp_abandon_all);
	for (size_t k = 0; k < sizeof fatal/sizeof *fatal; k++)
		if (!sigaction(fatal[k], NULL, &old) && old.sa_handler != SIG_IGN) sigaction(fatal[k], &act, NULL);
}

void temp_hold_signals(void)
{
	catch_signals();
	held++;
}
void temp_release_signals(void)
{
	if (!--held && waiting) raise(waiting);
}

/* Puts t->hidden into the list. False: out of memory. */
static bool watch(struct temp *t)
{
	struct unfinished *u = spare;
	if (u) spare = u->spare;
	else {
		u = calloc(1, sizeof *u);
		if (!u) return false;
		u->next = unfinished;
		unfinished = u;
	}
	u->name = t->hidden;
	t->watched = u;
	return true;
}

static void unwatch(struct temp *t)
{
	if (!t->watched) return;
	t->watched->name = NULL;
	t->watched->spare = spare;
	spare = t->watched;
	t->watched = NULL;
}

static void forget_hidden(struct temp *t)
{
	unwatch(t);
	free(t->hidden);
	t->hidden = NULL;
}

/* ".name.XXXXXX" beside the final name. NULL: out of memory. */
static char *hidden_name(const char *final)
{
	const char *slash = strrchr(final, '/');
	int n = slash ? (int)(slash - final) + 1 : 0;
	char *to = malloc(strlen(final) + 16);
	if (to) sprintf(to, "%.*s.%.200s.XXXXXX", n, final, final + n);
	return to;
}

#ifdef O_TMPFILE
static void fd_path(char to[32], int fd) { snprintf(to, 32, "/proc/self/fd/%d", fd); }

static int open_unnamed(const char *final)
{
	char *folder = temp_folder(final), path[32];
	int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
	struct stat st;
	free(folder);
	if (fd < 0) return -1;
	fd_path(path, fd);
	if (!lstat(path, &st)) return fd;
	close(fd);                      /* without /proc it could not be given a name */
	return -1;
}
static int link_to(int fd, const char *name)
{
	char path[32];
	fd_path(path, fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}
#else
static int open_unnamed(const char *final) { (void)final; return -1; }
static int link_to(int fd, const char *name) { (void)fd; (void)name; errno = ENOSYS; return -1; }
#endif

static void open_hidden(struct temp *t)
{
	t->hidden = hidden_name(t->final);
	if (t->hidden) t->fd = mkstemp(t->hidden);
	if (t->fd >= 0 && !watch(t)) {
		unlink(t->hidden);
		close(t->fd);
		t->fd = -1;
	}
	if (t->fd >= 0) fcntl(t->fd, F_SETFD, FD_CLOEXEC);
	else forget_hidden(t);
}

bool temp_open(struct temp *t, const char *final)
{
	*t = (struct temp){ .fd = -1, .final = strdup(final) };
	if (!t->final) return false;
	t->fd = open_unnamed(final);
	if (t->fd >= 0) return true;
	temp_hold_signals();
	open_hidden(t);
	temp_release_signals();
	return t->fd >= 0;
}

/* Finds a hidden name that is free, but only for an instant; it is watched. False: see errno. */
static bool free_name(struct temp *t)
{
	int fd;
	bool ok = false;
	temp_hold_signals();
	t->hidden = hidden_name(t->final);
	fd = t->hidden ? mkstemp(t->hidden) : -1;
	if (fd >= 0) {
		close(fd);
		unlink(t->hidden);
		ok = watch(t);
	}
	if (!ok) forget_hidden(t);
	temp_release_signals();
	return ok;
}

bool temp_name(struct temp *t)
{
	if (t->hidden) return true;
	for (int i = 0; i < 100; i++) {
		if (!free_name(t)) return false;
		if (!link_to(t->fd, t->hidden)) return true;
		forget_hidden(t);
		if (errno != EEXIST) return false;
	}
	return false;
}

bool temp_commit(struct temp *t)
{
	if (!t->hidden && !link_to(t->fd, t->final)) return true;
	if (!temp_name(t) || rename(t->hidden, t->final)) return false;
	unwatch(t);
	return true;
}

void temp_drop(struct temp *t)
{
	close(t->fd);
	if (t->hidden) unlink(t->hidden);
	temp_free(t);
}

void temp_free(struct temp *t)
{
	forget_hidden(t);
	free(t->final);
	*t = (struct temp){ .fd = -1 };
}
