package mask_test

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A mask that does not fit is rejected before anything is computed.
func TestMasksOfTensorsErrors(t *testing.T) {
	softmax := func(m attn.Mask, shape ...int) func() {
		return func() { attn.MaskedSoftmax(nil, tensor.Zeros(shape...), m) }
	}
	allow := func(values ...float32) func() {
		return func() { mask.AllowTensor(tensor.New(values, 1, len(values))) }
	}
	inf := float32(math.Inf(-1))
	for _, c := range []struct {
		f    func()
		want string
	}{
		{softmax(mask.Lengths(2, 3, 1), 2, 5, 7), `attn: MaskedSoftmax: mask has 3 valid lengths, want one for each of B=2 sequences`},
		{softmax(mask.Lengths(2, 8), 2, 3, 5, 7), `attn: MaskedSoftmax: mask has valid length 8, want 0 to Lk=7`},
		{softmax(mask.LengthsOfQueries([][]int{{1, 2}, {3, 4}}), 2, 3, 5, 7), `attn: MaskedSoftmax: mask has 2 valid lengths, want one for each of Lq=5 queries`},
		{softmax(mask.AllowTensor(tensor.Zeros(3, 5, 7)), 2, 5, 7), `attn: MaskedSoftmax: mask has shape \[3 5 7\], want a shape that broadcasts to \[B=2 Lq=5 Lk=7\]`},
		{softmax(mask.AllowTensor(tensor.Zeros(2, 5, 7)), 2, 3, 5, 7), `attn: MaskedSoftmax: mask has shape \[2 5 7\], want a shape that broadcasts to \[B=2 H=3 Lq=5 Lk=7\]`},
		{softmax(mask.Causal(), 5, 7), `attn: MaskedSoftmax: scores has shape \[5 7\], want \[B H Lq Lk\] or \[B Lq Lk\]`},
		{softmax(attn.Mask{}), `attn: MaskedSoftmax: scores has shape \[\], want \[B H Lq Lk\] or \[B Lq Lk\]`},
		{allow(1, 0, 0.5), `mask: AllowTensor: mask has element 0.5 at \[0 2\], want 0 where a key is hidden and 1 where a query attends to it`},
		{allow(1, 2), `mask: AllowTensor: mask has element 2 at \[0 1\], want .*`},
		{allow(0, inf), `mask: AllowTensor: mask has element -Inf at \[0 1\], want .*`},
		{allow(-inf + inf), `mask: AllowTensor: mask has element NaN at \[0 0\], want .*`},
		{func() { mask.AllowTensor(nil) }, `mask: AllowTensor: mask .*, want a tensor`},
	} {
		wantError(t, c.f, c.want)
	}
}

// wantError fails the test unless f panics with an error of the given text.
func wantError(t *testing.T, f func(), want string) {
	t.Helper()
	if err := tensor.Catch(f); err == nil || !regexp.MustCompile("^"+want+"$").MatchString(err.Error()) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The mask copies its tensor.
func TestAllowTensorCopies(t *testing.T) {
	numbers := tensor.New([]float32{1, 0}, 2)
	m := mask.AllowTensor(numbers)
	numbers.Data()[0], numbers.Data()[1] = 0, 1
	tensortest.Same(t, "weights", attn.MaskedSoftmax(nil, tensor.Zeros(1, 1, 2), m).Data(), []float32{1, 0})
}

func TestAllowErrors(t *testing.T) {
	wantError(t, func() { mask.Allow(make([]bool, 5), 2, 3) }, `mask: Allow: mask has 5 elements, want 6 for shape \[2 3\]`)
	wantError(t, func() { mask.Allow(nil) }, `mask: Allow: mask has 0 elements, want 1 for shape \[\]`)
	wantError(t, func() { mask.Allow(nil, math.MaxInt/2+1, 4) }, `mask: Allow: mask has shape \[\d+ 4\], want 0 elements, the length of seen`)
	wantError(t, func() { mask.Allow(make([]bool, 6), -2, -3) }, `mask: Allow: mask has shape \[-2 -3\], want no negative axis`)
	wantError(t, func() { mask.AllowSequenceFirst(make([]bool, 5), 2, 3, 1) }, `mask: AllowSequenceFirst: mask has 5 elements, want 6 for shape \[2 3 1\]`)
}

// TopK chooses the highest of the keys that other masks allow, of equal ones the first, and none without a score.
func TestTopK(t *testing.T) {
	inf, nan := float32(math.Inf(-1)), float32(math.NaN())
	scores := tensor.New([]float32{1, 5, 5, 5, 2, inf, nan, 4, 0, -1, -2, 9}, 1, 3, 4)
	for want, m := range map[string]attn.Mask{
		"· 1 1 ·\n1 · · 1\n1 · · 1\n": mask.TopK(2, scores),
		"1 1 · ·\n1 · · ·\n1 · · 1\n": mask.TopK(2, scores, mask.CausalAt(1)),
		"1 1 1 1\n1 · · 1\n1 1 1 1\n": mask.TopK(9, scores),
	} {
		if got := m.Draw(attn.Sizes{B: 1, H: 1, Lq: 3, Lk: 4}); got != want {
			t.Errorf("\n%s, want\n%s", got, want)
		}
	}
	// [B Lq Lk] is for queries without heads; [B 1 Lq Lk] is the same mask for all heads.
	x := tensor.Randn(rand.New(rand.NewPCG(1, 2)), 1, 2, 3, 4)
	all := tensor.Reshape(nil, scores, 1, 1, 3, 4)
	k := tensor.Randn(rand.New(rand.NewPCG(3, 4)), 1, 2, 4, 4)
	want := attn.Attend(nil, x, k, k, attn.Options{Mask: mask.Allow(mask.TopK(2, scores).Array(attn.Sizes{B: 1, H: 1, Lq: 3, Lk: 4}), 3, 4)})
	if got := attn.Attend(nil, x, k, k, attn.Options{Mask: mask.TopK(2, all)}); !slices.Equal(got.Out.Data(), want.Out.Data()) {
		t.Error("a mask for all heads differs from that of its array")
	}
	for want, f := range map[string]func(){
		"mask: TopK: k is 0, want a positive number": func() { mask.TopK(0, scores) },
		"[Lq Lk], [B Lq Lk] or [B H Lq Lk]":          func() { mask.TopK(1, tensor.Zeros(3)) },
		"mask":                                       func() { mask.TopK(1, scores, mask.Lengths(1, 2)) },
	} {
		if err := tensor.Catch(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
