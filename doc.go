// Package attn computes attention on CPUs, forward and backward: dot-product, additive,
// bilinear, Gaussian and other scores; self-attention and cross-attention with one or many
// heads, and grouped-query attention; rotary positions (RoPE), ALiBi and relative
// positions; padding, causal, sliding window and other masks; biases, soft-cap, attention
// sinks, dropout and a KV cache.
//
// # Entry points
//
// Attend computes one attention and has no parameters. For each query it returns the weighted
// mean of the values; the weights are the softmax of the scores between the query and the keys:
//
//	out := attn.Attend(tape, q, k, v, attn.Options{Mask: mask.Causal()}).Out
//
// MultiHead is the trainable layer. It projects its inputs into several heads, computes Attend
// for each head, concatenates the results and projects them to the output.
//
//	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 512, Heads: 8}, rng)
//	y := layer.Forward(tape, x, x, x, attn.Options{Mask: mask.Lengths(3, 2)}).Out
//
// For cross-attention, the queries are from one sequence, and the keys and values from another:
//
//	y := layer.Forward(tape, x, text, text, attn.Options{Mask: mask.Lengths(3, 6)}).Out
//
// For grouped-query attention, MultiHeadConfig.KVHeads is less than Heads; 1 is multi-query
// attention.
//
// A decoder generates step by step with a Cache (a KV cache) and MultiHead.Extend. Values for
// Options and MultiHeadConfig are in packages mask, score, position and observe; other layers are in
// package nn, optimisers in package optim, and pretrained models in package models.
//
// # Notation
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
// Scores are the values before the softmax, weights the values after it, and out is the result.
//
// # Conventions
//
// The order of operations is: projection, norm, position, score and its scale, soft-cap, score
// changes, bias, mask, softmax with sinks, dropout, weighted sum.
//
// In a mask, true or 1 means that the query attends to the key. A length counts keys that are
// attended to. Masked keys have no influence, forward or backward, even if their vectors contain
// NaN.
//
// A query without any key to attend to has output 0, weights 0 and gradients 0; so does every
// query if there are no keys. The documentation of Mask describes how some textbooks differ.
//
// The causal mask compares positions: query i attends to key j if j ≤ i + offset. The default
// offset is Lk − Lq. With Lq = 2 and Lk = 5, and with Lq = 5 and Lk = 2, the mask is:
//
//	1 1 1 1 0      0 0
//	1 1 1 1 1      0 0
//	               0 0
//	               1 0
//	               1 1
//
// Weights are per head and before dropout, so each row sums to 1, or to less than 1 with sinks.
// Requesting the weights changes no other result.
//
// Query head h reads key and value head ⌊h/(H/G)⌋.
//
// # Memory
//
// Attend is flash attention: it computes tiles with an online softmax, forward and backward, in
// memory proportional to Lq + Lk. It stores the weights only if they are requested. The score L1
// and every score.Func need an array of all B·H·Lq·Lk scores. The file formula_test.go contains
// the formula of attention as papers write it.
//
// With a nil tape, results are garbage-collected. A loop of inference is faster on a tape of mode
// tensor.Infer with a Reset after each call, which reuses memory; attn bench measures this.
//
// Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018,
// https://arxiv.org/abs/1805.02867; Dao et al., "FlashAttention", 2022,
// https://arxiv.org/abs/2205.14135; Dao, "FlashAttention-2", 2023,
// https://arxiv.org/abs/2307.08691.
//
// # Goroutines
//
// Attend and Forward compute on up to GOMAXPROCS goroutines, which later calls reuse. Methods of a custom mask,
// position, score change or observer run on them. In a test with testing/synctest, these goroutines are outside the
// bubble: such a method must not use channels, timers or contexts made in the bubble, but for [tensor.Tape.Context].
//
// # Errors
//
// Attend and Forward panic with a *tensor.ShapeError if shapes or lengths disagree, and with a
// *tensor.ValueError if a tensor is nil or an option is out of range. tensor.Catch converts these
// panics to errors. NewMultiHead returns errors, because a configuration may come from a file.
package attn
