/* SPDX-License-Identifier: MIT
 * kinds.c - see kinds.h. */
#include "kinds.h"

const struct key transformer_keys[] = { { "block_count", 2 }, { "context_length", 512 },
	{ "embedding_length", WIDE },
	{ "attention.head_count", 4 }, { "attention.head_count_kv", 2 }, { "attention.sliding_window", 70 },
	{ NULL, 0 } };
const struct tensor transformer_tensors[] = { EMBEDDING, ATTENTION, { "blk.%d.ffn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.ffn_gate.weight", { WIDE, 96 }, 0 }, { "blk.%d.ffn_up.weight", { WIDE, 96 }, 0 },
	{ "blk.%d.ffn_down.weight", { 96, WIDE }, 0 }, { NULL } };

static const struct key expert_keys[] = { { "block_count", 2 }, { "context_length", 512 }, { "embedding_length", WIDE },
	{ "attention.head_count", 4 }, { "attention.head_count_kv", 2 }, { "expert_count", 8 },
	{ "expert_used_count", 2 }, { NULL, 0 } };
static const struct tensor expert_tensors[] = { EMBEDDING, ATTENTION, { "blk.%d.ffn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.ffn_gate_inp.weight", { WIDE, 8 }, 0 },
	{ "blk.%d.ffn_gate_exps.weight", { WIDE, 32, 8 }, 0 }, { "blk.%d.ffn_up_exps.weight", { WIDE, 32, 8 }, 0 },
	{ "blk.%d.ffn_down_exps.weight", { 32, WIDE, 8 }, 0 }, { NULL } };

static const struct key mamba_keys[] = { { "block_count", 2 }, { "context_length", 512 }, { "embedding_length", WIDE },
	{ "ssm.conv_kernel", 4 },
	{ "ssm.inner_size", 96 }, { "ssm.state_size", 16 }, { "ssm.time_step_rank", 8 }, { NULL, 0 } };
static const struct tensor mamba_tensors[] = { EMBEDDING, { "blk.%d.attn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.ssm_in.weight", { WIDE, 192 }, 0 },
	{ "blk.%d.ssm_conv1d.weight", { 4, 96 }, 0 }, { "blk.%d.ssm_conv1d.bias", { 96 }, 0 },
	{ "blk.%d.ssm_x.weight", { 96, 40 }, 0 },
	{ "blk.%d.ssm_dt.weight", { 8, 96 }, 0 }, { "blk.%d.ssm_dt.bias", { 96 }, 0 },
	{ "blk.%d.ssm_a", { 16, 96 }, -1 }, { "blk.%d.ssm_d", { 96 }, 1 },
	{ "blk.%d.ssm_out.weight", { 96, WIDE }, 0 }, { NULL } };

static const struct key mamba2_keys[] = { { "block_count", 2 }, { "context_length", 512 }, { "embedding_length", WIDE },
	{ "ssm.conv_kernel", 4 }, { "ssm.inner_size", 96 }, { "ssm.state_size", 16 }, { "ssm.time_step_rank", 6 },
	{ "ssm.group_count", 2 }, { NULL, 0 } };
static const struct tensor mamba2_tensors[] = { EMBEDDING, { "blk.%d.attn_norm.weight", { WIDE }, 1 },
	{ "blk.%d.ssm_in.weight", { WIDE, 262 }, 0 },
	{ "blk.%d.ssm_conv1d.weight", { 4, 160 }, 0 }, { "blk.%d.ssm_conv1d.bias", { 160 }, 0 },
	{ "blk.%d.ssm_dt.bias", { 6 }, 0 }, { "blk.%d.ssm_a", { 1, 6 }, -1 }, { "blk.%d.ssm_d", { 1, 6 }, 1 },
	{ "blk.%d.ssm_norm.weight", { 48, 2 }, 1 }, { "blk.%d.ssm_out.weight", { 96, WIDE }, 0 }, { NULL } };

static const struct key long_keys[] = { { "block_count", 2 }, { "context_length", 512 }, { "embedding_length", WIDE },
	{ "attention.head_count", 4 }, { "rope.scaling.original_context_length", 40 }, { NULL, 0 } };
static const struct tensor long_tensors[] = { EMBEDDING, { "rope_factors_short.weight", { 8 }, 1 },
	{ "rope_factors_long.weight", { 8 }, 5 },
	{ "blk.%d.attn_norm.weight", { WIDE }, 1 }, { "blk.%d.attn_qkv.weight", { WIDE, 3*WIDE }, 0 },
	{ "blk.%d.attn_output.weight", { WIDE, WIDE }, 0 },
	{ "blk.%d.ffn_norm.weight", { WIDE }, 1 }, { "blk.%d.ffn_up.weight", { WIDE, 192 }, 0 },
	{ "blk.%d.ffn_down.weight", { 96, WIDE }, 0 }, { NULL } };

const struct kind transformer = { "llama", transformer_keys, transformer_tensors }, experts = { "llama",
	expert_keys, expert_tensors },
	recurrent = { "mamba", mamba_keys, mamba_tensors, .recurrent = true },
	long_rope = { "phi3", long_keys, long_tensors };
static const struct kind heads = { "mamba2", mamba2_keys, mamba2_tensors, .recurrent = true };
const struct kind *const kinds[] = { &transformer, &experts, &recurrent, &heads, &long_rope, NULL };
