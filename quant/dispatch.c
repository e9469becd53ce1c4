/* SPDX-License-Identifier: MIT
 * dispatch.c - the functions of quant.h, by the tables of the selected instruction set.
 *
 * A row of `sets` names an instruction set, and the instance, that is the tables, which serves it: an instruction set
 * for which there are no kernels yet is served by the next weaker one's, and says so. */
#include <string.h>
#include "attn_internal.h"
#include "cpu.h"
#include "enc.h"
#include "kern.h"
#include "quant.h"
#include "vec_internal.h"

struct set {
	const char *name, *instance;
	unsigned feature;
	const struct kern *kern;
	const struct enc_table *enc;
	const struct vec_table *vec;
	const struct attn_table *attn;
};
static const struct set sets[] = {      /* best last */
	{ "c", "c", CPU_C, kern_c, &quant_enc_c, &quant_vec_c, &quant_attn_c },
#if defined __x86_64__
	{ "avx2", "avx2", CPU_AVX2, kern_avx2, &quant_enc_avx2, &quant_vec_avx2, &quant_attn_avx2 },
	{ "avxvnni", "avx2", CPU_AVXVNNI, kern_avx2, &quant_enc_avx2, &quant_vec_avx2, &quant_attn_avx2 },
	{ "avx512", "avx512", CPU_AVX512, kern_avx512, &quant_enc_avx512, &quant_vec_avx512, &quant_attn_avx512 },
#elif defined __aarch64__
	{ "neon", "neon", CPU_NEON, kern_neon, &quant_enc_c, &quant_vec_neon, &quant_attn_neon },
	{ "dotprod", "neon", CPU_DOTPROD, kern_neon, &quant_enc_c, &quant_vec_neon, &quant_attn_neon },
	{ "i8mm", "neon", CPU_I8MM, kern_neon, &quant_enc_c, &quant_vec_neon, &quant_attn_neon },
#endif
};
enum { N_SETS = sizeof sets/sizeof *sets };
static const char *const all_names[] = { "c", "avx2", "avxvnni", "avx512", "neon", "dotprod", "i8mm" };
static const struct set *selected = sets;

enum ggu_status quant_select(const char *name, struct ggu_error *err)
{
	unsigned has = cpu_features();
	const struct set *s = NULL;
	bool known = false;
	if (name && (!*name || !strcmp(name, "native"))) name = NULL;
	for (size_t i = 0; i < N_SETS; i++)
		if ((has & sets[i].feature) && (!name || !strcmp(name, sets[i].name))) s = sets + i;
	for (size_t i = 0; name && i < sizeof all_names/sizeof *all_names; i++) known |= !strcmp(name, all_names[i]);
	if (!s) return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", known ? "this CPU has no %.40s" :
		"'%.40s' is no instruction set (c avx2 avxvnni avx512 neon dotprod i8mm native)", name);
	selected = s;
	quant_enc_table = s->enc;
	quant_vec_table = s->vec;
	quant_attn_table = s->attn;
	return GGU_OK;
}
const char *quant_selected(void) { return selected->instance; }

const char *const *quant_available(void)
{
	static const char *names[N_SETS + 1];
	unsigned has = cpu_features();
	size_t n = 0;
	for (size_t i = 0; i < N_SETS; i++)
		if ((has & sets[i].feature) && !strcmp(sets[i].name, sets[i].instance)) names[n++] = sets[i].name;
	names[n] = NULL;
	return names;
}

static const struct kern *of(uint32_t type)
{
	static const struct kern none;
	return type < GGU_TYPE_COUNT ? selected->kern + type : &none;
}

bool quant_can_decode(uint32_t type) { return of(type)->decode; }
enum ggu_status quant_decode(uint32_t type, const void *src, float *dst, size_t n)
{
	if (!of(type)->decode) return GGU_ERR_UNSUPPORTED;
	of(type)->decode(src, dst, n);
	return GGU_OK;
}

bool quant_can_multiply(uint32_t type) { return of(type)->mul; }
enum quant_act quant_act_of(uint32_t type)
{
	static const enum quant_act form[] = { [1] = QUANT_ACT_FLOAT, [32] = QUANT_ACT_32 };
	uint32_t n = of(type)->mul ? of(type)->act_weights : 0;
	return n == 256 ? QUANT_ACT_256 : form[n];
}

/* A type of each form stands for all of them. */
static const struct kern *of_form(enum quant_act form)
{
	static const uint32_t type[] = { [QUANT_ACT_FLOAT] = GGU_TYPE_F32, [QUANT_ACT_32] = GGU_TYPE_Q8_0, [QUANT_ACT_256] = GGU_TYPE_Q6_K };
	return of(type[form]);
}
static size_t row_bytes(enum quant_act form, size_t n_in) { return n_in/of_form(form)->act_weights*of_form(form)->act_bytes; }
size_t quant_act_bytes(enum quant_act form, size_t n_tokens, size_t n_in) { return n_tokens*row_bytes(form, n_in); }
size_t quant_act_step(void) { return 1; }
void quant_act_pack(enum quant_act form, const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from, size_t n, void *act)
{
	(void)n_tokens;
	for (size_t t = from; t < from + n; t++) of_form(form)->pack(x + t*x_stride, n_in, (char *)act + t*row_bytes(form, n_in));
}
void quant_act_unpack(enum quant_act form, const void *act, size_t n_tokens, size_t n_in, size_t token, float *x)
{
	const void *row = (const char *)act + token*row_bytes(form, n_in);
	const struct x32 *a = row;
	const struct x256 *b = row;
	(void)n_tokens;
	if (form == QUANT_ACT_FLOAT) memcpy(x, row, n_in*sizeof *x);
	else if (form == QUANT_ACT_32) for (size_t i = 0; i < n_in; i++) x[i] = a[i/32].d*(float)a[i/32].q[i%32];
	else for (size_t i = 0; i < n_in; i++) x[i] = b[i/256].d*(float)(b[i/256].q[i%256]*b[i/256].xs[i%256/32]);
}
void quant_mul(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work)
{
	of(m->type)->mul(n_t, n_o, m->n_in, (const char *)m->w + o0*m->w_stride, m->w_stride,
		(const char *)m->act + t0*row_bytes(quant_act_of(m->type), m->n_in), m->y + t0*m->y_stride + o0, m->y_stride, work);
}
size_t quant_mul_work_bytes(void) { return KERN_WORK_BYTES; }
void quant_mul_cut(const struct quant_mul *m, int n_threads, size_t *tokens, size_t *outputs)
{
	size_t share = (m->n_out/(2*(size_t)n_threads) + 31)/32*32;
	*tokens = m->n_tokens;
	*outputs = share < 64 ? 64 : share;
}
