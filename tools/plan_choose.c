/* SPDX-License-Identifier: MIT
 * plan_choose.c - see plan_choose.h. Two ways, of which the better counts. What room is left buys single steps.
 *
 * By price: a byte gets a price, each tensor takes the type with the least sum of weighted error and price, and the
 * price is found by bisection, so that the types just fit. This is nearly the best choice if the steps between types
 * are small compared with the whole, as with many tensors; a large embedding can leave much room unused. By a table of
 * the least error for every size, tensor after tensor. This is exact if the table can count in units that divide all
 * sizes, as with few tensors or with usual dimensions; otherwise sizes are rounded up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "msg.h"
#include "plan_choose.h"

enum { HALVINGS = 200, CELLS = 1 << 25 };

/* The divergence that a relative error of all tensors of a role together causes, that of ffn_down being 1: geometric
 * means of two models of the llama kind, of 7 M and 135 M weights, each role having been quantized alone. An embedding
 * that is the output too counts as output. The first row whose name is in the tensor's name applies; the last is for
 * all others. */
static const struct { const char *name; double factor; } roles[] = {
	{ "output.weight", 2.3 }, { "token_embd.weight", 0.4 }, { "attn_qkv", 0.5 }, { "attn_q", 0.1 },
	{ "attn_k", 0.17 }, { "attn_v", 0.5 }, { "attn_output", 0.2 },
	{ "ffn_gate", 0.6 }, { "ffn_up", 0.6 }, { "ffn_down", 1 }, { "", 0.5 },
};
enum { N_ROLES = sizeof roles/sizeof *roles, OUTPUT = 0, EMBEDDING = 1 };

static size_t role_of(const char *name)
{
	size_t i = EMBEDDING;
	if (!strcmp(name, roles[OUTPUT].name)) return OUTPUT;
	for (; !strstr(name, roles[i].name); i++) ;
	return i;
}

static bool is_last(const struct plan_tensor *p, const char *last) { return p->n > 1 && strstr(p->t->name, last); }
/* The energy of the matrices `last` of the layer in which `name` is: one, or those of experts and of what is beside
 * them. 0: there is none. */
static double layer_energy(const struct plan_tensor *list, size_t n, const char *name, const char *last)
{
	size_t layer = strlen(name);
	double sum = 0;
	while (layer && name[layer - 1] != '.') layer--;        /* the part after "blk.3.attn_q." */
	if (layer) layer--;
	while (layer && name[layer - 1] != '.') layer--;
	for (size_t i = 0; i < n; i++)
		if (is_last(list + i, last) && !strncmp(list[i].t->name, name, layer)
			&& !strncmp(list[i].t->name + layer, last, strlen(last)))
			sum += list[i].option[1].energy;
	return sum;
}
/* The mean of the above for all matrices `last` */
static double mean_energy(const struct plan_tensor *list, size_t n, const char *last)
{
	double sum = 0;
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		if (is_last(list + i, last)) {
			sum += layer_energy(list, n, list[i].t->name, last);
			count++;
		}
	return sum/(double)(count ? count : 1);
}

void plan_weigh(struct plan_tensor *list, size_t n, bool by_energy)
{
	static const char *const last[] = { "attn_output", "ffn_down" };
	const double mean[] = { mean_energy(list, n, last[0]), mean_energy(list, n, last[1]) };
	size_t count[N_ROLES] = { 0 };
	bool tied = true;               /* the embedding is the output too */
	for (size_t i = 0; i < n; i++) {
		size_t role = role_of(list[i].t->name);
		tied &= role != OUTPUT;
		if (list[i].n > 1) count[role]++;
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = list[i].t->name;
		size_t role = role_of(name), side = strstr(name, "attn_") ? 0 : 1;
		double own;
		if (list[i].n < 2) continue;
		own = by_energy ? layer_energy(list, n, name, last[side]) : 0;
		if (role == EMBEDDING && tied) list[i].weight = roles[OUTPUT].factor;
		else list[i].weight = roles[role].factor/(double)count[role]*(own > 0 ? own/mean[side] : 1);
	}
}

static uint64_t bytes_of(const struct plan_tensor *list, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++) sum += list[i].option[list[i].chosen].bytes;
	return sum;
}

/* Chooses for each tensor what costs least if a byte costs `price`, of equal ones the smaller; returns the bytes. */
static uint64_t buy(struct plan_tensor *list, size_t n, double price)
{
	for (size_t i = 0; i < n; i++) {
		struct plan_tensor *p = list + i;
		double best = INFINITY;
		for (size_t k = 0; k < p->n; k++) {
			double cost = p->weight*p->option[k].error + price*(double)p->option[k].bytes;
			if (cost > best || (cost == best && p->option[k].bytes >= p->option[p->chosen].bytes)) continue;
			best = cost;
			p->chosen = k;
		}
	}
	return bytes_of(list, n);
}

/* Takes steps that fit into what is left, first the one that saves most error for a byte. */
static void spend(struct plan_tensor *list, size_t n, uint64_t left)
{
	for (;;) {
		struct plan_tensor *who = NULL;
		size_t what = 0;
		double best = 0;
		for (size_t i = 0; i < n; i++) {
			const struct plan_option *now = list[i].option + list[i].chosen;
			for (size_t k = 0; k < list[i].n; k++) {
				const struct plan_option *o = list[i].option + k;
				double gain = list[i].weight*(now->error - o->error);
				uint64_t more = o->bytes > now->bytes ? o->bytes - now->bytes : 0;
				if (!(gain > 0) || more > left || gain/((double)more + 1) <= best) continue;
				best = gain/((double)more + 1);
				who = list + i;
				what = k;
			}
		}
		if (!who) return;
		left += who->option[who->chosen].bytes;
		left -= who->option[what].bytes;
		who->chosen = what;
	}
}

static void by_price(struct plan_tensor *list, size_t n, uint64_t budget)
{
	double low = 0, high = 1;
	while (buy(list, n, high) > budget && high < INFINITY) high *= 16;
	for (int i = 0; i < HALVINGS && low < high; i++) {
		double middle = i < HALVINGS/2 && low > 0 ? sqrt(low*high) : low > 0 ? (low + high)/2 : high/16;
		if (middle <= low || middle >= high) break;
		if (buy(list, n, middle) > budget) low = middle;
		else high = middle;
	}
	spend(list, n, budget - buy(list, n, high));
}

/* ---- by a table ---- */

static uint64_t least_of(const struct plan_tensor *p)
{
	uint64_t least = UINT64_MAX;
	for (size_t k = 0; k < p->n; k++) if (p->option[k].bytes < least) least = p->option[k].bytes;
	return least;
}
uint64_t plan_least(const struct plan_tensor *list, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++) sum += least_of(list + i);
	return sum;
}

/* The largest number that divides what each option takes beyond the least of its tensor; 0: all take that. */
static uint64_t common_unit(const struct plan_tensor *list, size_t n)
{
	uint64_t unit = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < list[i].n; k++)
			for (uint64_t more = list[i].option[k].bytes - least_of(list + i); more;) {
				uint64_t rest = unit % more;
				unit = more;
				more = rest;
			}
	return unit;
}

/* error[c]: the least of the tensors so far that take c units at most, beyond their least; chosen[c]: the option of
 * this one */
static void add_tensor(const struct plan_tensor *p, uint64_t unit, size_t cells, double *error, unsigned char *chosen)
{
	const uint64_t least = least_of(p);
	for (size_t c = cells; c-- > 0;) {
		double best = INFINITY;
		for (size_t k = 0; k < p->n; k++) {
			uint64_t units = (p->option[k].bytes - least + unit - 1)/unit;
			double sum = units <= c ? error[c - units] + p->weight*p->option[k].error : INFINITY;
			if (sum > best || (sum == best && p->option[k].bytes >= p->option[chosen[c]].bytes)) continue;
			best = sum;
			chosen[c] = (unsigned char)k;
		}
		error[c] = best;
	}
}
static void by_table(struct plan_tensor *list, size_t n, uint64_t budget)
{
	const uint64_t common = common_unit(list, n), most = budget - plan_least(list, n);
	const uint64_t unit = (most/common*n/CELLS + 1)*common;
	const size_t cells = (size_t)(most/unit) + 1;
	double *error = msg_need(calloc(cells, sizeof *error));
	unsigned char *chosen = msg_need(calloc(n, cells));
	size_t c = cells - 1;
	for (size_t i = 0; i < n; i++) add_tensor(list + i, unit, cells, error, chosen + i*cells);
	for (size_t i = n; i-- > 0;) {
		list[i].chosen = chosen[i*cells + c];
		c -= (size_t)((list[i].option[list[i].chosen].bytes - least_of(list + i) + unit - 1)/unit);
	}
	free(error);
	free(chosen);
	spend(list, n, budget - bytes_of(list, n));
}

static double error_of(const struct plan_tensor *list, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) sum += list[i].weight*list[i].option[list[i].chosen].error;
	return sum;
}
void plan_choose(struct plan_tensor *list, size_t n, uint64_t budget)
{
	size_t *priced = msg_need(calloc(n + 1, sizeof *priced));
	double error;
	if (buy(list, n, 0) > budget) {
		by_price(list, n, budget);
		error = error_of(list, n);
		for (size_t i = 0; i < n; i++) priced[i] = list[i].chosen;
		by_table(list, n, budget);
		if (!(error_of(list, n) < error)) for (size_t i = 0; i < n; i++) list[i].chosen = priced[i];
	}
	free(priced);
}
