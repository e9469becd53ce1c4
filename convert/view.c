/* SPDX-License-Identifier: MIT
 * view.c - strided views of checkpoint tensors: making them and reading through them; see view.h.
 *
 * A run along the last dimension is one read, and runs that touch are joined. If the last dimension is not the
 * contiguous one in the file (a transpose), the range is read in strips along the contiguous one, one read for each
 * element of a row. LINES strips are turned at a time: elements of one alone would be written a row apart. Memory is
 * bounded whatever the strides: a strip spans at most SPAN elements of the file, and ranges are not read along a
 * dimension whose elements are more than UNIT elements of the view apart. */
#include <math.h>
#include <string.h>
#include "../libgguf/try.h"
#include "../quant/vec.h"
#include "view.h"

void view_of(struct view *v, const struct source_tensor *t)
{
	*v = (struct view){ .t = t, .n = t->n_dims, .n_shape = t->n_dims };
	for (unsigned i = 0; i < t->n_dims; i++) {
		v->dim[i] = v->shape[i] = t->shape[i];
		v->stride[i] = t->stride[i];
	}
}

uint64_t view_count(const struct view *v)
{
	uint64_t n = 1;
	for (unsigned i = 0; i < v->n; i++) n *= v->dim[i];
	return n;
}

/* ---- transforms ---- */

static void remove_dim(struct view *v, unsigned i)
{
	memmove(v->dim + i, v->dim + i + 1, (v->n - i - 1)*sizeof *v->dim);
	memmove(v->stride + i, v->stride + i + 1, (v->n - i - 1)*sizeof *v->stride);
	v->n--;
}

static void squeeze(struct view *v)
{
	for (unsigned i = v->n; i-- > 0;) if (v->dim[i] == 1) remove_dim(v, i);
}

void view_coalesce(struct view *v)
{
	squeeze(v);
	for (unsigned i = v->n; i-- > 1;)
		if (v->stride[i - 1] == v->stride[i]*v->dim[i]) {
			v->dim[i] *= v->dim[i - 1];
			remove_dim(v, i - 1);
		}
}

/* Whether every dimension of one shape is a product of adjacent ones of the other. Both have as many elements. */
static bool splits_or_joins(const uint64_t *a, unsigned n_a, const uint64_t *b, unsigned n_b)
{
	for (;;) {
		uint64_t x = 1, y = 1;
		unsigned of_a = 0, of_b = 0;
		while (n_a && x == 1) x = a[--n_a], of_a = 1;
		while (n_b && y == 1) y = b[--n_b], of_b = 1;
		if (x == 1 || y == 1) return true;
		while (x != y) {
			bool more_a = x < y;
			uint64_t d = more_a ? a[--n_a] : b[--n_b];
			if (d == 1) continue;
			if (more_a) x *= d, of_a++;
			else y *= d, of_b++;
		}
		if (of_a > 1 && of_b > 1) return false;
	}
}
/* Cuts the wanted dimensions, fastest first, from the coalesced ones. If one of them would join two, the view stays as
 * it is, and only the shape changes. */
static const char *reshape(struct view *v, const double *arg, size_t n)
{
	uint64_t want[VIEW_MAX_DIMS], known = 1, total = view_count(v);
	struct view flat = *v, out;
	int open = -1;
	if (!n || n > VIEW_MAX_DIMS) return "expected 1 to 10 dimensions";
	for (size_t i = 0; i < n; i++) {
		if (arg[i] == -1 && open < 0) { open = (int)i; continue; }
		if (!(arg[i] >= 1 && arg[i] <= 1e15)) return "a dimension is out of range";
		want[i] = (uint64_t)arg[i];
		if (__builtin_mul_overflow(known, want[i], &known)) return "is too large";
	}
	if (open >= 0 ? !total || total%known : known != total) return "does not have as many elements as the tensor";
	if (open >= 0) want[open] = total/known;
	if (!splits_or_joins(v->shape, v->n_shape, want, (unsigned)n)) return "cuts across the tensor's dimensions";
	v->n_shape = (unsigned)n;
	memcpy(v->shape, want, n*sizeof *want);
	view_coalesce(&flat);
	if (!flat.n) { flat.n = 1; flat.dim[0] = 1; flat.stride[0] = 1; }
	out = *v;
	out.n = (unsigned)n;
	for (size_t i = n, k = flat.n, done = 1; i-- > 0;) {
		out.dim[i] = want[i];
		out.stride[i] = 1;
		if (want[i] == 1) continue;
		if (done == flat.dim[k - 1]) { k--; done = 1; }
		if (flat.dim[k - 1]%(done*want[i])) { v->joined = true; return NULL; }
		out.stride[i] = flat.stride[k - 1]*done;
		done *= want[i];
	}
	*v = out;
	v->joined = false;
	return NULL;
}

static bool axis(const struct view *v, double a, unsigned *k)
{
	if (a < 0) a += v->n;
	if (!(a >= 0 && a < v->n)) return false;
	*k = (unsigned)a;
	return true;
}

static const char *swap(struct view *v, double x, double y)
{
	unsigned a, b;
	uint64_t t;
	if (!axis(v, x, &a) || !axis(v, y, &b)) return "no such axis";
	t = v->dim[a], v->dim[a] = v->dim[b], v->dim[b] = t;
	t = v->stride[a], v->stride[a] = v->stride[b], v->stride[b] = t;
	return NULL;
}

static const char *take(struct view *v, const double *arg)
{
	unsigned a;
	if (!axis(v, arg[0], &a)) return "no such axis";
	if (!(arg[1] >= 0 && arg[2] >= 1 && arg[1] + arg[2] <= (double)v->dim[a]))
		return "range extends past the end of the axis";
	v->offset += (uint64_t)arg[1]*v->stride[a];
	v->dim[a] = (uint64_t)arg[2];
	return NULL;
}

/* [h*2*d][in] -> [h][2][d][in] -> [h][d][2][in]; flattened to the old shape by view_coalesce and the output's shape */
static const char *permute(struct view *v, double heads)
{
	double in = v->n == 2 ? (double)v->dim[1] : 1, rows;
	unsigned n = v->n;
	const char *e;
	if (n < 1 || n > 2) return "expected a matrix or a vector";
	rows = (double)v->dim[0];
	if (!(heads >= 1 && heads <= 1e9) || v->dim[0]%(uint64_t)(2*heads))
		return "rows cannot be split into pairs for that many heads";
	e = reshape(v, (double[]){ heads, 2, rows/heads/2, in }, 4);
	if (!e) e = swap(v, 1, 2);
	return e ? e : reshape(v, (double[]){ rows, in }, n);
}

/* A factor of 1 does nothing: the values stay as they are stored. */
static const char *operate(struct view *v, char op, double x)
{
	if (op == '*' && x == 1) return NULL;
	if (v->n_ops == VIEW_MAX_OPS) return "more than 4 operations";
	v->op[v->n_ops++] = (struct view_op){ op, (float)x };
	return NULL;
}

/* GPTQ and its like pack the [in][out] of a Conv1D as the [out][in] of a Linear. */
static bool is_linear(const struct source_tensor *t) { return t->coded && t->coded->linear; }

const char *view_apply(struct view *v, const char *name, const double *arg, size_t n)
{
	enum { PERMUTE, RESHAPE, SWAP, TRANSPOSE, LINEAR, TAKE, SQUEEZE, ADD, MUL, EXP, N_TRANSFORMS };
	static const struct { const char *name; size_t n; } all[N_TRANSFORMS] = {       /* reshape takes any number */
		[PERMUTE] = { "permute", 1 }, [RESHAPE] = { "reshape", 0 }, [SWAP] = { "swap", 2 },
			[TRANSPOSE] = { "transpose", 0 }, [LINEAR] = { "linear", 0 },
		[TAKE] = { "take", 3 }, [SQUEEZE] = { "squeeze", 0 }, [ADD] = { "add", 1 }, [MUL] = { "mul", 1 },
		[EXP] = { "exp", 0 },
	};
	const char *e = NULL;
	int k = 0;
	while (k < N_TRANSFORMS && strcmp(all[k].name, name)) k++;
	if (k == N_TRANSFORMS) return "no such transform";
	if (k != RESHAPE && all[k].n != n) return "wrong number of arguments";
	if (k == ADD || k == MUL) return operate(v, k == ADD ? '+' : '*', arg[0]);
	if (k == EXP) return operate(v, 'e', 0);
	for (size_t i = 0; i < n; i++) if (arg[i] != floor(arg[i])) return "expected whole numbers";
	if (k == RESHAPE) return reshape(v, arg, n);
	if (v->joined) return "cannot follow a reshape that joined dimensions";
	if (k == PERMUTE) return permute(v, arg[0]);
	if (k == SWAP) e = swap(v, arg[0], arg[1]);
	else if (k == TRANSPOSE || (k == LINEAR && !is_linear(v->t))) e = swap(v, -1, -2);
	else if (k == TAKE) e = take(v, arg);
	else if (k == SQUEEZE) squeeze(v);
	v->n_shape = v->n;
	memcpy(v->shape, v->dim, sizeof v->dim);
	return e;
}

/* ---- reading ---- */

enum { UNIT = 1 << 21, SPAN = 1 << 16, LINES = 16 };

/* The dimension whose elements are nearest to each other. */
static unsigned nearest(const struct view *v)
{
	unsigned u = v->n ? v->n - 1 : 0;
	uint64_t unit = 1;
	for (unsigned i = u; i-- > 0;) {
		if (__builtin_mul_overflow(unit, v->dim[i + 1], &unit) || unit > UNIT) break;
		if (v->stride[i] < v->stride[u]) u = i;
	}
	return u;
}
/* The number of elements of a strip along u, at most `run`. */
static uint64_t strip(const struct view *v, unsigned u, uint64_t run)
{
	uint64_t most = v->stride[u] ? 1 + (SPAN - 1)/v->stride[u] : run;
	return run < most ? run : most;
}
bool view_crosswise(const struct view *v) { return v->n && nearest(v) != v->n - 1; }
uint64_t view_unit(const struct view *v)
{
	uint64_t n = 1;
	for (unsigned i = nearest(v) + 1; i < v->n; i++) n *= v->dim[i];
	return n ? n : 1;
}
size_t view_work_bytes(const struct view *v, uint64_t n)
{
	unsigned u = nearest(v);
	uint64_t run = n/view_unit(v);
	if (!v->n || !run || (!view_crosswise(v) && v->stride[u] == 1)) return 0;
	run = strip(v, u, run < v->dim[u] ? run : v->dim[u]);
	return LINES*(size_t)((run - 1)*v->stride[u] + 1)*v->t->dtype->bytes;
}

/* The position in the source of the view's element e, over its first n dimensions. */
static uint64_t position(const struct view *v, unsigned n, uint64_t e)
{
	uint64_t p = 0;
	for (unsigned i = n; i-- > 0; e /= v->dim[i]) p += e%v->dim[i]*v->stride[i];
	return p;
}

/* Elements of some lines of the file, `line` bytes apart, side by side: to[i][k] is element i*step of line k. */
struct lines { const char *from; size_t line, n, step; };
static inline void turn_of(char *to, size_t to_step, const struct lines *l, size_t n, size_t bytes)
{
	for (size_t i = 0; i < n; i++, to += to_step*bytes)
		for (size_t k = 0; k < l->n; k++)
			memcpy(to + k*bytes, l->from + k*l->line + i*l->step*bytes, bytes);
}
/* With a constant size each copy is a move, not a call. */
static void turn(char *to, size_t to_step, const struct lines *l, size_t n, size_t bytes)
{
	switch (bytes) {
	case 1: turn_of(to, to_step, l, n, 1); break;
	case 2: turn_of(to, to_step, l, n, 2); break;
	case 4: turn_of(to, to_step, l, n, 4); break;
	default: turn_of(to, to_step, l, n, bytes); break;
	}
}

/* Where elements come from: the file, or what was read of it */
struct input { const struct checkpoint *c; struct coded_reader *r; struct ggu_error *err; };
static enum ggu_status get(const struct input *in, const struct source_tensor *t, uint64_t from, void *to, uint64_t n)
{
	if (!in->r) return checkpoint_read(in->c, t, from, to, (size_t)n, in->err);
	coded_compute(in->r, from, to, (size_t)n);
	return GGU_OK;
}

static enum ggu_status read_rows(const struct view *v, const struct input *in, uint64_t from, uint64_t n, char *to)
{
	size_t bytes = v->t->dtype->bytes;
	uint64_t row = v->n ? v->dim[v->n - 1] : 1;
	uint64_t start = 0, run = 0;
	while (n) {
		uint64_t at = v->offset + position(v, v->n, from), m = row - from%row;
		if (m > n) m = n;
		if (run && at != start + run) {
			TRY(get(in, v->t, start, to, run));
			to += run*bytes;
			run = 0;
		}
		if (!run) start = at;
		run += m;
		from += m;
		n -= m;
	}
	return run ? get(in, v->t, start, to, run) : GGU_OK;
}

/* Is the last dimension the contiguous one? */
static bool by_rows(const struct view *v) { return !v->n || (!view_crosswise(v) && v->stride[v->n - 1] == 1); }
/* The dimensions after u */
static struct view within(const struct view *v, unsigned u)
{
	struct view inner = *v;
	inner.n = v->n - u - 1;
	memmove(inner.dim, v->dim + u + 1, inner.n*sizeof *inner.dim);
	memmove(inner.stride, v->stride + u + 1, inner.n*sizeof *inner.stride);
	return inner;
}
static enum ggu_status read_from(const struct view *v, const struct input *in, uint64_t from, uint64_t n, void *to,
	void *work)
{
	size_t bytes = v->t->dtype->bytes;
	unsigned u = nearest(v);
	uint64_t unit = view_unit(v);
	char *out = to;
	const struct view inner = by_rows(v) ? *v : within(v, u);
	if (by_rows(v)) return read_rows(v, in, from, n, to);
	if (from%unit || n%unit) return ggu_fail(in->err, GGU_ERR_STATE, GGU_NO_OFFSET, v->t->name,
		"a read that does not begin and end between strips");
	while (n) {
		uint64_t k = from/unit, run = v->dim[u] - k%v->dim[u], base = v->offset + position(v, u + 1, k);
		run = strip(v, u, run < n/unit ? run : n/unit);
		const size_t span = (size_t)((run - 1)*v->stride[u] + 1);
		for (uint64_t t = 0, some; t < unit; t += some) {
			some = unit - t < LINES ? unit - t : LINES;
			for (uint64_t i = 0; i < some; i++)
				TRY(get(in, v->t, base + position(&inner, inner.n, t + i),
					(char *)work + i*span*bytes, span));
			const struct lines l = { work, span*bytes, (size_t)some, (size_t)v->stride[u] };
			turn(out + t*bytes, (size_t)unit, &l, (size_t)run, bytes);
		}
		out += run*unit*bytes;
		from += run*unit;
		n -= run*unit;
	}
	return GGU_OK;
}

enum ggu_status view_read(const struct view *v, const struct checkpoint *c, uint64_t from, uint64_t n, void *to,
	void *work, struct ggu_error *err)
{
	return read_from(v, &(struct input){ .c = c, .err = err }, from, n, to, work);
}
void view_compute(const struct view *v, struct coded_reader *r, uint64_t from, uint64_t n, void *to, void *work)
{
	read_from(v, &(struct input){ .r = r }, from, n, to, work);
}

/* Widens the box, lines and columns from the first to the one after the last, by `span` elements from p on. */
static void widen(struct coded_box *b, uint64_t columns, uint64_t p, uint64_t span)
{
	const uint64_t line = p/columns, last = (p + span - 1)/columns;
	const uint64_t column = line == last ? p%columns : 0, end = line == last ? p%columns + span : columns;
	if (line < b->line) b->line = line;
	if (last >= b->n_lines) b->n_lines = last + 1;
	if (column < b->column) b->column = column;
	if (end > b->n_columns) b->n_columns = end;
}
struct coded_box view_box(const struct view *v, uint64_t from, uint64_t n)
{
	const bool rows = by_rows(v);
	const unsigned u = nearest(v);
	const uint64_t columns = v->t->coded->columns, unit = view_unit(v), row = v->n ? v->dim[v->n - 1] : 1;
	struct coded_box b = { UINT64_MAX, 0, UINT64_MAX, 0 };
	uint64_t down = 0, across = 0;          /* from the first element of a unit to its last */
	for (unsigned i = u + 1; i < v->n; i++)
		*(v->stride[i]%columns ? &across : &down) += (v->dim[i] - 1)*v->stride[i];
	for (uint64_t some; n; from += some, n -= some) {
		const uint64_t k = from/unit, left = rows ? row - from%row : v->dim[u] - k%v->dim[u];
		const uint64_t most = rows ? n : n/unit, run = left < most ? left : most;
		const uint64_t base = v->offset + (rows ? position(v, v->n, from) : position(v, u + 1, k));
		const uint64_t span = (rows ? run : (run - 1)*v->stride[u] + 1) + across;
		widen(&b, columns, base, span);
		if (down) widen(&b, columns, base + down, span);
		some = rows ? run : run*unit;
	}
	b.n_lines -= b.line;
	b.n_columns -= b.column;
	return b;
}

void view_operate(const struct view *v, float *x, size_t n)
{
	for (unsigned k = 0; k < v->n_ops; k++) {
		float y = v->op[k].x;
		if (v->op[k].op == '+') for (size_t i = 0; i < n; i++) x[i] += y;
		else if (v->op[k].op == '*') for (size_t i = 0; i < n; i++) x[i] *= y;
		else for (size_t i = 0; i < n; i++) x[i] = (float)num_exp((double)x[i]);
	}
}
