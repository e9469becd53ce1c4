/* SPDX-License-Identifier: MIT
 * error.c - filling struct ggu_error. It holds its texts itself, so that this works when memory has run out. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "ggu.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

enum ggu_status ggu_fail(struct ggu_error *err, enum ggu_status code, uint64_t offset, const char *where,
	const char *what, ...)
{
	int sys = errno;

	if (!err)
		return code;
	memset(err, 0, sizeof *err);
	err->code = code;
	err->offset = offset;
	err->sys_errno = code == GGU_ERR_IO ? sys : 0;
	snprintf(err->where, sizeof err->where, "%s", where ? where : "");
	if (what) {
		va_list ap;
		va_start(ap, what);
		vsnprintf(err->what, sizeof err->what, what, ap);
		va_end(ap);
	}
	return code;
}

void ggu_error_file(struct ggu_error *err, const char *name)
{
	size_t n, room = err ? sizeof err->file - 1 : 0;

	if (!err || !name)
		return;
	n = strlen(name);
	if (n <= room)
		memcpy(err->file, name, n + 1);
	else
		snprintf(err->file, sizeof err->file, "...%s", name + n - (room - 3));
}

const char *ggu_status_name(enum ggu_status code)
{
	static const char *const name[] = {
		[GGU_OK] = "ok", [GGU_ERR_NOMEM] = "out of memory", [GGU_ERR_IO] = "input/output error",
		[GGU_ERR_TRUNCATED] = "truncated", [GGU_ERR_FORMAT] = "malformed",
		[GGU_ERR_UNSUPPORTED] = "unsupported", [GGU_ERR_MISSING] = "missing",
		[GGU_ERR_TYPE] = "wrong type", [GGU_ERR_RANGE] = "out of range", [GGU_ERR_STATE] = "calls out of order",
	};
	return (size_t)code < sizeof name/sizeof *name ? name[code] : "unknown";
}

const char *ggu_version(void)
{
	return TEXT(GGU_VERSION_MAJOR) "." TEXT(GGU_VERSION_MINOR) "." TEXT(GGU_VERSION_PATCH);
}
