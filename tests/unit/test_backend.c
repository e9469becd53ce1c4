/* SPDX-License-Identifier: MIT
 * test_backend.c - a model's calls go to its backend, and what has to be planned for a backend is asked of it. The
 * other backend here is the processor's with other packings: longer by half, beyond what the products read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "../../model/eval/model_internal.h"
#include "../../quant/quant.h"
#include "../lib/kinds.h"

static const struct kind *const kinds[] = { &transformer, &experts, &recurrent, &long_rope };
enum { KINDS = sizeof kinds/sizeof *kinds };

static size_t n_multiplied;
static enum ggu_status multiply(struct run *r, struct input *const *in, size_t n_in, const struct product *p, size_t n)
{
	n_multiplied += n;
	return backend_cpu.multiply(r, in, n_in, p, n);
}
static size_t packed_bytes(enum quant_act form, size_t n, size_t n_in)
{
	return backend_cpu.packed_bytes(form, n, n_in)*3/2;
}
static struct backend longer_packings(void)
{
	struct backend b = backend_cpu;
	b.packed_bytes = packed_bytes;
	b.multiply = multiply;
	return b;
}

static double cost_of_work(struct model *m)
{
	struct model_cost cost;
	assert_int_equal(model_cost(&cost, m, NULL, 64, LONG, 2, NULL), GGU_OK);
	return cost.work_bytes;
}
static size_t bytes_of_work(struct model *m)
{
	struct work *w = new_work(m, 64);
	size_t bytes = work_bytes(w);
	work_free(w);
	return bytes;
}

static void packings_have_the_room_that_the_backend_asks_for(void **unused)
{
	const struct backend other = longer_packings();
	(void)unused;
	for (size_t k = 0; k < KINDS; k++) {
		struct model *m = make_model(kinds[k], GGU_TYPE_Q8_0, 2);
		const double cost = cost_of_work(m);
		const size_t bytes = bytes_of_work(m);
		m->be = &other;
		assert_true(bytes_of_work(m) > bytes);
		assert_true(cost_of_work(m) - cost == (double)(bytes_of_work(m) - bytes));
		drop_model(m);
	}
}

static void calls_go_to_the_backend_of_the_model(void **unused)
{
	const struct backend other = longer_packings();
	(void)unused;
	for (size_t k = 0; k < KINDS; k++) {
		struct model *m = make_model(kinds[k], GGU_TYPE_Q8_0, 2);
		float *want = alone(m, GGU_TYPE_F32, text, LONG, 64), *rows;
		n_multiplied = 0;
		m->be = &other;
		rows = alone(m, GGU_TYPE_F32, text, LONG, 64);
		assert_true(n_multiplied > 0);
		same(rows, want, LONG);
		free(want);
		free(rows);
		drop_model(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packings_have_the_room_that_the_backend_asks_for),
		cmocka_unit_test(calls_go_to_the_backend_of_the_model),
	};
	if (quant_select(NULL, NULL)) return 1;         /* otherwise it would be portable C */
	for (int i = 0; i < LONG + 64; i++) text[i] = (i*i + 3*i) % VOCAB;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
