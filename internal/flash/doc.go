// Package flash computes attention without ever holding the scores of all pairs
// of queries and keys: forward, backward, and the weights if the caller asks.
//
// # Forward
//
// A band of queries meets a block of keys at a time, strip by strip. The scores
// of a strip fit the first-level cache, and become weights relative to the largest
// score of the block, m_i:
//
//	p_ij = 2^((s_ij − m_i)·log2 e)    l_i = Σ_j p_ij    o_i = Σ_j p_ij·v_j
//
// Blocks are merged in the order of the keys (online softmax): the sums with the
// smaller m_i shrink to the larger one. What is kept of the scores is m_i and
// 1/l_i.
//
// # Backward
//
// The scores of a block are computed again, and with D_i = Σ_v do_iv·o_iv
//
//	w_ij  = p_ij/l_i
//	dw_ij = Σ_v do_iv·v_jv            dv_j += Σ_i w_ij·do_i
//	ds_ij = w_ij·(dw_ij − D_i)        and from there to queries and keys
//
// A task owns a chunk of the keys of one head, so that no other task adds to their
// gradients. The gradient of a query is the sum over the chunks in their order.
//
// # Same bits
//
// The result of a query depends on the query, the keys that it attends to and where
// they lie, and its head's sizes. A block is always the same 512 keys, computed as if it
// were the only one, and within it a sum has one order, to which hidden keys add
// zeros. So neither threads, nor heads, nor other sequences, nor other queries, nor
// padding change a bit.
//
// # What is hidden
//
// Has weight exactly 0 and contributes nothing to anything, NaN included.
// Products that meet something that is not finite take the slow way that passes
// over zeros.
//
// Source: Dao et al., "FlashAttention", 2022, https://arxiv.org/abs/2205.14135;
// Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018,
// https://arxiv.org/abs/1805.02867.
package flash
