/* SPDX-License-Identifier: MIT
 * temp.h - files that get their name when they are complete. Programs only.
 *
 * If the system supports it (Linux with O_TMPFILE and /proc), the file has no name until then, so that whatever ends
 * the process, even SIGKILL, leaves nothing. Otherwise it has a hidden name beside the final one, which exit and fatal
 * signals remove. */
#ifndef TOOLS_TEMP_H
#define TOOLS_TEMP_H
#include <stdbool.h>

struct temp { int fd; char *final, *hidden; struct unfinished *watched; };       /* hidden: NULL while it has no name */

/* The name of the file that `name` is a link to, through any number of links, whether it exists or not; if `name` is
 * not a link, `name` itself. The caller frees it. NULL: see errno. */
char *temp_follow(const char *name);
/* The folder that holds `name`. The caller frees it. NULL: out of memory. */
char *temp_folder(const char *name);
/* Opens one for the name `final`, which is copied. False: see errno. */
bool temp_open(struct temp *t, const char *final);
/* Gives it a hidden name, so that fd may be closed. False: see errno. */
bool temp_name(struct temp *t);
/* Gives it the final name, replacing any file of that name. False: see errno. fd stays open. */
bool temp_commit(struct temp *t);
/* Discards it. */
void temp_drop(struct temp *t);
/* Frees what the struct holds. */
void temp_free(struct temp *t);
/* Between these, signals that end the process wait: for what is done as a whole or not at all. They nest. */
void temp_hold_signals(void);
void temp_release_signals(void);
/* Removes hidden names; for exit and handlers of signals. */
void temp_abandon_all(void);

#endif
