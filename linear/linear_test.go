package linear_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

// inputs are the tensors of a call.
type inputs struct {
	q, k, v               *tensor.Tensor
	decay, beta, state    *tensor.Tensor
	b, h, kh, g, l, e, vs int
}

// rules are the combinations of decay and beta.
var rules = []string{"linear", "gated", "gated each", "gated constant", "delta", "gated_delta", "gated_delta each"}

func newInputs(r *rand.Rand, rule string, b, h, kh, g, l, e, v int) *inputs {
	x := &inputs{b: b, h: h, kh: kh, g: g, l: l, e: e, vs: v}
	x.q, x.k, x.v = tensor.Randn(r, b, h, l, e), tensor.Randn(r, b, kh, l, e), tensor.Randn(r, b, g, l, v)
	x.k = linear.Unit(nil, x.k)
	x.state = tensor.Randn(r, b, g, e, v)
	shapes := map[string][]int{"gated": {b, g, l}, "gated each": {b, g, l, e}, "gated constant": {g}, "gated_delta": {b, g, l}, "gated_delta each": {b, g, l, e}}
	if shape := shapes[rule]; shape != nil {
		x.decay = tensor.Randn(r, shape...)
		for i, d := range x.decay.Data() {
			x.decay.Data()[i] = -0.3 * d * d
		}
	}
	if rule == "delta" || len(rule) > 10 && rule[:11] == "gated_delta" {
		x.beta = tensor.Randn(r, b, g, l)
		for i, d := range x.beta.Data() {
			x.beta.Data()[i] = 1 / (1 + d*d)
		}
	}
	return x
}

func (x *inputs) options() linear.Options {
	return linear.Options{Decay: x.decay, Beta: x.beta, State: x.state}
}

// formula is the definition of Attend for one sequence, in float64: it returns out [N L V] and the last state [G E V].
func (x *inputs) formula(b, from, to int, first bool, scale float64) (out, states []float64) {
	n := max(x.h, x.g)
	out = make([]float64, n*x.l*x.vs)
	for head := range n {
		g, h := head/(n/x.g), head/(n/x.h)
		s := make([]float64, x.e*x.vs)
		for i := range s {
			if first && x.state != nil {
				s[i] = float64(x.state.Data()[(b*x.g+g)*len(s)+i])
			}
		}
		for t := from; t < to; t++ {
			key := x.k.Data()[((b*x.kh+g/(x.g/x.kh))*x.l+t)*x.e:][:x.e]
			query := x.q.Data()[((b*x.h+h)*x.l+t)*x.e:][:x.e]
			value := x.v.Data()[((b*x.g+g)*x.l+t)*x.vs:][:x.vs]
			for c := range x.vs {
				read := 0.0
				for i := range x.e {
					s[i*x.vs+c] *= math.Exp(x.decayAt(b, g, t, i))
					read += s[i*x.vs+c] * float64(key[i])
				}
				u := float64(value[c])
				if x.beta != nil {
					u = float64(x.beta.Data()[(b*x.g+g)*x.l+t]) * (u - read)
				}
				sum := 0.0
				for i := range x.e {
					s[i*x.vs+c] += float64(key[i]) * u
					sum += s[i*x.vs+c] * float64(query[i])
				}
				out[(head*x.l+t)*x.vs+c] = scale * sum
			}
		}
		if head%(n/x.g) == 0 {
			states = append(states, s...)
		}
	}
	return out, states
}

func (x *inputs) decayAt(b, g, t, i int) float64 {
	switch d := x.decay; {
	case d == nil:
		return 0
	case d.Rank() == 1:
		return float64(d.Data()[g])
	case d.Rank() == 3:
		return float64(d.Data()[(b*x.g+g)*x.l+t])
	default:
		return float64(d.Data()[((b*x.g+g)*x.l+t)*x.e+i])
	}
}

func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	for i, y := range want {
		if d := math.Abs(float64(got[i]) - y); !(d <= 2e-5*(1+math.Abs(y))) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got[i], y)
		}
	}
}

// Every rule, shape of heads, length, documents and first state computes the formula.
func TestAttend(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, rule := range rules {
		for _, heads := range [][3]int{{1, 1, 1}, {4, 2, 2}, {2, 2, 4}, {2, 1, 4}} {
			for _, l := range []int{1, 6, 33} {
				x := newInputs(r, rule, 2, heads[0], heads[1], heads[2], l, 5, 7)
				lens := []int{l, l / 2}
				o := x.options()
				o.Lens, o.Scale = lens, 0.7
				y := linear.Attend(nil, x.q, x.k, x.v, o)
				ends := [][]int{{l / 3, l / 3, l}, {0, l - l/4}}
				o.Lens, o.Documents = nil, ends
				packed := linear.Attend(nil, x.q, x.k, x.v, o)
				for b, n := range lens {
					want, last := x.formula(b, 0, n, true, 0.7)
					near(t, rule, y.Out.Data()[b*len(want):], want)
					near(t, rule+": state", y.State.Data()[b*len(last):], last)
					clear(want)
					for i, end := range ends[b] {
						from := 0
						if i > 0 {
							from = ends[b][i-1]
						}
						var part []float64
						part, last = x.formula(b, from, end, i == 0, 0.7)
						for i, p := range part {
							want[i] += p
						}
					}
					near(t, rule+" with documents", packed.Out.Data()[b*len(want):], want)
					near(t, rule+" with documents: state", packed.State.Data()[b*len(last):], last)
				}
			}
		}
	}
}

// Padding, other sequences, pieces, forks and heads alone change no bits.
func TestSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, rule := range rules {
		x := newInputs(r, rule, 2, 2, 2, 4, 50, 8, 40)
		x.state = nil
		o := x.options()
		o.Lens = []int{50, 37}
		want := linear.Attend(nil, x.q, x.k, x.v, o)
		st, err := linear.NewState(linear.StateConfig{Batch: 2, Heads: 4, KeySize: 8, ValueSize: 40})
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < 50; {
			n := min(1+r.IntN(9), 50-at)
			part := func(x *tensor.Tensor) *tensor.Tensor {
				if x == nil || x.Rank() < 3 {
					return x
				}
				return tensor.Slice(nil, x, 2, at, at+n)
			}
			o := linear.Options{Decay: part(x.decay), Beta: part(x.beta), Lens: []int{n, min(max(37-at, 0), n)}}
			k := part(x.k)
			for i := range k.Data() { // padding
				if l := i / 8 % n; i >= k.Len()/2 && l >= o.Lens[1] {
					k.Data()[i] = float32(math.NaN())
				}
			}
			fork := st.Fork()
			got := st.Attend(nil, part(x.q), k, part(x.v), o).Out
			if again := fork.Attend(nil, part(x.q), k, part(x.v), o).Out; !slices.Equal(again.Data(), got.Data()) {
				t.Fatalf("%s: a fork has other bits", rule)
			}
			if r.IntN(2) == 0 {
				st = fork.Select([]int{0, 1})
			}
			if w := part(want.Out); !slices.Equal(got.Data(), w.Data()) {
				t.Fatalf("%s: tokens %d to %d have other bits", rule, at, at+n)
			}
			at += n
		}
		if got := st.Tensor(nil); !slices.Equal(got.Data(), want.State.Data()) {
			t.Errorf("%s: the last state has other bits", rule)
		}
	}
}

// Gradients are slopes, with heads that share keys and queries, documents, and a feature with a normaliser.
func TestGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, rule := range rules {
		for _, heads := range [][3]int{{4, 2, 2}, {2, 1, 4}} {
			for _, normalize := range []bool{false, true} {
				if normalize && (rule == "delta" || len(rule) > 10 && rule[:11] == "gated_delta") {
					continue
				}
				x := newInputs(r, rule, 1, heads[0], heads[1], heads[2], 6, 3, 2)
				o := x.options()
				o.Documents = [][]int{{4, 6}}
				if normalize {
					o.Feature, o.Normalize = linear.ELU1, true
					o.State = linear.ELU1(nil, tensor.Randn(r, 1, heads[2], 3, 3))
				}
				all := map[string]*tensor.Tensor{"q": x.q, "k": x.k, "v": x.v, "decay": x.decay, "beta": x.beta, "state": o.State}
				for name, p := range all {
					if p == nil {
						delete(all, name)
						continue
					}
					p.Param()
				}
				wo := tensor.Randn(r, 1, max(heads[0], heads[2]), 6, 2)
				var ws *tensor.Tensor
				loss := func(t *tensor.Tape) *tensor.Tensor {
					y := linear.Attend(t, x.q, x.k, x.v, o)
					if ws == nil {
						ws = tensor.Randn(r, y.State.Shape()...)
					}
					return tensor.Add(t, tensor.Sum(t, tensor.Mul(t, y.Out, wo)), tensor.Sum(t, tensor.Mul(t, y.State, ws)))
				}
				tape := tensor.NewTape(tensor.Eval)
				tape.Backward(loss(tape), nil)
				for name, p := range all {
					for i := range p.Data() {
						const h = 1.0 / 128
						v := p.Data()[i]
						p.Data()[i] = v + h
						up := loss(nil).Data()[0]
						p.Data()[i] = v - h
						down := loss(nil).Data()[0]
						p.Data()[i] = v
						want, got := float64(up-down)/(2*h), float64(p.Grad().Data()[i])
						if !(math.Abs(got-want) < 0.01*(1+math.Abs(want))) {
							t.Errorf("%s %v %v: d%s[%d] is %v, want %v", rule, heads, normalize, name, i, got, want)
						}
					}
				}
			}
		}
	}
}

// With a feature and a normaliser, outputs are means of the values, weighted by the products of features.
func TestNormalize(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	x := newInputs(r, "linear", 1, 1, 1, 1, 9, 4, 3)
	y := linear.Attend(nil, x.q, x.k, x.v, linear.Options{Feature: linear.ELU1, Normalize: true})
	q, k := linear.ELU1(nil, x.q).Data(), linear.ELU1(nil, x.k).Data()
	for i := range 9 {
		var sum float64
		mean := make([]float64, 3)
		for j := range i + 1 {
			w := 0.0
			for e := range 4 {
				w += float64(q[i*4+e]) * float64(k[j*4+e])
			}
			sum += w
			for c := range mean {
				mean[c] += w * float64(x.v.Data()[j*3+c])
			}
		}
		for c := range mean {
			mean[c] /= sum
		}
		near(t, fmt.Sprint("mean ", i), y.Out.Data()[i*3:], mean)
	}
	none := func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Scale(t, x, 0) }
	for _, y := range linear.Attend(nil, x.q, x.k, x.v, linear.Options{Feature: none, Normalize: true}).Out.Data() {
		if y != 0 {
			t.Fatalf("a mean without weights is %v, want 0", y)
		}
	}
}

// All queries of a bidirectional call read the last state; padding has no influence.
func TestBidirectional(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, heads := range [][3]int{{4, 2, 2}, {2, 1, 4}} {
		x := newInputs(r, "linear", 2, heads[0], heads[1], heads[2], 7, 3, 4)
		n, lens := max(x.h, x.g), []int{7, 4}
		for _, p := range []*tensor.Tensor{x.q, x.k, x.v} {
			for i := range p.Data() {
				if l := i / p.Dim(3) % 7; i >= p.Len()/2 && l >= 4 {
					p.Data()[i] = float32(math.NaN())
				}
			}
			p.Param()
		}
		o := linear.Options{Lens: lens, Scale: 0.5, State: x.state, Bidirectional: true}
		tape := tensor.NewTape(tensor.Eval)
		y := linear.Attend(tape, x.q, x.k, x.v, o)
		w := tensor.Randn(r, y.Out.Shape()...)
		tape.Backward(tensor.Sum(tape, tensor.Mul(tape, y.Out, w)), nil)
		for b, l := range lens {
			_, last := x.formula(b, 0, l, true, 1)
			want := make([]float64, n*7*4)
			for head := range n {
				for i := range l {
					for c := range 4 {
						for e := range 3 {
							q := float64(x.q.At(b, head/(n/x.h), i, e))
							want[(head*7+i)*4+c] += 0.5 * q * last[(head/(n/x.g)*3+e)*4+c]
						}
					}
				}
			}
			near(t, "out", y.Out.Data()[b*len(want):], want)
		}
		for _, p := range []*tensor.Tensor{x.q, x.k, x.v} {
			for i := range p.Data() {
				got := float64(p.Grad().Data()[i])
				if p.Data()[i] != p.Data()[i] {
					if got != 0 {
						t.Fatalf("padding has a gradient of %v", got)
					}
					continue
				}
				v, h := p.Data()[i], float32(1.0/128)
				loss := func(at float32) float64 {
					p.Data()[i] = at
					return float64(tensor.Sum(nil, tensor.Mul(nil, linear.Attend(nil, x.q, x.k, x.v, o).Out, w)).Data()[0])
				}
				want := (loss(v+h) - loss(v-h)) / float64(2*h)
				p.Data()[i] = v
				if !(math.Abs(got-want) < 0.01*(1+math.Abs(want))) {
					t.Fatalf("gradient %d is %v, want %v", i, got, want)
				}
			}
		}
	}
	q := tensor.Zeros(1, 2, 3)
	if err := tensor.Catch(func() { linear.Attend(nil, q, q, q, linear.Options{Bidirectional: true, Beta: tensor.Zeros(1, 2)}) }); err == nil {
		t.Error("a bidirectional call with beta is accepted")
	}
}

// Exp with a normaliser is exact for queries and keys of any size: in pieces, with forks, padding, documents and a file.
func TestExpExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	const b, h, g, l, e, v = 2, 4, 2, 23, 5, 3
	x := newInputs(r, "linear", b, h, 1, g, l, e, v)
	for _, p := range []*tensor.Tensor{x.q, x.k} {
		for i := range p.Data() {
			switch r.IntN(4) {
			case 0:
				p.Data()[i] *= 1000
			case 1:
				p.Data()[i] = float32(1000 * (2*r.IntN(2) - 1))
			}
		}
	}
	x.k.Data()[3] = float32(math.Inf(-1)) // e^−Inf is 0
	lens := []int{l, 9}
	for _, o := range []linear.Options{
		{Lens: lens}, {Lens: lens, Bidirectional: true}, {Documents: [][]int{{4, 4, 20}, {0, 9}}}, {Documents: [][]int{{4, 4, 20}, {0, 9}}, Bidirectional: true},
	} {
		o.Feature, o.Normalize, o.Weights = linear.Exp, true, true
		y := linear.Attend(nil, x.q, x.k, x.v, o)
		for i := range b * h * l {
			s, head, at := i/(h*l), i/l%h, i%l
			ends := [][]int{{lens[s]}, {lens[s]}}
			if o.Documents != nil {
				ends = o.Documents
			}
			from, to := 0, at+1
			for _, end := range ends[s] {
				if end <= at {
					from = end
				} else if o.Bidirectional {
					to = end
					break
				}
			}
			if at >= ends[s][len(ends[s])-1] {
				to = from
			}
			most, logs := math.Inf(-1), []float64{}
			for j := from; j < to; j++ {
				for c := range e {
					logs = append(logs, float64(x.q.At(s, head, at, c))+float64(x.k.At(s, 0, j, c)))
					most = max(most, logs[len(logs)-1])
				}
			}
			sum, mean, weights := 0., make([]float64, v), make([]float64, l)
			for n, log := range logs {
				w := math.Exp(log - most)
				sum += w
				weights[from+n/e] += w
				for c := range mean {
					mean[c] += w * float64(x.v.At(s, head/(h/g), from+n/e, c))
				}
			}
			for c := range mean {
				mean[c] /= max(sum, 1)
			}
			for j := range weights {
				weights[j] /= max(sum, 1)
			}
			near(t, fmt.Sprint("output ", i), y.Out.Data()[i*v:], mean)
			near(t, fmt.Sprint("weights ", i), y.Weights.Data()[i*l:], weights)
		}
		if o.Documents != nil || o.Bidirectional {
			continue
		}
		s, err := linear.NewState(linear.StateConfig{Batch: b, Heads: g, KeySize: e, ValueSize: v, Normalize: true, Exp: true})
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < l; {
			n := min(1+r.IntN(6), l-at)
			part := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(nil, x, 2, at, at+n) }
			o := o
			o.Lens = []int{n, max(0, min(n, 9-at))}
			border := s.Len(0) / 4 * 4
			if s.Len(1) == s.Len(0) && border > 0 && s.Len(0) > border { // back to a border, and again
				again := tensor.Catch(func() {
					f := s.Fork()
					f.Truncate(border)
					o := o
					o.Lens = []int{at - border, at - border}
					slice := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(nil, x, 2, border, at) }
					f.Attend(nil, slice(x.q), slice(x.k), slice(x.v), o)
					if !slices.Equal(f.Tensor(nil).Data(), s.Tensor(nil).Data()) {
						t.Error("tokens after Truncate have other bits")
					}
				})
				_ = again // a head whose elements all vanished has another border
			}
			path := t.TempDir() + "/state.safetensors"
			if err := s.WriteFile(path); err != nil {
				t.Fatal(err)
			}
			read := s.Fork()
			read.Truncate(0)
			if err := read.ReadFile(path); err != nil {
				t.Fatal(err)
			}
			s.Fork().Attend(nil, part(x.q), part(x.k), part(x.v), o)
			s = read
			if got := s.Attend(nil, part(x.q), part(x.k), part(x.v), o).Out; !slices.Equal(got.Data(), part(y.Out).Data()) {
				t.Fatalf("tokens %d to %d have other bits", at, at+n)
			}
			at += n
		}
		if !slices.Equal(s.Tensor(nil).Data(), y.State.Data()) {
			t.Error("the state has other bits")
		}
		if err := tensor.Catch(func() { s.Attend(nil, x.q, x.k, x.v, linear.Options{Feature: linear.ELU1, Normalize: true}) }); err == nil {
			t.Error("a State of Exp continues with another feature")
		}
	}
	if err := tensor.Catch(func() {
		linear.Attend(nil, x.q, x.k, x.v, linear.Options{Feature: linear.Exp, Normalize: true, Decay: tensor.Zeros(g)})
	}); err == nil {
		t.Error("Exp with a decay is accepted")
	}
	if _, err := linear.NewState(linear.StateConfig{Heads: 1, KeySize: 1, Exp: true}); err == nil {
		t.Error("a State of Exp without Normalize is accepted")
	}
}
