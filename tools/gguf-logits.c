/* SPDX-License-Identifier: MIT
 * gguf-logits - token ids in, float32 logits out.
 *
 * A line of input is a sequence; sequences are independent. Per token a row of n_vocab float32, little-endian;
 * with --hidden the residual stream instead, [n_layer+1][token][n_embd] for each sequence. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "load.h"
#include "msg.h"
#include "opt.h"
#include "out.h"

static struct { const char *model, *arch_file, *output; int jobs, batch, ctx; bool hidden; } o;
static const struct opt opts[] = {
	OPT_STR('m', "model", &o.model, "MODEL", "the GGUF file to evaluate"),
	OPT_FLAG(0, "hidden", &o.hidden, "write the residual stream instead of logits"),
	OPT_INT(0, "batch", &o.batch, "N", 1, 1 << 20, "tokens computed at once (default: 512); does not change the result"),
	OPT_STR(0, "arch-file", &o.arch_file, "YAML", "also know the architecture described in YAML"),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* The ids of the line at *p, which then stands at its end, into *ids; returns their number. */
static size_t parse_line(const char *file, const char *text, const char **p, size_t n_vocab, int32_t **ids, size_t *cap)
{
	int32_t id;
	size_t n = 0;
	for (; load_id(file, text, p, false, n_vocab, &id); (*ids)[n++] = id)
		if (n == *cap) {
			*cap = *cap ? 2**cap : 256;
			*ids = realloc(*ids, *cap*sizeof **ids);
			if (!*ids) msg_die("out of memory");
		}
	return n;
}

static void run(struct model *m, const int32_t *ids, size_t n, FILE *to)
{
	size_t width = o.hidden ? (model_n_layer(m) + 1)*model_n_embd(m) : model_n_vocab(m);
	float *rows = width <= SIZE_MAX/sizeof(float)/n ? malloc(n*width*sizeof *rows) : NULL;
	struct session_eval e = { .ids = ids, .n = n };
	struct session *s;
	struct ggu_error err;
	if (!rows) msg_die("out of memory for %zu rows", n);
	*(o.hidden ? &e.hidden : &e.logits) = rows;
	if (session_new(&s, m, n, (size_t)o.batch, &err) || session_eval(s, &e, &err)) msg_die_error(o.model, &err);
	if (fwrite(rows, sizeof *rows*width, n, to) != n) msg_die("cannot write: %s", strerror(errno));
	session_free(s);
	free(rows);
}

int main(int argc, char **argv)
{
	int n = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-logits", "evaluate token ids to logits",
		"-m MODEL [--hidden] [--batch N] [--arch-file YAML] [-o FILE] [-j N] [IDS]", 0, 1 });
	const char *file = n ? argv[0] : "(stdin)";
	size_t bytes, cap = 0;
	int32_t *ids = NULL;
	struct ggu_pool *pool = load_pool(o.jobs, (const char *[]){ o.model, o.arch_file, n ? file : NULL }, 3, o.output);
	struct model *m = load_model(o.model, o.arch_file, pool);
	struct out *out = out_open(o.output, true);
	char *text = load_text(n ? argv[0] : NULL, &bytes);
	FILE *to;
	out_refuse_sources(out, o.model, model_file(m));
	out_refuse_input(out, o.arch_file);
	out_refuse_input(out, n ? argv[0] : "-");
	to = out_fd(out) == 1 ? stdout : fdopen(out_fd(out), "wb");
	if (!to) msg_die("%s: %s", o.output, strerror(errno));
	if (strlen(text) != bytes) msg_die("%s: byte %zu: NUL in a list of ids", file, strlen(text));
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t k = parse_line(file, text, &p, model_n_vocab(m), &ids, &cap);
		if (k) run(m, ids, k, to);
	}
	if (fflush(to)) msg_die("cannot write: %s", strerror(errno));
	out_commit(out);
	free(ids);
	free(text);
	model_close(m);
	ggu_pool_free(pool);
	return EXIT_YES;
}
