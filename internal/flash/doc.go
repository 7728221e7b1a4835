// Package flash computes attention without storing the scores of all pairs of queries and keys:
// forward, backward, and the weights on request.
//
// # Forward
//
// The kernel combines a band of queries with one block of keys at a time, strip by strip. The
// scores of a strip fit in the L1 cache. They become weights relative to the largest score of the
// block, m_i:
//
//	p_ij = 2^((s_ij − m_i)·log2 e)    l_i = Σ_j p_ij    o_i = Σ_j p_ij·v_j
//
// Blocks are merged in the order of the keys (online softmax): the sums with the smaller m_i are
// rescaled to the larger one. Of the scores, only m_i and 1/l_i are stored.
//
// # Backward
//
// The scores of a block are recomputed. With D_i = Σ_v do_iv·o_iv:
//
//	w_ij  = p_ij/l_i
//	dw_ij = Σ_v do_iv·v_jv            dv_j += Σ_i w_ij·do_i
//	ds_ij = w_ij·(dw_ij − D_i)        and from there to queries and keys
//
// A task processes one chunk of the keys of one head, so no other task adds to the gradients of
// these keys. The gradient of a query is the sum over the chunks in their order.
//
// # Reproducibility
//
// The result of a query depends only on the query, the keys that it attends to, their positions,
// and the sizes of its head. A block is always the same 512 keys, computed independently of other
// blocks. Within a block, a sum has a fixed order, and hidden keys add zeros. The number of
// threads, other heads, sequences or queries, and padding therefore change no bits.
//
// # Hidden keys
//
// A hidden key has a weight of exactly 0 and contributes nothing to any result, even if it
// contains NaN. Products with operands that are not finite take a slower path that skips zeros.
//
// Source: Dao et al., "FlashAttention", 2022, https://arxiv.org/abs/2205.14135;
// Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018,
// https://arxiv.org/abs/1805.02867.
package flash
