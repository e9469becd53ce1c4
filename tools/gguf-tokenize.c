/* SPDX-License-Identifier: MIT
 * gguf-tokenize - text to token ids and back, with the vocabulary of a GGUF or of a checkpoint folder.
 *
 * Text is one input and its ids a line; with --json an array of texts becomes an array of arrays of ids. --decode goes
 * the other way. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../model/util/file.h"
#include "hub.h"
#include "kv_json.h"
#include "load.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "sandbox.h"

static struct { const char *model, *output; bool no_bos, no_special, json, decode; int jobs; } o;
static const struct opt opts[] = {
	OPT_FILE('m', "model", &o.model, "MODEL|DIR", "a GGUF file, or the folder of a checkpoint"),
	OPT_FLAG(0, "no-bos", &o.no_bos, "add no token at the beginning or end"),
	OPT_FLAG(0, "no-special", &o.no_special, "treat special tokens in the text as plain text"),
	OPT_FLAG(0, "json", &o.json, "read a JSON array of strings, write an array of arrays of ids"),
	OPT_FLAG(0, "decode", &o.decode, "convert ids to text"),
	OPT_ONE_JOB(&o.jobs),
	OPT_OUTPUT(&o.output),
	OPT_COMMON, OPT_END
};

/* Its files must not be replaced by the output. */
static struct vocab *open_vocab(const struct out *out)
{
	struct ggu_error err;
	struct ggu_file *f;
	struct vocab *v;
	struct stat st;
	enum ggu_status s;
	if (!stat(o.model, &st) && S_ISDIR(st.st_mode)) {
		struct vocab_hints h = { .n_vocab = -1 };
		for (const char *const *name = vocab_file_names; *name; name++) {
			char *path = msg_need(file_path(o.model, *name));
			out_refuse_input(out, path);
			free(path);
		}
		s = vocab_from_dir(&v, o.model, &h, &err);
	} else {
		if (ggu_open(&f, o.model, &err)) msg_die_error(o.model, &err);
		out_refuse_sources(out, o.model, f);
		s = vocab_from_meta(&v, ggu_file_meta(f), &err);
		/* of shards, the one with the metadata */
		if (s) msg_die_error(ggu_file_source_name(f, 0), &err);
		ggu_close(f);
	}
	if (s) msg_die_error(o.model, &err);
	return v;
}

static unsigned flags(void)
{
	return (o.no_bos ? 0 : TOKENIZE_BOS | TOKENIZE_EOS) | (o.no_special ? 0 : TOKENIZE_SPECIAL);
}

static void encode_text(struct tokenizer *t, const char *name, const char *text, size_t n)
{
	int32_t *ids = NULL;
	size_t count = 0;
	struct ggu_error err;
	if (tokenizer_encode(t, text, n, flags(), &ids, &count, &err)) msg_die_error(name, &err);
	for (size_t i = 0; i < count; i++) printf(i ? " %d" : "%d", (int)ids[i]);
	putchar('\n');
	free(ids);
}

static json_t *parse(const char *name, const char *text, size_t n)
{
	struct ggu_error err;
	json_t *j;
	if (file_json_decode(text, n, "", 0, JSON_ALLOW_NUL, &j, &err)) msg_die_error(name, &err);
	if (!json_is_array(j)) msg_die("%s: not a JSON array", name);
	return j;
}

static void encode_json(struct tokenizer *t, const char *name, const char *text, size_t n)
{
	json_t *in = parse(name, text, n), *out = json_array(), *s;
	int32_t *ids = NULL;
	size_t i;
	struct ggu_error err;
	json_array_foreach(in, i, s) {
		json_t *row = json_array();
		size_t count = 0;
		if (!json_is_string(s)) msg_die("%s: item %zu is not a string", name, i);
		if (tokenizer_encode(t, json_string_value(s), json_string_length(s), flags(), &ids, &count, &err))
			msg_die_error(name, &err);
		for (size_t k = 0; k < count; k++) json_push(row, json_integer(ids[k]));
		json_push(out, row);
	}
	json_print(out, JSON_COMPACT);
	json_decref(in);
	free(ids);
}

/* JSON cannot represent bytes that are not UTF-8: they become the nearest string, with the bytes beside it. */
static json_t *json_text(struct ggu_str text)
{
	json_t *s = json_of_str(text), *raw = json_raw(text), *both;
	if (!raw) return s;
	both = json_object();
	json_put(both, "text", s);
	json_put(both, "raw", raw);
	return both;
}

static char *decode(struct tokenizer *t, const char *name, const int32_t *ids, size_t n, size_t *bytes)
{
	struct ggu_error err;
	char *text;
	if (tokenizer_decode(t, ids, n, true, &text, bytes, &err)) msg_die_error(name, &err);
	return text;
}

static int32_t json_id(const char *name, const json_t *x, size_t item, size_t n_vocab)
{
	json_int_t v = json_is_integer(x) ? json_integer_value(x) : -1;
	if (v < 0) msg_die("%s: item %zu contains something that is not a token id", name, item);
	if ((unsigned long long)v >= n_vocab)
		msg_die("%s: item %zu: token %lld is not in the vocabulary of %zu", name, item, (long long)v, n_vocab);
	return (int32_t)v;
}

/* ids: room for as many as the text can hold */
static void decode_json(struct tokenizer *t, const char *name, const char *text, size_t n, int32_t *ids, size_t n_vocab)
{
	json_t *in = parse(name, text, n), *out = json_array(), *row, *x;
	size_t i, k, bytes;
	json_array_foreach(in, i, row) {
		char *s;
		if (!json_is_array(row)) msg_die("%s: item %zu is not an array of ids", name, i);
		json_array_foreach(row, k, x) ids[k] = json_id(name, x, i, n_vocab);
		s = decode(t, name, ids, json_array_size(row), &bytes);
		json_push(out, json_text((struct ggu_str){ s, bytes }));
		free(s);
	}
	json_print(out, JSON_COMPACT);
	json_decref(in);
}

static void decode_text(struct tokenizer *t, const char *name, const char *text, size_t n, int32_t *ids, size_t n_vocab)
{
	size_t count = 0, bytes;
	char *s;
	if (strlen(text) != n) msg_die("%s: byte %zu: NUL in a list of ids", name, strlen(text));
	for (const char *p = text; load_id(name, text, &p, true, n_vocab, ids + count); ) count++;
	s = decode(t, name, ids, count, &bytes);
	if (!text_print(s, bytes)) out_stdout_failed();
	free(s);
}

int main(int argc, char **argv)
{
	int n = opt_parse(argc, argv, opts, &(struct opt_program){ "gguf-tokenize",
		"convert text to token ids and back",
		"-m MODEL|DIR [--no-bos] [--no-special] [--json] [--decode] [-j N] [-o FILE] [TEXT]", 0, 1 });
	const char *name = msg_name(n ? argv[0] : NULL);
	struct vocab *v;
	struct tokenizer *t;
	struct ggu_error err;
	struct out *out = out_open(o.output, false);
	size_t bytes;
	char *text;
	if (!o.model) msg_usage("no vocabulary given: use -m MODEL");
	pipe_once((const char *[]){ o.model, n ? argv[0] : "-" }, 2, "the model and the text");
	o.model = hub_folder(o.model);
	sandbox_enter((const char *[]){ o.model, n ? argv[0] : NULL }, 2, o.output);
	out_refuse_input(out, n ? argv[0] : "-");
	v = open_vocab(out);
	if (tokenizer_new(&t, v, &err)) msg_die_error(o.model, &err);
	text = load_text(n ? argv[0] : NULL, LOAD_TEXT, &bytes);
	out_take_stdout(out);
	if (o.decode) {
		int32_t *ids = msg_need(malloc((bytes/2 + 2)*sizeof *ids));
		(o.json ? decode_json : decode_text)(t, name, text, bytes, ids, vocab_count(v));
		free(ids);
	} else if (o.json) encode_json(t, name, text, bytes);
	else encode_text(t, name, text, bytes);
	out_commit(out);
	free(text);
	tokenizer_free(t);
	vocab_free(v);
	return EXIT_YES;
}
