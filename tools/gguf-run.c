/* SPDX-License-Identifier: MIT
 * gguf-run - complete a prompt: prompt in, continuation out, and nothing else on stdout. A model with an encoder
 * answers instead: the prompt goes into that, and the decoder begins with the token that the model names.
 *
 * Each token is evaluated and the next one drawn (sample.h), until one ends the text, -n of them are there, or the
 * context is full. Text is written as soon as its characters are complete. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../libgguf/grow.h"
#include "../libgguf/pool.h"
#include "../libgguf/text.h"
#include "../model/eval/sample.h"
#include "../model/eval/session.h"
#include "load.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "sandbox.h"

static struct {
	const char *model, *prompt, *output;
	struct opt_list arch_files;
	int jobs, n, top_k, ctx;
	uint64_t seed;
	double temp, top_p;
	struct load_place place;
	struct load_cache cache;
	bool ids;
} o = { .n = 128, .top_k = 40, .temp = 0.8, .top_p = 0.95 };
static const struct opt opts[] = {
	OPT_FILE('m', "model", &o.model, "MODEL", "the GGUF file to run"),
	OPT_STR('p', "prompt", &o.prompt, "PROMPT", "the prompt (default: FILE, or standard input)"),
	OPT_INT('n', "tokens", &o.n, "N", 0, MODEL_MAX_POS, "add at most N tokens (default: 128)"),
	OPT_U64(0, "seed", &o.seed, "S", 0, 1.8446744073709552e19, "seed of the random numbers (default: 0)"),
	OPT_DOUBLE(0, "temp", &o.temp, "T", 0, 100, "temperature; 0 takes the most likely token (default: 0.8)"),
	OPT_INT(0, "top-k", &o.top_k, "K", 0, 1 << 24, "draw from the K most likely tokens; 0: all (default: 40)"),
	OPT_DOUBLE(0, "top-p", &o.top_p, "P", 0, 1,
		"draw from the smallest set with total probability P (default: 0.95)"),
	OPT_INT('c', "ctx", &o.ctx, "N", 1, MODEL_MAX_POS,
		"use at most N positions (default: what prompt and -n need)"),
	LOAD_CACHE_OPTIONS(&o.cache, "i16"),
	OPT_FLAG(0, "ids", &o.ids, "print token ids instead of text"),
	OPT_ARCH_FILES(&o.arch_files),
	LOAD_PLACE_OPTIONS(&o.place),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

static char last = '\n';         /* the last byte that was printed */
static void put(const char *text, size_t n)
{
	if (!text_print(text, n) || fflush(stdout)) out_stdout_failed();
	if (n) last = text[n - 1];
}

static void show(struct detokenizer *d, int32_t id)
{
	const char *text;
	size_t n;
	char number[16] = "";
	struct ggu_error err;
	if (o.ids) {
		snprintf(number, sizeof number, "%d\n", (int)id);
		put(number, strlen(number));
		return;
	}
	if (detokenizer_add(d, id, &text, &n, &err)) msg_die_error(o.model, &err);
	put(text, n);
}

/* Passes the prompt through the encoder; what the decoder begins with replaces it. */
static void encode(struct session *s, const int32_t *prompt, size_t n_prompt)
{
	struct part source = { session_state(s), prompt, n_prompt, 0 };
	struct ggu_error err;
	if (model_encode(session_work(s), &source, 1, NULL, NULL, &err)) msg_die_error(o.model, &err);
}
static int32_t start_of(const struct model *m, const struct vocab *v)
{
	int32_t id = model_start(m) >= 0 ? model_start(m) : vocab_bos(v);
	if (id < 0) msg_die("%s: names no start token for the decoder", o.model);
	return id;
}

/* Positions of the context: what -n asks for, or --ctx, but no more than the model can have. */
static size_t context(const struct model *m, size_t n_prompt)
{
	size_t n = o.ctx ? (size_t)o.ctx : n_prompt + (size_t)o.n, most = model_n_positions(m);
	if (n > most) n = most;
	if (n_prompt > n)
		msg_die("the prompt has %zu tokens, more than the context of %zu position%s", n_prompt, n, text_s(n));
	load_tell_context(m, o.model, n < n_prompt + (size_t)o.n ? n : n_prompt + (size_t)o.n);
	return n;
}

/* Returns the positions of the context if they were too few for the text, else 0. */
static size_t generate(struct model *m, const struct vocab *v, struct detokenizer *d, const int32_t *source,
	size_t n_source)
{
	bool encoder = model_has_encoder(m);
	int32_t start = encoder ? start_of(m, v) : -1;
	const int32_t *prompt = encoder ? &start : source;
	size_t n_prompt = encoder ? 1 : n_source;
	size_t ctx = context(m, n_prompt), n_logits = model_n_logits(m), full = 0;
	float *logits = msg_need(malloc(n_logits*sizeof *logits));
	int32_t *order = msg_need(malloc(n_logits*sizeof *order)), id;
	struct sampler sampler = { o.temp, o.top_p, (size_t)o.top_k, 0 };
	struct session_eval e = { .ids = prompt, .n = n_prompt, .logits = logits, .first = n_prompt - 1 };
	struct state_options cache = load_cache_types(&o.cache, GGU_TYPE_I16);
	struct session *s;
	struct ggu_error err;
	sampler_seed(&sampler, o.seed);
	if (session_new(&s, m, ctx, 0, &cache, &err)) msg_die_error(o.model, &err);
	if (encoder) encode(s, source, n_source);
	for (int i = 0; i < o.n && !full; i++) {
		if (session_eval(s, &e, &err)) msg_die_error(o.model, &err);
		id = sampler_next(&sampler, logits, n_logits, order);
		/* a NaN is drawn only if there is nothing else */
		if (isnan(logits[id]))
			msg_die("%s: the logits at position %zu are not numbers", o.model, session_pos(s) - 1);
		if (vocab_is_end(v, id)) break;
		show(d, id);
		if (session_pos(s) == ctx && i + 1 < o.n) full = ctx;
		e = (struct session_eval){ .ids = &id, .n = 1, .logits = logits };
	}
	session_free(s);
	free(logits);
	free(order);
	return full;
}

/* The prompt's tokens, at least one. Those for an encoder end as the vocabulary ends a text. */
static size_t read_prompt(const struct model *m, const struct vocab *v, struct tokenizer *t, const char *file,
	int32_t **ids)
{
	unsigned flags = TOKENIZE_BOS | TOKENIZE_SPECIAL | (model_has_encoder(m) ? TOKENIZE_EOS : 0);
	size_t n = 0, bytes;
	char *text = o.prompt ? NULL : load_text(file, LOAD_SMALL, &bytes);
	struct ggu_error err;
	if (o.prompt) bytes = strlen(o.prompt);
	if (tokenizer_encode(t, text ? text : o.prompt, bytes, flags, ids, &n, &err))
		msg_die_error(file ? file : "prompt", &err);
	free(text);
	if (!n && vocab_bos(v) >= 0) {
		*ids = msg_need(ggu_grow(*ids, 0, sizeof **ids));
		(*ids)[n++] = vocab_bos(v);
	}
	if (!n) msg_die("the prompt is empty, and the model has no token to begin with");
	return n;
}

int main(int argc, char **argv)
{
	int operands = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-run", "complete a prompt",
		"-m MODEL [-p PROMPT] [-n N] [--seed S] [--temp T] [--top-k K] [--top-p P] [--ctx N] "
		"[--cache-type-k T] [--cache-type-v T] [--ids] [--pin] [--mlock] [--no-mmap] [--arch-file YAML]... "
		"[-o FILE] [-j N] [FILE]", 0, 1 });
	if (o.prompt && operands) msg_usage("two prompts given: -p and FILE");
	struct out *out = out_open(o.output, false);
	sandbox_inputs(o.arch_files.v, o.arch_files.n);
	struct ggu_pool *pool = load_pool(o.jobs, o.place.pin,
		(const char *[]){ o.model, operands ? argv[0] : NULL }, 2, o.output);
	struct model *m = load_model_held(o.model, &o.arch_files, pool, load_hold(&o.place));
	struct vocab *v;
	struct tokenizer *t;
	struct detokenizer *d;
	struct ggu_error err;
	int32_t *ids = NULL;
	size_t n, bytes, full;
	const char *rest;
	out_refuse_sources(out, o.model, model_file(m));
	out_refuse_inputs(out, o.arch_files.v, o.arch_files.n);
	if (!o.prompt) out_refuse_input(out, operands ? argv[0] : "-");
	load_tokenizer(m, o.model, &v, &t);
	n = read_prompt(m, v, t, operands ? argv[0] : NULL, &ids);
	if (detokenizer_new(&d, t, &err)) msg_die_error(o.model, &err);
	/* a continuation follows the prompt's text, which may end within a character */
	for (size_t i = 0; !o.ids && !model_has_encoder(m) && i < n; i++)
		if (detokenizer_add(d, ids[i], &rest, &bytes, &err)) msg_die_error(o.model, &err);
	detokenizer_end(d, &rest, &bytes);
	out_take_stdout(out);
	full = generate(m, v, d, ids, n);
	if (!o.ids) {
		detokenizer_end(d, &rest, &bytes);
		put(rest, bytes);
	}
	/* so that the shell's prompt begins on a line of its own */
	if (last != '\n' && isatty(STDOUT_FILENO)) put("\n", 1);
	if (full) msg_note("the context of %zu position%s is full", full, text_s(full));
	out_commit(out);
	detokenizer_free(d);
	tokenizer_free(t);
	vocab_free(v);
	free(ids);
	model_close(m);
	ggu_pool_free(pool);
	return EXIT_YES;
}
