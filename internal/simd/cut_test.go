package simd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/par/partest"
)

// The pieces of a cut cover every row and panel of every product once.
func TestCutCoversProducts(t *testing.T) {
	onEach(t, func(t *testing.T) {
		for _, size := range [][4]int{
			{1, 1, 1, 1}, {1, 1, 36, 576}, {1, 1, 2000, 576}, {1, 7, 5, 4096}, {1, 97, 3, 1000}, {1, 128, 24, 384},
			{1, 1000, 61, 1000}, {3, 128, 17, 500}, {300, 100, 9, 64}, {2, 5000, 1, 40},
		} {
			for _, threads := range []int{1, 2, 3, 16, 64} {
				par.Trace(threads, 1, func() { coversProducts(t, size[0], size[1], size[2], size[3], threads) })
			}
		}
	})
}

func coversProducts(t *testing.T, count, rows, panels, depth, threads int) {
	c := NewCut(count, rows, panels, panelWidth(), depth, rowBlock)
	if c != NewCut(count, rows, panels, panelWidth(), depth, rowBlock) {
		t.Error("two cuts of the same products differ")
	}
	if c.Whole > 0 {
		if want := (count + c.Whole - 1) / c.Whole; c.Pieces != want {
			t.Errorf("%d products, %d together: %d pieces, want %d", count, c.Whole, c.Pieces, want)
		}
		return
	}
	seen := make([]int, count*rows*panels)
	for n := range c.Pieces {
		at, i0, i1, j0, j1 := c.Piece(n)
		if i0 == i1 || j0 == j1 {
			t.Fatalf("piece %d of %+v is empty", n, c)
		}
		for i := i0; i < i1; i++ {
			for j := j0; j < j1; j++ {
				seen[(at*rows+i)*panels+j]++
			}
		}
		if n+1 == c.Pieces {
			continue
		}
		also, k0, _, l0, _ := c.Piece(n + 1)
		if next := c.Next(n); next != l0 {
			t.Errorf("piece %d of %+v: panel %d is next, want %d", n, c, next, l0)
		}
		if many := rows >= 64*threads; also == at && (many && k0 < i0 || !many && l0 < j0) {
			t.Errorf("piece %d of %+v starts at row %d and panel %d, the next at %d and %d", n, c, i0, j0, k0, l0)
		}
	}
	if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
		t.Errorf("%d products of %d rows, %d panels and depth %d on %d threads: not each part is computed once",
			count, rows, panels, depth, threads)
	}
}

// A product is one loop with enough pieces for all threads. The numbers of pieces are those of AVX2.
func TestProductIsOneLoop(t *testing.T) {
	if panelWidth() != 16 || active == generic {
		t.Skip("the cut depends on the width of a panel")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		m, n, k, count int
		least          [3]int // pieces on 2, 16 and 64 threads
	}{
		{1024, 1024, 1024, 1, [3]int{22, 128, 512}},
		{512, 768, 768, 1, [3]int{12, 96, 192}},
		{128, 384, 384, 1, [3]int{6, 48, 192}},
		{64, 384, 384, 1, [3]int{6, 48, 48}},
		{16, 384, 384, 1, [3]int{4, 16, 24}},
		{320, 128, 128, 1, [3]int{6, 32, 64}},
		{512, 512, 64, 8, [3]int{8, 96, 384}},
		{1, 384, 384, 1, [3]int{4, 12, 24}},
	} {
		for _, layout := range []string{"TN", "NT", "NN", "TT"} {
			if layout != "TN" && c.m*c.n*c.k > 1<<28 {
				continue
			}
			p := &Product{M: c.m, N: c.n, K: c.k, Count: c.count}
			p.A, p.StepA = matrix(r, p.M, p.K, p.Count, int(layout[0]-'N')/6)
			p.B, p.StepB = matrix(r, p.K, p.N, p.Count, int(layout[1]-'N')/6)
			p.C, p.StepC = matrix(r, p.M, p.N, p.Count, 0)
			for i, threads := range []int{2, 16, 64} {
				s := par.Trace(threads, 1, func() { Multiply(p) })
				if len(s.Loops) != 1 || len(s.Loops[0].Chunks) < c.least[i] {
					t.Errorf("%d×%d·%d×%d %s on %d threads: %d loops, %d pieces, want 1 loop and %d pieces",
						c.count, c.m, c.k, c.n, layout, threads, len(s.Loops), len(s.Loops[0].Chunks), c.least[i])
				}
			}
		}
	}
}

// Products whose copies are too large to share are computed in several loops, with the same bits.
func TestMultiplyInGroups(t *testing.T) {
	defer func(limit int) { copyLimit = limit }(copyLimit)
	r := rand.New(rand.NewPCG(9, 10))
	var products []*productCase
	for _, size := range [][4]int{{131, 67, 263, 1}, {97, 131, 800, 1}, {100, 35, 200, 3}} {
		for layout := range 4 {
			p := &Product{M: size[0], N: size[1], K: size[2], Count: size[3], Blocks: layout == 1, Sparse: layout == 2}
			p.A, p.StepA = matrix(r, p.M, p.K, p.Count, layout&1)
			p.B, p.StepB = matrix(r, p.K, p.N, p.Count, layout>>1&1)
			p.C, p.StepC = matrix(r, p.M, p.N, p.Count, 0)
			if p.Sparse {
				p.B.Data[len(p.B.Data)/3] = float32(math.NaN())
			}
			products = append(products, newProductCase(p))
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for _, limit := range []int{20_000, 3000} {
		copyLimit = limit
		onEach(t, func(t *testing.T) {
			for _, p := range products {
				p.check(t)
			}
		})
	}
}

// If a context ends while threads share copies, all of them stop.
func TestMultiplyStopsAmongCopies(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	r := rand.New(rand.NewPCG(11, 12))
	p := &Product{M: 200, N: 300, K: 300}
	p.A, _ = matrix(r, p.M, p.K, 1, 1)
	p.B, _ = matrix(r, p.K, p.N, 1, 1)
	p.C, _ = matrix(r, p.M, p.N, 1, 0)
	whole := partest.NewCountdown(math.MaxInt)
	p.Context = whole
	Multiply(p)
	for end := range whole.Checks() { // 4 on one thread
		p.Context = partest.NewCountdown(end + 1)
		if err := par.Stopped(func() { Multiply(p) }); !errors.Is(err, context.Canceled) {
			t.Fatalf("end %d: error %v", end, err)
		}
	}
	p.Context = nil
	checkProduct(t, p)
}

// A part whose copy panics does not stop other threads.
func TestSharedCopyPanics(t *testing.T) {
	var c sharedCopy
	c.reserve(1, 3)
	c.pack = func(part int) {
		if part == 1 {
			panic("packing")
		}
	}
	func() {
		defer func() {
			if r := recover(); fmt.Sprint(r) != "packing" {
				t.Errorf("recovered %v", r)
			}
		}()
		c.prepare(0, 3)
	}()
	c.prepare(0, 3)
}

// A product without terms is its bias.
func TestLargeProductWithoutTerms(t *testing.T) {
	onEach(t, func(t *testing.T) {
		for _, size := range [][2]int{{1, 1 << 16}, {300, 3000}} {
			p := &Product{M: size[0], N: size[1], Bias: random(size[1])}
			p.A, p.B, p.C = RowMajor(nil, 0), RowMajor(nil, p.N), RowMajor(random(p.M*p.N), p.N)
			checkProduct(t, p)
		}
	})
}
