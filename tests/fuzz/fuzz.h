/* SPDX-License-Identifier: MIT
 * fuzz.h - what the fuzz targets share: a check that a fuzzer takes notice of, and files made of the input.
 * A target that reads a folder takes it as one text: tests/lib/folder.h. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A target may have its own way to change an input of n bytes, in place, to one of at most `most`: returns its size.
 * The other is the fuzzer's. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most);
/* Inputs that came as far as a target can go, counted by those for which replay -e asks. */
extern size_t fuzz_evaluated;
/* Aborts if an invariant of the library does not hold. */
void must(bool holds, const char *what);
/* The path of a folder of this process, emptied, with the files that data[n] describes, at most 16. It is removed when
 * the process exits. */
const char *folder_of(const uint8_t *data, size_t n);
/* The path of the i-th of those files; NULL after the last. Valid until the next call. */
const char *folder_path(size_t i);
/* The path of a file in that folder with these bytes. */
const char *folder_file(const char *name, const uint8_t *data, size_t n);
/* Calls code of programs; false if that ended the program with a message (msg.c). What such a call had opened or
 * allocated is gone, so nothing may keep using it. */
bool survives(void (*call)(void *ctx), void *ctx);

#endif
