package simd

import "fmt"

// PanelLayout describes the places of the elements of a K×N matrix that is stored as Panels from
// the start: in contiguous panels of Width columns. A matrix that is written once and multiplied
// often, such as a KV cache, then needs no copy for each product. The layout depends on the
// implementation in use.
type PanelLayout struct{ K, N, Width int }

// NewPanelLayout returns the layout of k rows and n columns.
func NewPanelLayout(k, n int) PanelLayout {
	return PanelLayout{k, n, max(1, min(panelWidth(), roundUp(n, vectorLanes())))}
}

// Len returns the number of elements, including the padding of the last panel.
func (l PanelLayout) Len() int {
	if l.N == 0 {
		return 0
	}
	return (l.N + l.Width - 1) / l.Width * l.Panel()
}

// Panel returns the number of elements in a panel, which is also the distance between panels.
func (l PanelLayout) Panel() int { return l.K * l.Width }

// At returns the index of an element. The next row is Width further on.
func (l PanelLayout) At(k, j int) int { return j/l.Width*l.Panel() + k*l.Width + j%l.Width }

// View sets p to a matrix that is stored in data in the layout l. It copies the matrix only if it
// is rounded.
func (p *Panels) View(l PanelLayout, data []float32) {
	if len(data) < l.Len() {
		panic(fmt.Sprintf("simd: Panels.View: len(data)=%d, want %d", len(data), l.Len()))
	}
	if !p.Rounded {
		p.K, p.N, p.stored = l.K, l.N, Stored{}
		p.b = blockOfB{data: data, width: l.Width, row: l.Width, step: l.Panel(), copied: true, rows: l.K, cols: l.N}
		return
	}
	p.Reserve(l.K, l.N)
	for j := 0; j < l.N; j += l.Width {
		panel, cols := RowMajor(data[l.At(0, j):], l.Width), min(l.Width, l.N-j)
		packRounded(p.b.data[j/l.Width*p.b.step:], panel, l.K, cols, l.Width)
	}
}

// ViewStored sets p to a matrix of numbers in the layout l, without a copy unless the format is Float32 and p is rounded.
func (p *Panels) ViewStored(l PanelLayout, s Stored) {
	if s.Format == Float32 {
		p.View(l, view[float32](s.Memory))
		return
	}
	p.K, p.N, p.stored = l.K, l.N, s.Part(0, l.Len())
	p.b = blockOfB{width: l.Width}
}

// Whole reports whether kernels compute whole panels, as those for formats other than Float32 do.
func (p *Panels) Whole() bool { return p.stored.Memory != nil }

// Reach returns the end of the columns to compute for a product that needs those before j.
func (p *Panels) Reach(j int) int {
	if p.Whole() {
		return min(roundUp(j, p.b.width), p.N)
	}
	return j
}
