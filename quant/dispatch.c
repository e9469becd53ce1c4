/* SPDX-License-Identifier: MIT
 * dispatch.c - the functions of quant.h, by the tables of the selected instruction set.
 *
 * A row of `sets` names an instruction set, and the instance, that is the tables, which serves it: an instruction set
 * for which there are no kernels yet is served by the next weaker one's, and says so. */
#include <string.h>
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
};
static const struct set sets[] = {      /* best last */
	{ "c", "c", CPU_C, kern_c, &quant_enc_c, &quant_vec_c },
#if defined __x86_64__
	{ "avx2", "avx2", CPU_AVX2, kern_avx2, &quant_enc_avx2, &quant_vec_avx2 },
	{ "avxvnni", "avx2", CPU_AVXVNNI, kern_avx2, &quant_enc_avx2, &quant_vec_avx2 },
	{ "avx512", "avx512", CPU_AVX512, kern_avx512, &quant_enc_avx512, &quant_vec_avx512 },
#elif defined __aarch64__
	{ "neon", "neon", CPU_NEON, kern_neon, &quant_enc_c, &quant_vec_neon },
	{ "dotprod", "neon", CPU_DOTPROD, kern_neon, &quant_enc_c, &quant_vec_neon },
	{ "i8mm", "neon", CPU_I8MM, kern_neon, &quant_enc_c, &quant_vec_neon },
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
void quant_decode(uint32_t type, const void *src, float *dst, size_t n) { of(type)->decode(src, dst, n); }

bool quant_can_multiply(uint32_t type) { return of(type)->mul; }
size_t quant_act_bytes(uint32_t type, size_t n) { return of(type)->act_weights ? n/of(type)->act_weights*of(type)->act_bytes : 0; }
void quant_act_pack(uint32_t type, const float *x, size_t n, void *act) { of(type)->pack(x, n, act); }
void quant_act_unpack(uint32_t type, const void *act, float *x, size_t n)
{
	const struct x32 *a = act;
	const struct x256 *b = act;
	if (of(type)->act_weights == 1) memcpy(x, act, n*sizeof *x);
	else if (of(type)->act_weights == 32) for (size_t i = 0; i < n; i++) x[i] = a[i/32].d*(float)a[i/32].q[i%32];
	else for (size_t i = 0; i < n; i++) x[i] = b[i/256].d*(float)(b[i/256].q[i%256]*b[i/256].xs[i%256/32]);
}
void quant_mul(uint32_t type, size_t n_tokens, size_t n_out, size_t n_in, const void *w, size_t w_stride, const void *act, float *y, size_t y_stride, void *work)
{
	of(type)->mul(n_tokens, n_out, n_in, w, w_stride, act, y, y_stride, work);
}
size_t quant_mul_work_bytes(void) { return KERN_WORK_BYTES; }
