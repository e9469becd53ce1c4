/* SPDX-License-Identifier: MIT
 * zip.h - find a member of a zip archive whose bytes are stored uncompressed, as torch.save stores them.
 *
 *   member, member, ... | central directory | [zip64 end] | end
 *   member: "PK\3\4", 26 bytes of fields, name, extra field, data
 *
 * The directory at the end is authoritative; the name in a member's own header must agree with it. Compressed,
 * encrypted and split archives are refused. Source of the format: APPNOTE.TXT 6.3.10 of PKWARE. */
#ifndef CONVERT_ZIP_H
#define CONVERT_ZIP_H
#include "../libgguf/ggu.h"

struct zip_member {
	const char *name;               /* NUL-terminated, as in the archive; owned by the archive */
	uint64_t bytes;                 /* of its data */
	uint64_t header;                /* byte of its own header in the file */
	uint32_t crc;                   /* CRC-32 of its data */
};
struct zip;

/* Reads the directory of the file fd of `bytes` bytes; `file` names it in messages. fd stays the caller's and open. */
enum ggu_status zip_open(struct zip **out, int fd, const char *file, uint64_t bytes, struct ggu_error *err);
void zip_close(struct zip *z);
size_t zip_count(const struct zip *z);
const struct zip_member *zip_at(const struct zip *z, size_t i);                 /* sorted by name */
const struct zip_member *zip_find(const struct zip *z, const char *name);       /* NULL: there is none */
/* Finds the byte of the file where the member's data begins, and checks that all of it is inside the file. */
enum ggu_status zip_data(const struct zip *z, const struct zip_member *m, uint64_t *offset, struct ggu_error *err);
/* Reads the member's data, at most max bytes, into memory and checks its CRC. The caller frees it. */
enum ggu_status zip_slurp(const struct zip *z, const struct zip_member *m, size_t max, unsigned char **data,
	struct ggu_error *err);

#endif
