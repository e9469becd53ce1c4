/* SPDX-License-Identifier: MIT
 * bf16.h - the upper halves of floats. */
#ifdef QUANT_ENCODER

static void enc_bf16(void *dst, const float *x, const float *weights, size_t rows, size_t cols, const struct how *how)
{
	(void)weights; (void)how;
	put_halves(dst, x, rows*cols, half_bf16);
}
#endif
