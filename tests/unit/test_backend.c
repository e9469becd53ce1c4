/* SPDX-License-Identifier: MIT
 * test_backend.c - a model's calls go to its backend, and what has to be planned for a backend is asked of it. The
 * other backends here are the processor's, one with packings that are longer by half, beyond what the products read,
 * and one whose buffers are memory that can be touched only while it works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "../../model/eval/model_internal.h"
#include "../../model/eval/profile.h"
#include "../../quant/quant.h"
#include "../lib/kinds.h"

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
	for (const struct kind *const *k = kinds; *k; k++) {
		struct model *m = make_model(*k, GGU_TYPE_Q8_0, 2);
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
	for (const struct kind *const *k = kinds; *k; k++) {
		struct model *m = make_model(*k, GGU_TYPE_Q8_0, 2);
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

/* ---- buffers that nothing but the backend can reach ---- */

/* From the first call of a work on, its buffers have an address only during calls, and their memory, which is not what
 * the work allocated, can be touched only then: pointers into it that somebody keeps are of no use either. What
 * operators have planned until then is not more than what they said it would be. */
static struct { struct work *w; char *own, *base; size_t bytes; } hidden;
static void protect(int how) { assert_int_equal(mprotect(hidden.base, hidden.bytes, how), 0); }
static void take_buffers(struct work *w)
{
	hidden.w = w;
	hidden.own = w->base;
	hidden.bytes = w->bytes + 64;
	hidden.base = mmap(NULL, hidden.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(hidden.base != MAP_FAILED);
}
static void give_buffers_back(void)
{
	assert_non_null(hidden.w);
	munmap(hidden.base, hidden.bytes);
	hidden.w->base = hidden.own;
	hidden.w = NULL;
}
static void show(const struct run *r)
{
	assert_true(r->plan.peak <= r->w->bytes && r->plan.host_peak <= r->w->host_bytes);
	if (!hidden.w) take_buffers(r->w);
	assert_ptr_equal(hidden.w, r->w);
	r->w->base = hidden.base;
	protect(PROT_READ | PROT_WRITE);
}
static void hide(const struct run *r)
{
	protect(PROT_NONE);
	r->w->base = NULL;
}

static enum ggu_status hid_multiply(struct run *r, struct input *const *in, size_t n_in, const struct product *p,
	size_t n)
{
	enum ggu_status s;
	show(r);
	s = backend_cpu.multiply(r, in, n_in, p, n);
	hide(r);
	return s;
}
static void hid_attend(struct run *r, const struct attend *a) { show(r); backend_cpu.attend(r, a); hide(r); }
static void hid_store(struct run *r, const struct attend *a) { show(r); backend_cpu.store(r, a); hide(r); }
static void hid_route(struct run *r, const struct router *o, size_t scores, const struct routes *to)
{
	show(r);
	backend_cpu.route(r, o, scores, to);
	hide(r);
}
static void hid_combine(struct run *r, const struct combine *c) { show(r); backend_cpu.combine(r, c); hide(r); }
static void hid_conv(struct run *r, const struct conv *c) { show(r); backend_cpu.conv(r, c); hide(r); }
static void hid_scan_channels(struct run *r, const struct channel_scan *s)
{
	show(r);
	backend_cpu.scan_channels(r, s);
	hide(r);
}
static void hid_scan_heads(struct run *r, const struct head_scan *s)
{
	show(r);
	backend_cpu.scan_heads(r, s);
	hide(r);
}
static void hid_embed(struct run *r, const int32_t *ids, const float *from)
{
	show(r);
	backend_cpu.embed(r, ids, from);
	hide(r);
}
static void hid_settle(struct run *r) { show(r); backend_cpu.settle(r); hide(r); }
static void hid_keep(const struct run *r, size_t at, size_t stride, size_t from, size_t n, size_t to)
{
	show(r);
	backend_cpu.keep(r, at, stride, from, n, to);
	hide(r);
}
static void hid_fetch(const struct run *r, const struct norm *norm, float *to)
{
	show(r);
	backend_cpu.fetch(r, norm, to);
	hide(r);
}

/* Evaluates n tokens of which the last two are wanted. */
static void end_of(struct work *w, struct state *s, const int32_t *ids, size_t n, float *rows)
{
	struct part part = { s, ids, n, n - 2 };
	struct ggu_error err = { 0 };
	assert_int_equal(model_eval(w, &(struct model_call){ .part = &part, .n_parts = 1, .rows = rows }, &err),
		GGU_OK);
}
/* A state that was saved and loaded goes on, and is cut to where a snapshot was made. */
static void go_on_elsewhere(struct model *m, struct work *w, const struct state *from, float *rows)
{
	const size_t n = state_save_bytes(from);
	struct state *s = new_state(m, GGU_TYPE_F32);
	char *saved = malloc(n);
	struct ggu_error err = { 0 };
	assert_non_null(saved);
	state_save(from, saved);
	assert_int_equal(state_load(s, saved, n, &err), GGU_OK);
	assert_int_equal(state_snapshot(s, &err), GGU_OK);
	end_of(w, s, text + 20, 70, rows);
	assert_int_equal(state_truncate(s, 103, &err), GGU_OK);
	end_of(w, s, text + 40, 5, rows + 2*WIDE);
	free(saved);
	state_free(s);
}
/* Two sequences in a call, one of which is forked in the middle of a page and goes on token by token, then elsewhere.
 * Rows that are not wanted are left out. */
enum { BOTH = 130, ROWS_OUT = BOTH + 3 + 67 + 4 };
static void go_both_ways(struct model *m, float *rows)
{
	struct work *w = new_work(m, 64);
	struct state *a = new_state(m, GGU_TYPE_F32), *b = new_state(m, GGU_TYPE_F32), *c;
	struct part parts[] = { { a, text, 100, 0 }, { b, text + 5, 30, 0 } };
	const struct model_call both = { .part = parts, .n_parts = 2, .rows = rows };
	struct ggu_error err = { 0 };
	assert_int_equal(model_eval(w, &both, &err), GGU_OK);
	assert_int_equal(state_fork(&c, a, &err), GGU_OK);
	for (int i = 0; i < 3; i++) go_on(w, c, text + 100 + i, 1, rows + (BOTH + i)*WIDE);
	go_on(w, a, text + 7, 67, rows + (BOTH + 3)*WIDE);
	go_on_elsewhere(m, w, c, rows + (BOTH + 70)*WIDE);
	if (m->be != &backend_cpu) give_buffers_back();
	state_free(a);
	state_free(b);
	state_free(c);
	work_free(w);
}
static void only_the_backend_knows_where_buffers_are(void **unused)
{
	const struct backend hides = {
		.packed_bytes = backend_cpu.packed_bytes, .attend_bytes = backend_cpu.attend_bytes,
		.thread_bytes = backend_cpu.thread_bytes, .multiply = hid_multiply, .attend = hid_attend,
		.store = hid_store, .route = hid_route, .combine = hid_combine, .conv = hid_conv,
		.scan_channels = hid_scan_channels, .scan_heads = hid_scan_heads, .embed = hid_embed,
		.settle = hid_settle, .keep = hid_keep, .fetch = hid_fetch,
	};
	static float want[ROWS_OUT*WIDE], rows[ROWS_OUT*WIDE];
	(void)unused;
	for (const struct kind *const *k = kinds; *k; k++) {
		struct model *m = make_model(*k, GGU_TYPE_Q8_0, 2);
		go_both_ways(m, want);
		m->be = &hides;
		go_both_ways(m, rows);
		same(rows, want, ROWS_OUT);
		drop_model(m);
	}
}

/* ---- calls of an operator ---- */

enum { ROWS = 11 };
/* Rows of a new buffer: numbers that depend on their place and the seed */
static size_t drawn(struct run *r, float **at, int seed)
{
	size_t buffer = plan_floats(&r->plan, ROWS, WIDE);
	*at = work_at(r->w, buffer);
	for (int i = 0; i < ROWS*WIDE; i++) (*at)[i] = (float)((i*i + seed*i)%101 - 50)/64;
	return buffer;
}

static void inputs_are_made_without_products(void **unused)
{
	struct model *m = make_model(&transformer, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	struct run r = work_begin(w, ROWS);
	struct profile p = { 0 };
	float *x, *y, *z;
	size_t gate = drawn(&r, &x, 3), up = drawn(&r, &y, 5);
	struct input in = { .kind = INPUT_GATE, .at = drawn(&r, &z, 7), .stride = WIDE, .n = ROWS, .n_in = WIDE,
		.gate = { .act = ACT_NONE, .has_up = true, .gate = gate, .up = up, .gate_stride = WIDE,
			.up_stride = WIDE, .alpha = 1 } };
	(void)unused;
	work_profile(w, &p);
	assert_int_equal(r.be->multiply(&r, &(struct input *){ &in }, 1, NULL, 0), GGU_OK);
	for (int i = 0; i < ROWS*WIDE; i++) assert_true(z[i] == x[i]*y[i]);
	assert_int_equal(p.n, 1);
	assert_string_equal(p.row[0].name, "inputs");
	work_free(w);
	drop_model(m);
}

static enum ggu_status count(void *ctx, const struct quant_input *in)
{
	assert_true(in->n_in == WIDE && in->n == ROWS);
	++*(int *)ctx;
	return GGU_OK;
}

static void products_that_nobody_reads_are_left_out_alone(void **unused)
{
	static float matrix[2][WIDE*WIDE];
	const struct weight a = { .name = "a", .data = matrix[0], .type = GGU_TYPE_F32, .n_in = WIDE, .n_out = WIDE,
		.n_mat = 1, .row_bytes = WIDE*sizeof(float) };
	struct weight b = a;
	struct model *m = make_model(&transformer, GGU_TYPE_F32, 2);
	struct work *w = new_work(m, 64);
	struct run r = work_begin(w, ROWS);
	struct profile profile = { 0 };
	float *x, *y, *z;
	struct input in = { .kind = INPUT_ROWS, .at = drawn(&r, &x, 3), .stride = WIDE, .n = ROWS, .n_in = WIDE };
	size_t read = drawn(&r, &y, 5), alone_read = drawn(&r, &z, 7);
	struct product both[] = { { &a, 0, &in, NO_BUFFER, 0 }, { &b, 0, &in, read, WIDE } };
	struct product single = { &b, 0, &in, alone_read, WIDE };
	int told = 0;
	(void)unused;
	b.name = "b";
	b.data = matrix[1];
	for (int i = 0; i < WIDE*WIDE; i++) matrix[1][i] = (float)(i%13 - 6)/8;
	input_plan(&r.plan, &in, weight_form(&a));
	assert_int_equal(r.be->multiply(&r, &(struct input *){ &in }, 1, &single, 1), GGU_OK);
	work_profile(w, &profile);
	r.tap = count;
	r.tap_ctx = &told;
	assert_int_equal(r.be->multiply(&r, &(struct input *){ &in }, 1, both, 2), GGU_OK);
	assert_memory_equal(y, z, ROWS*WIDE*sizeof *y);
	assert_int_equal(told, 2);
	assert_string_equal(profile.row[profile.n - 1].name, "b");
	work_free(w);
	drop_model(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packings_have_the_room_that_the_backend_asks_for),
		cmocka_unit_test(calls_go_to_the_backend_of_the_model),
		cmocka_unit_test(only_the_backend_knows_where_buffers_are),
		cmocka_unit_test(inputs_are_made_without_products),
		cmocka_unit_test(products_that_nobody_reads_are_left_out_alone),
	};
	if (quant_select(NULL, NULL)) return 1;         /* otherwise it would be portable C */
	for (int i = 0; i < LONG + 64; i++) text[i] = (i*i + 3*i) % VOCAB;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
