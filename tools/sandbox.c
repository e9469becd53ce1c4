/* SPDX-License-Identifier: MIT
 * sandbox.c - see sandbox.h. The structures are those of linux/landlock.h (Linux 5.13), written out because
 * the C library's headers may be older than the kernel. */
#include <string.h>
#include "msg.h"
#include "sandbox.h"
#include "temp.h"

bool sandbox_off;
static const char *outputs[4];
static int n_outputs;

void sandbox_output(const char *name)
{
	if (!name || !strcmp(name, "-")) return;
	if (n_outputs < 4) outputs[n_outputs++] = name;
	else msg_die("more outputs than the sandbox knows of");
}

static struct { const char *const *v; size_t n; } more_inputs;

void sandbox_inputs(const char *const *names, size_t n)
{
	more_inputs.v = names;
	more_inputs.n = n;
}

/* The run-time library of a sanitizer looks at /proc when the program ends. */
#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED
#endif

#if defined __linux__ && !defined SANITIZED
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { VERSION_FLAG = 1, PATH_BENEATH = 1 };
enum {
	WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, REMOVE_FILE = 1 << 5, MAKE_REG = 1 << 8,
	ALL_FIRST = (1 << 13) - 1,      /* rights of the first version */
	REFER = 1 << 13, TRUNCATE = 1 << 14
};
struct ruleset { uint64_t handled_fs, handled_net; };
struct path_beneath { uint64_t allowed; int32_t parent; } __attribute__((packed));

static void allow(int rules, const char *folder, uint64_t rights)
{
	struct path_beneath rule = { rights, open(folder, O_PATH | O_CLOEXEC) };
	/* what does not exist needs no right; without a descriptor, it would be refused later without a reason */
	if (rule.parent < 0 && (errno == EMFILE || errno == ENFILE)) msg_die("%s: %s", folder, strerror(errno));
	if (rule.parent < 0) return;
	syscall(ADD_RULE, rules, PATH_BENEATH, &rule, 0);
	close(rule.parent);
}

static void allow_folder_of(int rules, const char *name, uint64_t rights)
{
	char *real, *slash;
	if (!name || !strcmp(name, "-")) return;
	real = temp_follow(name);
	if (!real && errno == ENOMEM) msg_die("out of memory");        /* not later that permission is denied */
	if (!real) return;              /* opening it says why */
	slash = strrchr(real, '/');
	if (slash) slash[slash == real] = 0;
	allow(rules, slash ? real : ".", rights);
	free(real);
}

/* A folder, and what its entries link to: the cache of the Hugging Face hub keeps files elsewhere. */
static void allow_input(int rules, const char *name)
{
	DIR *d = name && strcmp(name, "-") ? opendir(name) : NULL;
	struct dirent *e;
	char path[PATH_MAX];
	if (!d) {
		allow_folder_of(rules, name, READ_FILE | READ_DIR);
		return;
	}
	allow(rules, name, READ_FILE | READ_DIR);
	while ((e = readdir(d)) != NULL)
		if (e->d_type != DT_REG && e->d_type != DT_DIR &&
			(size_t)snprintf(path, sizeof path, "%s/%s", name, e->d_name) < sizeof path)
			allow_folder_of(rules, path, READ_FILE | READ_DIR);
	closedir(d);
}

static bool restrict_to(const char *const *inputs, int n)
{
	long version = syscall(CREATE_RULESET, NULL, 0, VERSION_FLAG);
	struct ruleset set = { ALL_FIRST, 0 };
	const uint64_t write = READ_FILE | READ_DIR | WRITE_FILE | REMOVE_FILE | MAKE_REG;
	bool done;
	int rules;
	if (version < 1) return false;
	if (version >= 2) set.handled_fs |= REFER;
	if (version >= 3) set.handled_fs |= TRUNCATE;
	if (version >= 4) set.handled_net = 3;  /* TCP bind and connect */
	rules = (int)syscall(CREATE_RULESET, &set, version >= 4 ? sizeof set : sizeof set.handled_fs, 0);
	if (rules < 0) return false;
	for (int i = 0; i < n; i++) allow_input(rules, inputs[i]);
	for (size_t i = 0; i < more_inputs.n; i++) allow_input(rules, more_inputs.v[i]);
	for (int i = 0; i < n_outputs; i++) allow_folder_of(rules, outputs[i], write);
	done = !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(RESTRICT_SELF, rules, 0);
	close(rules);
	return done;
}
#else
static bool restrict_to(const char *const *inputs, int n) { (void)inputs; (void)n; return false; }
#endif

void sandbox_enter(const char *const *inputs, int n, const char *output)
{
	sandbox_output(output);
	if (!sandbox_off && !restrict_to(inputs, n) && msg_verbose)
		msg_say("no sandbox: Landlock is not available on this system");
}
