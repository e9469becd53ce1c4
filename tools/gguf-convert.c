/* SPDX-License-Identifier: MIT
 * gguf-convert - converts a Hugging Face checkpoint folder to one GGUF.
 *
 * convert/ plans the tensors and reads their elements. This file chooses types, and passes rows through the recoder
 * (quant/remake.h) to the writer, so that memory is bounded whatever the size of the checkpoint. With a recipe as the
 * type, it does at once what gguf-quantize would do with the converted model. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../convert/convert.h"
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "../model/util/file.h"
#include "../quant/quant.h"
#include "hub.h"
#include "msg.h"
#include "near.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "remake_run.h"
#include "sandbox.h"
#include "typeplan.h"

static struct {
	const char *type, *imatrix, *out, *name, *metadata;
	struct opt_list arch_files;
	bool vocab_only, dry_run;
	int jobs;
} o = { .type = "auto" };

static const struct opt opts[] = {
	OPT_STR('t', "type", &o.type, "TYPE", "auto, f32, f16, bf16, q8_0 or a recipe (default: auto)"),
	OPT_FILE('i', "imatrix", &o.imatrix, "FILE", "with a recipe: weight errors by this importance matrix"),
	OPT_FLAG(0, "vocab-only", &o.vocab_only, "write metadata and vocabulary, no tensors"),
	OPT_STR(0, "name", &o.name, "NAME", "the model's name (default: from its card or config.json)"),
	OPT_FILE(0, "metadata", &o.metadata, "JSON", "metadata from the object in this file, which overrides all else"),
	OPT_FLAG('n', "dry-run", &o.dry_run, "show what each tensor would become; read no weights, write no file"),
	OPT_FLAG('v', "verbose", &msg_verbose, "print a line for each tensor with its error"),
	OPT_ARCH_FILES(&o.arch_files),
	OPT_OUTPUT(&o.out),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

static void warn(void *ctx, const struct ggu_error *what)
{
	msg_warn("%s: %s: %s%s%s", (const char *)ctx, what->file, what->where, *what->where ? ": " : "", what->what);
}

/* ---- the run ---- */

/* What quant/remake.h wants to know of the checkpoint: its tensors as converted without loss, and what they become. */
struct job {
	struct remake_run r;
	const struct ggu_tensor **t;
	uint32_t *from;
	struct recipe_choice *choice;
};

static enum ggu_status read_from(void *ctx, struct recode_piece *p, struct ggu_error *err)
{
	return convert_read(ctx, p, err);
}
static enum ggu_status finish(void *ctx, struct recode_piece *p, struct ggu_error *err)
{
	(void)ctx;
	return convert_finish(p, err);
}

/* recipe NULL: the types that convert chose. Returns the metadata to write, which the caller frees. */
static struct ggu_meta *plan(struct job *j, struct convert *c, const char *dir, const struct recipe *recipe,
	const struct imatrix *im)
{
	size_t n = convert_n_tensors(c);
	uint32_t file_type = RECIPE_KEEP;
	j->t = msg_need(calloc(n + 1, sizeof *j->t));
	j->from = msg_need(calloc(n + 1, sizeof *j->from));
	j->choice = msg_need(calloc(n + 1, sizeof *j->choice));
	for (size_t i = 0; i < n; i++) {
		j->t[i] = convert_tensor(c, i);
		j->from[i] = convert_from(c, i);
		j->choice[i] = (struct recipe_choice){ j->t[i]->type, j->t[i]->type, RECIPE_RULE };
		if (!strcmp(o.type, "q8_0") && j->t[i]->type == GGU_TYPE_F16 &&
			j->t[i]->ne[0]%ggu_type_info(GGU_TYPE_Q8_0)->block_weights)
			j->choice[i] = (struct recipe_choice){ GGU_TYPE_F16, GGU_TYPE_Q8_0, RECIPE_FALLBACK };
	}
	if (recipe) {
		struct typeplan_options p = { .recipe = { .have_importance = im != NULL, .need_nothing = o.dry_run } };
		file_type = typeplan_choose(&p, recipe, dir, convert_meta(c), j->t, n, j->choice);
	}
	j->r = (struct remake_run){
		.re = { .n = n, .t = j->t, .from = j->from, .choice = j->choice, .read = read_from,
			.finish = finish, .read_ctx = c, .effort = QUANT_EFFORT_DEFAULT },
		.name = dir, .imatrix = im, .imatrix_name = o.imatrix, .damp = -1, .doing = "converting",
		.verbose = msg_verbose && !o.dry_run };
	for (size_t i = 0; i < n; i++)
		if (!quant_can_encode(j->choice[i].type) && j->choice[i].type != j->from[i])
			msg_die("type %s cannot be encoded", ggu_type_info(j->choice[i].type)->name);
	remake_run_fallbacks(&j->r, msg_verbose || o.dry_run);
	return remake_run_meta(&j->r, convert_meta(c), file_type);
}

static void print_plan(const struct convert *c, const struct job *j, uint64_t file_bytes)
{
	char shape[TEXT_SHAPE];
	int name_width = 0, shape_width = 0;
	for (size_t i = 0; i < convert_n_tensors(c); i++) {
		const struct ggu_tensor *t = convert_tensor(c, i);
		int n = (int)t->name_bytes;     /* names are an architecture's: ASCII */
		int k = text_shape(shape, t->ne, t->n_dims);
		if (n > name_width) name_width = n;
		if (k > shape_width) shape_width = k;
	}
	for (size_t i = 0; i < convert_n_tensors(c); i++) {
		const struct ggu_tensor *t = convert_tensor(c, i);
		char *name = text_mask(t->name, t->name_bytes), *from = text_mask(convert_source(c, i),
			strlen(convert_source(c, i)));
		size_t n = convert_n_sources(c, i);
		text_shape(shape, t->ne, t->n_dims);
		printf("%-*s  %-*s  %5s -> %-7s %12llu  %s", name_width, name, shape_width, shape,
			ggu_type_info(convert_from(c, i))->name, ggu_type_info(j->choice[i].type)->name,
			(unsigned long long)remake_bytes(&j->r.re, i), n ? from : "computed");
		if (n > 1) printf(" and %zu more", n - 1);
		puts(remake_reason(j->choice + i));
		free(name);
		free(from);
	}
	printf("%zu tensor%s; the file has %llu bytes\n", convert_n_tensors(c), text_s(convert_n_tensors(c)),
		(unsigned long long)file_bytes);
}

static void print_class(void *ctx, const char *hf_class, const char *arch)
{
	(void)ctx;
	fprintf(stderr, "  %-36s %s\n", hf_class, arch);
}
_Noreturn static void refuse(const char *dir, const struct ggu_error *err)
{
	struct ggu_error other;
	if (strcmp(err->where, CONVERT_CLASS) || err->code != GGU_ERR_UNSUPPORTED) msg_die_error(dir, err);
	/* before the message, which a long list would scroll away */
	fprintf(stderr, "Known classes, and their architectures (--arch-file adds one):\n");
	convert_classes(o.arch_files.v, o.arch_files.n, print_class, NULL, &other);
	msg_die_error(dir, err);
}

/* A recipe, unless convert knows the type itself: convert rounds as llama.cpp's converter does. */
static const struct recipe *recipe_of(const char *type)
{
	static const char *const own[] = { "auto", "f32", "f16", "bf16", "q8_0" };
	struct near near = { .asked = type };
	char hint[NEAR_BYTES];
	const struct recipe *r;
	for (size_t i = 0; i < sizeof own/sizeof *own; i++)
		if (text_same(own[i], type)) { o.type = own[i]; return NULL; }
	r = recipe_find(type);
	for (size_t i = 0; recipe_at(i); i++) near_try(&near, recipe_name(recipe_at(i)));
	if (!r && near.best) msg_usage("--type: %s is not a recipe%s", type, near_hint(&near, "", hint));
	if (!r || recipe_type(r) == RECIPE_KEEP)
		msg_usage("--type expects auto, f32, f16, bf16, q8_0 or a recipe, not '%s'; "
			"gguf-quantize lists those", type);
	return r;
}

/* Is it part of a checkpoint? A GGUF is not, nor is the empty file that the shell has just made for standard output. */
static bool is_input(const char *path)
{
	char magic[4] = "";
	struct stat st;
	FILE *f = !stat(path, &st) && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
	bool empty = f && !fread(magic, 1, sizeof magic, f);
	if (f) fclose(f);
	return !empty && memcmp(magic, "GGUF", sizeof magic) != 0;
}
/* Refuses to replace a file of the checkpoint, or one named by an option. */
static void refuse_inputs(const struct out *out, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	out_refuse_input(out, o.imatrix);
	out_refuse_input(out, o.metadata);
	out_refuse_inputs(out, o.arch_files.v, o.arch_files.n);
	while (d && (e = readdir(d)) != NULL) {
		char *path = msg_need(file_path(dir, e->d_name));
		if (is_input(path)) out_refuse_input(out, path);
		free(path);
	}
	if (d) closedir(d);
}

int main(int argc, char **argv)
{
	struct convert *c;
	struct job j = { 0 };
	struct imatrix *im = NULL;
	struct ggu_error err;
	struct out *out;
	const struct recipe *recipe;
	const char *dir;
	struct stat st;

	opt_parse(argc, argv, opts,
		&(struct opt_program){ "gguf-convert", "convert a Hugging Face checkpoint to GGUF",
		"[-t TYPE] [-i FILE] [--vocab-only] [--name NAME] [--metadata JSON] [-nv] [--arch-file YAML]... [-j N] "
		"[-o FILE] DIR", 1, 1 });
	if (o.vocab_only) opt_refuse("--vocab-only", "type imatrix verbose");
	recipe = recipe_of(o.type);
	if (o.imatrix && !recipe) msg_usage("-i: type %s does not use an importance matrix; give a recipe", o.type);
	pipe_once((const char *[]){ o.imatrix, o.metadata }, 2, "the importance matrix and the metadata");
	dir = argv[0] = (char *)(uintptr_t)hub_folder(argv[0]);
	if (stat(dir, &st)) msg_die("%s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		msg_die("%s: is not a folder: name the one that holds the checkpoint", dir);
	out = out_open(o.dry_run ? NULL : o.out, !o.dry_run);
	refuse_inputs(out, dir);
	if (!o.jobs) o.jobs = ggu_cpu_count();  /* reads files, so before the sandbox */
	sandbox_inputs(o.arch_files.v, o.arch_files.n);
	sandbox_enter((const char *[]){ argv[0], o.imatrix, o.metadata }, 3, o.out);
	if (o.imatrix && imatrix_read(&im, o.imatrix, &err)) msg_die_error(o.imatrix, &err);
	if (convert_open(&c, dir, &(struct convert_options){ .type = recipe ? "exact" : o.type,
		.vocab_only = o.vocab_only, .name = o.name, .metadata = o.metadata, .arch_files = o.arch_files.v,
		.n_arch_files = o.arch_files.n, .warn = warn, .warn_ctx = (void *)(uintptr_t)dir }, &err))
		refuse(dir, &err);
	struct ggu_meta *meta = plan(&j, c, dir, recipe, im);
	struct ggu_writer *w = remake_run_writer(&j.r, meta);
	if (o.dry_run) print_plan(c, &j, ggu_writer_file_bytes(w));
	else remake_run_write(&j.r, w, out, o.jobs);
	out_commit(out);
	ggu_writer_free(w);
	ggu_meta_free(meta);
	imatrix_free(im);
	free(j.t); free(j.from); free(j.choice);
	convert_close(c);
	return EXIT_YES;
}
