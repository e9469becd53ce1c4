/* SPDX-License-Identifier: MIT
 * f32.h - plain floats. */
#ifdef QUANT_ENCODER

static void enc_f32(void *dst, const float *x, const float *imp, size_t rows, size_t cols, int level)
{
	(void)imp; (void)level;
	if (rows && cols) memcpy(dst, x, rows*cols*sizeof *x);
}
#endif
