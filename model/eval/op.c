/* SPDX-License-Identifier: MIT
 * op.c - the table of operators, made of op_list.h: look-ups by name; what several of them share. */
#include <stdio.h>
#include <string.h>
#include "op.h"
#include "op_list.h"

#define OPERATOR(name) &op_##name,
static const struct op *const ops[] = { OPERATORS };
#undef OPERATOR
enum { N_OPS = sizeof ops/sizeof *ops };

const struct op *op_find(const char *name)
{
	for (size_t i = 0; i < N_OPS; i++) if (!strcmp(ops[i]->name, name)) return ops[i];
	return NULL;
}

const struct branch *op_narrowing(const struct step *st)
{
	for (size_t i = 1; i < st->n_branches; i++) if (!st->branch[i].op->apart) return NULL;
	return st->branch->op->macs_early ? st->branch : NULL;
}

void op_names(char *to, size_t n)
{
	size_t used = 0;
	for (size_t i = 0; i < N_OPS && used < n; i++)
		used += (size_t)snprintf(to + used, n - used, "%s%s", i == 0 ? "" : i + 1 < N_OPS ? ", " : " or ",
			ops[i]->name);
}

#define AT(member) offsetof(struct growth, member)
const struct field op_growth_fields[] = {
	{ "by", FIELD_NUMBER, AT(by), -1, 0, 1e3 },
	{ "every", FIELD_SIZE, AT(every), 0, 1, BUILD_MAX_SIZE },
	{ "from", FIELD_SIZE, AT(from), 0, 0, BUILD_MAX_SIZE },
	{ NULL }
};
#undef AT

void measure_weight(struct measure *m, const struct weight *w, double share)
{
	if (!w->name) return;
	m->macs += share*(double)(w->n_mat*w->n_out)*(double)w->n_in;
	m->weight_bytes += share*(double)(w->n_mat*w->n_out)*(double)w->row_bytes;
}
