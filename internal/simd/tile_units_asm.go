//go:build amd64 && !purego

package simd

import "golang.org/x/sys/cpu"

// Products of pairs of bfloat16 on the tile units of Xeons (AMX). An instruction multiplies 16 rows by 16 columns, 16
// pairs deep. Rows of A and panels of B are in the order that vectors read, too.
//
// An element of C is, from the bias or 0 on, for every 16 pairs of a block of the sum, of which the last may be fewer:
//
//	first, second = 0, 0
//	for each pair { first += a.first·b.first; second += a.second·b.second } // each rounded once
//	C[i][j] += first + second
//
// where denormal numbers count as 0. So it has other last digits than on vectors, but the same for one row as for many.
// Attention and products with parameters use vectors everywhere: the former should not depend on whether keys are in a
// cache, and the gradients of the latter not on padding.

// hasTiles reports whether the processor has tile units for bfloat16 and the system saves their registers. Only tests
// change it.
var hasTiles = hasPairs && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && offersTiles()

// usesTiles reports whether products of packed pairs are computed on tile units.
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

const tileSide = 16 // rows, columns and pairs of a tile

// set sets the size of a tile. A tile without rows or columns is not used.
func (c *tileConfig) set(tile, rows, words int) {
	if rows > 0 && words > 0 {
		c.rows[tile], c.bytes[tile] = uint8(rows), uint16(4*words)
	}
}

// multiplyOnTiles is multiplyPairPanel on tile units.
func multiplyOnTiles(c, a Mat, m int, l PanelLayout, b []float32, more bool, bias []float32, chain int) {
	for i := 0; i < m && !more; i++ {
		if row := c.Data[i*c.Row:][:l.N]; bias != nil {
			copy(row, bias)
		} else {
			clear(row)
		}
	}
	if chain%tileSide == 0 {
		chain = l.K // blocks consist of whole steps
	}
	for i := 0; i < m; i += 2 * tileSide {
		for j := 0; j < l.N; j += 2 * tileSide {
			rows, cols := min(2*tileSide, m-i), min(2*tileSide, l.N-j)
			for k := 0; k < l.K; k += chain {
				n := min(chain, l.K-k)
				rest := n % tileSide
				addOnTiles(c.from(i, j), a.from(i, k), rows, cols, (n-rest)/tileSide, tileSide, b[k*l.Width+j:], l.Width)
				if rest > 0 {
					k := k + n - rest
					addOnTiles(c.from(i, j), a.from(i, k), rows, cols, 1, rest, b[k*l.Width+j:], l.Width)
				}
			}
		}
	}
}

// addOnTiles adds to up to 32 rows and columns of C the products of some steps of pairs each. Rows of B are width apart.
func addOnTiles(c, a Mat, rows, cols, steps, pairs int, b []float32, width int) {
	if steps == 0 {
		return
	}
	t := tileUnitArgs{
		a: &a.Data[0], aRow: 4 * a.Row, b: &b[0], bRow: 4 * width, c: &c.Data[0], cRow: 4 * c.Row,
		steps: steps, high: 1, wide: 1,
	}
	t.config.palette = 1
	upper, left := min(rows, tileSide), min(cols, tileSide)
	lower, right := rows-upper, cols-left
	if lower > 0 {
		t.high = 2
	}
	if right > 0 {
		t.wide = 2
	}
	for i, height := range [2]int{upper, lower} {
		t.config.set(2*i, height, left) // sums
		t.config.set(2*i+1, height, right)
		t.config.set(4+i, height, pairs) // A
	}
	t.config.set(6, pairs, left) // B
	t.config.set(7, pairs, right)
	addTilesAVX512(&t)
}
