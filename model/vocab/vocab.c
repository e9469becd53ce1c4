/* SPDX-License-Identifier: MIT
 * vocab.c - the vocabulary object: memory, look-ups, the folder's entry point.
 *
 * Which file of a folder counts, after llama.cpp's converter: tokenizer.model or spiece.model, if there is one, gives
 * tokens and scores; else a tokenizer.json with byte fallback gives a score-less "llama" vocabulary; else
 * tokenizer.json, or vocab.json with merges.txt, gives byte-level BPE; vocab.txt gives WordPiece. The ids of a text
 * follow tokenizer.json wherever there is one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "../util/file.h"
#include "pretok.h"
#include "vocab_internal.h"

/* Names of special tokens in tokenizer_config.json ("bos_token") and config.json ("bos_token_id"), and their keys.
 * "seperator" is spelt so in the format. */
const struct vocab_special_name vocab_special_names[VOCAB_N_SPECIAL] = {
	{ "bos", "tokenizer.ggml.bos_token_id" }, { "eos", "tokenizer.ggml.eos_token_id" },
	{ "unk", "tokenizer.ggml.unknown_token_id" }, { "sep", "tokenizer.ggml.seperator_token_id" },
	{ "pad", "tokenizer.ggml.padding_token_id" }, { "mask", "tokenizer.ggml.mask_token_id" },
	{ "eot", "tokenizer.ggml.eot_token_id" }, { "eom", "tokenizer.ggml.eom_token_id" },
};

void *vocab_alloc(struct vocab *v, size_t bytes) { return ggu_arena_zeros(&v->arena, bytes); }

struct ggu_str vocab_copy(struct vocab *v, const char *p, size_t n)
{
	char *to = ggu_arena_str(&v->arena, p, n);
	return (struct ggu_str){ to, to ? n : 0 };
}

struct vocab *vocab_new(void)
{
	struct vocab *v = calloc(1, sizeof *v);
	if (!v) return NULL;
	for (int i = 0; i < VOCAB_N_SPECIAL; i++) v->special[i] = -1;
	for (int i = 0; i <= VOCAB_SEP; i++) v->add[i] = -1;
	v->add_space_prefix = v->remove_extra = v->lowercase = -1;
	v->model = "gpt2";
	v->pipeline = json_object();
	if (!v->pipeline) { free(v); return NULL; }
	return v;
}

void vocab_free(struct vocab *v)
{
	if (!v) return;
	ggu_arena_free(&v->arena);
	json_decref(v->pipeline);
	free(v);
}

enum ggu_status vocab_size(struct vocab *v, size_t n, bool scores, float score, struct ggu_error *err)
{
	if (n > VOCAB_MOST)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "vocab_size", "%zu tokens are too many", n);
	v->tokens = vocab_alloc(v, n*sizeof *v->tokens);
	v->types = vocab_alloc(v, n*sizeof *v->types);
	if (scores) v->scores = vocab_alloc(v, n*sizeof *v->scores);
	if (!v->tokens || !v->types || (scores && !v->scores)) goto nomem;
	for (size_t i = 0; i < n; i++) {
		char text[32];
		v->tokens[i] = vocab_copy(v, text, (size_t)snprintf(text, sizeof text, "[PAD%zu]", i));
		if (!v->tokens[i].p) goto nomem;
		v->types[i] = VOCAB_UNUSED;
		if (scores) v->scores[i] = score;
	}
	v->n = n;
	v->has_scores = scores;
	return GGU_OK;
nomem:
	return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "not enough memory for %zu tokens", n);
}

void vocab_set_special(struct vocab *v, enum vocab_special which, int64_t id)
{
	if (id < 0 || (uint64_t)id >= v->n || v->special[which] >= 0) return;
	v->special[which] = (int32_t)id;
	v->special_order[v->n_special_order++] = (uint8_t)which;
}

void vocab_set_add(struct vocab *v, enum vocab_special which, bool on)
{
	if (v->add[which] < 0) v->add_order[v->n_add_order++] = (uint8_t)which;
	v->add[which] = on;
}

/* ---- tokens that hold NUL ----
 *
 * Tokens are keys in tokenizer.json and vocab.json, and a few vocabularies have one for NUL. jansson can keep such a
 * key but not read it, so it is read with a character that no text has in its place. */
#define STAND_IN "\xef\xb7\x90"         /* U+FDD0 */
static const char tokenizer_file[] = "tokenizer.json", vocab_file[] = "vocab.json";
static const char nul_escape[] = "\\u0000", stand_in_escape[] = "\\ufdd0";
enum { ESCAPE_BYTES = sizeof nul_escape - 1, STAND_IN_BYTES = sizeof STAND_IN - 1 };

/* Hides NUL in the string from p to its end. Returns whether there was one. */
static bool hide_in(char *p, const char *end)
{
	bool any = false;
	for (; p < end; p++) {
		if (*p != '\\') continue;
		if (text_starts(p, nul_escape)) {
			memcpy(p, stand_in_escape, ESCAPE_BYTES);
			any = true;
		}
		p++;
	}
	return any;
}
/* Hides NUL in all keys, unless the text has what stands for it. Returns whether there was one. */
static bool hide_nul(char *text)
{
	bool any = false;
	if (!strstr(text, nul_escape) || strstr(text, STAND_IN) || strcasestr(text, stand_in_escape)) return false;
	for (char *p = text; *p; p++) {
		char *from = p + 1;
		if (*p != '"') continue;
		for (p++; *p && *p != '"'; p++) if (*p == '\\' && p[1]) p++;
		if (!*p) break;
		if (p[1 + strspn(p + 1, " \t\r\n")] == ':') any |= hide_in(from, p);
	}
	return any;
}
static bool restore_nul(json_t *vocab)
{
	const char *key;
	void *next;
	json_t *id;
	json_object_foreach_safe(vocab, next, key, id) {
		size_t n = 0;
		char *own;
		bool done;
		if (!strstr(key, STAND_IN)) continue;
		if (!(own = malloc(strlen(key)))) return false;
		for (const char *p = key; *p; n++) {
			bool nul = text_starts(p, STAND_IN);
			own[n] = nul ? 0 : *p;
			p += nul ? STAND_IN_BYTES : 1;
		}
		done = !json_object_setn(vocab, own, n, id) && !json_object_del(vocab, key);
		free(own);
		if (!done) return false;
	}
	return true;
}

enum ggu_status vocab_bad(struct ggu_error *err, const char *file, const char *in, const char *key, const char *what)
{
	char where[128];
	snprintf(where, sizeof where, "%s%.100s", in, key);
	return file_fail(err, GGU_ERR_FORMAT, file, GGU_NO_OFFSET, where, "%s", what);
}
enum ggu_status vocab_read_json(const char *dir, const char *name, json_t **j, struct ggu_error *err)
{
	char *text;
	size_t n;
	enum ggu_status s = file_slurp(dir, name, FILE_TEXT_MAX, &text, &n, err);
	bool hidden, model = !strcmp(name, tokenizer_file);
	*j = NULL;
	if (s) return s == GGU_ERR_MISSING ? GGU_OK : s;
	file_json_of_python(text);
	hidden = (model || !strcmp(name, vocab_file)) && hide_nul(text);
	s = file_json_text(text, n, name, 0, JSON_ALLOW_NUL, j, err);
	free(text);
	if (s || !hidden) return s;
	return restore_nul(model ? json_object_get(json_object_get(*j, "model"), "vocab") : *j) ? GGU_OK
		: ggu_no_memory(err);
}

int vocab_byte_of(struct ggu_str t)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *high, *low;
	if (t.n != 6 || !text_begins(t.p, t.n, "<0x") || t.p[5] != '>' || !t.p[3] || !t.p[4]) return -1;
	high = strchr(digits, t.p[3]);
	low = strchr(digits, t.p[4]);
	return high && low ? (int)(16*(high - digits) + (low - digits)) : -1;
}

#define BAR "\xef\xbd\x9c"     /* U+FF5C, deepseek's */
bool vocab_looks_special(const char *p, size_t n)
{
	/* words and brackets of does_token_look_special in llama.cpp's converter */
	static const char *const words[] = { "<pad>", "<mask>", "<2mass>", "[@BOS@]" };
	for (size_t i = 0; i < sizeof words/sizeof *words; i++)
		if (text_is(p, n, words[i])) return true;
	if (n >= 3 && text_begins(p, n, "<|") && text_ends(p, n, "|>")) return true;
	if (n >= 5 && text_begins(p, n, "<" BAR) && text_ends(p, n, BAR ">")) return true;
	return text_begins(p, n, "<unused") && text_ends(p, n, ">");
}

/* Does llama.cpp take this tokenizer.json for a SentencePiece vocabulary in disguise? */
static bool json_is_llama(const json_t *t)
{
	const json_t *m = json_object_get(t, "model");
	const char *decoder = vocab_json_str(json_object_get(t, "decoder"), "type");
	return vocab_json_true(m, "byte_fallback") && decoder && !strcmp(decoder, "Sequence");
}

/* -1: there is no such token */
static int64_t id_of(const struct vocab *v, const char *text)
{
	const size_t n = strlen(text);
	for (size_t i = 0; i < v->n; i++)
		if (v->tokens[i].n == n && !memcmp(v->tokens[i].p, text, n)) return (int64_t)i;
	return -1;
}

/* Applies what the caller knows of the architecture. */
static void apply_hints(struct vocab *v, const struct vocab_files *f)
{
	const json_t *prefix = json_object_get(f->config, "add_prefix_space");
	const struct vocab_hints *h = f->hints;
	if (!h) return;
	if (h->add_space_prefix) v->add_space_prefix = h->add_space_prefix > 0;
	if (h->config_prefix && json_is_boolean(prefix)) v->add_space_prefix = json_is_true(prefix);
	if (h->add_bos) vocab_set_add(v, VOCAB_BOS, h->add_bos > 0);
	for (int i = 0; i < VOCAB_N_SPECIAL; i++) {
		const char *text = h->special[i].text;
		int64_t id = text ? id_of(v, text) : h->special[i].id;
		if (text || id > 0) vocab_set_special(v, (enum vocab_special)i, id);
	}
}

/* Records that a SentencePiece vocabulary puts no blank in front of a text, since readers take one for granted.
 * (llama.cpp's converter does not, and llama.cpp then reads the file wrongly.) */
static enum ggu_status say_prefix(struct vocab *v, struct ggu_error *err)
{
	struct pretok *p;
	TRY(pretok_new(&p, v, err));
	if (!pretok_adds_space(p)) v->add_space_prefix = 0;
	pretok_free(p);
	return GGU_OK;
}

/* The kind of tokenizer.json. Old files, such as bert-base-uncased's, do not name it: BPE is then what has merges,
 * Unigram what has a list of pieces, WordPiece what limits the length of words. */
static const char *kind_of(const struct vocab_files *f)
{
	const json_t *m = json_object_get(f->tokenizer, "model");
	const char *type = vocab_json_str(m, "type");
	if (type) return type;
	if (json_object_get(m, "merges")) return "BPE";
	if (json_is_array(json_object_get(m, "vocab"))) return "Unigram";
	return json_object_get(m, "max_input_chars_per_word") ? "WordPiece" : "";
}
static enum ggu_status refuse_kind(const struct vocab_files *f, struct ggu_error *err)
{
	const char *type = kind_of(f);
	if (!strcmp(type, "BPE") || !strcmp(type, "WordPiece") || !strcmp(type, "Unigram")) return GGU_OK;
	return file_fail(err, GGU_ERR_UNSUPPORTED, tokenizer_file, GGU_NO_OFFSET, "model.type",
		"tokenizer kind \"%.30s\" is not supported", type);
}

/* The error for a folder without any file that we read. It names a file of another kind if there is one. */
static enum ggu_status no_tokenizer(const char *dir, struct ggu_error *err)
{
	static const struct { const char *file, *what; } others[] = {
		{ "tekken.json", "Mistral's Tekken vocabulary is not supported" },
		{ "sentencepiece.bpe.model", "XLM-RoBERTa's SentencePiece vocabulary is not supported" },
	};
	for (size_t i = 0; i < sizeof others/sizeof *others; i++)
		if (file_exists(dir, others[i].file))
			return file_fail(err, GGU_ERR_UNSUPPORTED, others[i].file, GGU_NO_OFFSET, "", "%s",
				others[i].what);
	return ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "",
		"no tokenizer.model, tokenizer.json, vocab.json with merges.txt or vocab.txt in the folder");
}

static enum ggu_status load_tokenizer_json(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	return !strcmp(kind_of(f), "Unigram") ? vocab_load_unigram(v, f, err) : vocab_load_json(v, f, err);
}

/* tokenizer.model, or spiece.model. */
static enum ggu_status load_spm(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	static const char *const names[] = { "tokenizer.model", "spiece.model" };
	char *spm = NULL;
	size_t n = 0;
	enum ggu_status s = GGU_ERR_MISSING;
	for (size_t i = 0; i < 2 && s == GGU_ERR_MISSING; i++) {
		s = file_slurp(f->dir, names[i], FILE_TEXT_MAX, &spm, &n, err);
		if (!s) s = vocab_load_spm(v, spm, n, names[i], f, err);
		free(spm);
		spm = NULL;
	}
	return s;
}

static struct ggu_str text_of(const json_t *s)
{
	return (struct ggu_str){ json_string_value(s), json_string_length(s) };
}
/* Counts the ids for which tokenizer.json has other tokens than the vocabulary, which comes from tokenizer.model. */
static enum ggu_status compare(struct vocab *v, const struct vocab_files *f, struct ggu_error *err)
{
	json_t *pieces = json_object_get(json_object_get(f->tokenizer, "model"), "vocab"), *x;
	struct ggu_str *want = calloc(v->n + 1, sizeof *want);
	const char *text;
	struct vocab_difference d = { .file = tokenizer_file, .than = "the SentencePiece model" };
	size_t i, n;
	if (!want) return ggu_no_memory(err);
	json_object_keylen_foreach(pieces, text, n, x)
		if (json_is_integer(x) && (uint64_t)json_integer_value(x) < v->n)
			want[json_integer_value(x)] = (struct ggu_str){ text, n };
	json_array_foreach(pieces, i, x) if (i < v->n) want[i] = text_of(json_array_get(x, 0));
	json_array_foreach(json_object_get(f->tokenizer, "added_tokens"), i, x) {
		const json_t *id = json_object_get(x, "id");
		if (json_is_integer(id) && (uint64_t)json_integer_value(id) < v->n)
			want[json_integer_value(id)] = text_of(json_object_get(x, "content"));
	}
	for (i = 0; i < v->n; i++)
		if (want[i].p && (v->tokens[i].n != want[i].n || memcmp(v->tokens[i].p, want[i].p, want[i].n))
			&& !d.n++)
			d.first = i;
	if (d.n) vocab_differs(v, &d);
	free(want);
	return GGU_OK;
}

const char *const vocab_file_names[] = { tokenizer_file, vocab_file, "merges.txt", "vocab.txt", "tokenizer.model",
	"spiece.model", "tokenizer_config.json", "added_tokens.json", "chat_template.jinja", "chat_template.json",
	"config.json", NULL };

static enum ggu_status load(struct vocab *v, struct vocab_files *f, struct ggu_error *err)
{
	enum ggu_status s;
	bool both;
	TRY(vocab_read_json(f->dir, tokenizer_file, &f->tokenizer, err));
	TRY(vocab_read_json(f->dir, "tokenizer_config.json", &f->config, err));
	TRY(vocab_read_json(f->dir, "added_tokens.json", &f->added, err));
	TRY(vocab_read_json(f->dir, "config.json", &f->model_config, err));
	if (f->tokenizer) TRY(refuse_kind(f, err));
	TRY(vocab_read_added(f, err));
	s = load_spm(v, f, err);
	if (s && s != GGU_ERR_MISSING) return s;
	both = !s && f->tokenizer;
	TRY(vocab_join_added(v, f, s && f->tokenizer, err));
	if (!s) {
		v->pre = "default";
		if (f->tokenizer) TRY(load_tokenizer_json(v, f, err));
	} else if (!strcmp(kind_of(f), "WordPiece")) TRY(vocab_load_wordpiece(v, f, err));
	else if (f->tokenizer) {
		if (json_is_llama(f->tokenizer)) {
			v->model = "llama";
			v->pre = "default";
		}
		TRY(load_tokenizer_json(v, f, err));
	} else {
		s = vocab_load_merges_txt(v, f, err);
		if (!s) TRY(vocab_guess_pre(v, f, err));
		else if (s == GGU_ERR_MISSING) s = vocab_load_wordpiece(v, f, err);
		if (s) return s == GGU_ERR_MISSING ? no_tokenizer(f->dir, err) : s;
	}
	TRY(vocab_load_specials(v, f, err));
	if (both) TRY(compare(v, f, err));
	if (!strcmp(v->model, "llama")) TRY(say_prefix(v, err));
	apply_hints(v, f);
	if (!v->pre && strcmp(v->model, "llama")) {
		const char *pre = NULL;
		TRY(vocab_find_pre(v, f->hints ? f->hints->pre : NULL, &pre, err));
		v->pre = pre;
	}
	vocab_deny_around(v, f);
	return GGU_OK;
}

enum ggu_status vocab_from_dir(struct vocab **v, const char *dir, const struct vocab_hints *h, struct ggu_error *err)
{
	struct vocab_files f = { .dir = dir, .hints = h };
	struct vocab *w = vocab_new();
	if (!w) return ggu_no_memory(err);
	enum ggu_status s = load(w, &f, err);
	json_decref(f.tokenizer);
	json_decref(f.config);
	json_decref(f.added);
	json_decref(f.model_config);
	json_decref(f.decoder_rows);
	json_decref(f.added_rows);
	if (s) { vocab_free(w); return s; }
	*v = w;
	return GGU_OK;
}

size_t vocab_count(const struct vocab *v) { return v->n; }
void vocab_differs(struct vocab *v, const struct vocab_difference *d)
{
	if (v->n_differences < sizeof v->differences/sizeof *d) v->differences[v->n_differences++] = *d;
}
size_t vocab_differences(const struct vocab *v, const struct vocab_difference **d)
{
	*d = v->differences;
	return v->n_differences;
}
size_t vocab_left_out(const struct vocab *v, const char **file)
{
	*file = v->left_out_file;
	return v->n_left_out;
}
struct ggu_str vocab_token(const struct vocab *v, int32_t id)
{
	return id < 0 || (size_t)id >= v->n ? (struct ggu_str){ "", 0 } : v->tokens[id];
}
int32_t vocab_find(const struct vocab *v, const char *text)
{
	size_t id = 0;
	while (id < v->n && !text_is(v->tokens[id].p, v->tokens[id].n, text)) id++;
	return id < v->n ? (int32_t)id : -1;
}
bool *vocab_own(const struct vocab *v)
{
	bool *own = malloc(v->n + 1);
	json_t *id;
	size_t i;
	if (!own) return NULL;
	memset(own, true, v->n + 1);
	json_array_foreach(json_object_get(v->pipeline, "only_added"), i, id)
		if (json_is_integer(id) && json_integer_value(id) >= 0 && (uint64_t)json_integer_value(id) < v->n)
			own[json_integer_value(id)] = false;
	return own;
}
enum vocab_token_type vocab_token_type(const struct vocab *v, int32_t id)
{
	return id < 0 || (size_t)id >= v->n ? VOCAB_UNUSED : (enum vocab_token_type)v->types[id];
}
/* If a SentencePiece vocabulary does not name them, BOS is 1 and EOS is 2; T5's EOS is 1. So llama.cpp has it. */
static int32_t special(const struct vocab *v, enum vocab_special which, const char *model, int32_t spm)
{
	if (v->special[which] >= 0) return v->special[which];
	return !strcmp(v->model, model) && (size_t)spm < v->n && v->types[spm] == VOCAB_CONTROL ? spm : -1;
}
int32_t vocab_bos(const struct vocab *v) { return special(v, VOCAB_BOS, "llama", 1); }
int32_t vocab_eos(const struct vocab *v)
{
	return !strcmp(v->model, "t5") ? special(v, VOCAB_EOS, "t5", 1) : special(v, VOCAB_EOS, "llama", 2);
}

/* Is <|end|> the end of a channel, as in gpt-oss and Solar Open, and not of the turn? */
static bool has_channels(const struct vocab *v)
{
	return (vocab_find(v, "<|call|>") >= 0 && vocab_find(v, "<|return|>") >= 0) ||
		(vocab_find(v, "<|calls|>") >= 0 && vocab_find(v, "<|flush|>") >= 0);
}
bool vocab_is_end(const struct vocab *v, int32_t id)
{
	/* texts that end a turn in the models that llama.cpp knows */
	static const char *const ends[] = { "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<turn|>",
		"<|endoftext|>", "<|end_of_text|>", "<end_of_utterance>", "<|flush|>", "<|calls|>", "_<EOT>", "[EOT]",
		"[EOS]", "<|eom_id|>", "<EOT>", "<|END_OF_TURN_TOKEN|>", "<|return|>", "<|call|>", "</s>", "<eos>",
		("<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>") };
	const struct ggu_str t = vocab_token(v, id);
	if (text_is(t.p, t.n, "<|end|>") && has_channels(v)) return false;
	if (id >= 0 && (id == vocab_eos(v) || id == v->special[VOCAB_EOT] || id == v->special[VOCAB_EOM])) return true;
	for (size_t i = 0; i < sizeof ends/sizeof *ends; i++)
		if (text_is(t.p, t.n, ends[i])) return v->types[id] == VOCAB_CONTROL;
	return false;
}
