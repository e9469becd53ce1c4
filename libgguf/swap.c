/* SPDX-License-Identifier: MIT
 * swap.c - reverses byte order, by the layouts of qtypes.def. */
#include <string.h>
#include "internal.h"

void ggu_swap_items(void *p, size_t n, size_t width)
{
	unsigned char *b = p;

	/* one loop for each width, which compilers turn into shuffles of bytes */
	switch (width) {
	case 2:
		for (size_t i = 0; i < n; i++, b += 2) {
			uint16_t v;
			memcpy(&v, b, 2);
			v = (uint16_t)(v >> 8 | v << 8);
			memcpy(b, &v, 2);
		}
		break;
	case 4:
		for (size_t i = 0; i < n; i++, b += 4) {
			uint32_t v;
			memcpy(&v, b, 4);
			v = __builtin_bswap32(v);
			memcpy(b, &v, 4);
		}
		break;
	case 8:
		for (size_t i = 0; i < n; i++, b += 8) {
			uint64_t v;
			memcpy(&v, b, 8);
			v = __builtin_bswap64(v);
			memcpy(b, &v, 8);
		}
		break;
	}
}

static const char *layout_run(const char *s, size_t *n, size_t *width)
{
	*n = 0;
	while (*s >= '0' && *s <= '9')
		*n = 10**n + (size_t)(*s++ - '0');
	*width = *s == 'h' ? 2 : *s == 'w' ? 4 : *s == 'd' ? 8 : 1;
	return s + 1;
}

void ggu_swap_blocks(void *p, size_t n_blocks, const struct ggu_type_info *info)
{
	const char *layout = ggu_type_swap(info->id);
	unsigned char *b = p;
	size_t n, width;

	if (!*layout_run(layout, &n, &width)) {     /* made of one kind of integer */
		ggu_swap_items(p, n*n_blocks, width);
		return;
	}
	for (size_t i = 0; i < n_blocks; i++)
		for (const char *s = layout; *s;) {
			s = layout_run(s, &n, &width);
			ggu_swap_items(b, n, width);
			b += n*width;
		}
}
