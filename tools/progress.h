/* SPDX-License-Identifier: MIT
 * progress.h - how far long work has come: one line on stderr, if that is a terminal and -q was not given.
 *
 * It appears after a second, shows no time left before eight, and never stands beside a message: those clear it. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H
#include <stdint.h>

/* total 0: unknown. unit "B" shows sizes. Any thread may call progress_set, often. */
void progress_begin(const char *what, uint64_t total, const char *unit);
void progress_set(uint64_t done);
void progress_end(void);        /* clears the line */
void progress_hide(void);       /* clears the line until the next set; messages call it */

#endif
