/* SPDX-License-Identifier: MIT
 * opt.c - the option table's parser and the help made from the same table. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgguf/grow.h"
#include "../libgguf/whole.h"
#include "../model/vocab/tokenizer.h"
#include "../quant/quant.h"
#include "complete.h"
#include "decimal.h"
#include "habit.h"
#include "msg.h"
#include "near.h"
#include "opt.h"
#include "out.h"
#include "sandbox.h"

enum { MOST_GIVEN = 64 };

static bool want_help, want_version;
static const char *want_completion;
static const struct opt common[] = {
	OPT_FLAG('q', "quiet", &msg_quiet, "no warnings, no progress"),
	OPT_FLAG(0, "no-sandbox", &sandbox_off, "do not restrict the process to the files it needs"),
	OPT_FLAG('h', "help", &want_help, "show this help"),
	OPT_FLAG(0, "version", &want_version, "show version, Unicode version and instruction set"),
	OPT_STR(0, "completion", &want_completion, "SHELL", NULL),
	OPT_END
};

static const struct opt *given[MOST_GIVEN];     /* the options given, each once */

const struct opt *opt_at(const struct opt *opts, size_t i)
{
	for (; opts->kind != OPT_K_END; opts++) {
		if (opts->kind == OPT_K_COMMON) {
			const size_t n = sizeof common/sizeof *common - 1;
			if (i < n) return common + i;
			i -= n;
		} else if (!i--) return opts;
	}
	return NULL;
}

/* The option with this name, or else the only one whose name begins with it. */
static const struct opt *find_long(const struct opt *opts, const char *name, size_t n)
{
	const struct opt *o, *found = NULL, *other = NULL;
	if (!n) return NULL;
	for (size_t i = 0; (o = opt_at(opts, i)) != NULL; i++) {
		if (!o->name || strncmp(o->name, name, n)) continue;
		if (strlen(o->name) == n) return o;
		if (!found) found = o;
		else other = o;
	}
	if (other) msg_usage("option '%s' is ambiguous: --%s, --%s", name - 2, found->name, other->name);
	return found;
}

static const struct opt *find_letter(const struct opt *opts, char c)
{
	const struct opt *o;
	for (size_t i = 0; (o = opt_at(opts, i)); i++) if (o->letter == c) return o;
	return NULL;
}

static void set_number(const struct opt *o, const char *shown, const char *arg)
{
	const char *end = arg;
	char most[24];
	double d = 0;
	uint64_t u = 0;
	bool whole = o->kind != OPT_K_DOUBLE, ok = whole ? decimal_whole(&end, &u) : decimal_real(&end, &d);
	if (whole) d = (double)u;
	if (!ok || *end || !(d >= o->min && d <= o->max)) {
		snprintf(most, sizeof most, o->max < 0x1p64 ? "%.15g" : "18446744073709551615", o->max);
		msg_usage("%s expects %s from %.15g to %s, not '%s'", shown, whole ? "a whole number" : "a number",
			o->min, most, arg);
	}
	if (o->kind == OPT_K_INT) *(int *)o->to = (int)d;
	else if (o->kind == OPT_K_U64) *(uint64_t *)o->to = u;
	else *(double *)o->to = d;
}

static void set_size(const struct opt *o, const char *shown, const char *arg)
{
	static const char letters[] = "kMGT";
	const char *end = arg, *at;
	double d = 0, step;
	bool ok = decimal_real(&end, &d);
	at = *end ? strchr(letters, *end == 'K' ? 'k' : *end) : NULL;
	if (at) {
		step = end[1] == 'i' ? 1024 : 1000;
		for (long i = at - letters; i >= 0; i--) d *= step;
		end += 1 + (end[1] == 'i');
		end += *end == 'B';
	}
	if (!ok || *end || !(d >= 1 && d < 0x1p63))
		msg_usage("%s expects a size such as 500M or 4Gi, not '%s'", shown, arg);
	*(uint64_t *)o->to = (uint64_t)d;
}

static void set(const struct opt *o, const char *shown, const char *arg)
{
	struct opt_list *l;
	size_t i = 0;
	while (i < MOST_GIVEN && given[i] && given[i] != o) i++;
	if (i < MOST_GIVEN) given[i] = o;
	if ((o->kind == OPT_K_FILE || o->kind == OPT_K_FILES) && arg && !*arg)
		msg_usage("%s expects %s, not ''", shown, o->arg);
	switch (o->kind) {
	case OPT_K_FLAG: *(bool *)o->to = true; break;
	case OPT_K_FILE: case OPT_K_STR: *(const char **)o->to = arg; break;
	case OPT_K_SIZE: set_size(o, shown, arg); break;
	case OPT_K_FILES: case OPT_K_LIST:
		l = o->to;
		l->v = msg_need(ggu_grow(l->v, l->n, sizeof *l->v));
		l->v[l->n++] = arg;
		break;
	case OPT_K_CALL:
		if (!o->call(o->to, arg)) break;
		msg_usage("%s expects %s, not '%s'", shown, o->arg, arg);
	default: set_number(o, shown, arg);
	}
}

/* ---- help ---- */

enum { WIDTH = 79 };    /* of a line, so that a terminal of 80 columns breaks none */

/* How many bytes there are before a line may be broken: before the next option outside brackets. */
static size_t unbroken(const char *s)
{
	size_t n = 0;
	for (int depth = 0; s[n] && s[n] != '\n'; n++) {
		depth += (s[n] == '[') - (s[n] == ']');
		if (s[n] == ' ' && !depth && (s[n + 1] == '[' || s[n + 1] == '-')) break;
	}
	return n;
}

static void print_usage(const struct opt_program *p)
{
	const char *s = p->synopsis;
	for (size_t indent = strlen("usage: ") + strlen(p->name), at = 0; *s; s += *s != 0) {
		size_t n = unbroken(s);
		if (at && at + 1 + n > WIDTH) {
			printf("\n%*s", (int)indent, "");
			at = indent;
		}
		if (!at) at = (size_t)printf("%s %s", s == p->synopsis ? "usage:" : "      ", p->name);
		at += (size_t)printf(" %.*s", (int)n, s);
		s += n;
		if (*s == '\n' || !*s) {
			putchar('\n');
			at = 0;
		}
	}
}

/* From column `indent` on, in which the first line begins. It is broken at blanks. */
static void print_wrapped(const char *s, size_t indent)
{
	for (size_t at = indent, n; *s; s += n, s += *s == ' ') {
		n = strcspn(s, " ");
		if (at > indent && at + 1 + n > WIDTH) {
			printf("\n%*s", (int)indent, "");
			at = indent;
		}
		at += (size_t)printf("%s%.*s", at > indent ? " " : "", (int)n, s);
	}
	putchar('\n');
}

static void print_help(const struct opt *opts, const struct opt_program *p)
{
	const struct opt *o;
	int width = 0;
	print_usage(p);
	printf("\n%c%s.\n\n", p->summary[0] >= 'a' && p->summary[0] <= 'z' ? p->summary[0] - 32 : p->summary[0],
		p->summary + 1);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; (o = opt_at(opts, i)); i++) {
			char left[96], letter[8] = "    ";
			int n;
			if (!o->help) continue;
			if (o->letter) snprintf(letter, sizeof letter, "-%c%s", o->letter, o->name ? ", " : "  ");
			n = snprintf(left, sizeof left, "%s%s%s%s%s", letter, o->name ? "--" : "", o->name ? o->name :
				"", o->arg ? " " : "", o->arg ? o->arg : "");
			if (!pass) {
				width = n > width && n <= 34 ? n : width;
				continue;
			}
			if (n > width) printf("  %s\n  %*s  ", left, width, "");
			else printf("  %-*s  ", width, left);
			print_wrapped(o->help, (size_t)width + 4);
		}
}

static void print_version(void)
{
	printf("%s (gguf-utils) %s\nUnicode %s, instruction set %s\n", msg_program, ggu_version(),
		tokenizer_unicode_version(), quant_selected());
}

/* ---- parsing ---- */

/* A closed standard descriptor would be reused for a model file. So it gets /dev/null, opened the wrong way round so
 * that using it still fails. */
static void open_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			exit(EXIT_TROUBLE);
}

#ifdef __GLIBC__                /* elsewhere stdout cannot be made another stream */
static ssize_t put_stdout(void *unused, const char *p, size_t n)
{
	(void)unused;
	return whole_write(1, p, n) ? (ssize_t)n : 0;
}
/* printf then waits for fd 1, as all other output does. */
static void wait_for_stdout(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = put_stdout });
	if (!f) return;
	if (isatty(1)) setvbuf(f, NULL, _IOLBF, BUFSIZ);
	stdout = f;
}
#else
static void wait_for_stdout(void) { }
#endif

/* The program at the other end may have made stdout non-blocking, and printf would then fail once a pipe is full.
 * Opened anew, it blocks, and others that share it notice nothing. A socket cannot be opened, nor can a pipe of another
 * user. */
static void block_stdout(void)
{
	struct stat st;
	int how = fcntl(1, F_GETFL), fd = -1;
	if (how < 0 || !(how & O_NONBLOCK) || fstat(1, &st)) return;
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))        /* does not wait for a reader */
		fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fcntl(fd, F_SETFL, how & ~O_NONBLOCK) || dup2(fd, 1) < 0) wait_for_stdout();
	if (fd >= 0) close(fd);
}

/* Each shard of a model is a file that stays open, and there are sets with one for each tensor, more than the 1024
 * files that a process has by default. That default is so low for the sake of select(), which nothing here uses. */
static void allow_files(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files)) return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* With jansson, a value that was never set looks like one for which there was no memory. */
static void *json_memory(size_t n)
{
	return msg_need(malloc(n));
}

static void near_option(const char *arg, const struct opt *opts, char hint[NEAR_BYTES])
{
	char name[64];
	struct near near = { .asked = name };
	const struct opt *o;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg);
	for (size_t i = 0; (o = opt_at(opts, i)) != NULL; i++) if (o->name) near_try(&near, o->name);
	near_hint(&near, "--", hint);
}

static _Noreturn void unknown(const char *shown, const char *arg, const struct opt *opts, const struct opt_program *p)
{
	char hint[HABIT_BYTES], in[HABIT_BYTES] = "";
	if (!habit_hint(arg, opts, p, hint) && strncmp(arg, "--", 2) && strcmp(arg, shown))
		snprintf(in, sizeof in, " in '%s'", arg);
	if (!*hint && !strncmp(arg, "--", 2)) near_option(arg, opts, hint);
	msg_usage("unknown option '%s'%s", shown, *in ? in : hint);
}

static int parse_long(const struct opt *opts, const struct opt_program *p, char **argv, int i)
{
	const char *name = argv[i] + 2, *eq = strchr(name, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name);
	const struct opt *o = find_long(opts, name, n);
	char shown[64], hint[HABIT_BYTES];
	if (o && strlen(o->name) > n) habit_hint(argv[i], opts, p, hint);
	else *hint = 0;
	if (!o || *hint) unknown(argv[i], argv[i], opts, p);
	if (o->kind == OPT_K_FLAG) {
		if (eq) msg_usage("--%s takes no argument", o->name);
		set(o, argv[i], NULL);
		return i;
	}
	if (!eq && !argv[i + 1]) msg_usage("--%s expects %s", o->name, o->arg);
	snprintf(shown, sizeof shown, "--%s", o->name);
	set(o, shown, eq ? eq + 1 : argv[i + 1]);
	return eq ? i : i + 1;
}

static int parse_letters(const struct opt *opts, const struct opt_program *p, char **argv, int i)
{
	char hint[HABIT_BYTES];
	if (habit_hint(argv[i], opts, p, hint)) unknown(argv[i], argv[i], opts, p);
	for (const char *c = argv[i] + 1; *c; c++) {
		const struct opt *o = find_letter(opts, *c);
		char shown[3] = { '-', *c, 0 };
		if (!o) unknown(shown, argv[i], opts, p);
		if (o->kind == OPT_K_FLAG) { set(o, shown, NULL); continue; }
		if (c[1]) { set(o, shown, c + 1); return i; }
		if (!argv[i + 1]) msg_usage("%s expects %s", shown, o->arg);
		set(o, shown, argv[i + 1]);
		return i + 1;
	}
	return i;
}

static bool was_given(const struct opt *o)
{
	size_t i = 0;
	while (i < MOST_GIVEN && given[i] && given[i] != o) i++;
	return i < MOST_GIVEN && given[i] == o;
}
/* Programs elsewhere take the model or the output as an operand. */
void opt_spare(const struct opt *opts, const char *operand)
{
	const struct opt *model = find_letter(opts, 'm'), *output = find_letter(opts, 'o');
	const char *hint = "";
	if (model && !was_given(model)) hint = "; the model is named with -m";
	else if (output && !was_given(output)) hint = "; the output is named with -o";
	msg_usage("too many operands: '%s'%s", operand, hint);
}

int opt_parse(int argc, char **argv, const struct opt *opts, const struct opt_program *p)
{
	struct ggu_error err;
	int n = 0;
	bool more = true;
	msg_program = p->name;
	json_set_alloc_funcs(json_memory, free);
	open_standard();
	block_stdout();
	allow_files();
	signal(SIGXFSZ, SIG_IGN);       /* a file larger than the limit: the write fails, and is reported */
	for (int i = 1; i < argc; i++) {
		char *a = argv[i];
		if (more && !strcmp(a, "--")) more = false;
		else if (!more || a[0] != '-' || !a[1]) argv[n++] = a;
		else i = a[1] == '-' ? parse_long(opts, p, argv, i) : parse_letters(opts, p, argv, i);
	}
	argv[n] = NULL;
	if (want_help) {
		print_help(opts, p);
		out_close_stdout();
		exit(EXIT_YES);
	}
	if (want_completion) {
		if (!complete_print(want_completion, opts, p))
			msg_usage("--completion expects bash, zsh or fish, not '%s'", want_completion);
		out_close_stdout();
		exit(EXIT_YES);
	}
	if (quant_select(getenv("GGUF_CPU"), &err)) msg_die("GGUF_CPU: %s", err.what);
	if (want_version) {
		print_version();
		out_close_stdout();
		exit(EXIT_YES);
	}
	for (int i = 0; i < n; i++) if (!*argv[i]) msg_usage("an operand is empty");
	if (n < p->min_operands) msg_usage("missing operand");
	if (p->max_operands >= 0 && n > p->max_operands) opt_spare(opts, argv[p->max_operands]);
	return n;
}

void opt_refuse(const char *with, const char *names)
{
	for (size_t i = 0; i < MOST_GIVEN && given[i]; i++) {
		const char *name = given[i]->name;
		const size_t n = name ? strlen(name) : 0;
		for (const char *at = names; n && (at = strstr(at, name)) != NULL; at += n)
			if ((at == names || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
				msg_usage("--%s cannot be combined with %s", name, with);
	}
}
