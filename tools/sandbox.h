/* SPDX-License-Identifier: MIT
 * sandbox.h - files that came from strangers are parsed with no right to the rest of the disk. Programs only. */
#ifndef TOOLS_SANDBOX_H
#define TOOLS_SANDBOX_H
#include <stdbool.h>

extern bool sandbox_off;        /* --no-sandbox */

/* One more file that will be written, at most four, before sandbox_enter. NULL and "-" mean nothing. */
void sandbox_output(const char *name);

/* From here on the calling thread, and those it makes later, can open nothing but files to read in the folders of
 * inputs[0..n-1] (shards lie beside each other) and files in the folder of output; names NULL and "-" allow nothing.
 * An input that is a folder itself: what lies in it, and in the folders that its entries link to. What is open stays
 * so. Linux with Landlock only; elsewhere it does nothing but tell so with -v, and never fails. */
void sandbox_enter(const char *const *inputs, int n, const char *output);

#endif
