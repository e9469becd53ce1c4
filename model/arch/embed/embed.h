/* SPDX-License-Identifier: MIT
 * embed.h - files that make put into the program; see embed.c. */
#ifndef MODEL_ARCH_EMBED_H
#define MODEL_ARCH_EMBED_H
#include <stddef.h>
struct embedded { const char *name, *text; size_t n; };
extern const struct embedded arch_data[];       /* model/arch/NAME.yaml */
#endif
