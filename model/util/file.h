/* SPDX-License-Identifier: MIT
 * file.h - reads files of a checkpoint folder: whole small ones, JSON, and parts of large ones. For convert/ too.
 *
 * Errors have the file's name inside the folder in err->file, so that a program can print folder and file. */
#ifndef MODEL_UTIL_FILE_H
#define MODEL_UTIL_FILE_H
#include <jansson.h>
#include "../../libgguf/ggu.h"

enum { FILE_TEXT_MAX = 256 << 20 };     /* bytes of JSON, of merges and of tokenizer.model; none is nearly that long */

/* "dir/name", or name itself if dir is NULL, in memory of its own; NULL: out of memory. */
char *file_path(const char *dir, const char *name);
/* The name in messages of a file named by an option: TEXT_STDIN for "-", else its path, always with a slash, by
 * which a program distinguishes a path from the name of a file inside the folder. The caller frees it; NULL: out of
 * memory. */
char *file_named(const char *path);
/* Does a name, or any string, end with another? */
bool file_ends_with(const char *name, const char *end);
bool file_exists(const char *dir, const char *name);
/* fd of a regular file, and its size. GGU_ERR_MISSING if there is none; a link to a missing file and a Git LFS pointer
 * are other errors, since there should be a file. */
enum ggu_status file_open(const char *dir, const char *name, int *fd, uint64_t *bytes, struct ggu_error *err);
/* Reads exactly n bytes from offset on; GGU_ERR_TRUNCATED: the file ends early. From any thread. */
enum ggu_status file_read_at(int fd, const char *name, uint64_t offset, void *to, size_t n, struct ggu_error *err);
/* The whole file with a NUL after it, at most max bytes; the caller frees. */
enum ggu_status file_slurp(const char *dir, const char *name, size_t max, char **text, size_t *n,
	struct ggu_error *err);
/* The same for a path given by an option: a file, a pipe, or standard input for "-". Its name in messages is that of
 * file_named. */
enum ggu_status file_slurp_any(const char *path, size_t max, char **text, size_t *n, struct ggu_error *err);
/* A JSON object; duplicate keys are refused. GGU_ERR_MISSING if there is no such file. json_decref it. */
enum ggu_status file_json(const char *dir, const char *name, json_t **object, struct ggu_error *err);
/* A file that holds a list. */
enum ggu_status file_json_list(const char *dir, const char *name, json_t **list, struct ggu_error *err);
/* Any JSON, from text that starts at byte `base` of the file `name`, decoded with jansson's flags; a message has the
 * byte where the bad token starts. GGU_ERR_RANGE: a number that does not fit. json_decref it. */
enum ggu_status file_json_decode(const char *text, size_t n, const char *name, uint64_t base, size_t flags,
	json_t **out, struct ggu_error *err);
/* file_json from text that starts at byte `base` of the file `name`, decoded with jansson's flags.
 * GGU_ERR_RANGE: a number that does not fit. */
enum ggu_status file_json_text(const char *text, size_t n, const char *name, uint64_t base, size_t flags,
	json_t **object, struct ggu_error *err);
/* Makes JSON of what Python writes beyond it, in place and without moving a byte: Infinity becomes a string, an integer
 * of more than 64 bits (a length that means "any", 10^30) a real number. file_json calls it. */
void file_json_of_python(char *text);
/* Is j an infinity? That is such a string, or {"__float__": "Infinity"}, as transformers 5 writes it. *x has its
 * sign. */
bool file_json_infinity(const json_t *j, double *x);
/* The object of config.json for a model's text part, or config itself if there is none. */
json_t *file_text_part(json_t *config);
/* As ggu_fail, and names the file. */
#if defined __GNUC__
__attribute__((format(printf, 6, 7)))
#endif
enum ggu_status file_fail(struct ggu_error *err, enum ggu_status code, const char *file, uint64_t offset,
	const char *where, const char *what, ...);

#endif
