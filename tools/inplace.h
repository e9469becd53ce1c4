/* SPDX-License-Identifier: MIT
 * inplace.h - the first bytes of a file replaced where they are, so that nobody ever takes a half-written file for
 * good. Programs only; failures exit 2 with a message.
 *
 *   1  the bytes that change go to a journal beside the file, .NAME.undo, which is synced; signals wait from here on
 *   2  the magic becomes GGU_EDIT_MAGIC: from here on no program reads the file
 *   3  what else changes is written
 *   4  the magic becomes GGUF again
 *   5  the journal is removed
 *
 * The file is synced after 2, 3 and 4. Whenever the process ends or the power fails, the file is the old one, the new
 * one, or has the magic of 2; then the journal has what it takes to go back. */
#ifndef TOOLS_INPLACE_H
#define TOOLS_INPLACE_H
#include <stdbool.h>
#include <stddef.h>

/* Opens path, which is no link, for reading and writing and locks it against others who edit it. An edit that was
 * interrupted is undone, *undone then set. */
int inplace_open(const char *path, bool *undone);
/* For a look at the same file, which changes nothing: opens it for reading alone. */
int inplace_look(const char *path);
/* The first n bytes of the file become those of to; they were those of from. Both begin with "GGUF". */
void inplace_write(const char *path, int fd, const void *from, const void *to, size_t n);

#endif
