package simd

// Matrix products on the tile units of Xeon processors (AMX), which multiply bfloat16 about fifteen
// times as fast as the vector units multiply floats.
//
// A float is the sum of three bfloat16, its limbs: x = h + m + l. Each limb is the remainder,
// rounded to the nearest bfloat16. The product of two floats consists of nine products of limbs;
// the six largest are summed in floats. This is more exact than a chain of multiply-adds: the
// omitted products are below 2^-24 of the whole, and there are 32 times fewer sums.
//
// An element of C is, whatever the sizes, for every step of 32 elements of k from 0 on and for
// these products of limbs of A and of B in this order: l·h, m·h, m·m, h·m, h·l, h·h
//
//	even, odd = 0, 0
//	for i := range 16 { even += a[i]*b[i]; odd += a[i+16]*b[i+16] }  // each rounded once
//	C[i][j] += even + odd
//
// where denormal numbers count as 0, in operands, sums and results alike. So products below 1e-32
// lose digits. An element below 1e-29 that is not 0 is therefore recomputed with vectors. This is
// not done in three cases: for scores, because such small exponents change nothing; where a product
// is added to other numbers; and for the gradients of attention.
//
// Infinities, NaNs and numbers that are infinite as bfloat16, from 3.39e38 on, are left out of the
// tiles; their terms are added afterwards. So elements without such terms have the same bits with
// or without such numbers elsewhere.
//
// Tile units take about as long for one row as for sixteen. A product of a few rows, as in a step
// of a decoder, must still not use vectors, because the bits of a row would then depend on the
// number of rows. amx_few.go makes such products faster.

// sides says for each of the matrices A and B whether its zeros contribute nothing to a product.
type sides struct{ a, b bool }

// The smallest sizes computed on tile units: of heads, where a task packs keys and values for all
// of its queries, and of layers. The weights of a smaller layer stay in a cache, where vectors are
// faster for few rows, as in a step of a decoder. Each sets both to 1, so that tests need no large
// sizes.
var minHeadTile, minLayerTile = 64, 512

// TilesForHeads reports whether products in heads of this size should use tile units. The choice
// must not depend on the number of queries or keys, because a result for one query or key must not
// depend on how many others there are.
func TilesForHeads(size int) bool { return size >= minHeadTile && hasTiles() }

// TilesForLayer reports whether products in a layer of these sizes should use tile units.
func TilesForLayer(in, out int) bool { return min(in, out) >= minLayerTile && hasTiles() }

// ReplaceTiny replaces elements of dst that are close to 0 by the elements of src.
func ReplaceTiny(dst []float32, stride int, src []float32, srcStride, rows, cols int) {
	for i := range rows {
		for j, v := range dst[i*stride:][:cols] {
			if v != 0 && v < leastOnTiles && v > -leastOnTiles {
				dst[i*stride+j] = src[i*srcStride+j]
			}
		}
	}
}

// leastOnTiles is about 1e-29.
const leastOnTiles = 0x1p-96
