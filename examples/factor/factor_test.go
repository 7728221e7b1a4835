package factor_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/examples/factor"
	"github.com/attn-go/attn/tensor"
)

// Products of waves are powers of a cosine.
func TestWaves(t *testing.T) {
	x := []float32{0, 0.7, 2.5, 4.9}
	for _, p := range []int{1, 5, 20} {
		y := factor.Waves(p)(nil, tensor.New(x, 1, len(x), 1))
		if want := []int{1, len(x), 2*p + 1}; !slices.Equal(y.Shape(), want) {
			t.Fatalf("features %v, want %v", y.Shape(), want)
		}
		kernel := tensor.MatMulT(nil, y, y).Data()
		for i, q := range x {
			for j, k := range x {
				want := math.Pow(math.Cos(math.Pi*float64(q-k)/10), float64(2*p))
				if got := float64(kernel[i*len(x)+j]); math.Abs(got-want) > 1e-6 {
					t.Errorf("p %d, %v and %v: %v, want %v", p, q, k, got, want)
				}
			}
		}
	}
}

// The answer to a question is the last digit of its letter.
func TestDraw(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := factor.Draw(rand.New(rand.NewPCG(1, 2)), 50, 12, 5, again)
		repeated := 0
		for s := range b.Sequences {
			at := s * b.Length
			last := map[int]int{}
			for i := at; i < at+12; i++ {
				if _, ok := last[b.Letters[i]]; ok {
					repeated++
				}
				last[b.Letters[i]] = b.Digits[i]
				if b.Answers[i] != -1 {
					t.Errorf("a pair has the answer %d", b.Answers[i])
				}
			}
			for i := at + 12; i < at+b.Length; i++ {
				if want, ok := last[b.Letters[i]]; !ok || b.Answers[i] != want || b.Digits[i] != factor.Digits {
					t.Errorf("answer %d, want %d", b.Answers[i], want)
				}
			}
		}
		if b.Length != 17 || again == (repeated == 0) {
			t.Errorf("again %v: length %d, %d letters came again", again, b.Length, repeated)
		}
	}
}

// The output of a layer is its matrix times the values, and no token sees a later one.
func TestMatrix(t *testing.T) {
	for _, rule := range factor.Rules {
		rng := rand.New(rand.NewPCG(1, 2))
		r := factor.NewTraining(rule, 8, 10, 1, true)
		r.Next()
		b := factor.Draw(rng, 2, 6, 3, true)
		a := r.Matrix(b)
		if want := []int{2, 9, 9}; !slices.Equal(a.Shape(), want) {
			t.Fatalf("%s: matrix %v, want %v", rule, a.Shape(), want)
		}
		values := tensor.Randn(rng, 2, 9, 5)
		got, want := tensor.MatMul(nil, a, values).Data(), r.Attend(nil, b, values).Data()
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Fatalf("%s: output %d is %v, the matrix says %v", rule, i, want[i], got[i])
			}
		}
		for i, x := range a.Data() {
			if i/9%9 < i%9 && x != 0 {
				t.Errorf("%s: a token sees a later one", rule)
			}
		}
	}
}
