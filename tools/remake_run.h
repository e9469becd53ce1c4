/* SPDX-License-Identifier: MIT
 * remake_run.h - what gguf-quantize and gguf-convert share when they write a model's tensors in other types
 * (quant/remake.h does the work): messages, progress, a table, the importance matrix's provenance. Programs only; all
 * failures exit 2 with a message. */
#ifndef TOOLS_REMAKE_RUN_H
#define TOOLS_REMAKE_RUN_H
#include <jansson.h>
#include <stdio.h>
#include "../imatrix/imatrix.h"
#include "../quant/remake.h"
#include "calibrate.h"
#include "out.h"

struct remake_run {
	/* what is done; importance, measure and done are set from the following */
	struct remake re;
	const char *name;                       /* of the source, for messages */
	const struct imatrix *imatrix;          /* or NULL */
	const char *imatrix_name;
	bool no_feedback;                       /* though the matrix has covariances */
	double damp;                            /* of error feedback; below 0: what suits each type */
	struct calibration *calibration;        /* has made some tensors already, `first` being t[0]; or NULL */
	size_t first;
	bool verbose;                           /* a table with errors on stderr */
	json_t *list;                           /* the same as JSON appended here, or NULL */
	const char *doing;                      /* "quantizing", for progress */
};
/* remake_meta, with quantize.imatrix.*. The caller frees. */
struct ggu_meta *remake_run_meta(const struct remake_run *r, const struct ggu_meta *from, uint32_t file_type);
/* Tensor i in its new type, if it is made already, or NULL. */
const void *remake_run_made(const struct remake_run *r, size_t i);
/* Sets quantize.imatrix.dataset to the text that took the place of a matrix. */
void remake_run_told(struct ggu_meta *m, const char *text);
/* remake_check, which says of what failed whether the matrix or the model `name` is to blame. */
void remake_run_check(const struct remake *re, bool *lacks, const char *name, const char *imatrix_name);
/* The same and remake_writer. Warns of what the matrix lacks. The caller frees. */
struct ggu_writer *remake_run_writer(const struct remake_run *r, const struct ggu_meta *meta);
/* The whole file to out, which the caller commits. jobs: threads, 0: all cores. */
void remake_run_write(const struct remake_run *r, struct ggu_writer *w, struct out *out, int jobs);
/* Warns of tensors that got another type than wanted: how many, from what to what. listed: a table says which. */
void remake_run_fallbacks(const struct remake_run *r, bool listed);

/* What a run makes of the tensors, as a table for people or as JSON (remake_table.c). */
uint64_t remake_bytes(const struct remake *r, size_t i);        /* of tensor i in its new type */
struct remake_table { FILE *f; const struct remake *r; bool errors; int name, shape; };        /* widths of columns */
void remake_table_begin(struct remake_table *to, FILE *f, const struct remake *r, bool errors); /* the line of titles */
const char *remake_reason(const struct recipe_choice *c);       /* "  fall-back", or "" if it needs no words */
/* error below 0: not measured; got: what came of it, or NULL */
void remake_table_line(const struct remake_table *to, size_t i, double error, const struct recode_result *got);
void remake_table_total(FILE *f, const struct remake *r, uint64_t file_bytes);
/* appended to list */
void remake_json_tensor(json_t *list, const struct remake *r, size_t i, double error, const struct recode_result *got);
/* The whole document on standard output, with the list, which is freed. */
void remake_json_total(const struct remake *r, json_t *list, uint64_t file_bytes);

#endif
