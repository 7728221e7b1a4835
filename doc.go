// Package attn computes attention on CPUs, forward and backward: dot-product, additive,
// bilinear, Gaussian and other scores; self-attention and cross attention with one or many
// heads, and grouped-query attention; rotary positions (RoPE), ALiBi and relative
// positions; padding, causal, sliding window and other masks; biases, soft-cap, attention
// sinks, dropout and a KV cache.
//
// # Two entrances
//
// Attend returns a weighted mean of the values for each query; the weights are the
// softmax of the scores of the query with the keys. It has no parameters of its own:
//
//	out := attn.Attend(tape, q, k, v, attn.Options{Mask: mask.Causal()}).Out
//
// MultiHead is the trainable layer: it projects its inputs to several heads, calls the same
// attention for each of them, and projects the concatenated results.
//
//	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 512, Heads: 8}, rng)
//	y := layer.Forward(tape, x, x, x, attn.Options{Mask: mask.Lengths(3, 2)}).Out
//
// A decoder goes step by step with a Cache, its KV cache, and MultiHead.Extend.
//
// # Letters
//
//	B   batch
//	H   query heads
//	G   key and value heads; H is a multiple of G
//	Lq  queries of a sequence
//	Lk  keys of a sequence
//	D   model width
//	E   size of a head of q and k
//	V   size of a head of v
//
// Scores are before the softmax, weights after it, out is the result.
//
// # What is fixed
//
// The order is projection, norm, position, score with its scale, soft-cap, score changes,
// bias, mask, softmax with sinks, dropout, mix.
//
// In a mask, true or 1 means that a query attends to a key, and a length counts the keys
// that it attends to. What is hidden has no influence, forward or backward, whatever is
// stored there, NaN included.
//
// A query that may attend to no key has out 0, weights 0 and gradients 0; so has every
// query where there are no keys. The documentation of Mask says how some textbooks differ.
//
// Causal goes by position: query i attends to key j when j ≤ i + offset,
// and the offset is Lk − Lq unless another is given. With Lq = 2 and Lk = 5, and with
// Lq = 5 and Lk = 2:
//
//	1 1 1 1 0      0 0
//	1 1 1 1 1      0 0
//	               0 0
//	               1 0
//	               1 1
//
// Weights are per head and before dropout, so that rows sum to 1, or to less where there
// are sinks. Asking for them changes nothing else.
//
// Query head h reads key and value head ⌊h/(H/G)⌋.
//
// # Memory
//
// Attend is flash attention: tiles with an online softmax, forward and backward, in memory that
// grows with Lq + Lk. The weights are made only if they are asked for. The score L1 and a
// score.Func need an array of the scores of all pairs, B·H·Lq·Lk numbers, which is read by tiles.
// The file formula_test.go has the formula of attention as a paper writes it.
//
// # Errors
//
// Attend and Forward panic with a *tensor.ShapeError if shapes or lengths
// disagree, and with a *tensor.ValueError if a tensor is nil or an option out of
// range; tensor.Catch makes an error of either. NewMultiHead returns errors,
// because a configuration may come from a file.
package attn
