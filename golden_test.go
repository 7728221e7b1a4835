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
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// elsewhere are the golden files that other packages test.
var elsewhere = map[string]string{
	"ops":                     "tensor",
	"optim":                   "optim",
	"conv_documents":          "nn",
	"conv_plain":              "nn",
	"conv_short":              "nn",
	"gru_one_layer":           "nn",
	"gru_two_layers":          "nn",
	"gru_with_lengths":        "nn",
	"linear_delta":            "linear",
	"linear_gated":            "linear",
	"linear_gated_delta":      "linear",
	"linear_gated_delta_each": "linear",
	"linear_gated_each":       "linear",
	"linear_normalized":       "linear",
	"lstm_one_layer":          "nn",
	"lstm_two_layers":         "nn",
	"lstm_with_lengths":       "nn",
	"rnn_one_layer":           "nn",
	"rnn_relu_one_layer":      "nn",
	"rnn_two_layers":          "nn",
	"rnn_with_lengths":        "nn",
	"sinusoids":               "nn",
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
	s := &sheet{tensortest.Open(t, path), t}
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
	s.Done()
}

// sheet is a golden file that a test reads.
type sheet struct {
	*tensortest.Golden
	t *testing.T
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
	s.CheckGrads()
}

// score builds the score that the file describes; nil is the default.
func (s *sheet) score(prefix string) attn.Score {
	switch s.Setting("score") {
	case "custom":
		return score.Func(ownScore)
	case "relative":
		r := s.Leaf("param.r")
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
			params[p.Name] = s.Leaf(name)
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

// goldenAttend tests a call of Attend.
func goldenAttend(s *sheet) {
	o := attn.Options{Score: s.score(""), Mask: s.mask(), Weights: true}
	if s.Setting("softcap") != "" {
		o.SoftCap = float32(s.Number("softcap"))
	}
	if s.Has("in.bias") {
		o.Bias = s.Leaf("in.bias")
	}
	q, k, v := s.Leaf("in.q"), s.Leaf("in.k"), s.Leaf("in.v")
	tape := tensortest.Tape(tensor.Train)
	y := attn.Attend(tape, q, k, v, o)
	s.Check("want.out", y.Out)
	s.Check("want.weights", y.Weights)
	scores := formulaChanges(nil, fourAxes(q), fourAxes(k), o) // of hidden keys as well
	s.Check("want.scores", scores)
	s.Check("want.weights", attn.MaskedSoftmax(nil, tensor.Reshape(nil, scores, y.Weights.Shape()...), o.Mask))
	s.backward(tape, y)
}

// fourAxes returns [B L E] as [B 1 L E].
func fourAxes(x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() == 4 {
		return x
	}
	return tensor.Reshape(nil, x, x.Dim(0), 1, x.Dim(1), x.Dim(2))
}

// goldenMultiHead tests a call of a layer.
func goldenMultiHead(s *sheet) {
	m := s.multiHead()
	q := s.Leaf("in.q")
	var k, v *tensor.Tensor
	if s.Has("in.kv") { // one tensor as key and value
		k = s.Leaf("in.kv")
		v = k
	} else {
		k, v = s.Leaf("in.k"), s.Leaf("in.v")
	}
	o := attn.Options{Mask: s.mask(), Weights: true}
	if s.Setting("score") == "relative" {
		o.Score = s.score("")
	}
	tape := tensortest.Tape(tensor.Train)
	y := m.Forward(tape, q, k, v, o)
	s.Check("want.out", y.Out)
	s.Check("want.weights", y.Weights)
	inner := o.Score
	if inner == nil {
		inner = m.Config().Score
	}
	o.Score = score.Func(func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
		scores := attn.Scores(t, q, k, attn.Options{Score: inner})
		s.Check("want.scores", scores)
		return scores
	})
	m.Forward(nil, q, k, v, o)
	s.backward(tape, y)
}

// multiHead builds the layer that the file describes, with its parameters.
func (s *sheet) multiHead() *attn.MultiHead {
	heads := int(s.Number("heads"))
	width := func(of string) int { shape := s.Shape(of); return shape[len(shape)-1] }
	c := attn.MultiHeadConfig{
		Heads:     heads,
		Width:     s.Shape("param.out.weight")[0],
		HeadSize:  s.Shape("param.q.weight")[0] / heads,
		ValueSize: s.Shape("param.v.weight")[0] / heads,
		// The input widths are the widths of the maps; one is inferred from the first batch.
		QueryWidth: width("param.q.weight"),
		KeyWidth:   width("param.k.weight"),
		ValueWidth: attn.Infer,
	}
	if c.HeadSize*heads == c.Width {
		c.HeadSize = 0 // the default
	}
	for name, which := range map[string]attn.Projections{"q": attn.Query, "k": attn.Key, "v": attn.Value, "out": attn.Out, "gate": attn.Gate} {
		if s.Has("param." + name + ".bias") {
			c.Bias |= which
		}
	}
	if s.Setting("system") == "7" {
		c.Layout = attn.SequenceFirst
	}
	if s.Has("param.gate.weight") {
		activations := map[string]func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor{"sigmoid": tensor.Sigmoid, "softplus": tensor.Softplus}
		c.OutputGate = attn.OutputGate{Activation: activations[s.Setting("gate")], Size: s.Shape("param.gate.weight")[0] / heads}
	}
	if s.Setting("score") != "relative" { // the call defines that score
		c.Score = s.score("score.")
	}
	m, err := attn.NewMultiHead(c, newRand(1))
	if err != nil {
		s.t.Fatal(err)
	}
	m.Build(c.QueryWidth, c.KeyWidth, width("param.v.weight"))
	for name, p := range m.Params() {
		if name = "param." + name; s.Leaves[name] == nil { // skip parameters of the score, which has them already
			copy(p.Data(), s.Tensor(name).Data())
			s.Leaves[name] = p
		}
	}
	return m
}

// goldenDropout tests a layer whose dropout is given as a mask. Attend draws its dropout and does
// not accept a mask, so the test computes the steps of the layer one by one, as users do who
// insert something between them.
func goldenDropout(s *sheet) {
	m := s.multiHead()
	q, k, v := s.Leaf("in.q"), s.Leaf("in.k"), s.Leaf("in.v")
	heads := m.Config().Heads
	split := func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { // [B L H·E] to [B H L E]
		x = tensor.Reshape(t, x, x.Dim(0), x.Dim(1), heads, -1)
		return tensor.Transpose(t, x, 0, 2, 1, 3)
	}
	kept := tensor.Zeros(s.Shape("in.keep")...)
	for i, keep := range s.Bools("in.keep") {
		if keep {
			kept.Data()[i] = float32(1 / (1 - s.Number("dropout")))
		}
	}

	tape := tensortest.Tape(tensor.Train)
	scores := attn.Scores(tape, split(tape, m.Q.Forward(tape, q)), split(tape, m.K.Forward(tape, k)), attn.Options{})
	weights := tensor.Softmax(tape, scores)
	mixed := tensor.Mix(tape, tensor.Mul(tape, weights, kept), split(tape, m.V.Forward(tape, v)))
	joined := tensor.Reshape(tape, tensor.Transpose(tape, mixed, 0, 2, 1, 3), q.Dim(0), q.Dim(1), -1)
	y := attn.Output{Out: m.Out.Forward(tape, joined), Weights: weights}
	s.Check("want.scores", scores)
	s.Check("want.weights", y.Weights)
	s.Check("want.out", y.Out)
	s.backward(tape, y)
}

// goldenEncoderDecoder is system 3: the decoder states attend to the encoder states without any
// parameters.
func goldenEncoderDecoder(s *sheet) {
	gru := func(name string) *nn.GRU {
		param := func(p string) *tensor.Tensor { return s.Leaf("param." + name + "." + p + "_l0") }
		return &nn.GRU{CellWeights: nn.CellWeights{
			WeightIH: param("weight_ih"), WeightHH: param("weight_hh"), BiasIH: param("bias_ih"), BiasHH: param("bias_hh"),
		}}
	}
	tape := tensortest.Tape(tensor.Train)
	enc, last := gru("enc").Forward(tape, s.Leaf("in.src"), nil, nil, nn.Forward)
	dec, _ := gru("dec").Forward(tape, s.Leaf("in.tgt"), last, nil, nn.Forward)
	o := attn.Options{Score: s.score(""), Weights: true}
	y := attn.Attend(tape, dec, enc, enc, o)
	s.Check("want.enc", enc)
	s.Check("want.dec", dec)
	s.Check("want.out", y.Out)
	s.Check("want.weights", y.Weights)
	s.Check("want.scores", attn.Scores(nil, dec, enc, o))
	s.backward(tape, y)
}
