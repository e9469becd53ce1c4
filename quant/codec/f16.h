/* SPDX-License-Identifier: MIT
 * f16.h - IEEE halves. */
#ifdef QUANT_ENCODER

static void enc_f16(void *dst, const float *x, const float *imp, size_t rows, size_t cols, int level)
{
	(void)imp; (void)level;
	put_halves(dst, x, rows*cols, half_f16);
}
#endif
