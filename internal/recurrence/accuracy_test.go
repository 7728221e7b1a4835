package recurrence

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/internal/simd"
)

// plain is the recurrence in float32, token by token.
func plain(s *Sequence, state []float32) (out []float32) {
	e, v := s.E, s.V
	for t := range s.N {
		key, value := s.Key.at(t, e), s.Value.at(t, v)
		for i := range e {
			f := float32(1)
			if d := s.decays(); d > 0 {
				f = float32(math.Exp(float64(s.Decay.at(t, d)[i%d])))
			}
			for c := range v {
				state[i*v+c] *= f
			}
		}
		for c := range v {
			u := value[c]
			if s.erases() {
				read := float32(0)
				for i := range e {
					read += float32(state[i*v+c] * key[i])
				}
				u = s.Beta.at(t, 1)[0] * (u - read)
			}
			y := float32(0)
			for i := range e {
				state[i*v+c] += float32(key[i] * u)
				y += float32(state[i*v+c] * float32(s.Query.at(t, e)[i]*s.Scale))
			}
			out = append(out, y)
		}
	}
	return out
}

// The errors are at most twice those of the plain recurrence in float32, for every rule, also with keys that repeat, beta
// near 1 and decays between 0 and −Inf.
func TestAccuracy(t *testing.T) {
	const e, v, n = 32, 32, 400
	eachRule(t, e, func(t *testing.T, decays int, erases bool) {
		r := rand.New(rand.NewPCG(41, 42))
		for _, hard := range []string{"", "repeated keys", "beta near 1", "no decay", "decay −50", "some decays −Inf"} {
			s := random(r, n, e, v, decays, erases)
			for k := range n {
				if hard == "repeated keys" {
					copy(s.Key.at(k, e), s.Key.at(k%2, e))
				}
				if erases && (hard == "repeated keys" || hard == "beta near 1") {
					s.Beta.Data[k] = 1 - 1e-3*r.Float32()
				}
			}
			for i := range s.Decay.Data {
				switch {
				case hard == "no decay":
					s.Decay.Data[i] = 0
				case hard == "decay −50" && i/decays%7 == 3:
					s.Decay.Data[i] = -50
				case hard == "some decays −Inf" && r.IntN(9*decays) == 0:
					s.Decay.Data[i] = float32(math.Inf(-1))
				}
			}
			want := formula(s, make([]float64, e*v))
			naive := plain(s, make([]float32, e*v))
			simd.Each(func(kernels string) {
				st := NewState(e, v)
				Run(s, st, 0, Blocks(v))
				var ours, theirs, most float64
				for i, y := range want {
					ours += math.Pow(float64(s.Out.at(i/v, v)[i%v])-y, 2)
					theirs += math.Pow(float64(naive[i])-y, 2)
					most = max(most, math.Abs(y))
				}
				if ours = math.Sqrt(ours / float64(len(want))); !(ours <= 2*math.Sqrt(theirs/float64(len(want)))+1e-8*most) {
					t.Errorf("%s, %s: error %.3g, that of the plain recurrence %.3g", hard, kernels, ours, math.Sqrt(theirs/float64(len(want))))
				}
			})
		}
	})
}
