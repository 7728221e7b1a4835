package simd

import "github.com/attn-go/attn/internal/par"

// A Cut divides products into pieces, which the threads of a loop claim one by one. A piece is some rows and some
// panels of a product, over its whole depth. The cut depends only on the sizes and on the number of threads.
//
// The depth is not divided. Only the blocks of a long sum may be summed apart (see sumBlock), and adding them in order
// needs memory and a second loop.
type Cut struct {
	Pieces int // of all products, at least 1
	// Whole is the number of products that are computed together, or 0 if a product is divided.
	Whole int

	threads              int
	count, rows, panels  int // rows and panels of a product
	rowParts, panelParts int
	byRows               bool // whether consecutive pieces have the same rows, not the same panels
}

// Costs in multiplications, of which a thread of a processor with AVX2 does up to 46 in a nanosecond. Those of pieces
// were measured there, without other threads, and are larger here: with them, threads hinder one another.
const (
	pieceCost  = 1 << 15 // of a piece of any size: 0.7 µs (measured 0.2)
	weightCost = 8       // of an element of B, for all rows of a piece (measured 5)
	inputCost  = 4       // of an element of A, for all panels of a piece (chosen: with 1, pieces were too small)
	loopCost   = 1 << 19 // of the least that is divided: 11 µs
	wholeCost  = 1 << 18 // of products computed together

	genericCost = 1 << 4 // of a multiplication in compiled Go (measured 10 to 14)

	// largestPiece is about the largest cost between two checks of a context: three milliseconds.
	largestPiece = 1 << 27
)

// cutRows is the number of rows of a tile of the kernels. Pieces consist of whole tiles, but for the last rows.
const cutRows = 6

func (c *Cut) tiles() int { return (c.rows + cutRows - 1) / cutRows }

// NewCut returns the cut of count products of rows and panels, with panels of width columns. A piece of a divided
// product has block rows at most. All numbers are at least 1.
func NewCut(count, rows, panels, width, depth, block int) Cut {
	c := Cut{threads: par.Threads(), count: count, rows: rows, panels: panels, rowParts: 1, panelParts: 1}
	one := c.cost(width, depth)
	switch all := one * int64(count); {
	case all < loopCost:
		c.Whole = count
	case count > 1 && (all < 2*loopCost || count >= 4*c.threads):
		c.Whole = max(1, int(wholeCost/one))
	}
	if c.Whole > 0 {
		c.Pieces = (count + c.Whole - 1) / c.Whole
		return c
	}
	return divided(count, rows, panels, width, depth, block)
}

// divided returns a cut into at least as many pieces as caches and contexts need.
func divided(count, rows, panels, width, depth, block int) Cut {
	c := Cut{threads: par.Threads(), count: count, rows: rows, panels: panels}
	c.rowParts, c.panelParts = (rows+block-1)/block, 1
	c.panelParts = min(panels, 1+int(c.cost(width, depth)/largestPiece))
	if c.threads > 1 {
		c.divide(width, depth)
	}
	c.Pieces = count * c.rowParts * c.panelParts
	c.byRows = rows >= threadRows*c.threads
	return c
}

// divide chooses the number of parts, at least the present one. Smaller pieces share the work more evenly, but cost
// more.
func (c *Cut) divide(width, depth int) {
	least, best := *c, int64(0)
	for try := least; try.rowParts == least.rowParts || try.rowParts*cutRows <= c.rows; try.rowParts *= 2 {
		before := 0
		for each := c.panels; each > 0; each -= (each + 7) / 8 { // panels of a part
			parts := max((c.panels+each-1)/each, least.panelParts)
			rounds := (c.count*try.rowParts*parts + c.threads - 1) / c.threads
			if rounds > 64 && parts > least.panelParts {
				break // enough pieces
			}
			if parts == before {
				continue
			}
			before, try.panelParts = parts, parts
			piece := try.cost(width, depth) + pieceCost
			// Threads are not equally fast. At the end, some wait for half a piece.
			if cost := piece*int64(rounds) + piece/2; best == 0 || cost < best {
				*c, best = try, cost
			}
		}
	}
	// In the last round, too, all threads should have a piece.
	others := c.count * c.panelParts
	rounds := (others*c.rowParts + c.threads - 1) / c.threads
	c.rowParts = max(c.rowParts, min(c.rows/cutRows, rounds*c.threads/others))
}

// cost returns the cost of the largest piece, without pieceCost.
func (c *Cut) cost(width, depth int) int64 {
	rows := min(c.rows, (c.tiles()+c.rowParts-1)/c.rowParts*cutRows)
	cols := (c.panels + c.panelParts - 1) / c.panelParts * width
	cost := int64(depth) * int64(cols*(rows+weightCost)+rows*inputCost)
	if active == generic {
		cost *= genericCost
	}
	return cost
}

// threadRows is the least number of rows for each thread that are worth reading all of B for: they are in the thread's
// caches, and stay there for the next operation.
const threadRows = 64

// Piece returns the product, the rows i0 to i1 and the panels j0 to j1 of piece n. Consecutive pieces use the same
// panels or, if there are many, the same rows, so that they stay in a cache.
func (c *Cut) Piece(n int) (product, i0, i1, j0, j1 int) {
	row, part := c.rowPart(n), n/c.rowParts%c.panelParts
	if c.byRows {
		part = n % c.panelParts
	}
	i0, i1 = c.partRows(row)
	return row / c.rowParts, i0, i1, c.panels * part / c.panelParts, c.panels * (part + 1) / c.panelParts
}

// rowPart returns the number of the rows of piece n, among those of all products.
func (c *Cut) rowPart(n int) int {
	if c.byRows {
		return n / c.panelParts
	}
	return n/(c.rowParts*c.panelParts)*c.rowParts + n%c.rowParts
}

// partRows returns the rows with a number of rowPart.
func (c *Cut) partRows(n int) (i0, i1 int) {
	n %= c.rowParts
	return c.tiles() * n / c.rowParts * cutRows, min(c.tiles()*(n+1)/c.rowParts*cutRows, c.rows)
}

// Next returns the first panel of the piece that the thread of piece n probably computes next.
func (c *Cut) Next(n int) int {
	if n++; n >= c.Pieces {
		return c.panels
	}
	_, _, _, j, _ := c.Piece(n)
	return j
}
