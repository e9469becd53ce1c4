/* SPDX-License-Identifier: MIT
 * habit.c - options of llama.cpp's programs, and their names here. A line applies to the programs that have the option
 * that it names; if there are several lines for an option, the first such one is used. */
#include <stdio.h>
#include <string.h>
#include "../libgguf/text.h"
#include "habit.h"

#define OPERAND "input is a file named without an option, or standard input"
#define CPU_ONLY "all is computed on the CPU"
static const struct { const char *there, *here; } habits[] = {
	{ "-t", "--jobs" }, { "--threads", "--jobs" }, { "-tb", "--jobs" }, { "--threads-batch", "--jobs" },
	{ "--ctx-size", "--ctx" }, { "--batch-size", "--batch" }, { "-ub", "--batch" }, { "--ubatch-size", "--batch" },
	{ "-ctk", "--cache-type-k" }, { "-ctv", "--cache-type-v" },
	{ "-n", "--generate" }, { "--n-predict", "--tokens" }, { "--predict", "--tokens" }, { "-n", "--tokens" },
	{ "-p", "--prompt" }, { "-d", "--depth" }, { "--n-depth", "--depth" }, { "-r", "--repeat" },
	{ "--n-prompt", "--prompt" }, { "--n-gen", "--generate" }, { "-s", "--seed" }, { "--temperature", "--temp" },
	{ "--outfile", "--output" }, { "--output-file", "--output" }, { "--outtype", "--type" },
	{ "--model-name", "--name" }, { "--kl-divergence-base", "--base" }, { "--kl-divergence", "--base" },
	{ "--save-all-logits", "--save-logits" }, { "--from-chunk", "--from" }, { "--show-statistics", "--stats" },
	{ "--output-frequency", "--every" }, { "--parse-special", "--special" },
	{ "--split-max-size", "--max-size" }, { "--split-max-tensors", "--max-tensors" },
	{ "--tensor-type-file", "--plan" }, { "--no-parse-special", "--no-special" },
	{ "-f", OPERAND }, { "--file", OPERAND }, { "--in-file", OPERAND }, { "-p", OPERAND }, { "--prompt", OPERAND },
	{ "-ngl", CPU_ONLY }, { "--gpu-layers", CPU_ONLY }, { "--n-gpu-layers", CPU_ONLY },
	{ "--override-kv", "gguf-edit --set does that" },
};

static bool has(const struct opt *opts, const char *name)
{
	const struct opt *o;
	for (size_t i = 0; (o = opt_at(opts, i)) != NULL; i++) if (o->name && !strcmp(o->name, name + 2)) return true;
	return false;
}

bool habit_hint(const char *arg, const struct opt *opts, const struct opt_program *p, char hint[HABIT_BYTES])
{
	const size_t n = strcspn(arg, "=");
	*hint = 0;
	for (size_t i = 0; i < sizeof habits/sizeof *habits && !*hint; i++) {
		const char *here = habits[i].here;
		if (!text_is(arg, n, habits[i].there)) continue;
		if (here[0] == '-' && has(opts, here)) snprintf(hint, HABIT_BYTES, "; here it is %s", here);
		else if (here[0] != '-' && (strcmp(here, OPERAND) || (p->max_operands && !p->min_operands)))
			snprintf(hint, HABIT_BYTES, "; %s", here);
	}
	return *hint && arg[1] != '-' && n > 2;
}
