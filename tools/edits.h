/* SPDX-License-Identifier: MIT
 * edits.h - changes to a model's metadata and to the names of its tensors, as the options of gguf-edit name them.
 * Programs only; failures exit 2 with a message. */
#ifndef TOOLS_EDITS_H
#define TOOLS_EDITS_H
#include "../libgguf/ggu.h"
#include "../libgguf/index.h"

enum edit_kind { EDIT_SET, EDIT_SET_FILE, EDIT_DELETE, EDIT_RENAME, EDIT_RENAME_TENSOR };
/* arg: the option's argument, "KEY=TYPE:VALUE" and so on. file: that of EDIT_SET_FILE, with its contents, text[n] */
struct edit { enum edit_kind kind; const char *arg, *file; char *text; size_t n; };
struct edits { struct edit *v; size_t n; };
/* Reads the files of EDIT_SET_FILE. Standard input can be one of them, or the model, whose name is `model`. */
void edits_read_files(struct edits *e, const char *model);
void edits_free(struct edits *e);

/* A model that is being edited. f and name are the caller's. */
struct edited {
	struct ggu_file *f;
	const char *name;
	struct ggu_meta *meta;          /* as edited */
	char **tensor;                  /* [n] names as edited, in the order of the table */
	struct ggu_index index;         /* of tensor; a name that was given up stays, but does not lead to its tensor */
	uint64_t *offset;               /* [n] */
	size_t n;
	bool moved;                     /* offsets are not those of f */
};
/* Applies the edits in order. to: the name that the file will have; NULL: none. */
void edited_make(struct edited *m, const struct edits *e, const char *to);
void edited_free(struct edited *m);

#endif
