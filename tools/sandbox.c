/* SPDX-License-Identifier: MIT
 * sandbox.c - see sandbox.h. The structures are those of linux/landlock.h (Linux 5.13), written out because
 * the C library's headers may be older than the kernel. */
#include "sandbox.h"
int sandbox_off;

/* A sanitizer's run time looks at /proc when the program ends. */
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
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	if (rule.parent < 0) return;
	syscall(ADD_RULE, rules, PATH_BENEATH, &rule, 0);
	close(rule.parent);
}

static void allow_folder_of(int rules, const char *name, uint64_t rights)
{
	char folder[PATH_MAX];
	char *real, *slash;
	if (!name || !strcmp(name, "-")) return;
	real = realpath(name, folder);
	if (!real) {                    /* an output that is not there yet */
		if (strlen(name) >= sizeof folder) return;
		strcpy(folder, name);
	}
	slash = strrchr(folder, '/');
	if (slash) slash[slash == folder] = 0;
	allow(rules, slash ? folder : ".", rights);
}

/* Of a folder also what its entries link to: the cache of the Hugging Face hub keeps files elsewhere. */
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
		if (e->d_type != DT_REG && e->d_type != DT_DIR && (size_t)snprintf(path, sizeof path, "%s/%s", name, e->d_name) < sizeof path)
			allow_folder_of(rules, path, READ_FILE | READ_DIR);
	closedir(d);
}

void sandbox_enter(char *const *inputs, int n, const char *output)
{
	long version = syscall(CREATE_RULESET, NULL, 0, VERSION_FLAG);
	struct ruleset set = { ALL_FIRST, 0 };
	int rules;
	if (sandbox_off || version < 1) return;
	if (version >= 2) set.handled_fs |= REFER;
	if (version >= 3) set.handled_fs |= TRUNCATE;
	if (version >= 4) set.handled_net = 3;  /* TCP bind and connect */
	rules = (int)syscall(CREATE_RULESET, &set, version >= 4 ? sizeof set : sizeof set.handled_fs, 0);
	if (rules < 0) return;
	for (int i = 0; i < n; i++) allow_input(rules, inputs[i]);
	allow_folder_of(rules, output, (uint64_t)(READ_FILE | READ_DIR | WRITE_FILE | REMOVE_FILE | MAKE_REG));
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) syscall(RESTRICT_SELF, rules, 0);
	close(rules);
}
#else
void sandbox_enter(char *const *inputs, int n, const char *output) { (void)inputs; (void)n; (void)output; }
#endif
