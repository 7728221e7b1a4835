package linear_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

// weights is the definition of Output.Weights for tokens from to to of one sequence, in float64: [N L L].
func (x *inputs) weights(b, from, to int, scale float64) []float64 {
	n := max(x.h, x.g)
	all := make([]float64, n*x.l*x.l)
	for head := range n {
		g, h := head/(n/x.g), head/(n/x.h)
		for i := from; i < to; i++ {
			y := make([]float64, x.e)
			for e := range y {
				y[e] = scale * float64(x.q.Data()[((b*x.h+h)*x.l+i)*x.e+e])
			}
			for l := i; l >= from; l-- {
				key := x.k.Data()[((b*x.kh+g/(x.g/x.kh))*x.l+l)*x.e:][:x.e]
				a := 0.0
				for e := range y {
					a += y[e] * float64(key[e])
				}
				if x.beta != nil {
					a *= float64(x.beta.Data()[(b*x.g+g)*x.l+l])
				}
				for e := range y {
					if x.beta != nil {
						y[e] -= a * float64(key[e])
					}
					y[e] *= math.Exp(x.decayAt(b, g, l, e))
				}
				all[(head*x.l+i)*x.l+l] = a
			}
		}
	}
	return all
}

// times returns weights [N L L] times the values of sequence b, [N L V].
func (x *inputs) times(b int, weights []float32) []float64 {
	n := max(x.h, x.g)
	out := make([]float64, n*x.l*x.vs)
	for head := range n {
		for i := range x.l {
			for l := range i + 1 {
				w := float64(weights[(head*x.l+i)*x.l+l])
				for c, v := range x.v.Data()[((b*x.g+head/(n/x.g))*x.l+l)*x.vs:][:x.vs] {
					out[(head*x.l+i)*x.vs+c] += w * float64(v)
				}
			}
		}
	}
	return out
}

func relativeError(got, want []float64) float64 {
	sum, all := 0.0, 0.0
	for i, y := range want {
		sum, all = sum+(got[i]-y)*(got[i]-y), all+y*y
	}
	if sum == 0 {
		return 0
	}
	return math.Sqrt(sum / all)
}

func floats64(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// For every rule and length, weights are those of the formula, and the weights times the values are the outputs.
func TestWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, rule := range rules {
		for _, heads := range [][3]int{{1, 1, 1}, {4, 2, 2}, {2, 1, 4}} {
			for _, l := range []int{1, 5, 64, 300} {
				x := newInputs(r, rule, 1, heads[0], heads[1], heads[2], l, 8, 3)
				o := x.options()
				o.State, o.Weights, o.Scale = nil, true, 0.3
				y := linear.Attend(nil, x.q, x.k, x.v, o)
				want := x.weights(0, 0, l, 0.3)
				if got := y.Weights.Shape(); !slices.Equal(got, []int{1, max(x.h, x.g), l, l}) {
					t.Fatalf("weights have the shape %v", got)
				}
				if d := relativeError(floats64(y.Weights.Data()), want); !(d <= 1e-5) {
					t.Errorf("%s, %v heads, %d tokens: weights differ from the formula by %.2g", rule, heads, l, d)
				}
				if d := relativeError(x.times(0, y.Weights.Data()), floats64(y.Out.Data())); !(d <= 1e-5) {
					t.Errorf("%s, %v heads, %d tokens: weights times values differ from the output by %.2g", rule, heads, l, d)
				}
			}
		}
	}
}

// With a first state, outputs have a part of it besides; with a State, the tokens before a call are that part.
func TestWeightsWithState(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for _, rule := range rules {
		x := newInputs(r, rule, 1, 2, 2, 2, 40, 8, 5)
		o := x.options()
		o.Weights = true
		y := linear.Attend(nil, x.q, x.k, x.v, o)
		zero := *x
		zero.v = tensor.Zeros(x.v.Shape()...)
		part := linear.Attend(nil, x.q, x.k, zero.v, o)
		if !slices.Equal(part.Weights.Data(), y.Weights.Data()) {
			t.Errorf("%s: weights depend on values", rule)
		}
		if d := relativeError(floats64(tensor.Sub(nil, y.Out, part.Out).Data()), x.times(0, y.Weights.Data())); !(d <= 1e-5) {
			t.Errorf("%s: weights times values and the part of the state differ from the output by %.2g", rule, d)
		}
	}
}

// rowsOf is an observer that keeps all rows.
type rowsOf struct {
	sync.Mutex
	sizes attn.Sizes
	rows  map[attn.Row][]float32
	ended bool
}

func (o *rowsOf) Begin(s attn.Sizes) { o.sizes, o.rows, o.ended = s, map[attn.Row][]float32{}, false }
func (o *rowsOf) End()               { o.ended = true }
func (o *rowsOf) Row(at attn.Row, w []float32) {
	o.Lock()
	defer o.Unlock()
	if o.rows[at] != nil {
		panic("a row twice")
	}
	o.rows[at] = slices.Clone(w)
}

// Documents, padding and tokens before one that clears the state have no weights, whatever they are. Observers receive
// the rows of all queries.
func TestWeightsOfParts(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	const l, cleared = 170, 140
	for _, rule := range rules {
		for _, byLens := range []bool{false, true} {
			x := newInputs(r, rule, 2, 2, 1, 2, l, 6, 3)
			seen := &rowsOf{}
			o := x.options()
			o.Observers, o.Layer, o.State = []attn.Observer{seen}, "a layer", nil
			ends := [][]int{{30, 30, 160}, {165}}
			if byLens {
				ends = [][]int{{170}, {7}}
				o.Lens = []int{170, 7}
			} else {
				o.Documents = ends
			}
			clears := x.decay != nil && x.decay.Rank() > 1
			if clears {
				n := x.decay.Len() / (2 * 2 * l)
				for i := range n {
					x.decay.Data()[cleared*n+i] = float32(math.Inf(-1)) // of head 0 of sequence 0
				}
			}
			want := x.weights(0, 0, 0, 1)
			want = append(want, want...)
			for b := range 2 {
				from := 0
				for _, to := range ends[b] {
					for i, w := range x.weights(b, from, to, 1/math.Sqrt(6)) {
						want[b*2*l*l+i] += w
					}
					from = to
				}
			}
			for i := from1(ends); i < l; i++ { // padding
				x.k.Data()[(l+i)*6] = float32(math.NaN())
			}
			if clears { // not seen by head 0, and head 1 is not compared
				x.k.Data()[(cleared-3)*6] = float32(math.NaN())
			}
			y := linear.Attend(nil, x.q, x.k, x.v, o)
			if y.Weights != nil || !seen.ended || len(seen.rows) != 2*2*l {
				t.Fatalf("%s: %d rows, ended %v", rule, len(seen.rows), seen.ended)
			}
			if s := seen.sizes; s.Layer != "a layer" || s.B != 2 || s.H != 2 || s.G != 2 || s.Lq != l || s.Lk != l || !s.Signed || s.Queries(1) != ends[1][0] || s.Keys(1) != ends[1][0] {
				t.Errorf("sizes %+v", s)
			}
			o.Weights = true
			y = linear.Attend(nil, x.q, x.k, x.v, o)
			for at, row := range seen.rows {
				i := ((at.Batch*2+at.Head)*l + at.Query) * l
				if got := y.Weights.Data()[i:][:l]; at.Key != 0 || at.Position != at.Query || !equal(got, row) {
					t.Fatalf("%s: row %+v is %v, but the weights are %v", rule, at, row, got)
				}
				if clears && at.Batch == 0 && (at.Head == 1 || at.Query < cleared) {
					continue // they have seen NaN
				}
				for j, w := range row {
					if d := math.Abs(float64(w) - want[i+j]); !(d < 1e-5) {
						t.Fatalf("%s: weight %d of %+v is %v, want %v", rule, j, at, w, want[i+j])
					}
				}
			}
		}
	}
}

// from1 returns where the padding of sequence 1 begins.
func from1(ends [][]int) int { return ends[1][len(ends[1])-1] }

// equal is slices.Equal where NaN equals NaN.
func equal(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// With a normaliser, rows are means; a row without a divisor is 0.
func TestNormalizedWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 28))
	x := newInputs(r, "gated", 1, 2, 2, 2, 150, 4, 3)
	o := linear.Options{Feature: linear.ELU1, Normalize: true, Weights: true, Decay: x.decay}
	seen := &rowsOf{}
	o.Observers = []attn.Observer{seen}
	y := linear.Attend(nil, x.q, x.k, x.v, o)
	if seen.sizes.Signed {
		t.Error("weights that are means are signed")
	}
	for i := range 300 {
		sum := 0.0
		for _, w := range y.Weights.Data()[i*150:][:150] {
			sum += float64(w)
		}
		if !(math.Abs(sum-1) < 1e-5) {
			t.Fatalf("row %d sums to %v", i, sum)
		}
	}
	if d := relativeError(x.times(0, y.Weights.Data()), floats64(y.Out.Data())); !(d <= 1e-5) {
		t.Errorf("weights times values differ from the output by %.2g", d)
	}
	o.Feature = func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Scale(t, x, 0) }
	for _, w := range linear.Attend(nil, x.q, x.k, x.v, o).Weights.Data() {
		if w != 0 {
			t.Fatalf("a weight without a divisor is %v", w)
		}
	}
}

// Inspect receives the outputs and norms of values, and computes the weights of one head later, with the same bits.
func TestInspect(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 36))
	for _, rule := range rules {
		for _, normalize := range []bool{false, true} {
			x := newInputs(r, rule, 2, 2, 2, 4, 300, 8, 3)
			o := x.options()
			o.State, o.Weights, o.Layer, o.Lens = nil, true, "a layer", []int{300, 200}
			if normalize {
				o.Feature, o.Normalize = linear.ELU1, true
				if o.Beta != nil {
					continue
				}
			}
			o.Gates = tensor.New([]float32{1, 2, 0, 1}, 4)
			var parts attn.Parts
			o.Inspect = func(layer string, p attn.Parts) {
				if parts = p; layer != "a layer" {
					t.Errorf("layer %q", layer)
				}
			}
			y := linear.Attend(nil, x.q, x.k, x.v, o)
			for b := range 2 {
				for n := range 4 {
					at := (b*4 + n) * 300
					if !slices.Equal(parts.Weights(b, n), y.Weights.Data()[at*300:][:300*300]) {
						t.Fatalf("%s: weights of head %d of sequence %d differ", rule, n, b)
					}
					v := x.v.Data()[(at+7)*3:][:3]
					want := math.Sqrt(float64(v[0]*v[0] + v[1]*v[1] + v[2]*v[2]))
					if got := float64(parts.ValueNorms().At(b, n, 7)); math.Abs(got-want) > 1e-6*want {
						t.Errorf("norm %v, want %v", got, want)
					}
				}
			}
			if got, want := parts.Outputs().At(1, 1, 5, 2), y.Out.At(1, 1, 5, 2)/2; got != want || parts.Sizes.H != 4 || parts.Sizes.Signed == normalize || parts.RetainedBytes < 4*x.q.Len() {
				t.Errorf("output %v, want %v; sizes %+v, %d bytes", got, want, parts.Sizes, parts.RetainedBytes)
			}
			err := tensor.Catch(func() { parts.Weights(0, 4) })
			if err == nil || err.Error() != "linear: Attend: head is 4 of sequence 0, want less than 4, of a sequence less than 2" {
				t.Errorf("head 4: %v", err)
			}
		}
	}
}

// Weights of a bidirectional call are products with all keys of the sequence.
func TestBidirectionalWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 38))
	for _, normalize := range []bool{false, true} {
		x := newInputs(r, "linear", 2, 2, 1, 2, 270, 6, 3)
		o := linear.Options{Feature: linear.ELU1, Normalize: normalize, Bidirectional: true, Weights: true, Lens: []int{270, 100}}
		var parts attn.Parts
		o.Inspect = func(_ string, p attn.Parts) { parts = p }
		y := linear.Attend(nil, x.q, x.k, x.v, o)
		out := tensor.MatMul(nil, tensor.Reshape(nil, y.Weights, 4, 270, 270), tensor.Reshape(nil, x.v, 4, 270, 3))
		if d := relativeError(floats64(out.Data()), floats64(y.Out.Data())); !(d < 1e-5) {
			t.Errorf("normalize %v: weights times values differ from the output by %.2g", normalize, d)
		}
		if w := y.Weights; !(w.At(1, 1, 99, 99) > 0 && w.At(1, 0, 3, 99) > 0) || w.At(1, 1, 99, 100) != 0 || w.At(1, 1, 100, 3) != 0 {
			t.Error("padding has weights, or tokens have none")
		}
		if !slices.Equal(parts.Weights(1, 1), y.Weights.Data()[3*270*270:]) {
			t.Error("Inspect computes other weights")
		}

		// A record is of an encoder.
		recorder := heads.NewRecorder(heads.RecorderOptions{Sequence: 1})
		o.Observers, o.Inspect = recorder.Callbacks()
		o.Layer = "encoder.0.self"
		linear.Attend(nil, x.q, x.k, x.v, o)
		r, err := recorder.Record(heads.Texts{SourceTokens: slices.Repeat([]string{"x"}, 100)})
		if err != nil {
			t.Fatal(err)
		}
		l := &r.Layers[0]
		if l.Kind != heads.Encoder || l.Signed == normalize || len(l.Keys) != 100 || len(l.Check()) > 0 {
			t.Fatalf("normalize %v: the record has kind %v, signed %v, %d keys: %v", normalize, l.Kind, l.Signed, len(l.Keys), l.Check())
		}
		for i := range 100 {
			if !slices.Equal(l.Head(1)[i*100:][:100], y.Weights.Data()[(3*270+i)*270:][:100]) {
				t.Errorf("normalize %v: row %d of the record differs", normalize, i)
				break
			}
		}
	}
}

// Tensors without heads have weights without heads, and the output has the same bits with weights and without.
func TestWeightsWithoutHeads(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 30))
	q, k, v := tensor.Randn(r, 2, 9, 4), tensor.Randn(r, 2, 9, 4), tensor.Randn(r, 2, 9, 3)
	seen := &rowsOf{}
	y := linear.Attend(nil, q, k, v, linear.Options{Weights: true, Observers: []attn.Observer{seen}})
	if got := y.Weights.Shape(); !slices.Equal(got, []int{2, 9, 9}) || !seen.sizes.ThreeAxes {
		t.Errorf("weights have the shape %v, three axes %v", got, seen.sizes.ThreeAxes)
	}
	if plain := linear.Attend(nil, q, k, v, linear.Options{}); !slices.Equal(plain.Out.Data(), y.Out.Data()) {
		t.Error("weights change the output")
	}
	err := tensor.Catch(func() { linear.Attend(nil, q, k, v, linear.Options{Observers: []attn.Observer{nil}}) })
	if err == nil || err.Error() != "linear: Attend: observer is nil, want an Observer" {
		t.Errorf("a nil observer: %v", err)
	}
}

// Weights of long texts end where a decay has left nothing, and an ended context ends their computation.
func TestWeightsOfLongTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	x := newInputs(r, "gated_delta", 1, 1, 1, 1, 1000, 8, 3)
	for i := range x.decay.Data() {
		x.decay.Data()[i] = -0.5
	}
	o := x.options()
	o.State, o.Weights = nil, true
	y := linear.Attend(nil, x.q, x.k, x.v, o)
	if d := relativeError(floats64(y.Weights.Data()), x.weights(0, 0, 1000, 1/math.Sqrt(8))); !(d <= 1e-5) {
		t.Errorf("weights differ from the formula by %.2g", d)
	}
	if w := y.Weights.Data()[999*1000]; w != 0 {
		t.Errorf("the weight of a token that has faded is %v", w)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tape := tensor.NewTape(tensor.Eval)
	tape.SetContext(ctx)
	if err := tensor.Catch(func() { linear.Attend(tape, x.q, x.k, x.v, o) }); err == nil {
		t.Error("an ended context does not end the call")
	}
}

func BenchmarkWeights(b *testing.B) {
	r := rand.New(rand.NewPCG(33, 34))
	for _, e := range []int{64, 128} {
		for _, rule := range rules {
			x := newInputs(r, rule, 1, 1, 1, 1, 4096, e, 1)
			if x.decay != nil {
				for i := range x.decay.Data() {
					x.decay.Data()[i] *= 1e-3 // so that nothing fades
				}
			}
			o := x.options()
			o.State, o.Observers = nil, []attn.Observer{idle{}}
			b.Run(fmt.Sprintf("E=%d/%s", e, rule), func(b *testing.B) {
				for b.Loop() {
					linear.Attend(nil, x.q, x.k, x.v, o)
				}
			})
		}
	}
}

type idle struct{}

func (idle) Begin(attn.Sizes)        {}
func (idle) Row(attn.Row, []float32) {}
