/* SPDX-License-Identifier: MIT
 * amx_trap.c - AMX's instructions on a CPU without them: `make check-stand-ins` runs programs as they were compiled,
 * and a handler of SIGILL does what Intel's manual says of each.
 *
 * So what compilers make of the intrinsics is tested too: encodings, operands, and that a configuration is in memory
 * before ldtilecfg reads it. Tiles belong to threads. A configuration or an operand that a CPU would refuse ends the
 * program, which says why; so does an instruction that is not here. */
#if defined CPU_STAND_INS && defined __x86_64__
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, LINE = 64 };
struct config { uint8_t palette, start, zero[14]; uint16_t row_bytes[16]; uint8_t rows[16]; };
static _Thread_local struct config now;
static _Thread_local int8_t tiles[TILES][ROWS][LINE];

/* a VEX prefix of three bytes, in the second map of opcodes: all of AMX */
struct insn {
	uint8_t prefix, op, mod, reg, rm, other;        /* prefix: none, 66, F3, F2; other: VEX.vvvv */
	const uint8_t *next;
	uint64_t address, stride;                       /* of memory: base and displacement; index times scale */
};
enum { NONE, P66, PF3, PF2 };

static void refuse(const char *why)
{
	static const char before[] = "Bail out!  AMX: ";
	bool said = write(1, before, sizeof before - 1) > 0 && write(1, why, strlen(why)) > 0 && write(1, "\n", 1) > 0;
	_exit(said ? 2 : 3);
}

static uint64_t number(const ucontext_t *c, unsigned reg)
{
	static const int at[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8,
		REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	return (uint64_t)c->uc_mcontext.gregs[at[reg]];
}
static uint64_t signed_bytes(const uint8_t *p, size_t n)
{
	int32_t wide;
	if (n == 1) return (uint64_t)(int64_t)(int8_t)*p;
	memcpy(&wide, p, 4);
	return (uint64_t)(int64_t)wide;
}
/* What ModRM says. Its registers' fourth bits are inverted in VEX's second byte: R, X, B. */
static const uint8_t *read_memory(const ucontext_t *c, const uint8_t *p, uint8_t rxb, struct insn *i)
{
	const unsigned base_high = rxb & 0x20 ? 0 : 8, index_high = rxb & 0x40 ? 0 : 8;
	size_t bytes = i->mod == 1 ? 1 : i->mod == 2 ? 4 : 0;
	bool has_base = true;
	unsigned base = i->rm;
	if (i->rm == 4) {
		const unsigned sib = *p++, index = (sib >> 3 & 7) + index_high;
		base = sib & 7;
		if (index != 4) i->stride = number(c, index) << (sib >> 6);
	}
	if (base == 5 && i->mod == 0) {
		has_base = false;
		bytes = 4;
	}
	i->address = (bytes ? signed_bytes(p, bytes) : 0) + (has_base ? number(c, base + base_high) : 0);
	p += bytes;
	if (!has_base && i->rm == 5) i->address += (uint64_t)(uintptr_t)p;      /* from the next instruction on */
	return p;
}
static bool read_insn(const ucontext_t *c, const uint8_t *p, struct insn *i)
{
	if (p[0] != 0xc4 || (p[1] & 0x1f) != 2 || p[2] & 0x84) return false;    /* W and L are 0 */
	*i = (struct insn){ .prefix = p[2] & 3, .op = p[3], .mod = p[4] >> 6, .reg = p[4] >> 3 & 7, .rm = p[4] & 7,
		.other = ~(p[2] >> 3) & 15 };
	i->next = i->mod == 3 ? p + 5 : read_memory(c, p + 5, p[1], i);
	return i->op == 0x49 || i->op == 0x4b || i->op == 0x5e;
}

static void configure(const struct config *c)
{
	if (c->palette > 1) refuse("ldtilecfg: no such palette");
	if (c->palette == 1) {
		for (size_t k = 0; k < sizeof c->zero; k++)
			if (c->zero[k]) refuse("ldtilecfg: a reserved byte is not 0");
		for (int t = 0; t < 16; t++)
			if (c->row_bytes[t] > LINE || c->rows[t] > ROWS || !c->row_bytes[t] != !c->rows[t] ||
				(t >= TILES && c->rows[t]))
				refuse("ldtilecfg: the shape of a tile");
		if (c->start) refuse("ldtilecfg: instructions would begin within a tile");
	}
	memcpy(&now, c, sizeof now);
	memset(tiles, 0, sizeof tiles);
}
static void check(int t)
{
	if (now.palette != 1) refuse("tiles are not configured");
	if (t >= TILES || !now.rows[t] || now.row_bytes[t]%4) refuse("a tile is not configured");
}
static void load(int t, const char *from, uint64_t stride)
{
	check(t);
	memset(tiles[t], 0, sizeof tiles[t]);
	for (size_t r = 0; r < now.rows[t]; r++) memcpy(tiles[t][r], from + r*stride, now.row_bytes[t]);
}
static void store(int t, char *to, uint64_t stride)
{
	check(t);
	for (size_t r = 0; r < now.rows[t]; r++) memcpy(to + r*stride, tiles[t][r], now.row_bytes[t]);
}
/* c += a*b: the bytes of a are signed or not, and so are those of b. Columns beyond the shape of b are 0. */
typedef uint32_t line __attribute__((vector_size(LINE)));
__attribute__((target("avx512f"))) static void multiply(int c, int a, int b, bool a_signed, bool b_signed)
{
	line y[ROWS][4];                /* one of each four bytes of a row */
	check(c); check(a); check(b);
	if (c == a || c == b || a == b) refuse("a product's tiles are not three");
	if (now.row_bytes[a]/4 != now.rows[b] || now.rows[a] != now.rows[c] || now.row_bytes[b] != now.row_bytes[c])
		refuse("shapes of a product's tiles");
	for (int i = 0; i < now.row_bytes[a]; i++)
		for (int n = 0; n < 16; n++) {
			const int8_t v = tiles[b][i/4][4*n + i%4];
			y[i/4][i%4][n] = (uint32_t)(b_signed ? v : (uint8_t)v);
		}
	for (int m = 0; m < now.rows[c]; m++) {
		line s;
		memcpy(&s, tiles[c][m], sizeof s);
		for (int i = 0; i < now.row_bytes[a]; i++) {
			const int8_t v = tiles[a][m][i];
			s += (uint32_t)(a_signed ? v : (uint8_t)v)*y[i/4][i%4];
		}
		memcpy(tiles[c][m], &s, sizeof s);
	}
}
static void carry_out(const struct insn *i)
{
	char *memory = (char *)(uintptr_t)i->address;
	if (i->op == 0x5e && i->mod == 3)
		multiply(i->reg, i->rm, i->other, i->prefix >= PF3, i->prefix == PF2 || i->prefix == P66);
	else if (i->op == 0x4b && i->mod != 3 && i->rm == 4 && i->prefix == PF3) store(i->reg, memory, i->stride);
	else if (i->op == 0x4b && i->mod != 3 && i->rm == 4 && i->prefix != NONE) load(i->reg, memory, i->stride);
	else if (i->op == 0x49 && i->mod == 3 && i->prefix == PF2) {
		check(i->reg);
		memset(tiles[i->reg], 0, sizeof tiles[i->reg]);
	} else if (i->op == 0x49 && i->mod == 3 && i->prefix == NONE) configure(&(struct config){ 0 });
	else if (i->op == 0x49 && i->prefix == NONE) configure((const void *)memory);
	else refuse("an instruction that no test has had so far");
}
/* Executes one instruction, and those of AMX right after it: a signal takes longer than most of them. */
static void illegal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	const uint8_t *p = (const void *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
	struct insn i;
	(void)sig; (void)info;
	if (!read_insn(c, p, &i)) refuse("an illegal instruction of another kind");
	do carry_out(&i); while (read_insn(c, i.next, &i));
	c->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)i.next;
}
__attribute__((constructor)) static void begin(void)
{
	struct sigaction a = { .sa_sigaction = illegal, .sa_flags = SA_SIGINFO | SA_NODEFER };
	if (sigaction(SIGILL, &a, NULL)) abort();
}
#else
typedef int no_stand_ins;
#endif
