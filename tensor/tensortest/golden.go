package tensortest

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// Golden is a file of inputs and exact results; testdata/README.md describes the format. Its methods end the test if
// the file lacks the requested tensor or setting.
type Golden struct {
	Leaves map[string]*tensor.Tensor // inputs and parameters by name, whose gradients CheckGrads compares
	tb     testing.TB
	name   string
	file   *safetensors.File
	used   map[string]bool // names of tensors that the test has read
}

// Open reads a golden file. It ends the test on an error.
func Open(tb testing.TB, path string) *Golden {
	tb.Helper()
	file, err := safetensors.Read(path)
	if err != nil {
		tb.Fatal(err)
	}
	return &Golden{map[string]*tensor.Tensor{}, tb, filepath.Base(path), file, map[string]bool{}}
}

// On returns the same file for use in a subtest.
func (g *Golden) On(tb testing.TB) *Golden { return &Golden{g.Leaves, tb, g.name, g.file, g.used} }

// Has reports whether the file has a tensor of that name.
func (g *Golden) Has(name string) bool { return g.file.Lookup(name) != nil }

// Shape returns the shape of a tensor.
func (g *Golden) Shape(name string) []int {
	g.tb.Helper()
	return slices.Clone(g.lookup(name).Shape)
}

// Tensor returns a float32 tensor of the file in new memory. No gradient flows to it unless the caller makes it a
// parameter.
func (g *Golden) Tensor(name string) *tensor.Tensor {
	g.tb.Helper()
	x := g.lookup(name)
	return tensor.New(read(g, x.Float32s), x.Shape...)
}

// Leaf returns an input or a parameter as a leaf, the same one each time.
func (g *Golden) Leaf(name string) *tensor.Tensor {
	g.tb.Helper()
	if g.Leaves[name] == nil {
		g.Leaves[name] = g.Tensor(name).Param()
	}
	return g.Leaves[name]
}

// Float64s returns the numbers of a float tensor of the file.
func (g *Golden) Float64s(name string) []float64 {
	g.tb.Helper()
	return read(g, g.lookup(name).Float64s)
}

// Ints returns the numbers of an integer tensor of the file.
func (g *Golden) Ints(name string) []int {
	g.tb.Helper()
	return read(g, g.lookup(name).Ints)
}

// Bools returns the truth values of a boolean tensor of the file.
func (g *Golden) Bools(name string) []bool {
	g.tb.Helper()
	return read(g, g.lookup(name).Bools)
}

// Setting returns a value of the file's metadata, or "" if it is absent.
func (g *Golden) Setting(key string) string { return g.file.Metadata[key] }

// Among returns the longest of names that is a prefix of a metadata value, or "" if none is. The name of a golden
// case is the name of its subject, with "_" for "-", followed by a variant.
func (g *Golden) Among(key string, names []string) string {
	value, found := strings.ReplaceAll(g.Setting(key), "_", "-"), ""
	for _, name := range names {
		if strings.HasPrefix(value, name) && len(name) > len(found) {
			found = name
		}
	}
	return found
}

// Number returns a numeric value of the file's metadata.
func (g *Golden) Number(key string) float64 {
	g.tb.Helper()
	x, err := strconv.ParseFloat(g.Setting(key), 64)
	if err != nil {
		g.tb.Fatalf("%s: setting %q: %v", g.name, key, err)
	}
	return x
}

// Check compares the elements of got with the exact elements of that name, within the budget that the file gives for
// them (see Close). Only the sizes of the shapes are compared, because a single layer's state has one axis less than
// in PyTorch.
func (g *Golden) Check(name string, got *tensor.Tensor) {
	g.tb.Helper()
	want := g.Float64s(name)
	if got.Len() != len(want) {
		g.tb.Errorf("%s: %s: shape %v, want the size of %v", g.name, name, got.Shape(), g.Shape(name))
		return
	}
	Close(g.tb, g.name+": "+name, got.Data(), want, g.Number("budget."+name))
}

// CheckGrad compares the gradient of x with the exact gradient of that name. A gradient that no backward pass has
// reached counts as zero.
func (g *Golden) CheckGrad(name string, x *tensor.Tensor) {
	g.tb.Helper()
	grad := x.Grad()
	if grad == nil {
		grad = tensor.Zeros(x.Shape()...)
	}
	g.Check(name, grad)
}

// CheckGrads compares the gradients of all leaves: that of "in.q" with "grad.q".
func (g *Golden) CheckGrads() {
	g.tb.Helper()
	top := 0.0
	for _, x := range g.Leaves {
		top = max(top, largest(x.Grad().Data()))
	}
	for name, x := range g.Leaves {
		_, rest, _ := strings.Cut(name, ".")
		if want := g.Float64s("grad." + rest); largest(want) > 1e-12 {
			g.CheckGrad("grad."+rest, x)
		} else {
			// Zero in exact arithmetic, like the gradient of a bias on all keys. The remainder is the rounding error of
			// terms as large as the other gradients.
			Close(g.tb, g.name+": grad."+rest, x.Grad().Data(), want, top*1e-6)
		}
	}
}

// Done fails the test if the file has a tensor that the test has not read.
func (g *Golden) Done() {
	g.tb.Helper()
	for _, x := range g.file.Tensors {
		if !g.used[x.Name] {
			g.tb.Errorf("%s: %s has not been read", g.name, x.Name)
		}
	}
}

func (g *Golden) lookup(name string) *safetensors.Tensor {
	g.tb.Helper()
	x := g.file.Lookup(name)
	if x == nil {
		g.tb.Fatalf("%s: no tensor %q", g.name, name)
	}
	g.used[name] = true
	return x
}

// read returns the result of convert, and ends the test if convert fails.
func read[T any](g *Golden, convert func() ([]T, error)) []T {
	g.tb.Helper()
	x, err := convert()
	if err != nil {
		g.tb.Fatalf("%s: %v", g.name, err)
	}
	return x
}
