/* SPDX-License-Identifier: MIT
 * out.h - output that is complete or absent. Programs only.
 *
 * With a name: written to a file without one (or with a hidden one, see temp.h), space reserved at once if the size is
 * known, synced and named by out_commit; after anything else (exit, msg_die, a signal) nothing is left. The new file
 * takes the mode of the one that it replaces; a link is followed. Without a name: stdout, refused if that is a terminal
 * and the data is binary. Writing to one of the inputs is refused. */
#ifndef TOOLS_OUT_H
#define TOOLS_OUT_H
#include "../libgguf/ggu.h"

struct out;
/* name NULL or "-": stdout. All failures exit 2 with a message. */
struct out *out_open(const char *name, bool binary);
/* Dies if out_open would, or if name is not that of a file: checks early what is opened only after hours of work. */
void out_check(const char *name);
/* Is input ("-": standard input; NULL: none) the file that o replaces? Also true if neither exists yet and both names
 * lead to the same place. */
bool out_is(const struct out *o, const char *input);
/* Dies if it is, or if input is named as a shard and another shard of the set is. */
void out_refuse_input(const struct out *o, const char *input);
/* The same for each of inputs[0..n-1]. */
void out_refuse_inputs(const struct out *o, const char *const *inputs, size_t n);
/* The same for each shard of f, which was opened as name. */
void out_refuse_sources(const struct out *o, const char *name, const struct ggu_file *f);
void out_reserve(struct out *o, uint64_t bytes);                /* full disk shows here */
/* Says that n more bytes were written to out_fd. Now and then the system is told to send them to the disk, so that the
 * sync at the end does not find everything still in memory. */
void out_wrote(struct out *o, uint64_t n);
/* Adds n zeros as a hole. false: a hole is impossible here, and nothing was added. */
bool out_skip(struct out *o, uint64_t n);
int out_fd(const struct out *o);
const char *out_name(const struct out *o);                      /* for messages */
void out_write(struct out *o, const void *p, size_t n);         /* all of it; exits 2 if that fails */
/* The same for a sink; calls out_wrote. */
enum ggu_status out_put(struct out *o, const void *p, size_t n, struct ggu_error *err);
void out_take_stdout(struct out *o);                            /* from here on printf writes to o */
_Noreturn void out_stdout_failed(void);                         /* printf or its like failed: says so by errno */
/* Closes an output, which keeps a temporary name, and opens it again, for many outputs of which one is written at a
 * time. out_resume does nothing with one that is open. */
void out_rest(struct out *o);
void out_resume(struct out *o);
/* The output is complete: syncs and closes it, and it keeps its temporary name until out_commit. For several outputs
 * that appear together. */
void out_seal(struct out *o);
void out_commit(struct out *o);                                 /* sync, rename, close; for stdout: check and flush */
/* Commits n outputs, of which some may be NULL, from the last to the first; signals that end the process wait. If one
 * cannot get its name, those that have theirs are removed, and the program ends. */
void out_commit_set(struct out **o, uint32_t n);
void out_drop(struct out *o);                                   /* a file; it does not appear, nor any other output */
/* Commits o if it has all that belongs in it; else drops a file, and leaves on standard output what is there. */
void out_end(struct out *o, bool whole);
void out_sync_folder(const char *name);                         /* the folder of name, as far as its file system can */
void out_close_stdout(void);                                    /* what printf wrote is out, or exits 2 */
void out_abandon_all(void);                                     /* for msg_die and signal handlers */

#endif
