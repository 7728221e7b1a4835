package simd

import "fmt"

// PanelLayout is where the elements of a matrix of K rows and N columns lie if it is
// kept in the form of Panels from the start: in panels of Width columns, each in one
// piece. Whoever writes a matrix once and multiplies by it many times, as a KV cache,
// spares the copy of each time. The layout depends on the implementation in use.
type PanelLayout struct{ K, N, Width int }

// NewPanelLayout returns the layout of k rows and n columns.
func NewPanelLayout(k, n int) PanelLayout {
	return PanelLayout{k, n, max(1, min(panelWidth(), roundUp(n, vectorLanes())))}
}

// Len returns how many elements there are, those that fill up the last panel included.
func (l PanelLayout) Len() int {
	if l.N == 0 {
		return 0
	}
	return (l.N + l.Width - 1) / l.Width * l.Panel()
}

// Panel returns how many elements a panel has, which is how far apart two of them are.
func (l PanelLayout) Panel() int { return l.K * l.Width }

// At returns the place of an element. The next row is Width places further.
func (l PanelLayout) At(k, j int) int { return j/l.Width*l.Panel() + k*l.Width + j%l.Width }

// View makes p ready for a matrix that is stored in data in the layout l, without a copy
// unless it is for tile units.
func (p *Panels) View(l PanelLayout, data []float32) {
	if len(data) < l.Len() {
		panic(fmt.Sprintf("simd: Panels.View: len(data)=%d, want %d", len(data), l.Len()))
	}
	if p.Tiles { // which want their own layout
		p.Reserve(l.K, l.N)
		for j := 0; j < l.N; j += l.Width {
			cols := min(l.Width, l.N-j)
			p.limbs.fill(Mat{Data: data[l.At(0, j):], Row: l.Width, Col: 1}, l.K, j, j, j+cols)
		}
		return
	}
	p.K, p.N = l.K, l.N
	p.b = blockOfB{data: data, width: l.Width, row: l.Width, step: l.Panel(), copied: true, rows: l.K, cols: l.N}
}

// SetColumns makes the first n columns of the matrix that lies in data rows of x, whose
// elements are contiguous. What lies behind them up to the end of a vector becomes anything.
func (l PanelLayout) SetColumns(data []float32, x Mat, n int) {
	for j := 0; j < n; j += l.Width {
		packPanel(data[l.At(0, j):], x.from(j, 0).T(), l.K, min(n-j, l.Width), l.Width)
	}
}
