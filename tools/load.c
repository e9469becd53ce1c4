/* SPDX-License-Identifier: MIT
 * load.c - see load.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "load.h"
#include "msg.h"

struct ggu_pool *load_pool(int jobs)
{
	struct ggu_pool *p = ggu_pool_new(jobs);
	if (!p) msg_die("cannot start %d threads", jobs);
	return p;
}

struct model *load_model(const char *path, const char *arch_file, struct ggu_pool *pool)
{
	struct model_options o = { arch_file, pool };
	struct ggu_error err;
	struct model *m;
	if (!path) msg_die("which model? -m MODEL is missing");
	if (!strcmp(path, "-")) msg_die("a model cannot come through a pipe here: evaluating maps the file");
	if (model_open(&m, path, &o, &err)) msg_die_error(path, &err);
	return m;
}

void load_tokenizer(const struct model *m, const char *path, struct vocab **v, struct tokenizer **t)
{
	struct ggu_error err;
	if (vocab_from_meta(v, ggu_file_meta(model_file(m)), &err) || tokenizer_new(t, *v, &err)) msg_die_error(path, &err);
}

char *load_text(const char *path, size_t *n)
{
	bool standard = !path || !strcmp(path, "-");
	int fd = standard ? 0 : open(path, O_RDONLY | O_CLOEXEC);
	size_t cap = 1 << 16;
	char *text = malloc(cap);
	ssize_t got = 1;
	if (fd < 0) msg_die("%s: %s", path, strerror(errno));
	*n = 0;
	while (text && got) {
		if (cap - *n < 2) {
			char *p = realloc(text, cap *= 2);
			if (!p) free(text);
			text = p;
			continue;
		}
		got = read(fd, text + *n, cap - *n - 1);
		if (got < 0 && errno == EINTR) continue;
		if (got < 0) msg_die("%s: %s", standard ? "(stdin)" : path, strerror(errno));
		*n += (size_t)got;
	}
	if (!text) msg_die("%s: out of memory", standard ? "(stdin)" : path);
	if (!standard) close(fd);
	text[*n] = 0;
	return text;
}

const char *load_base_name(const char *path)
{
	const char *slash;
	if (!path || !strcmp(path, "-")) return "stdin";
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}
