/* SPDX-License-Identifier: MIT
 * gguf-check - reports every defect of a GGUF file, one to a line.
 *
 * The reader reports what breaks the format and continues as far as it can. The rules of check.h are applied to what
 * could be read: metadata, tokenizer, table, and the data itself. */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "check.h"
#include "kv_json.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"

static struct {
	enum check_profile profile;
	bool header, json;
	int jobs;
	const char *output;
} o = { .profile = CHECK_SPEC };

static int set_profile(void *to, const char *arg)
{
	if (strcmp(arg, "spec") != 0 && strcmp(arg, "llama.cpp") != 0)
		msg_usage("--profile expects spec or llama.cpp, not '%s'", arg);
	*(enum check_profile *)to = !strcmp(arg, "spec") ? CHECK_SPEC : CHECK_LLAMA_CPP;
	return 0;
}
static const struct opt opts[] = {
	OPT_CALL(0, "profile", &o.profile, "NAME", set_profile,
		"spec (default), or llama.cpp: also what llama.cpp rejects"),
	OPT_FLAG(0, "header", &o.header, "check the header only, and do not read the data"),
	OPT_FLAG(0, "json", &o.json, "print JSON"),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* What was found in one file. */
struct found { const char *name; size_t n; json_t *list; };

static void report(void *ctx, unsigned rule, const char *file, uint64_t byte, const char *where, const char *what)
{
	struct found *to = ctx;
	to->n++;
	if (to->list) {
		json_t *j = json_object();
		json_put(j, "rule", json_of_uint(rule));
		json_put_str(j, "file", (struct ggu_str){ file, strlen(file) });
		if (byte != GGU_NO_OFFSET) json_put(j, "byte", json_of_uint(byte));
		if (*where) json_put_str(j, "where", (struct ggu_str){ where, strlen(where) });
		json_put_str(j, "what", (struct ggu_str){ what, strlen(what) });
		json_push(to->list, j);
	} else {
		char *f = text_mask(msg_name(file), strlen(msg_name(file))),
			*w = text_mask(where, strlen(where)), *t = text_mask(what, strlen(what));
		progress_make_way();
		printf("%s: ", f);
		if (byte != GGU_NO_OFFSET) printf("byte %llu: ", (unsigned long long)byte);
		printf("%s%s%s [%u]\n", w, *w ? ": " : "", t, rule);
		free(f);
		free(w);
		free(t);
	}
}
/* A defect that the reader reports; file: the name of a shard after the first. */
static void report_error(void *ctx, const struct ggu_error *err)
{
	const struct found *to = ctx;
	report(ctx, err->rule, *err->file ? err->file : to->name, err->offset, err->where, err->what);
}

/* Is the error about the bytes of the file, rather than about reading it? */
static bool is_defect(const struct ggu_error *err)
{
	return err->rule != GGU_RULE_NONE || err->code == GGU_ERR_TRUNCATED;
}

/* Reading the data failed. */
static void report_data(const struct check *c, struct found *to, struct ggu_error *err)
{
	if (!is_defect(err)) msg_die_error(c->name, err);
	err->rule = GGU_RULE_DATA;
	report_error(to, err);
}

static void check_open_file(struct check *c, struct found *to)
{
	struct ggu_error err;
	if (ggu_file_is_cut(c->f)) return;      /* what is missing would be reported again and again */
	c->sound = !to->n;
	check_metadata(c);
	if (!check_shards(c, &err)) {
		report_data(c, to, &err);
		return;
	}
	check_tokenizer(c);
	check_table(c);
	if (o.header || check_data(c, &err)) return;
	if (err.code == GGU_ERR_STATE && !c->sound) return;     /* if tensors overlap, a pipe cannot deliver them all */
	report_data(c, to, &err);
}

/* Returns EXIT_YES, EXIT_NO or EXIT_TROUBLE. */
static int check_file(const char *name, struct ggu_pool *pool, const struct out *out, json_t *all)
{
	struct found to = { name, 0, NULL };
	struct check c = { .name = name, .profile = o.profile, .pool = pool, .report = report, .ctx = &to };
	const struct ggu_open_options lenient = { .defect = report_error, .defect_ctx = &to };
	struct ggu_error err;
	if (all) to.list = json_array();
	pipe_input(name);
	if (ggu_open_path(&c.f, name, &lenient, &err)) {
		if (!is_defect(&err)) {
			msg_error(name, &err);
			json_decref(to.list);
			return EXIT_TROUBLE;
		}
		report_error(&to, &err);
	} else {
		out_refuse_sources(out, name, c.f);
		check_open_file(&c, &to);
		/* that a pipe was cut short has been reported, but not what --header left unread */
		if ((!to.n || o.header) && !ggu_file_is_cut(c.f) && pipe_rest(c.f, name, &err))
			report_data(&c, &to, &err);
		ggu_close(c.f);
	}
	if (all) {
		json_t *j = json_object();
		json_put_str(j, "file", (struct ggu_str){ name, strlen(name) });
		json_put(j, "defects", to.list);
		json_push(all, j);
	}
	return to.n ? EXIT_NO : EXIT_YES;
}

int main(int argc, char **argv)
{
	static char *standard[] = { "-", NULL };
	struct ggu_pool *pool;
	struct out *out;
	json_t *all = NULL;
	char **names;
	int worst = EXIT_YES;
	argc = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-check", "report every defect in GGUF files",
		"[--profile NAME] [--header] [--json] [-j N] [-o FILE] [FILE ...]", 0, -1 });
	names = argc ? argv : standard;
	if (!argc) argc = 1;
	if (o.json) all = json_array();
	pipe_once((const char *const *)names, argc, "two files");
	out = out_open(o.output, false);
	for (int i = 0; i < argc; i++) out_refuse_input(out, names[i]);         /* those that are no GGUF file too */
	out_take_stdout(out);
	if (!o.jobs) o.jobs = ggu_cpu_count();  /* reads files, so before the sandbox */
	sandbox_enter((const char *const *)names, argc, o.output);
	pool = msg_need(ggu_pool_new(o.jobs));
	for (int i = 0; i < argc; i++) {
		int s = check_file(names[i], pool, out, all);
		if (s > worst) worst = s;
	}
	if (all) json_print_files(all, true);
	ggu_pool_free(pool);
	out_end(out, worst != EXIT_TROUBLE);
	return worst;
}
