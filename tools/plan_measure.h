/* SPDX-License-Identifier: MIT
 * plan_measure.h - what each type would do to each tensor. Programs only; failures exit 2 with a message. */
#ifndef TOOLS_PLAN_MEASURE_H
#define TOOLS_PLAN_MEASURE_H
#include "../imatrix/imatrix.h"

struct plan_option {
	uint32_t type;
	uint64_t bytes;                 /* of the whole tensor */
	double energy;                  /* sum of importance*x^2 of the whole tensor, estimated from the sample */
	/* sum of importance*(decoded - x)^2 over sum of importance*x^2, of the sample */
	double error;
};
struct plan_tensor {
	const struct ggu_tensor *t;
	struct plan_option *option;     /* [n], n at least 1; the first is the type it has */
	size_t n;
	size_t chosen;
	double weight;                  /* how much its error counts */
};
/* What is tried, and how. */
struct plan_trials {
	const struct ggu_file *f;
	const char *name;               /* of the file, for messages */
	const struct imatrix *im;       /* or NULL */
	uint64_t sample;                /* so many weights of a tensor, about, in rows that are spread evenly */
	int effort;
};
/* Fills energy and error of every option but the first of each tensor. The result does not depend on the threads. */
void plan_measure(struct plan_tensor *list, size_t n, const struct plan_trials *how, struct ggu_pool *pool);

#endif
