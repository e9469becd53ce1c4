/* SPDX-License-Identifier: MIT
 * gguf-edit - changes the metadata of a model, and the names of its tensors, without touching the weights.
 *
 * The new header is made in memory. It replaces the old one in place (inplace.h), if it can be brought to the same
 * length: the padding after a header is shorter than the alignment, so the rest becomes a key of its own, "reserved",
 * an array of bytes, which a later edit can use up. Otherwise a new file is written: the header, then the old data
 * section (copy.h). From a pipe, or if offsets change, tensors are copied one by one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgguf/grow.h"
#include "copy.h"
#include "edits.h"
#include "inplace.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"
#include "temp.h"

/* With a name of 8 bytes, an empty array takes 32 bytes, for which an alignment of 32 or more always leaves room. */
#define RESERVED "reserved"
enum { PART_WEIGHTS = 1 << 18, MAX_ROOM = 1 << 28 };

/* ---- options ---- */

static struct edits edits;

static struct {
	bool in_place, dry_run;
	uint64_t reserve;
	const char *output;
	int jobs;
} o;

static int take(void *kind, const char *arg)
{
	edits.v = msg_need(ggu_grow(edits.v, edits.n, sizeof *edits.v));
	edits.v[edits.n++] = (struct edit){ .kind = *(const enum edit_kind *)kind, .arg = arg };
	return 0;
}
static enum edit_kind set = EDIT_SET, set_file = EDIT_SET_FILE, delete = EDIT_DELETE, rename_key = EDIT_RENAME,
	rename_tensor = EDIT_RENAME_TENSOR;
static const struct opt opts[] = {
	OPT_CALL(0, "set", &set, "KEY=TYPE:VALUE", take, "set KEY; TYPE is u32, str, f32[] ...; arrays are JSON"),
	OPT_CALL(0, "set-file", &set_file, "KEY=TYPE:FILE", take, "set KEY to what is in FILE"),
	OPT_CALL(0, "delete", &delete, "KEY", take, "remove KEY"),
	OPT_CALL(0, "rename", &rename_key, "OLD=NEW", take, "rename a key"),
	OPT_CALL(0, "rename-tensor", &rename_tensor, "OLD=NEW", take, "rename a tensor"),
	OPT_FLAG('I', "in-place", &o.in_place, "change FILE itself"),
	OPT_SIZE(0, "reserve", &o.reserve, "SIZE", "leave room for later edits in place"),
	OPT_FLAG('n', "dry-run", &o.dry_run, "only report how the file would be changed"),
	OPT_OUTPUT(&o.output),
	OPT_ONE_JOB(&o.jobs),
	OPT_COMMON, OPT_END
};

/* ---- the edits, and the room that is reserved for later ones ---- */

/* How many bytes the reserved key has room for; -1: it does not exist, or somebody else uses it. */
static int64_t reserved(const struct ggu_meta *meta)
{
	const struct ggu_kv *kv = ggu_meta_find(meta, RESERVED);
	return kv && ggu_kv_type(kv) == GGU_ARRAY && ggu_kv_item_type(kv) == GGU_U8 ? (int64_t)ggu_kv_n(kv) : -1;
}
/* Refuses an edit that puts bytes into the reserved key: the next one may use its room, whatever it contains. */
static void refuse_reserved(const struct edited *m)
{
	const struct ggu_meta *old = ggu_file_meta(m->f);
	const int64_t n = reserved(m->meta);
	if (n < 0 || (n == reserved(old) && !memcmp(ggu_kv_data(ggu_meta_find(m->meta, RESERVED)),
		ggu_kv_data(ggu_meta_find(old, RESERVED)), (size_t)n)))
		return;
	msg_die("%s: cannot be set to u8[], which later edits would use up as room: use --reserve or another key",
		RESERVED);
}
/* to: the name that the file will have; NULL: none. */
static void edit(struct edited *m, const char *to)
{
	edited_make(m, &edits, to);
	refuse_reserved(m);
}

/* ---- the header ---- */

static struct ggu_writer *writer(const struct edited *m)
{
	struct ggu_writer *w;
	struct ggu_error err;
	if (ggu_writer_new(&w, m->meta, &err)) msg_die_error(m->name, &err);
	for (size_t i = 0; i < m->n; i++) {
		const struct ggu_tensor *t = ggu_file_tensor(m->f, i);
		if (ggu_writer_add_at(w, m->tensor[i], t->n_dims, t->ne, t->type, m->offset[i], &err))
			msg_die_error(m->name, &err);
	}
	return w;
}
static uint64_t header_bytes(const struct edited *m)
{
	struct ggu_writer *w = writer(m);
	uint64_t n = ggu_writer_header_bytes(w);
	ggu_writer_free(w);
	return n;
}

static void set_reserved(struct edited *m, uint64_t n)
{
	unsigned char *zeros = n < SIZE_MAX/2 ? calloc((size_t)n + 1, 1) : NULL;
	if (!zeros || ggu_meta_set_array(m->meta, RESERVED, GGU_U8, zeros, (size_t)n))
		msg_die("cannot reserve %s", msg_bytes(n));
	free(zeros);
}

/* Brings the header to `bytes` by changing the reserved key; false if that is impossible. The key may then be gone. */
static bool fit(struct edited *m, uint64_t bytes)
{
	uint64_t without, empty;
	bool ours = reserved(m->meta) >= 0;
	if (!ours && ggu_meta_find(m->meta, RESERVED)) return header_bytes(m) == bytes;
	if (ours) ggu_meta_remove(m->meta, RESERVED);
	without = header_bytes(m);
	if (without == bytes) return true;
	if (without > bytes) return false;
	set_reserved(m, 0);
	empty = header_bytes(m);
	if (empty > bytes) return false;
	set_reserved(m, bytes - empty);         /* a multiple of the alignment, as both sizes are */
	return true;
}

/* Makes the reserved key as large as requested, and a little larger, so that the new file can share blocks of the file
 * system with the old one. */
static void make_room(struct edited *m, uint64_t room)
{
	uint64_t now, was = ggu_file_data_offset(m->f, 0);
	if (!room) return;
	if (reserved(m->meta) < 0 && ggu_meta_find(m->meta, RESERVED))
		msg_die("%s: already uses the key '%s' for something else: cannot reserve room", msg_name(m->name),
			RESERVED);
	set_reserved(m, room);
	now = header_bytes(m);
	set_reserved(m, room + (was % COPY_BLOCK + COPY_BLOCK - now % COPY_BLOCK) % COPY_BLOCK);
}

/* ---- writing a new file ---- */

static void write_tensors(const struct edited *m, struct ggu_writer *w, struct out *out)
{
	struct ggu_walk *walk;
	struct ggu_part p;
	struct ggu_error err;
	uint64_t done = 0;
	if (ggu_walk_new(&walk, m->f, PART_WEIGHTS, &err)) msg_die_error(m->name, &err);
	if (ggu_writer_begin(w, out_fd(out), &err)) msg_die_error(out_name(out), &err);
	for (size_t i = 0; i < m->n; i++) {
		ggu_walk_to(walk, ggu_file_in_data_order(m->f, i));
		for (;;) {
			if (ggu_walk_next(walk, &p, &err)) msg_die_error(m->name, &err);
			if (!p.n_bytes) break;
			if (ggu_writer_data(w, p.bytes, p.n_bytes, &err)) msg_die_error(out_name(out), &err);
			out_wrote(out, p.n_bytes);
			progress_set(done += p.n_bytes);
		}
	}
	if (ggu_writer_end(w, &err)) msg_die_error(out_name(out), &err);
	ggu_walk_free(walk);
}

static struct ggu_memory header(const struct ggu_writer *w)
{
	struct ggu_memory h = { 0 };
	struct ggu_sink to = ggu_sink_memory(&h);
	struct ggu_error err;
	if (ggu_writer_header(w, &to, &err)) msg_die("%s", err.what);
	return h;
}

static void write_zeros(struct out *out, uint64_t n)
{
	static const unsigned char zeros[1 << 16];
	for (size_t some; n; n -= some) {
		some = n < sizeof zeros ? (size_t)n : sizeof zeros;
		out_write(out, zeros, some);
	}
}

/* fd: m's only file, whose data section is copied as it is, or -1. */
static void write_new(const struct edited *m, int fd, struct out *out)
{
	struct ggu_writer *w = writer(m);
	const uint64_t bytes = ggu_writer_file_bytes(w), from = ggu_file_data_offset(m->f, 0),
		end = ggu_file_data_end(m->f, 0), n = end > from ? end - from : 0;
	const bool as_it_is = fd >= 0 && !m->moved && !ggu_file_big_endian(m->f, 0);
	if (!as_it_is || !copy_has_holes(fd, from, n)) out_reserve(out, bytes);
	progress_begin("copying", bytes, "B");
	if (as_it_is) {
		struct ggu_memory h = header(w);
		out_write(out, h.p, h.n);
		copy_range(m->name, fd, from, out, h.n, n, h.n);
		write_zeros(out, bytes - h.n - n);      /* padding; a tensor without elements may be far behind it */
		free(h.p);
	} else write_tensors(m, w, out);
	progress_end();
	ggu_writer_free(w);
}

/* ---- in place or anew ---- */

static void say(const struct edited *m, const char *how)
{
	char *name = text_mask(msg_name(m->name), strlen(msg_name(m->name)));
	printf("%s: %s; header of %llu bytes, %llu before\n", name, how, (unsigned long long)header_bytes(m),
		(unsigned long long)ggu_file_data_offset(m->f, 0));
	free(name);
}

/* Changes the file in place, or, if the header does not fit, by writing a new file and renaming it. path is the file
 * itself, not a link to it. */
static void change(struct edited *m, const char *path, int fd)
{
	uint64_t was = ggu_file_data_offset(m->f, 0), room = o.reserve;
	bool keeps = !m->moved && !ggu_file_big_endian(m->f, 0) && ggu_file_bytes(m->f, 0) >= was &&
		ggu_file_header_bytes(m->f, 0) > 4;
	int64_t had = reserved(m->meta);
	struct stat st;
	/* a reserved key that was deleted must not come back */
	if (reserved(ggu_file_meta(m->f)) >= 0 && !ggu_meta_find(m->meta, RESERVED))
		keeps = keeps && header_bytes(m) == was;
	keeps = keeps && !fstat(fd, &st) && st.st_nlink == 1 && fit(m, was) &&
		(!room || reserved(m->meta) >= (int64_t)room);
	if (!keeps) {
		if (!room && had > 0) room = (uint64_t)had;
		make_room(m, room);
	}
	if (o.dry_run) say(m, keeps ? "in place" : "rewritten");
	else if (keeps) {
		struct ggu_writer *w = writer(m);
		struct ggu_memory h = header(w);
		unsigned char *old = msg_need(malloc(h.n + 1));
		if (pread(fd, old, h.n, 0) != (ssize_t)h.n) msg_die("%s: %s", m->name, strerror(errno));
		if (memcmp(old, h.p, h.n) != 0) inplace_write(path, fd, old, h.p, h.n);
		free(old);
		free(h.p);
		ggu_writer_free(w);
	} else {
		struct out *out = out_open(path, true);
		write_new(m, fd, out);
		out_commit(out);
	}
}

static void edit_in_place(const char *name)
{
	struct edited m = { .name = name };
	const struct ggu_open_options alone = { .flags = GGU_OPEN_ALONE };
	struct ggu_error err;
	char *path = temp_follow(name);
	struct out *said = out_open(NULL, false);
	bool undone = false;
	int fd;
	if (!path) msg_die("%s: %s", name, strerror(errno));
	if (o.dry_run) out_refuse_input(said, path);
	sandbox_enter((const char *[]){ path }, 1, o.dry_run ? NULL : path);
	fd = o.dry_run ? inplace_look(path) : inplace_open(path, &undone);
	if (undone) msg_warn("%s: an edit that was interrupted has been undone", name);
	/* without edits too: a file that is no model, or a damaged one, is not reported as done */
	if (ggu_open_fd(&m.f, fd, &alone, &err)) msg_die_error(name, &err);
	if (edits.n || o.reserve) {
		edit(&m, path);
		change(&m, path, fd);
	}
	ggu_close(m.f);
	edited_free(&m);
	close(fd);
	free(path);
	out_commit(said);
}

static void edit_copy(const char *name)
{
	struct edited m = { .name = name };
	struct ggu_error err;
	struct out *out = out_open(o.dry_run ? NULL : o.output, !o.dry_run);
	int fd = -1;
	sandbox_enter((const char *[]){ name }, 1, o.output);
	pipe_input(name);
	if (ggu_open(&m.f, name, &err)) msg_die_error(name, &err);
	out_refuse_sources(out, name, m.f);
	for (size_t i = 0; i < edits.n; i++) out_refuse_input(out, edits.v[i].file);
	if (ggu_file_seekable(m.f) && strcmp(name, "-") != 0 && ggu_file_n_sources(m.f) == 1)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	edit(&m, o.output);
	make_room(&m, o.reserve);
	if (o.dry_run) say(&m, "rewritten");
	else write_new(&m, fd, out);
	if (fd >= 0) close(fd);
	pipe_drain(m.f, name);
	ggu_close(m.f);
	edited_free(&m);
	out_commit(out);
}

int main(int argc, char **argv)
{
	const char *name;
	argc = opt_parse(argc, argv, opts,
		&(struct opt_program){ "gguf-edit", "change the metadata of a GGUF file and the names of its tensors",
		"-I [-n] [--set KEY=TYPE:VALUE]... [--set-file KEY=TYPE:FILE]... [--delete KEY]... "
		"[--rename OLD=NEW]... [--rename-tensor OLD=NEW]... [--reserve SIZE] FILE\n"
		"[-n] [--set KEY=TYPE:VALUE]... [--set-file KEY=TYPE:FILE]... [--delete KEY]... "
		"[--rename OLD=NEW]... [--rename-tensor OLD=NEW]... [--reserve SIZE] [-o FILE] [FILE]", 0, 1 });
	name = argc ? argv[0] : "-";
	if (o.in_place && o.output) msg_usage("-I and -o cannot be combined");
	if (o.in_place && !strcmp(name, "-")) msg_usage("-I needs a file: standard input cannot be changed");
	if (o.reserve > MAX_ROOM)
		msg_usage("--reserve expects at most %s: all programs read the header", msg_bytes(MAX_ROOM));
	/* before the sandbox is entered: files may be anywhere, and a shell's <(...) is in no folder */
	edits_read_files(&edits, name);
	if (o.in_place) edit_in_place(name);
	else edit_copy(name);
	edits_free(&edits);
	return EXIT_YES;
}
