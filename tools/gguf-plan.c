/* SPDX-License-Identifier: MIT
 * gguf-plan - chooses the type of each tensor, as a text to be edited and given to gguf-quantize.
 *
 * For a recipe, it writes the recipe's types. For a size, each tensor is tried in every type that its rows fit
 * (plan_measure.h), and the types with the least total error are chosen (plan_choose.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/size.h"
#include "../libgguf/types.h"
#include "../quant/quant.h"
#include "../quant/remake.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "plan_choose.h"
#include "remake_run.h"
#include "sandbox.h"
#include "typeplan.h"

static struct {
	const char *imatrix, *output, *types;
	struct typeplan_given given;
	bool kld;
	double bpw;
	uint64_t size;
	int effort, jobs;
} o = { .effort = 3 };
static const struct opt opts[] = {
	OPT_FILE('i', "imatrix", &o.imatrix, "FILE",
		"weight errors by this importance matrix; allow types that need one"),
	OPT_DOUBLE(0, "bpw", &o.bpw, "X", 0.1, 64, "choose the best types for X bits per weight"),
	OPT_SIZE(0, "size", &o.size, "SIZE", "choose the best types for a file of SIZE bytes; 500M, 4G, 4Gi"),
	OPT_FLAG(0, "kld", &o.kld, "weight each layer by what it adds to the residual stream; needs -i"),
	OPT_STR(0, "types", &o.types, "LIST", "choose among these types only, separated by commas"),
	OPT_INT(0, "effort", &o.effort, "N", QUANT_EFFORT_MIN, QUANT_EFFORT_MAX,
		"how hard to search when errors are measured, 1 to 9 (default: 3)"),
	TYPEPLAN_OPTIONS(&o.given),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

enum { SAMPLE = 1 << 16, KEYS = 4096 };    /* KEYS: bytes of what gguf-quantize adds to the metadata, at most */

struct plan {
	struct ggu_file *f;
	const char *name;
	size_t n;
	const struct ggu_tensor **t;            /* in the order of their data */
	struct recipe_choice *choice;           /* what a recipe, or the wishes, say */
	struct plan_tensor *list;               /* for a size: the same tensors */
	struct imatrix *im;
};

/* ---- for a size ---- */

/* The options that are worth trying: for each size the best of its kind. */
static const uint32_t usual[] = {
	GGU_TYPE_IQ1_S, GGU_TYPE_IQ1_M, GGU_TYPE_IQ2_XXS, GGU_TYPE_IQ2_XS, GGU_TYPE_IQ2_S, GGU_TYPE_Q2_K,
		GGU_TYPE_IQ3_XXS, GGU_TYPE_IQ3_S,
	GGU_TYPE_Q3_K, GGU_TYPE_IQ4_XS, GGU_TYPE_IQ4_NL, GGU_TYPE_Q4_K, GGU_TYPE_Q4_1, GGU_TYPE_Q5_0, GGU_TYPE_Q5_K,
		GGU_TYPE_Q5_1,
	GGU_TYPE_Q6_K, GGU_TYPE_Q8_0,
};
static bool listed[GGU_TYPE_COUNT];

static void choose_types(void)
{
	if (!o.types) {
		for (size_t i = 0; i < sizeof usual/sizeof *usual; i++) listed[usual[i]] = true;
		return;
	}
	for (const char *at = o.types, *end; at; at = *end ? end + 1 : NULL) {
		char *name = msg_need(strndup(at, strcspn(at, ",")));
		listed[typeplan_type("--types", name)] = true;
		end = at + strlen(name);
		free(name);
	}
}

static bool may_be(const struct plan *p, const struct ggu_tensor *t, uint32_t type)
{
	uint64_t unused;
	if (!listed[type] || type == t->type || !quant_can_encode(type) || !ggu_type_bytes(type, t->ne[0], &unused))
		return false;
	return !quant_needs_importance(type) ||
		(p->im && (imatrix_find(p->im, t->name) || recipe_needs_no_importance(t->name)));
}

/* How much of the size a tensor takes: padding after it counts in the size of a file, not in an average. */
static uint64_t taken(const struct plan *p, const struct ggu_tensor *t, uint32_t type)
{
	uint64_t bytes = 0, align = o.size ? ggu_file_alignment(p->f, 0) : 1;
	ggu_type_bytes(type, t->ne[0]*ggu_tensor_rows(t), &bytes);
	return size_aligned(bytes, align);
}

/* The types that a tensor may have. If a recipe would leave it alone, or the user has fixed its type, there is one. */
static void list_options(const struct plan *p, size_t i)
{
	struct plan_tensor *to = p->list + i;
	const struct ggu_tensor *t = p->t[i];
	bool fixed = p->choice[i].reason == RECIPE_OVERRIDE;
	uint32_t first = fixed ? p->choice[i].type : t->type;
	*to = (struct plan_tensor){ .t = t, .weight = 1 };
	to->option = msg_need(calloc(GGU_TYPE_COUNT + 1, sizeof *to->option));
	to->option[to->n++] = (struct plan_option){ first, taken(p, t, first), 0 };
	if (fixed || p->choice[i].reason == RECIPE_LEFT_ALONE || !quant_can_decode(t->type)) return;
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		if (!may_be(p, t, type) || taken(p, t, type) >= to->option[0].bytes) continue;
		to->option[to->n++] = (struct plan_option){ type, taken(p, t, type), 0 };
	}
}

/* Bytes of the header if all tensors are in one file */
static uint64_t header_bytes(const struct plan *p)
{
	struct ggu_writer *w;
	struct ggu_error err;
	uint64_t bytes;
	if (ggu_writer_new(&w, ggu_file_meta(p->f), &err)) msg_die_error(p->name, &err);
	for (size_t i = 0; i < p->n; i++)
		if (ggu_writer_add(w, p->t[i]->name, p->t[i]->n_dims, p->t[i]->ne, p->t[i]->type, &err))
			msg_die_error(p->name, &err);
	bytes = ggu_writer_header_bytes(w);
	ggu_writer_free(w);
	return bytes;
}
/* How many bytes the tensors may take; refuses what no choice of types reaches. */
static uint64_t budget(const struct plan *p)
{
	const char *which = p->im ? "that fit" : "that fit without an importance matrix";
	uint64_t weights = 0, rest = o.size ? header_bytes(p) + KEYS : 0, least = plan_least(p->list, p->n), most;
	for (size_t i = 0; i < p->n; i++) weights += p->t[i]->ne[0]*ggu_tensor_rows(p->t[i]);
	if (o.size && o.size < rest + least)
		msg_die("%s: the smallest types %s need --size %llu, of which metadata takes %llu", msg_name(p->name),
			which, (unsigned long long)(rest + least), (unsigned long long)rest);
	if (o.size) return o.size - rest;
	most = (uint64_t)(o.bpw*(double)weights/8);
	if (most < least)
		msg_die("%s: the smallest types %s need --bpw %.4f", msg_name(p->name), which,
			ceil(8e4*(double)least/(double)weights)/1e4);
	return most;
}

static void for_size(struct plan *p, struct ggu_pool *pool)
{
	const struct plan_trials how = { p->f, p->name, p->im, SAMPLE, o.effort };
	uint64_t most;
	choose_types();
	p->list = msg_need(calloc(p->n + 1, sizeof *p->list));
	for (size_t i = 0; i < p->n; i++) list_options(p, i);
	most = budget(p);
	plan_measure(p->list, p->n, &how, pool);
	plan_weigh(p->list, p->n, o.kld);
	plan_choose(p->list, p->n, most);
}

/* ---- the text ---- */

/* A string as YAML reads it between double quotes; see typeplan.h for bytes that are not UTF-8. */
static void print_name(const char *s)
{
	size_t left = strlen(s), len;
	uint32_t c;
	bool fit;
	putchar('"');
	for (; left; s += len, left -= len) {
		len = text_character(s, left, &c, &fit);
		if (fit) printf("%s%.*s", c == '"' || c == '\\' ? "\\" : "", (int)len, s);
		else printf(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
		len += !len;
	}
	putchar('"');
}
static void print_plan(const struct plan *p)
{
	uint64_t bytes = 0, weights = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct ggu_tensor *t = p->t[i];
		const struct plan_option *chosen = p->list ? p->list[i].option + p->list[i].chosen : NULL;
		uint32_t type = chosen ? chosen->type : p->choice[i].type;
		uint64_t size = 0;
		ggu_type_bytes(type, t->ne[0]*ggu_tensor_rows(t), &size);
		bytes += size;
		weights += t->ne[0]*ggu_tensor_rows(t);
		printf("- {tensor: ");
		print_name(t->name);
		printf(", shape: [");
		for (uint32_t d = 0; d < t->n_dims; d++) printf("%s%llu", d ? ", " : "", (unsigned long long)t->ne[d]);
		printf("], type: %s, bytes: %llu", ggu_type_info(type)->name, (unsigned long long)size);
		if (chosen && p->list[i].n > 1) printf(", error: %.4g", sqrt(chosen->error));
		printf("}\n");
	}
	if (!p->n) printf("[]\n");      /* a comment alone would be no list */
	printf("# %s of tensors, %.4f bits per weight\n", msg_bytes(bytes),
		weights ? 8*(double)bytes/(double)weights : 0);
}

/* Refuses a matrix of another model, as gguf-quantize will: checks it as if every tensor got a type for which it is
 * used. */
static void check_matrix(const struct plan *p, const char *path)
{
	const struct ggu_importance importance = imatrix_importances(p->im);
	struct recipe_choice *to = msg_need(calloc(p->n + 1, sizeof *to));
	struct remake re = { .t = p->t, .n = p->n, .choice = to, .importance = &importance };
	uint64_t unused;
	for (size_t i = 0; i < p->n; i++) {
		uint32_t own = p->t[i]->type, other = own == GGU_TYPE_Q4_0 ? GGU_TYPE_Q4_1 : GGU_TYPE_Q4_0;
		bool may = p->choice[i].reason != RECIPE_LEFT_ALONE && quant_can_decode(own)
			&& ggu_type_bytes(other, p->t[i]->ne[0], &unused);
		to[i].type = may ? other : own;
	}
	remake_run_check(&re, NULL, p->name, path);
	free(to);
}

/* RECIPE MODEL in either order, or MODEL if a size is given; then the model may have the name of a recipe. */
static const struct recipe *operands(int n, char **v, const char **model)
{
	const struct recipe *recipe = NULL, *r;
	const bool sized = o.bpw > 0 || o.size;
	*model = NULL;
	for (int i = 0; i < n; i++) {
		r = recipe || (sized && n == 1) ? NULL : recipe_find(v[i]);
		if (r) recipe = r;
		else if (!*model) *model = v[i];
		else if (recipe || sized) msg_usage("two models given: %s and %s", *model, v[i]);
		else typeplan_no_recipe((const char *const *)v, n);
	}
	if (!*model) *model = "-";
	return recipe;
}

static void check_options(const struct recipe *r)
{
	int ways = (r != NULL) + (o.bpw > 0) + (o.size > 0);
	if (!ways) {
		typeplan_list_recipes();
		msg_usage("give --bpw X, --size SIZE or a recipe");
	}
	if (ways > 1) msg_usage("a recipe, --bpw and --size cannot be combined");
	if (r) opt_refuse("a recipe, for which no errors are measured", "kld types effort");
	if (!r && o.given.pure) msg_usage("--pure needs a recipe");
	if (o.given.leave_output) opt_refuse("--leave-output-tensor", "output-tensor-type");
	if (o.kld && !o.imatrix) msg_usage("--kld needs an importance matrix: -i FILE");
}

int main(int argc, char **argv)
{
	struct plan p = { 0 };
	struct typeplan_options wishes;
	const struct recipe *recipe;
	struct ggu_pool *pool;
	struct ggu_error err;
	struct out *out;
	argc = opt_parse(argc, argv, opts,
		&(struct opt_program){ "gguf-plan", "choose the type of each tensor, for a recipe or a size",
		"[-i FILE] [--pure] [--tensor-type REGEX=T]... [--output-tensor-type T] [--token-embedding-type T] "
		"[--leave-output-tensor] [-o FILE] RECIPE [MODEL]\n"
		"[-i FILE] [--kld] [--types LIST] [--effort N] [--tensor-type REGEX=T]... [--output-tensor-type T] "
		"[--token-embedding-type T] "
		"[--leave-output-tensor] [-j N] [-o FILE] --bpw X|--size SIZE [MODEL]", 0, 2 });
	recipe = operands(argc, argv, &p.name);
	check_options(recipe);
	pipe_once((const char *[]){ o.imatrix, p.name }, 2, "the importance matrix and the model");
	pipe_input(p.name);
	out = out_open(o.output, false);
	out_refuse_input(out, o.imatrix);
	out_take_stdout(out);
	if (!o.jobs) o.jobs = ggu_cpu_count();  /* reads files, so before the sandbox */
	sandbox_enter((const char *[]){ p.name, o.imatrix }, 2, o.output);
	pool = msg_need(ggu_pool_new(o.jobs));
	if (o.imatrix && imatrix_read(&p.im, o.imatrix, &err)) msg_die_error(o.imatrix, &err);
	if (ggu_open(&p.f, p.name, &err)) msg_die_error(p.name, &err);
	out_refuse_sources(out, p.name, p.f);
	if (!recipe && !ggu_file_seekable(p.f))
		msg_die("errors cannot be measured through a pipe: the model must be a file");
	p.n = ggu_file_n_tensors(p.f);
	p.t = msg_need(calloc(p.n + 1, sizeof *p.t));
	p.choice = msg_need(calloc(p.n + 1, sizeof *p.choice));
	for (size_t i = 0; i < p.n; i++) p.t[i] = ggu_file_in_data_order(p.f, i);
	wishes = (struct typeplan_options){ .given = o.given,
		.recipe = { .pure = !recipe, .have_importance = p.im != NULL, .need_nothing = true } };
	typeplan_choose(&wishes, recipe ? recipe : recipe_find("Q8_0"), p.name, ggu_file_meta(p.f), p.t, p.n, p.choice);
	if (p.im) check_matrix(&p, o.imatrix);
	if (!recipe) for_size(&p, pool);
	print_plan(&p);
	for (size_t i = 0; p.list && i < p.n; i++) free(p.list[i].option);
	free(p.list);
	free(p.t);
	free(p.choice);
	imatrix_free(p.im);
	pipe_drain(p.f, p.name);
	ggu_close(p.f);
	ggu_pool_free(pool);
	out_commit(out);
	return EXIT_YES;
}
