/* SPDX-License-Identifier: MIT
 * file.c - files of a checkpoint folder; see file.h. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../libgguf/text.h"
#include "../../libgguf/whole.h"
#include "file.h"

enum ggu_status file_fail(struct ggu_error *err, enum ggu_status code, const char *file, uint64_t offset,
	const char *where, const char *what, ...)
{
	const int sys = errno;
	char text[sizeof err->what];
	va_list ap;
	va_start(ap, what);
	vsnprintf(text, sizeof text, what, ap);
	va_end(ap);
	errno = sys;
	ggu_fail(err, code, offset, where, "%s", text);
	ggu_error_file(err, file);
	return code;
}

static enum ggu_status no_memory(struct ggu_error *err, const char *file)
{
	return file_fail(err, GGU_ERR_NOMEM, file, GGU_NO_OFFSET, "", "out of memory");
}
/* A call failed with errno e. */
static enum ggu_status call_failed(struct ggu_error *err, const char *file, const char *call, int e)
{
	if (e == ENOMEM) return no_memory(err, file);
	if (e == ENOENT) return file_fail(err, GGU_ERR_MISSING, file, GGU_NO_OFFSET, "", "%s", strerror(e));
	errno = e;
	return file_fail(err, GGU_ERR_IO, file, GGU_NO_OFFSET, "", "%s", call);
}

char *file_path(const char *dir, const char *name)
{
	size_t n = (dir ? strlen(dir) : 0) + strlen(name) + 2;
	char *p;
	if (!dir) return strdup(name);
	p = malloc(n);
	if (p) snprintf(p, n, "%s/%s", dir, name);
	return p;
}

char *file_named(const char *path)
{
	if (!strcmp(path, "-")) return strdup(TEXT_STDIN);
	return file_path(strchr(path, '/') ? NULL : ".", path);
}

bool file_ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n >= m && !strcmp(name + n - m, end);
}

bool file_exists(const char *dir, const char *name)
{
	char *p = file_path(dir, name);
	bool yes = p && !access(p, F_OK);
	free(p);
	return yes;
}

static bool is_lfs_pointer(int fd)
{
	char head[sizeof TEXT_LFS - 1];
	return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && text_is(head, sizeof head, TEXT_LFS);
}

enum ggu_status file_open(const char *dir, const char *name, int *fd, uint64_t *bytes, struct ggu_error *err)
{
	char *p = file_path(dir, name);
	struct stat st;
	bool link;
	int f, e;
	if (!p) return no_memory(err, name);
	f = open(p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);         /* a pipe must not make us wait */
	e = errno;
	link = f < 0 && e == ENOENT && !lstat(p, &st) && S_ISLNK(st.st_mode);
	free(p);
	/* a cache has lost the file; if it is optional, going on without it would give another model */
	if (link)
		return file_fail(err, GGU_ERR_UNSUPPORTED, name, GGU_NO_OFFSET, "",
			"is a link to a file that does not exist");
	if (f < 0) return call_failed(err, name, "open", e);
	if (fstat(f, &st)) {
		e = errno;
		close(f);
		return call_failed(err, name, "fstat", e);
	}
	if (!S_ISREG(st.st_mode)) {
		close(f);
		return file_fail(err, GGU_ERR_UNSUPPORTED, name, GGU_NO_OFFSET, "", "not a regular file");
	}
	if (is_lfs_pointer(f)) {
		close(f);
		return file_fail(err, GGU_ERR_UNSUPPORTED, name, 0, "", TEXT_LFS_MEANS);
	}
	*fd = f;
	*bytes = (uint64_t)st.st_size;
	return GGU_OK;
}

enum ggu_status file_read_at(int fd, const char *name, uint64_t offset, void *to, size_t n, struct ggu_error *err)
{
	char *p = to;
	while (n) {
		ssize_t got = pread(fd, p, n, (off_t)offset);
		if (got < 0 && errno == EINTR) continue;
		if (got < 0) {
			enum ggu_status s = call_failed(err, name, "read", errno);
			if (err) err->offset = offset;
			return s;
		}
		if (!got)
			return file_fail(err, GGU_ERR_TRUNCATED, name, offset, "",
				"the file ends here: %zu byte%s missing", n, n == 1 ? " is" : "s are");
		p += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return GGU_OK;
}

enum ggu_status file_slurp(const char *dir, const char *name, size_t max, char **text, size_t *n, struct ggu_error *err)
{
	uint64_t bytes;
	int fd;
	char *p = NULL;
	enum ggu_status s = file_open(dir, name, &fd, &bytes, err);
	if (s) return s;
	if (bytes > max) s = file_fail(err, GGU_ERR_RANGE, name, max, "", "longer than %zu bytes", max);
	else if (!(p = malloc((size_t)bytes + 1))) s = no_memory(err, name);
	else s = file_read_at(fd, name, 0, p, (size_t)bytes, err);
	close(fd);
	if (s) {
		free(p);
		return s;
	}
	p[bytes] = 0;
	*text = p;
	*n = (size_t)bytes;
	return GGU_OK;
}

enum ggu_status file_slurp_any(const char *path, size_t max, char **text, size_t *n, struct ggu_error *err)
{
	bool standard = !strcmp(path, "-");
	int fd = standard ? 0 : open(path, O_RDONLY | O_CLOEXEC), e = errno;
	struct whole w = { .more = whole_of_fd, .ctx = &fd };
	char *name = file_named(path);
	enum ggu_status s;
	if (!name) s = no_memory(err, path);
	else if (fd < 0) s = call_failed(err, name, "open", e);
	else {
		s = whole_all(&w, max, err);
		if (s) ggu_error_file(err, name);
	}
	if (!standard && fd >= 0) close(fd);
	free(name);
	if (s) {
		free(w.p);
		return s;
	}
	*text = w.p;
	*n = w.n;
	return GGU_OK;
}

enum ggu_status file_json_decode(const char *text, size_t n, const char *name, uint64_t base, size_t flags,
	json_t **out, struct ggu_error *err)
{
	json_error_t je;
	json_t *j = json_loadb(text, n, flags, &je);
	if (!j) {
		/* if memory is short, jansson gives no text */
		if (!*je.text || json_error_code(&je) == json_error_out_of_memory)
			return no_memory(err, name);
		/* jansson gives the end of the bad token, and shows the token */
		const char *near = strstr(je.text, " near '");
		size_t token = near ? strlen(near + 7) - 1 : 1;
		uint64_t at = base + ((size_t)je.position > token ? (size_t)je.position - token : 0);
		enum ggu_status code = json_error_code(&je) == json_error_numeric_overflow ? GGU_ERR_RANGE :
			GGU_ERR_FORMAT;
		return file_fail(err, code, name, at, "", "line %d: %s", je.line, je.text);
	}
	*out = j;
	return GGU_OK;
}

enum ggu_status file_json_text(const char *text, size_t n, const char *name, uint64_t base, size_t flags,
	json_t **object, struct ggu_error *err)
{
	json_t *j;
	enum ggu_status s = file_json_decode(text, n, name, base, flags, &j, err);
	if (s) return s;
	if (!json_is_object(j)) {
		json_decref(j);
		return file_fail(err, GGU_ERR_FORMAT, name, base, "", "not a JSON object");
	}
	*object = j;
	return GGU_OK;
}

/* Replaces Infinity, and the sign before it, by a string. */
static void quote_infinity(char *p, bool minus)
{
	if (minus) memcpy(p - 1, "\"-\\u221e\"", 9);
	else memcpy(p, "\"\\u221e\"", 8);
}

void file_json_of_python(char *text)
{
	bool quoted = false;
	for (char *p = text; *p; p++) {
		size_t digits = quoted ? 0 : strspn(p, "0123456789");
		if (*p == '"') quoted = !quoted;
		else if (quoted && *p == '\\' && p[1]) p++;
		else if (!quoted && !strncmp(p, "Infinity", 8)) {
			quote_infinity(p, p > text && p[-1] == '-');
			p += 7;
		} else if (digits) {
			size_t rest = strspn(p + digits, "0123456789.eE+-");
			bool big = digits > 19 || (digits == 19 && memcmp(p, "9223372036854775807", 19) > 0);
			/* with so many digits, the last two do not matter */
			if (big && !rest) memcpy(p + digits - 2, "e2", 2);
			p += digits + rest - 1;
		}
	}
}

bool file_json_infinity(const json_t *j, double *x)
{
	bool object = json_is_object(j) && json_object_size(j) == 1;
	const char *s = json_string_value(object ? json_object_get(j, "__float__") : j);
	bool minus = s && *s == '-';
	if (!s || strcmp(s + minus, object ? "Infinity" : "\xe2\x88\x9e")) return false;
	*x = minus ? -INFINITY : INFINITY;
	return true;
}

enum ggu_status file_json(const char *dir, const char *name, json_t **object, struct ggu_error *err)
{
	char *text;
	size_t n;
	enum ggu_status s = file_slurp(dir, name, FILE_TEXT_MAX, &text, &n, err);
	if (s) return s;
	file_json_of_python(text);
	s = file_json_text(text, n, name, 0, JSON_REJECT_DUPLICATES, object, err);
	free(text);
	return s;
}

enum ggu_status file_json_list(const char *dir, const char *name, json_t **list, struct ggu_error *err)
{
	char *text;
	size_t n;
	json_t *j;
	enum ggu_status s = file_slurp(dir, name, FILE_TEXT_MAX, &text, &n, err);
	if (s) return s;
	s = file_json_decode(text, n, name, 0, JSON_REJECT_DUPLICATES, &j, err);
	free(text);
	if (s) return s;
	if (!json_is_array(j)) {
		json_decref(j);
		return file_fail(err, GGU_ERR_FORMAT, name, 0, "", "not a JSON array");
	}
	*list = j;
	return GGU_OK;
}

json_t *file_text_part(json_t *config)
{
	static const char *const names[] = { "text_config", "language_config", "llm_config" };
	for (size_t k = 0; k < sizeof names/sizeof *names; k++)
		if (json_is_object(json_object_get(config, names[k]))) return json_object_get(config, names[k]);
	return config;
}
