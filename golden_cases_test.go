package attn_test

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// goldenAttend tests a call of Attend.
func goldenAttend(s *sheet) {
	o := attn.Options{Score: s.score(""), Mask: s.mask(), Weights: true}
	if s.Setting("softcap") != "" {
		o.SoftCap = float32(s.Number("softcap"))
	}
	if s.Has("in.bias") {
		o.Bias = s.leaf("in.bias")
	}
	q, k, v := s.leaf("in.q"), s.leaf("in.k"), s.leaf("in.v")
	tape := tensortest.Tape(tensor.Train)
	y := attn.Attend(tape, q, k, v, o)
	s.check("want.out", y.Out)
	s.check("want.weights", y.Weights)
	scores := formulaChanges(nil, fourAxes(q), fourAxes(k), o) // of hidden keys as well
	s.check("want.scores", scores)
	s.check("want.weights", attn.MaskedSoftmax(nil, tensor.Reshape(nil, scores, y.Weights.Shape()...), o.Mask))
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
	q := s.leaf("in.q")
	var k, v *tensor.Tensor
	if s.Has("in.kv") { // one tensor as key and value
		k = s.leaf("in.kv")
		v = k
	} else {
		k, v = s.leaf("in.k"), s.leaf("in.v")
	}
	o := attn.Options{Mask: s.mask(), Weights: true}
	if s.Setting("score") == "relative" {
		o.Score = s.score("")
	}
	tape := tensortest.Tape(tensor.Train)
	y := m.Forward(tape, q, k, v, o)
	s.check("want.out", y.Out)
	s.check("want.weights", y.Weights)
	inner := o.Score
	if inner == nil {
		inner = m.Config().Score
	}
	o.Score = score.Func(func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
		scores := attn.Scores(t, q, k, attn.Options{Score: inner})
		s.check("want.scores", scores)
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
	for name, which := range map[string]attn.Projections{"q": attn.Query, "k": attn.Key, "v": attn.Value, "out": attn.Out} {
		if s.Has("param." + name + ".bias") {
			c.Bias |= which
		}
	}
	if s.Setting("system") == "7" {
		c.Layout = attn.SequenceFirst
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
		if name = "param." + name; s.leaves[name] == nil { // skip parameters of the score, which has them already
			copy(p.Data(), s.Tensor(name).Data())
			s.leaves[name] = p
		}
	}
	return m
}

// goldenDropout tests a layer whose dropout is given as a mask. Attend draws its dropout and does
// not accept a mask, so the test computes the steps of the layer one by one, as users do who
// insert something between them.
func goldenDropout(s *sheet) {
	m := s.multiHead()
	q, k, v := s.leaf("in.q"), s.leaf("in.k"), s.leaf("in.v")
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
	s.check("want.scores", scores)
	s.check("want.weights", y.Weights)
	s.check("want.out", y.Out)
	s.backward(tape, y)
}

// goldenEncoderDecoder is system 3: the decoder states attend to the encoder states without any
// parameters.
func goldenEncoderDecoder(s *sheet) {
	gru := func(name string) *nn.GRU {
		param := func(p string) *tensor.Tensor { return s.leaf("param." + name + "." + p + "_l0") }
		return &nn.GRU{CellWeights: nn.CellWeights{
			WeightIH: param("weight_ih"), WeightHH: param("weight_hh"), BiasIH: param("bias_ih"), BiasHH: param("bias_hh"),
		}}
	}
	tape := tensortest.Tape(tensor.Train)
	enc, last := gru("enc").Forward(tape, s.leaf("in.src"), nil, nil, nn.Forward)
	dec, _ := gru("dec").Forward(tape, s.leaf("in.tgt"), last, nil, nn.Forward)
	o := attn.Options{Score: s.score(""), Weights: true}
	y := attn.Attend(tape, dec, enc, enc, o)
	s.check("want.enc", enc)
	s.check("want.dec", dec)
	s.check("want.out", y.Out)
	s.check("want.weights", y.Weights)
	s.check("want.scores", attn.Scores(nil, dec, enc, o))
	s.backward(tape, y)
}
