/* SPDX-License-Identifier: MIT
 * tool_coded.c - write one checkpoint twice: its matrices as codes and scales, and as the floats that these stand for.
 *
 *   tool_coded SCHEME SEED DIR CODED FLOATS [FAULT]
 *
 * Takes the tensors of DIR up to the first layer. Those called *_proj.weight get random codes, scales and zeros of
 * their own. CODED and FLOATS are folders, in which it writes model.safetensors. Prints quantization_config. FAULT
 * damages the coded one. Numbers are packed bit by bit, and each weight is computed on its own: slow, and obvious. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../convert/checkpoint.h"

static const struct scheme {
	const char *name, *code, *scale, *type, *scale_type;    /* endings of names; types in safetensors' words */
	unsigned bits, block_rows, block_columns;               /* of codes as stored; 0: one block */
	bool packed, turned, zeros, shuffled, factor;
	int zero_bias;
	bool biases, own;               /* of MLX; down_proj has blocks and bits of its own, twice as many */
	unsigned line, nested;          /* codes, and scales, of a block in a line of all; 0: no such blocks */
	const char *method, *more;                              /* of quantization_config */
} schemes[] = {
	{ "fp8", "", "_scale_inv", "F8_E4M3", "F32", 8, 100, 96, .method = "fp8",
		.more = ", \"weight_block_size\": [100, 96]" },
	{ "fp8-even", "", "_scale_inv", "F8_E5M2", "BF16", 8, 64, 64, .method = "fp8" },
	{ "fp8-one", "", "_scale_inv", "F8_E4M3", "F32", 8, .method = "fp8" },
	{ "fp8-auto", "", "_scale", "F8_E4M3", "BF16", 8, .method = "fp8" },
	{ "fbgemm", "", "_scale", "F8_E4M3", "F32", 8, 1, 0, .method = "fbgemm_fp8" },
	{ "modelopt", "", "_scale", "F8_E4M3", "F32", 8, .method = "modelopt" },
	{ "modelopt-nvfp4", "", "_scale", "U8", "F8_E4M3", 4, 1, 16, .factor = true, .method = "modelopt" },
	{ "ct-int8", "", "_scale", "I8", "BF16", 8, 1, 0, .zeros = true, .method = "compressed-tensors" },
	{ "ct-mxfp8", "", "_scale", "F8_E4M3", "U8", 8, 1, 32, .method = "compressed-tensors" },
	{ "ct-mxfp4", "_packed", "_scale", "U8", "F8_E8M0", 4, 1, 32, .method = "compressed-tensors" },
	{ "ct-nvfp4", "_packed", "_scale", "U8", "F8_E4M3", 4, 1, 16, .factor = true,
		.method = "compressed-tensors" },
	{ "ct-4", "_packed", "_scale", "I32", "BF16", 4, 1, 32, true, .zero_bias = 8,
		.method = "compressed-tensors" },
	{ "ct-3", "_packed", "_scale", "I32", "F16", 3, 1, 64, true, .zeros = true,
		.method = "compressed-tensors" },
	{ "ct-8-act", "_packed", "_scale", "I32", "BF16", 8, 1, 32, true, .zeros = true, .shuffled = true,
		.method = "compressed-tensors" },
	{ "gptq-4", ".qweight", ".scales", "I32", "F16", 4, 64, 1, true, true, true, .zero_bias = 1,
		.method = "gptq" },
	{ "gptq-3", ".qweight", ".scales", "I32", "F16", 3, 64, 1, true, true, true, .zero_bias = 1,
		.method = "gptq" },
	{ "gptq-2-act", ".qweight", ".scales", "I32", "F16", 2, 32, 1, true, true, true, true, .zero_bias = 1,
		.method = "gptq", .more = ", \"checkpoint_format\": \"gptq\"" },
	{ "gptq-8-v2", ".qweight", ".scales", "I32", "BF16", 8, 128, 1, true, true, true,
		.method = "gptq", .more = ", \"checkpoint_format\": \"gptq_v2\"" },
	{ "awq", ".qweight", ".scales", "I32", "F16", 4, 64, 1, true, true, true, .method = "awq",
		.more = ", \"version\": \"GEMM\"" },
	{ "auto-round", ".qweight", ".scales", "I32", "F16", 5, 32, 1, true, true, true, .zero_bias = 1,
		.method = "auto-round" },
	{ "auto-round-v2", ".qweight", ".scales", "I32", "F16", 4, 32, 1, true, true, true,
		.method = "auto-round", .more = ", \"packing_format\": \"auto_round\"" },
	{ "auto-round-awq", ".qweight", ".scales", "I32", "F16", 4, 32, 1, true, true, true,
		.method = "auto-round", .more = ", \"packing_format\": \"auto_round:auto_awq\"" },
	{ "mlx", ".weight", ".scales", "U32", "BF16", 4, 1, 64, true, .biases = true, .method = NULL,
		.more = "\"group_size\": 64, \"bits\": 4" },
	{ "mlx-own", ".weight", ".scales", "U32", "F16", 3, 1, 32, true, .biases = true, .own = true, .method = NULL,
		.more = "\"group_size\": 32, \"bits\": 3, \"mode\": \"affine\", \"lm_head\": false, "
		"\"model.layers.0.mlp.down_proj\": {\"group_size\": 64, \"bits\": 6}" },
	{ "bnb-8", ".weight", ".SCB", "I8", "F32", 8, 1, 0, .method = "bitsandbytes" },
	{ "bnb-nf4", "", ".absmax", "U8", "U8", 4, .line = 64, .nested = 256, .method = "bitsandbytes" },
	{ "bnb-fp4", "", ".absmax", "U8", "BF16", 4, .line = 96, .method = "bitsandbytes" },
};
static bool is_bnb(const struct scheme *s) { return s->method && !strcmp(s->method, "bitsandbytes"); }
static const char *fault = "";
static bool damage(const char *what) { return !strcmp(fault, what); }
static uint64_t state;
static unsigned any(unsigned n)
{
	state = state*6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33)%n;
}
static void *need(size_t n)
{
	void *p = calloc(n + 1, 1);
	if (!p) exit(2);
	return p;
}

/* ---- a safetensors file ---- */

struct file { char *header; size_t n, room; unsigned char *data; size_t n_data, data_room; };
static void add(struct file *f, const char *base, const char *ending, const char *type, size_t rows, size_t columns,
	int n_dims, const void *data, size_t bytes)
{
	if (f->room - f->n < 1000) f->header = realloc(f->header, f->room += 100000);
	if (f->data_room - f->n_data < bytes) f->data = realloc(f->data, f->data_room += bytes + (1 << 24));
	if (!f->header || !f->data) exit(2);
	f->n += (size_t)snprintf(f->header + f->n, 1000, "%s\"%s%s\": {\"dtype\": \"%s\", \"shape\": [",
		f->n ? ", " : "{", base, ending, type);
	if (n_dims == 2) f->n += (size_t)snprintf(f->header + f->n, 100, "%zu, %zu", rows, columns);
	if (n_dims == 1) f->n += (size_t)snprintf(f->header + f->n, 100, "%zu", columns);
	f->n += (size_t)snprintf(f->header + f->n, 100, "], \"data_offsets\": [%zu, %zu]}", f->n_data,
		f->n_data + bytes);
	memcpy(f->data + f->n_data, data, bytes);
	f->n_data += bytes;
}
static void write_file(struct file *f, const char *folder)
{
	char path[500];
	FILE *out;
	f->header[f->n++] = '}';
	snprintf(path, sizeof path, "%s/model.safetensors", folder);
	out = fopen(path, "wb");
	if (!out) exit(2);
	for (int i = 0; i < 8; i++) fputc((int)((uint64_t)f->n >> 8*i & 255), out);
	if (fwrite(f->header, 1, f->n, out) != f->n || fwrite(f->data, 1, f->n_data, out) != f->n_data || fclose(out))
		exit(2);
}

/* ---- numbers and scales ---- */

/* A float of `mantissa` bits and an exponent with that bias, without infinities and NaN */
static double small_float(unsigned u, int mantissa, int bias)
{
	const int rest = (int)(u & 127), e = rest >> mantissa, m = rest & ((1 << mantissa) - 1);
	const double x = e ? ldexp(1 + ldexp(m, -mantissa), e - bias) : ldexp(m, 1 - bias - mantissa);
	return u & 128 ? -x : x;
}
/* What codes of bitsandbytes stand for, of the present weight and of its scales */
static float levels[16], scale_levels[256];
static double value_of(const struct scheme *s, unsigned u)
{
	static const double fours[] = { 0, .5, 1, 1.5, 2, 3, 4, 6 };
	if (s->line) return (double)levels[u];
	if (!strcmp(s->type, "F8_E4M3")) return small_float(u, 3, 7);
	if (!strcmp(s->type, "F8_E5M2")) return small_float(u, 2, 15);
	if (!strcmp(s->type, "U8")) return u & 8 ? -fours[u & 7] : fours[u & 7];
	return !strcmp(s->type, "I8") ? (double)(int8_t)u : (double)u;
}
static unsigned any_code(const struct scheme *s)
{
	unsigned u = any(1u << s->bits);
	if (!strcmp(s->type, "F8_E4M3")) return (u & 127) == 127 ? 0 : u;
	return !strcmp(s->type, "F8_E5M2") ? u & 0xbf : u;      /* none above 2, as all weights must be floats */
}
/* A scale that every type has: three bits of mantissa, or none; returns its bytes in to[]. */
static size_t any_scale(const char *type, double *x, unsigned char *to)
{
	const unsigned m = any(8), e = 1 + any(6);              /* (1 + m/8)*2^(e - 7) */
	uint32_t bits = (e + 120) << 23 | m << 20;
	*x = ldexp(1 + m/8.0, (int)e - 7);
	if (!strcmp(type, "F32")) return memcpy(to, &bits, 4), 4;
	if (!strcmp(type, "BF16")) return to[0] = (unsigned char)(bits >> 16), to[1] = (unsigned char)(bits >> 24), 2;
	if (!strcmp(type, "F16")) return bits = (e + 8) << 10 | m << 7, to[0] = (unsigned char)bits,
		to[1] = (unsigned char)(bits >> 8), 2;
	if (!strcmp(type, "F8_E4M3")) return to[0] = (unsigned char)(e << 3 | m), 1;
	*x = ldexp(1, (int)e - 7);
	return to[0] = (unsigned char)(e + 120), 1;
}

/* ---- packing ---- */

/* Packs the numbers of rows, or of columns, as streams of bits in integers of 32. */
struct packed { uint32_t *w; size_t rows, columns; };
static struct packed pack(const unsigned char *numbers, size_t rows, size_t columns, unsigned bits, bool down, bool awq)
{
	static const size_t places[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
	struct packed p = { NULL, down ? (rows*bits + 31)/32 : rows, down ? columns : (columns*bits + 31)/32 };
	p.w = need(4*p.rows*p.columns);
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < columns; c++)
			for (unsigned j = 0; j < bits; j++) {
				const size_t at = (down ? r : awq ? c/8*8 + places[c%8] : c)*bits + j;
				const uint32_t bit = numbers[r*columns + c] >> j & 1;
				p.w[down ? at/32*p.columns + c : r*p.columns + at/32] |= bit << at%32;
			}
	return p;
}

/* ---- a weight ---- */

enum { MOST_FACTORS = 1 << 12 };
struct matrix {
	const struct scheme *s;
	const char *base;
	size_t rows, columns, scale_rows, scale_columns;
	unsigned char *code, *zero, *scale, *bias; size_t scale_bytes, bias_bytes;
	double *scales, *biases;
	int32_t *group;
	float factor;
	float nested[MOST_FACTORS], offset;
};
/* All of a weight of bitsandbytes: a line of codes, two in a byte, the first one higher */
static void add_line(struct file *f, const struct matrix *m)
{
	const struct scheme *s = m->s;
	const size_t n = m->rows*m->columns, n_scales = m->scale_columns - damage("scale");
	const size_t n_nested = s->nested ? (m->scale_columns + s->nested - 1)/s->nested - damage("nested") : 0;
	char json[200];
	for (size_t i = 0; i < n; i += 2) m->code[i/2] = (unsigned char)(m->code[i] << 4 | m->code[i + 1]);
	if (s->nested) add(f, m->base, "", "U8", n/2, 1, 2, m->code, n/2);
	else add(f, m->base, "", "BF16", n/4, 1, 2, m->code, n/2);
	add(f, m->base, s->scale, s->scale_type, 0, n_scales, 1, m->scale,
		m->scale_bytes/m->scale_columns*n_scales);
	if (!damage("map")) add(f, m->base, ".quant_map", "F32", 0, 16, 1, levels, sizeof levels);
	if (s->nested) {
		add(f, m->base, ".nested_quant_map", "F32", 0, 256, 1, scale_levels, sizeof scale_levels);
		add(f, m->base, ".nested_absmax", "F32", 0, n_nested, 1, m->nested, 4*n_nested);
	}
	snprintf(json, sizeof json, "{\"quant_type\": \"x\", \"blocksize\": %u, \"dtype\": \"bfloat16\", "
		"\"shape\": [%zu, %zu], \"nested_blocksize\": %u, \"nested_offset\": %.9g}",
		damage("state") ? 0 : s->line, m->rows + damage("shape"), m->columns, s->nested, (double)m->offset);
	add(f, m->base, s->nested ? ".quant_state.bitsandbytes__nf4" : ".quant_state.bitsandbytes__fp4", "U8", 0,
		strlen(json), 1, json, strlen(json));
}
static bool is_awq(const struct scheme *s) { return strstr(s->name, "awq") != NULL; }
static void add_codes(struct file *f, const struct matrix *m)
{
	const struct scheme *s = m->s;
	const char *type = damage("type") ? "I16" : s->type;
	if (s->packed) {
		const struct packed p = pack(m->code, m->rows, m->columns, s->bits, s->turned && !is_awq(s),
			is_awq(s));
		const int64_t shape[2] = { (int64_t)m->rows + damage("shape"), (int64_t)m->columns };
		add(f, m->base, s->code, damage("type") ? "U32" : s->type, p.rows, p.columns, 2, p.w,
			4*p.rows*p.columns);
		if (!s->turned && !s->biases) add(f, m->base, "_shape", "I64", 0, 2, 1, shape, sizeof shape);
		free(p.w);
	} else if (s->bits == 4) {
		for (size_t i = 0; i < m->rows*m->columns/2; i++)
			m->code[i] = (unsigned char)(m->code[2*i] | m->code[2*i + 1] << 4);
		add(f, m->base, s->code, type, m->rows, m->columns/2, 2, m->code, m->rows*m->columns/2);
	} else add(f, m->base, s->code, type, m->rows, damage("type") ? m->columns/2 : m->columns, 2, m->code,
		m->rows*m->columns);
}
static void add_scales(struct file *f, const struct matrix *m)
{
	const struct scheme *s = m->s;
	const size_t r = m->scale_rows, c = m->scale_columns, n = r*c, each = m->scale_bytes/n;
	const bool less = damage("scale") && n > 2;
	add(f, m->base, s->scale, s->scale_type, r, less ? n - 1 : c, n == 1 ? 0 : less ? 1 : 2, m->scale,
		m->scale_bytes - less*each);
	if (s->biases && !damage("no bias"))
		add(f, m->base, ".biases", s->scale_type, r - damage("bias"), c, 2, m->bias,
			m->bias_bytes - damage("bias")*c*each);
	if (s->zeros && !s->packed) add(f, m->base, "_zero_point", "I8", r, c, 2, m->zero, n);
	else if (s->zeros) {
		const struct packed p = pack(m->zero, r, c, s->bits, !s->turned, is_awq(s));
		const size_t columns = p.columns - damage("zero");
		add(f, m->base, s->turned ? ".qzeros" : "_zero_point", "I32", p.rows, columns, 2, p.w,
			4*p.rows*columns);
		free(p.w);
	}
	if (damage("group")) m->group[1] = 9999;
	if (s->shuffled) add(f, m->base, s->turned ? ".g_idx" : "_g_idx", "I32", 0, s->turned ? m->rows : m->columns, 1,
		m->group, 4*(s->turned ? m->rows : m->columns));
	if (s->factor) add(f, m->base, !strcmp(s->code, "_packed") ? "_global_scale" : "_scale_2", "F32", 0, 1, 1,
		damage("factor") ? &(float){ -1 } : &m->factor, 4);
}
/* From -1 to 1, with as many digits as there are */
static float any_level(void) { return (float)((double)any(1u << 30)/(1 << 29) - 1); }
static void fill_nested(struct matrix *m)
{
	for (int i = 0; i < 16; i++) levels[i] = any_level();
	for (int i = 0; i < 256; i++) scale_levels[i] = any_level();
	for (int i = 0; i < MOST_FACTORS; i++) m->nested[i] = any_level();
	m->offset = any_level();
	for (size_t i = 0; m->s->nested && i < m->scale_columns; i++) {
		const unsigned u = any(256);
		const float x = scale_levels[u]*m->nested[i/m->s->nested];
		m->scale[i] = (unsigned char)u;
		m->scales[i] = (double)(x + m->offset);
	}
}
static void fill(struct matrix *m)
{
	const struct scheme *s = m->s;
	const size_t n = s->turned ? m->rows : m->columns, groups = s->turned ? m->scale_rows : m->scale_columns;
	for (size_t i = 0; i < m->rows*m->columns; i++) m->code[i] = (unsigned char)any_code(s);
	for (size_t i = 0; i < m->scale_rows*m->scale_columns; i++) {
		m->scale_bytes += any_scale(s->scale_type, m->scales + i, m->scale + m->scale_bytes);
		if (s->biases) m->bias_bytes += any_scale(s->scale_type, m->biases + i, m->bias + m->bias_bytes);
		m->zero[i] = (unsigned char)any(1u << s->bits);
	}
	for (size_t i = 0; i < n; i++) m->group[i] = (int32_t)(s->shuffled ? any((unsigned)groups) : 0);
	m->factor = 1.375f;
	if (s->line) fill_nested(m);
}
static float weight(const struct matrix *m, size_t r, size_t c)
{
	const struct scheme *s = m->s;
	const size_t sr = s->shuffled && s->turned ? (size_t)m->group[r] : s->block_rows ? r/s->block_rows : 0,
		sc = s->shuffled && !s->turned ? (size_t)m->group[c] : s->block_columns ? c/s->block_columns : 0,
		at = s->line ? (r*m->columns + c)/s->line : sr*m->scale_columns + sc;
	double zero = s->zero_bias, scale = m->scales[at];
	if (s->zeros) zero += s->packed ? m->zero[at] : (int8_t)m->zero[at];
	if (is_bnb(s) && !s->line) scale = (double)(float)(scale/127);
	if (s->factor) scale = (double)(float)(!strcmp(s->code, "_packed") ? scale/(double)m->factor :
		scale*(double)m->factor);
	if (s->biases) return (float)((double)(float)(value_of(s, m->code[r*m->columns + c])*scale) + m->biases[at]);
	return (float)((value_of(s, m->code[r*m->columns + c]) - zero)*scale);
}
static void add_weight(const struct scheme *s, const struct source_tensor *t, struct file *coded, struct file *floats)
{
	struct scheme twice = *s;
	char base[200];
	const size_t out = (size_t)t->shape[0], in = (size_t)t->shape[1],
		left_out = *s->code == '.' ? strlen(".weight") : 0;
	if (s->own && strstr(t->name, "down_proj")) {
		twice.bits *= 2;
		twice.block_columns *= 2;
		s = &twice;
	}
	struct matrix m = { .s = s, .base = base, .rows = s->turned ? in : out, .columns = s->turned ? out : in };
	float *w = need(4*out*in);
	m.scale_rows = s->block_rows ? (m.rows + s->block_rows - 1)/s->block_rows : 1;
	m.scale_columns = s->block_columns ? (m.columns + s->block_columns - 1)/s->block_columns : 1;
	if (s->line) m.scale_columns = (m.rows*m.columns + s->line - 1)/s->line;
	m.code = need(m.rows*m.columns);
	m.scale = need(4*m.scale_rows*m.scale_columns);
	m.zero = need(m.scale_rows*m.scale_columns);
	m.bias = need(4*m.scale_rows*m.scale_columns);
	m.biases = need(sizeof *m.biases*m.scale_rows*m.scale_columns);
	m.scales = need(sizeof *m.scales*m.scale_rows*m.scale_columns);
	m.group = need(4*(m.rows + m.columns));
	snprintf(base, sizeof base, "%.*s", (int)(strlen(t->name) - left_out), t->name);
	fill(&m);
	for (size_t r = 0; r < m.rows; r++)
		for (size_t c = 0; c < m.columns; c++)
			w[s->turned ? c*in + r : r*in + c] = weight(&m, r, c);
	add(floats, t->name, "", "F32", out, in, 2, w, 4*out*in);
	if (s->line) add_line(coded, &m);
	else add_codes(coded, &m);
	if (!s->line && !damage("no scale")) add_scales(coded, &m);
	if (is_bnb(s) && !s->line) add(coded, base, ".weight_format", "U8", 0, 1, 0, "", 1);
	add(coded, base, *s->code == '.' ? ".input_scale" : "_activation_scale", "F32", 0, 1, 1, &m.factor, 4);
	free(w);
	free(m.code);
	free(m.scale);
	free(m.zero);
	free(m.bias);
	free(m.biases);
	free(m.scales);
	free(m.group);
}

int main(int argc, char **argv)
{
	const struct scheme *s = schemes;
	struct file coded = { 0 }, floats = { 0 };
	struct checkpoint *c;
	if (argc < 6 || checkpoint_open(&c, argv[3], NULL)) return 2;
	while (s < schemes + sizeof schemes/sizeof *schemes && strcmp(s->name, argv[1])) s++;
	if (s == schemes + sizeof schemes/sizeof *schemes) return 2;
	state = strtoull(argv[2], NULL, 10);
	if (argc > 6) fault = argv[6];
	for (size_t i = 0; i < checkpoint_count(c); i++) {
		const struct source_tensor *t = checkpoint_at(c, i);
		const size_t columns = (size_t)t->shape[t->n_dims - 1];
		if (strstr(t->name, "layers.") && !strstr(t->name, "layers.0.")) continue;
		if (strstr(t->name, "_proj.weight")) {
			add_weight(s, t, &coded, &floats);
			continue;
		}
		void *data = need((size_t)t->bytes);
		if (checkpoint_read(c, t, 0, data, (size_t)t->n_weights, NULL)) return 2;
		for (int k = 0; k < 2; k++)
			add(k ? &floats : &coded, t->name, "", t->dtype->name, (size_t)t->shape[0], columns,
				(int)t->n_dims, data, (size_t)t->bytes);
		free(data);
	}
	write_file(&coded, argv[4]);
	write_file(&floats, argv[5]);
	if (s->method) printf("{\"quant_method\": \"%s\"%s}\n", s->method, s->more ? s->more : "");
	else printf("{%s}\n", s->more);
	free(coded.header);
	free(coded.data);
	free(floats.header);
	free(floats.data);
	checkpoint_close(c);
	return 0;
}
