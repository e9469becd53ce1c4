/* SPDX-License-Identifier: MIT
 * charsmap.c - see charsmap.h. A look-up follows the bytes of the text from unit to unit and remembers the last key
 * that ended. */
#include <string.h>
#include "../../libgguf/span.h"
#include "../../libgguf/text.h"
#include "charsmap.h"

enum ggu_status charsmap_read(struct charsmap *m, const void *bytes, size_t n, struct ggu_error *err)
{
	struct span s = { bytes, n, 0 }, trie, texts;
	uint32_t size;
	if (!span_u32(&s, &size) || !span_take(&s, size, &trie))
		return ggu_fail(err, GGU_ERR_TRUNCATED, GGU_NO_OFFSET, "precompiled_charsmap",
			"ends within its trie");
	if (!size || size%4)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "precompiled_charsmap",
			"a trie of %lu byte%s is not a whole number of units", (unsigned long)size, text_s(size));
	texts = s;
	if (texts.n && texts.p[texts.n - 1])
		return ggu_fail(err, GGU_ERR_TRUNCATED, GGU_NO_OFFSET, "precompiled_charsmap",
			"ends within a replacement");
	*m = (struct charsmap){ trie.p, size/4, (const char *)texts.p, texts.n };
	return GGU_OK;
}

/* The unit at pos, or 0, which leads nowhere, if there is none. */
static uint32_t unit_at(const struct charsmap *m, size_t pos)
{
	const unsigned char *p = m->unit + 4*pos;
	if (pos >= m->n_units) return 0;
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << (unit >> 9 & 1 ? 8 : 0); }

size_t charsmap_find(const struct charsmap *m, const char *p, size_t n, bool shortest, struct ggu_str *to)
{
	size_t pos = offset_of(unit_at(m, 0)), found = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char b = (unsigned char)p[i];
		uint32_t unit, value;
		pos ^= b;
		if (!b || pos >= m->n_units) break;     /* no key holds a NUL: values lie there */
		unit = unit_at(m, pos);
		if ((unit & (UINT32_C(1) << 31 | 255)) != b) break;
		pos ^= offset_of(unit);
		if (!(unit >> 8 & 1)) continue;
		value = unit_at(m, pos) & ~(UINT32_C(1) << 31);
		if (pos >= m->n_units || value >= m->n_texts) continue;
		*to = (struct ggu_str){ m->texts + value, strlen(m->texts + value) };
		found = i + 1;
		if (shortest) break;
	}
	return found;
}
