package nn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestSinusoidsGolden(t *testing.T) {
	g := tensortest.Open(t, goldenDir+"sinusoids.safetensors")
	for _, name := range []string{"even", "odd", "far", "before"} {
		number := func(what string) int { return int(g.Number(name + "." + what)) }
		got := nn.Sinusoids(tensortest.Tape(tensor.Infer), number("first"), number("length"), number("width"))
		if want := g.Shape("want." + name); !slices.Equal(got.Shape(), want) {
			t.Errorf("%s: shape %v, want %v", name, got.Shape(), want)
		}
		// Angles are computed in float64, so far positions are as exact as near ones.
		tensortest.Close(t, name, got.Data(), g.Float64s("want."+name), 0)
	}
}

func TestSinusoidsOfNothing(t *testing.T) {
	for _, shape := range [][]int{{0, 6}, {5, 0}} {
		if got := nn.Sinusoids(nil, 3, shape[0], shape[1]).Shape(); !slices.Equal(got, shape) {
			t.Errorf("shape %v, want %v", got, shape)
		}
	}
	err := tensor.Catch(func() { nn.Sinusoids(nil, 0, 5, -2) })
	if want := "nn: Sinusoids: out has shape [5 -2], want no negative axis"; fmt.Sprint(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
