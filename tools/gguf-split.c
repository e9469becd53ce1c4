/* SPDX-License-Identifier: MIT
 * gguf-split - splits a model into shards, and merges shards into one file.
 *
 * Tensors are written in the order of their data, so that the input may be a pipe. Shard 1 has the metadata; the others
 * have only what a shard must say about itself, and the alignment, which its own offsets depend on. Each shard is
 * written beside its final name; when the last one is complete all get their names, shard 1 last. */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/size.h"
#include "../libgguf/text.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"
#include "shard.h"

enum { PART_WEIGHTS = 1 << 18 };

static struct {
	bool merge, dry_run, empty_first;
	uint64_t max_size, max_tensors;
	const char *like, *output;
	int jobs;
} o;
static const struct opt opts[] = {
	OPT_SIZE(0, "max-size", &o.max_size, "SIZE", "shards of at most SIZE bytes; 500M, 4G, 4Gi"),
	OPT_U64(0, "max-tensors", &o.max_tensors, "N", 1, 1e9, "shards of at most N tensors"),
	OPT_FILE(0, "like", &o.like, "SHARD", "put tensors in the same shards as the set of SHARD does"),
	OPT_FLAG(0, "no-tensor-first-split", &o.empty_first, "put only metadata in shard 1"),
	OPT_FLAG(0, "merge", &o.merge, "write the shards of SHARD's set as one file"),
	OPT_FLAG('n', "dry-run", &o.dry_run, "only show what shards there would be"),
	OPT_STR('o', "output", &o.output, "NAME",
		"splitting: NAME-00001-of-0000N.gguf; merging: NAME (default: stdout)"),
	OPT_ONE_JOB(&o.jobs),
	OPT_COMMON, OPT_END
};

struct split {
	struct ggu_file *f;
	const char *name;
	size_t n;
	const struct ggu_tensor **t;    /* in the order of writing */
	size_t *first;                  /* [n_shards + 1]: shard i has those from first[i] to before first[i + 1] */
	uint32_t n_shards;              /* 0 if all becomes one file, which is the first */
	struct ggu_walk *walk;
	uint64_t done;
};

static void add(struct ggu_writer *w, const struct ggu_tensor *t)
{
	struct ggu_error err;
	if (ggu_writer_add(w, t->name, t->n_dims, t->ne, t->type, &err)) msg_die("%s: %s", t->name, err.what);
}

/* A writer of shard i of n with the tensors from first to before end. */
static struct ggu_writer *writer(const struct split *s, uint32_t i, uint32_t n, size_t first, size_t end)
{
	struct ggu_meta *m = shard_meta(ggu_file_meta(s->f), i, n, s->n);
	struct ggu_writer *w;
	struct ggu_error err;
	if (ggu_writer_new(&w, m, &err)) msg_die_error(s->name, &err);
	ggu_meta_free(m);
	for (size_t k = first; k < end; k++) add(w, s->t[k]);
	return w;
}

/* ---- which tensor goes where ---- */

/* The size of a shard of tensors first..end - 1. */
static uint64_t shard_bytes(const struct split *s, uint32_t shard, size_t first, size_t end)
{
	struct ggu_writer *w = writer(s, shard, SHARD_MAX, first, end);
	uint64_t bytes = ggu_writer_file_bytes(w);
	ggu_writer_free(w);
	return bytes;
}
/* most: not less than its size, so that few shards have to be measured. */
static bool fits(const struct split *s, uint32_t shard, size_t first, size_t end, uint64_t most)
{
	return !o.max_size || most <= o.max_size || shard_bytes(s, shard, first, end) <= o.max_size;
}

/* Counts header and data of a shard as they grow, with the largest possible padding between the two. */
static void by_size(struct split *s)
{
	const uint64_t align = ggu_file_alignment(s->f, 0);
	uint32_t shard = o.empty_first;
	uint64_t most = shard_bytes(s, shard, 0, 0) + align;
	size_t first = 0;
	s->first = msg_need(calloc(SHARD_MAX + 2, sizeof *s->first));
	for (size_t i = 0; i < s->n && shard < SHARD_MAX; i++) {        /* with one more, there are too many */
		const struct ggu_tensor *t = s->t[i];
		uint64_t bytes = size_aligned(t->bytes, align),
			more = 8 + t->name_bytes + 4 + 8*t->n_dims + 4 + 8 + bytes;
		bool full = o.max_tensors && i - first == o.max_tensors;
		if (i > first && (full || !fits(s, shard, first, i + 1, most + more))) {
			s->first[shard + 1] = first = i;
			most = shard_bytes(s, ++shard, 0, 0) + align;
		}
		most += more;
		if (i == first && !fits(s, shard, i, i + 1, most))
			msg_warn("%s: with %s of metadata, already larger than %s alone", t->name,
				msg_bytes(shard_bytes(s, shard, i, i + 1) - bytes), msg_bytes(o.max_size));
	}
	s->n_shards = shard + 1;
	s->first[s->n_shards] = s->n;
}

/* Divides the tensors as the shards of `like` do. Within a shard they stay in the order of their data. */
static void as_in(struct split *s, const struct ggu_file *like)
{
	size_t *next, from = 0;         /* where the next tensor of each shard goes: in the end, where the shard ends */
	s->n_shards = ggu_file_n_sources(like);
	if (ggu_file_n_tensors(like) != s->n)
		msg_die("%s has %zu tensor%s and %s %zu: are they the same model?", msg_name(s->name), s->n,
			text_s(s->n), msg_name(o.like), ggu_file_n_tensors(like));
	s->first = msg_need(calloc((size_t)s->n_shards + 1, sizeof *s->first));
	next = s->first + 1;
	for (size_t i = 0; i < s->n; i++) next[ggu_file_tensor(like, i)->source]++;
	for (uint32_t shard = 0; shard < s->n_shards; shard++) {
		size_t n = next[shard];
		next[shard] = from;
		from += n;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct ggu_tensor *t = ggu_file_in_data_order(s->f, i), *u = ggu_file_find(like, t->name);
		size_t to;
		if (!u) msg_die("%s: no tensor '%s'", msg_name(o.like), t->name);
		to = next[u->source]++;
		if (i != to && !ggu_file_seekable(s->f))
			msg_die("%s: the data is in a different order than in the shards of %s: give the file by name",
				msg_name(s->name), msg_name(o.like));
		s->t[to] = t;
	}
}

/* ---- writing ---- */

static void copy(struct split *s, struct ggu_writer *w, struct out *out, size_t i)
{
	struct ggu_part p;
	struct ggu_error err;
	ggu_walk_to(s->walk, s->t[i]);
	for (;;) {
		if (ggu_walk_next(s->walk, &p, &err)) msg_die_error(s->name, &err);
		if (!p.n_bytes) break;
		if (ggu_writer_data(w, p.bytes, p.n_bytes, &err)) msg_die_error(out_name(out), &err);
		out_wrote(out, p.n_bytes);
		progress_set(s->done += p.n_bytes);
	}
}

/* All of shard i of n, or the one file if n is 0. */
static void write_one(struct split *s, struct out *out, uint32_t i, uint32_t n)
{
	struct ggu_writer *w = writer(s, i, n, s->first[i], s->first[i + 1]);
	struct ggu_error err;
	out_refuse_sources(out, s->name, s->f);
	out_refuse_input(out, o.like);
	out_reserve(out, ggu_writer_file_bytes(w));
	if (ggu_writer_begin(w, out_fd(out), &err)) msg_die_error(out_name(out), &err);
	for (size_t k = s->first[i]; k < s->first[i + 1]; k++) copy(s, w, out, k);
	if (ggu_writer_end(w, &err)) msg_die_error(out_name(out), &err);
	ggu_writer_free(w);
	if (n) out_seal(out);
}

static void write_shards(struct split *s)
{
	struct out **out = msg_need(calloc(s->n_shards, sizeof *out));
	for (uint32_t i = 0; i < s->n_shards; i++) {
		char *name = shard_name(o.output, i, s->n_shards);
		out[i] = out_open(name, true);
		free(name);
		write_one(s, out[i], i, s->n_shards);
	}
	progress_end();
	pipe_drain(s->f, s->name);
	out_commit_set(out, s->n_shards);
	free(out);
}

static void show(const struct split *s)
{
	for (uint32_t i = 0; i < s->n_shards; i++) {
		char *name = shard_name(o.output, i, s->n_shards), *shown = text_mask(name, strlen(name));
		size_t n = s->first[i + 1] - s->first[i];
		struct ggu_writer *w = writer(s, i, s->n_shards, s->first[i], s->first[i + 1]);
		printf("%s  %zu tensor%s, %s\n", shown, n, text_s(n), msg_bytes(ggu_writer_file_bytes(w)));
		ggu_writer_free(w);
		free(shown);
		free(name);
	}
}

static void merge(struct split *s, struct out *out)
{
	s->first = msg_need(calloc(2, sizeof *s->first));
	s->first[1] = s->n;
	write_one(s, out, 0, 0);
	progress_end();
	pipe_drain(s->f, s->name);
	out_commit(out);
}

/* ---- options ---- */

static void check_options(void)
{
	int ways = o.max_size || o.max_tensors;
	ways += (o.like != NULL) + o.merge;
	if (!ways) msg_usage("give --max-size SIZE, --max-tensors N, --like SHARD or --merge");
	if (ways > 1) msg_usage("--merge, --like and limits on a shard cannot be combined");
	if (o.merge && (o.dry_run || o.empty_first))
		msg_usage("--merge cannot be combined with --dry-run or --no-tensor-first-split");
	if (o.like && o.empty_first)
		msg_usage("--like and --no-tensor-first-split cannot be combined");
	if (!o.merge && !shard_prefix(o.output))
		msg_usage("no output name given: use -o NAME for shards NAME-00001-of-0000N.gguf");
}

int main(int argc, char **argv)
{
	struct split s = { 0 };
	struct ggu_error err;
	struct ggu_file *like = NULL;
	struct out *out = NULL;        /* but for shards, which have one each */
	uint64_t bytes = 0;
	char *first = NULL;
	argc = opt_parse(argc, argv, opts,
		&(struct opt_program){ "gguf-split", "split a GGUF model into shards, or merge them",
		"[-n] [--max-size SIZE] [--max-tensors N] [--no-tensor-first-split] -o NAME [FILE]\n"
		"[-n] --like SHARD -o NAME [FILE]\n--merge [-o FILE] [SHARD]", 0, -1 });
	check_options();
	if (argc > 1 && o.merge)
		msg_usage("--merge expects one shard, which stands for the whole set; '%s' is too many, "
			"and the output is named with -o", argv[1]);
	if (argc > 1) opt_spare(opts, argv[1]);
	s.name = argc ? argv[0] : "-";
	pipe_once((const char *[]){ o.like, s.name }, 2, "the model and the pattern of --like");
	if (o.merge || o.dry_run) out = out_open(o.dry_run ? NULL : o.output, o.merge);
	if (!o.merge) first = shard_name(o.output, 0, 1);
	sandbox_enter((const char *[]){ s.name, o.like }, 2, o.dry_run ? NULL : first ? first : o.output);
	free(first);
	pipe_input(s.name);
	if (o.like) pipe_input(o.like);
	if (ggu_open(&s.f, s.name, &err)) msg_die_error(s.name, &err);
	if (o.like && ggu_open(&like, o.like, &err)) msg_die_error(o.like, &err);
	s.n = ggu_file_n_tensors(s.f);
	s.t = msg_need(calloc(s.n + 1, sizeof *s.t));
	if (ggu_walk_new(&s.walk, s.f, PART_WEIGHTS, &err)) msg_die_error(s.name, &err);
	for (size_t i = 0; i < s.n; i++) {
		s.t[i] = ggu_file_in_data_order(s.f, i);
		bytes += s.t[i]->bytes;
	}
	if (like) as_in(&s, like);
	else if (!o.merge) by_size(&s);
	if (s.n_shards > SHARD_MAX) msg_die("%s: makes more than %d shards", msg_name(s.name), SHARD_MAX);
	if (!o.dry_run) progress_begin(o.merge ? "merging" : "splitting", bytes, "B");
	if (o.dry_run) {
		out_refuse_sources(out, s.name, s.f);
		show(&s);
	} else if (o.merge) merge(&s, out);
	else write_shards(&s);
	if (o.dry_run) {
		pipe_drain(s.f, s.name);
		out_commit(out);
	}
	ggu_close(like);
	ggu_close(s.f);
	free(s.t);
	free(s.first);
	ggu_walk_free(s.walk);
	return EXIT_YES;
}
