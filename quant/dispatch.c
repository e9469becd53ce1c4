/* SPDX-License-Identifier: MIT
 * dispatch.c - the functions of quant.h, by the tables of the selected instruction set.
 *
 * sets.inc lists the sets, and whose table serves one that has none of its own. */
#include <pthread.h>
#include <string.h>
#include "../libgguf/size.h"
#include "../libgguf/types.h"
#include "attn_internal.h"
#include "cpu.h"
#include "enc.h"
#include "float.h"
#include "gram_internal.h"
#include "mul.h"
#include "quant.h"
#include "vec_internal.h"

struct set {
	const char *name;
	unsigned feature;
	struct {
		const struct codes_table *codes;
		const struct row_table *row;
		const struct panel_table *panel_32, *panel_256;
		const struct float_table *floats;
		const struct enc_table *enc;
		const struct vec_table *vec;
		const struct attn_table *attn;
		const struct gram_table *gram;
	} has;
};
/* If a set's files are not compiled, it only has its name. */
#define ANY(...) { __VA_ARGS__ }
#if defined __x86_64__
#define X86(...) { __VA_ARGS__ }
#else
#define X86(...) { 0 }
#endif
#if defined __aarch64__
#define ARM(...) { __VA_ARGS__ }
#else
#define ARM(...) { 0 }
#endif
#define SET(name, NAME, CPU, codes, row, panel_32, panel_256, floats, enc, vec, attn, gram) \
	{ #name, CPU_##NAME, CPU(&quant_codes_##codes, &quant_row_##row, &quant_panel_##panel_32, \
		&quant_panel_##panel_256, &quant_float_##floats, &quant_enc_##enc, &quant_vec_##vec, \
		&quant_attn_##attn, &quant_gram_##gram) },
static const struct set sets[] = {
#include "sets.inc"
};
#undef SET
enum { N_SETS = sizeof sets/sizeof *sets };
static const struct set *selected = sets;

/* Distinguishes a misspelt name from one that this CPU lacks. */
static enum ggu_status no_set(const char *name, struct ggu_error *err)
{
#define SET(name, ...) #name " "
	static const char names[] =
#include "sets.inc"
		;
#undef SET
	for (size_t i = 0; i < N_SETS; i++)
		if (!strcmp(name, sets[i].name))
			return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "this CPU does not support %s",
				name);
	return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "'%.40s' is not an instruction set (%snative)",
		name, names);
}

enum ggu_status quant_select(const char *name, struct ggu_error *err)
{
	const unsigned features = cpu_features();
	const struct set *s = NULL;
	if (name && (!*name || !strcmp(name, "native"))) name = NULL;
	for (size_t i = 0; i < N_SETS; i++)
		if ((features & sets[i].feature) && (!name || !strcmp(name, sets[i].name))) s = sets + i;
	if (!s) return no_set(name, err);
	selected = s;
	mul_codes = s->has.codes;
	mul_row = s->has.row;
	mul_panel_32 = s->has.panel_32;
	mul_panel_256 = s->has.panel_256;
	quant_float_table = s->has.floats;
	float_fetches_again = cpu_drops_prefetches();
	mul_row_fetch = cpu_l1_bytes() < MUL_ROWS_L1 ? MUL_TO_L2 : cpu_fetches_pairs() ? MUL_BY_PAIRS : MUL_TO_L1;
	quant_enc_table = s->has.enc;
	quant_vec_table = s->has.vec;
	quant_attn_table = s->has.attn;
	quant_gram_table = s->has.gram;
	return GGU_OK;
}
const char *quant_selected(void) { return selected->name; }

static const char *available[N_SETS + 1];
static void find_available(void)
{
	const unsigned features = cpu_features();
	for (size_t i = 0, n = 0; i < N_SETS; i++) if (features & sets[i].feature) available[n++] = sets[i].name;
}
const char *const *quant_available(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_available);
	return available;
}

/* A type's decoder: of a block type, or of floats. */
static float_decode_fn *decoder(uint32_t type)
{
	if (type >= GGU_TYPE_COUNT) return NULL;
	return selected->has.codes->decode[type] ? selected->has.codes->decode[type] : float_decoder(type);
}
bool quant_can_decode(uint32_t type) { return decoder(type); }
enum ggu_status quant_decode(uint32_t type, const void *src, float *dst, size_t n)
{
	float_decode_fn *decode = decoder(type);
	if (!decode) return GGU_ERR_UNSUPPORTED;
	decode(src, dst, n);
	return GGU_OK;
}

bool quant_can_multiply(uint32_t type) { return quant_act_of(type) != QUANT_ACT_NONE; }
enum quant_act quant_act_of(uint32_t type)
{
	if (type >= GGU_TYPE_COUNT) return QUANT_ACT_NONE;
	if (float_can_multiply(type)) return QUANT_ACT_FLOAT;
	if (!selected->has.codes->widen[type]) return QUANT_ACT_NONE;
	return ggu_type_info(type)->block_weights == 256 ? QUANT_ACT_256 : QUANT_ACT_32;
}

static size_t block_of(enum quant_act form) { return form == QUANT_ACT_32 ? 32 : 256; }
size_t quant_act_bytes(enum quant_act form, size_t n_tokens, size_t n_in)
{
	size_t bytes = form == QUANT_ACT_FLOAT ? float_act_bytes(n_tokens, n_in)
		: mul_act_bytes(block_of(form), n_tokens, n_in);
	return size_room(bytes, 64);
}
size_t quant_act_most_bytes(enum quant_act form, size_t n_tokens, size_t n_in)
{
	const size_t all = quant_act_bytes(form, n_tokens, n_in);
	size_t few, below;
	if (form == QUANT_ACT_FLOAT) return all;
	few = size_least(n_tokens, mul_most_few(block_of(form)));
	below = size_least(n_tokens, mul_most_below(block_of(form)));
	return size_most(all, size_most(quant_act_bytes(form, few, n_in), quant_act_bytes(form, below, n_in)));
}
size_t quant_act_step(enum quant_act form, size_t n_tokens)
{
	return form == QUANT_ACT_FLOAT ? quant_float_table->tokens : mul_act_step(block_of(form), n_tokens);
}
void quant_act_pack(enum quant_act form, const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from,
	size_t n, void *act)
{
	if (form == QUANT_ACT_FLOAT) float_act_pack(x, x_stride, n_tokens, n_in, from, n, act);
	else mul_act_pack(block_of(form), x, x_stride, n_tokens, n_in, from, n, act);
}
void quant_act_unpack(enum quant_act form, const void *act, size_t n_tokens, size_t n_in, size_t token, float *x)
{
	if (form == QUANT_ACT_FLOAT) float_act_unpack(act, n_tokens, n_in, token, x);
	else mul_act_unpack(block_of(form), act, n_tokens, n_in, token, x);
}
void quant_mul(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work)
{
	if (float_can_multiply(m->type)) float_mul(m, t0, n_t, o0, n_o, work);
	else mul_integers(m, t0, n_t, o0, n_o, work);
}
size_t quant_mul_work_bytes(size_t n_in)
{
	return size_most(mul_work_bytes(n_in), float_work_bytes(n_in));
}
/* Threads that share the tokens of a panel each make the panel. So outputs are cut first, finely enough to keep all
 * threads busy to the end, and tokens only if outputs do not suffice. Few tokens only read rows, and one core may lag
 * behind by a whole task, so large matrices are cut four times as finely. */
void quant_mul_cut(const struct quant_mul *m, int n_threads, size_t *tokens, size_t *outputs)
{
	enum { LARGE_TASK = 256 << 10 };        /* bytes */
	const size_t threads = n_threads > 1 ? (size_t)n_threads : 1;
	const bool few = float_can_multiply(m->type) ? float_few(m->n_tokens) :
		mul_few(mul_block(mul_kind_of(m->type)), m->n_tokens);
	const size_t unit = few ? 16 : MUL_OUTPUTS;
	size_t shares = threads > 1 ? 4*threads : 1;
	if (few && threads > 1 && m->n_out*m->w_stride/shares > LARGE_TASK) shares *= 4;
	*outputs = size_most(size_up(m->n_out/shares, unit), unit);
	*tokens = size_most(m->n_tokens, 1);
	if (!few && m->n_out/unit < threads) {
		const size_t step = quant_act_step(quant_act_of(m->type), m->n_tokens);
		*tokens = size_up(size_most(m->n_tokens/threads, 1), step);
	}
}
