/* SPDX-License-Identifier: MIT
 * fuzz.h - what the fuzz targets share: a check that a fuzzer takes notice of, and files made of the input.
 * A target that reads a folder takes it as one text: tests/lib/folder.h. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* An invariant of the library: aborts if it does not hold. */
void must(bool holds, const char *what);
/* Path of a folder of this process's own, emptied, with the files that data[n] describes, 16 at most. It is removed
 * when the process exits. */
const char *folder_of(const uint8_t *data, size_t n);
/* Path of the i-th of those files; NULL after the last. Valid until the next call. */
const char *folder_path(size_t i);
/* Path of a file of that folder with these bytes. */
const char *folder_file(const char *name, const uint8_t *data, size_t n);
/* Whether a call of what belongs to programs returns, instead of ending the program with a message (msg.c). What a call
 * that ended it had opened or allocated is gone: it must not hang on what was there before. */
bool survives(void (*call)(void *ctx), void *ctx);

#endif
