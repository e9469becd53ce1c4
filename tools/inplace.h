/* SPDX-License-Identifier: MIT
 * inplace.h - replaces the first bytes of a file in place, so that a half-written file is never mistaken for a good
 * one. Programs only; failures exit 2 with a message.
 *
 *   1  the bytes that change go to a journal beside the file, .NAME.undo, which is synced; signals wait from here on
 *   2  the magic becomes GGU_EDIT_MAGIC: from here on no program reads the file
 *   3  the other changes are written
 *   4  the magic becomes GGUF again
 *   5  the journal is removed
 *
 * The file is synced after 2, 3 and 4. Whenever the process ends or the power fails, the file is the old one, the new
 * one, or has the magic of 2; then the journal has what is needed to go back. */
#ifndef TOOLS_INPLACE_H
#define TOOLS_INPLACE_H
#include <stdbool.h>
#include <stddef.h>

/* Opens path, which is not a link, for reading and writing and locks it against other edits. If an edit was
 * interrupted, undoes it and sets *undone. */
int inplace_open(const char *path, bool *undone);
/* Opens the same file only for reading, to look at it. */
int inplace_look(const char *path);
/* Replaces the first n bytes of the file, which are those of from, by those of to. Both begin with "GGUF". */
void inplace_write(const char *path, int fd, const void *from, const void *to, size_t n);

#endif
