/* SPDX-License-Identifier: MIT
 * test_encoders.c - every encoder on every instruction set writes the bytes that portable C writes a row at a time:
 * any number of rows and blocks, every effort, every kind of weights and importances, between guard pages. Finite
 * weights stay finite.
 *
 * In tests/unit, test_encode.c, test_lattice.c and test_sizes.c test how good those bytes are, the first also that they
 * stay as they were. */
#include <math.h>
#include <string.h>
#include "../../libgguf/types.h"
#include "../../quant/quant.h"
#include "../lib/kerntest.h"

enum { NO_IMPORTANCE = KT_FLOATS };

static void check_values(const struct ggu_type_info *t, const float *x, const uint8_t *blocks, size_t n,
	enum kt_floats kind)
{
	float *y = kt_buffer(4*n);
	/* F16, BF16 and Q8_0 round as ggml does: what is too large becomes infinite */
	bool finite = t->kind == GGU_KIND_BLOCK && t->id != GGU_TYPE_Q8_0;
	quant_decode(t->id, blocks, y, n);
	for (size_t i = 0; i < n; i++)
		if (finite && isinf(y[i])) kt_fail("%a became %a", x[i], y[i]);
		else if (finite && kind != KT_STRANGE && isnan(y[i]))
			kt_fail("%a became NaN, weights: %s", x[i], kt_floats_name[kind]);
	kt_free(y, 4*n);
}

/* weights and importance: kinds of kt_fill_floats; importances are magnitudes */
static void encode(const struct ggu_type_info *t, const char *isa, size_t rows, size_t cols, int effort,
	enum kt_floats weights, int importance)
{
	size_t row = cols/t->block_weights*t->block_bytes, bytes = rows*row, skew = kt_below(4);
	const struct quant_objective usual = quant_objective_default(t->id, true);
	float *x = kt_buffer(4*rows*cols), *imp = importance == NO_IMPORTANCE ? NULL : kt_buffer(4*cols);
	uint8_t *want = kt_buffer(bytes), *got = (uint8_t *)kt_buffer(skew + bytes) + skew;
	kt_fill_floats(x, rows*cols, weights);
	if (imp) {
		kt_fill_floats(imp, cols, importance);
		for (size_t j = 0; j < cols; j++) imp[j] = fabsf(imp[j]);
		quant_weigh(&usual, imp, cols, imp);
	}
	quant_select("c", NULL);
	for (size_t r = 0; r < rows; r++) quant_encode(t->id, NULL, x + r*cols, imp, 1, cols, effort, want + r*row);
	quant_select(isa, NULL);
	quant_encode(t->id, NULL, x, imp, rows, cols, effort, got);
	for (size_t i = 0; i < bytes; i++)
		if (want[i] != got[i]) {
			kt_fail("%zu rows of %zu, effort %d: byte %zu of row %zu is %02x, not %02x; weights: %s, "
				"importances: %s", rows, cols, effort, i % row,
				i/row, got[i], want[i], kt_floats_name[weights], imp ? kt_floats_name[importance] :
					"none");
			break;
		}
	check_values(t, x, got, rows*cols, weights);
	kt_free(x, 4*rows*cols); kt_free(want, bytes); kt_free(got - skew, skew + bytes);
	if (imp) kt_free(imp, 4*cols);
}

static void check_type(const struct ggu_type_info *t, const char *isa)
{
	static const size_t edges[] = { 1, 2, 3, 7, 8, 9, 15, 16, 17, 33 };
	size_t unit = t->block_weights;
	kt_name("%s %s encodes any number of rows and blocks", t->name, isa);
	for (size_t i = 0; i < sizeof edges/sizeof *edges && !kt_failed(); i++)
		for (size_t k = 1; k < 4; k++)
			encode(t, isa, edges[i], unit*(k < 3 ? k : unit == 1 ? 1 + kt_below(67) :
				3 + kt_below(unit < 256 ? 15 : 3)), 1 + (int)kt_below(5), KT_MIXED,
				k == 1 ? NO_IMPORTANCE : KT_MIXED);
	kt_result();
	kt_name("%s %s encodes at every effort", t->name, isa);
	for (int effort = QUANT_EFFORT_MIN; effort <= QUANT_EFFORT_MAX && !kt_failed(); effort++)
		for (int k = 0; k < 2; k++)
			encode(t, isa, 1 + kt_below(3), unit*(1 + kt_below(unit < 256 ? 9 : 2)), effort,
				kt_below(3) ? KT_MIXED : KT_OUTLIERS, k ? NO_IMPORTANCE : KT_MIXED);
	kt_result();
	kt_name("%s %s encodes weights and importances of every kind", t->name, isa);
	for (int weights = 0; weights < KT_FLOATS; weights++)
		for (int importance = 0; importance <= KT_FLOATS && !kt_failed(); importance++)
			encode(t, isa, 1 + kt_below(3), unit*(1 + kt_below(unit == 1 ? 67 : unit < 256 ? 4 : 1)),
				1 + (int)kt_below(5), weights, importance);
	kt_result();
}

/* Bytes that no encoder of a format writes: the fourth level of TQ2_0, scales of NVFP4 with the top bit set. */
static void usual_bytes(const struct ggu_type_info *t, uint8_t *block)
{
	for (int i = 0; i < 64 && t->id == GGU_TYPE_TQ2_0; i++) block[i] &= (uint8_t)~(block[i] >> 1 & 0x55);
	for (int i = 0; i < 4 && t->id == GGU_TYPE_NVFP4; i++) block[i] &= 127;
}
/* Weights that a block can hold exactly are encoded exactly, with and without importances. */
static void check_lattice(const struct ggu_type_info *t, const char *isa)
{
	enum { BLOCKS = 24 };
	const struct quant_objective usual = quant_objective_default(t->id, true);
	size_t n = BLOCKS*t->block_weights, lost = 0;
	uint8_t *blocks = kt_buffer(BLOCKS*t->block_bytes);
	float *x = kt_buffer(4*n), *y = kt_buffer(4*n), *w = kt_buffer(4*n);
	kt_name("%s %s encodes what it decoded without error", t->name, isa);
	quant_select(isa, NULL);
	kt_fill_blocks(t, blocks, BLOCKS, KT_RANDOM);
	for (size_t b = 0; b < BLOCKS; b++) usual_bytes(t, blocks + b*t->block_bytes);
	quant_decode(t->id, blocks, x, n);
	kt_fill_floats(w, n, KT_MIXED);
	for (size_t i = 0; i < n; i++) w[i] = fabsf(w[i]);
	quant_weigh(&usual, w, n, w);
	for (int weighed = 0; weighed < 2; weighed++) {
		quant_encode(t->id, NULL, x, weighed ? w : NULL, 1, n, QUANT_EFFORT_DEFAULT, blocks);
		quant_decode(t->id, blocks, y, n);
		for (size_t i = 0; i < n; i++)
			if (x[i] != y[i] && !lost++)
				kt_fail("weight %zu: %a became %a%s", i, x[i], y[i], weighed ? ", with importances" :
					"");
	}
	kt_free(blocks, BLOCKS*t->block_bytes); kt_free(x, 4*n); kt_free(y, 4*n); kt_free(w, 4*n);
	kt_result();
}

int main(int argc, char **argv)
{
	kt_begin(argc, argv);
	for (const char *const *isa = quant_available(); *isa; isa++)
		for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++)
			if (ggu_type_info(id) && quant_can_encode(id)) {
				check_type(ggu_type_info(id), *isa);
				/* Q8_0 has one rule of rounding, for weights on its lattice too */
				if (id != GGU_TYPE_Q8_0) check_lattice(ggu_type_info(id), *isa);
			}
	return kt_end();
}
