/* SPDX-License-Identifier: MIT
 * plan_choose.c - see plan_choose.h. A byte gets a price, each tensor takes the type with the least sum of weighted
 * error and price, and the price is found by bisection, so that the types just fit. What room is left buys single
 * steps. */
#include <math.h>
#include <string.h>
#include "plan_choose.h"

enum { HALVINGS = 200 };

/* The divergence that a relative error of all tensors of a role together causes, that of ffn_down being 1: geometric
 * means of two models of the llama kind, of 7 M and 135 M weights, each role having been quantized alone. An
 * embedding that is the output too counts as output. The first that is in the name; the last is for all others. */
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

/* The energy of the matrix `last` of the layer in which `name` is; 0: there is none. */
static double layer_energy(const struct plan_tensor *list, size_t n, const char *name, const char *last)
{
	size_t layer = strlen(name);
	while (layer && name[layer - 1] != '.') layer--;        /* the part after "blk.3.attn_q." */
	if (layer) layer--;
	while (layer && name[layer - 1] != '.') layer--;
	for (size_t i = 0; i < n; i++)
		if (list[i].n > 1 && !strncmp(list[i].t->name, name, layer)
			&& !strncmp(list[i].t->name + layer, last, strlen(last)))
			return list[i].option[1].energy;
	return 0;
}
/* A tensor's share of its role, where 1 is the mean. */
static double part(const struct plan_tensor *list, size_t n, const char *name)
{
	const char *last = strstr(name, "attn_") ? "attn_output" : "ffn_down";
	double sum = 0, own = layer_energy(list, n, name, last);
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		if (list[i].n > 1 && strstr(list[i].t->name, last)) {
			sum += list[i].option[1].energy;
			count++;
		}
	return own > 0 && sum > 0 ? own*(double)count/sum : 1;
}

void plan_weigh(struct plan_tensor *list, size_t n, bool by_energy)
{
	size_t count[N_ROLES] = { 0 };
	for (size_t i = 0; i < n; i++) if (list[i].n > 1) count[role_of(list[i].t->name)]++;
	for (size_t i = 0; i < n; i++) {
		size_t role = role_of(list[i].t->name);
		if (list[i].n < 2) continue;
		if (role == EMBEDDING && !count[OUTPUT]) list[i].weight = roles[OUTPUT].factor;
		else list[i].weight = roles[role].factor/(double)count[role]
			*(by_energy ? part(list, n, list[i].t->name) : 1);
	}
}

uint64_t plan_bytes(const struct plan_tensor *list, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++) sum += list[i].option[list[i].chosen].bytes;
	return sum;
}

/* What each tensor takes if a byte costs `price`: of two that cost the same, the smaller. */
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
	return plan_bytes(list, n);
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

bool plan_choose(struct plan_tensor *list, size_t n, uint64_t budget)
{
	double low = 0, high = 1;
	if (buy(list, n, low) <= budget) return true;
	while (buy(list, n, high) > budget) {
		if (high > 1e30) return false;
		high *= 16;
	}
	for (int i = 0; i < HALVINGS && low < high; i++) {
		double middle = i < HALVINGS/2 && low > 0 ? sqrt(low*high) : low > 0 ? (low + high)/2 : high/16;
		if (middle <= low || middle >= high) break;
		if (buy(list, n, middle) > budget) low = middle;
		else high = middle;
	}
	spend(list, n, budget - buy(list, n, high));
	return true;
}
