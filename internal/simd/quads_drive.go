//go:build (amd64 || arm64) && !purego

package simd

import "unsafe"

// A quadShape is the shape of the tiles of a kernel for integers: the most rows, and the columns of a panel. A kernel
// that keeps its sums over all groups reads biases and writes a part of a panel. Others add whole panels to C.
type quadShape struct {
	rows, width int
	keeps       bool
}

// quadsWidth is the number of columns of a panel of integers.
func quadsWidth() int {
	if usesQuads() {
		return quadTile().width
	}
	return genericQuads
}

// multiplyQuads is Multiply for rows of groups.
func (p *Panels) multiplyQuads(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	if !usesQuads() {
		p.multiplyQuadsGeneric(c, a, m, j0, j1, bias)
		return
	}
	l, words, tile := &p.b, view[float32](p.Memory), quadTile()
	t := tileArgs{aRow: 4 * a.Row, cRow: 4 * c.Row, depth: integersOf(p.K)}
	steps := (m + tile.rows - 1) / tile.rows * t.depth / 4 // in which the tiles of a panel prefetch the next
	t.nextStep = min(64, 4*l.step/(steps+1)+1)
	for j := j0; j < j1; j += l.width {
		t.next = uintptr(unsafe.Pointer(&words[l.at(0, p.following(j, l.width, j1, after))]))
		t.last, t.b = min(l.width, j1-j), &words[l.at(0, j)]
		if bias != nil {
			t.start, t.bias = startBias, &bias[j]
		}
		for i := 0; i < m; i += t.rows {
			left := (m - i + tile.rows - 1) / tile.rows // tiles of nearly the same height
			t.rows = (m - i + left - 1) / left
			t.a = &a.Data[i*a.Row]
			if tile.keeps {
				t.c = &c.Data[i*c.Row+j]
				gemmQuads(&t)
			} else {
				t.addQuads(c.from(i, j), bias, j)
			}
			t.next += uintptr(t.depth / 4 * t.nextStep)
		}
	}
}

// addQuads computes a tile with a kernel that adds whole panels to C.
func (t tileArgs) addQuads(c Mat, bias []float32, j int) {
	sums, width := c, quadsWidth()
	if t.last < width {
		s := scratches.Get().(*scratch)
		defer s.free()
		s.tile = grow(s.tile, t.rows*width)
		sums = RowMajor(s.tile, width)
	}
	if bias != nil {
		bias = bias[j:]
	}
	beginRows(sums, t.rows, t.last, bias)
	t.c, t.cRow = &sums.Data[0], 4*sums.Row
	gemmQuads(&t)
	for r := 0; t.last < width && r < t.rows; r++ {
		copy(c.Data[r*c.Row:][:t.last], sums.Data[r*sums.Row:])
	}
}

// beginRows sets rows of C to the first biases, or to 0.
func beginRows(c Mat, rows, cols int, bias []float32) {
	for i := range rows {
		if row := c.Data[i*c.Row:][:cols]; bias != nil {
			copy(row, bias)
		} else {
			clear(row)
		}
	}
}
