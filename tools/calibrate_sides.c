/* SPDX-License-Identifier: MIT
 * calibrate_sides.c - the original and the quantized model for calibrate.c: the windows of the text, room for what is
 * kept of them between steps, and calls of either model for some of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../libgguf/size.h"
#include "calibrate_internal.h"
#include "load.h"
#include "msg.h"
#include "temp.h"

enum { TOKENS = 2048 };         /* that are evaluated at once, or one window if it is longer */
enum { PAGE = 4096 };

/* ---- evaluating ---- */

bool windows_next(const struct calibration *c, struct windows *w)
{
	size_t end;
	w->first += w->n;
	end = w->first < c->n_text ? c->n_text : c->n_windows;
	w->n = end - w->first < c->at_once ? end - w->first : c->at_once;
	return w->n > 0;
}
void side_evaluate(const struct calibration *c, const struct side *s, struct windows w, struct model_call call,
	const bool *stopped)
{
	struct ggu_error err;
	for (size_t i = 0; i < w.n; i++) {
		if (!call.stream) state_reset(s->part[i].state);        /* a window is a text of its own */
		s->part[i].ids = c->ids + (w.first + i)*c->ctx;
		s->part[i].n = c->ctx;
		s->part[i].first = call.rows ? 0 : c->ctx;
	}
	call.part = s->part;
	call.n_parts = w.n;
	if (model_eval(s->w, &call, &err) && !(stopped && *stopped)) msg_die_error(c->model, &err);
}
void side_step(const struct calibration *c, const struct side *s, struct windows w, float *stream, size_t step,
	const struct listener *to)
{
	const struct model_call call = { .stream = stream, .from = step + 1 ? step : 0, .to = step + 1,
		.tap = to ? to->tap : NULL, .tap_ctx = to ? to->ctx : NULL };
	side_evaluate(c, s, w, call, to ? to->stopped : NULL);
}
float *calibrate_floats(size_t rows, size_t n)
{
	return msg_need(malloc(size_times(rows, size_times(n, sizeof(float)))));
}

/* ---- setting up ---- */

static void draw(struct calibration *c, const struct vocab *v)
{
	const size_t n = c->n_windows;
	c->drawn = drawn_windows(n);
	drawn_append(v, model_n_vocab(c->f.m), 0, c->drawn, &c->ids, n, c->ctx);
	c->n_text = n;
	c->n_windows = n + c->drawn.n;
}
static void tokenize(struct calibration *c, const struct calibrate_options *o)
{
	struct vocab *v;
	struct tokenizer *t;
	const struct load_windows w = { c->ctx, 0, o->chunks, TOKENIZE_BOS | TOKENIZE_EOS };
	size_t n;
	char *text = load_text(o->text, LOAD_TEXT, &n);
	load_tokenizer(c->f.m, o->model, &v, &t);
	c->n_windows = load_windows(&w, t, o->text, text, n, &c->ids);
	load_tell_context(c->f.m, o->model, w.ctx);
	if (vocab_add_bos(v) && vocab_bos(v) >= 0)
		for (size_t i = 0; i < c->n_windows; i++) c->ids[i*c->ctx] = vocab_bos(v);
	draw(c, v);
	tokenizer_free(t);
	vocab_free(v);
	free(text);
}
static void open_side(const struct calibration *c, struct side *s, const char *model)
{
	struct ggu_error err;
	s->m = load_model(model, NULL, c->pool);
	load_refuse_encoder(s->m, model);
	s->part = msg_need(calloc(c->at_once, sizeof *s->part));
	if (work_new(&s->w, s->m, c->at_once*c->ctx, &err)) msg_die_error(model, &err);
	for (size_t i = 0; i < c->at_once; i++)
		if (state_new(&s->part[i].state, s->m, NULL, &err)) msg_die_error(model, &err);
}
static void close_side(const struct calibration *c, struct side *s)
{
	for (size_t i = 0; i < c->at_once; i++) state_free(s->part[i].state);
	free(s->part);
	work_free(s->w);
	model_close(s->m);
}
size_t sides_room(const struct calibration *c, size_t i)
{
	uint64_t bytes;
	const struct ggu_tensor *t = c->re->t[i];
	if (!ggu_type_bytes(c->re->choice[i].type, t->ne[0]*ggu_tensor_rows(t), &bytes))
		msg_die("%s: bad size", t->name);
	return bytes < SIZE_MAX ? size_room((size_t)bytes, 64) : SIZE_MAX;
}
/* The file that the output will be, for the caller to free, or NULL: it is no file. A link may lead to another folder,
 * and only that one is open to writing (sandbox.h). */
static char *output_file(const char *out)
{
	struct stat st;
	return !out || !strcmp(out, "-") || (!stat(out, &st) && !S_ISREG(st.st_mode)) ? NULL : temp_follow(out);
}
/* Maps a new file without a name that will be in the folder of `out`. MAP_FAILED: see errno. */
static void *map_beside(const char *out, size_t bytes)
{
	struct temp temp;
	void *map = MAP_FAILED;
	int why;
	if (!temp_open(&temp, out)) return map;
	/* posix_fallocate returns the error, the others set errno */
	why = posix_fallocate(temp.fd, 0, (off_t)bytes);
	errno = why;
	if (!why) map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, temp.fd, 0);
	why = errno;
	if (temp.hidden) unlink(temp.hidden);
	close(temp.fd);
	temp_free(&temp);
	errno = why;
	return map;
}
static size_t pages(size_t bytes) { return size_room(bytes, PAGE); }
/* Room for streams and blocks, in a file without a name if there is a folder for it. */
static void make_room(struct calibration *c, const struct calibrate_options *o)
{
	const size_t tokens = c->n_windows*c->ctx, stream = pages(size_times(tokens, c->e*sizeof(float)));
	size_t held;
	char *file = output_file(o->out);
	void *map;
	c->map_bytes = size_plus(size_times(2, stream), PAGE);
	for (size_t i = 0; i < c->re->n; i++) {
		const struct ggu_tensor *t = c->re->t[i];
		c->map_bytes = size_plus(c->map_bytes, sides_room(c, i));
		if (t->ne[1] == c->e && t->ne[2]*t->ne[3] == 1 && t->ne[0] > c->held_n_in)
			c->held_n_in = (size_t)t->ne[0];
	}
	held = pages(size_times(tokens, c->held_n_in*sizeof(float)));
	c->map_bytes = size_plus(c->map_bytes, held);
	map = file ? map_beside(file, c->map_bytes)
		: mmap(NULL, c->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		msg_die("cannot store %s of activations and weights: %s; use fewer --chunks",
			msg_bytes(c->map_bytes), strerror(errno));
	free(file);
	c->map = map;
	c->f.stream = (float *)map;
	c->q.stream = (float *)(void *)(c->map + stream);
	c->held = (float *)(void *)(c->map + 2*stream);
	c->blocks = c->map + 2*stream + held;
}
void sides_open(struct calibration *c, const struct calibrate_options *o)
{
	c->model = o->model;
	c->ctx = (size_t)o->ctx;
	c->at_once = c->ctx < TOKENS ? TOKENS/c->ctx : 1;
	open_side(c, &c->f, o->model);
	open_side(c, &c->q, o->model);
	c->e = model_n_embd(c->f.m);
	tokenize(c, o);
	make_room(c, o);
}
void sides_close(struct calibration *c)
{
	close_side(c, &c->f);
	close_side(c, &c->q);
	munmap(c->map, c->map_bytes);
	free(c->ids);
}
