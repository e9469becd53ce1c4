/* SPDX-License-Identifier: MIT
 * remake.h - write a model's tensors in other types: what gguf-quantize and gguf-convert share. Programs only; all
 * failures exit 2 with a message.
 *
 * The source is a list of tensors, in the order of writing, and a function that reads them. Types come from
 * typeplan.h; then remake_meta, remake_writer, remake_write. */
#ifndef TOOLS_REMAKE_H
#define TOOLS_REMAKE_H
#include <jansson.h>
#include <stdio.h>
#include "../imatrix/imatrix.h"
#include "../quant/recipe.h"
#include "out.h"

struct remake {
	const char *name;                       /* of the source, for messages */
	size_t n;
	const struct ggu_tensor *const *t;
	const uint32_t *from;                   /* [n] types that read delivers; NULL: those of t */
	const struct recipe_choice *choice;     /* [n] */
	/* n bytes of tensor i from byte `at` of its data on; called forward, tensor after tensor, by one thread at a time,
	 * unless read_anywhere: then by several threads at once, in any order */
	enum ggu_status (*read)(void *ctx, size_t i, uint64_t at, void *to, size_t n, struct ggu_error *err);
	void *read_ctx;
	bool read_anywhere;
	const struct imatrix *imatrix;          /* or NULL */
	const char *imatrix_name;
	int effort;
	const struct quant_objective *objective;        /* NULL: the default of each type */
	bool keep_non_finite;
	bool verbose;                           /* a table with errors on stderr */
	json_t *list;                           /* the same as JSON appended here, or NULL */
	const char *doing;                      /* "quantizing", for progress */
};
/* A copy of `from` with the keys that quantizing changes: general.file_type, general.quantization_version,
 * quantize.imatrix.* and no split.*. The caller frees. */
struct ggu_meta *remake_meta(const struct remake *r, const struct ggu_meta *from, uint32_t file_type);
/* A writer that knows every tensor. The caller frees. Refuses a matrix that is another model's or lacks what a type
 * needs, and warns of what else it lacks. */
struct ggu_writer *remake_writer(const struct remake *r, const struct ggu_meta *meta);
/* The whole file to out, which the caller commits. jobs: threads, 0: all cores. */
void remake_write(const struct remake *r, struct ggu_writer *w, struct out *out, int jobs);
/* Warns of tensors that got another type than wanted. */
void remake_report_fallbacks(const struct remake *r);
/* What a run makes of the tensors, as a table for people or as JSON (remake_table.c). */
uint64_t remake_bytes(const struct remake *r, size_t i);        /* of tensor i in its new type */
struct remake_sizes { uint64_t weights, before, after; };       /* bytes of tensor data */
struct remake_sizes remake_sizes(const struct remake *r);
double remake_bits(uint64_t bytes, uint64_t weights);           /* per weight */
struct remake_table { FILE *f; const struct remake *r; bool errors; int name, shape; };        /* widths of columns */
void remake_table_begin(struct remake_table *to, FILE *f, const struct remake *r, bool errors); /* the line of titles */
void remake_table_line(const struct remake_table *to, size_t i, double error);          /* error below 0: not measured */
void remake_table_total(FILE *f, const struct remake *r, uint64_t file_bytes);
void remake_json_tensor(json_t *list, const struct remake *r, size_t i, double error);  /* appended to list */
/* The whole document on standard output, with the list, which is freed. */
void remake_json_total(const struct remake *r, json_t *list, uint64_t file_bytes);

#endif
