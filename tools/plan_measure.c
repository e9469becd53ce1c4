/* SPDX-License-Identifier: MIT
 * plan_measure.c - see plan_measure.h. A task is one tensor in one type: its sample is read, decoded, encoded as
 * gguf-quantize would, decoded again and compared. */
#include <stdatomic.h>
#include <stdlib.h>
#include "../quant/quant.h"
#include "../quant/vec.h"
#include "msg.h"
#include "plan_measure.h"
#include "progress.h"

struct task { struct plan_tensor *p; size_t option; };
struct run {
	const struct plan_trials *how;
	struct task *task;
	atomic_ullong done;
};

static void *room(size_t n)
{
	return msg_need(malloc(n + 1));
}

/* The importances of a row's columns: imp, by which errors count, and weights, for the encoder. false: there are
 * none. */
static bool importances(const struct imatrix *im, const struct plan_tensor *p, uint32_t type, uint64_t row, float *imp,
	float *weights)
{
	const struct imatrix_entry *e = im ? imatrix_find(im, p->t->name) : NULL;
	const size_t cols = (size_t)p->t->ne[0], mat = (size_t)(row/p->t->ne[1]);
	struct quant_objective o = quant_objective_default(type, true);
	if (!e) return false;
	if (e->n_in != cols) {          /* the old form joins the importances of experts */
		struct imatrix_entry one = { e->name, cols, 1, e->sums + mat*cols, e->counts };
		if (e->n_mat != 1 || e->n_in != cols*p->t->ne[2]*p->t->ne[3]) return false;
		imatrix_importance(&one, 0, imp);
	} else if (e->n_mat == 1 || mat < e->n_mat) {
		imatrix_importance(e, e->n_mat > 1 ? mat : 0, imp);
	} else {
		return false;
	}
	quant_weigh(&o, imp, cols, weights);
	return true;
}

static void try_type(void *ctx, size_t i, int worker)
{
	struct run *r = ctx;
	const struct plan_trials *how = r->how;
	const struct plan_tensor *p = r->task[i].p;
	struct plan_option *o = p->option + r->task[i].option;
	const struct ggu_tensor *t = p->t;
	const size_t cols = (size_t)t->ne[0];
	const uint64_t rows = ggu_tensor_rows(t), most = (how->sample + cols - 1)/cols, n = rows < most ? rows : most;
	uint64_t in_row = 0, out_row = 0;
	double error = 0, norm = 0;
	float *x = room(cols*4*sizeof *x), *y = x + cols, *imp = y + cols, *weights = imp + cols;
	unsigned char *in, *out;
	struct ggu_error err;
	(void)worker;
	ggu_type_bytes(t->type, cols, &in_row);
	ggu_type_bytes(o->type, cols, &out_row);
	in = room((size_t)in_row);
	out = room((size_t)out_row);
	for (uint64_t k = 0; k < n; k++) {
		uint64_t row = k*rows/n;
		bool weighed = importances(how->im, p, o->type, row, imp, weights);
		struct quant_objective objective = quant_objective_default(o->type, weighed);
		if (ggu_read(how->f, t, row*in_row, in, (size_t)in_row, &err)) msg_die_error(how->name, &err);
		quant_decode(t->type, in, x, cols);
		if (vec_beyond(x, cols, 0x1p120f) < cols) continue;     /* gguf-quantize will report it */
		quant_encode(o->type, &objective, x, weighed ? weights : NULL, 1, cols, how->effort, out);
		quant_decode(o->type, out, y, cols);
		vec_loss(x, y, weighed ? imp : NULL, cols, &error, &norm);
	}
	o->error = norm > 0 ? error/norm : 0;
	o->energy = n ? norm*(double)rows/(double)n : 0;
	free(x);
	free(in);
	free(out);
	progress_set(atomic_fetch_add(&r->done, 1) + 1);
}

void plan_measure(struct plan_tensor *list, size_t n, const struct plan_trials *how, struct ggu_pool *pool)
{
	struct run r = { .how = how };
	size_t tasks = 0;
	for (size_t i = 0; i < n; i++) tasks += list[i].n - 1;
	r.task = room((tasks + 1)*sizeof *r.task);
	tasks = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 1; k < list[i].n; k++) r.task[tasks++] = (struct task){ list + i, k };
	progress_begin("measuring", tasks, "trials");
	ggu_pool_run(pool, tasks, try_type, &r);
	progress_end();
	free(r.task);
}
