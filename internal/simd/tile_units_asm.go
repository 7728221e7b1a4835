//go:build amd64 && !purego

package simd

import "golang.org/x/sys/cpu"

// Products of words on the tile units of Xeons (AMX): pairs of bfloat16, and fours of integers. An instruction multiplies
// 16 rows by 16 columns, 16 words deep. Rows of A and panels of B are in the order that vectors read, too.
//
// Sums of integers are exact, so they have the bits of vectors. An element of C of pairs is, from the bias or 0 on, for
// every 16 pairs of a block of the sum, of which the last may be fewer:
//
//	first, second = 0, 0
//	for each pair { first += a.first·b.first; second += a.second·b.second } // each rounded once
//	C[i][j] += first + second
//
// where denormal numbers count as 0. So it has other last digits than on vectors, but the same for one row as for many.
// Attention and products with parameters use vectors everywhere: the former should not depend on whether keys are in a
// cache, and the gradients of the latter not on padding.

// hasTiles reports whether the processor has tile units for both kinds of words and the system saves their registers.
// Only tests change it.
var hasTiles = hasPairs && hasQuads && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && cpu.X86.HasAMXInt8 && offersTiles()

// usesTiles reports whether products of packed words may be computed on tile units.
func usesTiles() bool { return hasTiles && permitTiles() }

// tileUnitArgs is the argument of the kernel: up to 32 rows of A and columns of B. Strides are in bytes. The generator
// reads the offsets of the fields.
type tileUnitArgs struct {
	a          *float32
	aRow       int
	b          *float32
	bRow       int
	c          *float32
	cRow       int
	steps      int // at least 1
	high, wide int // tiles of rows and of columns, 1 or 2
	config     tileConfig
}

// tileConfig says how many rows and bytes of a row the tiles have. The processor defines its layout.
type tileConfig struct {
	palette uint8
	_       [15]byte
	bytes   [16]uint16
	rows    [16]uint8
}

const tileSide = 16 // rows, columns and words of a tile

// set sets the size of a tile. A tile without rows or columns is not used.
func (c *tileConfig) set(tile, rows, words int) {
	if rows > 0 && words > 0 {
		c.rows[tile], c.bytes[tile] = uint8(rows), uint16(4*words)
	}
}

// multiplyPairsOnTiles is multiplyPairPanel on tile units.
func multiplyPairsOnTiles(c, a Mat, m int, l PanelLayout, b []float32, more bool, bias []float32, chain int) {
	if !more {
		beginRows(c, m, l.N, bias)
	}
	if chain%tileSide == 0 {
		chain = l.K // blocks consist of whole steps
	}
	for i := 0; i < m; i += 2 * tileSide {
		for j := 0; j < l.N; j += 2 * tileSide {
			rows, cols := min(2*tileSide, m-i), min(2*tileSide, l.N-j)
			for k := 0; k < l.K; k += chain {
				addOnTiles(c.from(i, j), a.from(i, k), rows, cols, min(chain, l.K-k), b[k*l.Width+j:], l.Width, false)
			}
		}
	}
}

// tileQuadRows is the least number of rows for which fours are multiplied on tile units. For fewer, vectors wait for
// memory.
const tileQuadRows = 8

// multiplyQuadsOnTiles is multiplyQuads on tile units, whose panels have 32 columns. It reports whether it could.
func (p *Panels) multiplyQuadsOnTiles(c, a Mat, m, j0, j1 int, bias []float32) bool {
	if m < tileQuadRows || !quadTile().keeps || !usesTiles() {
		return false
	}
	l, words := &p.b, view[float32](p.Memory)
	s := scratches.Get().(*scratch)
	defer s.free()
	s.tile = grow(s.tile, 4*tileSide*tileSide)
	sums := RowMajor(s.tile, 2*tileSide)
	for j := j0; j < j1; j += l.width {
		cols := min(l.width, j1-j)
		var first []float32
		if bias != nil {
			first = bias[j:]
		}
		for i := 0; i < m; i += 2 * tileSide {
			rows, to := min(2*tileSide, m-i), c.from(i, j)
			beginRows(to, rows, cols, first)
			for k := 0; k < l.rows; k += 2 + groupWords {
				clear(sums.Data)
				x, y := a.from(i, k), words[l.at(k, j):]
				addOnTiles(sums, x.from(0, 2), rows, cols, min(groupWords, l.rows-k-2), y[2*l.width:], l.width, true)
				addGroupAVX512(&to.Data[0], 4*to.Row, &sums.Data[0], &x.Data[0], 4*x.Row, &y[0], rows, cols)
			}
		}
	}
	return true
}

// addOnTiles adds to up to 32 rows and columns of C the products of n words of each: pairs, or fours if integers, whose
// sums are integers in the places of floats. Rows of B are width apart.
func addOnTiles(c, a Mat, rows, cols, n int, b []float32, width int, integers bool) {
	t := tileUnitArgs{aRow: 4 * a.Row, bRow: 4 * width, c: &c.Data[0], cRow: 4 * c.Row}
	t.config.palette = 1
	upper, left := min(rows, tileSide), min(cols, tileSide)
	lower, right := rows-upper, cols-left
	t.high, t.wide = 1+min(lower, 1), 1+min(right, 1)
	for k := 0; k < n; k += t.steps * tileSide {
		words := min(tileSide, n-k)
		t.a, t.b, t.steps = &a.Data[k], &b[k*width], max(1, (n-k)/tileSide)
		for i, height := range [2]int{upper, lower} {
			t.config.set(2*i, height, left) // sums
			t.config.set(2*i+1, height, right)
			t.config.set(4+i, height, words) // A
		}
		t.config.set(6, words, left) // B
		t.config.set(7, words, right)
		if integers {
			addQuadTilesAVX512(&t)
		} else {
			addPairTilesAVX512(&t)
		}
	}
}
