package attn

import (
	"fmt"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// step is what changes the scores of one call between scale and mask: a ScoreMod, or a
// BiasRule with its numbers. Both ways through attention take the same steps.
type step struct {
	dims
	mod  ScoreMod
	rule BiasRule
	// every says that the step is for the extra keys, too: one that does not go by the
	// places of keys.
	every bool
	// param is [B or 1, H or 1, …]: the part of a head has n elements, and one of the
	// next sequence or head is so many elements further.
	param          *tensor.Tensor
	n, batch, head int
}

// steps returns the changes of the scores of a call, in their order: soft-cap,
// modifications, bias.
func steps(t *tensor.Tape, op string, x Inputs, extra int, o *Options) []*step {
	d := dims{Sizes: x.Sizes, extra: extra}
	var all []*step
	for i, m := range o.mods() {
		all = append(all, &step{dims: d, mod: m, every: i == 0 && o.SoftCap != 0})
	}
	for _, r := range o.biases(x.Sizes) {
		s := &step{dims: d, rule: r, param: r.Param(t, x)}
		s.lay(op)
		all = append(all, s)
	}
	return all
}

// mods returns the modifications of the scores.
func (o *Options) mods() []ScoreMod {
	if o.SoftCap == 0 {
		return o.Mods
	}
	return append([]ScoreMod{SoftCap(o.SoftCap)}, o.Mods...)
}

// biases returns the terms of the bias.
func (o *Options) biases(s Sizes) []BiasRule {
	if o.Bias == nil {
		return o.Biases
	}
	return append([]BiasRule{biasTensor{o.Bias, s.ThreeAxes}}, o.Biases...)
}

// lay works out where the numbers of a head lie.
func (s *step) lay(op string) {
	if s.param == nil {
		return
	}
	shape := s.param.Shape()
	if len(shape) < 2 || shape[0] != 1 && shape[0] != s.B || shape[1] != 1 && shape[1] != s.H {
		panic(&tensor.ShapeError{Op: op, Arg: "param of a bias", Got: shape, Want: fmt.Sprintf("[B=%d or 1, H=%d or 1, …]", s.B, s.H)})
	}
	s.n = 1
	for _, n := range shape[2:] {
		s.n *= n
	}
	if shape[1] > 1 {
		s.head = s.n
	}
	if shape[0] > 1 {
		s.batch = shape[1] * s.n
	}
}

// row returns what a ScoreMod or a BiasRule is told of a row.
func (s Sizes) row(p flash.Place) Row {
	return Row{Batch: p.Batch, Head: p.Head, Query: p.Query, Key: p.Key, Position: p.Query + s.offset(p.Batch)}
}

// part returns the numbers of a head.
func (s *step) part(p flash.Place, data []float32) []float32 {
	if data == nil {
		return nil
	}
	return data[p.Batch*s.batch+p.Head*s.head:][:s.n]
}

// own returns how many scores of a row that starts at p are of extra keys, which the step
// passes over, and where the others start.
func (s *step) own(p flash.Place, scores int) (skip int, at Row) {
	skip = max(0, s.extra-p.Key)
	p.Key = max(0, p.Key-s.extra)
	if s.every {
		skip = 0
	}
	return min(skip, scores), s.row(p)
}

// Apply changes a row of scores.
func (s *step) Apply(p flash.Place, scores []float32) {
	skip, at := s.own(p, len(scores))
	if scores = scores[skip:]; len(scores) == 0 {
		return
	}
	if s.mod != nil {
		s.mod.Modify(at, scores)
		return
	}
	var data []float32
	if s.param != nil {
		data = s.param.Data()
	}
	s.rule.Add(at, s.part(p, data), scores)
}

// grad returns the backward step.
func (s *step) grad(t *tensor.Tape) flash.ModGrad {
	if s.mod != nil {
		return flash.ModGrad{Scores: true, Back: func(p flash.Place, before, after, d []float32) {
			if skip, at := s.own(p, len(d)); skip < len(d) {
				s.mod.Back(at, before[skip:], after[skip:], d[skip:])
			}
		}}
	}
	data := t.GradOf(s.param)
	if data == nil {
		return flash.ModGrad{}
	}
	return flash.ModGrad{Own: true, SharedBatch: s.batch == 0, SharedHead: s.head == 0, Back: func(p flash.Place, _, _, d []float32) {
		if skip, at := s.own(p, len(d)); skip < len(d) {
			s.rule.Back(at, s.part(p, data), d[skip:])
		}
	}}
}
