/* SPDX-License-Identifier: MIT
 * sandbox.h - restricts the process while it parses files from strangers, so that it cannot open the rest of the disk.
 * Programs only. */
#ifndef TOOLS_SANDBOX_H
#define TOOLS_SANDBOX_H
#include <stdbool.h>
#include <stddef.h>

extern bool sandbox_off;        /* --no-sandbox */

/* Allows one more file to be written, at most four; before sandbox_enter. NULL and "-" mean nothing. */
void sandbox_output(const char *name);

/* Adds names[0..n-1], which must stay valid, to the inputs of sandbox_enter. Once, before that. */
void sandbox_inputs(const char *const *names, size_t n);

/* From here on, the calling thread and those that it creates later can only open files for reading in the folders of
 * inputs[0..n-1] (shards are in one folder) and files in the folder of output; names NULL and "-" allow nothing. If an
 * input is itself a folder, its contents may be opened, and those of the folders that its entries link to. Files that
 * are open stay open. Linux with Landlock only; elsewhere it does nothing but report that with -v. Never fails. */
void sandbox_enter(const char *const *inputs, int n, const char *output);

#endif
