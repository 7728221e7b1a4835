package simd

// Matrix products on the tile units of Xeon processors (AMX), which multiply bfloat16 some
// fifteen times as fast as the vector units multiply floats.
//
// A float is the sum of three bfloat16, its limbs: x = h + m + l, each what is left rounded
// to the nearest. Of the nine products of the limbs of two floats the six largest are
// summed in floats, which is more exact than a chain of multiply-adds: what is left out is
// below 2^-24 of a product, and the sums are 32 times as few.
//
// An element of C is, whatever the sizes, for every step of 32 elements of k from 0 on and
// for these products of limbs of A and of B in this order: l·h, m·h, m·m, h·m, h·l, h·h
//
//	even, odd = 0, 0
//	for i := range 16 { even += a[i]*b[i]; odd += a[i+16]*b[i+16] }  // each rounded once
//	C[i][j] += even + odd
//
// where denormal numbers count as 0, in operands, sums and results alike. So products below
// 1e-32 lose digits. An element that comes to less than 1e-29, but not to 0, is therefore
// computed again by vectors. This is not done for scores, to whose powers so little is nothing,
// nor where a product is added to other numbers, nor for the gradients of attention.
//
// An infinity, a NaN and a number that is infinite as a bfloat16, from 3.39e38 on, are left
// out of the tiles; their terms are added afterwards. So what meets none of them has the
// same bits with them as without.
//
// Tile units take about as long for one row as for sixteen. A product of a few rows, as in a
// step of a decoder, may still not be left to vectors, for its rows would have other bits than
// among many. amx_few.go has what makes such products bearable.

// sides are the matrices, A and B, whose zeros contribute nothing to a product.
type sides struct{ a, b bool }

// The sizes from which on products are on tile units: of heads, where a task packs keys and
// values for all of its queries, and of layers. The weights of a smaller layer stay in a cache,
// where few rows, as in a step of a decoder, meet them sooner by vectors. Each makes both 1, so
// that tests need no large sizes.
var minHeadTile, minLayerTile = 64, 512

// TilesForHeads reports whether products are to be on tile units, in heads of this size.
// Numbers of queries or keys are no such sizes: what belongs to one of them must not depend
// on how many there are.
func TilesForHeads(size int) bool { return size >= minHeadTile && hasTiles() }

// TilesForLayer reports whether products are to be on tile units, in a layer of these sizes.
func TilesForLayer(in, out int) bool { return min(in, out) >= minLayerTile && hasTiles() }

// ReplaceTiny sets elements of dst next to 0 to those of src.
func ReplaceTiny(dst []float32, stride int, src []float32, srcStride, rows, cols int) {
	for i := range rows {
		for j, v := range dst[i*stride:][:cols] {
			if v != 0 && v < leastOnTiles && v > -leastOnTiles {
				dst[i*stride+j] = src[i*srcStride+j]
			}
		}
	}
}

// leastOnTiles is 1e-29, about.
const leastOnTiles = 0x1p-96
