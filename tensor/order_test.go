package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
)

var nan32, inf32 = float32(math.NaN()), float32(math.Inf(1))

// Rows with equal elements, NaN and infinities are ordered as by straightforward loops: NaN first, then by value, equal
// ones by index.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pool := []float32{-inf32, -2, -1, 0, 0.5, 1, 1, 3, inf32, nan32}
	for _, n := range []int{1, 2, 3, 17, 300} {
		x := Zeros(2, 3, n)
		for i := range x.data {
			if x.data[i] = pool[rng.IntN(len(pool))]; n == 300 {
				x.data[i] = float32(rng.NormFloat64())
			}
		}
		before := x.Clone()
		for _, k := range []int{1, 2, n/2 + 1, n} {
			if k > n {
				continue
			}
			values, at := TopK(x, k)
			if !slices.Equal(values.Shape(), []int{2, 3, k}) || len(at) != 6*k {
				t.Fatalf("k %d of %d: shape %v and %d indices", k, n, values.Shape(), len(at))
			}
			for r := range 6 {
				row := x.data[r*n:][:n]
				var want []int // chosen one by one
				for range k {
					best := -1
					for i, v := range row {
						if !slices.Contains(want, i) && (best < 0 || v > row[best] || v != v && row[best] == row[best]) {
							best = i
						}
					}
					want = append(want, best)
				}
				if got := at[r*k:][:k]; !slices.Equal(got, want) {
					t.Errorf("k %d of %v: indices %v, want %v", k, row, got, want)
				}
				for i, j := range want {
					if math.Float32bits(values.data[r*k+i]) != math.Float32bits(row[j]) {
						t.Errorf("k %d of %v: value %d is %v, want %v", k, row, i, values.data[r*k+i], row[j])
					}
				}
				if k == 1 && ArgMax(x)[r] != want[0] {
					t.Errorf("ArgMax of %v is %d, want %d", row, ArgMax(x)[r], want[0])
				}
			}
		}
		sorted := Sort(x)
		for r := range 6 {
			row, got := slices.Clone(x.data[r*n:][:n]), sorted.data[r*n:][:n]
			sort.Slice(row, func(i, j int) bool { return row[i] < row[j] || row[j] != row[j] && row[i] == row[i] })
			for i := range row {
				if row[i] != got[i] && (row[i] == row[i] || got[i] == got[i]) {
					t.Errorf("sorted %v, want %v", got, row)
				}
			}
		}
		for i, v := range before.data {
			if math.Float32bits(v) != math.Float32bits(x.data[i]) {
				t.Fatal("the operand has changed")
			}
		}
	}
	if got := Sort(Zeros(2, 0)).Shape(); !slices.Equal(got, []int{2, 0}) {
		t.Errorf("sorted rows of no elements have shape %v", got)
	}
	for want, f := range map[string]func(){
		"tensor: TopK: x has shape [2 3], want [… N] with 1 ≤ k ≤ N, where k is 4": func() { TopK(Zeros(2, 3), 4) },
		"tensor: TopK: x has shape [2 3], want [… N] with 1 ≤ k ≤ N, where k is 0": func() { TopK(Zeros(2, 3), 0) },
		"tensor: TopK: x has shape [], want [… N] with 1 ≤ k ≤ N, where k is 1":    func() { ArgMax(Full(1)) },
		"tensor: TopK: x has shape [2 0], want [… N] with 1 ≤ k ≤ N, where k is 1": func() { ArgMax(Zeros(2, 0)) },
		"tensor: Sort: x has shape [], want an axis 0":                             func() { Sort(Full(1)) },
		"tensor: New: data has 2 values, want 3 for shape [3]":                     func() { FromFloat64s([]float64{1, 2}, 3) },
		"tensor: Zeros: tensor has shape [-1], want no negative axis":              func() { Linspace(0, 1, -1) },
	} {
		if err := Catch(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestLinspace(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		n        int
		want     []float32
	}{
		{0, 1, 5, []float32{0, 0.25, 0.5, 0.75, 1}}, {2, -2, 3, []float32{2, 0, -2}}, {3, 9, 1, []float32{3}}, {3, 9, 0, nil},
		{0, 3, 4, []float32{0, 1, 2, 3}}, {-1e30, 1, 2, []float32{-1e30, 1}}, {0, 1 << 24, 1<<12 + 1, nil},
	} {
		x := Linspace(c.from, c.to, c.n)
		if c.want == nil {
			for i := range c.n { // a power of two is exact
				c.want = append(c.want, float32(i)*(1<<12))
			}
		}
		if !slices.Equal(x.Shape(), []int{c.n}) || !slices.Equal(x.data, c.want) {
			t.Errorf("%d from %g to %g: %v, want %v", c.n, c.from, c.to, x.data[:min(c.n, 9)], c.want[:min(c.n, 9)])
		}
	}
}

// Conversions round to nearest and copy.
func TestFloat64s(t *testing.T) {
	data := []float64{1, 1 + 1./(1<<24), 1 + 3./(1<<24), 1e300, math.NaN(), -0.5}
	x := FromFloat64s(data, 2, 3)
	want := []float64{1, 1, 1 + 2./(1<<23), math.Inf(1), math.NaN(), -0.5}
	got := x.Float64s()
	for i, v := range got {
		if v != want[i] && !(v != v && want[i] != want[i]) {
			t.Errorf("element %d is %v, want %v", i, v, want[i])
		}
	}
	got[0], data[0] = 7, 7
	if x.data[0] != 1 || !slices.Equal(x.Shape(), []int{2, 3}) {
		t.Errorf("%v of shape %v shares memory", x.data, x.Shape())
	}
}
