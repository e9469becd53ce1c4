/* SPDX-License-Identifier: MIT
 * unicode.c - the Unicode version in use: that of utf8proc's tables, which normalize, and of PCRE2's classes. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <utf8proc.h>
#include "tokenizer.h"

const char *tokenizer_unicode_version(void)
{
	static char text[64];
	char pcre[32] = "";
	pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, pcre);
	snprintf(text, sizeof text, "%s (classes %s)", utf8proc_unicode_version(), pcre);
	return text;
}
