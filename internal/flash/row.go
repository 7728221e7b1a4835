package flash

import "fmt"

// Sizes is attn.Sizes, which documents it.
type Sizes struct {
	B, H, G, Lq, Lk    int
	QueryLens, KeyLens []int
	ThreeAxes          bool
	Layer              string // name of the layer that attends
	Signed             bool   // weights may be negative and rows need not sum to 1, as without a softmax
}

// Queries returns the number of queries of sequence b, without padding.
func (s Sizes) Queries(b int) int {
	if s.QueryLens == nil {
		return s.Lq
	}
	return s.QueryLens[b]
}

// Keys returns the number of keys of sequence b, without padding.
func (s Sizes) Keys(b int) int {
	if s.KeyLens == nil {
		return s.Lk
	}
	return s.KeyLens[b]
}

// Offset returns the position of the first query of sequence b.
func (s Sizes) Offset(b int) int { return s.Keys(b) - s.Queries(b) }

// Ragged reports whether there is padding.
func (s Sizes) Ragged() bool { return s.QueryLens != nil || s.KeyLens != nil }

// Shape returns the shape of the scores with the same axes as the caller's query, as numbers and
// as letters.
func (s Sizes) Shape() (shape []int, letters string) {
	if s.ThreeAxes {
		return []int{s.B, s.Lq, s.Lk}, fmt.Sprintf("[B=%d Lq=%d Lk=%d]", s.B, s.Lq, s.Lk)
	}
	return []int{s.B, s.H, s.Lq, s.Lk}, fmt.Sprintf("[B=%d H=%d Lq=%d Lk=%d]", s.B, s.H, s.Lq, s.Lk)
}

// Broadcasts reports whether a shape broadcasts to the shape of the scores.
func (s Sizes) Broadcasts(shape []int) bool {
	full, _ := s.Shape()
	if len(shape) > len(full) {
		return false
	}
	for i, n := range shape {
		if n != 1 && n != full[len(full)-len(shape)+i] {
			return false
		}
	}
	return true
}

// Row is attn.Row, which documents it.
type Row struct{ Batch, Head, Query, Key, Position int }

// rowAt returns row number n from key j on, where j counts extra keys. Row.Key does not count
// them.
func (a *Attention) rowAt(n, j int) Row {
	b, h, i := a.split(n)
	return Row{Batch: b, Head: h, Query: i, Key: max(0, j-a.Extra), Position: i + a.Offset(b)}
}

// next advances at to the next row.
func (a *Attention) next(at *Row) {
	if at.Query, at.Position = at.Query+1, at.Position+1; at.Query < a.Lq {
		return
	}
	at.Head, at.Query, at.Position = at.Head+1, 0, at.Position-a.Lq
	if at.Head == a.H && at.Batch+1 < a.B {
		at.Batch, at.Head, at.Position = at.Batch+1, 0, a.Offset(at.Batch+1)
	}
}

// Change changes the scores of a call between the scale and the mask.
type Change struct {
	Rule interface {
		// Adds reports whether Apply only adds terms that do not depend on the scores. Their
		// gradient then passes through unchanged, and Back is called only for the gradient of
		// Param, without the scores.
		Adds() bool
		// Apply changes the scores of the query at with the keys at.Key, at.Key+1, …, including
		// masked keys. It is called concurrently.
		Apply(at Row, param, scores []float32)
		// Back replaces grad, the gradient of the changed scores, by the gradient of the scores
		// before, and adds to the gradient of param. Elements of grad with weight 0 are ignored.
		// Calls for the same part of param run one after the other.
		Back(at Row, param, dparam, before, after, grad []float32)
	}
	// Param are the parameters of the change: Size numbers for each head. The next sequence or
	// head is Batch or Head elements further. A stride of 0 broadcasts.
	Param             []float32
	Size, Batch, Head int
	// Extra means that the change also applies to the extra keys.
	Extra bool
}

// part returns the parameters of a head.
func (c *Change) part(at Row, data []float32) []float32 {
	if data == nil {
		return nil
	}
	return data[at.Batch*c.Batch+at.Head*c.Head:][:c.Size]
}

// skips returns the number of scores, of n from key j on, that belong to extra keys that c does
// not change.
func (a *Attention) skips(c *Change, j, n int) int {
	if c.Extra {
		return 0
	}
	return min(max(0, a.Extra-j), n)
}

// change changes the scores of the query at from key j on.
func (a *Attention) change(c *Change, at Row, j int, scores []float32) {
	if scores = scores[a.skips(c, j, len(scores)):]; len(scores) > 0 {
		c.Rule.Apply(at, c.part(at, c.Param), scores)
	}
}
