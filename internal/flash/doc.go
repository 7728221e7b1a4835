// Package flash computes attention without storing the scores of all pairs of queries and keys:
// forward, backward, and the weights on request.
//
// # Terms
//
//	row          one query of one head; number (b·H + h)·Lq + i
//	query block  the rows that share a key head and are evenly spaced in memory, as one matrix
//	band         up to 96 rows of a query block, combined with one block of keys at a time
//	strip        12 to 96 rows of a band whose scores with a block fit in the L1 cache
//	block        512 keys, the unit of online softmax in the forward pass
//	panel        64 keys of a block; a panel that no query of a strip attends to is skipped
//	tile         a strip of queries and a panel of keys
//	chunk        256 keys, the unit of the backward pass
//	span         the keys that a row attends to
//	extra keys   keys before the Lk keys, which every query attends to
//
// # Forward
//
// For each query block, Forward goes through the bands. attend combines a band with one block of
// keys after the other, strip by strip. For query i, with scores s_ij and values v_j of the block,
// strip computes the maximum m_i of the scores and
//
//	p_ij = exp(s_ij − m_i)    l_i = Σ_j p_ij    o_i = Σ_j p_ij·v_j
//
// These results of a block are a partial. Partials are merged in the order of the keys (online
// softmax): with m = max(m_i, m_i'), l_i and o_i of one are multiplied by exp(m_i − m), those of
// the other by exp(m_i' − m), and then added. After the last block, finish divides o_i by l_i.
// Only m_i (Shift) and 1/l_i (Inverse) of each row are stored for the backward pass; scores are
// overwritten by the next strip. Exponentials are computed as powers of 2: see exponent.
//
// # Backward
//
// The scores of a chunk of keys are recomputed, instead of stored. Given do, the gradient of the
// result, and D_i = Σ_v do_iv·o_iv:
//
//	w_ij  = exp(s_ij − m_i)/l_i
//	dw_ij = Σ_v do_iv·v_jv            dv_j += Σ_i w_ij·do_i
//	ds_ij = w_ij·(dw_ij − D_i)        dq_i += Σ_j ds_ij·k_j    dk_j += Σ_i ds_ij·q_i
//
// The last two are for unscaled dot products; see block for scales and other scores. One task
// processes a chunk of the keys of a head, so no other task adds to the gradients of these
// keys. The gradient of a query is the sum over the chunks in their order.
//
// # Tasks
//
// Forward and Backward are one loop each, because all threads wait at the end of a loop. If there
// are many heads, a task computes whole heads, and short ones together (see together). Otherwise a
// head has several tasks. In Forward, a task has some rows of a query block (see splitRows) or, if
// there are few queries, a block of keys (see splitKeys); in Backward, a chunk of keys.
//
// The tasks of a head do some work together, such as packing its keys, piece by piece; each waits
// only for pieces that others have begun (see team). The last task merges the results of blocks of
// keys. If a chunk ends before an earlier chunk of its head, the task of the earlier chunk adds the
// gradients of the queries (see order).
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
