/* SPDX-License-Identifier: MIT
 * sample.h - choose the next token.
 *
 * temperature 0: the largest logit, the lowest id among equals. Else: the top_k largest (0: all), of those the
 * fewest whose probabilities at temperature 1 reach top_p (1: all), then one drawn with probability
 * proportional to exp(logit / temperature). Random numbers: PCG32 (O'Neill 2014, XSH RR 64/32), stream 0. */
#ifndef MODEL_EVAL_SAMPLE_H
#define MODEL_EVAL_SAMPLE_H
#include <stddef.h>
#include <stdint.h>

struct sampler { double temperature, top_p; size_t top_k; uint64_t state; };
void sampler_seed(struct sampler *s, uint64_t seed);
/* logits[n]; order[n] is scratch. NaN counts as the smallest. */
int32_t sampler_next(struct sampler *s, const float *logits, size_t n, int32_t *order);

#endif
