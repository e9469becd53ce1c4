/* SPDX-License-Identifier: MIT
 * enc_factor.h - the time-consuming parts of making the factor of a covariance for error feedback (feedback.c), and
 * solving rows with it. enc.h says what each function does.
 *
 * Each sum is one chain in the order of columns, and lanes are independent columns or rows, so the width of registers
 * cannot change a bit. */
#ifndef QUANT_ENC_FACTOR_H
#define QUANT_ENC_FACTOR_H
#include <math.h>
#include "enc.h"
#include "enc_lane.h"

/* V registers of columns of R rows at a time; earlier columns in stretches that stay in L1. */
static void factor_take(float *a, size_t stride, size_t n_rows, size_t done, const float *panel)
{
	enum { R = REG == 16 ? 6 : 4, V = REG == 16 ? 4 : 2, STRETCH = 256 };
	for (size_t first = 0; first < done; first += STRETCH) {
		const size_t end = done - first < STRETCH ? done : first + STRETCH;
		for (size_t c = done; c < done + FACTOR_PANEL; c += V*REG)
			for (size_t i = 0; i < n_rows; i += R) {
				const float *x = panel + first*FACTOR_PANEL + c - done;
				float *row[R];
				rf s[R][V];
				for (size_t r = 0; r < R; r++) {
					row[r] = a + (i + r < n_rows ? i + r : n_rows - 1)*stride;
					for (size_t v = 0; v < V; v++) s[r][v] = r_floats(row[r] + c + v*REG);
				}
				for (size_t p = first; p < end; p++, x += FACTOR_PANEL)
					for (size_t r = 0; r < R; r++)
						for (size_t v = 0; v < V; v++) s[r][v] -= row[r][p]*r_floats(x + v*REG);
				for (size_t r = 0; r < R && i + r < n_rows; r++)
					for (size_t v = 0; v < V; v++) r_put(row[r] + c + v*REG, s[r][v]);
			}
	}
}
static bool factor_corner(float *a, size_t stride, size_t n_rows, size_t done, struct factor_corner *to)
{
	memset(to, 0, sizeof *to);
	a += done;
	for (size_t p = 0; p < n_rows; p++) {
		const float square = a[p*stride + p], root = sqrtf(square);
		if (!(square > 0 && square < INFINITY)) return false;
		a[p*stride + p] = to->root[p] = root;
		for (size_t i = p + 1; i < n_rows; i++) to->upper[p][i] = a[i*stride + p] /= root;
		/* what is subtracted from column p and earlier ones is 0; what is after column i does not matter */
		for (size_t i = p + 1; i < n_rows; i++)
			for (size_t c = p/REG*REG; c <= i; c += REG)
				r_put(a + i*stride + c, r_floats(a + i*stride + c)
					- to->upper[p][i]*r_floats(to->upper[p] + c));
	}
	return true;
}
/* Rows below a corner, in stretches of as many columns as a register has lanes: first what the columns of a stretch
 * subtract from each other, number by number, then what they subtract from the columns after it. */
static void factor_solve(float *a, size_t stride, size_t n_rows, size_t done, const struct factor_corner *under)
{
	enum { R = 8 };
	_Alignas(64) float now[R][REG], x[R][REG];
	for (size_t i = 0; i < n_rows; i += R)
		for (size_t at = 0; at < FACTOR_PANEL; at += REG) {
			float *row[R];
			rf s[R];
			for (size_t r = 0; r < R; r++) {
				row[r] = a + (i + r < n_rows ? i + r : n_rows - 1)*stride + done + at;
				s[r] = r_floats(row[r]);
			}
			for (size_t p = 0; p < REG; p++) {
				rf u = r_floats(under->upper[at + p] + at);
				for (size_t r = 0; r < R; r++) {
					r_put(now[r], s[r]);
					x[r][p] = now[r][p]/under->root[at + p];
					s[r] -= x[r][p]*u;
				}
			}
			for (size_t c = REG; at + c < FACTOR_PANEL; c += REG) {
				for (size_t r = 0; r < R; r++) s[r] = r_floats(row[r] + c);
				for (size_t p = 0; p < REG; p++) {
					rf u = r_floats(under->upper[at + p] + at + c);
					for (size_t r = 0; r < R; r++) s[r] -= x[r][p]*u;
				}
				for (size_t r = 0; r < R && i + r < n_rows; r++) r_put(row[r] + c, s[r]);
			}
			for (size_t r = 0; r < R && i + r < n_rows; r++) r_put(row[r], r_floats(x[r]));
		}
}
static inline rd rd_load(const double *p) { rd r; memcpy(&r, p, sizeof r); return r; }
static inline void rd_store(double *p, rd a) { memcpy(p, &a, sizeof a); }
/* Solves u AT = v from the last column back, then x A = u/D forward. In every lane, each sum is one chain. */
static void solve_rows(const float *factor, const float *diagonal, size_t n, size_t block, double *v)
{
	enum { W = REG/2, N = SOLVE_LANES/W };
	for (size_t k = n; k-- > 0;) {
		const size_t first = k/block*block;
		rd u[N];
		for (int i = 0; i < N; i++) u[i] = rd_load(v + k*SOLVE_LANES + i*W);
		for (size_t j = 0; j < k - first; j++)
			for (int i = 0; i < N; i++) {
				double *to = v + (first + j)*SOLVE_LANES + i*W;
				rd_store(to, rd_load(to) - u[i]*(double)factor[k*block + j]);
			}
	}
	for (size_t k = 0; k < n; k++) {
		const size_t first = k/block*block;
		rd x[N];
		for (int i = 0; i < N; i++) x[i] = rd_load(v + k*SOLVE_LANES + i*W)/(double)diagonal[k];
		for (size_t j = 0; j < k - first; j++)
			for (int i = 0; i < N; i++)
				x[i] -= rd_load(v + (first + j)*SOLVE_LANES + i*W)*(double)factor[k*block + j];
		for (int i = 0; i < N; i++) rd_store(v + k*SOLVE_LANES + i*W, x[i]);
	}
}
#endif
