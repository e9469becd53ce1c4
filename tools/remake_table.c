/* SPDX-License-Identifier: MIT
 * remake_table.c - what becomes of the tensors, for people and for programs; see remake_run.h.
 *
 * Lines are printed while tensors are processed, so the widths of columns come from the whole list beforehand. */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "kv_json.h"
#include "msg.h"
#include "progress.h"
#include "remake_run.h"

enum { NAME_WIDTH_MAX = 48 };

uint64_t remake_bytes(const struct remake *r, size_t i)
{
	uint64_t bytes;
	if (!ggu_type_bytes(r->choice[i].type, r->t[i]->ne[0]*ggu_tensor_rows(r->t[i]), &bytes))
		msg_die("%s: bad size", r->t[i]->name);
	return bytes;
}
struct sizes { uint64_t weights, before, after; };       /* bytes of tensor data */
static struct sizes sizes(const struct remake *r)
{
	struct sizes s = { 0, 0, 0 };
	for (size_t i = 0; i < r->n; i++) {
		s.weights += r->t[i]->ne[0]*ggu_tensor_rows(r->t[i]);
		s.before += r->t[i]->bytes;
		s.after += remake_bytes(r, i);
	}
	return s;
}
/* per weight */
static double bits(uint64_t bytes, uint64_t weights) { return weights ? 8.0*(double)bytes/(double)weights : 0; }

/* Types for the table: what the source delivers, and the new one. A checkpoint's tensors have the new one already if no
 * recipe chose it; then the source's is what they are read as. */
static const char *from_name(const struct remake *r, size_t i)
{
	bool already = r->from && r->t[i]->type == r->choice[i].type;
	return ggu_type_info(already ? r->from[i] : r->t[i]->type)->name;
}
static const char *to_name(const struct remake *r, size_t i) { return ggu_type_info(r->choice[i].type)->name; }

void remake_table_begin(struct remake_table *to, FILE *f, const struct remake *r, bool errors)
{
	*to = (struct remake_table){ f, r, errors, 6, 5 };
	for (size_t i = 0; i < r->n; i++) {
		char *name = text_mask(r->t[i]->name, r->t[i]->name_bytes), shape[TEXT_SHAPE];
		int n = (int)text_width(name), k = text_shape(shape, r->t[i]->ne, r->t[i]->n_dims);
		if (n > to->name && n <= NAME_WIDTH_MAX) to->name = n;
		if (k > to->shape) to->shape = k;
		free(name);
	}
	fprintf(f, "%-*s  %-*s  %-19s %14s %6s%s\n", to->name, "tensor", to->shape, "shape", "   from    to", "bytes",
		"bits", errors ? "      error" : "");
}
const char *remake_reason(const struct recipe_choice *c)
{
	static const char *const why[] = { "", "  as asked", "  fall-back", "", "  as published" };
	return why[c->reason];
}
void remake_table_line(const struct remake_table *to, size_t i, double error, const struct recode_result *got)
{
	const struct remake *r = to->r;
	const char *reason = remake_reason(r->choice + i);
	uint64_t bytes = remake_bytes(r, i);
	char *name = text_mask(r->t[i]->name, r->t[i]->name_bytes), shape[TEXT_SHAPE], lost[80] = "";
	int pad = to->name - (int)text_width(name);
	text_shape(shape, r->t[i]->ne, r->t[i]->n_dims);
	if (error >= 0) snprintf(lost, sizeof lost, "  %9.3e", error);
	if (error >= 0 && got && got->without > 0)
		snprintf(lost + strlen(lost), sizeof lost - strlen(lost), "  feedback: %.3e to %.3e", got->without,
			got->with);
	if (error < 0 && to->errors && *reason) snprintf(lost, sizeof lost, "  %9s", "");
	if (to->f == stderr) progress_hide();
	fprintf(to->f, "%s%*s  %-*s  %7s -> %-8s %14llu %6.2f%s%s\n", name, pad > 0 ? pad : 0, "", to->shape, shape,
		from_name(r, i), to_name(r, i), (unsigned long long)bytes,
		bits(bytes, r->t[i]->ne[0]*ggu_tensor_rows(r->t[i])), lost, reason);
	free(name);
}
void remake_table_total(FILE *f, const struct remake *r, uint64_t file_bytes)
{
	struct sizes s = sizes(r);
	fprintf(f, "%zu tensor%s, %s weights: %s (%.2f bits per weight) became %s (%.2f); the file has %llu bytes\n",
		r->n, text_s(r->n), msg_count(s.weights), msg_bytes(s.before), bits(s.before, s.weights),
		msg_bytes(s.after), bits(s.after, s.weights), (unsigned long long)file_bytes);
}

void remake_json_tensor(json_t *list, const struct remake *r, size_t i, double error, const struct recode_result *got)
{
	static const char *const why[] = { "rule", "override", "fallback", "kept", "published" };
	const struct ggu_tensor *t = r->t[i];
	const struct ggu_str name = { t->name, t->name_bytes };
	json_t *row = json_object();
	json_put_str(row, "name", name);
	json_put(row, "shape", json_of_shape(t));
	json_put(row, "from", json_string(from_name(r, i)));
	json_put(row, "to", json_string(to_name(r, i)));
	json_put(row, "bytes_before", json_of_uint(t->bytes));
	json_put(row, "bytes", json_of_uint(remake_bytes(r, i)));
	json_put(row, "reason", json_string(why[r->choice[i].reason]));
	if (error >= 0) json_put(row, "error", json_of_double(error));
	if (error >= 0 && got && got->without > 0) {
		json_put(row, "output_error_before", json_of_double(got->without));
		json_put(row, "output_error", json_of_double(got->with));
	}
	json_push(list, row);
}
void remake_json_total(const struct remake *r, json_t *list, uint64_t file_bytes)
{
	struct sizes s = sizes(r);
	json_t *root = json_object();
	json_put(root, "tensors", list);
	json_put(root, "weights", json_of_uint(s.weights));
	json_put(root, "bytes_before", json_of_uint(s.before));
	json_put(root, "bytes", json_of_uint(s.after));
	json_put(root, "file_bytes", json_of_uint(file_bytes));
	json_put(root, "bits_per_weight_before", json_of_double(bits(s.before, s.weights)));
	json_put(root, "bits_per_weight", json_of_double(bits(s.after, s.weights)));
	json_print(root, JSON_INDENT(1));
}
