/* SPDX-License-Identifier: MIT
 * complete.c - completion scripts for bash, zsh and fish; see complete.h.
 *
 * What follows an option depends on the name of its argument: a TYPE or T that is no number is a recipe, or a type of
 * cache after --cache-type-k and -v, the names in `file_args` are files, and numbers and free text complete to nothing.
 * Operands are files, and what the synopsis calls RECIPE. */
#include <stdio.h>
#include <string.h>
#include "../libgguf/ggu.h"
#include "../quant/attn.h"
#include "../quant/recipe.h"
#include "complete.h"

enum follow { FOLLOW_NOTHING, FOLLOW_FILES, FOLLOW_RECIPES, FOLLOW_CACHE_TYPES };

/* Names of arguments that are files; they may be parts of a choice, as in MODEL|DIR. */
static const char *const file_args[] = { "FILE", "MODEL", "DIR", "YAML", "JSON", "MANIFEST", "LOGITS", "TEXT",
	"SHARD" };

static enum follow follow_of(const struct opt *o)
{
	const char *last = strrchr(o->arg, '=');
	if (o->kind == OPT_K_DOUBLE) return FOLLOW_NOTHING;
	if (o->name && !strncmp(o->name, "cache-type-", 11)) return FOLLOW_CACHE_TYPES;
	if (!strcmp(o->arg, "TYPE") || !strcmp(last ? last + 1 : o->arg, "T")) return FOLLOW_RECIPES;
	for (size_t i = 0; i < sizeof file_args/sizeof *file_args; i++)
		if (strstr(o->arg, file_args[i])) return FOLLOW_FILES;
	return FOLLOW_NOTHING;
}

static void print_recipes(void)
{
	for (size_t i = 0; recipe_at(i); i++) printf("%s%s", i ? " " : "", recipe_name(recipe_at(i)));
}
static void print_cache_types(void)
{
	const char *before = "";
	for (uint32_t id = 0; id < ggu_type_end(); id++) {
		if (!attn_can_store(id, 32)) continue;
		printf("%s%s", before, ggu_type_info(id)->name);
		before = " ";
	}
}
/* Is what follows o one of a list of words? */
static bool has_words(const struct opt *o)
{
	return follow_of(o) == FOLLOW_RECIPES || follow_of(o) == FOLLOW_CACHE_TYPES;
}
static void print_words(const struct opt *o)
{
	if (follow_of(o) == FOLLOW_RECIPES) print_recipes();
	else print_cache_types();
}

/* The help of an option inside '...', without characters that would end a quotation or a field there. */
static void print_help(const char *help)
{
	for (; *help; help++) if (!strchr("'[]:\\", *help)) putchar(*help);
}

/* ---- bash: a function that looks at the word before the cursor. mapfile keeps names with blanks whole ---- */

static void bash_case(const struct opt *o, const char *words)
{
	printf("\t");
	if (o->letter) printf("-%c%s", o->letter, o->name ? "|" : "");
	if (o->name) printf("--%s", o->name);
	printf(") %s; return ;;\n", words);
}
static void bash(const struct opt *opts, const struct opt_program *p, const char *function)
{
	static const char *const words[] = { [FOLLOW_NOTHING] = "COMPREPLY=()",
		[FOLLOW_FILES] = "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")",
		[FOLLOW_RECIPES] = "COMPREPLY=($(compgen -W \"$recipes\" -- \"$cur\"))",
		[FOLLOW_CACHE_TYPES] = "COMPREPLY=($(compgen -W \"$cache_types\" -- \"$cur\"))" };
	const struct opt *o;
	printf("%s()\n{\n", function);
	printf("\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n\tlocal recipes='");
	print_recipes();
	printf("'\n\tlocal cache_types='");
	print_cache_types();
	printf("'\n\t[ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}\n\tcase $prev in\n");
	for (size_t i = 0; (o = opt_at(opts, i)) != NULL; i++) if (o->arg && o->help) bash_case(o, words[follow_of(o)]);
	printf("\tesac\n\tcase $cur in\n\t-*) COMPREPLY=($(compgen -W '");
	for (size_t i = 0; (o = opt_at(opts, i)) != NULL; i++) if (o->name && o->help) printf("--%s ", o->name);
	printf("' -- \"$cur\")) ;;\n\t*) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"");
	if (strstr(p->synopsis, "RECIPE")) printf("; compgen -W \"$recipes\" -- \"$cur\"");
	printf(") ;;\n\tesac\n}\ncomplete -o filenames -F %s %s\n", function, p->name);
}

/* ---- zsh: a list of specifications for _arguments ---- */

/* The name of an argument; a bare colon would end it, and what follows would be called as a command. */
static void print_arg(const char *arg)
{
	for (; *arg; arg++) {
		if (*arg == ':') putchar('\\');
		putchar(*arg);
	}
}
static void zsh_form(const char *form, const struct opt *o, const char *joined)
{
	printf(" \\\n\t'*%s%s[", form, o->arg ? joined : "");
	print_help(o->help);
	printf("]");
	if (o->arg) {
		putchar(':');
		print_arg(o->arg);
		printf(":%s", follow_of(o) == FOLLOW_FILES ? "_files" : has_words(o) ? "(" : "");
	}
	if (o->arg && has_words(o)) {
		print_words(o);
		printf(")");
	}
	printf("'");
}
static void zsh(const struct opt *opts, const struct opt_program *p)
{
	const struct opt *o;
	char form[48];
	printf("#compdef %s\n_arguments -s", p->name);
	for (size_t i = 0; (o = opt_at(opts, i)) != NULL; i++) {
		if (!o->help) continue;
		snprintf(form, sizeof form, "-%c", o->letter);
		if (o->letter) zsh_form(form, o, "+");
		snprintf(form, sizeof form, "--%s", o->name ? o->name : "");
		if (o->name) zsh_form(form, o, "=");
	}
	if (strstr(p->synopsis, "RECIPE")) {
		printf(" \\\n\t'*:file or recipe:{_files; compadd -- ");
		print_recipes();
		printf("}'\n");
	} else printf(" \\\n\t'*:file:_files'\n");
}

/* ---- fish: a line for each option ---- */

static void fish(const struct opt *opts, const struct opt_program *p)
{
	const struct opt *o;
	for (size_t i = 0; (o = opt_at(opts, i)) != NULL; i++) {
		if (!o->help) continue;
		printf("complete -c %s", p->name);
		if (o->letter) printf(" -s %c", o->letter);
		if (o->name) printf(" -l %s", o->name);
		if (o->arg) printf(follow_of(o) == FOLLOW_FILES ? " -r -F" : " -x");
		if (o->arg && has_words(o)) {
			printf(" -a '");
			print_words(o);
			printf("'");
		}
		printf(" -d '");
		print_help(o->help);
		printf("'\n");
	}
	if (!strstr(p->synopsis, "RECIPE")) return;
	printf("complete -c %s -a '", p->name);
	print_recipes();
	printf("'\n");
}

bool complete_print(const char *shell, const struct opt *opts, const struct opt_program *p)
{
	char function[64];
	if (!strcmp(shell, "zsh")) zsh(opts, p);
	else if (!strcmp(shell, "fish")) fish(opts, p);
	else if (strcmp(shell, "bash")) return false;
	else {
		snprintf(function, sizeof function, "_%s", p->name);
		for (char *c = function; *c; c++) if (*c == '-') *c = '_';
		bash(opts, p, function);
	}
	return true;
}
