/* SPDX-License-Identifier: MIT
 * gguf-bench - measures how fast a model is evaluated, and the limits of the machine.
 *
 * A test is a prompt or a generation of n tokens at a depth, or, for a model without logits, a text of n tokens, whose
 * rows are all wanted. It runs --repeat times from the same state, and the median counts. What it reads and multiplies
 * comes from model_cost; divided by the limits that limits.h measures on the same threads, it says which limit binds
 * and how near the model comes. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../libgguf/pool.h"
#include "../libgguf/size.h"
#include "../libgguf/text.h"
#include "../libgguf/types.h"
#include "../model/eval/profile.h"
#include "../model/eval/session.h"
#include "../quant/quant.h"
#include "decimal.h"
#include "kv_json.h"
#include "limits.h"
#include "load.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "sandbox.h"
#include "synthetic.h"

enum { MAX_LIST = 16, MAX_REPEAT = 1000 };
struct list { size_t n, v[MAX_LIST]; };

static int parse_list(void *to, const char *text);
static struct {
	const char *model, *synthetic, *save, *output;
	struct opt_list arch_files;
	struct list prompt, generate, depth;
	int jobs, repeat;
	struct load_place place;
	struct load_cache cache;
	bool json, profile;
} o = { .prompt = { 1, { 512 } }, .depth = { 1, { 0 } }, .repeat = 5 };
static const struct opt opts[] = {
	OPT_FILE('m', "model", &o.model, "MODEL", "the GGUF file to measure"),
	OPT_STR(0, "synthetic", &o.synthetic, "SIZE,TYPE",
		"measure a random model of that size and type or recipe (1.1B,Q4_K_M)"),
	OPT_CALL(0, "prompt", &o.prompt, "N[,N...]", parse_list,
		"measure prompts of N tokens; 0: none (default: 512)"),
	OPT_CALL(0, "generate", &o.generate, "N[,N...]", parse_list,
		"measure the generation of N tokens; 0: none (default: 64)"),
	OPT_CALL(0, "depth", &o.depth, "N[,N...]", parse_list, "begin each test after N tokens (default: 0)"),
	LOAD_CACHE_OPTIONS(&o.cache, "i16"),
	OPT_INT(0, "repeat", &o.repeat, "N", 1, MAX_REPEAT, "run each test N times and take the median (default: 5)"),
	OPT_FLAG(0, "profile", &o.profile, "also show where the time goes"),
	LOAD_PLACE_OPTIONS(&o.place),
	OPT_STR(0, "save", &o.save, "FILE", "write the model of --synthetic to FILE and measure nothing"),
	OPT_ARCH_FILES(&o.arch_files),
	OPT_FLAG(0, "json", &o.json, "print JSON"),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

static int parse_list(void *to, const char *text)
{
	struct list *l = to;
	l->n = 0;
	for (const char *p = text;; p++) {
		uint64_t n;
		if (!decimal_whole(&p, &n)) return 1;
		if (n > MODEL_MAX_POS) msg_usage("'%s' has a number above %d", text, (int)MODEL_MAX_POS);
		if (l->n == MAX_LIST) msg_usage("'%s' has more than %d numbers", text, (int)MAX_LIST);
		l->v[l->n++] = (size_t)n;
		if (!*p) return 0;
		if (*p != ',') return 1;
	}
}

static const char *model_name(void) { return o.model ? o.model : o.synthetic; }

/* ---- measuring ---- */

struct test {
	bool generates;
	size_t n, depth;
	double tokens_per_s, lowest, highest;
	double gmacs, gb;               /* of weights a second, for prompts; of bytes read, for generation */
	double read_gb;                 /* limit of generation: the median of what a loop reads before each run */
	double share;                   /* of the limit that binds */
	double secs;                    /* of all runs that count */
	struct profile *profile;        /* of them */
};
struct bench {
	struct model *m;
	struct session *s;
	float *results;                 /* logits of the last token; without a head: rows of all */
	int32_t *ids;
	struct limits limits;
	struct limits_reader *reader;
	double weight_limit;            /* of products in the type that most weights have */
};

static void eval(struct bench *b, size_t from, size_t n, bool logits)
{
	struct session_eval e = { .ids = b->ids + from, .n = n, .first = n ? n - 1 : 0 };
	struct part rows = { session_state(b->s), b->ids + from, n, logits ? 0 : n };
	struct model_call c = { .part = &rows, .n_parts = 1, .rows = b->results };
	struct ggu_error err;
	enum ggu_status st;
	if (!n) return;
	if (logits) e.logits = b->results;
	st = model_has_head(b->m) ? session_eval(b->s, &e, &err) : model_eval(session_work(b->s), &c, &err);
	if (st) msg_die_error(model_name(), &err);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The median of the numbers of all runs, which it sorts */
static double median(double *v)
{
	qsort(v, (size_t)o.repeat, sizeof *v, by_value);
	return (v[o.repeat/2] + v[(o.repeat - 1)/2])/2;
}
/* The first run warms up and is not counted. The tokens up to the depth are evaluated once. */
static void measure(struct bench *b, struct test *t)
{
	struct state *state = session_state(b->s);
	struct ggu_error err;
	double secs[MAX_REPEAT], reads[MAX_REPEAT];
	session_reset(b->s);
	eval(b, 0, t->depth, false);
	if (t->depth && state_snapshot(state, &err)) msg_die_error("--depth", &err);
	for (int r = -1; r < o.repeat; r++) {
		double from;
		if (state_truncate(state, t->depth, &err)) msg_die_error("--depth", &err);
		if (t->generates && r >= 0) reads[r] = limits_reader_gb(b->reader);
		work_profile(session_work(b->s), o.profile && r >= 0 ? t->profile : NULL);
		from = limits_now();
		if (t->generates) for (size_t i = 0; i < t->n; i++) eval(b, t->depth + i, 1, true);
		else eval(b, t->depth, t->n, true);
		if (r >= 0) secs[r] = limits_now() - from;
	}
	work_profile(session_work(b->s), NULL);
	for (int r = 0; r < o.repeat; r++) t->secs += secs[r];
	if (t->generates) t->read_gb = median(reads);
	t->tokens_per_s = (double)t->n/median(secs);
	t->highest = (double)t->n/secs[0];
	t->lowest = (double)t->n/secs[o.repeat - 1];
}

/* Only the last token of a decoder's prompt needs the output matrix, and what comes after the last attention. On
 * average, generated tokens read what the middle one of them reads. */
static void compare(const struct bench *b, struct test *t)
{
	const struct state_options cache = load_cache_types(&o.cache, GGU_TYPE_I16);
	struct model_cost cost, *c = &cost;
	struct ggu_error err;
	double early = 0;
	if (model_cost(c, b->m, &cache, 0, 2*t->depth + t->n, (size_t)ggu_pool_size(model_pool(b->m)), &err))
		msg_die_error(model_name(), &err);
	if (t->generates) {
		t->gb = t->tokens_per_s*1e-9*(c->weight_bytes + c->head_bytes + c->seen_bytes);
		if (!(t->read_gb > 0)) t->read_gb = b->limits.read_gb;
		t->share = t->read_gb > 0 ? t->gb/t->read_gb : 0;
	} else {
		if (model_has_head(b->m)) early = c->wanted_macs - (c->wanted_macs + c->head_macs)/(double)t->n;
		t->gmacs = t->tokens_per_s*(c->macs - early)*1e-9;
		t->share = b->weight_limit > 0 ? t->gmacs/b->weight_limit : 0;
	}
}

/* Is the type of most weights one of blocks? */
static bool in_blocks(const struct ggu_file *f)
{
	uint64_t n[GGU_TYPE_COUNT] = { 0 }, most = 0;
	bool blocks = false;
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) {
		const struct ggu_tensor *t = ggu_file_tensor(f, i);
		n[t->type] += t->ne[0]*ggu_tensor_rows(t);
		if (n[t->type] > most) {
			most = n[t->type];
			blocks = ggu_type_info(t->type)->kind == GGU_KIND_BLOCK;
		}
	}
	return blocks;
}

static int by_time(const void *a, const void *b)
{
	const struct profile_row *x = a, *y = b;
	return (x->secs < y->secs) - (x->secs > y->secs);
}
/* Adds a row for the time between passes of the threads, in which one thread works. */
static void add_rest(struct test *t)
{
	struct profile *p = t->profile;
	struct profile_row rest = { "between passes", 0, t->secs, 0 };
	for (size_t i = 0; i < p->n; i++) rest.secs -= p->row[i].secs;
	if (p->n < PROFILE_ROWS) p->row[p->n++] = rest;
	qsort(p->row, p->n, sizeof *p->row, by_time);
}

static size_t most(const struct list *l)
{
	size_t v = 0;
	for (size_t i = 0; i < l->n; i++) v = l->v[i] > v ? l->v[i] : v;
	return v;
}

/* All tests, depth by depth; returns their number. */
static size_t run(struct bench *b, struct test *t)
{
	size_t n = 0, n_vocab = model_n_vocab(b->m), prompt = most(&o.prompt), generate = most(&o.generate);
	size_t out = model_has_head(b->m) ? model_n_logits(b->m) : size_times(prompt, model_n_embd(b->m));
	size_t ctx = most(&o.depth) + (prompt > generate ? prompt : generate);
	struct state_options cache = load_cache_types(&o.cache, GGU_TYPE_I16);
	struct ggu_error err;
	b->reader = generate ? limits_reader_new(quant_selected(), model_pool(b->m)) : NULL;
	b->results = msg_need(malloc(size_times(size_plus(out, 1), sizeof *b->results)));
	b->ids = msg_need(malloc((ctx + 1)*sizeof *b->ids));
	for (size_t i = 0; i < ctx; i++) b->ids[i] = (int32_t)((i*2654435761u >> 7)%n_vocab);
	if (session_new(&b->s, b->m, ctx ? ctx : 1, 0, &cache, &err))
		msg_die_error(model_name(), &err);
	for (size_t d = 0; d < o.depth.n; d++)
		for (size_t k = 0; k < o.prompt.n + o.generate.n; k++) {
			bool generates = k >= o.prompt.n;
			size_t length = generates ? o.generate.v[k - o.prompt.n] : o.prompt.v[k];
			t[n] = (struct test){ generates, length, o.depth.v[d] };
			if (!t[n].n) continue;
			if (o.profile) t[n].profile = msg_need(calloc(1, sizeof *t[n].profile));
			measure(b, t + n);
			compare(b, t + n);
			if (t[n].profile) add_rest(t + n);
			n++;
		}
	session_free(b->s);
	limits_reader_free(b->reader);
	free(b->results);
	free(b->ids);
	return n;
}

/* ---- telling ---- */

/* The processor's name, as far as the kernel tells it. */
static void cpu_name(char *to, size_t n)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];
	snprintf(to, n, "unknown processor");
	while (f && fgets(line, sizeof line, f)) {
		char *value = strchr(line, ':');
		if (!text_starts(line, "model name") || !value) continue;
		value += 1 + strspn(value + 1, " \t");
		value[strcspn(value, "\n")] = 0;
		snprintf(to, n, "%s", value);
		break;
	}
	if (f) fclose(f);
}

static void print_profile(const struct test *t)
{
	double per = 1e3/(double)(t->generates ? t->n*(size_t)o.repeat : (size_t)o.repeat);
	printf("\n%s %zu at depth %zu: %.3f ms%s\n", t->generates ? "generate" : "prompt", t->n, t->depth, t->secs*per,
		t->generates ? " a token" : "");
	printf("%10s %6s %8s %8s  %s\n", "ms", "share", "passes", "GMAC/s", "");
	for (size_t i = 0; i < t->profile->n; i++) {
		const struct profile_row *r = t->profile->row + i;
		printf("%10.3f %5.1f%% %8.0f ", r->secs*per, 100*r->secs/t->secs, (double)r->n_passes*per/1e3);
		if (r->macs > 0) printf("%8.1f  %s\n", r->macs/r->secs*1e-9, r->name);
		else printf("%8s  %s\n", "", r->name);
	}
}

/* A line of less than 80 columns. */
static void print_test(const struct test *t)
{
	printf("%-8s %6zu %6zu %8.2f %8.2f %8.2f %7.1f %-6s %4.0f%%", t->generates ? "generate" : "prompt", t->n,
		t->depth, t->tokens_per_s, t->lowest, t->highest, t->generates ? t->gb : t->gmacs,
		t->generates ? "GB/s" : "GMAC/s", 100*t->share);
	if (t->generates) printf(" of %.1f", t->read_gb);
	putchar('\n');
}
static void print_text(const struct bench *b, const struct test *t, size_t n, const char *cpu, int threads)
{
	const struct limits *l = &b->limits;
	char *masked = text_mask(cpu, strlen(cpu));
	printf("%s, %d thread%s, %s\n", masked, threads, text_s((uint64_t)threads), quant_selected());
	printf("limits: reads %.1f GB/s; products, GMAC/s: int16 %.0f, int8 %.0f, float %.0f",
		l->read_gb, l->int16_gmacs, l->int8_gmacs, l->f32_gmacs);
	if (l->amx_gmacs > 0) printf(", AMX %.0f", l->amx_gmacs);
	printf("\n\n%-8s %6s %6s %8s %8s %8s %20s\n",
		"", "tokens", "depth", "tokens/s", "lowest", "highest", "of limit");
	for (const struct test *x = t; x < t + n; x++)
		print_test(x);
	for (size_t i = 0; i < n && o.profile; i++) print_profile(t + i);
	free(masked);
}

/* The profile as JSON; seconds and passes are those of one run. */
static json_t *json_profile(const struct test *t)
{
	json_t *all = json_array();
	for (size_t i = 0; i < t->profile->n; i++) {
		const struct profile_row *r = t->profile->row + i;
		json_t *j = json_object();
		json_put(j, "name", json_string(r->name));
		json_put(j, "seconds", json_of_double(r->secs/o.repeat));
		json_put(j, "share", json_of_double(r->secs/t->secs));
		json_put(j, "passes", json_of_uint(r->n_passes/(uint64_t)o.repeat));
		json_put(j, "gmacs", r->macs > 0 ? json_of_double(r->macs/r->secs*1e-9) : json_null());
		json_push(all, j);
	}
	return all;
}
static json_t *json_test(const struct test *t)
{
	json_t *j = json_object();
	json_put(j, "tokens", json_of_uint(t->n));
	json_put(j, "depth", json_of_uint(t->depth));
	json_put(j, "tokens_per_s", json_of_double(t->tokens_per_s));
	json_put(j, "lowest", json_of_double(t->lowest));
	json_put(j, "highest", json_of_double(t->highest));
	json_put(j, t->generates ? "gb_per_s" : "gmacs", json_of_double(t->generates ? t->gb : t->gmacs));
	if (t->generates) json_put(j, "read_gb_per_s", json_of_double(t->read_gb));
	json_put(j, "share_of_limit", json_of_double(t->share));
	if (t->profile) json_put(j, "profile", json_profile(t));
	return j;
}
/* "prompt" and "generation" are the first of each; all are in the lists. */
static void print_json(const struct bench *b, const struct test *t, size_t n, const char *cpu, int threads)
{
	json_t *root = json_object(), *limits = json_object(), *lists[2] = { json_array(), json_array() };
	const struct { const char *key; double v; } l[] = {
		{ "read_gb_per_s", b->limits.read_gb }, { "int16_gmacs", b->limits.int16_gmacs },
		{ "int8_gmacs", b->limits.int8_gmacs }, { "f32_gmacs", b->limits.f32_gmacs },
		{ "amx_gmacs", b->limits.amx_gmacs }
	};
	for (size_t i = 0; i < sizeof l/sizeof *l; i++)
		json_put(limits, l[i].key, l[i].v > 0 ? json_of_double(l[i].v) : json_null());
	for (size_t i = 0; i < n; i++) {
		const char *key = t[i].generates ? "generation" : "prompt";
		if (!json_object_get(root, key)) json_put(root, key, json_test(t + i));
		json_push(lists[t[i].generates], json_test(t + i));
	}
	json_put(root, "prompts", lists[0]);
	json_put(root, "generations", lists[1]);
	json_put(root, "limits", limits);
	json_put(root, "cpu", json_of_str((struct ggu_str){ cpu, strlen(cpu) }));
	json_put(root, "instruction_set", json_string(quant_selected()));
	json_put(root, "threads", json_integer(threads));
	json_print(root, JSON_INDENT(1));
}

/* ---- the model ---- */

static void save(struct out *out, const void *bytes, size_t n)
{
	out_reserve(out, n);
	out_write(out, bytes, n);
	out_commit(out);
}

static struct model *open_synthetic(const void *bytes, size_t n, struct ggu_pool *pool)
{
	struct model_options options = { o.arch_files.v, o.arch_files.n, pool, NULL, load_hold(&o.place) };
	struct ggu_error err;
	struct model *m;
	if (ggu_open_memory(&options.file, bytes, n, NULL, &err) || model_open(&m, NULL, &options, &err))
		msg_die_error(o.synthetic, &err);
	return m;
}

/* Takes the default of --generate, and refuses what a model without logits cannot do. */
static void choose_tests(const struct model *m)
{
	const bool generates = model_has_head(m);
	if (!o.generate.n) o.generate = (struct list){ 1, { generates ? 64 : 0 } };
	if (!generates && most(&o.generate))
		msg_die("%s: the model has no logits: --generate is not possible", model_name());
	if (model_is_whole(m) && most(&o.depth))
		msg_die("%s: the model takes whole texts: --depth is not possible", model_name());
}

int main(int argc, char **argv)
{
	static struct test tests[MAX_LIST*2*MAX_LIST];
	struct bench b = { 0 };
	struct ggu_pool *pool;
	struct out *out;
	char cpu[128];
	void *bytes = NULL;
	size_t n_bytes = 0, n;
	opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-bench",
		"measure how fast a model is evaluated, beside the machine's limits",
		"-m MODEL | --synthetic SIZE,TYPE [--prompt N[,N...]] [--generate N[,N...]] [--depth N[,N...]] "
		"[--cache-type-k T] [--cache-type-v T] [--repeat N] "
		"[--profile] [--pin] [--mlock] [--no-mmap] [--arch-file YAML]... [--json] [-o FILE] "
		"[-j N]\n--synthetic SIZE,TYPE [-j N] --save FILE", 0, 0 });
	if (!o.model && !o.synthetic) msg_usage("no model given: use -m MODEL or --synthetic SIZE,TYPE");
	if (o.model && o.synthetic) msg_usage("-m and --synthetic cannot be combined");
	if (o.save && !o.synthetic) msg_usage("--save needs --synthetic");
	if (o.save) opt_refuse("--save, which measures nothing", "prompt generate depth cache-type-k cache-type-v "
		"repeat profile pin mlock no-mmap arch-file json output");
	cpu_name(cpu, sizeof cpu);
	out = out_open(o.save ? o.save : o.output, o.save != NULL);
	sandbox_inputs(o.arch_files.v, o.arch_files.n);
	pool = load_pool(o.jobs, o.place.pin, &o.model, 1, o.save ? o.save : o.output);
	if (o.synthetic) bytes = synthetic_make(o.synthetic, pool, &n_bytes);
	if (o.save) save(out, bytes, n_bytes);
	else {
		b.m = bytes ? open_synthetic(bytes, n_bytes, pool)
			: load_model_held(o.model, &o.arch_files, pool, load_hold(&o.place));
		load_refuse_encoder(b.m, model_name());
		choose_tests(b.m);
		if (o.model) out_refuse_sources(out, o.model, model_file(b.m));
		out_refuse_inputs(out, o.arch_files.v, o.arch_files.n);
		out_take_stdout(out);
		b.limits = limits_of(quant_selected(), pool);
		b.weight_limit = in_blocks(model_file(b.m)) ? b.limits.int16_gmacs : b.limits.f32_gmacs;
		n = run(&b, tests);
		(o.json ? print_json : print_text)(&b, tests, n, cpu, ggu_pool_size(pool));
		out_commit(out);
		model_close(b.m);
	}
	if (bytes) munmap(bytes, n_bytes);
	ggu_pool_free(pool);
	return EXIT_YES;
}
