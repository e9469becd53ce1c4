/* SPDX-License-Identifier: MIT
 * conv.c - see conv.h. */
#include "../../libgguf/try.h"
#include "conv.h"

enum ggu_status conv_build(struct builder *b, const struct yaml_node *map, struct convolution *c, size_t n)
{
	c->n = n;
	if (!c->width) c->width = c->w.n/n;
	if (!c->width || c->width > SCAN_MAX_WIDTH)
		return build_fail(b, map, "conv", "does not have 1 to 16 weights for each channel");
	TRY(build_rows(b, map, "conv", &c->w, c->width, n));
	TRY(build_length(b, map, "conv_bias", &c->bias, n));
	return build_recurrent(b, map, "conv", c->width - 1, n, &c->kept);
}

void conv_run(const struct convolution *c, struct run *r, size_t x, size_t stride)
{
	r->be->conv(r, &(struct conv){ .x = x, .stride = stride, .n = c->n, .width = c->width, .w = c->w.v,
		.bias = c->bias.v, .kept = c->kept });
}
