/* SPDX-License-Identifier: MIT
 * habit.c - options of llama.cpp's programs, and what to do here instead. A line applies to the programs that have the
 * option that it names, as the answer or in `with`; the first line for an option that applies is used.
 *
 * A word after a single dash is listed only if it cannot be meant as a letter and its argument, as -ot is -o t. */
#include <stdio.h>
#include <string.h>
#include "habit.h"

#define OPERAND "input is a file named without an option, or standard input"
/* with: the option that a program must have if `here` is a sentence; NULL: all programs */
static const struct { const char *there, *here, *with; } habits[] = {
	{ "-t --threads -tb --threads-batch", "--jobs", NULL }, { "--ctx-size", "--ctx", NULL },
	{ "--batch-size -ub --ubatch-size", "--batch", NULL }, { "-ctk", "--cache-type-k", NULL },
	{ "-ctv", "--cache-type-v", NULL }, { "-n", "--generate", NULL },
	{ "-n --n-predict --predict", "--tokens", NULL }, { "-p --n-prompt", "--prompt", NULL },
	{ "-d --n-depth", "--depth", NULL }, { "-r", "--repeat", NULL }, { "--n-gen", "--generate", NULL },
	{ "-s", "--seed", NULL }, { "--temperature", "--temp", NULL }, { "--outfile --output-file", "--output", NULL },
	{ "--outtype", "--type", NULL }, { "--model-name", "--name", NULL },
	{ "--kl-divergence-base --kl-divergence", "--base", NULL },
	{ "--save-all-logits", "--save-logits", NULL },
	{ "--chunk --from-chunk", "--from", NULL }, { "--show-statistics", "--stats", NULL },
	{ "--output-frequency --save-frequency", "--every", NULL }, { "--output-format", "--dat", NULL },
	{ "--parse-special", "--special", NULL }, { "--no-parse-special", "--no-special", NULL },
	{ "--split-max-size", "--max-size", NULL }, { "--split-max-tensors", "--max-tensors", NULL },
	{ "--tensor-type-file", "--plan", NULL }, { "--keep-split", "--shards", NULL },
	{ "--no-layer", "--whole", NULL },
	{ "--no-tensors", "--metadata", NULL }, { "--remove-metadata", "--delete", NULL },
	{ "--log-disable", "--quiet", NULL }, { "--numa", "--pin", NULL }, { "--direct-io", "--no-mmap", NULL },
	{ "-f --file --in-file --stdin -p --prompt -bf --binary-file", OPERAND, NULL },
	{ "-ngl --gpu-layers --n-gpu-layers -sm --split-mode --tensor-split --main-gpu -dev --device --list-devices "
		"-kvo --kv-offload -nkvo --no-kv-offload -cmoe --cpu-moe -ncmoe --n-cpu-moe --op-offload "
		"--no-op-offload --override-tensor --rpc -fit --fit", "all is computed on the CPU", NULL },
	{ "--override-kv", "gguf-edit --set does that", NULL },
	{ "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor "
		"--yarn-attn-factor --yarn-beta-slow --yarn-beta-fast",
		"gguf-edit --set changes what the model says", NULL },
	{ "--check-tensors", "gguf-check does that", NULL },
	{ "-fa --flash-attn --swa-full --no-repack --repack", "there is nothing to choose: results are the same",
		NULL },
	{ "-C --cpu-mask -Cr --cpu-range --cpu-strict", "taskset(1) does that", NULL },
	{ "--prio", "nice(1) does that", NULL },
	{ "--log-file", "messages go to standard error", NULL },
	{ "-hf -hfr --hf-repo -hff --hf-file --model-url --docker-repo --remote", "nothing is fetched from a network",
		NULL },
	{ "--lora --lora-scaled --control-vector --control-vector-scaled", "there are no adapters here", NULL },
	{ "--mmproj", "of a model that also sees, only the text part is used", NULL },
	{ "--bigendian", "files are always little-endian", NULL },
	{ "--prune-layers", "layers cannot be removed", NULL },
	{ "--include-weights --exclude-weights", "the matrix counts for all tensors that it has", NULL },
	{ "--use-temp-file --no-lazy --max-buffer-size", "memory is bounded as it is", NULL },
	{ "--split", "that is the default", "--max-size" },
	{ "--split-max-size --split-max-tensors", "gguf-split does that", NULL },
	{ "--all", "name each kind, as in --xxh64 --sha1 --sha256", "--xxh64" },
	{ "--ppl --no-ppl", "gguf-perplexity measures that", NULL },
	{ "--hellaswag --hellaswag-tasks --winogrande --winogrande-tasks --multiple-choice --multiple-choice-tasks",
		"only perplexity and divergence are measured", NULL },
	{ "--ppl-stride", "windows do not overlap", NULL },
	{ "--warmup --no-warmup", "each test always runs once before it is measured", "--repeat" },
	{ "--min-p --typical --typical-p --top-nsigma --top-n-sigma --xtc-probability --xtc-threshold --repeat-last-n "
		"--repeat-penalty --presence-penalty --frequency-penalty --dry-multiplier --dry-base "
		"--dry-allowed-length --dry-penalty-last-n --dynatemp-range --mirostat --mirostat-lr --mirostat-ent "
		"--samplers --sampler-seq -l --logit-bias --ignore-eos --adaptive-target",
		"tokens are drawn by --temp, --top-k and --top-p alone", "--temp" },
	{ "--grammar --grammar-file --json-schema --json-schema-file", "nothing constrains the text", "--temp" },
	{ "-cnv --conversation -no-cnv --no-conversation --interactive --interactive-first --reverse-prompt "
		"--chat-template --chat-template-file --jinja --no-jinja -sys --system-prompt -st --single-turn "
		"--in-prefix --in-suffix --multiline-input",
		"a prompt is continued as it is, without a chat", "--temp" },
	{ "-e --escape --no-escape", "a prompt is used as it is; printf(1) makes escapes", "--temp" },
	{ "--display-prompt --no-display-prompt", "only what is added is printed", "--temp" },
	{ "--prompt-cache --prompt-cache-all --prompt-cache-ro", "prompts are not kept", "--temp" },
	{ "--chat-template --chat-template-file", "use --set-file tokenizer.chat_template=str:FILE", "--set-file" },
};

static bool has(const struct opt *opts, const char *name)
{
	const struct opt *o;
	for (size_t i = 0; (o = opt_at(opts, i)) != NULL; i++) if (o->name && !strcmp(o->name, name + 2)) return true;
	return false;
}

static bool among(const char *words, const char *word, size_t n)
{
	while (*words) {
		const size_t k = strcspn(words, " ");
		if (k == n && !memcmp(words, word, n)) return true;
		words += k + (words[k] == ' ');
	}
	return false;
}

bool habit_hint(const char *arg, const struct opt *opts, const struct opt_program *p, char hint[HABIT_BYTES])
{
	const size_t n = strcspn(arg, "=");
	*hint = 0;
	for (size_t i = 0; i < sizeof habits/sizeof *habits && !*hint; i++) {
		const char *here = habits[i].here, *with = habits[i].with;
		if (!among(habits[i].there, arg, n) || (with && !has(opts, with))) continue;
		if (here[0] == '-' && has(opts, here)) snprintf(hint, HABIT_BYTES, "; here it is %s", here);
		else if (here[0] != '-' && (strcmp(here, OPERAND) || (p->max_operands && !p->min_operands)))
			snprintf(hint, HABIT_BYTES, "; %s", here);
	}
	return *hint && arg[1] != '-' && n > 2;
}
