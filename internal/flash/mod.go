package flash

import "github.com/attn-go/attn/internal/simd"

// Place says where a row of scores stands: query Query of head Head of sequence
// Batch, with the keys from Key on.
type Place struct{ Batch, Head, Query, Key int }

// place returns the place of a row from key j on.
func (a *Attention) place(row, j int) Place {
	b, h, i := a.split(row)
	return Place{b, h, i, j}
}

// Mod changes scores, a row at a time, between the scale and the mask.
type Mod interface {
	// Apply changes scores of a query with the keys at.Key, at.Key+1, …. It is called
	// concurrently, and for the keys that the mask hides too.
	Apply(at Place, s []float32)
}

// ModGrad is the backward step of a Mod. The zero value is that of a derivative of
// 1 and no gradients of the Mod's own.
type ModGrad struct {
	// Back turns d, the gradient of the changed scores, into that of the scores
	// before, and adds to the gradients of the Mod's own. What d holds where the
	// weight is 0 is passed over.
	Back func(at Place, before, after, d []float32)
	// Scores says that Back needs the scores before and after the change, which
	// are nil otherwise.
	Scores bool
	// Own says that there are gradients of the Mod's own: calls for one head of
	// one sequence then follow one another, and so do those for all sequences or
	// all heads, if these share elements.
	Own, SharedBatch, SharedHead bool
}

// SoftCap bounds scores: s becomes c·tanh(s/c).
type SoftCap float32

// Apply bounds the scores.
func (c SoftCap) Apply(_ Place, s []float32) {
	simd.Scale(s, 1/float32(c), s)
	simd.Tanh(s, s)
	simd.Scale(s, float32(c), s)
}

// Grad returns the backward step: ds = (1 − tanh²(s/c))·d.
func (c SoftCap) Grad() ModGrad {
	return ModGrad{Scores: true, Back: func(_ Place, _, after, d []float32) {
		for j, v := range after {
			t := v / float32(c)
			d[j] *= 1 - float32(t*t)
		}
	}}
}

// Bias is added to the scores; element (b, h, i, j) is at
// Data[b·Batch + h·Head + i·Row + j·Col]. A stride of 0 broadcasts.
type Bias struct {
	Data                  []float32
	Batch, Head, Row, Col int
}

// at returns where the elements of a row begin.
func (x *Bias) at(p Place) int { return p.Batch*x.Batch + p.Head*x.Head + p.Query*x.Row + p.Key*x.Col }

// Apply adds the bias.
func (x *Bias) Apply(p Place, s []float32) {
	at := x.at(p)
	switch x.Col {
	case 1:
		simd.Add(s, s, x.Data[at:][:len(s)])
	case 0:
		v := x.Data[at]
		for j := range s {
			s[j] += v
		}
	default:
		for j := range s {
			s[j] += x.Data[at+j*x.Col]
		}
	}
}

// Grad returns the backward step, which adds to the gradient of x.Data.
func (x *Bias) Grad(grad []float32) ModGrad {
	return ModGrad{Own: true, SharedBatch: x.Batch == 0, SharedHead: x.Head == 0, Back: func(p Place, _, _, d []float32) {
		to := grad[x.at(p):]
		switch x.Col {
		case 1:
			simd.Add(to[:len(d)], to[:len(d)], d)
		case 0:
			to[0] += simd.Sum(d)
		default:
			for j, v := range d {
				to[j*x.Col] += v
			}
		}
	}}
}
