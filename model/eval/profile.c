/* SPDX-License-Identifier: MIT
 * profile.c - see profile.h. cpu_pass.c measures the passes. */
#include <stdio.h>
#include <string.h>
#include "model_internal.h"
#include "profile.h"

void work_profile(struct work *w, struct profile *p) { w->profile = p; }

static struct profile_row *row_of(struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++) if (!strcmp(p->row[i].name, name)) return p->row + i;
	if (p->n == PROFILE_ROWS) return p->row + p->n - 1;
	snprintf(p->row[p->n].name, sizeof p->row->name, "%s", name);
	return p->row + p->n++;
}

void profile_add(struct profile *p, const char *name, double secs, double macs)
{
	struct profile_row *row = row_of(p, name);
	row->secs += secs;
	row->macs += macs;
	row->n_passes++;
}
