/* SPDX-License-Identifier: MIT
 * pickle.c - the stack machine of pickles; see pickle.h.
 *
 * `ops` lists the known opcodes and `globals` the known classes and functions, one to a line. Every opcode takes at
 * least a byte and pushes at most one value, so the stack, the memo and the items of all containers are bounded by the
 * pickle's length. A value that is fetched again is shared, not copied. */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/arena.h"
#include "../libgguf/span.h"
#include "../libgguf/text.h"
#include "../model/util/file.h"
#include "pickle.h"

/* ---- what a name stands for ---- */

enum role { ROLE_DICT, ROLE_TUPLE, ROLE_TENSOR_V2, ROLE_TENSOR_V3, ROLE_PARAMETER, ROLE_STORAGE, ROLE_DTYPE };
struct pickle_global { const char *module, *name; enum role role; const char *dtype; };
static const struct pickle_global globals[] = {
	{ "collections", "OrderedDict", ROLE_DICT, NULL },
	{ "torch", "Size", ROLE_TUPLE, NULL },
	{ "torch._utils", "_rebuild_tensor_v2", ROLE_TENSOR_V2, NULL },
	{ "torch._utils", "_rebuild_tensor_v3", ROLE_TENSOR_V3, NULL },
	{ "torch._utils", "_rebuild_parameter", ROLE_PARAMETER, NULL },
	{ "torch", "DoubleStorage", ROLE_STORAGE, "F64" },
	{ "torch", "FloatStorage", ROLE_STORAGE, "F32" },
	{ "torch", "HalfStorage", ROLE_STORAGE, "F16" },
	{ "torch", "BFloat16Storage", ROLE_STORAGE, "BF16" },
	{ "torch", "LongStorage", ROLE_STORAGE, "I64" },
	{ "torch", "IntStorage", ROLE_STORAGE, "I32" },
	{ "torch", "ShortStorage", ROLE_STORAGE, "I16" },
	{ "torch", "CharStorage", ROLE_STORAGE, "I8" },
	{ "torch", "ByteStorage", ROLE_STORAGE, "U8" },
	{ "torch", "BoolStorage", ROLE_STORAGE, "BOOL" },
	{ "torch", "ComplexFloatStorage", ROLE_STORAGE, "C64" },
	{ "torch.storage", "UntypedStorage", ROLE_STORAGE, NULL },
	{ "torch", "UntypedStorage", ROLE_STORAGE, NULL },
	{ "torch", "float64", ROLE_DTYPE, "F64" },
	{ "torch", "float32", ROLE_DTYPE, "F32" },
	{ "torch", "float16", ROLE_DTYPE, "F16" },
	{ "torch", "bfloat16", ROLE_DTYPE, "BF16" },
	{ "torch", "float8_e4m3fn", ROLE_DTYPE, "F8_E4M3" },
	{ "torch", "float8_e5m2", ROLE_DTYPE, "F8_E5M2" },
	{ "torch", "float8_e4m3fnuz", ROLE_DTYPE, "F8_E4M3FNUZ" },
	{ "torch", "float8_e5m2fnuz", ROLE_DTYPE, "F8_E5M2FNUZ" },
	{ "torch", "uint16", ROLE_DTYPE, "U16" },
	{ "torch", "uint32", ROLE_DTYPE, "U32" },
	{ "torch", "uint64", ROLE_DTYPE, "U64" },
};

/* ---- the machine ---- */

struct pickle {
	struct ggu_arena arena;
	const struct pickle_value *root;
};
struct machine {
	struct pickle *p;
	struct span in;
	const char *file;
	uint64_t at;                    /* position of the current opcode */
	const char *op;                 /* its name */
	const struct pickle_value **stack; size_t depth;        /* room for a value for each byte */
	size_t *marks; size_t n_marks;
	const struct pickle_value **memo; size_t n_memo, memo_next;     /* [n_memo]; memo_next: where MEMOIZE puts */
	bool done;
	struct ggu_error *err;
};

static enum ggu_status wrong(struct machine *m, const char *what)
{
	return file_fail(m->err, GGU_ERR_FORMAT, m->file, m->at, "", "pickle opcode %s: %s", m->op, what);
}

static enum ggu_status push(struct machine *m, const struct pickle_value *v)
{
	m->stack[m->depth++] = v;
	return GGU_OK;
}
static enum ggu_status push_new(struct machine *m, const struct pickle_value *v)
{
	struct pickle_value *copy = ggu_arena_alloc(&m->p->arena, sizeof *copy);
	if (!copy) return ggu_no_memory(m->err);
	*copy = *v;
	return push(m, copy);
}
/* Number of values above the last mark, or above the bottom. */
static size_t height(const struct machine *m) { return m->depth - (m->n_marks ? m->marks[m->n_marks - 1] : 0); }
/* Pops the top value; NULL: there is none above the mark. */
static const struct pickle_value *pop(struct machine *m) { return height(m) ? m->stack[--m->depth] : NULL; }
static const struct pickle_value *top(const struct machine *m) { return height(m) ? m->stack[m->depth - 1] : NULL; }
/* Pops the mark and the values above it: *v, *n. */
static bool pop_mark(struct machine *m, const struct pickle_value ***v, size_t *n)
{
	if (!m->n_marks) return false;
	*n = height(m);
	*v = m->stack + m->depth - *n;
	m->depth = m->marks[--m->n_marks];
	return true;
}

static enum ggu_status append(struct machine *m, struct pickle_items *to, const struct pickle_value *const *v, size_t n)
{
	if (n > to->cap - to->n) {
		size_t cap = to->n + n > 2*to->cap ? to->n + n : 2*to->cap;
		const struct pickle_value **grown = ggu_arena_alloc(&m->p->arena, cap*sizeof *grown);
		if (!grown) return ggu_no_memory(m->err);
		if (to->n) memcpy(grown, to->v, to->n*sizeof *grown);
		to->v = grown;
		to->cap = cap;
	}
	if (n) memcpy(to->v + to->n, v, n*sizeof *v);
	to->n += n;
	return GGU_OK;
}
static enum ggu_status push_items(struct machine *m, enum pickle_kind kind, const struct pickle_value *const *v,
	size_t n)
{
	struct pickle_value t = { .kind = kind };
	enum ggu_status s = append(m, &t.u.items, v, n);
	return s ? s : push_new(m, &t);
}

/* ---- arguments of opcodes ---- */

static enum ggu_status short_of(struct machine *m)
{
	return file_fail(m->err, GGU_ERR_TRUNCATED, m->file, m->at, "",
		"pickle opcode %s: its argument extends past the end of the pickle", m->op);
}
/* A little-endian number of n bytes. */
static bool number(struct machine *m, size_t n, uint64_t *v)
{
	struct span b;
	if (!span_take(&m->in, n, &b)) return false;
	*v = 0;
	for (size_t i = n; i-- > 0;) *v = *v << 8 | b.p[i];
	return true;
}
/* A length in n bytes, and as many bytes. */
static bool counted(struct machine *m, size_t n, struct span *text)
{
	uint64_t length;
	return number(m, n, &length) && length <= m->in.n && span_take(&m->in, (size_t)length, text);
}
static bool line(struct machine *m, struct pickle_str *s)
{
	const unsigned char *end = memchr(m->in.p, '\n', m->in.n);
	struct span b;
	if (!end) return false;
	*s = (struct pickle_str){ (const char *)m->in.p, (size_t)(end - m->in.p) };
	return span_take(&m->in, s->n + 1, &b);
}

/* ---- opcodes; arg: of its row in `ops` ---- */

static enum ggu_status op_skip(struct machine *m, int arg)
{
	struct span b;
	return span_take(&m->in, (size_t)arg, &b) ? GGU_OK : short_of(m);
}
static enum ggu_status op_stop(struct machine *m, int arg)
{
	(void)arg;
	m->p->root = pop(m);
	m->done = true;
	return m->p->root && !m->depth && !m->n_marks ? GGU_OK : wrong(m, "the stack does not hold one value");
}
static enum ggu_status op_mark(struct machine *m, int arg)
{
	(void)arg;
	m->marks[m->n_marks++] = m->depth;
	return GGU_OK;
}
static enum ggu_status op_none(struct machine *m, int arg)
{
	(void)arg;
	return push_new(m, &(struct pickle_value){ .kind = PICKLE_NONE });
}
static enum ggu_status op_bool(struct machine *m, int arg)
{
	return push_new(m, &(struct pickle_value){ PICKLE_BOOL, { .b = arg } });
}
static enum ggu_status op_int(struct machine *m, int arg)
{
	uint64_t v;
	if (!number(m, (size_t)arg, &v)) return short_of(m);
	return push_new(m, &(struct pickle_value){ PICKLE_INT, { .i = arg == 4 ? (int32_t)(uint32_t)v : (int64_t)v } });
}
static enum ggu_status op_long(struct machine *m, int arg)
{
	struct span b;
	uint64_t v = 0;
	if (!counted(m, (size_t)arg, &b)) return short_of(m);
	if (b.n > 8) return wrong(m, "an integer of more than 64 bits");
	for (size_t i = b.n; i-- > 0;) v = v << 8 | b.p[i];
	if (b.n && b.n < 8 && b.p[b.n - 1] & 128) v -= (uint64_t)1 << 8*b.n;
	return push_new(m, &(struct pickle_value){ PICKLE_INT, { .i = (int64_t)v } });
}
static enum ggu_status op_float(struct machine *m, int arg)
{
	struct pickle_value v = { .kind = PICKLE_FLOAT };
	struct span b;
	uint64_t u = 0;
	if (!span_take(&m->in, (size_t)arg, &b)) return short_of(m);
	for (size_t i = 0; i < 8; i++) u = u << 8 | b.p[i];
	memcpy(&v.u.f, &u, 8);
	return push_new(m, &v);
}
static enum ggu_status op_str(struct machine *m, int arg)
{
	struct span b;
	if (!counted(m, (size_t)arg, &b)) return short_of(m);
	return push_new(m, &(struct pickle_value){ PICKLE_STR, { .s = { (const char *)b.p, b.n } } });
}
static enum ggu_status op_empty(struct machine *m, int arg)
{
	return push_new(m, &(struct pickle_value){ .kind = (enum pickle_kind)arg });
}
static enum ggu_status op_tuple(struct machine *m, int arg)
{
	size_t n = (size_t)arg;
	if (height(m) < n) return wrong(m, "the stack is too short");
	m->depth -= n;
	return push_items(m, PICKLE_TUPLE, m->stack + m->depth, n);
}
static enum ggu_status op_marked(struct machine *m, int arg)
{
	const struct pickle_value **v;
	size_t n;
	if (!pop_mark(m, &v, &n)) return wrong(m, "no mark");
	if (arg == PICKLE_DICT && n%2) return wrong(m, "a key without a value");
	return push_items(m, (enum pickle_kind)arg, v, n);
}
static enum ggu_status op_pop(struct machine *m, int arg)
{
	const struct pickle_value **v;
	size_t n;
	if (!arg && pop(m)) return GGU_OK;
	return pop_mark(m, &v, &n) ? GGU_OK : wrong(m, "nothing to take from the stack");
}
/* Appends items, n of them or those above the mark, to the container below them. The arena's values belong to this
 * machine, so it may change what is const for everybody else. */
static enum ggu_status into(struct machine *m, enum pickle_kind kind, const struct pickle_value **v, size_t n)
{
	struct pickle_value *to = (struct pickle_value *)(uintptr_t)top(m);
	if (!to || to->kind != kind) return wrong(m, "no container to put items into");
	if (kind == PICKLE_DICT && n%2) return wrong(m, "a key without a value");
	return append(m, &to->u.items, v, n);
}
static enum ggu_status op_put_item(struct machine *m, int arg)
{
	size_t n = arg == PICKLE_DICT ? 2 : 1;
	if (height(m) < n) return wrong(m, "the stack is too short");
	m->depth -= n;
	return into(m, (enum pickle_kind)arg, m->stack + m->depth, n);
}
static enum ggu_status op_put_items(struct machine *m, int arg)
{
	const struct pickle_value **v;
	size_t n;
	return pop_mark(m, &v, &n) ? into(m, (enum pickle_kind)arg, v, n) : wrong(m, "no mark");
}

static enum ggu_status memo_put(struct machine *m, uint64_t i)
{
	if (!top(m)) return wrong(m, "nothing to store in the memo");
	if (i >= m->n_memo) return wrong(m, "a memo number beyond the pickle's length");
	m->memo[i] = top(m);
	m->memo_next = (size_t)i + 1;
	return GGU_OK;
}
static enum ggu_status op_put(struct machine *m, int arg)
{
	uint64_t i;
	return number(m, (size_t)arg, &i) ? memo_put(m, i) : short_of(m);
}
static enum ggu_status op_memoize(struct machine *m, int arg) { (void)arg; return memo_put(m, m->memo_next); }
static enum ggu_status op_get(struct machine *m, int arg)
{
	uint64_t i;
	if (!number(m, (size_t)arg, &i)) return short_of(m);
	if (i >= m->n_memo || !m->memo[i]) return wrong(m, "the memo has nothing under this number");
	return push(m, m->memo[i]);
}

static bool is(const struct pickle_str *s, const char *text) { return text_is(s->p, s->n, text); }
static enum ggu_status push_global(struct machine *m, const struct pickle_str *module, const struct pickle_str *name)
{
	for (size_t i = 0; i < sizeof globals/sizeof *globals; i++)
		if (is(module, globals[i].module) && is(name, globals[i].name))
			return push_new(m, &(struct pickle_value){ PICKLE_GLOBAL, { .global = globals + i } });
	return file_fail(m->err, GGU_ERR_UNSUPPORTED, m->file, m->at, "",
		"refused: the pickle asks for %.*s.%.*s, which no state dict of tensors needs",
		(int)(module->n < 80 ? module->n : 80), module->p, (int)(name->n < 80 ? name->n : 80), name->p);
}
static enum ggu_status op_global(struct machine *m, int arg)
{
	struct pickle_str module, name;
	(void)arg;
	return line(m, &module) && line(m, &name) ? push_global(m, &module, &name) : short_of(m);
}
static enum ggu_status op_stack_global(struct machine *m, int arg)
{
	const struct pickle_value *name = pop(m), *module = pop(m);
	(void)arg;
	if (!name || !module || name->kind != PICKLE_STR || module->kind != PICKLE_STR)
		return wrong(m, "expected a module and a name");
	return push_global(m, &module->u.s, &name->u.s);
}

/* ---- what globals do when called ---- */

static const struct pickle_value *item(const struct pickle_value *v, size_t i, enum pickle_kind kind)
{
	return i < v->u.items.n && v->u.items.v[i]->kind == kind ? v->u.items.v[i] : NULL;
}
static bool integers(const struct pickle_value *v)
{
	for (size_t i = 0; v && i < v->u.items.n; i++) if (v->u.items.v[i]->kind != PICKLE_INT) return false;
	return v;
}
static const struct pickle_global *named(const struct pickle_value *v, size_t i, enum role role)
{
	const struct pickle_value *g = item(v, i, PICKLE_GLOBAL);
	return g && g->u.global->role == role ? g->u.global : NULL;
}

/* (storage, offset, size, stride, requires_grad, hooks), in the third version then the dtype. If a tensor is not simply
 * what its storage says (negated, conjugated, in a device's layout), a dict at the end says so. */
static enum ggu_status rebuild_tensor(struct machine *m, const struct pickle_value *args, bool v3)
{
	const struct pickle_value *storage = item(args, 0, PICKLE_STORAGE), *offset = item(args, 1, PICKLE_INT);
	const struct pickle_value *size = item(args, 2, PICKLE_TUPLE), *stride = item(args, 3, PICKLE_TUPLE);
	const struct pickle_global *dtype = v3 ? named(args, 6, ROLE_DTYPE) : NULL;
	const struct pickle_value *other = item(args, v3 ? 7 : 6, PICKLE_DICT);
	if (!storage || !offset || !integers(size) || !integers(stride) || size->u.items.n != stride->u.items.n ||
		(v3 && !dtype))
		return wrong(m, "not the arguments of a tensor");
	if (other && other->u.items.n)
		return file_fail(m->err, GGU_ERR_UNSUPPORTED, m->file, m->at, "",
			"a tensor stored as a modified one, such as its negative: save a copy of it");
	return push_new(m, &(struct pickle_value){ PICKLE_TENSOR,
		{ .tensor = { &storage->u.storage, v3 ? dtype->dtype : storage->u.storage.dtype,
		offset->u.i, &size->u.items, &stride->u.items } } });
}
static enum ggu_status op_reduce(struct machine *m, int arg)
{
	const struct pickle_value *args = pop(m), *f = pop(m);
	(void)arg;
	if (!args || args->kind != PICKLE_TUPLE || !f || f->kind != PICKLE_GLOBAL)
		return wrong(m, "expected a global and its arguments");
	switch (f->u.global->role) {
	case ROLE_DICT:
		return args->u.items.n ? wrong(m, "a dict made from arguments") : op_empty(m, PICKLE_DICT);
	case ROLE_TUPLE:
		return item(args, 0, PICKLE_TUPLE) ? push(m, args->u.items.v[0]) : wrong(m, "expected a tuple");
	case ROLE_TENSOR_V2: return rebuild_tensor(m, args, false);
	case ROLE_TENSOR_V3: return rebuild_tensor(m, args, true);
	case ROLE_PARAMETER:
		return item(args, 0, PICKLE_TENSOR) ? push(m, args->u.items.v[0]) : wrong(m, "expected a tensor");
	default:
		return file_fail(m->err, GGU_ERR_UNSUPPORTED, m->file, m->at, "", "refused: the pickle calls %s.%s",
			f->u.global->module, f->u.global->name);
	}
}
/* The state given to an object. That of a dict is metadata, on which no tensor depends. */
static enum ggu_status op_build(struct machine *m, int arg)
{
	(void)arg;
	if (!pop(m) || !top(m) || top(m)->kind != PICKLE_DICT) return wrong(m, "expected a dict and its state");
	return GGU_OK;
}
/* ("storage", class, key, device, elements) */
static enum ggu_status op_persistent(struct machine *m, int arg)
{
	const struct pickle_value *id = pop(m), *tag, *key, *n;
	const struct pickle_global *class;
	(void)arg;
	if (!id || id->kind != PICKLE_TUPLE || id->u.items.n != 5) return wrong(m, "not the name of a storage");
	tag = item(id, 0, PICKLE_STR);
	class = named(id, 1, ROLE_STORAGE);
	key = item(id, 2, PICKLE_STR);
	n = item(id, 4, PICKLE_INT);
	if (!tag || !is(&tag->u.s, "storage") || !class || !key || !n || n->u.i < 0)
		return wrong(m, "not the name of a storage");
	return push_new(m, &(struct pickle_value){ PICKLE_STORAGE, { .storage = { class->dtype, key->u.s, n->u.i } } });
}

static const struct op {
	unsigned char code;
	const char *name;
	enum ggu_status (*run)(struct machine *m, int arg);
	int arg;
} ops[] = {
	{ 0x80, "PROTO", op_skip, 1 }, { 0x95, "FRAME", op_skip, 8 }, { '.', "STOP", op_stop, 0 },
	{ '(', "MARK", op_mark, 0 }, { '0', "POP", op_pop, 0 }, { '1', "POP_MARK", op_pop, 1 },
	{ 'N', "NONE", op_none, 0 }, { 0x88, "NEWTRUE", op_bool, 1 }, { 0x89, "NEWFALSE", op_bool, 0 },
	{ 'K', "BININT1", op_int, 1 }, { 'M', "BININT2", op_int, 2 }, { 'J', "BININT", op_int, 4 },
	{ 0x8a, "LONG1", op_long, 1 }, { 0x8b, "LONG4", op_long, 4 }, { 'G', "BINFLOAT", op_float, 8 },
	{ 0x8c, "SHORT_BINUNICODE", op_str, 1 }, { 'X', "BINUNICODE", op_str, 4 }, { 0x8d, "BINUNICODE8", op_str, 8 },
	{ 'U', "SHORT_BINSTRING", op_str, 1 },
	{ ')', "EMPTY_TUPLE", op_empty, PICKLE_TUPLE }, { ']', "EMPTY_LIST", op_empty, PICKLE_LIST },
	{ '}', "EMPTY_DICT", op_empty, PICKLE_DICT },
	{ 0x85, "TUPLE1", op_tuple, 1 }, { 0x86, "TUPLE2", op_tuple, 2 }, { 0x87, "TUPLE3", op_tuple, 3 },
	{ 't', "TUPLE", op_marked, PICKLE_TUPLE }, { 'l', "LIST", op_marked, PICKLE_LIST },
	{ 'd', "DICT", op_marked, PICKLE_DICT },
	{ 'a', "APPEND", op_put_item, PICKLE_LIST }, { 'e', "APPENDS", op_put_items, PICKLE_LIST },
	{ 's', "SETITEM", op_put_item, PICKLE_DICT }, { 'u', "SETITEMS", op_put_items, PICKLE_DICT },
	{ 'q', "BINPUT", op_put, 1 }, { 'r', "LONG_BINPUT", op_put, 4 }, { 0x94, "MEMOIZE", op_memoize, 0 },
	{ 'h', "BINGET", op_get, 1 }, { 'j', "LONG_BINGET", op_get, 4 },
	{ 'c', "GLOBAL", op_global, 0 }, { 0x93, "STACK_GLOBAL", op_stack_global, 0 },
	{ 'R', "REDUCE", op_reduce, 0 }, { 'b', "BUILD", op_build, 0 }, { 'Q', "BINPERSID", op_persistent, 0 },
};

static enum ggu_status run(struct machine *m)
{
	enum ggu_status s = GGU_OK;
	while (!s && !m->done) {
		uint8_t code;
		size_t i = 0;
		m->at = m->in.at;
		if (!span_u8(&m->in, &code))
			return file_fail(m->err, GGU_ERR_TRUNCATED, m->file, m->at, "", "the pickle has no end");
		while (i < sizeof ops/sizeof *ops && ops[i].code != code) i++;
		if (i == sizeof ops/sizeof *ops)
			return file_fail(m->err, GGU_ERR_UNSUPPORTED, m->file, m->at, "",
				"refused: pickle opcode 0x%02x, which no state dict of tensors needs", code);
		m->op = ops[i].name;
		s = ops[i].run(m, ops[i].arg);
	}
	return s;
}

enum ggu_status pickle_read(struct pickle **out, const unsigned char *text, size_t n, const char *file, uint64_t base,
	struct ggu_error *err)
{
	struct pickle *p = calloc(1, sizeof *p);
	struct machine m = { .p = p, .in = { text, n, base }, .file = file, .n_memo = n, .err = err };
	enum ggu_status s;
	m.stack = calloc(n + 1, sizeof *m.stack);
	m.marks = calloc(n + 1, sizeof *m.marks);
	m.memo = calloc(n + 1, sizeof *m.memo);
	s = p && m.stack && m.marks && m.memo ? run(&m) : ggu_no_memory(err);
	free(m.stack);
	free(m.marks);
	free(m.memo);
	if (s) pickle_free(p);
	else *out = p;
	return s;
}

void pickle_free(struct pickle *p)
{
	if (!p) return;
	ggu_arena_free(&p->arena);
	free(p);
}

const struct pickle_value *pickle_root(const struct pickle *p) { return p->root; }
const struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key)
{
	const struct pickle_items *d = &dict->u.items;
	const struct pickle_value *found = NULL;
	if (dict->kind != PICKLE_DICT) return NULL;
	for (size_t i = 0; i + 1 < d->n; i += 2)
		if (d->v[i]->kind == PICKLE_STR && is(&d->v[i]->u.s, key)) found = d->v[i + 1];
	return found;
}
