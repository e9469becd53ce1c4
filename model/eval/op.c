/* SPDX-License-Identifier: MIT
 * op.c - the table of operators. */
#include <string.h>
#include "op.h"
#include "op_list.h"

static const struct op *const ops[] = { &op_attention, &op_latent, &op_ffn, &op_experts, &op_mamba, &op_mamba2,
	&op_cross };
enum { N_OPS = sizeof ops/sizeof *ops };

const struct op *op_find(const char *name)
{
	for (size_t i = 0; i < N_OPS; i++) if (!strcmp(ops[i]->name, name)) return ops[i];
	return NULL;
}

const char *op_names(void) { return "attention, latent_attention, ffn, experts, mamba, mamba2 or cross_attention"; }

void measure_weight(struct measure *m, const struct weight *w, double share)
{
	if (!w->name) return;
	m->macs += share*(double)(w->n_mat*w->n_out)*(double)w->n_in;
	m->weight_bytes += share*(double)(w->n_mat*w->n_out)*(double)w->row_bytes;
}
