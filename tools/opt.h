/* SPDX-License-Identifier: MIT
 * opt.h - options as a table: the parser and -h both come from it.
 *
 *   static struct { const char *out; bool json; int jobs; } o;
 *   static const struct opt opts[] = {
 *           OPT_STR('o', "output", &o.out, "FILE", "write to FILE instead of stdout"),
 *           OPT_FLAG(0, "json", &o.json, "print JSON"),
 *           OPT_JOBS(&o.jobs),
 *           OPT_COMMON, OPT_END };
 *   argc = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-info", "show ...", "[-o FILE] [FILE]", 0, 1 });
 *
 * Options may stand anywhere; "--" ends them; -jN, -j N, --jobs N, --jobs=N; flags may be bundled, long names
 * abbreviated if that is unambiguous and not another program's option (habit.h). The operands are left in
 * argv[0..n-1] and n is returned. -h prints synopsis, summary and the table to stdout, exit 0; --version prints
 * version, Unicode version and instruction set. Bad usage: message naming the option and what it wants, a pointer to
 * -h, exit 2. opt_parse also sees to what every program needs: stdin, stdout and stderr are not free for other files
 * even if they were closed, and the instruction set is that of GGUF_CPU. */
#ifndef TOOLS_OPT_H
#define TOOLS_OPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_kind { OPT_K_END, OPT_K_FLAG, OPT_K_STR, OPT_K_FILE, OPT_K_INT, OPT_K_U64, OPT_K_DOUBLE, OPT_K_SIZE,
	OPT_K_LIST, OPT_K_FILES, OPT_K_CALL, OPT_K_COMMON };
struct opt_list { const char **v; size_t n; };          /* repeatable options, in order */
struct opt {
	enum opt_kind kind;
	char letter;                    /* or 0 */
	const char *name;               /* long, without --; or NULL */
	/* of FLAG a bool, INT an int, U64 and SIZE a uint64_t, DOUBLE a double, STR and FILE a const char *,
	 * LIST and FILES their list */
	void *to;
	const char *arg;                /* name of the argument in help, or NULL for flags */
	const char *help;               /* one line; NULL: not shown by -h */
	double min, max;                /* INT, U64, DOUBLE: closed range */
	int (*call)(void *to, const char *arg);         /* CALL: 0 ok, else "bad argument" */
};
#define OPT_FLAG(l, n, to, help)                { OPT_K_FLAG, l, n, to, NULL, help, 0, 0, NULL }
#define OPT_STR(l, n, to, arg, help)            { OPT_K_STR, l, n, to, arg, help, 0, 0, NULL }
/* a STR that is the name of an input: not empty */
#define OPT_FILE(l, n, to, arg, help)           { OPT_K_FILE, l, n, to, arg, help, 0, 0, NULL }
#define OPT_INT(l, n, to, arg, min, max, help)  { OPT_K_INT, l, n, to, arg, help, min, max, NULL }
#define OPT_U64(l, n, to, arg, min, max, help)  { OPT_K_U64, l, n, to, arg, help, min, max, NULL }
#define OPT_DOUBLE(l, n, to, arg, min, max, help) { OPT_K_DOUBLE, l, n, to, arg, help, min, max, NULL }
/* uint64_t; k, M, G, T after the number are powers of 1000, Ki, Mi, Gi, Ti of 1024, and a B may follow */
#define OPT_SIZE(l, n, to, arg, help)           { OPT_K_SIZE, l, n, to, arg, help, 0, 0, NULL }
#define OPT_LIST(l, n, to, arg, help)           { OPT_K_LIST, l, n, to, arg, help, 0, 0, NULL }
/* a LIST of names of inputs */
#define OPT_FILES(l, n, to, arg, help)          { OPT_K_FILES, l, n, to, arg, help, 0, 0, NULL }
#define OPT_CALL(l, n, to, arg, call, help)     { OPT_K_CALL, l, n, to, arg, help, 0, 0, call }
#define OPT_JOBS(to)    OPT_INT('j', "jobs", to, "N", 0, 1024, \
	"threads (default and 0: the cores this process may use)")
#define OPT_ONE_JOB(to) OPT_INT('j', "jobs", to, "N", 0, 1024, "accepted for consistency; only one thread is used")
#define OPT_OUTPUT(to)  OPT_STR('o', "output", to, "FILE", "write to FILE, complete or not at all (default: stdout)")
#define OPT_ARCH_FILES(to) OPT_FILES(0, "arch-file", to, "YAML", \
	"also use the architecture described in YAML; may be repeated")
/* -q, --no-sandbox, -h/--help, --version, --completion */
#define OPT_COMMON      { OPT_K_COMMON, 0, NULL, NULL, NULL, NULL, 0, 0, NULL }
#define OPT_END         { OPT_K_END, 0, NULL, NULL, NULL, NULL, 0, 0, NULL }

struct opt_program {
	const char *name, *summary;
	const char *synopsis;           /* after the name, as the man page's SYNOPSIS; forms separated by \n */
	int min_operands, max_operands; /* max -1: any number */
};
/* The i-th option of the table, those of OPT_COMMON among them; NULL after the last. */
const struct opt *opt_at(const struct opt *opts, size_t i);
int opt_parse(int argc, char **argv, const struct opt *opts, const struct opt_program *p);
/* Dies because of an operand too many, with a hint at the option that it may be meant for. */
_Noreturn void opt_spare(const struct opt *opts, const char *operand);
/* After opt_parse: dies if one of the options `names` was given (long names, separated by blanks), which have no
 * meaning together with `with`: "--batch cannot be combined with --merge". */
void opt_refuse(const char *with, const char *names);

#endif
