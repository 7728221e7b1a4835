package linear_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
)

var (
	combinations = flag.Int("combinations", 0, "how many random combinations of options are tried (0: 400, -short: 100)")
	first        = flag.Int("first", 0, "the number of the first of them")
)

// For any combination of options, Attend computes the formula: out, last state, weights and gradients; and a State
// computes the same bits in pieces.
func TestCombinations(t *testing.T) {
	n := *combinations
	switch {
	case n > 0:
	case testing.Short():
		n = 100
	default:
		n = 400
	}
	for seed := *first; seed < *first+n; seed++ {
		c := drawCombination(uint64(seed))
		if c.try(t); t.Failed() {
			t.Fatalf("combination %d: %s", seed, c.name)
		}
	}
}

// feature is a feature map and its formula in float64.
type feature struct {
	name     string
	f        linear.Feature
	plain    func(x []float64) []float64
	positive bool // no negative numbers, as Normalize needs
	short    bool // features of short vectors are short, as the delta rule needs
}

func elementwise(f func(x float64) float64) func(x []float64) []float64 {
	return func(x []float64) []float64 {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = f(v)
		}
		return y
	}
}

var features = []feature{
	{"none", nil, slices.Clone[[]float64], false, true},
	{"unit", linear.Unit, func(x []float64) []float64 {
		n := math.Sqrt(dot(x, x) + 1e-6)
		return elementwise(func(x float64) float64 { return x / n })(x)
	}, false, true},
	{"ReLU", tensor.ReLU, elementwise(func(x float64) float64 { return max(x, 0) }), true, true},
	{"ELU+1", linear.ELU1, elementwise(func(x float64) float64 { return max(x, 0) + math.Exp(min(x, 0)) }), true, false},
	{"softplus", tensor.Softplus, elementwise(func(x float64) float64 { return math.Log1p(math.Exp(x)) }), true, false},
	{"exp", linear.Exp, elementwise(math.Exp), true, false},
	{"x and −x", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { // of another size
		return tensor.ReLU(t, tensor.Concat(t, 3, x, tensor.Scale(t, x, -1)))
	}, func(x []float64) []float64 {
		y := make([]float64, 2*len(x))
		for i, v := range x {
			y[i], y[len(x)+i] = max(v, 0), max(-v, 0)
		}
		return y
	}, true, true},
}

func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// combination is a random call of Attend.
type combination struct {
	name                   string
	b, h, kh, g, n         int // B, H, K, G, N
	l, e, phi, v, columns  int // phi is E of the features; columns are those of a state
	tensors                map[string]*tensor.Tensor
	o                      linear.Options // without tensors
	feature                feature
	scale                  float64
	flat, weights, observe bool
	exp                    bool // a state has another column, with the logarithms of its units
	procs                  int
	simd                   string
	wout, wstate           *tensor.Tensor // weights of the loss
	cut                    []int          // sizes of pieces
}

func drawCombination(seed uint64) *combination {
	r := rand.New(rand.NewPCG(seed, 78))
	some := func(p float64) bool { return r.Float64() < p }
	c := &combination{b: 1 + r.IntN(3), l: r.IntN(20), e: 1 + r.IntN(12), v: 1 + r.IntN(12), tensors: map[string]*tensor.Tensor{}}
	heads := [][3]int{{1, 1, 1}, {1, 1, 1}, {2, 2, 2}, {4, 2, 2}, {2, 1, 4}, {3, 1, 1}, {2, 2, 4}, {1, 2, 4}}[r.IntN(8)]
	c.h, c.kh, c.g = heads[0], heads[1], heads[2]
	c.n = max(c.h, c.g)
	switch r.IntN(10) {
	case 0: // more than a tile of 64 tokens
		c.l, c.b = 60+r.IntN(80), 1
	case 1: // more than a block of 32 columns
		c.v = 30 + r.IntN(40)
	}
	delta, decay := some(0.5), []string{"", "", "token", "each", "head"}[r.IntN(5)]
	allowed := slices.DeleteFunc(slices.Clone(features), func(f feature) bool { return delta && !f.short })
	c.feature = allowed[r.IntN(len(allowed))]
	if some(0.3) {
		c.feature = features[0]
	}
	if c.feature.name == "exp" {
		decay = ""
	}
	c.o.Feature, c.phi = c.feature.f, len(c.feature.plain(make([]float64, c.e)))
	c.o.Normalize = c.feature.positive && !delta && some(0.6)
	c.exp = c.o.Normalize && c.feature.name == "exp"
	c.o.Bidirectional = !delta && decay == "" && some(0.4)
	if c.scale = 1 / math.Sqrt(float64(c.phi)); some(0.5) {
		c.scale, c.o.Scale = 0.75, 0.75
	}
	if c.columns = c.v; c.o.Normalize {
		c.columns++
	}
	switch {
	case some(0.4):
		c.o.Lens = make([]int, c.b)
		for b := range c.o.Lens {
			c.o.Lens[b] = r.IntN(c.l + 1)
		}
	case some(0.4):
		c.o.Documents = make([][]int, []int{1, c.b}[r.IntN(2)])
		for i := range c.o.Documents {
			ends := make([]int, 1+r.IntN(4))
			for j := range ends {
				ends[j] = r.IntN(c.l + 1)
			}
			slices.Sort(ends)
			c.o.Documents[i] = ends
		}
	}
	draw := func(name string, f func(x float64) float64, shape ...int) {
		x := tensor.Randn(r, shape...)
		for i, v := range x.Data() {
			x.Data()[i] = float32(f(float64(v)))
		}
		c.tensors[name] = x
	}
	same := func(x float64) float64 { return x }
	draw("q", same, c.b, c.h, c.l, c.e)
	draw("k", func(x float64) float64 { return x / math.Sqrt(float64(c.e)) }, c.b, c.kh, c.l, c.e)
	if delta { // longer keys make a state grow
		c.tensors["k"] = linear.Unit(nil, c.tensors["k"])
	}
	draw("v", same, c.b, c.g, c.l, c.v)
	if decay != "" {
		clears := some(0.3)
		form := map[string][]int{"token": {c.b, c.g, c.l}, "each": {c.b, c.g, c.l, c.phi}, "head": {c.g}}[decay]
		draw("decay", func(x float64) float64 {
			if clears && some(0.1) {
				return math.Inf(-1)
			}
			return 0.02 - 0.3*x*x
		}, form...)
	}
	if delta {
		most := float64(1 + r.IntN(2))
		draw("beta", func(x float64) float64 { return most / (1 + x*x) }, c.b, c.g, c.l)
	}
	if some(0.4) {
		f := same
		if c.o.Normalize {
			f = math.Abs
		}
		columns := c.columns
		if c.exp {
			columns++
		}
		draw("state", f, c.b, c.g, c.phi, columns)
	}
	if some(0.3) {
		draw("gates", func(x float64) float64 { return math.Max(x, 0) }, []int{c.b, c.n}[r.IntN(2):]...)
	}
	c.flat, c.weights, c.observe = c.n == 1 && c.kh == 1 && decay != "head" && some(0.5), some(0.5), some(0.3)
	c.procs, c.simd = []int{1, 1, 2, 2, 3, 4}[r.IntN(6)], simd.Implementation()
	if some(0.3) {
		var sets []string
		simd.Each(func(name string) { sets = append(sets, name) })
		c.simd = sets[r.IntN(len(sets))]
	}
	c.wout, c.wstate = tensor.Randn(r, c.b, c.n, c.l, c.v), tensor.Randn(r, c.b, c.g, c.phi, c.columns)
	for left := c.l; left > 0; left -= c.cut[len(c.cut)-1] {
		c.cut = append(c.cut, min(left, 1+r.IntN(9)))
	}
	for name, x := range c.tensors { // padding may be anything
		if x.Rank() < 3 || name == "state" {
			continue
		}
		size, heads := x.Len()/max(c.b*x.Dim(1)*c.l, 1), x.Dim(1)
		for i := range x.Data() {
			if row := i / size; row%c.l >= c.length(row/c.l/heads) {
				x.Data()[i] = float32([]float64{math.NaN(), math.Inf(1)}[i%2])
			}
		}
	}
	c.name = fmt.Sprintf("B=%d H=%d K=%d G=%d L=%d E=%d V=%d, delta %v, decay %q, feature %s, normalise %v, bidirectional %v, lengths %v, documents %v, state %v, gates %v, flat %v, %d threads, %s",
		c.b, c.h, c.kh, c.g, c.l, c.e, c.v, delta, decay, c.feature.name, c.o.Normalize, c.o.Bidirectional, c.o.Lens, c.o.Documents, c.tensors["state"] != nil, c.tensors["gates"] != nil, c.flat, c.procs, c.simd)
	return c
}

// ends returns the ends of the documents of a sequence.
func (c *combination) ends(b int) []int {
	switch d := c.o.Documents; {
	case d != nil:
		return d[min(b, len(d)-1)]
	case c.o.Lens != nil:
		return c.o.Lens[b : b+1]
	}
	return []int{c.l}
}

func (c *combination) length(b int) int {
	ends := c.ends(b)
	return ends[len(ends)-1]
}

// numbers are tensors in float64.
type numbers map[string][]float64

// formula is the definition in float64: outputs [B N L V], the last states [B G E V] and weights [B N L L].
func (c *combination) formula(in numbers) (out, states, weights []float64) {
	out, weights = make([]float64, c.b*c.n*c.l*c.v), make([]float64, c.b*c.n*c.l*c.l)
	row := func(name string, head, t, size int) []float64 { return in[name][(head*c.l+t)*size:][:size] }
	for bn := range c.b * c.n {
		b, n := bn/c.n, bn%c.n
		g := n / (c.n / c.g)
		bg := b*c.g + g
		query := func(t int) []float64 { return c.feature.plain(row("q", b*c.h+n/(c.n/c.h), t, c.e)) }
		key := func(t int) []float64 { return c.feature.plain(row("k", b*c.kh+g/(c.g/c.kh), t, c.e)) }
		decay := func(t, i int) float64 {
			switch d := c.tensors["decay"]; {
			case d == nil:
				return 1
			case d.Rank() == 1:
				return math.Exp(in["decay"][g])
			case d.Rank() == 3:
				return math.Exp(in["decay"][bg*c.l+t])
			}
			return math.Exp(row("decay", bg, t, c.phi)[i])
		}
		gate := 1.0
		if x := in["gates"]; x != nil {
			gate = x[(b*c.n+n)%len(x)]
		}
		state := make([]float64, c.phi*c.columns)
		for i := range state {
			switch x := in["state"]; {
			case x == nil:
			case c.exp:
				row := x[(bg*c.phi+i/c.columns)*(c.columns+1):][:c.columns+1]
				state[i] = row[i%c.columns] * math.Exp(row[c.columns])
			default:
				state[i] = x[bg*len(state)+i]
			}
		}
		read := func(t int) {
			q, y := query(t), make([]float64, c.columns)
			for i := range c.phi {
				for j := range y {
					y[j] += c.scale * q[i] * state[i*c.columns+j]
				}
			}
			divisor := 1.0
			if c.o.Normalize {
				divisor = y[c.v]
			}
			for j := range c.v {
				if divisor != 0 {
					out[(bn*c.l+t)*c.v+j] = gate * y[j] / divisor
				}
			}
			w := weights[(bn*c.l+t)*c.l:][:c.l]
			for j := range w {
				if w[j] /= divisor; divisor == 0 {
					w[j] = 0
				}
			}
		}
		from := 0
		for d, end := range c.ends(b) {
			if d > 0 {
				clear(state)
			}
			for t := from; t < end; t++ {
				k, u := key(t), make([]float64, c.columns)
				copy(u, row("v", bg, t, c.v))
				if c.o.Normalize {
					u[c.v] = 1
				}
				for i := range state {
					state[i] *= decay(t, i/c.columns)
				}
				if in["beta"] != nil {
					for j := range u {
						for i := range k {
							u[j] -= k[i] * state[i*c.columns+j]
						}
						u[j] *= in["beta"][bg*c.l+t]
					}
				}
				for i := range state {
					state[i] += k[i/c.columns] * u[i%c.columns]
				}
				y, last := query(t), from
				for i := range y {
					y[i] *= c.scale
				}
				if c.o.Bidirectional {
					for l := from; l < end; l++ {
						weights[(bn*c.l+t)*c.l+l] = dot(y, key(l))
					}
					continue
				}
				for l := t; l >= last; l-- {
					k, w := key(l), &weights[(bn*c.l+t)*c.l+l]
					if *w = dot(y, k); in["beta"] != nil {
						*w *= in["beta"][bg*c.l+l]
					}
					for i := range y {
						if in["beta"] != nil {
							y[i] -= *w * k[i]
						}
						y[i] *= decay(l, i)
					}
				}
				read(t)
			}
			for t := from; t < end && c.o.Bidirectional; t++ {
				read(t)
			}
			from = end
		}
		if n%(c.n/c.g) == 0 {
			states = append(states, state...)
		}
	}
	return out, states, weights
}

// unit returns the unit of a row of a state.
func (c *combination) unit(state *tensor.Tensor, row int) float64 {
	if !c.exp {
		return 1
	}
	return math.Exp(float64(state.Data()[(row+1)*(c.columns+1)-1]))
}

// attend is the call, or its tokens from lo to hi in a State.
func (c *combination) attend(t *tensor.Tape, s *linear.State, lo, hi int) linear.Output {
	o := c.o
	part := func(name string) *tensor.Tensor {
		x := c.tensors[name]
		if x != nil && s != nil && x.Rank() >= 3 {
			x = tensor.Slice(t, x, 2, lo, hi)
		}
		if x != nil && c.flat && name != "gates" {
			x = tensor.Reshape(t, x, slices.Delete(slices.Clone(x.Shape()), 1, 2)...)
		}
		return x
	}
	o.Decay, o.Beta, o.Gates = part("decay"), part("beta"), part("gates")
	if s == nil {
		o.State = part("state")
		return linear.Attend(t, part("q"), part("k"), part("v"), o)
	}
	o.Lens = nil
	for b := range c.o.Lens {
		o.Lens = append(o.Lens, max(0, min(c.o.Lens[b], hi)-lo))
	}
	return s.Attend(t, part("q"), part("k"), part("v"), o)
}

func (c *combination) try(t *testing.T) {
	in, wantGrads := numbers{}, c.b*c.l > 0
	for name, x := range c.tensors {
		x.Param()
		for _, v := range x.Data() {
			in[name] = append(in[name], float64(v))
		}
	}
	out, states, weights := c.formula(in)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	simd.Each(func(name string) {
		if name != c.simd || t.Failed() {
			return
		}
		y := c.attend(nil, nil, 0, 0)
		within(t, "out", y.Out.Data(), out)
		state := tensor.Slice(nil, y.State, y.State.Rank()-1, 0, c.columns).Data()
		for i := range state {
			state[i] *= float32(c.unit(y.State, i/c.columns))
		}
		within(t, "state", state, states)
		var rows observe.ChosenWeights
		c.o.Weights = c.weights
		if c.observe {
			c.o.Observers = append(c.o.Observers, &rows)
		}
		tape := tensor.NewTape(tensor.Eval)
		again := c.attend(tape, nil, 0, 0)
		c.o.Weights, c.o.Observers = false, nil
		if !slices.Equal(again.Out.Data(), y.Out.Data()) || !slices.Equal(again.State.Data(), y.State.Data()) {
			t.Error("a tape or weights change the bits")
		}
		if c.weights {
			within(t, "weights", again.Weights.Data(), weights)
		}
		if c.observe {
			within(t, "rows", rows.Weights().Data(), weights)
		}
		runtime.GOMAXPROCS(1)
		if one := c.attend(nil, nil, 0, 0); !slices.Equal(one.Out.Data(), y.Out.Data()) || !slices.Equal(one.State.Data(), y.State.Data()) {
			t.Error("one thread has other bits")
		}
		runtime.GOMAXPROCS(c.procs)
		if c.o.Documents == nil && c.tensors["state"] == nil && !c.o.Bidirectional {
			c.inPieces(t, y)
		}
		if wantGrads {
			c.gradients(t, tape, again, in)
		}
	})
}

// inPieces compares a State with the whole.
func (c *combination) inPieces(t *testing.T, want linear.Output) {
	s, err := linear.NewState(linear.StateConfig{Batch: c.b, Heads: c.g, KeySize: c.phi, ValueSize: c.v, Normalize: c.o.Normalize, Exp: c.exp})
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for i, n := range c.cut {
		if i%3 == 1 {
			s = s.Fork()
		}
		y := c.attend(nil, s, at, at+n)
		axis := want.Out.Rank() - 2
		if !slices.Equal(y.Out.Data(), tensor.Slice(nil, want.Out, axis, at, at+n).Data()) {
			t.Fatalf("tokens %d to %d of pieces %v have other bits", at, at+n, c.cut)
		}
		at += n
	}
	if !slices.Equal(s.Tensor(nil).Data(), want.State.Data()) {
		t.Errorf("the state has other bits in pieces %v", c.cut)
	}
}

// gradients compares the slope in a random direction with that of the formula.
func (c *combination) gradients(t *testing.T, tape *tensor.Tape, y linear.Output, in numbers) {
	loss := tensor.Add(tape, tensor.Sum(tape, tensor.Mul(tape, tensor.Reshape(tape, y.Out, c.wout.Shape()...), c.wout)),
		tensor.Sum(tape, tensor.Mul(tape, tensor.Reshape(tape, tensor.Slice(tape, y.State, y.State.Rank()-1, 0, c.columns), c.wstate.Shape()...), c.wstate)))
	tape.Backward(loss, nil)
	r := rand.New(rand.NewPCG(1, uint64(c.l)))
	const h = 1e-6
	up, down := numbers{}, numbers{}
	var got, size float64
	for _, name := range []string{"q", "k", "v", "decay", "beta", "state", "gates"} {
		if c.tensors[name] == nil {
			continue
		}
		up[name], down[name] = slices.Clone(in[name]), slices.Clone(in[name])
		for i, d := range c.tensors[name].Grad().Data() {
			x := in[name][i]
			if name == "state" && c.exp && i%(c.columns+1) == c.columns {
				continue // no gradient flows to units
			}
			if (x-x != 0 || name == "gates" && x == 0) && d == d { // a gate of 0 has a slope, but no smaller neighbour
				if x-x != 0 && d != 0 {
					t.Fatalf("%s[%d] = %v has the gradient %v", name, i, x, d)
				}
				continue
			}
			step := r.NormFloat64()
			up[name][i] += h * step
			down[name][i] -= h * step
			got += float64(d) * step
			size += math.Abs(float64(d) * step)
		}
	}
	value := func(in numbers) (sum float64) {
		out, states, _ := c.formula(in)
		for i, w := range c.wout.Data() {
			sum += out[i] * float64(w)
		}
		for i, w := range c.wstate.Data() {
			if states[i] != 0 {
				sum += states[i] / c.unit(y.State, i/c.columns) * float64(w)
			}
		}
		return sum
	}
	if want := (value(up) - value(down)) / (2 * h); !(math.Abs(got-want) <= 2e-4*(size+1)) {
		t.Errorf("the slope is %v, want %v", got, want)
	}
}

// within compares with the formula, relative to the largest number around.
func within(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d numbers, want %d", what, len(got), len(want))
	}
	most := 1.0
	for _, y := range want {
		most = max(most, math.Abs(y))
	}
	for i, y := range want {
		if d := math.Abs(float64(got[i]) - y); !(d <= 2e-5*most) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], y)
			return
		}
	}
}
