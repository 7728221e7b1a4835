//go:build amd64 && !purego

package simd

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

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

// tileUnitArgs is the argument of the kernel for pairs: up to 32 rows of A and columns of B. Strides are in bytes. The generator
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
				addOnTiles(c.from(i, j), a.from(i, k), rows, cols, min(chain, l.K-k), b[k*l.Width+j:], l.Width)
			}
		}
	}
}

// quadTileArgs is the argument of the kernel for integers. It moves a and floats.
type quadTileArgs struct {
	a, floats            *float32 // rows in the order of roundQuads
	b, last              *float32 // a panel of 32 columns, and its last group, which may be elsewhere
	c                    *float32
	first                *float32 // of 32 numbers: what sums begin with
	memory               *float32 // of quadMemory numbers
	next                 uintptr  // what to prefetch
	nextStep, aRow, cRow int      // bytes
	groups, rows, cols   int
}

const (
	quadWidth      = 2 * tileSide
	quadGroup      = (2 + groupWords) * quadWidth // words of a group of a panel
	quadMemory     = 2 * quadWidth * quadWidth    // of a block: integers, and floats
	quadPrefetches = 12                           // in a group of a tile of rows
	quadPadding    = tileSide - 1                 // rows that the kernel reads behind those of A
)

// quadsOnTiles reports whether products of m rows of fours are computed on tile units. With fewer rows, vectors wait for
// memory.
func (p *Panels) quadsOnTiles(m int) bool {
	return p.form == inQuads && m >= 8 && quadTile().keeps && usesTiles()
}

// sortQuads sets dst to a row of groups in the order of tile units: the integers of all groups, of which the last is
// whole, too, and behind them the other words.
func sortQuads(dst, words []float32, depth int) {
	sortQuadsAVX512(&dst[0], &dst[groupsOf(depth)*groupWords], &words[0], integersOf(depth))
}

// multiplyQuadsOnTiles is multiplyQuads for rows in the order of tile units.
func (p *Panels) multiplyQuadsOnTiles(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	l, words, groups := &p.b, view[float32](p.Memory), groupsOf(p.K)
	s := scratches.Get().(*scratch)
	defer s.free()
	s.tile = grow(s.tile, quadMemory+quadWidth+quadGroup)
	first, last := s.tile[quadMemory:][:quadWidth], s.tile[quadMemory+quadWidth:]
	t := quadTileArgs{first: &first[0], memory: &s.tile[0], aRow: 4 * a.Row, cRow: 4 * c.Row, groups: groups, rows: m}
	t.nextStep = min(64, 4*l.step/((m+tileSide-1)/tileSide*groups*quadPrefetches)+1)
	for j := j0; j < j1; j += quadWidth {
		t.next = uintptr(unsafe.Pointer(&words[l.at(0, p.following(j, quadWidth, j1, after))]))
		t.a, t.floats = &a.Data[0], &a.Data[groups*groupWords]
		t.cols, t.c = min(quadWidth, j1-j), &c.Data[j]
		if clear(first); bias != nil {
			copy(first, bias[j:j1])
		}
		panel := words[l.at(0, j):][:l.step]
		rest := panel[(groups-1)*quadGroup:]
		if len(rest) < quadGroup {
			clear(last[copy(last, rest):])
			rest = last
		}
		if t.b, t.last = &panel[0], &rest[0]; groups == 1 {
			t.b = t.last
		}
		quadTilesAVX512(&t)
	}
}

// addOnTiles adds to up to 32 rows and columns of C the products of n words of each. Rows of B are width apart.
func addOnTiles(c, a Mat, rows, cols, n int, b []float32, width int) {
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
		addPairTilesAVX512(&t)
	}
}
