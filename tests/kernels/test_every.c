/* SPDX-License-Identifier: MIT
 * test_every.c - products of every size: each type on each instruction set, with every number of tokens from 1 to 600,
 * with every number of blocks up to 11008 columns, and with its rows cut between calls at every place.
 *
 * What portable C makes of all tokens and rows in one call is the reference (test_multiply compares that with a slow
 * path): fewer tokens must give its first lines, other cuts the same. Types that share a form of activations share a
 * packing.
 * Activations and outputs lie between guard pages, with no byte to spare. MULTIPLY=long: every number of tokens with
 * numbers of outputs around the edges of tiles and with several blocks; SANITIZED: every seventh of each. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/size.h"
#include "../../libgguf/types.h"
#include "../../quant/mul.h"
#include "../lib/kerntest.h"

enum { MOST_TOKENS = 600, MOST_COLUMNS = 11008, MOST_OUT = 70, MANY = 9 };
static void *work;
static size_t every = 1;

/* The weights of all types that share a form of activations, the activations, and the expected products. */
struct family {
	enum quant_act form;
	size_t n_tokens, n_out, n_in;
	float *x;                                       /* [n_tokens][n_in] */
	struct member {
		const struct ggu_type_info *t;
		size_t w_bytes;
		uint8_t *w;
		float *want;                            /* [n_tokens][n_out] */
	} of[GGU_TYPE_COUNT];
	size_t n;
};

static struct quant_mul product(const struct family *f, const struct member *m, size_t n_tokens, const void *act,
	float *y)
{
	return (struct quant_mul){ m->t->id, n_tokens, f->n_out, f->n_in, m->w, m->w_bytes/f->n_out, act, y, f->n_out };
}
static void *packed(const struct family *f, size_t n_tokens, size_t *bytes)
{
	void *act;
	*bytes = quant_act_bytes(f->form, n_tokens, f->n_in);
	act = kt_buffer(*bytes);
	quant_act_pack(f->form, f->x, f->n_in, n_tokens, f->n_in, 0, n_tokens, act);
	return act;
}
/* The columns of a block of activations; those of the longest block of weights, or, for floats, just some number. */
static size_t unit_of(enum quant_act form) { return form == QUANT_ACT_32 ? 32 : 256; }
static size_t longest_of(enum quant_act form)
{
	return form == QUANT_ACT_FLOAT ? 19 : form == QUANT_ACT_32 ? 128 : 256;
}

/* Leaves out the types whose blocks do not divide n_in. */
static struct family family_new(enum quant_act form, size_t n_tokens, size_t n_out, size_t n_in)
{
	struct family f = { form, n_tokens, n_out, n_in, kt_buffer(4*n_tokens*n_in), { { 0 } }, 0 };
	size_t act_bytes;
	void *act;
	kt_fill_floats(f.x, n_tokens*n_in, KT_MIXED);
	quant_select("c", NULL);
	act = packed(&f, n_tokens, &act_bytes);
	for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++) {
		const struct ggu_type_info *t = ggu_type_info(id);
		struct member *m = f.of + f.n;
		struct quant_mul p;
		if (!t || quant_act_of(id) != form || n_in%t->block_weights) continue;
		m->t = t;
		m->w_bytes = n_out*(n_in/t->block_weights)*t->block_bytes;
		m->w = kt_buffer(m->w_bytes);
		m->want = kt_buffer(4*n_tokens*n_out);
		kt_fill_blocks(t, m->w, m->w_bytes/t->block_bytes, KT_RANDOM);
		p = product(&f, m, n_tokens, act, m->want);
		quant_mul(&p, 0, n_tokens, 0, n_out, work);
		f.n++;
	}
	kt_free(act, act_bytes);
	return f;
}
static void family_free(struct family *f)
{
	for (struct member *m = f->of; m < f->of + f->n; m++) {
		kt_free(m->w, m->w_bytes);
		kt_free(m->want, 4*f->n_tokens*f->n_out);
	}
	kt_free(f->x, 4*f->n_tokens*f->n_in);
}
/* All products of the first n tokens on the selected instance, with the rows cut at `cut`. */
static void check_once(const struct family *f, size_t n, size_t cut)
{
	size_t act_bytes, y_bytes = 4*n*f->n_out, at;
	void *act = packed(f, n, &act_bytes);
	float *y = kt_buffer(y_bytes);
	for (const struct member *m = f->of; m < f->of + f->n && !kt_failed(); m++) {
		const struct quant_mul p = product(f, m, n, act, y);
		memset(y, 0xff, y_bytes);
		quant_mul(&p, 0, n, 0, cut, work);
		if (cut < f->n_out) quant_mul(&p, 0, n, cut, f->n_out - cut, work);
		if (!kt_same(y, m->want, n*f->n_out, &at))
			kt_fail("%s %s, %zu tokens, %zu outputs (cut at %zu), %zu inputs: y[%zu][%zu] = %a, not %a",
				m->t->name, quant_selected(), n, f->n_out, cut, f->n_in, at/f->n_out, at%f->n_out,
				y[at], m->want[at]);
	}
	kt_free(y, y_bytes);
	kt_free(act, act_bytes);
}
/* One token with each way of prefetching: a type may have another kernel for it. */
static void check(const struct family *f, size_t n, size_t cut)
{
	const enum mul_fetch chosen = mul_row_fetch;
	check_once(f, n, cut);
	for (int how = MUL_TO_L2; n == 1 && how <= MUL_BY_PAIRS; how++) {
		mul_row_fetch = (enum mul_fetch)how;
		if (mul_row_fetch != chosen) check_once(f, n, cut);
	}
	mul_row_fetch = chosen;
}

static const char *const form_name[] = { "", "floats", "blocks of 32", "blocks of 256" };

static void every_token_count(enum quant_act form, size_t n_out, size_t n_in)
{
	struct family f = family_new(form, MOST_TOKENS, n_out, n_in);
	for (const char *const *isa = quant_available(); *isa; isa++) {
		kt_name("%s %s: every number of tokens to %d, %zu outputs, %zu columns", form_name[form], *isa,
			MOST_TOKENS, n_out, n_in);
		quant_select(*isa, NULL);
		for (size_t n = 1; n <= MOST_TOKENS && !kt_failed(); n += every) check(&f, n, n_out);
		kt_result();
	}
	family_free(&f);
}
/* What is planned for a batch is used for smaller ones, too. */
static void fewer_tokens_fit(enum quant_act form)
{
	const size_t n_in = 2*longest_of(form);
	for (const char *const *isa = quant_available(); *isa; isa++) {
		size_t most = 0;
		kt_name("%s %s: room for a number of tokens is enough for fewer", form_name[form], *isa);
		quant_select(*isa, NULL);
		for (size_t n = 1; n <= MOST_TOKENS && !kt_failed(); n++) {
			most = size_most(most, quant_act_bytes(form, n, n_in));
			if (quant_act_most_bytes(form, n, n_in) < most)
				kt_fail("%zu tokens: %zu bytes, but fewer take %zu", n,
					quant_act_most_bytes(form, n, n_in), most);
		}
		kt_result();
	}
}
/* Nor do groups of QUANT_ACT_STEPS, of which experts' rows may fill any number, take less than more rows at once. */
static void groups_fit(enum quant_act form)
{
	const size_t n_in = 2*longest_of(form);
	for (const char *const *isa = quant_available(); *isa; isa++) {
		size_t group;
		kt_name("%s %s: room for groups of %d tokens is enough for all of them", form_name[form], *isa,
			QUANT_ACT_STEPS);
		quant_select(*isa, NULL);
		group = quant_act_most_bytes(form, QUANT_ACT_STEPS, n_in);
		for (size_t n = 1; n <= MOST_TOKENS && !kt_failed(); n++)
			if (quant_act_bytes(form, n, n_in) > size_parts(n, QUANT_ACT_STEPS)*group)
				kt_fail("%zu tokens: %zu bytes, a group %zu", n, quant_act_bytes(form, n, n_in), group);
		kt_result();
	}
}
static void every_column_count(enum quant_act form)
{
	const size_t step = form == QUANT_ACT_FLOAT ? 691 : unit_of(form);
	kt_name("%s: every %snumber of columns to %d", form_name[form], form == QUANT_ACT_FLOAT ? "691st " : "",
		MOST_COLUMNS);
	for (size_t k = step, i = 0; k <= MOST_COLUMNS && !kt_failed(); k += every*step, i++) {
		struct family f = family_new(form, MANY, 2, k);
		for (const char *const *isa = quant_available(); *isa; isa++) {
			quant_select(*isa, NULL);
			check(&f, 1 + i%8, 2);
			check(&f, MANY, 2);
		}
		family_free(&f);
	}
	kt_result();
}
static void every_cut(enum quant_act form)
{
	static const size_t tokens[] = { 1, 5, 50 };
	for (size_t i = 0; i < sizeof tokens/sizeof *tokens; i++) {
		struct family f = family_new(form, tokens[i], MOST_OUT, longest_of(form));
		for (const char *const *isa = quant_available(); *isa; isa++) {
			kt_name("%s %s: rows cut at every place, %zu tokens", form_name[form], *isa, tokens[i]);
			quant_select(*isa, NULL);
			for (size_t cut = 1; cut <= MOST_OUT && !kt_failed(); cut += every)
				check(&f, tokens[i], cut);
			kt_result();
		}
		family_free(&f);
	}
}
static void long_way(enum quant_act form)
{
	static const size_t outputs[] = { 1, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33 };
	for (size_t i = 0; i < sizeof outputs/sizeof *outputs; i++)
		every_token_count(form, outputs[i], longest_of(form)*(1 + i%3));
}

int main(int argc, char **argv)
{
	const char *how = getenv("MULTIPLY");
	size_t work_bytes = 0;
	kt_begin(argc, argv);
	for (const char *const *isa = quant_available(); *isa; isa++) {
		quant_select(*isa, NULL);
		work_bytes = size_most(work_bytes, quant_mul_work_bytes(MOST_COLUMNS));
	}
	if (posix_memalign(&work, 64, work_bytes)) abort();
	if (getenv("SANITIZED")) every = 7;
	for (enum quant_act form = QUANT_ACT_FLOAT; form <= QUANT_ACT_256; form++) {
		every_token_count(form, 2, longest_of(form));
		fewer_tokens_fit(form);
		groups_fit(form);
		every_column_count(form);
		every_cut(form);
		if (how && !strcmp(how, "long")) long_way(form);
	}
	free(work);
	return kt_end();
}
