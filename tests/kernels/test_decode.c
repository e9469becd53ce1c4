/* SPDX-License-Identifier: MIT
 * test_decode.c - every type on every instruction set decodes to the bits of portable C and of the slow path:
 * random blocks, bytes at their ends, scales zero, negative, subnormal, infinite and NaN; any number of blocks, at any
 * alignment, between guard pages. Scalars: all 65536 halves, and the rounding between each two; test_floats.c has
 * arrays of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../../libgguf/types.h"
#include "../../quant/quant.h"
#include "../lib/kerntest.h"
#include "../lib/slow.h"

static void decode(const struct ggu_type_info *t, const char *isa, size_t blocks, enum kt_blocks kind)
{
	size_t n = blocks*t->block_weights, bytes = blocks*t->block_bytes, skew = kt_below(4), at;
	uint8_t *room = kt_buffer(bytes + skew), *w = room + skew;
	float *c = kt_buffer(4*n), *y = kt_buffer(4*n), slow;
	kt_fill_blocks(t, w, blocks, kind);
	quant_select("c", NULL);
	quant_decode(t->id, w, c, n);
	quant_select(isa, NULL);
	quant_decode(t->id, w, y, n);
	if (!kt_same(c, y, n, &at))
		kt_fail("weight %zu of %zu: %a, portable C %a; blocks: %s", at, n, y[at], c[at], kt_blocks_name[kind]);
	for (size_t i = 0; i < n; i++)
		if (!slow_decode(t->id, w, i, &slow) || !kt_same(&slow, y + i, 1, NULL)) {
			kt_fail("weight %zu of %zu: %a, not %a; blocks: %s", i, n, y[i], slow, kt_blocks_name[kind]);
			break;
		}
	kt_free(room, bytes + skew); kt_free(c, 4*n); kt_free(y, 4*n);
}

static void check_halves(void)
{
	for (uint32_t h = 0; h < 65536; h++) {
		uint8_t b[2] = { (uint8_t)h, (uint8_t)(h >> 8) };
		float f = quant_f16_to_f32((uint16_t)h), g = quant_bf16_to_f32((uint16_t)h), slow;
		slow_decode(GGU_TYPE_F16, b, 0, &slow);
		if (!kt_same(&f, &slow, 1, NULL)) kt_fail("half %04x is %a, not %a", h, f, slow);
		slow_decode(GGU_TYPE_BF16, b, 0, &slow);
		if (!kt_same(&g, &slow, 1, NULL)) kt_fail("bfloat %04x is %a, not %a", h, g, slow);
		if (!isnan(f) && quant_f32_to_f16(f) != h) kt_fail("half %04x does not come back", h);
		if (!isnan(g) && quant_f32_to_bf16(g) != h) kt_fail("bfloat %04x does not come back", h);
		if ((h & 0x7fff) >= 0x7bff) continue;
		/* between two halves: to the nearer one, from the middle to the even one */
		float next = quant_f16_to_f32((uint16_t)(h + 1)), mid = f + (next - f)/2;
		if (quant_f32_to_f16(mid) != h + (h & 1) || quant_f32_to_f16(nextafterf(mid, f)) != h ||
			quant_f32_to_f16(nextafterf(mid, next)) != h + 1)
			kt_fail("rounding beside half %04x", h);
	}
}
/* Every name of sets.inc is accepted or refused, and what is accepted selects an instance that exists. */
static void check_names(void)
{
#define SET(name, ...) #name,
	static const char *const names[] = {
#include "../../quant/sets.inc"
		"native", "z80"
	};
#undef SET
	for (size_t i = 0; i < sizeof names/sizeof *names; i++) {
		struct ggu_error err = { 0 };
		bool runs = false;
		if (quant_select(names[i], &err) == GGU_ERR_UNSUPPORTED) {
			if (!strstr(err.what, names[i])) kt_fail("%s is refused with '%s'", names[i], err.what);
			continue;
		}
		for (const char *const *isa = quant_available(); *isa; isa++) runs |= !strcmp(*isa, quant_selected());
		if (!runs || i == sizeof names/sizeof *names - 1) kt_fail("%s selects %s", names[i], quant_selected());
	}
	if (quant_select("c", NULL) != GGU_OK || strcmp(quant_selected(), "c")) kt_fail("no portable C");
}

int main(int argc, char **argv)
{
	kt_begin(argc, argv);
	kt_name("scalars: halves and bfloats come back, and round to the nearest");
	check_halves();
	kt_result();
	for (const char *const *isa = quant_available(); *isa; isa++) {
		for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++) {
			const struct ggu_type_info *t = ggu_type_info(id);
			size_t most = t && t->block_weights == 1 ? 67 : 20;
			if (!t || !quant_can_decode(id)) continue;
			kt_name("%s %s decodes", t->name, *isa);
			for (int kind = 0; kind < KT_BLOCKS; kind++)
				for (size_t n = 0; n <= most && !kt_failed(); n++) decode(t, *isa, n, kind);
			kt_result();
		}
	}
	kt_name("every block type decodes and multiplies");
	for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++) {
		const struct ggu_type_info *t = ggu_type_info(id);
		if (!t || t->kind != GGU_KIND_BLOCK || id == GGU_TYPE_Q8_1 || id == GGU_TYPE_Q8_K) continue;
		if (!quant_can_decode(id) || !quant_can_multiply(id)) kt_fail("%s does not", t->name);
	}
	kt_result();
	kt_name("instruction sets are selected or refused by name");
	check_names();
	kt_result();
	return kt_end();
}
