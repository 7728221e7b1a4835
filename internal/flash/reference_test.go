package flash

import (
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn/internal/simd"
)

// float is the number type of the plain formulas: float64 for the exact result, and float32 for
// the error that is allowed.
type float interface{ float32 | float64 }

// plain is the result of the plain formulas.
type plain[F float] struct {
	out, weights      []F // [B H Lq EV], [B H Lq Lk]
	lse               []F // [B H Lq]
	dsinks            []F // [H]
	dq, dk, dv, dbias []F
	dw                []F // of the w of the form
}

// problem is an attention with gradients of its results.
type problem struct {
	Attention
	SoftCap  float32
	Bias     *bias
	dout     []float32
	dlse     []float32 // nil means none
	dweights []float32 // nil means none
	seen     func(b, h, i, j int) bool

	// backwards makes the plain formulas multiply queries and keys in reverse order, which is
	// equally exact but rounds differently.
	backwards bool
}

// changes sets Attention.Changes from SoftCap and Bias.
func (p *problem) changes() {
	p.Changes = nil
	if p.SoftCap != 0 {
		p.Changes = append(p.Changes, Change{Rule: softCap(p.SoftCap)})
	}
	if x := p.Bias; x != nil {
		p.Changes = append(p.Changes, Change{
			Rule: x, Param: x.Data, Batch: x.Batch, Head: x.Head, Size: (p.Lq-1)*x.Row + (p.Lk-1)*x.Col + 1,
		})
	}
}

// changeGrads returns the gradients of the parameters of the changes.
func (p *problem) changeGrads(dbias []float32) [][]float32 {
	var grads [][]float32
	if p.SoftCap != 0 {
		grads = append(grads, nil)
	}
	if p.Bias != nil {
		grads = append(grads, dbias)
	}
	return grads
}

// softCap bounds scores: s becomes c·tanh(s/c).
type softCap float32

func (softCap) Adds() bool { return false }

func (c softCap) Apply(_ Row, _, s []float32) {
	simd.Scale(s, 1/float32(c), s)
	simd.Tanh(s, s)
	simd.Scale(s, float32(c), s)
}

func (c softCap) Back(_ Row, _, _, _, after, d []float32) {
	for j, v := range after {
		t := v / float32(c)
		d[j] *= 1 - float32(t*t)
	}
}

// bias is added to the scores; element (b, h, i, j) is at
// Data[b·Batch + h·Head + i·Row + j·Col]. A stride of 0 broadcasts.
type bias struct {
	Data                  []float32
	Batch, Head, Row, Col int
}

func (*bias) Adds() bool { return true }

func (x *bias) Apply(at Row, param, s []float32) {
	for j := range s {
		s[j] += param[at.Query*x.Row+(at.Key+j)*x.Col]
	}
}

func (x *bias) Back(at Row, _, dparam, _, _, d []float32) {
	for j, v := range d {
		dparam[at.Query*x.Row+(at.Key+j)*x.Col] += v
	}
}

// bias returns the index of the bias of a pair.
func (p *problem) bias(b, h, i, j int) (at int, ok bool) {
	x := p.Bias
	if x == nil {
		return 0, false
	}
	return b*x.Batch + h*x.Head + i*x.Row + j*x.Col, true
}

func (p *problem) kept(b, h, i, j int) bool {
	if p.Dropout == 0 {
		return true
	}
	n := ((b*p.H+h)*p.Lq+i)*p.Lk + j
	z := p.Key + uint64(n)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return uint32(z>>32) >= uint32(math.Round(float64(p.Dropout)*(1<<32)))
}

// solve computes everything by the plain formulas, pair by pair.
func solve[F float](p *problem) plain[F] {
	r := plain[F]{
		out: make([]F, p.B*p.H*p.Lq*p.EV), weights: make([]F, p.B*p.H*p.Lq*p.Lk),
		dq: make([]F, p.B*p.H*p.Lq*p.E), dk: make([]F, p.B*p.G*p.Lk*p.E), dv: make([]F, p.B*p.G*p.Lk*p.EV),
	}
	r.lse, r.dsinks = make([]F, p.B*p.H*p.Lq), make([]F, p.H)
	if p.Bias != nil {
		r.dbias = make([]F, len(p.Bias.Data))
	}
	scale := F(p.scale())
	if p.Gaussian != nil { // the scale may contain factors of the kernels
		scale = 0.5
	}
	r.dw = make([]F, len(p.features()))
	keep := F(1)
	if p.Dropout > 0 {
		keep = 1 / (1 - F(p.Dropout))
	}
	rounded := func(x F) F { // the error that is allowed is that of a rounded factor
		if single := F(1<<24)+1 == 1<<24; single {
			x = F(p.factor(float32(x)))
		}
		return x
	}
	for b := range p.B {
		for h := range p.H {
			g := h / (p.H / p.G)
			for i := range p.Lq {
				row := (b*p.H+h)*p.Lq + i
				q := p.Q.at(b, h, i)[:p.E]
				s, slope := make([]F, p.Lk), make([]F, p.Lk)
				var tanh []F // [Lk E], of additive scores, which take most of the time
				if p.Additive != nil {
					tanh = make([]F, p.Lk*p.E)
				}
				top, any := F(math.Inf(-1)), false
				for j := range s {
					if !p.seen(b, h, i, j) {
						continue
					}
					k := p.K.at(b, g, j)[:p.E]
					var x F
					for e := range q {
						if p.backwards {
							e = p.E - 1 - e
						}
						switch {
						case p.Additive != nil:
							tanh[j*p.E+e] = F(math.Tanh(float64(F(q[e]) + F(k[e]))))
							x += F(p.Additive[e]) * tanh[j*p.E+e]
						case p.Gaussian != nil:
							d := (F(q[e]) - F(k[e])) * F(p.Gaussian.w[e])
							x -= d * d
						default:
							x += F(p.factor(q[e])) * F(p.factor(k[e]))
						}
					}
					x *= scale
					slope[j] = scale
					if p.SoftCap != 0 {
						t := F(math.Tanh(float64(x / F(p.SoftCap))))
						x = F(p.SoftCap) * t
						slope[j] *= 1 - t*t
					}
					if at, ok := p.bias(b, h, i, j); ok {
						x += F(p.Bias.Data[at])
					}
					s[j] = x
					top, any = max(top, x), true
				}
				var dlse F
				if p.dlse != nil {
					dlse = F(p.dlse[row])
				}
				sink := F(math.Inf(-1))
				if p.Sinks != nil {
					sink = F(p.Sinks[h])
				}
				if !any {
					if r.lse[row] = sink; p.Sinks != nil {
						r.dsinks[h] += dlse
					}
					continue
				}
				top = max(top, sink)
				w := r.weights[row*p.Lk:][:p.Lk]
				var sum F
				for j := range s {
					if p.seen(b, h, i, j) {
						w[j] = F(math.Exp(float64(s[j] - top)))
						sum += w[j]
					}
				}
				if p.Sinks != nil {
					sum += F(math.Exp(float64(sink - top)))
				}
				r.lse[row] = top + F(math.Log(float64(sum)))
				dw := make([]F, p.Lk)
				var mean F
				for j := range s {
					w[j] /= sum
					if w[j] == 0 {
						continue
					}
					v := p.V.at(b, g, j)[:p.EV]
					do := p.dout[row*p.EV:][:p.EV]
					if p.kept(b, h, i, j) {
						dv := r.dv[((b*p.G+g)*p.Lk+j)*p.EV:]
						mixed := rounded(w[j] * keep)
						for e, x := range v {
							r.out[row*p.EV+e] += mixed * F(p.factor(x))
							dv[e] += mixed * rounded(F(do[e]))
							dw[j] += rounded(F(do[e])) * F(p.factor(x))
						}
						dw[j] *= keep
					}
					if p.dweights != nil {
						dw[j] += F(p.dweights[row*p.Lk+j])
					}
					if mean += w[j] * dw[j]; p.Rounded { // the mean is then computed from the result, below
						mean = 0
					}
				}
				if p.Rounded && p.dweights == nil {
					for e, do := range p.dout[row*p.EV:][:p.EV] {
						mean += F(do) * r.out[row*p.EV+e]
					}
				}
				if p.Sinks != nil {
					r.dsinks[h] += F(math.Exp(float64(sink-top))) / sum * (dlse - mean)
				}
				for j := range s {
					if w[j] == 0 {
						continue
					}
					ds := w[j] * (dw[j] - mean + dlse)
					if at, ok := p.bias(b, h, i, j); ok {
						r.dbias[at] += ds
					}
					ds *= slope[j]
					if p.features() == nil {
						ds = rounded(ds)
					}
					k := p.K.at(b, g, j)[:p.E]
					dk := r.dk[((b*p.G+g)*p.Lk+j)*p.E:]
					for e := range q {
						switch {
						case p.Gaussian != nil:
							w, d := F(p.Gaussian.w[e]), F(q[e])-F(k[e])
							r.dq[row*p.E+e] -= 2 * ds * d * w * w
							dk[e] += 2 * ds * d * w * w
							r.dw[e] -= 2 * ds * d * d * w
							continue
						case p.Additive == nil:
							r.dq[row*p.E+e] += ds * F(p.factor(k[e]))
							dk[e] += ds * F(p.factor(q[e]))
							continue
						}
						tanh := tanh[j*p.E+e]
						slope := ds * F(p.Additive[e]) * (1 - tanh*tanh)
						r.dq[row*p.E+e] += slope
						dk[e] += slope
						r.dw[e] += ds * tanh
					}
				}
			}
		}
	}
	return r
}

// factor returns a factor of a product, rounded if those of the problem are.
func (p *problem) factor(x float32) float32 {
	if !p.Rounded {
		return x
	}
	return simd.RoundBFloat16(make([]float32, 1), simd.RowMajor([]float32{x}, 1), 1, 1).Data[0]
}

// features returns the w of the form, or nil for the dot product.
func (p *problem) features() []float32 {
	if p.Gaussian != nil {
		return p.Gaussian.w
	}
	return p.Additive
}

// wGrad returns memory for the gradient of w and sets it in g.
func (p *problem) wGrad(g *Grads) []float32 {
	dw := make([]float32, len(p.features()))
	switch {
	case p.Gaussian != nil:
		g.Gaussian = dw
	case p.Additive != nil:
		g.Additive = dw
	}
	return dw
}

// forms are all forms of the score except the dot product.
var forms = []kind{
	{"additive", func(p *problem) {
		p.Additive, p.Scale = normal(rand.New(rand.NewPCG(6, 6)), p.E, 0.7), 1
	}},
	{"gaussian", func(p *problem) {
		p.Gaussian = NewGaussian(normal(rand.New(rand.NewPCG(6, 6)), p.E, 0.5))
	}},
	{"gaussian of one width", func(p *problem) {
		w := make([]float32, p.E)
		fillWith(w, 0.4)
		p.Gaussian = NewGaussian(w)
	}},
}

// singles returns the float32 results of the plain formulas, in both orders.
func singles(p *problem) [2]plain[float32] {
	p.backwards = true
	reversed := solve[float32](p)
	p.backwards = false
	return [2]plain[float32]{solve[float32](p), reversed}
}

// everything is a mask that hides nothing.
func everything(_, _, _, _ int) bool { return true }

// funcMask is a mask from a function of the reference: as spans with holes, or without holes if
// the rows of the function are intervals.
type funcMask struct {
	p         *problem
	intervals bool
}

func (m funcMask) Check(Sizes) error { return nil }

func (m funcMask) Keys(s Sizes, at Row) (lo, hi int) {
	if !m.intervals {
		return 0, s.Lk
	}
	lo = s.Lk
	for j := range s.Lk {
		if m.p.seen(at.Batch, at.Head, at.Query, j) {
			lo, hi = min(lo, j), j+1
		}
	}
	return lo, hi
}

func (m funcMask) Holes() bool { return !m.intervals }

func (m funcMask) Hide(_ Sizes, at Row, lo, hi int, attended []bool) {
	for j := lo; j < hi; j++ {
		attended[j] = attended[j] && m.p.seen(at.Batch, at.Head, at.Query, j)
	}
}

// normal returns n normally distributed numbers times scale.
func normal(r *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(scale * r.NormFloat64())
	}
	return x
}

// headFirst returns the layout [B H L E] without gaps.
func headFirst(data []float32, heads, length, size int) Heads {
	return Heads{data, heads * length * size, length * size, size}
}

// newProblem returns a problem in the layout [B H L E].
func newProblem(seed uint64, b, h, g, lq, lk, e, ev int) *problem {
	r := rand.New(rand.NewPCG(seed, 7))
	p := &problem{Attention: Attention{Sizes: Sizes{B: b, H: h, G: g, Lq: lq, Lk: lk}, E: e, EV: ev}, seen: everything}
	p.Q = headFirst(normal(r, b*h*lq*e, 1), h, lq, e)
	p.K = headFirst(normal(r, b*g*lk*e, 1), g, lk, e)
	p.V = headFirst(normal(r, b*g*lk*ev, 1), g, lk, ev)
	p.Scale = float32(1 / math.Sqrt(float64(e)))
	p.dout = normal(r, b*h*lq*ev, 1)
	return p
}
