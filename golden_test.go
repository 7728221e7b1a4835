package attn_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// elsewhere are the golden files that other packages test.
var elsewhere = map[string]string{
	"ops":                "tensor",
	"optim":              "nn",
	"gru_one_layer":      "nn",
	"gru_two_layers":     "nn",
	"gru_with_lengths":   "nn",
	"lstm_one_layer":     "nn",
	"lstm_two_layers":    "nn",
	"lstm_with_lengths":  "nn",
	"rnn_one_layer":      "nn",
	"rnn_relu_one_layer": "nn",
	"rnn_two_layers":     "nn",
	"rnn_with_lengths":   "nn",
	"sinusoids":          "nn",
}

// TestGolden compares the package with results of PyTorch in float64. It finds its cases by
// listing the files, so that a new file without a test fails.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*.safetensors")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	others := maps.Clone(elsewhere)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".safetensors")
		if _, ok := others[name]; ok {
			delete(others, name)
			continue
		}
		simd.Each(func(kernels string) {
			t.Run(name+"/"+kernels, func(t *testing.T) { golden(t, name, path) })
		})
	}
	for name := range others {
		t.Errorf("%s.safetensors is gone", name)
	}
}

// golden compares everything in a file, with the current kernels.
func golden(t *testing.T, name, path string) {
	s := openSheet(t, path)
	switch system := s.Setting("system"); {
	case name == "encdec":
		goldenEncoderDecoder(s)
	case name == "mha_dropout_mask":
		goldenDropout(s)
	case slices.Contains([]string{"1", "2", "attend"}, system):
		goldenAttend(s)
	case slices.Contains([]string{"4", "5", "6", "7"}, system):
		goldenMultiHead(s)
	default:
		t.Fatalf("no test for system %q", system)
	}
	s.done()
}

// sheet is a golden file that records which results have been compared.
type sheet struct {
	*tensortest.Golden
	t      *testing.T
	leaves map[string]*tensor.Tensor // inputs and parameters by name
	left   map[string]bool           // results and gradients not yet compared
}

func openSheet(t *testing.T, path string) *sheet {
	t.Helper()
	s := &sheet{tensortest.Open(t, path), t, map[string]*tensor.Tensor{}, map[string]bool{}}
	file, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range file.Tensors {
		if strings.HasPrefix(x.Name, "want.") || strings.HasPrefix(x.Name, "grad.") {
			s.left[x.Name] = true
		}
	}
	return s
}

// leaf returns an input or a parameter, the same tensor each time.
func (s *sheet) leaf(name string) *tensor.Tensor {
	if s.leaves[name] == nil {
		s.leaves[name] = s.Tensor(name).Param()
	}
	return s.leaves[name]
}

// check compares a result.
func (s *sheet) check(name string, got *tensor.Tensor) {
	s.t.Helper()
	s.Check(name, got)
	delete(s.left, name)
}

// backward runs the tape from the gradient of out, and from the gradient of the weights if the
// file has one, and compares the gradients of all leaves.
func (s *sheet) backward(tape *tensor.Tape, y attn.Output) {
	s.t.Helper()
	outs, douts := []*tensor.Tensor{y.Out}, []*tensor.Tensor{s.Tensor("in.dout")}
	if s.Has("in.dweights") {
		outs, douts = append(outs, y.Weights), append(douts, s.Tensor("in.dweights"))
	}
	tape.BackwardAll(outs, douts)
	s.gradients()
}

// gradients compares the gradients of all leaves.
func (s *sheet) gradients() {
	s.t.Helper()
	largest := 0.0
	for _, x := range s.leaves {
		largest = max(largest, magnitude(x.Grad()))
	}
	for name, x := range s.leaves {
		_, rest, _ := strings.Cut(name, ".")
		name = "grad." + rest
		if want := s.Float64s(name); largestOf(want) > 1e-12 {
			s.CheckGrad(name, x)
		} else {
			// Zero in exact arithmetic, like the gradient of a bias on all keys. The remainder is
			// the rounding error of terms as large as the other gradients.
			tensortest.Close(s.t, name, x.Grad().Data(), want, largest*1e-6)
		}
		delete(s.left, name)
	}
}

// done fails the test if the file has tensors that no check has read.
func (s *sheet) done() {
	s.t.Helper()
	for name := range s.left {
		s.t.Errorf("%s has not been compared", name)
	}
}

// score builds the score that the file describes; nil is the default.
func (s *sheet) score(prefix string) attn.Score {
	switch s.Setting("score") {
	case "custom":
		return score.Func(ownScore)
	case "relative":
		r := s.leaf("param.r")
		return score.Func(func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
			return relativeScores(t, q, k, r)
		})
	}
	kinds := score.Kinds()
	kind, ok := kinds.Find(s.Among("score", kinds.Names()))
	switch {
	case !ok:
		s.t.Fatalf("no score %q", s.Setting("score"))
	case s.Setting("scale") != "":
		return kind.Scaled(float32(s.Number("scale")))
	case kind.Name == "scaled":
		return nil
	}
	params := map[string]*tensor.Tensor{}
	for _, p := range kind.Params {
		if name := "param." + prefix + p.Name; s.Has(name) {
			params[p.Name] = s.leaf(name)
		}
	}
	score, err := kind.With(params)
	if err != nil {
		s.t.Fatal(err)
	}
	return score
}

// mask builds the mask that the file describes.
func (s *sheet) mask() attn.Mask {
	var all []attn.Mask
	ownOffset := s.Setting("default_offset") == "false"
	switch {
	case s.Setting("causal") != "true":
	case ownOffset:
		all = append(all, mask.CausalAt(int(s.Number("offset"))))
	default:
		all = append(all, mask.Causal())
	}
	if s.Setting("window_left") != "" {
		left, right := int(s.Number("window_left")), int(s.Number("window_right"))
		if ownOffset {
			all = append(all, mask.WindowAt(left, right, int(s.Number("offset"))))
		} else {
			all = append(all, mask.Window(left, right))
		}
	}
	if s.Has("in.valid_lens") {
		lens := s.Ints("in.valid_lens")
		if shape := s.Shape("in.valid_lens"); len(shape) == 1 {
			all = append(all, mask.Lengths(lens...))
		} else {
			all = append(all, mask.LengthsOfQueries(slices.Collect(slices.Chunk(lens, shape[1]))))
		}
	}
	if s.Has("in.mask") {
		seen, shape := s.Bools("in.mask"), s.Shape("in.mask")
		if s.Setting("system") == "7" {
			all = append(all, mask.AllowSequenceFirst(seen, shape[0], shape[1], shape[2]))
		} else {
			all = append(all, mask.Allow(seen, shape...))
		}
	}
	return attn.And(all...)
}
