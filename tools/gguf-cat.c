/* SPDX-License-Identifier: MIT
 * gguf-cat - the data of tensors on standard output, raw or decoded to little-endian float32.
 *
 * Tensors go out in the order named, through one buffer. A pipe has its data only once, in file order:
 * tensors named in another order are refused by the reader. */
#include <stdlib.h>
#include "../quant/quant.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"

enum { CHUNK_WEIGHTS = 1 << 18 };

static struct { bool decode; int jobs; const char *output; } o;
static const struct opt opts[] = {
	OPT_FLAG(0, "decode", &o.decode, "decode to little-endian float32"),
	OPT_ONE_JOB(&o.jobs),
	OPT_OUTPUT(&o.output),
	OPT_COMMON, OPT_END
};

static void cat(struct ggu_walk *walk, const char *file, const struct ggu_tensor *t, struct out *out, float *decoded,
	uint64_t *done)
{
	struct ggu_error err;
	struct ggu_part p;
	ggu_walk_to(walk, t);
	for (;;) {
		if (ggu_walk_next(walk, &p, &err)) msg_die_error(file, &err);
		if (!p.n_bytes) break;
		if (decoded) {
			quant_decode(t->type, p.bytes, decoded, p.n_weights);
			out_write(out, decoded, p.n_weights*sizeof *decoded);
		} else out_write(out, p.bytes, p.n_bytes);
		progress_set(*done += p.n_bytes);
	}
}

int main(int argc, char **argv)
{
	struct ggu_file *f;
	struct ggu_error err;
	struct out *out;
	struct ggu_walk *walk;
	float *decoded = NULL;
	uint64_t bytes = 0, size = 0, done = 0;
	argc = opt_parse(argc, argv, opts,
		&(struct opt_program){ "gguf-cat", "write the data of tensors, raw or decoded",
		"[--decode] [-j N] [-o FILE] FILE TENSOR ...", 2, -1 });
	pipe_input(argv[0]);
	out = out_open(o.output, true);
	sandbox_enter((const char *const *)argv, 1, o.output);
	if (ggu_open(&f, argv[0], &err)) msg_die_error(argv[0], &err);
	out_refuse_sources(out, argv[0], f);
	for (int i = 1; i < argc; i++) {
		const struct ggu_tensor *t = ggu_file_find(f, argv[i]);
		if (!t) msg_die("%s: no tensor '%s'; gguf-info --tensors lists them", msg_name(argv[0]), argv[i]);
		if (o.decode && !quant_can_decode(t->type))
			msg_die("%s: %s: type %s cannot be decoded", msg_name(argv[0]), t->name,
				ggu_type_info(t->type)->name);
		bytes += t->bytes;
		size += o.decode ? 4*t->ne[0]*ggu_tensor_rows(t) : t->bytes;
	}
	if (o.decode) decoded = msg_need(malloc((size_t)CHUNK_WEIGHTS*sizeof *decoded));
	if (ggu_walk_new(&walk, f, CHUNK_WEIGHTS, &err)) msg_die_error(argv[0], &err);
	out_reserve(out, size);
	progress_begin("writing", bytes, "B");
	for (int i = 1; i < argc; i++) cat(walk, argv[0], ggu_file_find(f, argv[i]), out, decoded, &done);
	progress_end();
	ggu_walk_free(walk);
	free(decoded);
	pipe_drain(f, argv[0]);
	ggu_close(f);
	out_commit(out);
	return EXIT_YES;
}
