package linear_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// A state that is saved and read at any token continues with the same bits.
func TestSavedState(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	path := filepath.Join(t.TempDir(), "state.safetensors")
	for name, l := range layers(t, r) {
		x := tensor.Randn(r, 2, 12, 24)
		want := l.Forward(nil, x, linear.Options{})
		s, _ := l.NewState(2)
		for at := range 12 {
			y := l.Extend(nil, tensor.Slice(nil, x, 1, at, at+1), s, linear.Options{})
			if w := tensor.Slice(nil, want.Out, 1, at, at+1); !slices.Equal(y.Out.Data(), w.Data()) {
				t.Fatalf("%s: token %d has other bits after the state was read", name, at)
			}
			if err := s.WriteFile(path); err != nil {
				t.Fatal(err)
			}
			s, _ = l.NewState(2)
			if err := s.ReadFile(path); err != nil {
				t.Fatal(err)
			}
			if got := s.State().Len(1); got != at+1 {
				t.Fatalf("length %d, want %d", got, at+1)
			}
		}
	}
}

func TestReadFileErrors(t *testing.T) {
	c := linear.StateConfig{Batch: 1, Heads: 2, KeySize: 3, ValueSize: 4}
	s, _ := linear.NewState(c)
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	for want, change := range map[string]func(f *safetensors.File, c *linear.StateConfig){
		"states has shape [1 2 3 4], want [1 2 3 5]": func(_ *safetensors.File, c *linear.StateConfig) { c.ValueSize = 5 },
		"no tensor states":                           func(f *safetensors.File, _ *linear.StateConfig) { f.Tensors = f.Tensors[1:] },
		"unknown tensor more": func(f *safetensors.File, _ *linear.StateConfig) {
			f.Tensors = append(f.Tensors, safetensors.FromInts("more", []int{1}, []int{1}))
		},
		"tokens[1] is 4, want 0 to 3": func(f *safetensors.File, _ *linear.StateConfig) {
			for i, x := range f.Tensors {
				if x.Name == "tokens" {
					f.Tensors[i] = safetensors.FromInts("tokens", []int{1, 2}, []int{0, 4})
				}
				if x.Name == "lengths" {
					f.Tensors[i] = safetensors.FromInts("lengths", []int{1}, []int{9})
				}
			}
		},
	} {
		f, err := safetensors.Parse(slices.Clone(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		c := c
		change(f, &c)
		if err := f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		s, _ := linear.NewState(c)
		if err := s.ReadFile(path); err == nil || !strings.Contains(err.Error(), want) || s.Len(0) != 0 {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := s.ReadFile(path + ".not"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want one that the file does not exist", err)
	}
}

// Truncate returns to the last border, or to the begin.
func TestTruncate(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	x := newInputs(r, "gated_delta", 1, 1, 1, 1, 11, 3, 4)
	part := func(x *tensor.Tensor, from, to int) *tensor.Tensor { return tensor.Slice(nil, x, 2, from, to) }
	feed := func(s *linear.State, from, to int) []float32 {
		o := linear.Options{Decay: part(x.decay, from, to), Beta: part(x.beta, from, to)}
		return s.Attend(nil, part(x.q, from, to), part(x.k, from, to), part(x.v, from, to), o).Out.Data()
	}
	s, _ := linear.NewState(linear.StateConfig{Batch: 1, Heads: 1, KeySize: 3, ValueSize: 4})
	want := feed(s, 0, 11)
	for to, from := range map[int]int{11: 11, 8: 8, 0: 0} {
		f := s.Fork()
		if f.Truncate(to); f.Len(0) != to {
			t.Fatalf("length %d, want %d", f.Len(0), to)
		}
		if from < 11 {
			if got := feed(f, from, 11); !slices.Equal(got, want[from*4:]) {
				t.Errorf("after Truncate(%d) the tokens have other bits", to)
			}
		}
	}
	for _, n := range []int{12, 10, 4, -1} {
		if err := tensor.Catch(func() { s.Truncate(n) }); err == nil || !strings.Contains(err.Error(), "0, 8 or 11") {
			t.Errorf("Truncate(%d): error %v", n, err)
		}
	}
}
