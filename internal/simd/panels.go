package simd

import "fmt"

// Panels is a matrix B, of K rows and N columns, in the order in which products read it: the keys of a call of attention,
// a page of a KV cache, the weights of a model. Width columns form a panel. See form for what Memory contains.
//
// The zero value has no rows. Panels that are Reserved reuse their memory for the next matrix.
type Panels struct {
	PanelLayout
	Format Format // of the numbers
	form   form

	// Rounded rounds the other factors of products to the format, or to bfloat16 where it is Float32, see reduced.go. It
	// must be set before the matrix. A product then starts at an even row. Distances are not for rounded panels.
	Rounded bool

	// Ahead, if not nil, is memory that MultiplyPanels prefetches while it computes.
	Ahead *Ahead

	Memory []byte
	b      blockOfB  // the places of the numbers or words, and the memory of those that kernels read as floats
	own    []float32 // memory that is reused

	reserved, reservedRounded bool // whether Memory is own, and for rounded numbers
}

// A form is what the memory of Panels contains on this processor, and so which kernels multiply by it.
type form uint8

const (
	inFloats   form = iota // float32. MultiplyPanels computes any columns
	inPairs                // words of two steps of bfloat16: the processor multiplies both at once. The same columns
	inHalves               // bfloat16, widened by products. MultiplyPanels computes whole panels from here on
	inIntegers             // Int8 that the caller multiplies by scales of vectors
	inQuads                // words of four steps of Int8, with their scales, see quads.go
)

// NewPanels returns a matrix of k rows and n columns, to be written with Set. It takes its memory from allocate.
func NewPanels(k, n int, f Format, rounded bool, allocate func(bytes int) []byte) *Panels {
	p := &Panels{Rounded: rounded}
	p.arrange(k, n, f)
	p.Memory = allocate((n + p.b.width - 1) / p.b.width * p.b.step * p.numbers().Format.Size())
	return p
}

// arrange sets the size, the format and the form.
func (p *Panels) arrange(k, n int, f Format) {
	p.PanelLayout, p.Format, p.form, p.Memory, p.reserved = NewPanelLayout(k, n), f, inFloats, nil, false
	rows, width := k, p.Width
	switch {
	case f == BFloat16 && p.Rounded && packsPairs():
		p.form, rows = inPairs, wordsOf(k, true)
	case f == BFloat16:
		p.form = inHalves
	case f == Int8 && !p.Rounded:
		p.form = inIntegers
	case f == Int8:
		p.form, rows, width = inQuads, groupedWords(k), quadsWidth()
	}
	p.b = blockOfB{width: width, row: width, step: rows * width, copied: true, rows: rows, cols: n, pairs: p.form == inPairs}
}

// numbers returns the memory as numbers, or as words in the places of floats.
func (p *Panels) numbers() Stored {
	if p.form == inPairs || p.form == inQuads {
		return Stored{Float32, p.Memory}
	}
	return Stored{p.Format, p.Memory}
}

// Copy sets p to a copy of b, which has k rows and n columns.
func (p *Panels) Copy(b Mat, k, n int) {
	if p.Reserve(k, n); p.form != inFloats || p.Rounded {
		p.Set(0, n, b)
		return
	}
	for j := 0; k > 0 && j < n; j += p.Width {
		packPanel(p.b.data[j*k:][:p.b.step], b.from(0, j), k, min(p.Width, n-j), p.Width)
	}
}

// Reserve allocates memory for k rows and n columns, which the caller must then write with Set.
func (p *Panels) Reserve(k, n int) {
	if p.K == k && p.N == n && p.reserved && p.reservedRounded == p.Rounded { // the heads of a call have one size
		return
	}
	f := Float32
	if p.Rounded && roundsToPairs() {
		f = BFloat16
	}
	p.arrange(k, n, f)
	p.own = grow(p.own, p.b.count()*p.b.step)
	p.b.data, p.Memory, p.reserved, p.reservedRounded = p.own, bytesOf(p.own), true, p.Rounded
}

// Use sets p to b without a copy, if the rows of b are contiguous, and reports whether it could.
// For rows that are far apart, a copy is faster if it is used more than a few times.
func (p *Panels) Use(b Mat, k, n int) bool {
	if p.Rounded || b.Col != 1 || panelWidth() == genericWidth {
		return false
	}
	width := panelWidth()
	p.PanelLayout, p.Format, p.form, p.Memory, p.reserved = PanelLayout{k, n, width}, Float32, inFloats, nil, false
	p.b = blockOfB{data: b.Data, width: width, step: width, row: b.Row, rows: k, cols: n, from: b}
	return true
}

// View sets p to a matrix that is stored in data in the layout l. It copies the matrix only if it
// is rounded.
func (p *Panels) View(l PanelLayout, data []float32) {
	if len(data) < l.Len() {
		panic(fmt.Sprintf("simd: Panels.View: len(data)=%d, want %d", len(data), l.Len()))
	}
	if p.Rounded {
		p.Reserve(l.K, l.N)
		for j := 0; j < l.N; j += l.Width {
			p.Set(j, min(l.Width, l.N-j), RowMajor(data[l.At(0, j):], l.Width))
		}
		return
	}
	p.ViewStored(l, Stored{Float32, bytesOf(data)})
}

// ViewStored sets p to a matrix of numbers in the layout l, without a copy unless the format is Float32 and p is rounded.
func (p *Panels) ViewStored(l PanelLayout, s Stored) {
	if s.Format == Float32 && p.Rounded {
		p.View(l, view[float32](s.Memory))
		return
	}
	p.PanelLayout, p.Format, p.Memory, p.form, p.reserved = l, s.Format, s.Part(0, l.Len()).Memory, storedForms[s.Format], false
	p.b = blockOfB{width: l.Width, row: l.Width, step: l.Panel(), copied: true, rows: l.K, cols: l.N}
	if p.form == inFloats {
		p.b.data = view[float32](p.Memory)
	}
}

// storedForms are the forms of numbers that products do not round.
var storedForms = [...]form{Float32: inFloats, BFloat16: inHalves, Int8: inIntegers}

// Whole reports whether kernels compute whole panels, as those for formats other than Float32 do.
func (p *Panels) Whole() bool { return p.form >= inHalves }

// Reach returns the end of the columns to compute for a product that needs those before j.
func (p *Panels) Reach(j int) int {
	if p.Whole() {
		return min(roundUp(j, p.Width), p.N)
	}
	return j
}

// Release drops the references to the caller's matrix.
func (p *Panels) Release() {
	p.PanelLayout, p.b, p.Memory, p.reserved = PanelLayout{}, blockOfB{}, nil, false
}

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

// roundUp returns n rounded up to a multiple of m.
func roundUp(n, m int) int { return (n + m - 1) / m * m }
