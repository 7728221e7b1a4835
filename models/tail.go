package models

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// readPooling reads the second module.
func (e *Embedder) readPooling(dir string) error {
	s, err := openSettings(filepath.Join(dir, configFile))
	if err != nil {
		return err
	}
	width := e.Model.Sizes().Width
	s.wantWidth(width, "the model's hidden states have %d elements")
	e.leaveOut = !s.Bool("include_prompt", true)
	table := Poolings()
	for _, p := range table {
		if s.Bool(p.flag, false) && !s.Has("pooling_mode") {
			e.Poolings = append(e.Poolings, p)
		}
	}
	names := s.textOrTexts("pooling_mode")
	if !s.Has("pooling_mode") && e.Poolings == nil {
		names = []string{"mean"}
	}
	if len(names)+len(e.Poolings) == 0 {
		s.Fail("pooling_mode", "is [], want the name of a pooling, or a list of names")
	}
	for _, name := range names {
		p, err := PoolingByName(name)
		if err != nil {
			s.Fail("pooling_mode", "has %w", err)
			continue
		}
		e.Poolings = append(e.Poolings, p)
	}
	weighted := slices.ContainsFunc(e.Poolings, func(p Pooling) bool { return p.Name == "weightedmean" })
	if e.leaveOut && weighted { // the weights would begin after the prompt
		s.Fail("include_prompt", "is false, want true for the pooling weightedmean")
	}
	e.width = width * len(e.Poolings)
	return s.check()
}

// wantWidth checks the width of the input of a pooling. what says what has it.
func (s *Settings) wantWidth(width int, what string) {
	for _, key := range []string{"word_embedding_dimension", "embedding_dimension"} {
		if n := s.SizeOr(key, width); n != width {
			s.Fail(key, "is %d, but "+what, n, width)
		}
	}
}

// torchActivations are the activations of dense layers, by their class in PyTorch.
var torchActivations = map[string]Layer{
	"torch.nn.modules.linear.Identity":    inTurn{},
	"torch.nn.modules.activation.Tanh":    Activation(tensor.Tanh),
	"torch.nn.modules.activation.ReLU":    Activation(tensor.ReLU),
	"torch.nn.modules.activation.GELU":    Activation(tensor.GELU),
	"torch.nn.modules.activation.Sigmoid": Activation(tensor.Sigmoid),
	"torch.nn.modules.activation.SiLU":    Activation(tensor.SiLU),
}

// tail are the layers of a pipeline that are applied to a vector, in order.
type tail struct {
	layers []Layer
	width  int // of the last vector
	params nn.Vars
}

// residual adds its input, or a map of it, to the output of a layer.
type residual struct{ layer, own Layer }

func (r residual) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Add(t, r.layer.Forward(t, x), optional(t, r.own, x))
}

// readDense reads a dense layer, whose input and output have one of the given names. name is its folder.
func (e *tail) readDense(dir, name string, inputs ...any) error {
	d, err := openDirectory(dir, func(*Settings) error { return nil })
	if err != nil {
		return err
	}
	defer d.r.Close()
	var out int
	layer, b, err := build(d, func(b *Builder) Layer {
		s := b.Config
		in := s.Size("in_features")
		out = s.Size("out_features")
		if in != e.width {
			s.Fail("in_features", "is %d, but the vector before has %d elements", in, e.width)
		}
		s.Only("module_input_name", inputs...)
		s.Only("module_output_name", inputs...)
		class := s.Text("activation_function", "torch.nn.modules.activation.Tanh")
		if len(inputs) > 1 && !s.Has("activation_function") { // the defaults of the libraries differ
			s.Fail("activation_function", "is missing, want the class of one")
		}
		act := torchActivations[class]
		if act == nil {
			s.Fail("activation_function", "is %s, want one of %s",
				quote.Text(class), strings.Join(slices.Sorted(maps.Keys(torchActivations)), ", "))
			act = Activation(tensor.Tanh)
		}
		linear := b.Matrix("linear", in, out)
		if s.Bool("bias", true) {
			linear.Bias = b.Tensor("linear.bias", out)
		}
		switch dense := (inTurn{linear, act}); {
		case !s.Bool("use_residual", false):
			return dense
		case in == out:
			return residual{dense, nil}
		default:
			return residual{dense, b.Matrix("residual", in, out)}
		}
	})
	if err != nil {
		return err
	}
	for _, p := range b.params {
		e.params = append(e.params, nn.Var{Name: name + "." + p.Name, Tensor: p.Tensor})
	}
	e.layers = append(e.layers, layer)
	e.width = out
	return nil
}

// readNormalize reads a normalisation of vectors of the given name, for which old pipelines have no folder.
func (e *tail) readNormalize(dir, input string) error {
	e.layers = append(e.layers, normalized)
	s, err := optionalSettings(filepath.Join(dir, configFile))
	if err != nil || s.values == nil {
		return err
	}
	if input != sentenceVector && !s.Has("module_input_name") {
		s.Fail("module_input_name", "is missing, want %q", input)
	}
	s.Only("module_input_name", input)
	s.Only("module_output_name", input)
	return s.check()
}

// sentenceVector and tokenVectors are the names of vectors in pipelines.
const (
	sentenceVector = "sentence_embedding"
	tokenVectors   = "token_embeddings"
)
