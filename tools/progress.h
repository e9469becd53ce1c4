/* SPDX-License-Identifier: MIT
 * progress.h - the progress of long work: one line on stderr, if that is a terminal and -q was not given.
 *
 * It appears after a second, shows the time left only after eight, is never on a line with a message (messages clear
 * it) or, on the same terminal, with data, and fits the width of the terminal, if necessary as a percentage alone.
 * There is none on a terminal that cannot clear a line (TERM is dumb, or not set), and none while the program is in the
 * background of a shell. Time in which the process was stopped does not count. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H
#include <stddef.h>
#include <stdint.h>

/* total 0: unknown. unit "B" shows sizes. Any thread may call progress_set, often. */
void progress_begin(const char *what, uint64_t total, const char *unit);
void progress_set(uint64_t done);
void progress_end(void);        /* clears the line */
void progress_hide(void);       /* clears the line until the next set; messages call it */
void progress_wipe(void);       /* the same, for handlers of signals */
void progress_make_way(void);   /* before a line of data is printed: the same if stdout is a terminal too */

struct progress { const char *what, *unit; uint64_t total; };
enum { PROGRESS_LINE = 320 };
/* The line for `done` after `spent` seconds of work, in at most `columns` columns: the fullest form that fits. For
 * tests. */
void progress_line(char to[PROGRESS_LINE], const struct progress *p, uint64_t done, double spent, size_t columns);

#endif
