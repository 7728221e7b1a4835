package optim

import (
	"slices"
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/nn"
)

// gradients are the gradients of a module's parameters.
type gradients struct {
	pieces  [][]float32
	starts  []int     // number of elements before each piece
	squares []float64 // scratch memory
	total   int       // number of elements
}

var gradientLists = sync.Pool{New: func() any { return new(gradients) }}

// takeGradients returns the gradients of a module. The caller must call free.
func takeGradients(m nn.Module) *gradients {
	// Divided by shape alone, so that sums do not depend on the number of processors.
	const most = 1 << 14
	s := gradientLists.Get().(*gradients)
	s.pieces, s.starts, s.total = s.pieces[:0], s.starts[:0], 0
	for _, p := range m.Params() {
		if g := p.Grad(); g != nil {
			for data := g.Data(); len(data) > 0; {
				n := min(len(data), most)
				s.pieces, s.starts = append(s.pieces, data[:n]), append(s.starts, s.total)
				data, s.total = data[n:], s.total+n
			}
		}
	}
	s.squares = slices.Grow(s.squares[:0], len(s.pieces))[:len(s.pieces)]
	return s
}

// each calls do for each piece and its element of squares, in one loop.
func (s *gradients) each(do func(piece []float32, square *float64)) {
	par.For(s.total, par.Chunk(s.total, 1), func(lo, hi int) {
		i, _ := slices.BinarySearch(s.starts, lo)
		for ; i < len(s.starts) && s.starts[i] < hi; i++ {
			do(s.pieces[i], &s.squares[i])
		}
	})
}

// free puts s back into the pool, without references to the gradients, which it would keep alive.
func (s *gradients) free() {
	clear(s.pieces)
	gradientLists.Put(s)
}
