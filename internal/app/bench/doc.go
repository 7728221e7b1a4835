// Package bench measures the speed of this library on this machine: the time of an operation, its
// fraction of the machine's peak, and its allocations. attn bench and the comparison with other
// libraries use it.
//
// # What is measured
//
// Only useful floating-point operations count. A multiply-add is two operations.
//
//   - A product of m×k and k×n is 2mnk.
//   - Attention is its two products, 2·(E+V) for each pair of a query and a key
//     that it attends to. The softmax is not counted. Causal attention over a square
//     counts exactly half of the pairs, as is usual. With a padding mask only
//     pairs before the padding count; with a boolean mask all pairs count, because
//     the masked ones are scattered.
//   - A multi-head layer adds its four maps.
//   - Training counts 3.5 times the forward pass of attention (two products
//     forward, five backward, with the weights recomputed) and 3 times that
//     of maps, for every implementation.
//   - An additive score is counted in triples (query, key, hidden feature), each
//     of which counts as 4 operations: a sum, a tanh, a multiply-add. In
//     training a triple counts once in triples and three times in operations.
//     Its fraction of the peak is not meaningful.
//   - A Gaussian score is counted the same way: a difference, a factor, a multiply-add.
//
// A decoder's step appends its keys and values to a cache and attends to all of them. It is
// memory-bound, so its result includes the bytes of keys and values that it reads. These are compared
// with the speed of simd.Sum on a buffer of the same size with all threads. If both fit into the
// processor's caches, both are measured at the speed of these caches.
//
// # Ratios
//
// A Pair gives the cost of a feature: work with the feature and work without it, measured
// alternately. The cost of a mask is the time per live tile: the queries and keys that a kernel
// computes at a time, if some of the queries attend to some of the keys.
package bench
