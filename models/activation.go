package models

import (
	"maps"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// Activation is a function of each element.
type Activation func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor

// Forward calls f.
func (f Activation) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return f(t, x) }

// activations are the activations that a config.json may name, by their names in transformers.
var activations = map[string]Activation{
	"gelu":              tensor.GELU, // with erf
	"gelu_python":       tensor.GELU,
	"gelu_new":          tensor.TanhGELU,
	"gelu_pytorch_tanh": tensor.TanhGELU,
	"gelu_fast":         tensor.TanhGELU,
	"gelu_accurate":     tensor.TanhGELU,
	"quick_gelu":        tensor.QuickGELU,
	"silu":              tensor.SiLU,
	"swish":             tensor.SiLU,
	"relu":              tensor.ReLU,
	"tanh":              tensor.Tanh,
	"sigmoid":           tensor.Sigmoid,
}

// Activation returns the function that a setting names, or the default, usual, if the setting is
// absent.
func (s *Settings) Activation(key, usual string) Activation {
	name := s.Text(key, usual)
	f := activations[name]
	if f == nil {
		s.Fail(key, "is %s, want one of %s", quote.Text(name), strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
		return tensor.GELU
	}
	return f
}
