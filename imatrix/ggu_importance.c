/* SPDX-License-Identifier: MIT
 * ggu_importance.c - importance matrices as libggu offers them: imatrix.h under installed names. */
#include "imatrix.h"

enum ggu_status ggu_importance_open(struct ggu_importance *m, const char *path, struct ggu_error *err)
{
	struct imatrix *im;
	enum ggu_status s = imatrix_read(&im, path, err);
	if (s == GGU_OK) *m = imatrix_importances(im);
	return s;
}

void ggu_importance_close(struct ggu_importance *m)
{
	imatrix_free(m->ctx);
	*m = (struct ggu_importance){ .ctx = NULL };
}
