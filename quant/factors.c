/* SPDX-License-Identifier: MIT
 * factors.c - see factors.h. A separate thread goes through the matrices in order, reads covariances and computes
 * factors with a pool of its own. It pauses while a new one waits to be taken. So memory holds that one, the last ones
 * made, which weights with the same input share, and those in use. If no thread can be started, each factor is computed
 * when it is requested. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/zeros.h"
#include "factors.h"

enum { KEPT = 3 };              /* weights that share an input are near each other */
struct kept { char *of; size_t mat; double damp; struct quant_feedback *q; };
/* A matrix that has feedback, if its numbers are a covariance. */
struct item {
	size_t i, mat;
	bool made, fresh;               /* fresh: not shared with one before */
	struct quant_feedback *q;
};
struct factors {
	const struct remake *r;
	int n_threads;
	pthread_t thread;
	bool started;                   /* the thread */
	pthread_mutex_t lock;           /* of what follows */
	pthread_cond_t moved;
	struct item *item;              /* [n] */
	size_t n, next;                 /* next: the next to be requested */
	size_t n_fresh;                 /* computed and not yet requested */
	bool stop;
	enum ggu_status status;
	struct ggu_error err;
	/* the thread's, or the caller's if there is no thread */
	struct ggu_pool *pool;          /* NULL: none */
	struct kept kept[KEPT];
	size_t n_made;                  /* of those kept */
};

static bool wanted(const struct remake *r, size_t i, size_t mat, struct remake_known *known, double *damp)
{
	const struct remake_covariance *c = r->covariance;
	const struct ggu_tensor *t = r->t[i];
	const uint32_t to = r->choice[i].type;
	if (t->type == to || !quant_can_feed_back(to) || (c->damp < 0 && !quant_feedback_pays(to))) return false;
	if (!c->find(c->ctx, t->name, mat, known) || known->n_in != t->ne[0]) return false;
	*damp = c->damp >= 0 ? c->damp : quant_feedback_damp(to, known->block, known->tokens);
	return true;
}

/* ---- the thread ---- */

static enum ggu_status make(struct factors *f, const struct item *m, const struct remake_known *known, double damp,
	struct quant_feedback **q, struct ggu_error *err)
{
	const struct remake_covariance *c = f->r->covariance;
	const char *tensor = f->r->t[m->i]->name;
	float *mean = known->n_floats < SIZE_MAX/sizeof *mean ? ggu_zeros(known->n_floats, sizeof *mean) : NULL;
	enum ggu_status s = mean ? c->get(c->ctx, tensor, m->mat, mean, err)
		: ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, tensor, "out of memory");
	if (s == GGU_OK) s = quant_feedback_new(q, known->n_in, known->block, mean, damp, f->pool, err);
	free(mean);
	/* the numbers are not a covariance: only importances are used */
	return s == GGU_ERR_RANGE ? GGU_OK : s;
}
static enum ggu_status share_or_make(struct factors *f, struct item *m, struct ggu_error *err)
{
	struct kept *k = &f->kept[f->n_made % KEPT];
	struct remake_known known;
	double damp;
	enum ggu_status s;
	if (!wanted(f->r, m->i, m->mat, &known, &damp)) return GGU_OK;
	for (size_t j = 0; j < KEPT; j++)
		if (f->kept[j].q && f->kept[j].mat == m->mat && f->kept[j].damp == damp
			&& strcmp(f->kept[j].of, known.of) == 0) {
			m->q = quant_feedback_share(f->kept[j].q);
			return GGU_OK;
		}
	free(k->of);
	quant_feedback_free(k->q);
	*k = (struct kept){ strdup(known.of), m->mat, damp, NULL };
	if (!k->of) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, known.of, "out of memory");
	s = make(f, m, &known, damp, &k->q, err);
	m->q = quant_feedback_share(k->q);
	m->fresh = m->q;
	f->n_made += m->fresh;
	return s;
}
/* Item k was requested or skipped. */
static void drop(struct factors *f, size_t k)
{
	quant_feedback_free(f->item[k].q);
	f->item[k].q = NULL;
	f->n_fresh -= f->item[k].fresh;
	f->item[k].fresh = false;
}
/* Called with the lock held; releases it meanwhile. */
static void make_item(struct factors *f, size_t k)
{
	struct item m = f->item[k];
	struct ggu_error err;
	enum ggu_status s;
	pthread_mutex_unlock(&f->lock);
	s = share_or_make(f, &m, &err);
	pthread_mutex_lock(&f->lock);
	m.made = !s;
	f->item[k] = m;
	f->n_fresh += m.fresh;
	if (k < f->next) drop(f, k);
	f->status = s;
	if (s) f->err = err;
	pthread_cond_signal(&f->moved);
}
static void *make_all(void *ctx)
{
	struct factors *f = ctx;
	f->pool = ggu_pool_new(f->n_threads);
	pthread_mutex_lock(&f->lock);
	if (!f->pool) f->status = ggu_no_memory(&f->err);
	for (size_t k = 0; k < f->n && !f->status; k++) {
		while (f->n_fresh && !f->stop) pthread_cond_wait(&f->moved, &f->lock);
		if (f->stop) break;
		if (k >= f->next) make_item(f, k);      /* not skipped */
	}
	pthread_cond_signal(&f->moved);
	pthread_mutex_unlock(&f->lock);
	ggu_pool_free(f->pool);
	return NULL;
}

/* ---- the caller ---- */

enum ggu_status factors_get(struct factors *f, size_t i, size_t mat, struct quant_feedback **q, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	*q = NULL;
	pthread_mutex_lock(&f->lock);
	for (const struct item *m; f->next < f->n; drop(f, f->next++)) {
		m = f->item + f->next;
		if (m->i > i || (m->i == i && m->mat >= mat)) break;
	}
	pthread_cond_signal(&f->moved);
	if (f->next < f->n && f->item[f->next].i == i && f->item[f->next].mat == mat) {
		struct item *m = f->item + f->next;
		if (!f->started && !f->status) make_item(f, f->next);
		while (!m->made && !f->status) pthread_cond_wait(&f->moved, &f->lock);
		if (!m->made) {
			s = f->status;
			if (err) *err = f->err;
		}
		*q = quant_feedback_share(m->q);
		drop(f, f->next++);
		pthread_cond_signal(&f->moved);
	}
	pthread_mutex_unlock(&f->lock);
	return s;
}
static size_t n_mats(const struct ggu_tensor *t) { return (size_t)(t->ne[2]*t->ne[3]); }
/* Lists the matrices that have feedback, or counts them. */
static size_t list(const struct remake *r, struct item *to)
{
	struct remake_known known;
	double damp;
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		for (size_t mat = 0; mat < n_mats(r->t[i]); mat++) {
			if (!wanted(r, i, mat, &known, &damp)) continue;
			if (to) to[n] = (struct item){ .i = i, .mat = mat };
			n++;
		}
	return n;
}
enum ggu_status factors_new(struct factors **to, const struct remake *r, int n_threads, struct ggu_error *err)
{
	struct factors *f = calloc(1, sizeof *f);
	const size_t n = list(r, NULL);
	if (f) *f = (struct factors){ .r = r, .n_threads = n_threads, .n = n, .item = calloc(n + 1, sizeof *f->item) };
	if (f && f->item) {
		list(r, f->item);
		pthread_mutex_init(&f->lock, NULL);
		pthread_cond_init(&f->moved, NULL);
		f->started = !pthread_create(&f->thread, NULL, make_all, f);
		*to = f;
		return GGU_OK;
	}
	free(f);
	return ggu_no_memory(err);
}
void factors_free(struct factors *f)
{
	if (!f) return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->moved);
	pthread_mutex_unlock(&f->lock);
	if (f->started) pthread_join(f->thread, NULL);
	for (size_t k = 0; k < KEPT; k++) {
		free(f->kept[k].of);
		quant_feedback_free(f->kept[k].q);
	}
	for (size_t k = 0; k < f->n; k++) quant_feedback_free(f->item[k].q);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->moved);
	free(f->item);
	free(f);
}
