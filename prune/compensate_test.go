package prune

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// lossy is an output map of 4 heads of 3, with outputs that depend on each other, so that the remaining heads can make up
// for others.
type lossy struct {
	OutputMap
	x [][]float32 // the outputs of the heads on both halves of the data
}

func newLossy(rng *rand.Rand, kept []bool, bias bool) lossy {
	const n, d = 12, 5
	mixed := tensor.Randn(rng, n, 7)
	draw := func(count int) (rows [][]float32, m *Moments) {
		m = NewMoments(n)
		hidden := tensor.Randn(rng, count, 7)
		x := tensor.MatMulT(nil, hidden, mixed).Data()
		for i := range x {
			x[i] += 0.3*float32(rng.NormFloat64()) + float32(i%n)/4
		}
		for row := range slices.Chunk(x, n) {
			rows = append(rows, row)
		}
		m.Add(x[:n*(count/3)]) // in two batches
		m.Add(x[n*(count/3):])
		return rows, m
	}
	l := lossy{OutputMap: OutputMap{Weight: tensor.Randn(rng, d, n), Kept: kept}}
	if bias {
		l.Bias = tensor.Randn(rng, d)
	}
	l.x, l.Fit = draw(400)
	others, check := draw(200)
	l.x, l.Check = append(l.x, others...), check
	return l
}

// outputs returns the outputs [N D] of the map. If cut, those of removed heads are 0.
func (l lossy) outputs(cut bool) (y [][]float64) {
	for _, x := range l.x {
		var out []float64
		for d, row := range l.rows() {
			sum := 0.
			if l.Bias != nil {
				sum = float64(l.Bias.Data()[d])
			}
			for j, w := range row {
				if !cut || l.Kept[j] {
					sum += float64(w) * float64(x[j])
				}
			}
			out = append(out, sum)
		}
		y = append(y, out)
	}
	return y
}

// squared returns the mean square of the difference of outputs.
func squared(a, b [][]float64) (sum float64) {
	for i := range a {
		for j, v := range a[i] {
			sum += (v - b[i][j]) * (v - b[i][j])
		}
	}
	return sum / float64(len(a))
}

// keptOf returns which columns of heads of 3 remain.
func keptOf(heads ...bool) (kept []bool) {
	for _, h := range heads {
		kept = append(kept, h, h, h)
	}
	return kept
}

// Ridge with a small penalty is the least-squares solution: what is left of the outputs is orthogonal to the inputs, and
// with a bias its mean is 0. The error never grows: it is that of removal at most, with Mean less, with Ridge least.
func TestCompensation(t *testing.T) {
	for _, bias := range []bool{true, false} {
		for _, kept := range [][]bool{keptOf(true, false, true, true), keptOf(false, true, false, false), keptOf(false, false, false, false)} {
			errs := map[string]float64{}
			for name, how := range map[string]Compensation{"zero": nil, "mean": Mean(), "ridge": Ridge(), "least squares": Ridge(1e-9)} {
				l := newLossy(rand.New(rand.NewPCG(1, 2)), kept, bias)
				want := l.outputs(false)
				if how != nil {
					if err := how(l.OutputMap); err != nil {
						t.Fatal(err)
					}
					for _, row := range l.rows() {
						for j, w := range row {
							if !kept[j] && w != 0 {
								t.Fatalf("%s: column %d of a removed head is %v", name, j, w)
							}
						}
					}
				}
				got := l.outputs(true)
				errs[name] = squared(got, want)
				if name != "least squares" {
					continue
				}
				for d := range want[0] {
					left := 0.
					for i := range want {
						left += got[i][d] - want[i][d]
					}
					if bias && math.Abs(left)/float64(len(want)) > 1e-5 {
						t.Errorf("the mean of what is left is %v", left/float64(len(want)))
					}
					for j, k := range kept {
						dot := 0.
						for i := range want {
							dot += (got[i][d] - want[i][d]) * float64(l.x[i][j])
						}
						if k && math.Abs(dot)/float64(len(want)) > 1e-4 {
							t.Errorf("kept %v, bias %v: input %d has %v of what is left", kept, bias, j, dot/float64(len(want)))
						}
					}
				}
			}
			if !(errs["least squares"] <= errs["ridge"]*1.000001 && errs["ridge"] <= errs["mean"]*1.000001 && errs["mean"] <= errs["zero"]*1.000001) {
				t.Errorf("kept %v, bias %v: errors %v", kept, bias, errs)
			}
			if bias && !(errs["ridge"] < 0.9*errs["zero"]) {
				t.Errorf("kept %v: errors %v, want less", kept, errs)
			}
		}
	}
}

// The solution is that of numpy.linalg.lstsq on the same vectors: see testdata/ridge.py.
func TestRidgeLeastSquares(t *testing.T) {
	text, err := os.ReadFile("testdata/ridge.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Strength             float64
		Kept                 []bool
		Inputs, Weight, Bias []float32
		Weights              []float64 `json:"want_weight"`
		Biases               []float64 `json:"want_bias"`
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for i, c := range cases {
		n := len(c.Kept)
		m := OutputMap{Weight: tensor.New(c.Weight, len(c.Weight)/n, n), Kept: c.Kept, Fit: NewMoments(n), Check: NewMoments(n)}
		if c.Bias != nil {
			m.Bias = tensor.New(c.Bias, len(c.Bias))
		}
		m.Fit.Add(c.Inputs[:10*n])
		m.Check.Add(c.Inputs[10*n:])
		if err := Ridge(c.Strength)(m); err != nil {
			t.Fatal(err)
		}
		near := func(got []float32, want []float64) bool {
			return slices.EqualFunc(got, want, func(a float32, b float64) bool { return math.Abs(float64(a)-b) <= 1e-5 })
		}
		if !near(c.Weight, c.Weights) || m.Bias != nil && !near(c.Bias, c.Biases) {
			t.Errorf("case %d: weight %v and bias %v, want %v and %v", i, c.Weight, c.Bias, c.Weights, c.Biases)
		}
	}
}

// The strength with the smallest error on the other data is chosen.
func TestRidgeChecks(t *testing.T) {
	kept := keptOf(true, false, true, true)
	solve := func(strengths ...float64) []float32 {
		l := newLossy(rand.New(rand.NewPCG(5, 6)), kept, true)
		if err := Ridge(strengths...)(l.OutputMap); err != nil {
			t.Fatal(err)
		}
		return l.Weight.Data()
	}
	if !slices.Equal(solve(1e3, 1e-3, 1e2), solve(1e-3)) {
		t.Error("another strength is chosen than the best")
	}
}

// Inputs that are constant, 0 or linearly dependent have a solution; NaN is an error.
func TestRidgeOfOddInputs(t *testing.T) {
	kept := keptOf(true, false, true, true)
	for name, change := range map[string]func(rng *rand.Rand, row []float32){
		"zero":      func(_ *rand.Rand, row []float32) { clear(row) },
		"constant":  func(_ *rand.Rand, row []float32) { copy(row, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) },
		"dependent": func(_ *rand.Rand, row []float32) { copy(row[3:], row[:3]); copy(row[6:], row[:6]) },
	} {
		rng := rand.New(rand.NewPCG(7, 7))
		l := newLossy(rng, kept, true)
		l.Fit, l.Check = NewMoments(12), NewMoments(12)
		for _, row := range l.x {
			change(rng, row)
			l.Fit.Add(row)
			l.Check.Add(row)
		}
		want := l.outputs(false)
		if err := Ridge()(l.OutputMap); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e := squared(l.outputs(true), want); !(e < 1e-4) {
			t.Errorf("%s: error %v", name, e)
		}
	}
	l := newLossy(rand.New(rand.NewPCG(7, 7)), kept, true)
	l.x[3][0] = float32(math.NaN())
	l.Fit.Add(l.x[3])
	if err := Ridge()(l.OutputMap); !errors.Is(err, errNotFinite) {
		t.Errorf("NaN: error %v", err)
	}
}

// A singular matrix has no factor: a pivot of 0 would make solutions of NaN.
func TestCholeskySingular(t *testing.T) {
	for _, a := range [][]float64{{0}, {4, 2, 2, 1}} {
		if err := cholesky(t.Context(), slices.Clone(a), int(math.Sqrt(float64(len(a))))); !errors.Is(err, errNotFinite) {
			t.Errorf("%v: error %v", a, err)
		}
	}
}

// Without strengths, Ridge chooses among those that its comment names, each of which is best for some data; without data
// to choose by it takes the largest.
func TestRidgeStrengths(t *testing.T) {
	kept := keptOf(true, false, true, true)
	strengths := []float64{1e-4, 1e-3, 1e-2, 0.1, 1}
	chosen := map[float64]bool{}
	for rows := range 40 {
		solve := func(strengths ...float64) []float32 {
			l := newLossy(rand.New(rand.NewPCG(uint64(rows), 3)), kept, true)
			l.Fit, l.Check = NewMoments(12), NewMoments(12)
			l.Fit.Add(slices.Concat(l.x[:rows]...)) // few: a penalty helps
			l.Check.Add(slices.Concat(l.x[40 : 40+rows]...))
			if rows == 0 {
				l.Fit.Add(slices.Concat(l.x[:40]...))
			}
			if err := Ridge(strengths...)(l.OutputMap); err != nil {
				t.Fatal(err)
			}
			return l.Weight.Data()
		}
		got := solve()
		if rows == 0 {
			tensortest.Same(t, "without data to choose by", got, solve(1))
			continue
		}
		tensortest.Same(t, "default", got, solve(strengths...))
		for _, s := range strengths {
			if slices.Equal(got, solve(s)) {
				chosen[s] = true
			}
		}
	}
	if len(chosen) != len(strengths) {
		t.Errorf("chosen are only %v", chosen)
	}
}

// Outputs that are not finite are an error of every compensation, also where no head remains, and change nothing.
func TestCompensationOfInfinities(t *testing.T) {
	for how, compensate := range Compensations() {
		for _, kept := range [][]bool{{true, false}, {false, false}} {
			for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
				m := OutputMap{
					Weight: tensor.New([]float32{1, 2, 3, 4}, 2, 2), Bias: tensor.New([]float32{5, 6}, 2), Kept: kept,
					Fit: NewMoments(2), Check: NewMoments(2),
				}
				m.Fit.Add([]float32{1, 2, 3, bad})
				m.Check.Add([]float32{1, 2, 3, 4})
				if err := compensate(m); !errors.Is(err, errNotFinite) {
					t.Errorf("%s of %v, kept %v: error %v, want %v", how, bad, kept, err, errNotFinite)
				}
				if !slices.Equal(m.Weight.Data(), []float32{1, 2, 3, 4}) || !slices.Equal(m.Bias.Data(), []float32{5, 6}) {
					t.Errorf("%s of %v, kept %v: the map has changed", how, bad, kept)
				}
			}
		}
	}
}

// A context that ends ends a compensation, at each of its checks, and leaves the map as it was.
func TestCompensationContext(t *testing.T) {
	kept := keptOf(true, false, true, true)
	all := partest.NewCountdown(math.MaxInt)
	l := newLossy(rand.New(rand.NewPCG(5, 6)), kept, true)
	l.Context = all
	if err := Ridge()(l.OutputMap); err != nil || all.Checks() < 100 {
		t.Fatalf("%d checks, error %v", all.Checks(), err)
	}
	for end := 1; end <= all.Checks(); end += 37 {
		l := newLossy(rand.New(rand.NewPCG(5, 6)), kept, true)
		before := slices.Clone(l.Weight.Data())
		l.Context = partest.NewCountdown(end)
		if err := Ridge()(l.OutputMap); !errors.Is(err, context.Canceled) || !slices.Equal(before, l.Weight.Data()) {
			t.Errorf("context that ends at check %d: error %v", end, err)
		}
	}
}
