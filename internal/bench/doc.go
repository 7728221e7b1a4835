// Package bench measures how fast this library runs on this machine: what an
// operation takes, what share of the machine's peak that is, and what it
// allocates. It is what attn bench and the comparison with other libraries have
// in common.
//
// # What is counted
//
// Floating-point operations are the useful ones, a multiply-add being two.
//
//   - A product of m×k and k×n is 2mnk.
//   - Attention is its two products, 2·(E+V) for each pair of a query and a key
//     that it attends to. The softmax is not counted. Causal attention over a square
//     counts exactly half of the pairs, as is usual. With a padding mask only
//     pairs in front of the padding count; a boolean mask leaves no part of the
//     square empty, and all its pairs count.
//   - A multi-head layer adds its four maps.
//   - Training counts 3.5 times the forward pass of attention (two products
//     forward, five backward, with the weights computed again) and 3 times that
//     of maps, whatever an implementation does.
//   - An additive score is counted in triples (query, key, hidden feature), each
//     of which is nominally 4 operations: a sum, a tanh, a multiply-add. In
//     training a triple counts once in triples and three times in operations.
//     Its share of the peak says little.
//   - A Gaussian score is counted likewise: a difference, a factor, a multiply-add.
//
// A decoder's step adds its keys and values to a cache and attends to all. It is bound by
// memory: besides, it reports the bytes of keys and values that it reads. What it is held
// against is how fast simd.Sum reads a buffer of the same size on all threads. Where the
// caches are large, that is the speed of a cache and not of memory, for both alike.
//
// # Ratios
//
// What a feature costs is said by a Pair: work, and the same without the feature, measured
// in turns. The time of a mask is for a live tile: of as many queries and keys as are
// computed at a time, where some query attends to some key.
package bench
